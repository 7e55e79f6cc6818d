"""A soft body of corotational elements: its state, its matrices, its factors and its steps."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.fem.assembly import block_pattern, scalar_blocks, sum_pairs, to_csc
from palpo.physics.fem.block_product import neighbours
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import Symbolic, analyse
from palpo.physics.fem.material import Material
from palpo.physics.fem.trailing import TrailingFactor
from palpo.physics.fem.turning_elements import turning_elements
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError


class CorotationalBody:
    """Corotational elements under gravity, backward Euler with one linearisation a step, the mass lumped.

    fixed: indices of clamped nodes. gravity [m/s2], shape (3,).
    last: nodes that may come into contact; a factor is then a TrailingFactor, which gives their compliance in
    the order of `last`, the free ones of these nodes, ascending. links (k, 2): nodes that are joined besides
    those of an element, for stiffness that a derived body adds in `linearise`.
    State: x [m], shape (n_nodes, 3), of all nodes; v [m/s], shape (n_dof,), of the free ones in ascending
    order. Raises InputError for an element without volume, a fixed or last index out of range, or no free
    node.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        last: ArrayLike = (),
        links: NDArray[np.int64] | None = None,
    ) -> None:
        self.name, self.mesh, self.material = name, mesh, material
        n = len(mesh.nodes)
        self.fixed = np.unique(np.asarray(fixed, dtype=np.int32))
        if self.fixed.size and not 0 <= self.fixed[0] <= self.fixed[-1] < n:
            raise InputError(f"body {name!r} fixes node {self.fixed[-1]} but its nodes are 0 to {n - 1}.")
        if self.fixed.size == n:
            raise InputError(f"body {name!r} fixes all of its {n} nodes but needs a free one.")
        last = np.unique(np.asarray(last, dtype=np.int32))
        if last.size and not 0 <= last[0] <= last[-1] < n:
            raise InputError(f"body {name!r} is touched at node {last[-1]} but its nodes are 0 to {n - 1}.")
        self.floating = self.fixed.size == 0
        self.gravity = np.array(gravity, dtype=np.float64)

        self._elements = turning_elements(mesh, material)
        self._pattern = block_pattern(n, self._elements.cells, self.fixed, links)
        self.free = np.flatnonzero(self._pattern.slots >= 0).astype(np.int32)
        self.n_dof = 3 * self.free.size
        first = 3 * self._pattern.slots[:, None].astype(np.int32)
        self._dofs = np.where(first >= 0, first + np.arange(3, dtype=np.int32), np.int32(-1))

        corners = material.density * self._elements.shares
        self.node_mass = np.bincount(self._elements.cells.ravel(), corners.ravel(), minlength=n)
        self.mass = float(self.node_mass.sum())
        self._set_mass(corners[:, :, None] * np.eye(corners.shape[1]))
        self.neighbours = neighbours(self._pattern)

        self.last = np.setdiff1d(last, self.fixed)
        self._factors: dict[float, CholeskyFactor] = {}
        self._blocks = np.empty((self._pattern.rows.size, 9))
        self._quats = np.tile([1.0, 0.0, 0.0, 0.0], (len(self._elements.cells), 1))
        self._linearised_at = self._quats.copy()
        self._factored_at: dict[float, NDArray[np.float64]] = {}
        self._K: sp.csc_matrix | None = None
        self._turning = np.zeros((0, 3))
        self.x = np.array(mesh.nodes, dtype=np.float64)
        self.v = np.zeros(self.n_dof)
        self.linearise()

    def _set_mass(self, element_mass: NDArray[np.float64]) -> None:
        """M of the elements' scalar masses [kg], shape (m, c, c)."""
        self._mass = sum_pairs(self._pattern, element_mass)
        self.M = to_csc(self._pattern, scalar_blocks(self._mass)).copy()  # the pattern's arrays stay whole
        self.M.eliminate_zeros()

    @cached_property
    def _symbolic(self) -> Symbolic:
        """The pattern of all factors, found with the first: a body without factors never needs it."""
        return analyse(self.free.size, self._pattern.rows, self._pattern.cols, self._pattern.slots[self.last])

    @property
    def _weight(self) -> NDArray[np.float64]:
        return self.node_mass[:, None] * self.gravity

    @property
    def K(self) -> sp.csc_matrix:
        """Warped stiffness R K0 R^T of the last `linearise` [N/m], shape (n_dof, n_dof), symmetric."""
        if self._K is None:
            self._K = to_csc(self._pattern, self._blocks)
        return self._K

    def dofs_of(self, nodes: ArrayLike) -> NDArray[np.int32]:
        """Freedoms of nodes (k,), shape (k, 3), -1 where a node is fixed."""
        return np.asarray(self._dofs[np.asarray(nodes)])

    def node_velocities(self) -> NDArray[np.float64]:
        """Velocities of all nodes [m/s], shape (n_nodes, 3), zero where fixed."""
        out = np.zeros_like(self.x)
        out[self.free] = self.v.reshape(-1, 3)
        return out

    def linearise(self) -> None:
        """Refresh the element rotations and the warped stiffness at the present positions."""
        self._elements.assemble(self.x, self._quats, self._pattern.pair_block, self._blocks)
        self._linearised_at[:] = self._quats
        self._K = None

    @property
    def warped_blocks(self) -> NDArray[np.float64]:
        """Lower blocks of K, (n_blocks, 9), as `tangent_blocks` has those of the tangent."""
        return self._blocks

    def undamped_force(self) -> NDArray:
        """f_ext + f_int(x) [N], shape (n_dof,), with rotations found anew."""
        force = self._weight
        self._elements.add_forces(self.x, self._quats, force)
        return force[self.free].ravel()

    def force(self) -> NDArray:
        """f_ext + f_int(x) - C v [N], shape (n_dof,), rotations found anew, C of the last `linearise`."""
        m = self.material
        return self.undamped_force() - m.alpha * (self.M @ self.v) - m.beta * (self.K @ self.v)

    def factor(self, h: float) -> CholeskyFactor:
        """Factor of A_h = (1 + alpha h) M + (beta h + h^2) K from the last `linearise`."""
        factor = self._factors.get(h)
        if factor is None:
            factor = self._factors.setdefault(h, self._make_factor())
        alpha, beta = self.material.alpha, self.material.beta
        factor.refactor(self._blocks, self._mass, h * (beta + h), 1.0 + h * alpha)
        self._factored_at[h] = self._linearised_at.copy()
        if self.floating:
            self._turning = self.node_mass[:, None] * (self.x - self.node_mass @ self.x / self.mass)
        return factor

    def factor_of(self, h: float) -> CholeskyFactor:
        """The factor that `factor(h)` made last."""
        return self._factors[h]

    def reused_factor(self, h: float, turn: float) -> CholeskyFactor:
        """The factor of h, made anew (`linearise`, `factor`) only where `turned(h)` exceeds `turn` [rad].

        A step with it is backward Euler with the stiffness of an earlier shape: forces are the present ones,
        and the velocity is off by at most O(turn) of what the implicit terms h (C + h K) change in it.
        """
        factor = self._factors.get(h)
        if factor is None or self.turned(h) > turn:
            self.linearise()
            return self.factor(h)
        return factor

    def keep_factors(self, steps: Sequence[float]) -> None:
        """Forget the factors of all other steps h [s]."""
        self._factors = {h: factor for h, factor in self._factors.items() if h in steps}

    def turned(self, h: float) -> float:
        """Largest angle [rad] by which an element has turned from where the factor of h was linearised."""
        return self._elements.largest_turn(self.x, self._factored_at[h], self._quats)

    def _make_factor(self) -> CholeskyFactor:
        if self.last.size:
            return TrailingFactor(self._symbolic, self.last.size)
        return CholeskyFactor(self._symbolic)

    def free_velocity(self, factor: Factor, h: float, f: NDArray | None = None) -> NDArray:
        """v + dv with A_h dv = h (force - h K v + f), shape (n_dof,).

        Since A_h v = M v + h (C + h K) v, this is A_h^-1 (M v + h (f_ext + f_int + f)): K need not be
        applied.
        """
        load = self.undamped_force() if f is None else self.undamped_force() + f
        return factor.solve(self.M @ self.v + h * load)

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f, shape (n_dof,)."""
        return factor.solve(h * f)

    def advance(self, v_new: NDArray, h: float) -> None:
        """v = v_new, x += h v on the free nodes."""
        self.v = v_new
        self.x[self.free] += h * v_new.reshape(-1, 3)

    def energy(self) -> float:
        """Kinetic + elastic + gravity potential about the origin [J]."""
        elastic = self._elements.energy(self.x, self._quats)
        return float(0.5 * self.v @ (self.M @ self.v) + elastic - np.sum(self._weight * self.x))

    def momentum(self) -> tuple[NDArray, NDArray]:
        """Linear [kg m/s] and angular momentum about the origin [kg m2/s] of the free nodes."""
        p = (self.M @ self.v).reshape(-1, 3)
        return p.sum(axis=0), np.cross(self.x[self.free], p).sum(axis=0)

    def invalid(self) -> bool:
        """True if a position or velocity is not finite."""
        return not (np.isfinite(self.x).all() and np.isfinite(self.v).all())
