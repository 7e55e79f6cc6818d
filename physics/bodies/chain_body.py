"""Beams and rigid bodies at low rate, with the methods of physics/bodies/body.py over the chain kernels.

Dense factor of the backward Euler system of a small body (EQUATIONS.md, section 1).

A_h dv = h (f_ext + f_int(x) - C v - h K v + J^T lambda),   A_h = M + h C + h^2 K.
Large bodies have a sparse factor of the same methods in physics/fem/cholesky.py.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from palpo.physics.bodies.body import Factor
from palpo.physics.bodies.chain import (
    add_elastic,
    add_mass,
    chain_advance,
    chain_assemble,
    chain_energy,
    chain_momentum,
    chain_substeps,
)
from palpo.physics.bodies.chain_models import (
    ChainModel,
    ChainState,
    MassMatrix,
    beam_model,
    chain_work,
    rest_state,
    rigid_model,
)
from palpo.physics.bodies.soft_points import rigid_motions, rows_at, sum_at, unit_columns
from palpo.physics.fem.beam import Section
from palpo.physics.fem.material import Material
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.math3 import quat_to_matrix


class DenseFactor:
    """Cholesky factor of a dense symmetric positive definite A_h, shape (n, n).

    Raises FloatingPointError if A_h is not positive definite, as after a non-finite state.
    """

    def __init__(self, system: NDArray) -> None:
        try:
            self._factor = cho_factor(system, lower=True)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise FloatingPointError(
                "the system matrix of a beam or rigid body is not positive definite."
            ) from error

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n,)."""
        return cho_solve(self._factor, b, check_finite=False)

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray:
        """A_h^-1 (push + momentum), each (n,)."""
        return self.solve(push + momentum)

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n, k); written to out, which may be b, and returned."""
        out = np.empty_like(b) if out is None else out
        out[:] = cho_solve(self._factor, b, check_finite=False)
        return out

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y = L^-1 b for b (n, k), so that b^T A_h^-1 b = Y^T Y."""
        out = np.empty_like(b) if out is None else out
        out[:] = solve_triangular(self._factor[0], b, lower=True, check_finite=False)
        return out


def _dense(D: NDArray, U: NDArray) -> NDArray:
    n = len(D)
    out = np.zeros((n, 6, n, 6))
    for i in range(n):
        out[i, :, i] = D[i]
    for i in range(n - 1):
        out[i, :, i + 1] = U[i]
        out[i + 1, :, i] = U[i].T
    return out.reshape(6 * n, 6 * n)


class ChainBody:
    """A chain of frames as a low-rate body; freedoms (v, w) of the free frames, 6 each, world axes.

    M, K, C = alpha M + beta K, shape (n_dof, n_dof), are those of the last `linearise`; K is the warped
    material stiffness. The factor adds to A_h the string stiffness that elements in tension need at its h.
    """

    rigid = False
    """Never changes its shape."""
    rides = False
    """Moves as a whole beside its modes: a beam's carry all of its motion."""

    def __init__(self, name: str, model: ChainModel, state: ChainState) -> None:
        self.name, self.model, self.state = name, model, state
        n = model.mass.size
        self.free = np.flatnonzero(~model.fixed).astype(np.int32)
        if self.free.size == 0:
            raise InputError(f"body {name!r} fixes all of its {n} frames but needs a free one.")
        self.n_dof = 6 * self.free.size
        self.mass = float(model.weight.sum())
        self.floating = self.free.size == n
        self.gravity = model.gravity
        self._dofs = (6 * self.free[:, None] + np.arange(6)).ravel()
        self._work = chain_work(n)
        self._v_new = np.zeros((n, 6))
        self.linearise()

    @property
    def damping(self) -> tuple[float, float]:
        """Rayleigh's alpha [1/s] and beta [s]."""
        return self.model.alpha, self.model.beta

    @property
    def x(self) -> NDArray[np.float64]:
        """Positions of the frames [m], shape (n, 3)."""
        return self.state.x

    @property
    def q(self) -> NDArray[np.float64]:
        """Orientations of the frames, body to world, shape (n, 4)."""
        return self.state.q

    @property
    def v(self) -> NDArray[np.float64]:
        """Velocities of the free freedoms, shape (n_dof,)."""
        return np.hstack([self.state.v, self.state.w]).ravel()[self._dofs]

    @v.setter
    def v(self, value: NDArray) -> None:
        both = value.reshape(-1, 6)
        self.state.v[self.free], self.state.w[self.free] = both[:, :3], both[:, 3:]

    def dofs_of(self, frames: ArrayLike) -> NDArray[np.int32]:
        """Freedoms of frames (k,), shape (k, 6), -1 where a frame is fixed."""
        slot = np.where(self.model.fixed, -1, np.cumsum(~self.model.fixed) - 1)[np.asarray(frames)]
        return np.where(slot[:, None] >= 0, 6 * slot[:, None] + np.arange(6), -1).astype(np.int32)

    def _elastic(self, weight: float, h: float) -> tuple[NDArray, NDArray]:
        """weight K + the string term of a step h, and f_int, over the free freedoms."""
        n = self.model.mass.size
        D, U, f = np.zeros((n, 6, 6)), np.zeros((max(n - 1, 0), 6, 6)), np.zeros((n, 6))
        add_elastic(self.model, self.state, weight, h, D, U, f)
        return _dense(D, U)[np.ix_(self._dofs, self._dofs)], f.ravel()[self._dofs]

    def linearise(self) -> None:
        """Refresh M, C and K at the present state."""
        n = self.model.mass.size
        D, U = np.zeros((n, 6, 6)), np.zeros((max(n - 1, 0), 6, 6))
        add_mass(self.model, self.state, 1.0, D, U)
        self.M = _dense(D, U)[np.ix_(self._dofs, self._dofs)]
        self.K, _ = self._elastic(1.0, 0.0)
        self.C = self.model.alpha * self.M + self.model.beta * self.K

    def undamped_force(self) -> NDArray:
        """f_ext + f_int(x), shape (n_dof,), without the gyroscopic torque, implicit in each step."""
        _, f = self._elastic(0.0, 0.0)
        f.reshape(-1, 6)[:, :3] += self.model.weight[self.free, None] * self.model.gravity
        return f

    def tangent(self) -> NDArray:
        """Exact -df_int/dx at the present state, shape (n_dof, n_dof), symmetrised; maybe indefinite.

        By central differences of the internal force, a step of 1e-6 in length and angle: the error, of
        rounding and truncation alike, is some 1e-9 of the stiffness.
        """
        step, n = 1e-6, self.n_dof
        state, columns = self.state, np.empty((n, n))
        for c in range(n):
            sides = []
            for sign in (1.0, -1.0):
                moved = ChainState(*(a.copy() for a in state))
                velocity = np.zeros((len(state.x), 6))
                velocity.ravel()[self._dofs[c]] = sign
                chain_advance(self.model, moved, velocity, step)
                self.state = moved
                sides.append(self._elastic(0.0, 0.0)[1])
            columns[:, c] = (sides[1] - sides[0]) / (2.0 * step)
        self.state = state
        return 0.5 * (columns + columns.T)

    def force(self) -> NDArray:
        """f_ext + f_int(x) - C v, shape (n_dof,), with C of the last `linearise`."""
        return self.undamped_force() - self.C @ self.v

    def factor(self, h: float) -> DenseFactor:
        """Factor of A_h of the last `linearise`, with the string term of the present state."""
        string, _ = self._elastic(0.0, h)
        return DenseFactor(self.M + h * self.C + h * h * self.K + string)

    def free_velocity(self, factor: Factor, h: float, f: NDArray | None = None) -> NDArray:
        """v + dv with A_h dv = h (force - h K v + f) + the gyroscopic impulse, shape (n_dof,)."""
        chain_assemble(self.model, self.state, h, self._work)
        rhs = self._work.rhs.ravel()[self._dofs]
        return self.v + factor.solve(rhs if f is None else rhs + h * f)

    def correction_velocity(self, factor: Factor, h: float, f: NDArray) -> NDArray:
        """dv = h A_h^-1 f, shape (n_dof,)."""
        return factor.solve(h * f)

    def advance(self, v_new: NDArray, h: float) -> None:
        """v, w = v_new; x += h v; q <- exp(h w) q."""
        self._v_new.ravel()[self._dofs] = v_new
        chain_advance(self.model, self.state, self._v_new, h)

    def substeps(self, factor: Factor | None, h: float, forces: NDArray, slots: NDArray) -> None:
        """n_steps of size h under wrenches (n_steps, n_slots, 6) [N, N m] at frames slots (n_slots,).

        Forces of 3 columns carry no moment. Each step assembles and factors anew, which is O(n) and cheaper
        than one dense solve; `factor` is accepted for the common signature only.
        Raises FloatingPointError when the state is not finite.
        """
        if forces.shape[2] == 3:
            forces = np.concatenate([forces, np.zeros_like(forces)], axis=2)
        slots = np.asarray(slots, dtype=np.int32)
        if chain_substeps(self.model, self.state, h, forces, slots, self._work, self._v_new):
            raise FloatingPointError(f"body {self.name!r} lost its positive pivot.")

    def energy(self) -> float:
        """Kinetic + elastic + gravity potential about the origin [J]."""
        return float(chain_energy(self.model, self.state))

    def momentum(self) -> tuple[NDArray, NDArray]:
        """Linear [kg m/s] and angular momentum about the origin [kg m2/s]."""
        linear, angular = np.zeros(3), np.zeros(3)
        chain_momentum(self.model, self.state, linear, angular)
        return linear, angular

    def invalid(self) -> bool:
        """True if a position, orientation or velocity is not finite."""
        return not all(np.isfinite(a).all() for a in self.state)


class BeamBody(ChainBody):
    """A beam of Timoshenko elements along a line; fixed: indices of clamped frames."""

    def __init__(
        self,
        name: str,
        mesh: BeamLine,
        material: Material,
        fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        section: Section | None = None,
        mass_matrix: MassMatrix = "averaged",
    ) -> None:
        self.mesh, self.material = mesh, material
        super().__init__(
            name, *beam_model(mesh.nodes, mesh.radius, material, fixed, gravity, section, mass_matrix)
        )

    @property
    def count(self) -> int:
        """A point and a rotation for each frame; points come first."""
        return 2 * len(self.x)

    def positions(self) -> NDArray[np.float64]:
        """World positions [m] of the points, zeros for rotations, (count, 3)."""
        return np.vstack([self.x, np.zeros((len(self.x), 3))])

    def velocities(self) -> NDArray[np.float64]:
        """Velocities [m/s] or [rad/s], (count, 3)."""
        return np.vstack([self.state.v, self.state.w])

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """Orientation of each rotation, (k, 4); the identity for points."""
        return self.q[local % len(self.x)]

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        """1 where a point is a rotation, (k,)."""
        return (local >= len(self.x)).astype(np.int32)

    def _point_dofs(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        dofs = self.dofs_of(local % len(self.x)).reshape(-1, 2, 3)
        return dofs[np.arange(len(local)), self.turns(local)]

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """J^T of unit forces on points, (n_dof, 3 k)."""
        return unit_columns(self.n_dof, self._point_dofs(local))

    def applied(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """J^T of forces (k, 3) [N] on points, (n_dof,)."""
        return sum_at(self.n_dof, self._point_dofs(local), forces)

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        """J fields, (3 k, m), of velocity fields (n_dof, m); columns (m,): of these, in this order."""
        return rows_at(fields, self._point_dofs(local), columns)

    def alone(self, local: NDArray[np.intp], own: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much points yield whose freedoms yield by own (n_dof,) and know of no others, (3 k,)."""
        return self.gather(local, own[:, None])[:, 0]


class RigidBody(ChainBody):
    """A rigid body at its centre of mass; forces are wrenches on that frame.

    position (3,) [m], orientation (4,); vertices (k, 3) [m]: its surface in body axes, for collision.
    """

    rigid = rides = True

    def __init__(
        self,
        name: str,
        mass: float,
        inertia: ArrayLike,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        alpha: float = 0.0,
        vertices: NDArray | None = None,
    ) -> None:
        self.vertices = vertices
        q = np.asarray(orientation, dtype=np.float64)
        state = rest_state(np.asarray(position, dtype=np.float64)[None], (q / np.linalg.norm(q))[None])
        super().__init__(name, rigid_model(mass, inertia, gravity, alpha), state)

    @property
    def points(self) -> NDArray[np.float64]:
        """The surface in body axes [m], (k, 3)."""
        assert self.vertices is not None
        return self.vertices

    @property
    def count(self) -> int:
        """The points of its surface, then the one rotation."""
        return len(self.points) + 1

    def _axes(self) -> NDArray[np.float64]:
        out = np.empty((3, 3))
        quat_to_matrix(self.q[0], out)
        return out

    def positions(self) -> NDArray[np.float64]:
        """World positions [m] of the points, zeros for rotations, (count, 3)."""
        return np.vstack([self.x[0] + self.points @ self._axes().T, np.zeros((1, 3))])

    def velocities(self) -> NDArray[np.float64]:
        """Velocities [m/s] or [rad/s], (count, 3)."""
        v, w = self.state.v[0], self.state.w[0]
        return np.vstack([v + cross_rows(w, self.points @ self._axes().T), w])

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """Orientation of each rotation, (k, 4); the identity for points."""
        return np.where(self.turns(local)[:, None] == 1, self.q[0], np.array([1.0, 0.0, 0.0, 0.0]))

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        """1 where a point is a rotation, (k,)."""
        return (local == len(self.points)).astype(np.int32)

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """J^T of unit forces on points, (n_dof, 3 k)."""
        out = np.zeros((6, len(local), 3))
        arms = np.vstack([self.points @ self._axes().T, np.zeros((1, 3))])[local]
        fields = rigid_motions(arms).reshape(len(local), 3, 6)
        out[:] = np.moveaxis(fields, 2, 0)
        turning = self.turns(local) == 1
        out[:, turning] = 0.0
        out[3:, turning] = np.eye(3)[:, None]
        return np.ascontiguousarray(out.reshape(6, -1))

    def applied(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """J^T of forces (k, 3) [N] on points, (n_dof,)."""
        return self.columns(local) @ forces.reshape(-1)

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        """J fields, (3 k, m), of velocity fields (n_dof, m); columns (m,): of these, in this order."""
        return self.columns(local).T @ (fields if columns is None else fields[:, columns])

    def alone(self, local: NDArray[np.intp], own: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much points yield whose freedoms yield by own (n_dof,) and know of no others, (3 k,)."""
        return self.gather(local, own[:, None])[:, 0]

    def rigid_state(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Centre of mass [m], velocity [m/s], spin [rad/s] and inertia in body axes [kg m2]."""
        state = self.state
        return state.x[0].copy(), state.v[0].copy(), state.w[0].copy(), self.model.inertia[0].copy()
