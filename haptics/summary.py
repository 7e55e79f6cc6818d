"""A servo's statistics, limits, energy and workspace as plain values."""

import math

from palpo.haptics.clock import WAITER
from palpo.haptics.control import finished_reason
from palpo.haptics.limiter import COUNTS
from palpo.haptics.passivity import MODES
from palpo.haptics.reasons import REASONS
from palpo.haptics.servo import Servo
from palpo.haptics.statistics import summarise
from palpo.physics.exchange.buffer import ring_overflow


def servo_summary(servo: Servo) -> dict[str, object]:
    """Statistics, limits, energy of the port, workspace and stop reason as a dictionary of plain values."""
    counts = servo.limit_state.counts
    return summarise(servo.statistics, servo.period_ns) | {
        "waiter": WAITER,
        "limits": {name: int(counts[name][0]) for name in COUNTS.names or ()},
        "passivity": _passivity_summary(servo),
        "torque": {
            "peak_Nm": float(servo.energy.peak_torque[0]),
            "unrendered_J": float(servo.energy.joules["torque_work"][0]),
        },
        "workspace": _workspace_summary(servo),
        "rows_lost": int(ring_overflow(servo.ring)),
        "stop_reason": REASONS[finished_reason(servo)],
    }


def _passivity_summary(servo: Servo) -> dict[str, object]:
    joules = servo.energy.joules
    return {
        "mode": MODES[servo.limits.passivity.mode],
        "energy_J": float(joules["energy"][0]),
        "highest_J": float(joules["highest"][0]),
        "dissipated_J": float(joules["dissipated"][0]),
        "active_ticks": int(servo.energy.ticks[1]),
    }


def _workspace_summary(servo: Servo) -> dict[str, object]:
    """The scales, and how many times a stiffness of the scene is felt."""
    scale, gain = servo.workspace.scale, float(servo.limit_state.force_scale["now"][0])
    return {
        "scale": scale,
        "force_scale": gain,
        "power_consistent": math.isclose(gain, scale),
        "stiffness_felt": scale * gain,
    }
