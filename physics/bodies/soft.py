"""A soft body: a mesh of elements, its state, its matrices, how they are solved, and its steps."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.soft_points import SoftPoints
from palpo.physics.fem.assembly import block_pattern, neighbours, scalar_blocks, sum_pairs, to_csc
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.element import Elements
from palpo.physics.fem.element_rotations import extract_rotation
from palpo.physics.fem.elements import SolidMesh, element_of, make_elements
from palpo.physics.fem.elimination import Symbolic, analyse
from palpo.physics.fem.facet_yield import facet_yield
from palpo.physics.fem.material import Material
from palpo.physics.fem.multigrid.hierarchy import Hierarchy
from palpo.physics.fem.multigrid.solver import MultigridFactor
from palpo.physics.fem.relaxation import PronySeries
from palpo.physics.fem.strain import largest_gradient, volume_ratios
from palpo.physics.fem.trailing import TrailingFactor
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix

Solved = CholeskyFactor | MultigridFactor
"""What solves with A_h."""


class SoftBody(SoftPoints):
    """Elements under gravity, backward Euler with one linearisation a step.

    fixed: indices of clamped nodes. gravity [m/s2], shape (3,). elements: their name, where not the usual
    ones of such a mesh (palpo.physics.fem.elements). mass_matrix: "lumped" keeps the response to a short load
    positive everywhere; "consistent" is more accurate in frequency on coarse meshes. solver: "direct" factors
    A_h, "multigrid" is for so many nodes that no factor can be made in a low period. fields: of cavities that
    it may wall, see SoftPoints.
    last: nodes that may come into contact; a factor is then a TrailingFactor, which gives their compliance in
    the order of `last`, the free ones of these nodes, ascending. links (k, 2): nodes that are joined besides
    those of an element, for stiffness that a derived body adds in `linearise`.
    State: x [m], shape (n_nodes, 3), of all nodes; v [m/s], shape (n_dof,), of the free ones in ascending
    order. Raises InputError for an element without volume or that the mesh does not have, a fixed or last
    index out of range, no free node, and `last` nodes for multigrid, since their compliance needs a factor.
    """

    def __init__(
        self,
        name: str,
        mesh: SolidMesh,
        material: Material,
        fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        mass_matrix: Literal["lumped", "consistent"] = "lumped",
        last: ArrayLike = (),
        links: NDArray[np.int64] | None = None,
        elements: str | None = None,
        solver: Literal["direct", "multigrid"] = "direct",
        fields: int = 0,
    ) -> None:
        self.name, self.mesh, self.material = name, mesh, material
        n = len(mesh.nodes)
        super().__init__(n, fields)
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

        self._elements = make_elements(mesh, material, elements)
        self.memory = PronySeries(self._elements, material.prony) if material.prony else None
        self._ahead: float | None = None
        self._missed = element_of(mesh, elements).missed
        self._pattern = block_pattern(n, self._elements.cells, self.fixed, links, self._elements.groups)
        self.free = np.flatnonzero(self._pattern.slots >= 0).astype(np.int32)
        self.n_dof = 3 * self.free.size
        first = 3 * self._pattern.slots[:, None].astype(np.int32)
        self._dofs = np.where(first >= 0, first + np.arange(3, dtype=np.int32), np.int32(-1))

        density = material.density_of(len(mesh.cells))
        corners = density[:, None] * self._elements.shares
        self.node_mass = np.bincount(self._elements.cells.ravel(), corners.ravel(), minlength=n)
        self.mass = float(self.node_mass.sum())
        element_mass = corners[:, :, None] * np.eye(corners.shape[1])
        if mass_matrix == "consistent":
            order = np.argsort(mesh.cells, axis=1)
            products = element_of(mesh, elements).products(mesh.nodes, mesh.cells)
            across = np.take_along_axis(products, order[:, :, None], axis=1)
            element_mass = density[:, None, None] * np.take_along_axis(across, order[:, None, :], axis=2)
        self._mass = sum_pairs(self._pattern, element_mass)
        self.M = to_csc(self._pattern, scalar_blocks(self._mass)).copy()  # the pattern's arrays stay whole
        self.M.eliminate_zeros()
        self.neighbours = neighbours(self._pattern)

        self.last = np.setdiff1d(last, self.fixed)
        self._factors: dict[float, Any] = {}
        self._blocks = np.empty((self._pattern.rows.size, 9))
        self._quats = np.tile([1.0, 0.0, 0.0, 0.0], (len(self._elements.cells), 1))
        self._linearised_at = self._quats.copy()
        self._factored_at: dict[float, NDArray[np.float64]] = {}
        self._K: sp.csc_matrix | None = None
        self._turning = np.zeros((0, 3))
        self.x = np.array(mesh.nodes, dtype=np.float64)
        self.v = np.zeros(self.n_dof)
        self.hierarchy: Hierarchy | None = None
        """Levels of meshes by which A_h is solved, where it is without a factor."""
        self._stiff_at = np.zeros((0, 3))
        self.linearise()
        if solver == "multigrid":
            if self.last.size:
                raise InputError(f"body {name!r} is solved by multigrid, which has no trailing nodes.")
            rows, self._stiff_at = self.neighbours, self.x.copy()
            self.hierarchy = Hierarchy(mesh.nodes[self.free], rows, self._mass[rows.block])

    @cached_property
    def _symbolic(self) -> Symbolic:
        """The pattern of all factors, found with the first: a body without factors never needs it."""
        return analyse(self.free.size, self._pattern.rows, self._pattern.cols, self._pattern.slots[self.last])

    @property
    def _weight(self) -> NDArray[np.float64]:
        return self.node_mass[:, None] * self.gravity

    @property
    def elements(self) -> Elements:
        """Its elements, as they turn and deform."""
        return self._elements

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

    def facet_yield(self, triangles: NDArray[np.int32]) -> NDArray[np.float64]:
        """What facets (m, 3) of its surface yield by between their nodes [m/Pa], shape (m,)."""
        e = self._elements
        return facet_yield(e.cells, e.shares.sum(axis=1), triangles, self.material, self._missed)

    def linearise(self) -> None:
        """Refresh the element rotations and the warped stiffness at the present positions.

        With multigrid nothing where no node has moved since the last: its levels are made anew with it.
        """
        if self.hierarchy is not None:
            if np.array_equal(self.x, self._stiff_at):
                return
            self._stiff_at, self._blocks = self.x.copy(), np.empty_like(self._blocks)
        self._elements.assemble(self.x, self._quats, self._pattern, self._blocks)
        self._linearised_at[:] = self._quats
        self._K = None

    @property
    def warped_blocks(self) -> NDArray[np.float64]:
        """Lower blocks of K, (n_blocks, 9), as `tangent_blocks` has those of the tangent."""
        return self._blocks if self.memory is None else self._share(0.0) * self._blocks

    def look_ahead(self, span: float) -> None:
        """Forces, energy and stiffness from now on are those that a material which remembers has after `span`
        [s], whatever the step."""
        self._ahead = span

    def remember(self, h: float) -> None:
        """A step h [s] has led here, of which nobody told by `advance`."""
        if self.memory is not None:
            self.memory.remember(self.x, self._quats, h)

    def _span(self, h: float) -> float:
        return h if self._ahead is None else self._ahead

    def _share(self, h: float) -> float:
        """Share of the elastic stiffness that a step h has."""
        return 1.0 if self.memory is None else self.memory.share(self._span(h))

    def tangent(self) -> sp.csc_matrix:
        """Exact -df_int/dx at the present positions [N/m], (n_dof, n_dof): symmetric, maybe indefinite.

        Of a material that remembers without the turning of what it remembers.
        """
        return to_csc(self._pattern, self.tangent_blocks())

    def rest_stiffness(self) -> sp.csc_matrix:
        """Stiffness of the shape at rest [N/m], (n_dof, n_dof); the body stays as it is, to the last bit."""
        quats, blocks = (
            np.tile([1.0, 0.0, 0.0, 0.0], (len(self._quats), 1)),
            np.empty((len(self._pattern.rows), 9)),
        )
        self._elements.assemble(self.mesh.nodes, quats, self._pattern, blocks)
        return to_csc(self._pattern, blocks)

    def tangent_blocks(self) -> NDArray[np.float64]:
        """Lower blocks of `tangent`, (n_blocks, 9), for the products of `neighbours`: K, which is refreshed,
        plus its geometric term."""
        self.linearise()
        blocks = self._blocks.copy()
        self._elements.add_geometric(self.x, self._quats, self._pattern, blocks)
        if self.memory is not None:
            blocks *= self._share(0.0)
        return blocks

    def largest_gradient(self, v: NDArray[np.float64]) -> float:
        """Largest of all elements' Frobenius norms of dF/dt [1/s] at velocities v (free nodes, 3) [m/s]."""
        moves = np.zeros_like(self.x)
        moves[self.free] = v
        return float(largest_gradient(moves, self._elements.cells, self._elements.gradients))

    def volume_ratios(self) -> NDArray[np.float64]:
        """Volumes of elements over those at rest, (m,); not above 0 where one is turned inside out."""
        return np.asarray(volume_ratios(self.x, self._elements.cells, self._elements.gradients))

    def undamped_force(self, h: float = 0.0) -> NDArray:
        """f_ext + f_int(x) [N], shape (n_dof,), with rotations found anew; h [s]: of the step that ends here,
        if the material remembers."""
        force = self._weight
        self._add_internal(force, h)
        return force[self.free].ravel()

    def _add_internal(self, force: NDArray, h: float) -> None:
        if self.memory is None:
            self._elements.add_forces(self.x, self._quats, force)
            return
        elastic = np.zeros_like(force)
        self._elements.add_forces(self.x, self._quats, elastic)
        force += self._share(h) * elastic
        self.memory.add_forces(self.x, self._quats, self._span(h), force)

    def fading(self, span: float) -> NDArray:
        """Rate [N/s] at which the forces of this shape fade as the material forgets, shape (n_dof,): the mean
        over a `span` [s] from now on."""
        rate = np.zeros_like(self.x)
        if self.memory is not None:
            self._elements.add_forces(self.x, self._quats, rate)
            rate *= self.memory.share(span) - self.memory.share(0.0)
            self.memory.add_forces(self.x, self._quats, span, rate)
            now = np.zeros_like(rate)
            self.memory.add_forces(self.x, self._quats, 0.0, now)
            rate = (rate - now) / span
        return rate[self.free].ravel()

    def force(self) -> NDArray:
        """f_ext + f_int(x) - C v [N], shape (n_dof,), rotations found anew, C of the last `linearise`."""
        m = self.material
        stiff = m.beta * self._share(0.0)
        return self.undamped_force() - m.alpha * (self.M @ self.v) - stiff * (self.K @ self.v)

    def factor(self, h: float) -> Any:
        """A `Solved` of A_h = (1 + alpha h) M + (beta h + h^2) K from the last `linearise`.

        Those of two step sizes may be made in two threads at once. Raises FloatingPointError as they do.
        """
        factor = self._factors.get(h)
        if factor is None:
            factor = self._factors.setdefault(h, self._make_factor())
        alpha, beta = self.material.alpha, self.material.beta
        factor.refactor(self._blocks, self._mass, h * (beta + h) * self._share(h), 1.0 + h * alpha)
        self._factored_at[h] = self._linearised_at.copy()
        if self.floating and self.hierarchy is None:
            self._turning = self.node_mass[:, None] * (self.x - self.node_mass @ self.x / self.mass)
        return factor

    def factor_of(self, h: float) -> Any:
        """The factor that `factor(h)` made last."""
        return self._factors[h]

    def reused_factor(self, h: float, turn: float) -> Any:
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

    def _make_factor(self) -> Any:
        if self.hierarchy is not None:
            return MultigridFactor(self.hierarchy)
        if self.last.size:
            return TrailingFactor(self._symbolic, self.last.size)
        return CholeskyFactor(self._symbolic)

    def free_velocity(self, factor: Factor, h: float, f: NDArray | None = None) -> NDArray:
        """v + dv with A_h dv = h (force - h K v + f), shape (n_dof,).

        Since A_h v = M v + h (C + h K) v, this is A_h^-1 (M v + h (f_ext + f_int + f)): K need not be
        applied.
        """
        load = self.undamped_force(h) if f is None else self.undamped_force(h) + f
        return factor.velocity(h * load, self.M @ self.v, self.v)

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f, shape (n_dof,)."""
        return factor.velocity(h * f, np.zeros(self.n_dof), np.zeros(self.n_dof))

    def substeps(self, factor: Solved, h: float, forces: NDArray, slot_nodes: NDArray) -> None:
        """n_steps of size h with one factor and the internal force found anew in each.

        forces (n_steps, n_slots, 3) [N] act at slot_nodes (n_slots,), which may repeat; on a fixed node they
        do nothing. The stiffness inside the factor stays that of `linearise`, which the implicit step
        tolerates; a body that floats takes it along as it turns.
        """
        next_velocity = factor.stepping(self.v, len(forces))
        turns = len(self._turning) > 0
        quaternion, matrix = np.array([1.0, 0.0, 0.0, 0.0]), np.eye(3)
        for step in forces:
            load = self._weight
            np.add.at(load, slot_nodes, step)
            self._add_internal(load, h)
            push, momentum = h * load[self.free].ravel(), self.M @ self.v
            if turns:
                _whole_rotation(self.x, self._turning, quaternion, matrix)
                push += momentum
                momentum[:] = 0.0
                _turn(matrix, push, True)
            v = next_velocity(push, momentum)
            if turns:
                _turn(matrix, v, False)
            self.advance(v, h)

    def advance(self, v_new: NDArray, h: float) -> None:
        """v = v_new, x += h v on the free nodes."""
        self.v = v_new
        self.x[self.free] += h * v_new.reshape(-1, 3)
        self.remember(h)

    def weight(self) -> NDArray:
        """Of all free nodes [N], shape (3,)."""
        return self._weight[self.free].sum(axis=0)

    def energy(self) -> float:
        """Kinetic + elastic + gravity potential about the origin [J].

        Of a material that remembers, the elastic part is the potential of its forces as `look_ahead` says,
        while its memory is as it is.
        """
        elastic = self._share(0.0) * self._elements.energy(self.x, self._quats)
        if self.memory is not None:
            elastic += self.memory.energy(self.x, self._quats, self._span(0.0))
        return float(0.5 * self.v @ (self.M @ self.v) + elastic - np.sum(self._weight * self.x))

    def momentum(self) -> tuple[NDArray, NDArray]:
        """Linear [kg m/s] and angular momentum about the origin [kg m2/s] of the free nodes."""
        p = (self.M @ self.v).reshape(-1, 3)
        return p.sum(axis=0), np.cross(self.x[self.free], p).sum(axis=0)

    def invalid(self) -> bool:
        """True if a position or velocity is not finite."""
        return not (np.isfinite(self.x).all() and np.isfinite(self.v).all())


@kernel
def _whole_rotation(x, weighted, quaternion, matrix):
    """matrix = rotation of a whole body since its centred positions times masses were `weighted` (n, 3).

    The centre needs no attention: `weighted` sums to zero. quaternion (4,): start and result.
    """
    f = np.zeros(9)
    for n in range(weighted.shape[0]):
        for i in range(3):
            for j in range(3):
                f[3 * i + j] += x[n, i] * weighted[n, j]
    q = extract_rotation(
        (f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]),
        (quaternion[0], quaternion[1], quaternion[2], quaternion[3]),
    )
    for i in range(4):
        quaternion[i] = q[i]
    quat_to_matrix(quaternion, matrix)


@kernel
def _turn(matrix, vectors, transposed):
    """Each 3-vector of `vectors` (3 n,) by the rotation matrix, or by its transpose, in place."""
    for s in range(vectors.size // 3):
        a, b, c = vectors[3 * s], vectors[3 * s + 1], vectors[3 * s + 2]
        for i in range(3):
            if transposed:
                vectors[3 * s + i] = matrix[0, i] * a + matrix[1, i] * b + matrix[2, i] * c
            else:
                vectors[3 * s + i] = matrix[i, 0] * a + matrix[i, 1] * b + matrix[i, 2] * c
