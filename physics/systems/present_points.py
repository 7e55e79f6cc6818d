"""Where the scene's points are in a tick, and where its free motion takes them."""

from palpo.physics.collision.topology import LOW
from palpo.physics.exchange.ahead import row_at
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import dot3, quat_rotate
from palpo.physics.reduction.interface_model import slot_orientation, slot_position, slot_step


@inlined
def see_point(s, f, p):
    """Make points.x[p] present; tool and static points already are."""
    if s.points.x_tick[p] == s.counts.tick[0]:
        return
    if s.topology.body_role[s.topology.point_body[p]] != LOW:
        return
    slot = s.frame.slot_of[f, p]
    x = s.points.x[p]
    slot_position(s.frame, f, s.interface, slot, x)
    s.points.x_tick[p] = s.counts.tick[0]
    s.seen[0] += x[0] + x[1] + x[2]


@inlined
def see_step(s, f, p):
    """Make points.step[p] present for a low-rate point."""
    if p < 0 or s.points.step_tick[p] == s.counts.tick[0]:
        return
    if s.topology.body_role[s.topology.point_body[p]] != LOW:
        return
    see_point(s, f, p)
    slot = s.frame.slot_of[f, p]
    slot_step(s.frame, f, s.interface, slot, s.points.x[p], s.settings.step[0], s.points.step[p])
    if s.frame.slot_turns[f, slot] == 1:
        slot_orientation(s.frame, f, s.interface, slot, s.points.x[p], s.scratch[2], s.points.q[p])
    s.points.step_tick[p] = s.counts.tick[0]


@kernel
def see_tool(s):
    """Positions (and orientations) of the tool's points and of the scripted ones; the odometer's travel."""
    tick, lever = s.counts.tick[0], s.scratch[1]
    for p in range(s.tool_points.span[0], s.tool_points.span[1]):
        k = s.tool_points.frame[p]
        quat_rotate(s.tool.q[k], s.tool_points.lever[p], lever)
        for i in range(3):
            s.points.x[p, i] = s.tool.x[k, i] + lever[i]
        for i in range(4):
            s.points.q[p, i] = s.tool.q[k, i]
    if s.moving.point.shape[0] > 0:
        now = row_at(s.moving.known, s.moving.x.shape[1], tick)
        for m in range(s.moving.point.shape[0]):
            p = s.moving.point[m]
            for i in range(3):
                s.points.x[p, i] = s.moving.x[m, now, i]
            for i in range(4):
                s.points.q[p, i] = s.moving.q[m, now, i]


@kernel
def fastest_tool_point(s):
    """Bound on the speed of the tool's points in this tick [m/s], before and after its free motion."""
    worst = 0.0
    for k in range(s.twist.shape[0]):
        reach = 0.0
        for p in range(s.tool_points.span[0], s.tool_points.span[1]):
            if s.tool_points.frame[p] == k:
                reach = max(reach, dot3(s.tool_points.lever[p], s.tool_points.lever[p]) ** 0.5)
        linear, turning = 0.0, 0.0
        for i in range(3):
            linear += s.twist[k, i] ** 2
            turning += s.twist[k, 3 + i] ** 2
        worst = max(worst, linear**0.5 + reach * turning**0.5)
        linear, turning = 0.0, 0.0
        for i in range(3):
            linear += s.tool.v[k, i] ** 2
            turning += s.tool.w[k, i] ** 2
        worst = max(worst, linear**0.5 + reach * turning**0.5)
    return worst
