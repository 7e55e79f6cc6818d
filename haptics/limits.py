"""What stands between a commanded force and the hand: clamp, rate limit, watchdog and fades.

Order, each tick: the force is clamped to the device's norm, limited in rate against the last one, and
multiplied by a gain in [0, 1] that ramps linearly. The gain comes last so that nothing can delay a fade: it
reaches zero within the fade time whatever the scene commands.
  down, in `fade_out`: a force that is not finite, a tick that failed, a lost device, a stop request
    (all four latch a stop reason), or a frame older than `max_age` (the watchdog: not latched);
  up, in `fade_in` at the start, in `recovery` after the watchdog.
While the command is not usable the last good one is held under the falling gain.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from haptics.errors import HapticsError
from physics.exchange.port import STATUS_AGE, STATUS_CODE

# Flags of a tick
CLAMPED = 1
RATE_LIMITED = 2
NON_FINITE = 4
STALE = 8
STOPPING = 16
FADING = 32
DEVICE_LOST = 64
TICK_FAILED = 128
FLAG_NAMES = {
    CLAMPED: "clamped to the device's force",
    RATE_LIMITED: "limited in rate",
    NON_FINITE: "force not finite",
    STALE: "frame too old",
    STOPPING: "stopping",
    FADING: "gain below one",
    DEVICE_LOST: "device lost",
    TICK_FAILED: "tick failed",
}

# Stop reasons
RUNNING, STOP_REQUESTED, STOP_NON_FINITE, STOP_TICK_FAILED, STOP_DEVICE_LOST = (
    0,
    1,
    2,
    3,
    4,
)
REASONS = (
    "running",
    "stop requested",
    "the force was not finite",
    "the tick reported a failure",
    "the device was lost",
)

# Counters, in ticks; watchdog trips count the times it began
(
    COUNT_CLAMPED,
    COUNT_RATE_LIMITED,
    COUNT_NON_FINITE,
    COUNT_WATCHDOG_TRIPS,
    COUNT_FADING,
    COUNT_FAILED,
) = range(6)
COUNTERS = (
    "clamped",
    "rate_limited",
    "non_finite",
    "watchdog_trips",
    "fading",
    "failed",
)


class LimitParams(NamedTuple):
    """Limits of one device at one rate."""

    max_force: float
    """Largest force norm [N]."""
    max_step: float
    """Largest change of the force in a tick [N]."""
    fade_in_step: float
    fade_out_step: float
    recovery_step: float
    """Change of the gain in a tick."""
    max_age: int
    """Age of a frame [ticks] past which the force fades."""


class LimitState(NamedTuple):
    """The limiter's memory."""

    force: NDArray[np.float64]
    """Last force before the gain, shape (3,) [N]."""
    gain: NDArray[np.float64]
    """Shape (1,)."""
    words: NDArray[np.int64]
    """Stop reason, 1 once the gain has been full, 1 while the watchdog holds; shape (3,)."""
    counters: NDArray[np.int64]
    """As named in COUNTERS, shape (6,)."""


_REASON, _STARTED, _WATCHDOG = 0, 1, 2


def make_limits(
    max_force: float,
    max_rate: float = 2000.0,
    fade_in: float = 0.5,
    fade_out: float = 0.05,
    recovery: float = 0.25,
    max_age: float = 0.25,
    dt: float = 1e-3,
) -> LimitParams:
    """Limits from seconds, newtons and N/s; fade_in or recovery 0 is at once.

    Raises HapticsError on a force, rate, fade_out or age that is not positive.
    """
    for name, value in (
        ("max_force", max_force),
        ("max_rate", max_rate),
        ("fade_out", fade_out),
        ("max_age", max_age),
        ("dt", dt),
    ):
        if not value > 0.0:
            raise HapticsError(f"limit {name} = {value} must be positive")
    return LimitParams(
        float(max_force),
        float(max_rate * dt),
        _gain_step(fade_in, dt),
        _gain_step(fade_out, dt),
        _gain_step(recovery, dt),
        round(max_age / dt),
    )


def _gain_step(seconds: float, dt: float) -> float:
    return 1.0 / max(round(seconds / dt), 1) if seconds > 0.0 else 1.0


def make_limit_state(params: LimitParams) -> LimitState:
    """A limiter before its first tick: gain 0 where there is a fade-in, else full."""
    full = params.fade_in_step >= 1.0
    return LimitState(
        force=np.zeros(3),
        gain=np.array([1.0 if full else 0.0]),
        words=np.array([RUNNING, int(full), 0], dtype=np.int64),
        counters=np.zeros(len(COUNTERS), dtype=np.int64),
    )


@njit(nogil=True, cache=True)
def request_fade(state, reason):
    """Latch a stop reason, unless one is latched already: the first cause is the one to report."""
    if state.words[_REASON] == RUNNING:
        state.words[_REASON] = reason


@njit(nogil=True, cache=True)
def stop_reason(state):
    """The latched stop reason, RUNNING if there is none."""
    return state.words[_REASON]


@njit(nogil=True, cache=True)
def has_faded(state):
    """Whether a stop was asked for and the gain has reached zero."""
    return state.words[_REASON] != RUNNING and state.gain[0] == 0.0


@njit(inline="always")
def _check_command(state, port):
    """Latch what is wrong with the command; returns the flags."""
    flags = 0
    f = port.force
    if not (math.isfinite(f[0]) and math.isfinite(f[1]) and math.isfinite(f[2])):
        flags |= NON_FINITE
        state.counters[COUNT_NON_FINITE] += 1
        request_fade(state, STOP_NON_FINITE)
    elif port.status[STATUS_CODE] != 0:
        flags |= TICK_FAILED
        state.counters[COUNT_FAILED] += 1
        request_fade(state, STOP_TICK_FAILED)
    return flags


@njit(inline="always")
def _follow_command(state, params, command):
    """Move the state's force toward the clamped command, no faster than the rate; returns the flags."""
    flags = 0
    norm = math.sqrt(command[0] * command[0] + command[1] * command[1] + command[2] * command[2])
    scale = 1.0
    if norm > params.max_force:
        scale = params.max_force / norm
        flags |= CLAMPED
        state.counters[COUNT_CLAMPED] += 1
    dx = scale * command[0] - state.force[0]
    dy = scale * command[1] - state.force[1]
    dz = scale * command[2] - state.force[2]
    step = math.sqrt(dx * dx + dy * dy + dz * dz)
    if step > params.max_step:
        share = params.max_step / step
        state.force[0] += share * dx
        state.force[1] += share * dy
        state.force[2] += share * dz
        state.counters[COUNT_RATE_LIMITED] += 1
        return flags | RATE_LIMITED
    for i in range(3):
        state.force[i] = scale * command[i]
    return flags


@njit(inline="always")
def _move_gain(state, params, stale):
    """One tick of the gain's ramp; returns the flags."""
    flags = 0
    if stale:
        flags |= STALE
        state.counters[COUNT_WATCHDOG_TRIPS] += state.words[_WATCHDOG] == 0
    state.words[_WATCHDOG] = 1 if stale else 0
    stopping = state.words[_REASON] != RUNNING
    if stopping:
        flags |= STOPPING
    if stopping or stale:
        state.gain[0] -= params.fade_out_step
        # the sum of n steps of 1/n misses zero by rounding, which must not cost one more tick
        if state.gain[0] < 1e-9:
            state.gain[0] = 0.0
        state.words[_STARTED] = 1
    else:
        step = params.recovery_step if state.words[_STARTED] else params.fade_in_step
        state.gain[0] += step
        if state.gain[0] > 1.0 - 1e-9:
            state.gain[0] = 1.0
            state.words[_STARTED] = 1
    if state.gain[0] < 1.0:
        flags |= FADING
        state.counters[COUNT_FADING] += 1
    return flags


@njit(nogil=True, cache=True)
def limit_force(state, params, port, out):
    """out (3,) [N] = what may be sent of port.force; returns the tick's flags.

    Reads port.force, port.status (code and age of the frame); |out| <= max_force always, and out is finite.
    """
    flags = _check_command(state, port)
    if flags == 0:
        flags |= _follow_command(state, params, port.force)
    flags |= _move_gain(state, params, port.status[STATUS_AGE] > params.max_age)
    for i in range(3):
        out[i] = state.gain[0] * state.force[i]
    return flags
