"""One hand's part of a step: its pose into the scene before the tick, its force to its device after it."""

import math

from palpo.haptics.clutch import changes_grip, follow_hand, slip, take_hold, take_start
from palpo.haptics.control import TAKE
from palpo.haptics.cues import add_vibration, heed_events
from palpo.haptics.device import (
    DEVICE_ERRED,
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    TABLE,
    device_read,
    device_write,
)
from palpo.haptics.flags import (
    AT_EDGE,
    CLUTCHED,
    CUED,
    DEVICE_LOST,
    MUTED,
    NEAR_LIMIT,
    PASSIVATED,
    POSE_HELD,
    TAKEN,
)
from palpo.haptics.guard import brake_near_limit, push_inward
from palpo.haptics.limiter import (
    felt_torque,
    force_scale_now,
    is_emergency,
    largest_force,
    let_go,
    limit_force,
    note_lateness,
    request_fade,
    slew_live,
    stood_still,
    stop_reason,
    way_left,
)
from palpo.haptics.passivity import brake_delivery, observe_port, observe_torque
from palpo.haptics.plausible import HELD_TICKS, judge_pose, keep_pose
from palpo.haptics.reasons import STOP_DEVICE_LOST, STOP_EMERGENCY, STOP_POSE
from palpo.haptics.workspace import force_to_device
from palpo.physics.exchange.atomics import load_acquire, store_release
from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def _read_device(servo, tick, late_ns):
    """Read pose and buttons, a period and late_ns after the last time at most; returns the flags."""
    flags, port, limits = 0, servo.device_port, servo.limits
    health, source = device_read(servo.device, tick, port), servo.device.source
    if health == DEVICE_GONE:
        request_fade(servo.limit_state, STOP_DEVICE_LOST)
        flags = DEVICE_LOST
    # a pointer has no motors, and a recording has been judged; a device that is given up stays so
    judged = source in (TABLE, EXTERNAL)
    given_up = health == DEVICE_ERRED or stop_reason(servo.limit_state) == STOP_POSE
    plausible = not given_up and judge_pose(
        servo.pose, limits.hand_speed if judged else math.inf, limits.hand_turn, port,
        servo.dt + 1e-9 * late_ns,
    )  # fmt: skip
    held = keep_pose(servo.pose, port, plausible)
    if held > 0:
        flags |= POSE_HELD
        servo.limit_state.counts[0].pose_held += 1
    if held > HELD_TICKS:
        request_fade(servo.limit_state, STOP_POSE)
    together = servo.limits.emergency_buttons
    if together != 0 and servo.device_port.buttons[0] & together == together:
        request_fade(servo.limit_state, STOP_EMERGENCY)
    return flags


@kernel
def stand_still(servo, tick, late_ns):
    """A period of one frozen hand: zero force.

    A scripted hand stands still with the scene; a pointer or a real stylus moves on.
    """
    for i in range(3):
        servo.sent[i] = servo.turned[i] = 0.0
    if servo.device.source != TABLE:
        _read_device(servo, tick, late_ns)
        device_write(servo.device, servo.sent)


@inlined
def _follow(servo, tick, frozen, slips):
    """Bring the pose into the scene; returns the flags."""
    pressed = servo.device_port.buttons[0] & servo.workspace.clutch_buttons != 0
    # at the first tick there is no place yet to hold, but the one that a start was asked for at
    clutched = pressed and tick > 0 and not is_emergency(servo.limit_state)
    starts = take_start(servo.clutch)
    held = starts or frozen or clutched
    clutch, workspace, port, gain = servo.clutch, servo.workspace, servo.port, servo.limit_state.gate[0].gain
    taken = load_acquire(servo.control, TAKE) != 0
    if taken:
        store_release(servo.control, TAKE, 0)
    take = taken or (starts and workspace.takes != 0)
    still = changes_grip(workspace, servo.device_port, port, take) or frozen or starts
    if held:
        follow_hand(clutch, workspace, servo.device_port, port, True, still, servo.dt)
    elif slips:
        most = workspace.scale * way_left(servo.limit_state)
        slip(clutch, workspace, servo.device_port, port, most, servo.dt)
    else:
        take_hold(clutch, workspace, servo.device_port, port, still, gain, servo.dt)
    return (CLUTCHED if held else 0) | (TAKEN if taken else 0)


@inlined
def _guard(servo):
    """Guards on the command; returns the flags."""
    flags = 0
    port, state, params = servo.device_port, servo.limit_state, servo.limits
    if push_inward(params.guard, port):
        flags |= AT_EDGE
        state.counts[0].at_edge += 1
    for i in range(3):
        state.brake[i] = 0.0
    if brake_near_limit(params.guard, largest_force(state), port, state.brake):
        flags |= NEAR_LIMIT
        state.counts[0].near_limit += 1
    if brake_delivery(servo.energy, params.passivity, state.brake):
        flags |= PASSIVATED
    return flags


@kernel
def take_in(servo, tick, frozen, waiting, late_ns):
    """One hand's part of a step before the tick: its pose into the scene, its energy booked."""
    if tick > 0:
        note_lateness(servo.limit_state, late_ns)
    slips = waiting or stood_still(servo.limit_state)
    servo.flags[0] = _read_device(servo, tick, late_ns)
    servo.flags[0] |= _follow(servo, tick, frozen, slips)
    observe_port(
        servo.energy,
        servo.limits.passivity,
        servo.device_port,
        servo.sent,
        servo.turned,
        servo.limit_state.gate[0].gain,
        frozen,
    )
    if slips:
        let_go(servo.limit_state, servo.energy.step)


@inlined
def _cue(servo, hand, muted):
    """What has happened to what a hand holds, and its vibration; returns the flags."""
    state, port, cues = servo.limit_state, servo.device_port, servo.limits.cues
    silent = muted or state.gate[0].gain == 0.0
    heed_events(servo.cues, cues, port, hand, largest_force(state), silent)
    flags = CUED if add_vibration(servo.cues, cues, port.force) else 0
    return flags | (MUTED if muted else 0)


@kernel
def give_out(servo, pausing, hand, muted):
    """One hand's part of a step after the tick: its force to its device, within its limits."""
    state = servo.limit_state
    slew_live(state, servo.limits, servo.workspace.force_scale, servo.port, servo.device.allowance[0])
    force_to_device(servo.workspace, force_scale_now(state), servo.port, servo.device_port)
    observe_torque(servo.energy, servo.device_port)
    servo.flags[0] |= _guard(servo)
    servo.flags[0] |= _cue(servo, hand, muted)
    servo.flags[0] |= limit_force(state, servo.limits, servo.device_port, servo.sent, pausing)
    felt_torque(state, servo.turned)
    if device_write(servo.device, servo.sent) != DEVICE_OK:
        request_fade(state, STOP_DEVICE_LOST)
