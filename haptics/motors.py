"""What a device's motors render and stand: torques, and a thermal budget of the force.

The windings' temperature over what they stand for ever is

  h' = ((|F| / F_c)^2 - h) / tau,

with the continuous force F_c and the windings' time constant tau. Up to HOT the largest force F_m is given,
from there on F_m - (F_m - F_c) (h - HOT) / (1 - HOT). It is F_c at h = 1, where h no longer rises, so that h
never exceeds 1, F_c is given for ever and F_m for -tau ln(1 - HOT (F_c / F_m)^2) seconds from cold.
"""

import math
from typing import NamedTuple

import numpy as np

from palpo.physics.numerics.kernels import inlined

HOT = 0.8
"""Share of the windings' lasting temperature from which on the largest force falls."""


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

WINDINGS = np.dtype([("heat", np.float64), ("allowed", np.float64)])
"""Temperature of the windings over their lasting one, and the share of the largest force that the device
allows."""


@inlined
def motors_allow(windings, params, allowance):
    """Largest force [N] that the motors allow, by the thermal budget and by the device's own account.

    params: LimitParams. A sudden change of that account is gone over to as the operator's changes are.
    """
    most = 1.0 / params.slew_ticks
    change = min(max(allowance, 0.0), 1.0) - windings.allowed
    windings.allowed += min(max(change, -most), most)
    full, lasting = params.ceiling, params.continuous_force
    allowed = full
    if lasting < full and windings.heat > HOT:
        allowed -= (full - lasting) * min((windings.heat - HOT) / (1.0 - HOT), 1.0)
    return min(allowed, windings.allowed * full)


@inlined
def heat_up(windings, params, out):
    """A tick of the windings' temperature under the force (3,) [N] that is sent."""
    lasting = params.continuous_force
    if math.isinf(lasting):
        return
    square = (out[0] * out[0] + out[1] * out[1] + out[2] * out[2]) / (lasting * lasting)
    windings.heat += params.heating * (square - windings.heat)
