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
body of another modulus has its compliance, and its sag, divided by it. A body that goes over to another
Poisson's ratio has (1 - s) C + s C_2 for a share s: positive definite all the way, and at its end C_2 to the
last bit.
"""

import numpy as np
from numba import typeof

from palpo.physics.bodies.boundary import add_lower_delassus, add_surface_displacement, place_surface
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.compliance.points import add_low_rank
from palpo.physics.compliance.surface_points import fastest, fastest_told, free_arm, placed, sag, tell
from palpo.physics.compliance.surface_state import COUPLED, HELD, STANDS, Surface, make_surface
from palpo.physics.contract.stages import (
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
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    cross3,
    matvec3,
    matvec3_transposed,
    quat_difference,
    quat_to_matrix,
    rotate_by,
)


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
    frame, gains, turn = s.frame, s.frame.gains[0], s.vectors[0]
    _weigh(s, frame.now.rotation)
    s.stale[0] = True
    frame.free[:] = 0.0
    frame.give[:] = 0.0
    if frame.grip[0] != COUPLED:
        return
    quat_difference(frame.target_q, frame.now.orientation, turn)
    damped, damped_turn = gains.damping / h, gains.turn_damping / h
    stiff, stiff_turn = gains.stiffness + damped, gains.turn_stiffness + damped_turn
    for i in range(3):
        frame.give[i] = 1.0 / stiff
        frame.give[3 + i] = 1.0 / stiff_turn
        frame.free[i] = (1.0 - damped / stiff) * frame.error[i]
        frame.free[3 + i] = turn[i] - damped_turn / stiff_turn * frame.error[3 + i]


@kernel
def place(s, batch):
    """x of the batch; q is the frame's."""
    for k in range(batch.count[0]):
        placed(s, batch, k, s.frame.now, s.u, batch.x[k])
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
                    local[j] += weight * (sag(s, a, j) - s.u[a, j])
        matvec3(frame.now.rotation, local, batch.d[k])
        if frame.grip[0] == COUPLED:
            free_arm(s, batch, k, arm)
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
    frame, turn = s.frame, s.vectors[0]
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
            s.u_then[a, j] = sag(s, a, j)
    _weigh(s, frame.now.rotation)
    share = s.share[0]
    if share < 1.0:
        _add_response(s, s.boundary, (1.0 - share) * s.softness[0])
    if share > 0.0:
        _add_response(s, s.second, share * s.softness[0])


@kernel
def _add_response(s, boundary, scale):
    """flat_then += the pushed forces' displacement by that boundary, so many times."""
    n = s.loads[0]
    for m in range(n):
        matvec3_transposed(s.frame.then.rotation, s.push[m], s.local[m])
        for j in range(3):
            s.local[m, j] *= scale
    add_surface_displacement(boundary.compliance, s.loaded[:n], s.local[:n], s.flat_then)


@kernel
def moved(s, batch):
    """d of the batch under the pushed forces."""
    x, y = s.vectors[0], s.vectors[1]
    respond(s)
    for k in range(batch.count[0]):
        placed(s, batch, k, s.frame.now, s.u, x)
        placed(s, batch, k, s.frame.then, s.u_then, y)
        for i in range(3):
            batch.d[k, i] = y[i] - x[i]
            batch.v[k, i] = 0.0


@kernel
def _add_delassus(s, boundary, batch, scale, w):
    """w += H C H^T of that boundary, scale^2 times."""
    n, rotation = batch.count[0], s.frame.now.rotation
    for k in range(n):
        for d in range(3):
            axis = batch.axes[k, d]
            for j in range(3):
                s.axes[k, d, j] = scale * (
                    rotation[0, j] * axis[0] + rotation[1, j] * axis[1] + rotation[2, j] * axis[2]
                )
    add_lower_delassus(boundary.compliance, n, batch.block, batch.slots, batch.weights, s.axes, s.gather, w)


@kernel
def delassus(s, batch, w):
    """w += H K^-1 H^T, and the coupling's six columns."""
    n, frame, share, arm = batch.count[0], s.frame, s.share[0], s.vectors[0]
    if share < 1.0:
        _add_delassus(s, s.boundary, batch, (1.0 - share) ** 0.5 * s.softness[0] ** 0.5, w)
    if share > 0.0:
        _add_delassus(s, s.second, batch, share**0.5 * s.softness[0] ** 0.5, w)
    if frame.grip[0] != COUPLED:
        return
    for k in range(n):
        free_arm(s, batch, k, arm)
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
            free_arm(s, batch, k, arm)
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
        placed(s, batch, k, s.frame.now, s.u, arm)
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
    """The stages of palpo.physics.contract.stages."""
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
        batch.speed[0] = fastest_told(s)
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
