"""A quasi-static linear body on a frame of clamped nodes: without inertia, it yields by K^-1 on its boundary.

Where the frame is: it stands still, it is where the hand is, or a coupling lies between hand and frame. Since
nothing has inertia, the coupling between the hand's pose t and the frame's pose p is a compliance in series.
By backward Euler, with e = t - p, its force k e + b (e - e_last) / h balances the contact force F:

    p = t - (b / h) / (k + b / h) e_last + F / (k + b / h)

so that H_rigid diag(1 / (k + b / h)) H_rigid^T joins W, and likewise for the rotation vector and the moment:
six columns in all. At rest the hand feels 1 / (1 / k + W). The damping is between frame and hand: in free
motion there is no force. The hand always feels F, for what holds a body without inertia is what pushes it.
Rotations are linearised about the pose at which the step starts: the frame's last one, moved as the hand has
moved since.

Linear elasticity on the frame, K u = F in its axes (001, N. Talbi's thesis, 1.8, 2.48 to 2.52 and 2.67); a
body of another modulus has its compliance, and its sag, divided by it.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from palpo.physics.arrays import copy, copy_rows
from palpo.physics.bodies.boundary import (
    Boundary,
    GatherScratch,
    add_lower_delassus,
    add_surface_displacement,
    gather_scratch,
    place_surface,
)
from palpo.physics.bodies.chain import ChainState
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.engine.contract import (
    AIM,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FEEL,
    FREE,
    MOVED,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    PUSH,
    SHAPE,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import (
    cross3,
    matvec3,
    matvec3_transposed,
    norm3,
    quat_difference,
    quat_to_matrix,
    rotate_by,
)
from palpo.physics.yields.points import add_low_rank

STANDS, HELD, COUPLED = range(3)
"""What a frame does: stand still, be where the hand is, or follow through the coupling."""


class Pose(NamedTuple):
    """Of a frame."""

    position: NDArray[np.float64]  # (3,) [m] centre of the clamped nodes
    orientation: NDArray[np.float64]  # (4,)
    rotation: NDArray[np.float64]  # (3, 3)


class Frame(NamedTuple):
    """The clamped frame and its coupling; rotations as vectors."""

    grip: NDArray[np.int64]  # (1,) STANDS, HELD or COUPLED
    gain: NDArray[np.float64]  # (4,) [N/m], [N s/m], [N m/rad], [N m s/rad]
    now: Pose
    then: Pose  # under the pushed forces; after END, the one at the step's start
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    error: NDArray[np.float64]  # (6,) [m], [rad] target less frame at the end of the last step
    free: NDArray[np.float64]  # (6,) the frame's motion without contact
    give: NDArray[np.float64]  # (6,) [m/N], [rad/(N m)]
    wrench: NDArray[np.float64]  # (6,) of the pushed forces on the frame [N], [N m]


class Surface(NamedTuple):
    """A body of s boundary nodes, whose slots they are, in up to c points of a batch."""

    boundary: Boundary
    gravity: NDArray[np.float64]  # (3,) [m/s2], world axes
    softness: NDArray[np.float64]  # (1,) the modulus that it was built with over its own
    frame: Frame
    weight: NDArray[np.float64]  # (3,) gravity times softness, body axes: what the sag is proportional to
    flat: NDArray[np.float64]  # (3 s,) displacement [m], body axes
    u: NDArray[np.float64]  # (s, 3) the same memory
    flat_then: NDArray[np.float64]  # (3 s,) under the pushed forces
    u_then: NDArray[np.float64]  # (s, 3) the same memory
    stale: NDArray[np.bool_]  # (1,) whether `then` and u_then do not yet follow the pushed forces
    load_of: NDArray[np.int32]  # (s,) the load on each slot, -1 for none
    loads: NDArray[np.int64]  # (1,) slots under load
    loaded: NDArray[np.int32]  # (m,)
    push: NDArray[np.float64]  # (m, 3) their loads [N], world axes
    local: NDArray[np.float64]  # (m, 3) the same times the softness, body axes
    frozen: NDArray[np.bool_]  # (1,) whether the shape comes from elsewhere, and the frame alone moves here
    axes: NDArray[np.float64]  # (c, 3, 3) rows of H, body axes
    gather: GatherScratch
    told: ChainState  # of the boundary nodes and then the frame at the end of the last step, or of none
    reach: NDArray[np.float64]  # (1,) [m] of the node that is farthest from the frame's centre
    vectors: NDArray[np.float64]  # (6, 4) scratch


def make_surface(
    body: QuasistaticBody,
    capacity: int,
    grip: int = STANDS,
    gain: tuple[float, float, float, float] = (1000.0, 1.0, 2.0, 2e-3),
) -> Surface:
    """The body where it stands now; a frame that is not held stands there, too. It tells of no nodes."""
    s = body.surface_nodes.size
    flat, flat_then = np.zeros(3 * s), np.zeros(3 * s)
    flat[:] = body.u[body.surface_nodes].ravel()
    loads = min(s, 3 * capacity)
    now, then = (
        Pose(body.position.copy(), _quaternion(body.rotation), np.array(body.rotation)) for _ in range(2)
    )
    frame = Frame(
        np.array([grip], np.int64), np.array(gain, float), now, then, now.position.copy(),
        now.orientation.copy(), np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6),
    )  # fmt: skip
    return Surface(
        body.boundary, body.gravity.copy(), np.ones(1), frame, np.zeros(3), flat, flat.reshape(s, 3),
        flat_then, flat_then.reshape(s, 3), np.ones(1, np.bool_), np.full(s, -1, np.int32),
        np.zeros(1, np.int64), np.zeros(loads, np.int32), np.zeros((loads, 3)), np.zeros((loads, 3)),
        np.zeros(1, np.bool_), np.zeros((capacity, 3, 3)),
        gather_scratch(s, capacity), ChainState(*(np.zeros((0, n)) for n in (3, 4, 3, 3))),
        np.linalg.norm(body.boundary.rest, axis=1).max(keepdims=True), np.zeros((6, 4)),
    )  # fmt: skip


def told_state(body: QuasistaticBody) -> ChainState:
    """Where the boundary nodes and then the frame are, as `Surface.told` has them, at rest."""
    nodes, turn = len(body.surface_nodes), _quaternion(body.rotation)
    x = np.vstack([body.positions(body.surface_nodes), body.position])
    still = np.zeros((nodes + 1, 3))
    return ChainState(x, np.tile(turn, (nodes + 1, 1)), still, still.copy())


def _quaternion(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """(w, x, y, z) of a rotation matrix: the eigenvector of Davenport's matrix."""
    r = rotation
    skew = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    matrix = np.empty((4, 4))
    matrix[0, 0] = np.trace(r)
    matrix[0, 1:] = matrix[1:, 0] = skew
    matrix[1:, 1:] = r + r.T - np.trace(r) * np.eye(3)
    vector = np.ascontiguousarray(np.linalg.eigh(matrix)[1][:, -1])
    return vector if vector[0] >= 0.0 else -vector


@kernel
def aim(s, hand, first):
    """The hand's pose becomes the target; the frame is moved as the target has moved."""
    frame, turn = s.frame, s.vectors[0]
    if frame.grip[0] == STANDS:
        return
    if first or frame.grip[0] == HELD:
        copy(hand.orientation, frame.now.orientation)
    else:
        quat_difference(hand.orientation, frame.target_q, turn)
        rotate_by(turn, frame.now.orientation)
    copy(hand.position, frame.target)
    copy(hand.orientation, frame.target_q)
    for i in range(3):
        frame.now.position[i] = frame.target[i] - frame.error[i]
    quat_to_matrix(frame.now.orientation, frame.now.rotation)


@inlined
def _weigh(s, rotation):
    """s.weight = gravity over the modulus in the axes of that rotation."""
    matvec3_transposed(rotation, s.gravity, s.weight)
    for i in range(3):
        s.weight[i] *= s.softness[0]


@kernel
def begin(s, h):
    """How far the frame would move, and how much it yields, without contact from here on; the weight."""
    frame, gain, turn = s.frame, s.frame.gain, s.vectors[0]
    _weigh(s, frame.now.rotation)
    s.stale[0] = True
    frame.free[:] = 0.0
    frame.give[:] = 0.0
    if frame.grip[0] != COUPLED:
        return
    quat_difference(frame.target_q, frame.now.orientation, turn)
    stiff, damped = gain[0] + gain[1] / h, gain[1] / h
    stiff_turn, damped_turn = gain[2] + gain[3] / h, gain[3] / h
    for i in range(3):
        frame.give[i] = 1.0 / stiff
        frame.give[3 + i] = 1.0 / stiff_turn
        frame.free[i] = (1.0 - damped / stiff) * frame.error[i]
        frame.free[3 + i] = turn[i] - damped_turn / stiff_turn * frame.error[3 + i]


@kernel
def fastest(s, h):
    """Bound on the speed of the nodes in this step [m/s]: the last step's, and the frame's own motion."""
    told, frame, turn = s.told, s.frame, s.vectors[0]
    n = told.x.shape[0] - 1
    if n < 0:
        return 0.0
    worst, way, angle, own_turn = 0.0, 0.0, 0.0, 0.0
    quat_difference(frame.now.orientation, told.q[n], turn)
    for k in range(n):
        worst = max(worst, norm3(told.v[k]))
    for i in range(3):
        way += (abs(frame.now.position[i] - told.x[n, i]) + abs(frame.free[i])) ** 2
        angle += frame.free[3 + i] ** 2
        own_turn += turn[i] ** 2
    return worst + (way**0.5 + s.reach[0] * (angle**0.5 + own_turn**0.5)) / h


@kernel
def tell(s, h):
    """Where the nodes and the frame now are, and how fast they came there, for who looks from outside."""
    told, pose = s.told, s.frame.now
    n = told.x.shape[0] - 1
    if n < 0:
        return
    copy_rows(told.x, told.v)
    place_surface(s.boundary.rest, s.u, pose.position, pose.rotation, told.x[:n])
    copy(pose.position, told.x[n])
    for k in range(n + 1):
        copy(pose.orientation, told.q[k])
        for i in range(3):
            told.v[k, i] = (told.x[k, i] - told.v[k, i]) / h


@inlined
def _placed(s, batch, k, pose, u, out):
    """out (3,) = where point k of the batch stands at that pose and displacement u (s, 3)."""
    local = s.vectors[5]
    for j in range(3):
        local[j] = 0.0
    for c in range(3):
        weight, a = batch.weights[k, c], batch.slots[k, c]
        if weight != 0.0:
            for j in range(3):
                local[j] += weight * (s.boundary.rest[a, j] + u[a, j])
    matvec3(pose.rotation, local, out)
    for i in range(3):
        out[i] += pose.position[i]


@inlined
def _sag(s, a, j):
    """Displacement of slot a along axis j of the body under the weight alone [m]."""
    sag = s.boundary.sag
    return s.weight[0] * sag[0, a, j] + s.weight[1] * sag[1, a, j] + s.weight[2] * sag[2, a, j]


@inlined
def _free_arm(s, batch, k, out):
    """out (3,) = from the frame's centre to point k under the weight alone."""
    local = s.vectors[5]
    for j in range(3):
        local[j] = 0.0
    for c in range(3):
        weight, a = batch.weights[k, c], batch.slots[k, c]
        if weight != 0.0:
            for j in range(3):
                local[j] += weight * (s.boundary.rest[a, j] + _sag(s, a, j))
    matvec3(s.frame.now.rotation, local, out)


@kernel
def place(s, batch):
    """x of the batch; q is the frame's."""
    for k in range(batch.count[0]):
        _placed(s, batch, k, s.frame.now, s.u, batch.x[k])
        copy(s.frame.now.orientation, batch.q[k])


@kernel
def free(s, batch):
    """d of the batch if nothing touched: to where the weight alone leaves it, on a frame that is let go."""
    local, arm, turned, frame = s.vectors[0], s.vectors[1], s.vectors[2], s.frame
    for k in range(batch.count[0]):
        for j in range(3):
            local[j] = 0.0
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight != 0.0:
                for j in range(3):
                    local[j] += weight * (_sag(s, a, j) - s.u[a, j])
        matvec3(frame.now.rotation, local, batch.d[k])
        if frame.grip[0] == COUPLED:
            _free_arm(s, batch, k, arm)
            cross3(frame.free[3:6], arm, turned)
            for i in range(3):
                batch.d[k, i] += frame.free[i] + turned[i]
        for i in range(3):
            batch.v[k, i] = 0.0


@kernel
def respond(s):
    """Frame and shape under the pushed forces and the weight, unless they follow them already."""
    if not s.stale[0]:
        return
    s.stale[0] = False
    frame, turn, n = s.frame, s.vectors[0], s.loads[0]
    copy(frame.now.orientation, frame.then.orientation)
    for i in range(3):
        frame.then.position[i] = frame.now.position[i] + (frame.free[i] + frame.give[i] * frame.wrench[i])
        turn[i] = frame.free[3 + i] + frame.give[3 + i] * frame.wrench[3 + i]
    if frame.grip[0] == COUPLED:
        rotate_by(turn, frame.then.orientation)
        quat_to_matrix(frame.then.orientation, frame.then.rotation)
    else:
        copy_rows(frame.now.rotation, frame.then.rotation)
    if s.frozen[0]:
        copy(s.flat, s.flat_then)
        return
    _weigh(s, frame.then.rotation)
    for a in range(s.u.shape[0]):
        for j in range(3):
            s.u_then[a, j] = _sag(s, a, j)
    _weigh(s, frame.now.rotation)
    for m in range(n):
        matvec3_transposed(frame.then.rotation, s.push[m], s.local[m])
        for j in range(3):
            s.local[m, j] *= s.softness[0]
    add_surface_displacement(s.boundary.compliance, s.loaded[:n], s.local[:n], s.flat_then)


@kernel
def moved(s, batch):
    """d of the batch under the pushed forces."""
    x, y = s.vectors[0], s.vectors[1]
    respond(s)
    for k in range(batch.count[0]):
        _placed(s, batch, k, s.frame.now, s.u, x)
        _placed(s, batch, k, s.frame.then, s.u_then, y)
        for i in range(3):
            batch.d[k, i] = y[i] - x[i]
            batch.v[k, i] = 0.0


@kernel
def delassus(s, batch, w):
    """w += H K^-1 H^T, and the coupling's six columns."""
    n, frame, scale, arm = batch.count[0], s.frame, s.softness[0] ** 0.5, s.vectors[0]
    rotation = frame.now.rotation
    for k in range(n):
        for d in range(3):
            axis = batch.axes[k, d]
            for j in range(3):
                s.axes[k, d, j] = scale * (
                    rotation[0, j] * axis[0] + rotation[1, j] * axis[1] + rotation[2, j] * axis[2]
                )
    add_lower_delassus(s.boundary.compliance, n, batch.block, batch.slots, batch.weights, s.axes, s.gather, w)
    if frame.grip[0] != COUPLED:
        return
    for k in range(n):
        _free_arm(s, batch, k, arm)
        for d in range(3):
            row, give = batch.rows[3 * k + d], batch.give[3 * k + d]
            copy(batch.axes[k, d], row[:3])
            cross3(arm, batch.axes[k, d], row[3:6])
            for i in range(6):
                give[i] = frame.give[i] * row[i]
    add_low_rank(batch, w)


@kernel
def clear(s):
    """No node bears a load."""
    for m in range(s.loads[0]):
        s.load_of[s.loaded[m]] = -1
    s.loads[0] = 0
    s.frame.wrench[:] = 0.0
    s.stale[0] = True


@kernel
def push(s, batch):
    """The batch's forces on the nodes, and on the frame."""
    arm, moment, wrench = s.vectors[0], s.vectors[1], s.frame.wrench
    n, place_of = s.loads[0], s.load_of
    for k in range(batch.count[0]):
        f = batch.f[k]
        if f[0] == 0.0 and f[1] == 0.0 and f[2] == 0.0:
            continue
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            if place_of[a] < 0:
                place_of[a] = n
                s.loaded[n] = a
                s.push[n] = 0.0
                n += 1
            for j in range(3):
                s.push[place_of[a], j] += weight * f[j]
        if s.frame.grip[0] == COUPLED:
            _free_arm(s, batch, k, arm)
            cross3(arm, f, moment)
            for i in range(3):
                wrench[i] += f[i]
                wrench[3 + i] += moment[i]
    s.loads[0] = n
    s.stale[0] = True


@kernel
def swap_poses(frame):
    """The pose now and the one under the pushed forces change places."""
    one, two = frame.now, frame.then
    for i in range(3):
        one.position[i], two.position[i] = two.position[i], one.position[i]
        for j in range(3):
            one.rotation[i, j], two.rotation[i, j] = two.rotation[i, j], one.rotation[i, j]
    for i in range(4):
        one.orientation[i], two.orientation[i] = two.orientation[i], one.orientation[i]


@kernel
def end(s, batch):
    """Frame and shape are those under the pushed forces; False where the frame is nowhere."""
    frame, total = s.frame, 0.0
    if batch.wants[0].d:
        moved(s, batch)
    respond(s)
    copy(s.flat_then, s.flat)
    swap_poses(frame)
    for i in range(3):
        frame.error[i] = frame.target[i] - frame.now.position[i] if frame.grip[0] == COUPLED else 0.0
        total += abs(frame.now.position[i])
    if frame.grip[0] == COUPLED:
        quat_difference(frame.target_q, frame.now.orientation, frame.error[3:6])
    return total < np.inf


@kernel
def feel(s, batch):
    """The hand feels the batch's forces, where the points now are."""
    hand, arm, moment, at = batch.hand, s.vectors[0], s.vectors[1], s.frame.now.position
    for i in range(3):
        hand.force[i] = hand.torque[i] = 0.0
        hand.held[i] = at[i]
    for k in range(batch.count[0]):
        _placed(s, batch, k, s.frame.now, s.u, arm)
        for i in range(3):
            arm[i] -= at[i]
        cross3(arm, batch.f[k], moment)
        for i in range(3):
            hand.force[i] += batch.f[k, i]
            hand.torque[i] += moment[i]


def _smallest() -> Surface:
    """One element, rigid: the least that there is."""
    from palpo.physics.fem.material import Material
    from palpo.physics.mesh.generate import hex_block

    cube = hex_block((0.01, 0.01, 0.01), (1, 1, 1))
    return make_surface(QuasistaticBody("cube", cube, Material(1e6, 0.3, 1000.0), np.arange(8)), 1)


_SMALLEST = _smallest()


@unit(_SMALLEST)
def surface_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.engine.contract."""
    if stage == AIM:
        aim(s, batch.hand, batch.now[0] == 0)
    elif stage == BEGIN:
        begin(s, h)
        batch.speed[0] = fastest(s, h)
    elif stage == SHAPE:
        place_surface(s.boundary.rest, s.u, s.frame.now.position, s.frame.now.rotation, batch.x)
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        free(s, batch)
    elif stage == MOVED:
        moved(s, batch)
    elif stage == DELASSUS:
        delassus(s, batch, view_square(problem.w, problem.rows[1]))
    elif stage == CLEAR:
        clear(s)
    elif stage == PUSH:
        push(s, batch)
    elif stage == END:
        if not end(s, batch):
            return NOT_FINITE
        tell(s, h)
    elif stage == FEEL:
        feel(s, batch)
    else:
        return NOT_OFFERED
    return DONE


SURFACE = Kind(
    "surface",
    surface_unit,
    typeof(_SMALLEST),
    points=lambda s: len(s.u),
    room=lambda s: len(s.axes),
    springs_back=True,
)
