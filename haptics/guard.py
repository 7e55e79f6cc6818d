"""What keeps the hand off the device's limits: a soft edge of its reach, and damping near its largest force.

Edge: beyond a box, axis by axis, a spring and damper push inward and never pull outward,
  f = max(0, K d + c v),  d the depth beyond the box, v the outward speed,  c = K t_e,
with t_e = EDGE_RELAXATION ten times the T / 2 that a spring sampled at 1 kHz needs to be passive
(Colgate and Schenkel 1997: c > K T / 2).

Saturation: a clamped force no longer falls when the hand moves on, so the wall that it stood for has gone and
what is left throws the stylus back at full force. A damper takes its place: its coefficient rises smoothly
from zero at SATURATION_FROM of the largest force to its full value at the largest.
All in device axes.

What a device's motors render and stand: torques, and a thermal budget of the force.

The windings' temperature over what they stand for ever is

  h' = ((|F| / F_c)^2 - h) / tau,

with the continuous force F_c and the windings' time constant tau. Up to HOT the largest force F_m is given,
from there on F_m - (F_m - F_c) (h - HOT) / (1 - HOT). It is F_c at h = 1, where h no longer rises, so that h
never exceeds 1, F_c is given for ever and F_m for -tau ln(1 - HOT (F_c / F_m)^2) seconds from cold.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
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


EDGE_RELAXATION = 5e-3
"""Damping of the edge over its stiffness [s]."""
SATURATION_FROM = 0.8
"""Share of the largest force at which the damping begins."""


class GuardParams(NamedTuple):
    """The box in which nothing pushes, and the guards' coefficients; device axes."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    """Corners of the box [m], shape (3,)."""
    edge_stiffness: float
    """[N/m], 0 is off."""
    edge_damping: float
    """[N s/m]."""
    saturation_damping: float
    """At the largest force [N s/m], 0 is off."""


def make_guard(
    lower: ArrayLike = (-math.inf, -math.inf, -math.inf),
    upper: ArrayLike = (math.inf, math.inf, math.inf),
    margin: float = 0.0,
    edge_stiffness: float = 0.0,
    saturation_damping: float = 0.0,
) -> GuardParams:
    """Guards of a device whose reach is the box from lower (3,) to upper (3,) [m], less a margin [m].

    Without arguments nothing acts. Raises HapticsError on a coefficient below zero or a margin that leaves
    no box.
    """
    for name, value in (("edge_stiffness", edge_stiffness), ("saturation_damping", saturation_damping)):
        if not (math.isfinite(value) and value >= 0.0):
            raise HapticsError(f"guard {name} = {value} must be 0 or positive")
    low: NDArray[np.float64] = np.array(lower, dtype=np.float64) + margin
    high: NDArray[np.float64] = np.array(upper, dtype=np.float64) - margin
    if low.shape != (3,) or high.shape != (3,) or not (low < high).all():
        raise HapticsError(f"guard edge_margin = {margin} m leaves no room in a reach from {low} to {high} m")
    return GuardParams(
        low, high, float(edge_stiffness), float(edge_stiffness * EDGE_RELAXATION), float(saturation_damping)
    )


@inlined
def push_inward(guard, port):
    """Add the edge's force to port.force [N]; True beyond the box."""
    if guard.edge_stiffness == 0.0:
        return False
    beyond = False
    for i in range(3):
        x, v = port.position[i], port.velocity[i]
        if x > guard.upper[i]:
            port.force[i] -= max(0.0, guard.edge_stiffness * (x - guard.upper[i]) + guard.edge_damping * v)
            beyond = True
        elif x < guard.lower[i]:
            port.force[i] += max(0.0, guard.edge_stiffness * (guard.lower[i] - x) - guard.edge_damping * v)
            beyond = True
    return beyond


@inlined
def brake_near_limit(guard, largest, port, brake):
    """Add to brake (3,) [N] what the damper takes off a command near the largest force [N]; True if any."""
    if guard.saturation_damping == 0.0:
        return False
    f, v = port.force, port.velocity
    norm = math.sqrt(f[0] * f[0] + f[1] * f[1] + f[2] * f[2])
    if not norm > SATURATION_FROM * largest:
        return False
    share = 1.0 if norm >= largest else (norm / largest - SATURATION_FROM) / (1.0 - SATURATION_FROM)
    damping = guard.saturation_damping * share * share * (3.0 - 2.0 * share)
    for i in range(3):
        brake[i] += damping * v[i]
    return True
