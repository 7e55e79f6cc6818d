"""What stands between a commanded force and the hand: clamp, dampers, rate limit, watchdog and fades.

What an operator changes for the device's side, force scale and largest force, goes over to its new value
evenly in at least SLEW seconds; at once only while nothing is felt.

Order, each tick:
  1. the command is clamped to the device's norm;
  2. what the dampers take (`LimitState.brake`) comes off, and the norm is held again. They must act on the
     clamped force: off a command of 30 N, 1 N of damping would vanish in a clamp to 3 N;
  3. the force is limited in rate against the last one;
  4. it is multiplied by a gain in [0, 1] that ramps linearly. The gain comes last so that nothing can delay a
     fade: it reaches zero within the fade time whatever the scene commands.
The gain
  stays zero at the start while the command exceeds `start_force`: nothing begins by pushing;
  stands still while the scene waits for a frame, but for what `let_go` takes off it;
  falls, in `fade_out`, for a force that is not finite, a tick that failed, a lost device, a stop request
    (all four latch a stop reason), a frame older than `max_age` (the watchdog) or a pause (neither latched);
    in `emergency` once an emergency stop was asked for;
  falls in `fade_out` once a body's model went astray, to zero until the command is below `start_force`;
  falls to zero once the servo stood still (`note_lateness`): the hand was elsewhere meanwhile;
  rises, in `fade_in` at the start, in `recovery` after a wait, a standstill, the watchdog or a pause.
While the command is not usable, or answers a hand that was not followed, the last good one is held under the
falling gain.

A device that renders torques gets them by the same rules, 1, 3 and 4, with bounds of their own.

The largest force is the least of what the operator allows, what the device says of its motors
(`VirtualDevice.allowance`) and their thermal budget (palpo.haptics.guard).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.flags import (
    CLAMPED,
    DEFORMED,
    EMERGENCY,
    FADING,
    NON_FINITE,
    PAUSING,
    RATE_LIMITED,
    STALE,
    STARTING_PUSHED,
    STOOD_STILL,
    STOPPING,
    TICK_FAILED,
)
from palpo.haptics.guard import WINDINGS, heat_up, motors_allow
from palpo.haptics.limits import LimitParams
from palpo.haptics.reasons import RUNNING, STOP_EMERGENCY, STOP_NON_FINITE, STOP_TICK_FAILED
from palpo.physics.exchange.frames import is_stale
from palpo.physics.exchange.port import OK, SHAPE_LOST, WAITING
from palpo.physics.numerics.kernels import inlined, kernel

LET_GO = 2000.0
"""Stiffness with which a force that no frame renews gives way to the hand [N/m], above that of the stiffest
honest wall of a device (palpo.haptics.device_spec.DeviceSpec.max_stiffness), whose energy it must not
exceed."""

LONGEST_LATENESS = 50_000_000
"""Lateness of a tick [ns] above which the servo stood still: that of a busy machine stays below."""

COUNTS = np.dtype(
    [(name, np.int64) for name in (
        "clamped", "rate_limited", "non_finite", "watchdog_trips", "fading", "failed", "held_back", "at_edge",
        "near_limit", "pose_held", "warm", "standstills", "shapes_lost",
    )]
)  # fmt: skip
"""Ticks in which the limiter did something; of `watchdog_trips`, `standstills`, `shapes_lost` how often."""

GATE = np.dtype(
    [("gain", np.float64), ("largest", np.float64), ("phase", np.int64), ("watchdog", np.int64),
     ("reason", np.int64), ("emergency", np.int64), ("standstill", np.int64), ("shape_lost", np.int64)]
)  # fmt: skip
"""The gain in [0, 1]; the largest force [N] of this tick; the phase of the start; 1 while the watchdog holds;
the latched stop reason; 1 from an emergency on; NOTED after the servo stood still, then COUNTED until the
force has faded; 1 from when a body's model went astray until the hand has let go."""

NOTED, COUNTED = 1, 2

# Phases of the start: the gain has not left zero, rises for the first time, has been full or has fallen since
_GATED, _RISING, _OPEN = 0, 1, 2

SLIDE = np.dtype([("goal", np.float64), ("now", np.float64), ("change", np.float64)])
"""A live value that goes over to another: where it goes, where it is, and its change in a tick."""


class LimitState(NamedTuple):
    """The limiter's memory."""

    force: NDArray[np.float64]
    """Last force before the gain, shape (3,) [N]."""
    gate: NDArray[np.void]
    """Shape (1,) of GATE."""
    brake: NDArray[np.float64]
    """What the dampers take off the clamped command this tick, shape (3,) [N]."""
    counts: NDArray[np.void]
    """Shape (1,) of COUNTS."""
    force_scale: NDArray[Any]
    """Force scale [-] on its way to what the operator wants, shape (1,) of SLIDE."""
    max_force: NDArray[Any]
    """Largest force [N], likewise."""
    torque: NDArray[np.float64]
    """Last torque before the gain, shape (3,) [N m]."""
    windings: NDArray[np.void]
    """Shape (1,) of WINDINGS."""


def make_limit_state(params: LimitParams) -> LimitState:
    """A limiter before its first tick: gain 0 where there is a fade-in, else full."""
    full = params.fade_in_step >= 1.0
    gate = np.zeros(1, GATE)
    gate["gain"], gate["largest"], gate["phase"] = float(full), params.max_force, _OPEN if full else _GATED
    gate["reason"] = RUNNING
    return LimitState(
        force=np.zeros(3),
        gate=gate,
        brake=np.zeros(3),
        counts=np.zeros(1, COUNTS),
        force_scale=np.array([(1.0, 1.0, 0.0)], SLIDE),
        max_force=np.array([(params.max_force, params.max_force, 0.0)], SLIDE),
        torque=np.zeros(3),
        windings=np.array([(0.0, 1.0)], WINDINGS),
    )


@kernel
def request_fade(state, reason):
    """Latch a stop reason, unless one is latched already: the first cause is the one to report.

    An emergency hurries the fade even then.
    """
    if state.gate[0].reason == RUNNING:
        state.gate[0].reason = reason
    if reason == STOP_EMERGENCY:
        state.gate[0].emergency = 1


@kernel
def stop_reason(state):
    """The latched stop reason, RUNNING if there is none."""
    return state.gate[0].reason


@kernel
def is_emergency(state):
    """Whether an emergency stop was asked for."""
    return state.gate[0].emergency != 0


@kernel
def has_faded(state):
    """Whether a stop was asked for and the gain has reached zero."""
    return state.gate[0].reason != RUNNING and state.gate[0].gain == 0.0


@inlined
def note_lateness(state, late_ns):
    """Take a tick this late [ns] for one after which the force has to fade, whatever the hand did meanwhile.

    The process was stopped, the machine slept, or something else had the processor: the device held the last
    force for as long.
    """
    if late_ns > LONGEST_LATENESS and state.gate[0].standstill == 0:
        state.gate[0].standstill = NOTED


@inlined
def stood_still(state):
    """Whether the force fades since the servo stood still."""
    return state.gate[0].standstill != 0


@inlined
def let_go(state, step):
    """Lower the gain by what the hand's step (3,) [m] along the last force has drawn, while not followed.

    The force is then that of a spring that unloads only, of stiffness K = LET_GO and energy (g F)^2 / 2 K, of
    which each step takes its own work exactly. So the whole wait gives the hand at most that, which is less
    than what a scene holds that is softer than K at the port; and K step^2 / 2 in the tick that ends it.
    Moving in any other direction gives nothing.
    """
    f, gain = state.force, state.gate[0].gain
    along = f[0] * step[0] + f[1] * step[1] + f[2] * step[2]
    if along > 0.0:
        square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
        state.gate[0].gain = math.sqrt(max(0.0, gain * gain - 2.0 * LET_GO * gain * along / square))


@inlined
def _norm(x, y, z):
    return math.sqrt(x * x + y * y + z * z)


@inlined
def way_left(state):
    """The way [m] along the last force after which `let_go` has taken all of it, device axes."""
    f = state.force
    return state.gate[0].gain * _norm(f[0], f[1], f[2]) / LET_GO


@inlined
def _check_command(state, params, port):
    """Latch what is wrong with the command; returns the flags."""
    flags = 0
    f, t = port.force, port.torque
    felt = abs(f[0]) + abs(f[1]) + abs(f[2])
    if params.max_torque > 0.0:
        felt += abs(t[0]) + abs(t[1]) + abs(t[2])
    if not math.isfinite(felt):
        flags |= NON_FINITE
        state.counts[0].non_finite += 1
        request_fade(state, STOP_NON_FINITE)
    elif port.status[0].code != OK:
        flags |= TICK_FAILED
        state.counts[0].failed += 1
        request_fade(state, STOP_TICK_FAILED)
    return flags


@inlined
def _go_over(live, goal, ticks, at_once):
    """One tick of a live value on its way to a goal: even steps, laid out when the goal changes."""
    if goal != live.goal:
        live.goal = goal
        live.change = abs(goal - live.now) / ticks
    step, left = live.change, goal - live.now
    # the sum of n steps may miss the goal by a rounding, which must not cost one more tick
    if at_once or abs(left) <= step * (1.0 + 1e-9):
        live.now = goal
    else:
        live.now += step if left > 0.0 else -step


@kernel
def slew_live(state, params, force_scale, port, allowance=1.0):
    """Bring the live values a tick nearer to what the operator wants; force_scale: the workspace's own.

    The largest force is never above the ceiling, nor above what the motors allow, of which the device may
    say a share itself. A value that is no number leaves what there was.
    """
    wanted = port.live[0].force_scale
    scale = wanted if math.isfinite(wanted) else force_scale
    wanted = port.live[0].max_force
    largest = min(max(wanted, 0.0), params.ceiling) if math.isfinite(wanted) else params.max_force
    nothing_felt = state.gate[0].gain == 0.0
    _go_over(state.force_scale[0], scale, params.slew_ticks, nothing_felt)
    _go_over(state.max_force[0], largest, params.slew_ticks, nothing_felt)
    allowed = motors_allow(state.windings[0], params, allowance)
    state.counts[0].warm += allowed < params.ceiling
    state.gate[0].largest = min(state.max_force[0].now, allowed)


@inlined
def force_scale_now(state):
    """Device force per scene force [-] in this tick."""
    return state.force_scale[0].now


@inlined
def largest_force(state):
    """Largest norm [N] in this tick."""
    return state.gate[0].largest


@inlined
def _follow_command(state, params, port):
    """Move the state's force toward the clamped and damped command, no faster than the rate; the flags."""
    flags = 0
    f, brake, largest = port.force, state.brake, largest_force(state)
    norm = _norm(f[0], f[1], f[2])
    scale = 1.0
    if norm > largest:
        scale = largest / norm
        flags |= CLAMPED
        state.counts[0].clamped += 1
    x, y, z = scale * f[0] - brake[0], scale * f[1] - brake[1], scale * f[2] - brake[2]
    norm = _norm(x, y, z)
    if norm > largest:
        x, y, z = x * largest / norm, y * largest / norm, z * largest / norm
    dx, dy, dz = x - state.force[0], y - state.force[1], z - state.force[2]
    step = _norm(dx, dy, dz)
    if step > params.max_step:
        share = params.max_step / step
        state.force[0] += share * dx
        state.force[1] += share * dy
        state.force[2] += share * dz
        state.counts[0].rate_limited += 1
        return flags | RATE_LIMITED
    state.force[0], state.force[1], state.force[2] = x, y, z
    return flags


@inlined
def _follow_torque(state, params, port):
    """Move the state's torque toward the clamped command, no faster than its rate."""
    t, torque = port.torque, state.torque
    if params.max_torque == 0.0:
        return
    norm = _norm(t[0], t[1], t[2])
    scale = params.max_torque / norm if norm > params.max_torque else 1.0
    dx, dy, dz = scale * t[0] - torque[0], scale * t[1] - torque[1], scale * t[2] - torque[2]
    step = _norm(dx, dy, dz)
    share = params.max_torque_step / step if step > params.max_torque_step else 1.0
    torque[0] += share * dx
    torque[1] += share * dy
    torque[2] += share * dz


@inlined
def _fall(state, params):
    """One tick of the gain's falling ramp."""
    state.gate[0].gain -= params.emergency_step if is_emergency(state) else params.fade_out_step
    # the sum of n steps of 1/n misses zero by rounding, which must not cost one more tick
    if state.gate[0].gain < 1e-9:
        state.gate[0].gain = 0.0
    # a start that has not begun stays gated
    if state.gate[0].phase == _RISING:
        state.gate[0].phase = _OPEN


@inlined
def _rise(state, params):
    """One tick of the gain's rising ramp."""
    if state.gate[0].phase == _GATED:
        state.gate[0].phase = _RISING
    state.gate[0].gain += params.fade_in_step if state.gate[0].phase == _RISING else params.recovery_step
    if state.gate[0].gain > 1.0 - 1e-9:
        state.gate[0].gain = 1.0
        state.gate[0].phase = _OPEN


@inlined
def _move_gain(state, params, command, stale, tick_flags, pausing):
    """One tick of the gain under a command of this norm [N] and the tick's flags; returns the limiter's."""
    flags = PAUSING if pausing else 0
    waiting, gate = tick_flags & WAITING != 0, state.gate[0]
    if tick_flags & SHAPE_LOST != 0:
        state.counts[0].shapes_lost += gate.shape_lost == 0
        gate.shape_lost = 1
    elif gate.gain == 0.0 and not waiting and command <= params.start_force:
        gate.shape_lost = 0
    if gate.shape_lost != 0:
        flags |= DEFORMED
    if stale:
        flags |= STALE
        state.counts[0].watchdog_trips += state.gate[0].watchdog == 0
    state.gate[0].watchdog = 1 if stale else 0
    if is_emergency(state):
        flags |= EMERGENCY
    if state.gate[0].reason != RUNNING:
        flags |= STOPPING
    if stood_still(state):
        flags |= STOOD_STILL
        state.counts[0].standstills += state.gate[0].standstill == NOTED
        state.gate[0].standstill = COUNTED
    if flags != 0:
        _fall(state, params)
    elif state.gate[0].phase == _GATED and command > params.start_force:
        flags |= STARTING_PUSHED
        state.counts[0].held_back += 1
    elif not waiting:
        _rise(state, params)
    if state.gate[0].gain == 0.0:
        state.gate[0].standstill = 0
    if state.gate[0].gain < 1.0:
        flags |= FADING
        state.counts[0].fading += 1
    return flags


@kernel
def limit_force(state, params, port, out, pausing=False):
    """out (3,) [N] = what may be sent of port.force; returns the tick's flags.

    Reads port.force, port.status (code, age of the frame, flags), the live values and state.brake. out is
    finite, |out| <= max_force always; when the operator lowers the limit the force follows at its rate.
    """
    flags = _check_command(state, params, port)
    if flags == 0 and not stood_still(state):
        flags |= _follow_command(state, params, port)
        _follow_torque(state, params, port)
    f = port.force
    stale = is_stale(port, params.max_age)
    flags |= _move_gain(state, params, _norm(f[0], f[1], f[2]), stale, port.status[0].flags, pausing)
    for i in range(3):
        out[i] = state.gate[0].gain * state.force[i]
    heat_up(state.windings[0], params, out)
    return flags


@inlined
def felt_torque(state, out):
    """out (3,) [N m] = the torque that goes with the force of `limit_force`."""
    for i in range(3):
        out[i] = state.gate[0].gain * state.torque[i]
