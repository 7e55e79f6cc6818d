"""The air of one cavity: gas law, escape at the largest pressure, and what a leak lets in.

Isothermal ideal gas, p V = n R T (000, equations 3.8 to 3.14, as corrected in EQUATIONS.md, section 4).
Pressures are absolute [Pa], volumes [m3], amounts [mol], temperatures [K].
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

GAS_CONSTANT = 8.31446261815324
"""R [J/(mol K)] (CODATA 2018, exact)."""

STANDARD_ATMOSPHERE = 101325.0
"""[Pa] (ISO 2533)."""


@dataclass(frozen=True)
class OutsideAir:
    """The air outside, and what a rim holds.

    Raises InputError for an atmosphere or a temperature that is not positive and finite, and for a largest
    pressure that is not above the atmosphere's.
    """

    largest: float
    """P_max [Pa], absolute: at it the rim lets air escape. It may be infinite."""
    atmosphere: float = STANDARD_ATMOSPHERE
    """P_atm [Pa]."""
    temperature: float = 293.15
    """T [K]."""
    leak: float = 0.0
    """Height of the slot under rims [m], 0 for tight ones."""

    def __post_init__(self) -> None:
        for name, value in (("atmosphere", self.atmosphere), ("temperature", self.temperature)):
            if not 0.0 < value < math.inf:
                raise InputError(f"{name} = {value} must be positive and finite")
        if not self.largest > self.atmosphere:
            raise InputError(
                f"the largest pressure of a cavity, {self.largest:.6g} Pa, must be above that of the "
                f"atmosphere, {self.atmosphere:.6g} Pa"
            )

    @property
    def rt(self) -> float:
        """R T [J/mol]."""
        return GAS_CONSTANT * self.temperature

    def amount(self, pressure: float, volume: float) -> float:
        """n = p V / (R T) [mol] of a new cavity; raises InputError for a volume that is not positive."""
        if not 0.0 < volume < math.inf:
            raise InputError(f"a cavity starts with a volume of {volume:.6g} m3; it must be positive")
        return pressure * volume / self.rt

    def pressure(self, amount: NDArray[np.float64], volume: NDArray[np.float64]) -> NDArray[np.float64]:
        """p = n R T / V [Pa] of amounts [mol] in volumes above 0 [m3], at most P_max."""
        return np.minimum(amount * self.rt / volume, self.largest)


@inlined
def pressure_root(a, b, nrt):
    """The positive root of a p^2 + b p = n R T (3.12) [Pa], infinite where there is none.

    a >= 0 [m3/Pa], nrt >= 0 [J], b of either sign [m3]: of the two forms of the root, the one that adds.
    """
    s = (b * b + 4.0 * a * nrt) ** 0.5
    if b > 0.0:
        return 2.0 * nrt / (b + s)
    if a > 0.0:
        return (s - b) / (2.0 * a)
    return math.inf


@inlined
def held_amount(p, volume, n, largest, rt):
    """n + dn [mol] at the end of a step (3.13): at P_max what the volume holds of n, else n to the bit.

    A negative volume holds nothing.
    """
    if p < largest:
        return n
    return min(n, max(0.0, p * volume / rt))


@inlined
def gas_law_error(p, volume, nrt, largest):
    """|p V - n R T| [J]; at P_max, where air may leave, only what p V is too much."""
    excess = p * volume - nrt
    return abs(excess) if p < largest else max(0.0, excess)


@kernel
def leak(n, volume, conductance, atmosphere, rt, h):
    """Amount [mol] after a time h [s] of leaking through a conductance G [m3/(Pa s)], at constant volume.

    The exact solution of dp/dt = G (P_atm^2 - p^2) / V (palpo.physics.gas.flow), so that no step is too
    long. A cavity without volume keeps its n.
    """
    if volume <= 0.0:
        return n
    p = n * rt / volume
    share = math.tanh(conductance * atmosphere * h / volume)
    return atmosphere * (p + atmosphere * share) / (atmosphere + p * share) * volume / rt
