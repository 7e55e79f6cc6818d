"""What protects the hand on one device: its limits, from newtons and seconds to one tick's share of them.

`palpo.haptics.limiter` keeps them.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from palpo.haptics.cues import CueParams, make_cues
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import FORCE_ONLY, GuardParams, Motors, make_guard
from palpo.haptics.passivity import PassivityParams, make_passivity
from palpo.haptics.plausible import HAND_SPEED, HAND_TURN


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
