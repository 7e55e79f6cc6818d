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
  rises, in `fade_in` at the start, in `recovery` after a wait, the watchdog or a pause.
While the command is not usable the last good one is held under the falling gain.

A device that renders torques gets them by the same rules, 1, 3 and 4, with bounds of their own.

The largest force is the least of what the operator allows, what the device says of its motors
(`VirtualDevice.allowance`) and the thermal budget: the windings' temperature over what they stand for ever,
  h' = ((|F| / F_c)^2 - h) / tau,
with the continuous force F_c and the windings' time constant tau. Up to HOT the largest force F_m is given,
from there on F_m - (F_m - F_c) (h - HOT) / (1 - HOT). It is F_c at h = 1, where h no longer rises, so that h
never exceeds 1, F_c is given for ever and F_m for -tau ln(1 - HOT (F_c / F_m)^2) seconds from cold.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.cues import CueParams, make_cues
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import GuardParams, make_guard
from palpo.haptics.passivity import PassivityParams, make_passivity
from palpo.haptics.plausible import HAND_SPEED, HAND_TURN
from palpo.physics.exchange.patience import is_stale
from palpo.physics.exchange.port import OK, WAITING
from palpo.physics.kernels import inlined, kernel

# Flags of a tick
CLAMPED = 1
RATE_LIMITED = 2
NON_FINITE = 4
STALE = 8
STOPPING = 16
FADING = 32
DEVICE_LOST = 64
TICK_FAILED = 128
PAUSING = 256
EMERGENCY = 512
STARTING_PUSHED = 1024
CLUTCHED = 2048
AT_EDGE = 4096
NEAR_LIMIT = 8192
PASSIVATED = 16384
POSE_HELD = 32768
CUED = 65536
MUTED = 131072
FLAG_NAMES = {
    CLAMPED: "clamped to the device's force",
    RATE_LIMITED: "limited in rate",
    NON_FINITE: "force not finite",
    STALE: "frame too old",
    STOPPING: "stopping",
    FADING: "gain below one",
    DEVICE_LOST: "device lost",
    TICK_FAILED: "tick failed",
    PAUSING: "pausing, or a single step of a pause",
    EMERGENCY: "emergency stop",
    STARTING_PUSHED: "held back at the start: the scene would push",
    CLUTCHED: "the scene's origin moves with the hand",
    AT_EDGE: "beyond the edge of the device's reach",
    NEAR_LIMIT: "damped near the largest force",
    PASSIVATED: "damped by the passivity controller",
    POSE_HELD: "pose not plausible, the last one held",
    CUED: "vibrates at a contact, slip, click or loss of suction",
    MUTED: "vibrations and sounds switched off",
}

# Stop reasons
(
    RUNNING,
    STOP_REQUESTED,
    STOP_NON_FINITE,
    STOP_TICK_FAILED,
    STOP_DEVICE_LOST,
    STOP_EMERGENCY,
    STOP_POSE,
) = range(7)
REASONS = (
    "running",
    "stop requested",
    "the force was not finite",
    "the tick reported a failure",
    "the device was lost",
    "emergency stop",
    "the device reported poses that no hand can have",
)

# Counters, in ticks; watchdog trips count the times it began
(
    COUNT_CLAMPED,
    COUNT_RATE_LIMITED,
    COUNT_NON_FINITE,
    COUNT_WATCHDOG_TRIPS,
    COUNT_FADING,
    COUNT_FAILED,
    COUNT_HELD_BACK,
    COUNT_AT_EDGE,
    COUNT_NEAR_LIMIT,
    COUNT_POSE_HELD,
    COUNT_WARM,
) = range(11)
COUNTERS = (
    "clamped",
    "rate_limited",
    "non_finite",
    "watchdog_trips",
    "fading",
    "failed",
    "held_back",
    "at_edge",
    "near_limit",
    "pose_held",
    "warm",
)
HOT = 0.8
"""Share of the windings' lasting temperature from which on the largest force falls."""

LET_GO = 2000.0
"""Stiffness with which a force that no frame renews gives way to the hand [N/m], above that of the stiffest
honest wall of a device (palpo.haptics.device.DeviceSpec.max_stiffness), whose energy it must not exceed."""


class LimitParams(NamedTuple):
    """What protects the hand on one device at one rate."""

    max_force: float
    """Largest force norm [N]."""
    ceiling: float
    """Largest norm [N] to which the operator may raise it: the device's."""
    max_step: float
    """Largest change of the force in a tick [N]."""
    fade_in_step: float
    fade_out_step: float
    recovery_step: float
    emergency_step: float
    """Change of the gain in a tick."""
    slew_ticks: int
    """Ticks in which a live value goes over to another."""
    hand_speed: float
    """Largest speed [m/s] of a plausible pose; infinite judges none."""
    hand_turn: float
    """Largest angular speed [rad/s] of a plausible pose."""
    max_age: int
    """Age of a frame [ticks] past which the force fades."""
    start_force: float
    """Command [N] above which the gain does not leave zero."""
    emergency_buttons: int
    """Bit mask of the buttons that, all down, ask for an emergency stop; 0 is none."""
    guard: GuardParams
    passivity: PassivityParams
    max_torque: float
    """Largest torque norm [N m]; 0 is a device that renders none."""
    max_torque_step: float
    """Largest change of the torque in a tick [N m]."""
    continuous_force: float
    """Force [N] that the motors stand for ever; infinite has no thermal budget."""
    cues: CueParams
    heating: float
    """Share of the way to its balance that the windings' temperature goes in a tick."""


SLIDE = np.dtype([("goal", np.float64), ("now", np.float64), ("change", np.float64)])
"""A live value that goes over to another: where it goes, where it is, and its change in a tick."""


class LimitState(NamedTuple):
    """The limiter's memory."""

    force: NDArray[np.float64]
    """Last force before the gain, shape (3,) [N]."""
    gain: NDArray[np.float64]
    """Shape (1,)."""
    brake: NDArray[np.float64]
    """What the dampers take off the clamped command this tick, shape (3,) [N]."""
    words: NDArray[np.int64]
    """Stop reason, phase of the start, 1 while the watchdog holds, 1 from an emergency on; shape (4,)."""
    counters: NDArray[np.int64]
    """As named in COUNTERS, shape (11,)."""
    force_scale: NDArray[Any]
    """Force scale [-] on its way to what the operator wants, shape (1,) of SLIDE."""
    max_force: NDArray[Any]
    """Largest force [N], likewise."""
    torque: NDArray[np.float64]
    """Last torque before the gain, shape (3,) [N m]."""
    motors: NDArray[np.float64]
    """Temperature of the windings over their lasting one, share that the device allows, and the largest force
    [N] of this tick, shape (3,)."""


_REASON, _PHASE, _WATCHDOG, _EMERGENCY = 0, 1, 2, 3
HEAT, _ALLOWED, _LARGEST = 0, 1, 2
# Phases of the start: the gain has not left zero, rises for the first time, has been full or has fallen since
_GATED, _RISING, _OPEN = 0, 1, 2


SLEW = 0.1
"""Seconds, at least, in which a live value goes over to another."""


class Fades(NamedTuple):
    """Times [s] in which the gain crosses from one end to the other, and what it waits for at the start."""

    fade_in: float = 0.5
    """At the start; 0 is at once, whatever the command."""
    fade_out: float = 0.05
    recovery: float = 0.25
    """Back to one after a wait, the watchdog or a pause; 0 is at once."""
    emergency: float = 0.01
    start_force: float = 0.5
    """Command [N] above which the gain does not leave zero."""


GENTLE = Fades()
AT_ONCE = Fades(fade_in=0.0)
"""Full gain from the first tick on."""


class Motors(NamedTuple):
    """What a device's motors render and stand."""

    max_torque: float = 0.0
    """Largest torque norm [N m]; 0 is a device that renders none."""
    max_torque_rate: float = 10.0
    """Fastest change of the torque [N m/s]."""
    continuous_force: float = math.inf
    """Force [N] that they stand for ever."""
    thermal_time: float = 60.0
    """Time constant of their windings [s]."""


FORCE_ONLY = Motors()
"""No torque, and a force that is stood for ever."""


def make_limits(
    max_force: float,
    max_rate: float = 500.0,
    max_age: float = 0.25,
    dt: float = 1e-3,
    *,
    fades: Fades = GENTLE,
    ceiling: float | None = None,
    emergency_buttons: int = 0,
    hand_speed: float = HAND_SPEED,
    guard: GuardParams | None = None,
    passivity: PassivityParams | None = None,
    motors: Motors = FORCE_ONLY,
    cues: CueParams | None = None,
) -> LimitParams:
    """Limits from newtons, N/s and the seconds max_age and dt.

    ceiling None is max_force. hand_speed inf judges no pose. guard None guards nothing; passivity None
    neither observes nor controls. cues None: no vibrations.
    Raises HapticsError on a force, rate, falling time or age that is not positive.
    """
    for name, value in (
        ("max_force", max_force),
        ("max_rate", max_rate),
        ("fade_out", fades.fade_out),
        ("emergency", fades.emergency),
        ("start_force", fades.start_force),
        ("max_age", max_age),
        ("hand_speed", hand_speed),
        ("continuous_force", motors.continuous_force),
        ("thermal_time", motors.thermal_time),
        ("max_torque_rate", motors.max_torque_rate),
        ("dt", dt),
    ):
        if not value > 0.0:
            raise HapticsError(f"limit {name} = {value} must be positive")
    return LimitParams(
        max_force=float(max_force),
        ceiling=float(max_force if ceiling is None else ceiling),
        max_step=float(max_rate * dt),
        fade_in_step=_gain_step(fades.fade_in, dt),
        fade_out_step=_gain_step(fades.fade_out, dt),
        recovery_step=_gain_step(fades.recovery, dt),
        emergency_step=_gain_step(fades.emergency, dt),
        slew_ticks=math.ceil(SLEW / dt * (1.0 - 1e-9)),
        hand_speed=float(hand_speed),
        hand_turn=HAND_TURN,
        max_age=round(max_age / dt),
        start_force=float(fades.start_force),
        emergency_buttons=int(emergency_buttons),
        guard=make_guard() if guard is None else guard,
        passivity=make_passivity(dt=dt) if passivity is None else passivity,
        max_torque=float(motors.max_torque),
        max_torque_step=float(motors.max_torque_rate * dt),
        continuous_force=float(motors.continuous_force),
        cues=make_cues(dt=dt) if cues is None else cues,
        heating=float(dt / motors.thermal_time),
    )


def buttons_mask(buttons: Iterable[int]) -> int:
    """Bit mask of buttons numbered from 1."""
    return sum({1 << (button - 1) for button in buttons})


def _gain_step(seconds: float, dt: float) -> float:
    return 1.0 / max(round(seconds / dt), 1) if seconds > 0.0 else 1.0


def make_limit_state(params: LimitParams) -> LimitState:
    """A limiter before its first tick: gain 0 where there is a fade-in, else full."""
    full = params.fade_in_step >= 1.0
    return LimitState(
        force=np.zeros(3),
        gain=np.array([1.0 if full else 0.0]),
        brake=np.zeros(3),
        words=np.array([RUNNING, _OPEN if full else _GATED, 0, 0], dtype=np.int64),
        counters=np.zeros(len(COUNTERS), dtype=np.int64),
        force_scale=np.array([(1.0, 1.0, 0.0)], SLIDE),
        max_force=np.array([(params.max_force, params.max_force, 0.0)], SLIDE),
        torque=np.zeros(3),
        motors=np.array([0.0, 1.0, params.max_force]),
    )


@kernel
def request_fade(state, reason):
    """Latch a stop reason, unless one is latched already: the first cause is the one to report.

    An emergency hurries the fade even then.
    """
    if state.words[_REASON] == RUNNING:
        state.words[_REASON] = reason
    if reason == STOP_EMERGENCY:
        state.words[_EMERGENCY] = 1


@kernel
def stop_reason(state):
    """The latched stop reason, RUNNING if there is none."""
    return state.words[_REASON]


@kernel
def is_emergency(state):
    """Whether an emergency stop was asked for."""
    return state.words[_EMERGENCY] != 0


@kernel
def has_faded(state):
    """Whether a stop was asked for and the gain has reached zero."""
    return state.words[_REASON] != RUNNING and state.gain[0] == 0.0


@inlined
def let_go(state, step):
    """Lower the gain by what the hand's step (3,) [m] along the last force has drawn, while the scene waits.

    The force is then that of a spring that unloads only, of stiffness K = LET_GO and energy (g F)^2 / 2 K, of
    which each step takes its own work exactly. So the whole wait gives the hand at most that, which is less
    than what a scene holds that is softer than K at the port; and K step^2 / 2 in the tick that ends it.
    Moving in any other direction gives nothing.
    """
    f, gain = state.force, state.gain[0]
    along = f[0] * step[0] + f[1] * step[1] + f[2] * step[2]
    if along > 0.0:
        square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
        state.gain[0] = math.sqrt(max(0.0, gain * gain - 2.0 * LET_GO * gain * along / square))


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
        state.counters[COUNT_NON_FINITE] += 1
        request_fade(state, STOP_NON_FINITE)
    elif port.status[0].code != OK:
        flags |= TICK_FAILED
        state.counters[COUNT_FAILED] += 1
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


@inlined
def _motors_allow(state, params, allowance):
    """Largest force [N] that the motors allow, by the thermal budget and by the device's own account.

    A sudden change of that account is gone over to as the operator's changes are.
    """
    motors, most = state.motors, 1.0 / params.slew_ticks
    change = min(max(allowance, 0.0), 1.0) - motors[_ALLOWED]
    motors[_ALLOWED] += min(max(change, -most), most)
    full, lasting = params.ceiling, params.continuous_force
    allowed = full
    if lasting < full and motors[HEAT] > HOT:
        allowed -= (full - lasting) * min((motors[HEAT] - HOT) / (1.0 - HOT), 1.0)
    allowed = min(allowed, motors[_ALLOWED] * full)
    state.counters[COUNT_WARM] += allowed < full
    return allowed


@inlined
def _heat_up(state, params, out):
    """A tick of the windings' temperature under the force (3,) [N] that is sent."""
    lasting = params.continuous_force
    if math.isinf(lasting):
        return
    square = (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]) / (lasting * lasting)
    state.motors[HEAT] += params.heating * (square - state.motors[HEAT])


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
    nothing_felt = state.gain[0] == 0.0
    _go_over(state.force_scale[0], scale, params.slew_ticks, nothing_felt)
    _go_over(state.max_force[0], largest, params.slew_ticks, nothing_felt)
    state.motors[_LARGEST] = min(state.max_force[0].now, _motors_allow(state, params, allowance))


@inlined
def force_scale_now(state):
    """Device force per scene force [-] in this tick."""
    return state.force_scale[0].now


@inlined
def largest_force(state):
    """Largest norm [N] in this tick."""
    return state.motors[_LARGEST]


@inlined
def _norm(x, y, z):
    return math.sqrt(x * x + y * y + z * z)


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
        state.counters[COUNT_CLAMPED] += 1
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
        state.counters[COUNT_RATE_LIMITED] += 1
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
    state.gain[0] -= params.emergency_step if is_emergency(state) else params.fade_out_step
    # the sum of n steps of 1/n misses zero by rounding, which must not cost one more tick
    if state.gain[0] < 1e-9:
        state.gain[0] = 0.0
    # a start that has not begun stays gated
    if state.words[_PHASE] == _RISING:
        state.words[_PHASE] = _OPEN


@inlined
def _rise(state, params):
    """One tick of the gain's rising ramp."""
    if state.words[_PHASE] == _GATED:
        state.words[_PHASE] = _RISING
    state.gain[0] += params.fade_in_step if state.words[_PHASE] == _RISING else params.recovery_step
    if state.gain[0] > 1.0 - 1e-9:
        state.gain[0] = 1.0
        state.words[_PHASE] = _OPEN


@inlined
def _move_gain(state, params, command, stale, waiting, pausing):
    """One tick of the gain under a command of this norm [N]; returns the flags."""
    flags = PAUSING if pausing else 0
    if stale:
        flags |= STALE
        state.counters[COUNT_WATCHDOG_TRIPS] += state.words[_WATCHDOG] == 0
    state.words[_WATCHDOG] = 1 if stale else 0
    if is_emergency(state):
        flags |= EMERGENCY
    if state.words[_REASON] != RUNNING:
        flags |= STOPPING
    if flags != 0:
        _fall(state, params)
    elif state.words[_PHASE] == _GATED and command > params.start_force:
        flags |= STARTING_PUSHED
        state.counters[COUNT_HELD_BACK] += 1
    elif not waiting:
        _rise(state, params)
    if state.gain[0] < 1.0:
        flags |= FADING
        state.counters[COUNT_FADING] += 1
    return flags


@kernel
def limit_force(state, params, port, out, pausing=False):
    """out (3,) [N] = what may be sent of port.force; returns the tick's flags.

    Reads port.force, port.status (code, age of the frame, flags), the live values and state.brake. out is
    finite, |out| <= max_force always; when the operator lowers the limit the force follows at its rate.
    """
    flags = _check_command(state, params, port)
    if flags == 0:
        flags |= _follow_command(state, params, port)
        _follow_torque(state, params, port)
    f = port.force
    stale, waiting = is_stale(port, params.max_age), port.status[0].flags & WAITING != 0
    flags |= _move_gain(state, params, _norm(f[0], f[1], f[2]), stale, waiting, pausing)
    for i in range(3):
        out[i] = state.gain[0] * state.force[i]
    _heat_up(state, params, out)
    return flags


@inlined
def felt_torque(state, out):
    """out (3,) [N m] = the torque that goes with the force of `limit_force`."""
    for i in range(3):
        out[i] = state.gain[0] * state.torque[i]
