"""The reduced models of a soft body of tetrahedra, and the full body that follows them.

Between two frames little of such a body changes: the factors of A_h and the columns A_h^-1 J^T of points
that stay serve for many frames, in the axes that the body had when they were made, and only the columns of
new points are solved. The models stay exact in what matters, mass, tangent and forces of the present state on
whatever basis there is; the basis itself is renewed when its columns no longer solve the present system, on
other threads between one low step and the next.

The reduced state that the servo integrated is the full body's but for what the basis misses, whose cause, the
remaining force, is in the next basis: so the full body is set to it instead of being integrated again.
"""

from concurrent.futures import Executor, Future
from copy import copy

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.bodies.soft_points import rigid_motions, take
from palpo.physics.fem.assembly import multiply, turn_blocks
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.reduction.body_model import BodyModel, no_model
from palpo.physics.reduction.energy_law import keep_energy
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.reduction.past import Past
from palpo.physics.reduction.point_freedoms import (
    LEAST_POINTS,
    PointShare,
    RigidPart,
    among,
    append_freedoms,
    set_body,
    stiffness_of,
)
from palpo.physics.reduction.rational_krylov import (
    RecycledBasis,
    ReducedModes,
    best_rotation,
    semidefinite,
    slow_modes,
    symmetric_product,
    turned,
    worst_residual,
)
from palpo.physics.reduction.reduced_frame import (
    Grams,
    Page,
    write_fields,
    write_modes,
    write_motion,
    write_points,
)
from palpo.physics.reduction.tangent_ahead import AHEAD_OF_MEMORY, tangent_ahead

RESIDUAL = 0.15
"""The basis is renewed when the residual of a column, A_h b - J^T in the norm of diag(A_h)^-1 by that of J^T,
exceeds this. Alone such a column would give a compliance wrong by its square; the others make up for most of
it. On a quick slide of `wire` 0.4 would do as well, but after a landing at 200 Hz the force errs by 1.3% of
the peak with this, and by 2.1 and 2.5% with 0.2 and 0.4."""

TAIL = 3
"""Columns that every model has anew: the velocity, and the free accelerations at two steps. A field of a
cavity adds two, what yields to its pressure at these steps."""

MOST = 2
"""Times the columns asked for that a model may have where so many points bear: with columns for 32 of 50 that
bear, the force on a cube that is pressed to 40% of its height errs by 4.6%, with all by 0.2%."""

WIDER = 24
"""Columns by which their room grows."""

TESTED = 4
"""One column in so many is tested in a frame, each in its turn."""


class SoftReduction:
    """Factors, columns and model of one body; see `make_reduction`."""

    def __init__(
        self, body: SoftBody, shifts: list[float], spanned: list[int], columns: int,
        slow: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        self.body, self.shifts, self.spanned = body, shifts, spanned
        body.look_ahead(AHEAD_OF_MEMORY * shifts[1])
        self.asked = self.width = 3 * (columns // (3 * len(spanned)))
        """Columns at a step that are asked for, and that the next model may have."""
        self.mass: NDArray[np.float64] = np.repeat(body.mass_free, 3)
        self.rest = self._centred()
        self.slow = slow_modes(body, shifts[1]) if slow is None else slow
        self.free = body.free
        self.fields = np.arange(body.nodes, body.first_inner)
        """Points of the body that are fields."""
        self.tail = TAIL + 2 * len(self.fields)
        self.columns = np.zeros((body.n_dof, self.width))
        """A_h^-1 J^T at the first spanned step, as solved."""
        self.known = np.zeros(0, np.int64)
        """Freedom that each column answers for."""
        self.origin = self.rest
        """Centred positions at which the factors were made: the body axes are those since then."""
        self.factors: list[CholeskyFactor] = []
        self.residual = np.inf
        """Worst residual of the columns that were tested with the last model."""
        self.kept = 1.0
        """Share of the model's last state that the body could keep."""
        self._turn = self._turn_of_room = 0
        self._wanted = np.zeros(0, np.int64)
        """Freedoms that columns were asked for, the likeliest first."""
        self.points = PointShare(body.count)
        self._renewal: dict[float, Future[NDArray[np.float64]]] = {}
        """By step size: two that are equal have one factor."""
        self._first = self.slow.shape[1] + self.tail
        most = self._first + len(spanned) * self.width
        self._basis = RecycledBasis(self.mass, most)
        self._independent = self._chosen = np.zeros(0, np.intp)
        """Columns that do not depend on others, or that every model has anew; those of the last model."""
        self._rooms = np.zeros((3, body.n_dof * most))
        """Of the present basis and the one before by turns, and of what is made of it."""
        self._model = no_model(body)
        self._blocks = self._warped = np.zeros((0, 9))
        """Of its tangent, in its axes; the same without the geometric part."""
        self._base, self._inertia = np.zeros((0, 3)), np.zeros((3, 3))

    def _centred(self) -> NDArray[np.float64]:
        mass, x = self.body.mass_free, self.body.x[self.body.free]
        return x - mass @ x / mass.sum() if self.body.rides else x.copy()

    def afford(self, shifts: list[float], columns: int) -> None:
        """Factors and columns anew, at these shifts and of so many columns."""
        self.wait()
        self._renewal, self.factors, self.shifts = {}, [], shifts
        self.body.keep_factors(shifts)
        self.body.look_ahead(AHEAD_OF_MEMORY * shifts[1])
        self.asked = self.width = 3 * (columns // (3 * len(self.spanned)))

    def cut_on(self, was: NDArray[np.int64]) -> "SoftReduction":
        """That of the body as it is cut now (CutBody.cut_on), which begins from this one's last model."""
        rows = np.searchsorted(self.free, was[self.body.free])
        slow = self.slow.reshape(len(self.free), -1)[rows].reshape(-1, self.slow.shape[1])
        new = SoftReduction(self.body, self.shifts, self.spanned, self.asked, slow)
        new.rest, new.points, new.kept = self.rest[rows], self.points, self.kept
        new._model = self.extended(self._model, was)
        new._base, new._inertia = self._base[rows] if len(self._base) else self._base, self._inertia
        return new

    def extended(self, model: BodyModel, was: NDArray[np.int64]) -> BodyModel:
        """A model of the body before it was cut on, whose parted nodes move as one until the next."""
        body = self.body
        assert isinstance(body, CutBody)
        rows = np.searchsorted(self.free, was[body.free])
        dofs = (3 * rows[:, None] + np.arange(3)).reshape(-1)
        places = model.places
        if len(places):
            places = body.with_inner(places[: body.nodes][was])
        return model._replace(
            body=copy(body),
            basis=model.basis[dofs],
            motions=model.motions[dofs],
            share=model.share[:, dofs],
            places=places,
        )

    def wait(self) -> None:
        """See Reduction."""
        for job in self._renewal.values():
            job.result()

    def _widen(self, points: int) -> None:
        """Columns of so many points that bear, if that is more than was asked for."""
        self.width = min(max(self.asked, 3 * points), MOST * self.asked)
        more = WIDER * -((self.columns.shape[1] - self.width) // WIDER)
        if more > 0:
            self.columns = np.pad(self.columns, ((0, 0), (0, more)))
            self._basis.widen(len(self.spanned) * more)
            # the last model keeps the room that its basis is in
            self._rooms = np.zeros((3, self._basis.whole.size))

    # ---- L3 to L5

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """Columns of the likeliest contacts; factors and all columns anew where the old ones have aged."""
        near = self.body.nodes_at(near)
        self._widen(int(np.count_nonzero(among(near, self.points.bearing, self.body.count))))
        free = self.points.choose(near, self.width // 3, self._least)
        wanted = self.body.dofs_of(free[: self.width // 3]).reshape(-1).astype(np.int64)
        wanted = wanted[wanted >= 0]
        if not self.factors:
            self._wanted = wanted
            self.body.linearise()
            self._begin_renewal(pool)
        if self._renewal:
            self._end_renewal()
        self._wanted = wanted
        n_dof = self.body.n_dof
        new = wanted[~among(wanted, self.known, n_dof)]
        grown = max(len(self.known), min(self.width, len(self.known) + len(new)))
        places = np.arange(len(self.known), grown)
        idle = np.flatnonzero(~among(self.known, wanted, n_dof))
        places = np.concatenate([places, idle[: len(new) - len(places)]])
        self.known = np.concatenate([self.known, np.full(grown - len(self.known), -1)])
        self.known[places] = new
        if len(new):
            load = self._unit_loads(new)
            solved = pool.map(lambda i: self.factors[i].solve_many(load), self.spanned)
            self._keep(places, list(solved))

    @property
    def _least(self) -> int:
        """Points that can be displaced in all directions, where no more than that bear."""
        return max(self.width, 3 * LEAST_POINTS - (len(self.spanned) - 1) * self.width) // 3

    def _alone(self, most: int, axes: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """At most so many freedoms of single points: see `PointShare.alone`."""
        return self.points.alone(self.body.dofs_of, self.width // 3, most, axes)

    def _begin_renewal(self, pool: Executor) -> None:
        """Factors and columns about the present shape, that of the last `linearise`, on other threads.

        Nothing moves the body before the next `prepare`, which waits for them.
        """
        load = self._unit_loads(self._wanted)
        spanned = {self.shifts[i] for i in self.spanned}
        self._renewal = {
            shift: pool.submit(self._renewed, shift, load if shift in spanned else load[:, :0])
            for shift in dict.fromkeys(self.shifts)
        }

    def _renewed(self, shift: float, load: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.body.factor(shift).solve_many(load)

    def _end_renewal(self) -> None:
        body = self.body
        solved = {shift: job.result() for shift, job in self._renewal.items()}
        self._renewal = {}
        self.factors = [body.factor_of(shift) for shift in self.shifts]
        self.known = self._wanted
        self.origin = self._centred()
        slow = self.slow
        if body.rides:
            slow = turned(slow, best_rotation(self.rest, self.origin, body.mass_free))
        self._basis.put(np.arange(slow.shape[1]), slow)
        self._keep(np.arange(len(self.known)), [solved[self.shifts[i]] for i in self.spanned])

    def _unit_loads(self, freedoms: NDArray[np.int64]) -> NDArray[np.float64]:
        load = np.zeros((self.body.n_dof, len(freedoms)))
        load[freedoms, np.arange(len(freedoms))] = 1.0
        return load

    def _keep(self, places: NDArray[np.intp], solved: list[NDArray[np.float64]]) -> None:
        """Columns `places` at every spanned step."""
        self.columns[:, places] = solved[0]
        for i, columns in enumerate(solved):
            self._basis.put(self._first + len(solved) * places + i, columns)
        count = self._first + len(solved) * len(self.known)
        self._basis.cut(count)
        self._independent = np.arange(count)

    @property
    def model(self) -> BodyModel:
        """The last one."""
        return self._model

    @property
    def modes(self) -> int:
        """Of the last model."""
        return self._model.span.stop - self._model.span.start

    def need(self, points: int) -> int:
        """Columns of a model of which so many points may touch something."""
        more = (len(self.spanned) - 1) * min(self.width, 3 * points)
        return self._first + 3 * min(self._least, points) + more

    # ---- L7

    def write(self, page: Page, pool: Executor) -> None:
        """The model about the present state, in the axes of the factors."""
        body, (alpha, beta) = self.body, self.body.damping
        centre, velocity, spin, inertia = body.rigid_state() if body.rides else (np.zeros(3),) * 4
        v = body.v.reshape(-1, 3) - velocity - cross_rows(spin, body.x[body.free] - centre)
        blocks, force, fading = tangent_ahead(body, v, self.shifts[1]), *self._forces()
        warped = body.warped_blocks.copy()
        x = body.x[body.free]
        place = body.positions()[page.local]
        field = body.are_fields(page.local)
        walls = body.columns(self.fields)[:, ::3].copy()
        rigid, share, axes = np.zeros((body.n_dof, 0)), np.zeros((0, body.n_dof)), np.eye(3)
        if body.rides:
            axes = best_rotation(self.origin, self._centred(), body.mass_free)
            orientation = Rotation.from_matrix(axes).as_quat(scalar_first=True)
            self._inertia = axes.T @ inertia @ axes
            write_motion(page, body.mass, centre, velocity, spin, self._inertia, orientation)
            v = v @ axes
            force, fading = ((load.reshape(-1, 3) @ axes).reshape(-1) for load in (force, fading))
            x, place[~field] = (x - centre) @ axes, (place[~field] - centre) @ axes
            walls = turned(walls, axes.T)
            turn_blocks(blocks, axes)
            turn_blocks(warped, axes)
            # rigid motions have their own freedoms: they are taken out of the basis, and of the force before
            # it becomes a column, or all that is left of a falling body's would be the rounding of its weight
            rigid = rigid_motions(x)
            heavy = self.mass[:, None] * rigid
            share = np.asarray(np.linalg.solve(rigid.T @ heavy, heavy.T), np.float64)
            force -= heavy @ (share @ (force / self.mass))
            walls -= heavy @ (share @ (walls / self.mass[:, None]))
        write_points(page, body, body.damping, place, body.orientations(page.local))
        if body.rides and len(self.fields):
            write_fields(page, body.pulls(page.local, centre, axes))
        v = v.reshape(-1)
        residual = force - alpha * self.mass * v
        if beta > 0.0:
            residual -= beta * self._times(blocks, v[:, None], np.empty((body.n_dof, 1)))[:, 0]
        tail = [v, *self._accelerations(residual, pool)]
        if len(self.fields):
            tail += [factor.solve_many(walls) for factor in self.factors[:2]]
        room = min(page.limit - int(page.frame.head["n_modes"][page.f]), self.need(self._least))
        alone, along = self._alone(max(0, room - self._first), axes)
        basis, mass = self._present_basis(
            np.column_stack(tail), rigid if body.rides else None, room - len(alone)
        )
        pulled, stiffness = self._pulled(blocks, basis)
        if not semidefinite(stiffness + mass / self.shifts[1] ** 2):
            # a shape grows by itself within a low step, as in a crushed body: without the negative part, its
            # model would run on and meet no resistance; R K0 R^T, which is never negative, stands for it
            blocks = warped
            pulled, stiffness = self._pulled(blocks, basis)
        own = blocks[body.neighbours.diagonal][:, [0, 4, 8]].reshape(-1)
        speed = int(np.searchsorted(self._chosen, self._first - self.tail))
        if len(alone):
            part = RigidPart(rigid, share, self._times(blocks, rigid, np.empty_like(rigid)))
            near = stiffness_of(body.neighbours, blocks, alone, along)
            basis, mass, stiffness = append_freedoms(
                basis, mass, stiffness, pulled, alone, along, self.mass, near, part
            )
        loads = np.stack([force - AHEAD_OF_MEMORY * self.shifts[1] * fading, fading])
        grams = Grams(basis, mass, stiffness, loads, speed, (self.mass, own))
        modes, span = write_modes(page, body, grams)
        self._model, self._base, self._blocks = BodyModel(body, basis, modes, span, rigid, share), x, blocks
        self._warped = warped
        self._forget_dependent(modes)

    def renew(self, pool: Executor) -> None:
        """Factors and columns anew for the next model, on other threads, where the last one's have aged."""
        self.residual = self._worst_residual(self._warped)
        if not self.residual <= RESIDUAL:
            self._begin_renewal(pool)

    def _forces(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Forces [N] in the middle of the time that a model serves, and their rate there [N/s], (n_dof,)."""
        return self.body.undamped_force(), self.body.fading(2.0 * AHEAD_OF_MEMORY * self.shifts[1])

    def _forget_dependent(self, modes: ReducedModes) -> None:
        """Columns that the last model found to depend on others stay out of the next ones."""
        dependent = np.ones(len(self._chosen), bool)
        dependent[modes.order[modes.order < len(dependent)]] = False
        dependent[(self._chosen >= self._first - self.tail) & (self._chosen < self._first)] = False
        if dependent.any():
            self._independent = np.setdiff1d(self._independent, self._chosen[dependent])

    def weigh(self, field: NDArray[np.float64]) -> NDArray[np.float64]:
        """See Reduction."""
        heavy = self.mass[:, None] * field
        if self._model.modes is not None and not self._model.modes.triangular:
            return heavy
        h, (alpha, beta) = self.shifts[0], self.body.damping
        pulled = self._times(self._blocks, field, np.empty_like(field))
        return (1.0 + h * alpha) * heavy + h * (beta + h) * pulled

    def drawn(self) -> BodyModel:
        """The last model; the basis is copied, since its room is used again."""
        places = self.body.positions().copy()
        places[self.body.free] = self._base
        # the body that is told is as it is now: the slow loop may cut it on while somebody looks
        return self._model._replace(body=copy(self.body), basis=self._model.basis.copy(), places=places)

    def _accelerations(self, residual: NDArray[np.float64], pool: Executor) -> list[NDArray[np.float64]]:
        """Free accelerations under the remaining force (n_dof,), at the servo's step and the low step."""
        return [factor.solve(residual) for factor in self.factors[:2]]

    def _present_basis(
        self, tail: NDArray[np.float64], rigid: NDArray[np.float64] | None, most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """B (n_dof, k) of at most `most` independent columns, the tail among them; B^T M B."""
        self._basis.put(np.arange(self._first - self.tail, self._first), tail)
        self._basis.settle(rigid)
        chosen = self._chosen = self._likeliest(most)
        room = self._basis_room(len(chosen))
        # a copy: while the last model's basis is still needed, the next one's columns come in
        take(self._basis.whole, np.arange(len(tail)), chosen, room)
        return room, self._basis.gram[np.ix_(chosen, chosen)]

    def _basis_room(self, columns: int) -> NDArray[np.float64]:
        """Room for a basis, beside the one of the last model, which is still needed."""
        self._turn_of_room = 1 - self._turn_of_room
        n = self.body.n_dof
        return self._rooms[self._turn_of_room, : n * columns].reshape(n, columns)

    def _likeliest(self, most: int) -> NDArray[np.intp]:
        """At most so many of the independent columns, ascending: those of the likeliest contacts."""
        if len(self._independent) <= most:
            return self._independent
        rank = np.full(self.body.n_dof + 1, self.body.n_dof)
        rank[self._wanted] = np.arange(len(self._wanted))
        behind = (self._independent - self._first) // len(self.spanned)
        order = np.where(behind < 0, -1, rank[self.known[np.maximum(behind, 0)]])
        return np.sort(self._independent[np.argsort(order, kind="stable")[:most]])

    def _times(
        self, blocks: NDArray[np.float64], b: NDArray[np.float64], out: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        multiply(self.body.neighbours, blocks, b, out, 0, b.shape[1])
        return out

    def _pulled(
        self, blocks: NDArray[np.float64], basis: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """K B and B^T K B."""
        pulled = self._times(blocks, basis, self._rooms[2, : basis.size].reshape(basis.shape))
        return pulled, symmetric_product(basis, pulled)

    def _worst_residual(self, warped: NDArray[np.float64]) -> float:
        """Of some columns at the first spanned step, see RESIDUAL."""
        self._turn = (self._turn + 1) % TESTED
        # contiguous, as one alone would be in any case: another layout would be compiled in mid-run
        known = np.ascontiguousarray(self.known[self._turn :: TESTED])
        columns = np.ascontiguousarray(self.columns[:, self._turn : len(self.known) : TESTED])
        h, pulled = self.shifts[self.spanned[0]], self._times(warped, columns, np.empty_like(columns))
        return worst_residual(self.body, h, warped, (columns, pulled, known))

    # ---- L6

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """The full body set to x = c + R (X + V z); after a jolt, its own steps in the last ticks.

        Of that state it keeps what the energy before and the forces' work allow (`energy_law`).
        """
        body = self.body
        allowed = body.energy() + past.work
        before = self._centred()
        shapes = [before, self.rest] if body.memory is None else [before]  # which remembers that shape
        self.points.bearing, self.points.load = body.on_nodes(past.local, past.load)
        jolted = body.rides and past.jolts(body.weight(), self.shifts[0])
        tail = past.tail if jolted and body.memory is None else None
        start = model if tail is None else tail.model
        set_body(body, self.model.field(start.z, start.rate), self._base, self._inertia, start, low)
        if tail is not None:
            nodes, forces = body.on_nodes(past.local, tail.forces)
            body.substeps(self.factors[0], self.shifts[0], forces, nodes.astype(np.int32))
        self.kept = keep_energy(body, self._statics, shapes, allowed)
        body.remember(past.span)

    def _statics(self) -> NDArray[np.float64]:
        """K^-1 f of the body where it is, (free nodes, 3) [m], by the factor at the low step."""
        body, h = self.body, self.shifts[1]
        axes = best_rotation(self.origin, self._centred(), body.mass_free) if body.rides else np.eye(3)
        load = h * (body.damping[1] + h) * body.undamped_force().reshape(-1, 3) @ axes
        return self._settled(load.reshape(-1)).reshape(-1, 3) @ axes.T

    def _settled(self, load: NDArray[np.float64]) -> NDArray[np.float64]:
        """A_h^-1 of a load (n_dof,) at the low step."""
        return self.factors[1].solve(load)
