"""What keeps the hand off the device's limits: a soft edge of its reach, and damping near its largest force.

Edge: beyond a box, axis by axis, a spring and damper push inward and never pull outward,
  f = max(0, K d + c v),  d the depth beyond the box, v the outward speed,  c = K t_e,
with t_e = EDGE_RELAXATION ten times the T / 2 that a spring sampled at 1 kHz needs to be passive
(Colgate and Schenkel 1997: c > K T / 2).

Saturation: a clamped force no longer falls when the hand moves on, so the wall that it stood for has gone and
what is left throws the stylus back at full force. A damper takes its place: its coefficient rises smoothly
from zero at SATURATION_FROM of the largest force to its full value at the largest.
All in device axes.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.physics.numerics.kernels import inlined

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
