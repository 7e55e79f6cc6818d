"""The slow loop of HapCo along tangents: solutions and their derivatives.

The servo (palpo.physics.systems.hapco.tangent) follows them.

A step solves twice on one W: where the hand is going to be, and where it is. The second solution is what the
bodies of the slow loop keep, so that friction goes on from where the hand has really been.
"""

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.tracked_contacts import tell
from palpo.physics.contact.laws import SLIP, STICK, project_cone
from palpo.physics.contact.tangents import ForceTangents
from palpo.physics.contract.stages import DONE, END, PLACE
from palpo.physics.engine.equilibrium import delassus, gather, push, push_all, solve, tell_statuses
from palpo.physics.engine.rows import free_motion, set_rows
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.solve import judge, open_step
from palpo.physics.engine.table import ask, ask_all
from palpo.physics.engine.tick import aim, begin, end, find, let_go
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.port import NOT_FINITE
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import norm3, quat_difference, rotate_by
from palpo.physics.systems.hapco.loop import ContactLoop
from palpo.physics.systems.hapco.servo import BodyPair, make_bodies
from palpo.physics.systems.hapco.tangent import SLIDES, TangentServo, make_servo
from palpo.physics.systems.hapco.tick import MOBILE, QuasistaticServo, put_settings

AHEAD = 1.5
"""Low periods from a step's beginning to the middle of its frame's life, for which the hand is foretold."""
PUSHED_IN = 0.05
"""How far past the touch the slow loop looks where nothing bears yet, in shares of the collision
tolerance."""


@kernel
def shape_ahead(low, position, orientation, r):
    """The bodies as the last contacts would leave them there under forces r (3 n,); what sticks stays
    anchored.

    Contacts are found on these shapes; a step's own forces start from the unloaded bodies whatever their
    shape.
    """
    e = low.engine
    copy(position, low.hand.position)
    copy(orientation, low.hand.orientation)
    if begin(e) != DONE or set_rows(e) != DONE:
        return NOT_FINITE
    copy(r, e.r[: r.shape[0]])
    if push_all(e) != DONE:
        return NOT_FINITE
    return ask_all(e, END, e.bodies.batch)


@kernel
def find_ahead(low, position, orientation):
    """Contacts and W where the hand is foretold to be, (3,) [m] and (4,); DONE or NOT_FINITE."""
    e = low.engine
    put_settings(low)
    copy(position, low.hand.position)
    copy(orientation, low.hand.orientation)
    if begin(e) != DONE or find(e) != DONE or free_motion(e) != DONE:
        return NOT_FINITE
    for k in range(e.contacts.count[0].found):
        e.inside[k] = True
    gather(e)
    if delassus(e) != DONE:
        return NOT_FINITE
    return ask(e, MOBILE, PLACE, e.bodies.batch[MOBILE])


@kernel
def _solve_whole(e):
    """All contacts from the forces in the problem's r, on the W that is there; their statuses, too."""
    p, n = e.problem, e.contacts.count[0].found
    open_step(e.solver)
    code = solve(e)
    if n > 0:
        judge(view_square(p.w, 3 * n), p.mu[:n], p.r, p.u, 0, e.vectors[0], p.status)
    return code


@kernel
def solve_ahead(low, force):
    """Forces at the foretold pose, from the last ones; if none bears, pushed in until one does. (3,) m of it.

    The forces of the problem are then those there. Returns how far it was pushed along each contact's normal.
    """
    e = low.engine
    p, n = e.problem, e.contacts.count[0].found
    for k in range(n):
        frame, kept = e.contacts.frame[k], e.contacts.force[k]
        for i in range(3):
            p.r[3 * k + i] = frame[i, 0] * kept[0] + frame[i, 1] * kept[1] + frame[i, 2] * kept[2]
        project_cone(p.r[3 * k : 3 * k + 3], p.mu[k], p.r[3 * k : 3 * k + 3])
    code = _solve_whole(e)
    for i in range(3):
        force[i] = 0.0
    bears = False
    for k in range(n):
        bears = bears or p.r[3 * k] > 0.0
    if bears or n == 0 or code != DONE:
        return code
    for k in range(n):
        for i in range(3):
            force[i] -= e.contacts.frame[k, 0, i]
    size, least = norm3(force), np.inf
    if size == 0.0:
        return code
    for k in range(n):
        axis, closing = e.contacts.frame[k, 0], 0.0
        for i in range(3):
            closing -= axis[i] * force[i] / size
        if closing > 0.0:
            least = min(least, p.b[3 * k] / closing)
    if not least < np.inf:
        return code
    least = max(0.0, least) + PUSHED_IN * low.live[0].collision
    for i in range(3):
        force[i] *= least / size
    for k in range(n):
        for d in range(3):
            axis = e.contacts.frame[k, d]
            p.b[3 * k + d] += axis[0] * force[0] + axis[1] * force[1] + axis[2] * force[2]
    return _solve_whole(e)


@kernel
def settle(low, position, orientation, start):
    """The slow loop's bodies come to rest where the hand is, from forces `start` (3 n,), on the same W."""
    e = low.engine
    copy(position, low.hand.position)
    copy(orientation, low.hand.orientation)
    if aim(e) != DONE or let_go(e) != DONE:
        return NOT_FINITE
    e.contacts.count[0].found = 0
    e.contacts.count[0].lost = 0
    tell(low.tracked, e.contacts)
    if free_motion(e) != DONE:
        return NOT_FINITE
    gather(e)
    copy(start, e.problem.r[: start.shape[0]])
    if _solve_whole(e) != DONE or push(e) != DONE:
        return NOT_FINITE
    tell_statuses(e)
    return end(e)


def make_tangent(pair: BodyPair) -> tuple[TickState, TangentServo, "TangentLoop"]:
    """The servo of a pair, what it exchanges, and the slow loop; raises as hapco.tangent.make_servo."""
    servo, m = make_servo(pair)
    return servo, m, TangentLoop(m, make_bodies(pair), pair.ratio)


class Solution(NamedTuple):
    """Forces (n, 3) [N] at a pose of the frame, and their derivative (n, 3, 6) there."""

    position: NDArray[np.float64]
    orientation: NDArray[np.float64]
    force: NDArray[np.float64]
    tangent: NDArray[np.float64]


class TangentLoop(ContactLoop):
    """The slow loop that tells solutions where the hand is and is going to be, with their tangents."""

    parts = ("contacts and W", "forces", "tangents")

    def __init__(self, m: TangentServo, low: QuasistaticServo, ratio: int) -> None:
        super().__init__(m, low, ratio)  # type: ignore[arg-type]
        self._followed = m
        self._here = low.hand.position.copy(), low.hand.orientation.copy()
        self._last = Solution(*self._here, np.zeros((0, 3)), np.zeros((0, 3, 6)))

    def make(self) -> int:
        """Solve where the hand is going to be and where it is; the tangents there."""
        laps = [perf_counter()]
        state, low, out = self._followed.state, self.side, self._followed.frame
        g, f, velocity = int(acquire(self.high.state_control)[0]), self.slot, np.zeros(6)
        self.take_values()
        calls = int(state.calls[g])
        if calls >= 0:
            self._here = state.position[g].copy(), state.orientation[g].copy()
            velocity[:] = state.velocity[g]
        ahead = self._ahead(velocity)
        self._refuse(shape_ahead(self._low, *ahead, self._foretold(*ahead)))
        self._refuse(find_ahead(self._low, *ahead))
        laps.append(perf_counter())
        e, n, pushed = low.engine, int(low.engine.contacts.count[0]["found"]), np.zeros(3)
        self._refuse(solve_ahead(self._low, pushed))
        laps.append(perf_counter())
        out.count[f] = n, e.contacts.count[0]["lost"]
        out.identity[f, :n] = low.tracked.found.identity[:n]
        out.axes[f, :n] = e.contacts.frame[:n]
        out.arm[f, :n] = low.points.x[:n] - low.mobile.frame.now.position
        out.behind[f], out.behind_q[f] = self._here
        out.ahead[f], out.ahead_q[f] = ahead[0] + pushed, ahead[1]
        out.force[f, :n] = e.problem.r[: 3 * n].reshape(n, 3)
        tangents = self._follow(f)
        laps.append(perf_counter())
        # what the tangent foretells for where the hand is saves most of the sweeps there
        self._refuse(settle(self._low, *self._here, self._foretold(*self._here)))
        laps.append(perf_counter())
        out.held[f, :n] = e.problem.r[: 3 * n].reshape(n, 3)
        out.elastic[f, :n] = out.tangent[f, :n]
        if tangents.slides:
            out.elastic[f, :n] = tangents.sticking(out.held[f, :n, 0] > 0.0).reshape(n, 3, 6)
        out.mobile_u[f], out.fixed_u[f] = low.mobile.u, low.fixed.u
        out.nearest[f] = low.tracked.tracker.gap[0]
        self.lost_slots = int(e.contacts.count[0]["lost"])
        laps.append(perf_counter())
        contacts, *spent = np.diff(laps).tolist()
        for name, seconds in zip(
            self.times.parts, (contacts, sum(spent[::2]), sum(spent[1::2])), strict=True
        ):
            self.times.add(name, seconds)
        return calls

    def _ahead(self, velocity: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The pose in the middle of the frame's life, no farther than contacts are found."""
        way = velocity * AHEAD * self.budget.period * self.dt
        reach = float(self.values["collision"][0])
        far = float(np.linalg.norm(way[:3]))
        way *= min(1.0, reach / far) if far > 0.0 else 1.0
        orientation = self._here[1].copy()
        rotate_by(np.ascontiguousarray(way[3:]), orientation)
        return self._here[0] + way[:3], orientation

    def _foretold(
        self, position: NDArray[np.float64], orientation: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Forces (3 n,) [N] at a pose by the last solution, in the cones."""
        last, way = self._last, np.zeros(6)
        way[:3] = position - last.position
        quat_difference(orientation, last.orientation, way[3:])
        r = last.force + last.tangent @ way
        r[:, 0] = np.maximum(r[:, 0], 0.0)
        most = float(self.values["friction"][0]) * r[:, 0]
        size = np.hypot(r[:, 1], r[:, 2])
        r[:, 1:] *= np.minimum(1.0, most / np.maximum(size, np.finfo(float).tiny))[:, None]
        return r.ravel()

    def _follow(self, f: int) -> ForceTangents:
        """The tangent where the hand is going to be, and the power of friction, to the writer's slot."""
        out, p, n = (
            self._followed.frame,
            self.side.engine.problem,
            int(self._followed.frame.count["found"][f]),
        )
        w = view_square(p.w, 3 * n) if n else np.zeros((0, 0))
        r, u, status = p.r[: 3 * n].copy(), p.u[: 3 * n], p.status[:n]
        arm, axes = out.arm[f, :n, None], out.axes[f, :n]
        motion = np.concatenate([axes, np.cross(np.broadcast_to(arm, axes.shape), axes)], axis=2)
        motion = np.ascontiguousarray(motion.reshape(3 * n, 6))
        mu = np.full(n, float(self.values["friction"][0]))
        slip = np.hypot(u[1::3], u[2::3])
        stays = (status == SLIP) & (slip <= SLIDES * self.values["collision"][0]) & (mu > 0.0)
        tangents = ForceTangents(w, motion, r, np.where(stays, STICK, status), mu)
        tangent = tangents.following()
        out.release[f] = tangents.power(tangent)
        out.tangent[f, :n] = tangent.reshape(n, 3, 6)
        self._last = Solution(
            out.ahead[f].copy(), out.ahead_q[f].copy(), out.force[f, :n].copy(), out.tangent[f, :n].copy()
        )
        return tangents

    @staticmethod
    def _refuse(code: int) -> None:
        if code != DONE:
            raise FloatingPointError("a number of the slow loop's contact problem is not finite")
