"""A soft body of corotational linear tetrahedra."""

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.corotational_body import CorotationalBody
from palpo.physics.fem import tet4
from palpo.physics.fem.assembly import to_csc
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.corotational import add_geometric_stiffness, add_internal_forces
from palpo.physics.fem.element_rotations import extract_rotation
from palpo.physics.fem.material import Material
from palpo.physics.fem.substitution import solve_one
from palpo.physics.fem.turning_elements import Tetrahedra
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix


class TetBody(CorotationalBody):
    """A CorotationalBody of tetrahedra, with its exact tangent and substeps in compiled code.

    mass_matrix: "lumped" keeps the response to a short load positive everywhere; "consistent" is more
    accurate in frequency on coarse meshes.
    """

    mesh: TetMesh

    def __init__(
        self,
        name: str,
        mesh: TetMesh,
        material: Material,
        fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        mass_matrix: Literal["lumped", "consistent"] = "lumped",
        last: ArrayLike = (),
        links: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(name, mesh, material, fixed, gravity, last, links)
        if mass_matrix == "consistent":
            self._set_mass(tet4.consistent_mass(self._tets.volumes, material.density))

    @property
    def _tets(self) -> Tetrahedra:
        assert isinstance(self._elements, Tetrahedra)
        return self._elements

    def tangent(self) -> sp.csc_matrix:
        """Exact -df_int/dx at the present positions [N/m], (n_dof, n_dof): symmetric, maybe indefinite."""
        return to_csc(self._pattern, self.tangent_blocks())

    def tangent_blocks(self) -> NDArray[np.float64]:
        """Lower blocks of `tangent`, (n_blocks, 9), for the products of `neighbours`: K, which is refreshed,
        plus its geometric term."""
        self.linearise()
        blocks, t = self._blocks.copy(), self._tets
        add_geometric_stiffness(
            self.x, t.cells, t.gradients, t.volumes, *t.lame, self._quats, self._pattern.pair_block, blocks
        )
        return blocks

    def substeps(self, factor: Factor, h: float, forces: NDArray, slot_nodes: NDArray) -> None:
        """n_steps of size h with one factor and the internal force found anew in each.

        forces (n_steps, n_slots, 3) [N] act at slot_nodes (n_slots,), which may repeat; on a fixed node they
        do nothing. The stiffness inside the factor stays that of `linearise`, which the implicit step
        tolerates.
        """
        assert isinstance(factor, CholeskyFactor)
        self.v = np.array(self.v)
        t = self._tets
        model = _Elements(
            t.cells, t.gradients, t.volumes, *t.lame, self._weight, self.free,
            self._pattern.rows, self._pattern.cols, self._mass, self._turning,
        )  # fmt: skip
        _substeps(
            model, self._symbolic, factor.panels, factor.height, h, forces, slot_nodes, self._quats, self.x,
            self.v,
        )  # fmt: skip

    def largest_gradient(self, v: NDArray[np.float64]) -> float:
        """Largest of all elements' Frobenius norms of dF/dt [1/s] at velocities v (free nodes, 3) [m/s]."""
        moves = np.zeros_like(self.x)
        moves[self.free] = v
        rates = moves[self._tets.cells].transpose(0, 2, 1) @ self._tets.gradients
        return float(np.sqrt((rates * rates).sum(axis=(1, 2)).max()))


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


class _Elements(NamedTuple):
    """What does not change of a body in its steps."""

    tets: NDArray
    gradients: NDArray
    volumes: NDArray
    lam: float
    mu: float
    weight: NDArray  # (nodes, 3) [N]
    free: NDArray
    rows: NDArray  # of the mass matrix, pairs of free nodes
    cols: NDArray
    mass: NDArray
    turning: NDArray  # (nodes, 3), or nothing: see `_whole_rotation`


@kernel
def _substeps(body, symbolic, panels, height, h, forces, slot_nodes, quats, x, v):
    free, rows, cols, mass = body.free, body.rows, body.cols, body.mass
    load = np.empty_like(x)
    b, scratch, tall = np.empty_like(v), np.empty_like(v), np.empty(height)
    quaternion, matrix = np.array([1.0, 0.0, 0.0, 0.0]), np.eye(3)
    for step in range(forces.shape[0]):
        load[:] = body.weight
        for k in range(slot_nodes.size):
            for i in range(3):
                load[slot_nodes[k], i] += forces[step, k, i]
        add_internal_forces(x, body.tets, body.gradients, body.volumes, body.lam, body.mu, quats, load)
        for s in range(free.size):
            for i in range(3):
                b[3 * s + i] = h * load[free[s], i]
        for k in range(rows.size):
            # a lumped mass leaves only diagonal pairs
            if mass[k] != 0.0:
                r, c = 3 * rows[k], 3 * cols[k]
                for i in range(3):
                    b[r + i] += mass[k] * v[c + i]
                    if r != c:
                        b[c + i] += mass[k] * v[r + i]
        if body.turning.shape[0] > 0:
            _whole_rotation(x, body.turning, quaternion, matrix)
            _turn(matrix, b, True)
        solve_one(symbolic, panels, b, v, scratch, tall)
        if body.turning.shape[0] > 0:
            _turn(matrix, v, False)
        for s in range(free.size):
            for i in range(3):
                x[free[s], i] += h * v[3 * s + i]
