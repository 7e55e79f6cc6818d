"""HapCo, step by step: two quasi-static bodies, one moved by the hand, and any contact solver between them.

The flexibility method of Talbi, Joli, Feng and Kheddar (GRAPP 2008) and of N. Talbi's thesis (section 2.7,
figure 2.12), `physics.systems.hapco.tick` is the same for the servo. A step is: move the frame,
detect, free displacement, W, contact forces, displacement of both bodies.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.boundary import add_delassus, gather_scratch
from palpo.physics.bodies.clamped import ClampedBody
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.collision.contact_surface import contact_surface
from palpo.physics.collision.mobile_contacts import (
    MobileContacts,
    make_contacts,
    make_tracker,
    mobile_features,
)
from palpo.physics.collision.mobile_vertices import find_contacts, hold_on, locate
from palpo.physics.contact.anchors import clear_anchors, find_anchor, make_anchors
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.engine.joints import UPRIGHT
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.hapco.detection import EDGE_CONTACTS, Detection, contact_slots, edge_reach
from palpo.studies.reference import without_delassus
from palpo.studies.reference.contact_map import ContactMap
from palpo.studies.reference.displacement import DisplacementSolver
from palpo.studies.reference.increments import IncrementalBody, Increments, NodalForces, newton_raphson
from palpo.studies.reference.mobile_rows import body_axes, contact_forces, free_gaps, starting_forces
from palpo.studies.reference.unassembled import UnassembledProblem

MOBILE, FIXED = 0, 1
"""Sides of a contact: bodies 1 and 2."""

Problem = ContactProblem | UnassembledProblem
Solve = Callable[[Any, Stop], ContactResult]
"""A solver of either kind of problem."""


class Times(NamedTuple):
    """Where the time of a step went [s]."""

    detection: float
    free: float
    delassus: float
    solve: float
    update: float


@dataclass(frozen=True)
class StepResult:
    """One equilibrium. Arrays are the step's own; n contacts."""

    problem: Problem
    """Of the last linearisation."""
    result: ContactResult
    force: NDArray[np.float64]
    """Of the contacts on the mobile body, hence on the hand [N], world axes, shape (3,)."""
    torque: NDArray[np.float64]
    """The same about the centre of its clamped nodes [N m], shape (3,)."""
    forces: NDArray[np.float64]
    """Of each contact on the mobile body [N], world axes, shape (n, 3)."""
    points: NDArray[np.float64]
    """Where the mobile body's contact points stand [m], shape (n, 3)."""
    frames: NDArray[np.float64]
    """Rows n, t1, t2 of each contact, shape (n, 3, 3)."""
    maps: tuple[ContactMap, ContactMap]
    """H of the mobile and of the fixed body."""
    increments: Increments
    times: Times
    lost: int = 0
    """Contacts for which there was no room."""

    @property
    def n_contacts(self) -> int:
        """Rows of three in the problem, open ones too."""
        return self.result.status.size

    @property
    def n_open(self) -> int:
        """Contacts without force."""
        return int((self.result.status == OPEN).sum())

    @property
    def n_stick(self) -> int:
        """Sticking contacts."""
        return int((self.result.status == STICK).sum())

    @property
    def n_slip(self) -> int:
        """Sliding contacts."""
        return int((self.result.status == SLIP).sum())


class BlackBox:
    """A linear DisplacementSolver as an IncrementalBody: its compliance, column by column."""

    def __init__(self, body: Any) -> None:
        self.body = body

    def linearise(self) -> None:
        """Nothing to do: it is linear."""

    def free_displacement(self, nodes: ArrayLike) -> NDArray:
        """See IncrementalBody."""
        return self.body.displacements((), (), nodes)

    def compliance(self, nodes: ArrayLike) -> NDArray:
        """See IncrementalBody; 3 k + 1 solves, symmetric to their tolerance and then exactly."""
        nodes = np.asarray(nodes)
        free = self.free_displacement(nodes).ravel()
        columns = np.empty((free.size, free.size))
        for j in range(free.size):
            unit = np.zeros((1, 3))
            unit[0, j % 3] = 1.0
            columns[:, j] = self.body.displacements(nodes[j // 3 : j // 3 + 1], unit, nodes).ravel() - free
        return 0.5 * (columns + columns.T)

    def advance(self, nodes: ArrayLike, forces: ArrayLike) -> float:
        """See IncrementalBody."""
        before = self.body.u.copy()
        self.body.displacements(nodes, forces, self.body.surface_nodes)
        return float(np.abs(self.body.u - before).sum())


@dataclass
class _Clock:
    """Adds up the times of a step."""

    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(Times._fields, 0.0))
    since: float = field(default_factory=perf_counter)

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.spent[name] += now - self.since
        self.since = now


class Interaction:
    """The mobile and the fixed body, their contacts, and what these remember from step to step.

    mobile, fixed: a QuasistaticBody, a LargeStrainBody, or any ClampedBody that is a DisplacementSolver.
    mu: friction coefficient. solver: name in the registry, its `options`, and `stop`; or a function of a
    problem and a stop. assembled: False asks the bodies for displacements and forms no W; then `solver` is
    `palpo.studies.reference.without_delassus.solve` with the options, or a function.
    newton_tolerance: sum of |dX| of all nodes [m] at which the bodies are in equilibrium (2.59); inf does
    with one linearisation, exact for linear bodies unless detection is repeated.
    All of these but `assembled` may be changed between two steps.
    Raises InputError for an unknown solver, and for contact vertices that are not on the boundary.
    """

    def __init__(
        self,
        mobile: ClampedBody,
        fixed: ClampedBody,
        detection: Detection | None = None,
        mu: float = 0.3,
        solver: str | Solve | None = None,
        options: Mapping[str, Any] | None = None,
        stop: Stop | None = None,
        newton_tolerance: float = math.inf,
        max_increments: int = 50,
        assembled: bool = True,
    ) -> None:
        self.mobile, self.fixed = mobile, fixed
        self.detection = detection or Detection()
        self.mu, self.options, self.assembled = mu, dict(options or {}), assembled
        self.solver: str | Solve = solver or ("anderson" if assembled else without_delassus.solve)
        if isinstance(self.solver, str):
            find_solver(self.solver)
        self.stop = stop or Stop()
        self.newton_tolerance, self.max_increments = newton_tolerance, max_increments
        self.bodies = [_incremental(body) for body in (mobile, fixed)]
        self.surface = contact_surface(fixed.surface, fixed.slot, self.detection.crease)
        self.features = mobile_features(
            contact_surface(mobile.surface, mobile.slot), contact_slots(mobile, self.detection.vertices),
            self.detection.edges,
        )  # fmt: skip
        capacity = self.features.vertices.size + EDGE_CONTACTS
        self.contacts: MobileContacts = make_contacts(capacity)
        self.anchors = make_anchors(self.features.vertices.size, capacity)
        self.tracker = make_tracker(self.features)
        self.edge_reach = edge_reach(fixed, self.detection.tolerance) if self.detection.edges else 0.0
        self._scratch = [gather_scratch(b.surface_nodes.size, capacity) for b in (mobile, fixed)]
        self._last: Problem | None = None
        for body in self.bodies:
            body.linearise()
            body.advance((), ())
        self.reset()

    def reset(self) -> None:
        """Forget all contacts; vertices are searched for wherever the bodies are now."""
        clear_anchors(self.anchors)
        self._last = None
        count = self.features.vertices.size
        x_1, x_2 = _surface_positions(self.mobile), _surface_positions(self.fixed)
        locate(self.features, x_1, self.surface, x_2, self.anchors, self.tracker, count)

    def problem(self) -> Problem:
        """The contact problem of the last step, as it was solved; InputError before the first."""
        if self._last is None:
            raise InputError("there is no contact problem yet: make a step first")
        return self._last

    def step(self, position: ArrayLike, orientation: ArrayLike = UPRIGHT) -> StepResult:
        """Move the mobile body's frame and find the equilibrium.

        position: where the centre of its clamped nodes goes [m]. orientation: (w, x, y, z).
        """
        clock = _Clock()
        self.mobile.place(position, orientation)
        self._detect()
        clock.lap("detection")
        problem, result, forces, increments = (self._assembled if self.assembled else self._asked)(clock)
        points = self._hold_on(forces, result.status)
        clock.lap("update")
        self._last = problem
        return StepResult(
            problem=problem,
            result=result,
            force=forces.sum(axis=0),
            torque=np.cross(points - self.mobile.position, forces).sum(axis=0),
            forces=forces,
            points=points,
            frames=self.contacts.frame[: len(forces)].copy(),
            maps=(self._map(MOBILE), self._map(FIXED)),
            increments=increments,
            times=Times(**clock.spent),
            lost=int(self.contacts.count[0]["lost"]),
        )

    def _assembled(self, clock: _Clock) -> tuple[Problem, ContactResult, NDArray, Increments]:
        """Newton-Raphson on the bodies, with W of their linearisations."""
        solved: list[tuple[ContactProblem, ContactResult, NDArray]] = []

        def contact() -> list[NodalForces]:
            if solved and self.detection.when == "increment":
                clock.lap("update")
                self._let_slide(solved[-1][1].status)
                self._detect()
                clock.lap("detection")
            warm = solved[-1][1].r if solved and self.detection.when == "step" else None
            problem = self._problem(clock, warm)
            result, forces = self._solve(problem)
            clock.lap("solve")
            solved.append((problem, result, forces))
            return [self._nodal(MOBILE, forces), self._nodal(FIXED, -forces)]

        increments = newton_raphson(self.bodies, contact, self.newton_tolerance, self.max_increments)
        return *solved[-1], increments

    def _asked(self, clock: _Clock) -> tuple[Problem, ContactResult, NDArray, Increments]:
        """Bodies that are asked for displacements; they find their own equilibria."""
        bodies: Any = (self.mobile, self.fixed)
        n = int(self.contacts.count[0]["found"])
        gap = np.empty(3 * n)
        rest = (self._points(side, self._body(side).rest_positions) for side in (MOBILE, FIXED))
        free_gaps(self.contacts, *rest, self.fixed.rotation, gap)
        maps = (self._map(MOBILE), self._map(FIXED))
        problem = UnassembledProblem(bodies, maps, gap, np.full(n, float(self.mu)), self._start())
        clock.lap("free")
        result, forces = self._solve(problem)
        clock.lap("solve")
        change = 0.0
        for side, sense in ((MOBILE, 1.0), (FIXED, -1.0)):
            body = self._body(side)
            before = body.u.copy()
            self._displace(body, *self._nodal(side, sense * forces))
            change += float(np.abs(body.u - before).sum())
        return problem, result, forces, Increments(1, change, True)

    @staticmethod
    def _displace(body: Any, nodes: ArrayLike, forces: ArrayLike) -> None:
        if isinstance(body, QuasistaticBody):
            body.displace(nodes, forces)
        else:
            body.displacements(nodes, forces, body.surface_nodes)

    def _let_slide(self, status: NDArray) -> None:
        """Contacts that do not stick at this increment need not keep to their anchors' points."""
        for identity in self.contacts.identity[: status.size][status != STICK]:
            anchor = find_anchor(self.anchors, identity)
            if anchor >= 0:
                self.anchors.sticks[anchor] = False

    def _detect(self) -> None:
        find_contacts(
            self.features, _surface_positions(self.mobile), self.surface, _surface_positions(self.fixed),
            self.fixed.rotation, self.detection.tolerance, self.edge_reach,
            self.detection.normals == "faceted", self.anchors, self.tracker, self.contacts,
        )  # fmt: skip

    def _problem(self, clock: _Clock, warm: NDArray | None) -> ContactProblem:
        n = int(self.contacts.count[0]["found"])
        b = np.empty(3 * n)
        free = (self._points(side, partial(self._free_positions, side)) for side in (MOBILE, FIXED))
        free_gaps(self.contacts, *free, self.fixed.rotation, b)
        clock.lap("free")
        w = np.zeros((3 * n, 3 * n))
        for side in (MOBILE, FIXED):
            self._add_delassus(side, w)
        problem = ContactProblem(w, b, np.full(n, float(self.mu)), self._start() if warm is None else warm)
        clock.lap("delassus")
        return problem

    def _start(self) -> NDArray:
        """The last equilibrium's forces in the contacts' axes [N], shape (3 n,)."""
        start = np.empty(3 * int(self.contacts.count[0]["found"]))
        starting_forces(self.contacts, self.fixed.rotation, start)
        return start

    def _solve(self, problem: Problem) -> tuple[ContactResult, NDArray]:
        """The result, and the forces on the mobile body [N], shape (n, 3), world axes."""
        if isinstance(self.solver, str):
            result = find_solver(self.solver).solve(problem, self.stop, **self.options)  # type: ignore[arg-type]
        else:
            result = self.solver(problem, self.stop, **self.options)
        forces = np.empty((result.status.size, 3))
        contact_forces(self.contacts, result.r, forces)
        return result, forces

    def _body(self, side: int) -> ClampedBody:
        return self.fixed if side == FIXED else self.mobile

    def _map(self, side: int) -> ContactMap:
        n, sense = int(self.contacts.count[0]["found"]), -1.0 if side == FIXED else 1.0
        nodes = self._body(side).surface_nodes[self.contacts.slots[side, :n]]
        return ContactMap(nodes, self.contacts.weights[side, :n].copy(), sense * self.contacts.frame[:n])

    def _free_positions(self, side: int, nodes: NDArray) -> NDArray:
        """Where nodes (k,) stand at the linearised equilibrium without contact [m], shape (k, 3)."""
        return self._body(side).rest_positions(nodes) + self.bodies[side].free_displacement(nodes)

    def _points(self, side: int, positions: Callable[[NDArray], NDArray]) -> NDArray:
        """Where the contacts' points stand, by the positions of nodes (k,) -> (k, 3) [m]; shape (n, 3)."""
        n = int(self.contacts.count[0]["found"])
        slots, weights = self.contacts.slots[side, :n], self.contacts.weights[side, :n]
        used, place = np.unique(slots, return_inverse=True)
        x = positions(self._body(side).surface_nodes[used])
        return np.einsum("kc,kci->ki", weights, x[place.reshape(-1, 3)])

    def _add_delassus(self, side: int, w: NDArray) -> None:
        """w += H K^-1 H^T of one body."""
        body, contacts, n = self._body(side), self.contacts, int(self.contacts.count[0]["found"])
        sense = -1.0 if side == FIXED else 1.0
        axes, weights = np.empty((n, 3, 3)), contacts.weights[side]
        if isinstance(body, QuasistaticBody):
            compliance, slots = body.boundary.compliance, contacts.slots[side]
            rotation = body.rotation
        else:
            H = self._map(side)
            compliance, slots = np.ascontiguousarray(self.bodies[side].compliance(H.points)), H.place
            rotation = np.eye(3)
        order = np.arange(n, dtype=np.int32)
        body_axes(contacts.frame, order, rotation, sense, axes)
        add_delassus(compliance, n, order, slots, weights, axes, self._scratch[side], w)

    def _nodal(self, side: int, forces: NDArray) -> NodalForces:
        """Nodes and the forces on them, of contact forces (n, 3) [N] on that body."""
        H = self._map(side)
        used = H.weights != 0.0
        return H.nodes[used], (H.weights[:, :, None] * forces[:, None, :])[used]

    def _hold_on(self, forces: NDArray, status: NDArray) -> NDArray:
        """Set the anchors; returns where the mobile body's contact points stand [m], shape (n, 3)."""
        x_1, x_2 = _surface_positions(self.mobile), _surface_positions(self.fixed)
        hold_on(
            self.contacts, forces, status, x_1, self.surface, x_2, self.fixed.rotation, self.anchors,
            self.tracker,
        )  # fmt: skip
        return self._points(MOBILE, self.mobile.positions)


def _incremental(body: Any) -> IncrementalBody:
    if isinstance(body, IncrementalBody):
        return body
    if isinstance(body, DisplacementSolver):
        return BlackBox(body)
    raise InputError(f"body {body!r} is neither an IncrementalBody nor a DisplacementSolver")


def _surface_positions(body: ClampedBody) -> NDArray:
    return np.ascontiguousarray(body.positions(body.surface_nodes))
