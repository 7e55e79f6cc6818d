"""How long a passive cup holds a load while air leaks in under its rim.

A cup of opening A and a rim, pressed by its own spring and by the suction, on a rough wall. Air obeys
p V = n R T, and the rim's contact pressure follows from the balance of forces: the load pulls by F_1, the
wall's spring presses by F_0 (A. Tiwari and B. N. J. Persson, Physics of suction cups, Soft Matter 15 (2019)
9482, in its simplest form: the cup's volume does not change and its rim is pressed evenly). It lets go when
the suction no longer bears the load.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.law import STANDARD_ATMOSPHERE, sheet_conductance
from palpo.physics.gas.roughness import SealTable, contact_gap

Floats = NDArray[np.float64]

STEPS = 400
"""Of the quadrature over the pressure."""


class HeldCup(NamedTuple):
    """What of a cup decides how long it holds."""

    radius: float  # of the opening [m]
    rim: float  # width of what touches around it [m]
    volume: float  # of the air [m3]
    spring: float = 0.0  # with which the cup's wall presses on its rim [N]


def rim_pressure(cup: HeldCup, suction: float, load: float) -> float:
    """Mean contact pressure [Pa] under the rim at a suction [Pa] and a pull [N]; negative where it lifts.

    Under the rim the air's pressure falls evenly, so that half of the suction acts there.
    """
    outer = cup.radius + cup.rim
    opening, ring = math.pi * cup.radius**2, math.pi * (outer**2 - cup.radius**2)
    return (cup.spring + suction * (opening + 0.5 * ring) - load) / ring


def hold_time(cup: HeldCup, seal: SealTable, load: float, suction: float, rt: float) -> float:
    """Seconds until a cup with that suction [Pa] at first lets a pull [N] go; inf where nothing leaks.

    The time is the integral of dp / (dp/dt), dp/dt = G (P_atm^2 - p^2) / V, from the first pressure to the
    one at which the rim no longer presses; 0 where it does not at first.
    """
    outer = cup.radius + cup.rim
    last = _suction_at_the_end(cup, load)
    if last >= suction:
        return 0.0
    if last <= 0.0:
        return math.inf
    # evenly spaced in the logarithm of the suction, in which an even leak is an even rate
    suctions = np.geomspace(suction, last, STEPS + 1)
    slowness = np.empty(STEPS + 1)
    for k, s in enumerate(suctions):
        p = STANDARD_ATMOSPHERE - s
        gap = contact_gap(seal, max(rim_pressure(cup, s, load), 0.0))
        sheet = sheet_conductance(gap, 0.5 * (p + STANDARD_ATMOSPHERE), rt)
        if sheet <= 0.0:
            return math.inf
        g = math.pi * sheet / math.log(outer / cup.radius)
        slowness[k] = cup.volume / (g * (STANDARD_ATMOSPHERE**2 - p * p))
    return float(np.trapezoid(slowness * suctions, -np.log(suctions)))


def _suction_at_the_end(cup: HeldCup, load: float) -> float:
    """The suction [Pa] at which the rim no longer presses."""
    outer = cup.radius + cup.rim
    opening, ring = math.pi * cup.radius**2, math.pi * (outer**2 - cup.radius**2)
    return (load - cup.spring) / (opening + 0.5 * ring)
