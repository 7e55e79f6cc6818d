"""A quasi-static body of St Venant-Kirchhoff tetrahedra: large displacements and rotations.

Its equilibrium is found by Newton's method with a line search on the potential. Numbers of equations are
those of 001, N. Talbi's thesis.

St Venant-Kirchhoff tetrahedra in total Lagrangian form: energy, internal force and exact tangent.

Green-Lagrange strain E = (F^T F - I) / 2, second Piola-Kirchhoff stress S = lam tr(E) I + 2 mu E (001,
N. Talbi's thesis, 1.13 to 1.19; Bonet & Wood, Nonlinear Continuum Mechanics for Finite Element Analysis,
chapters 6 and 9). The gradients g_a being constant in an element, with t_a = F g_a:
  force      f_a  = -V F S g_a
  tangent    K_ab =  V [ lam t_a t_b^T + mu t_b t_a^T + mu (g_a . g_b) F F^T ] + V (g_a . S g_b) I
The first term of the tangent (K_e + K_u of 001) is positive semidefinite; the second (K_sigma) is not
under compression. The law itself softens there: below a stretch of 1/sqrt(3) a bar pushes back less and less.
"""

from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.clamped import ClampedBody
from palpo.physics.fem import tet4
from palpo.physics.fem.assembly import block_pattern
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import analyse
from palpo.physics.fem.material import Material
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel


@kernel
def deformation_gradient(u, tet, g, f):
    """f (3, 3) = I + sum_a u_a g_a^T of one element; u (n, 3) [m], g (4, 3) [1/m]."""
    for i in range(3):
        for j in range(3):
            f[i, j] = 1.0 if i == j else 0.0
            for a in range(1, 4):
                f[i, j] += (u[tet[a], i] - u[tet[0], i]) * g[a, j]


@kernel
def stress(f, lam, mu, s):
    """s (3, 3) = S of the deformation gradient f (3, 3) [Pa]; returns the energy density [J/m3]."""
    squares, trace = 0.0, 0.0
    for i in range(3):
        for j in range(3):
            c = f[0, i] * f[0, j] + f[1, i] * f[1, j] + f[2, i] * f[2, j]
            s[i, j] = 0.5 * (c - 1.0) if i == j else 0.5 * c
            squares += s[i, j] * s[i, j]
        trace += s[i, i]
    for i in range(3):
        for j in range(3):
            s[i, j] *= 2.0 * mu
        s[i, i] += lam * trace
    return 0.5 * lam * trace * trace + mu * squares


@kernel
def elastic_energy(u, tets, g, volumes, lam, mu):
    """Strain energy of displacements u (n, 3) [m], in joules."""
    f, s = np.empty((3, 3)), np.empty((3, 3))
    energy = 0.0
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        energy += volumes[e] * stress(f, lam, mu, s)
    return energy


@kernel
def add_internal_forces(u, tets, g, volumes, lam, mu, force):
    """force (n, 3) += f_int [N] of displacements u (n, 3) [m]."""
    f, s = np.empty((3, 3)), np.empty((3, 3))
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        stress(f, lam, mu, s)
        for i in range(3):
            for j in range(3):
                p = 0.0
                for k in range(3):
                    p += f[i, k] * s[k, j]
                for a in range(4):
                    force[tets[e, a], i] -= volumes[e] * p * g[e, a, j]


@kernel
def assemble_tangent(u, tets, g, volumes, lam, mu, convex, pair_block, blocks):
    """blocks (n_blocks, 9) = lower 3x3 blocks of K = -df_int/du [N/m], by physics.fem.assembly's pattern.

    convex: without K_sigma wherever that could be negative, so that the matrix is positive semidefinite.
    """
    blocks[:] = 0.0
    f, s, b = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    t, sg = np.empty((4, 3)), np.empty((4, 3))
    for e in range(tets.shape[0]):
        deformation_gradient(u, tets[e], g[e], f)
        stress(f, lam, mu, s)
        stressed = not convex or _is_tension(s)
        for i in range(3):
            for j in range(3):
                b[i, j] = f[i, 0] * f[j, 0] + f[i, 1] * f[j, 1] + f[i, 2] * f[j, 2]
            for a in range(4):
                t[a, i] = f[i, 0] * g[e, a, 0] + f[i, 1] * g[e, a, 1] + f[i, 2] * g[e, a, 2]
                sg[a, i] = s[i, 0] * g[e, a, 0] + s[i, 1] * g[e, a, 1] + s[i, 2] * g[e, a, 2]
        v, pair = volumes[e], 0
        for p in range(4):
            for q in range(p + 1):
                k = pair_block[e, pair]
                pair += 1
                if k < 0:
                    continue
                dot, initial = 0.0, 0.0
                for i in range(3):
                    dot += g[e, p, i] * g[e, q, i]
                    initial += g[e, p, i] * sg[q, i]
                for i in range(3):
                    for j in range(3):
                        material = lam * t[p, i] * t[q, j] + mu * (t[q, i] * t[p, j] + dot * b[i, j])
                        blocks[k, 3 * i + j] += v * material
                    if stressed:
                        blocks[k, 4 * i] += v * initial


@kernel
def _is_tension(s):
    """Whether the stress s (3, 3) is positive semidefinite, by its leading minors."""
    minor = s[0, 0] * s[1, 1] - s[0, 1] * s[0, 1]
    determinant = (
        s[2, 2] * minor
        - s[0, 0] * s[1, 2] * s[1, 2]
        - s[1, 1] * s[0, 2] * s[0, 2]
        + 2.0 * s[0, 1] * s[1, 2] * s[0, 2]
    )
    return s[0, 0] > 0.0 and minor > 0.0 and determinant > 0.0


ARMIJO = 1e-4
"""Share of the decrease that the tangent predicts which a step must achieve [-]."""
SHORTEST = 1e-8
"""Step below which no descent is left but rounding."""
ROUNDING = 1e-13
"""Relative error of an energy difference."""


class LargeStrainBody(ClampedBody):
    """Minimises U(u) - F . u over the free nodes (1.4.2.3); an IncrementalBody and a DisplacementSolver.

    tolerance: mean |du| of the last Newton step over the body's size at which `equilibrate` has converged.
    u is kept from call to call and is where the next one starts. converged, iterations: of the last
    `equilibrate`. length: share of the last Newton step that was gone, 0 where no descent was found.
    Raises InputError as `ClampedBody`, for a body without a free node, for hexahedra, and for an element
    without volume.
    """

    mesh: TetMesh

    def __init__(
        self,
        name: str,
        mesh: TetMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        tolerance: float = 1e-9,
        max_iterations: int = 100,
    ) -> None:
        if not isinstance(mesh, TetMesh):
            raise InputError(f"body {name!r}: large strains are for tetrahedra; cut its hexahedra into them.")
        super().__init__(name, mesh, material, clamped, gravity)
        if self.rigid:
            raise InputError(f"body {name!r} clamps all of its nodes but needs a free one to deform.")
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.converged, self.iterations, self.length = True, 0, 1.0
        self.size = float(np.ptp(mesh.nodes, axis=0).max())
        self._lame = material.lame()
        # ascending nodes in each element make every local pair a lower block
        ascending = np.argsort(mesh.tets, axis=1)
        self._volumes, gradients = tet4.gradients(mesh.nodes, mesh.tets)
        self._tets = np.take_along_axis(mesh.tets, ascending, axis=1).astype(np.int32)
        self._gradients = np.ascontiguousarray(np.take_along_axis(gradients, ascending[:, :, None], axis=1))
        self.pattern = block_pattern(len(mesh.nodes), self._tets, self.clamped)
        self._blocks = np.empty((self.pattern.rows.size, 9))
        self._no_mass = np.zeros(self.pattern.rows.size)
        self._factor = CholeskyFactor(analyse(self.free.size, self.pattern.rows, self.pattern.cols))
        self._free_step = np.zeros_like(self.u)

    def energy(self, u: NDArray) -> float:
        """Elastic energy [J] of displacements u (n, 3) [m], body axes."""
        return elastic_energy(u, self._tets, self._gradients, self._volumes, *self._lame)

    def internal_force(self, u: NDArray) -> NDArray:
        """-dU/du [N], shape (n, 3)."""
        force = np.zeros_like(u)
        add_internal_forces(u, self._tets, self._gradients, self._volumes, *self._lame, force)
        return force

    def tangent_blocks(self, u: NDArray, convex: bool) -> NDArray:
        """Blocks (b, 9) of d2U/du2 at `pattern`, or of a positive semidefinite neighbour of it.

        They are lent until the next call.
        """
        assemble_tangent(
            u, self._tets, self._gradients, self._volumes, *self._lame, convex, self.pattern.pair_block,
            self._blocks,
        )  # fmt: skip
        return self._blocks

    def linearise(self) -> None:
        """Factor K_T at u; where that is not positive definite, a neighbour that is, so that steps descend.

        The neighbour leaves out what compression takes from K_T, or is the stiffness at rest.
        """
        for u, convex in ((self.u, False), (self.u, True), (np.zeros_like(self.u), True)):
            with suppress(FloatingPointError):
                self._factor.refactor(self.tangent_blocks(u, convex), self._no_mass, 1.0, 0.0)
                break
        self._free_step = self._solve(self.internal_force(self.u) + self.weight())

    def free_displacement(self, nodes: ArrayLike) -> NDArray:
        """u + K_T^-1 (F_int + F_ext) at nodes (k,) [m], shape (k, 3), world axes (2.62)."""
        nodes = np.asarray(nodes)
        return self.to_world(self.u[nodes] + self._free_step[nodes])

    def compliance(self, nodes: ArrayLike) -> NDArray:
        """K_T^-1 between nodes (k,) [m/N], shape (3 k, 3 k), world axes, zero where clamped."""
        nodes = np.asarray(nodes, dtype=np.intp)
        load = np.zeros((self.u.size // 3, 3, nodes.size, 3))
        load[nodes, :, np.arange(nodes.size)] = self.rotation.T
        free = load[self.free].reshape(self._factor.n, -1)
        half = self._factor.half_solve_many(np.ascontiguousarray(free))
        return half.T @ half

    def advance(self, nodes: ArrayLike, forces: ArrayLike) -> float:
        """Step of the last `linearise` under forces (k, 3) [N], shortened until the potential falls.

        Returns the sum of |dX_j| of the whole step [m] (2.59).
        """
        load = self.load(nodes, forces)
        step = self._free_step + self._solve(load - self.weight())
        self.length = self._descend(step, load)
        if self.length > 0.0:
            self.u += self.length * step
        return float(np.abs(step).sum())

    def equilibrate(self, nodes: ArrayLike, forces: ArrayLike) -> None:
        """Bring u to equilibrium under forces (k, 3) [N], world axes, at nodes (k,) and the weight."""
        enough = self.tolerance * self.size * self._factor.n
        for iteration in range(1, self.max_iterations + 1):
            self.iterations = iteration
            self.linearise()
            self.converged = self.advance(nodes, forces) <= enough
            if self.converged or self.length == 0.0:
                return

    def displacements(self, nodes: ArrayLike, forces: ArrayLike, at: ArrayLike) -> NDArray:
        """See DisplacementSolver; the whole body is solved whatever is asked for."""
        self.equilibrate(nodes, forces)
        return self.to_world(self.u[np.asarray(at, dtype=np.intp)])

    def _solve(self, load: NDArray) -> NDArray:
        step = np.zeros_like(self.u)
        step[self.free] = self._factor.solve(load[self.free].ravel()).reshape(-1, 3)
        return step

    def _descend(self, step: NDArray, load: NDArray) -> float:
        """Length in (0, 1] at which the potential falls enough along the step, or 0."""
        work = float(np.vdot(load, self.u))
        energy = self.energy(self.u)
        slope = float(np.vdot(self.internal_force(self.u) + load, step))
        slack = ROUNDING * (abs(energy) + abs(work))
        length = 1.0
        while length > SHORTEST:
            trial = self.u + length * step
            change = (self.energy(trial) - energy) - length * float(np.vdot(load, step))
            if change <= slack - ARMIJO * length * slope:
                return length
            length *= 0.5
        return 0.0
