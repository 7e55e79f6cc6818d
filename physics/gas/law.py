"""The air of one cavity: gas law, escape at the largest pressure, and what a leak lets in.

Isothermal ideal gas, p V = n R T (000, equations 3.8 to 3.14, as corrected in EQUATIONS.md, section 4).
Pressures are absolute [Pa], volumes [m3], amounts [mol], temperatures [K].

Air through a narrow gap: how much a strip of it conducts, from viscous flow to free molecules.

Isothermal flow of an ideal gas between plates u apart: per metre of width and at the mean pressure p

    dn/dt = k dp/dx p / (R T),    k = u^3 / (12 eta) F(delta),    delta = sqrt(pi) u / (2 lambda)

with lambda = eta / p sqrt(pi R T / (2 M)) the mean free path, 66 nm in air at one atmosphere. With Kn =
lambda / u the regimes are: viscous below 0.01, where F = 1 (Poiseuille); slip up to 0.1, F = 1 + 6.9 Kn;
transition; molecular above 10, where the flow no longer depends on viscosity and F / delta grows as
-ln(delta). Between both limits

    F = 1 + 6 / (sqrt(pi) delta) ln(1 / delta + exp(sqrt(pi) sigma)),    sigma = 1.0162,

whose terms are those of the Boltzmann equation with diffuse walls for thick and for thin gaps (C. Cercignani
and A. Daneri, J. Appl. Phys. 34 (1963) 3509; F. Sharipov and V. Seleznev, J. Phys. Chem. Ref. Data 27 (1998)
657). It is at most 25% below the numerical solution between them.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

VISCOSITY = 1.81e-5
"""eta of air at 20 degrees C [Pa s] (Sutherland's law: White, Viscous Fluid Flow, 2006)."""

MOLAR_MASS = 28.965e-3
"""M of dry air [kg/mol] (ISO 2533)."""

SLIP = 1.0162
"""sigma, the coefficient of viscous slip on walls that scatter all molecules diffusely."""


@inlined
def mean_free_path(pressure, rt):
    """lambda [m] of air at that pressure [Pa], R T in J/mol."""
    return VISCOSITY / pressure * math.sqrt(0.5 * math.pi * rt / MOLAR_MASS)


@inlined
def rarefaction(gap, pressure, rt):
    """F, how many times more air passes a gap [m] at a mean pressure [Pa] than Poiseuille's flow has."""
    if gap <= 0.0:
        return 1.0
    delta = 0.5 * math.sqrt(math.pi) * gap / mean_free_path(pressure, rt)
    return 1.0 + 6.0 / (math.sqrt(math.pi) * delta) * math.log(
        1.0 / delta + math.exp(math.sqrt(math.pi) * SLIP)
    )


@inlined
def sheet_conductance(gap, pressure, rt):
    """k = u^3 F / (12 eta) [m3/(Pa s)] of a square sheet of gap u [m] at a mean pressure [Pa]."""
    return gap**3 / (12.0 * VISCOSITY) * rarefaction(gap, pressure, rt)


@inlined
def slot_conductance(width, gap, length, pressure, rt):
    """G = width k / (2 L) [m3/(Pa s)] of a slot along the rim, all [m]; slots side by side add up.

    dn/dt = G (P_atm^2 - p^2) / (R T) into the cavity, for which the mean pressure is (P_atm + p) / 2 (Bird,
    Stewart & Lightfoot, Transport Phenomena, problem 2B.3 with the density of an ideal gas).
    """
    return 0.5 * width / length * sheet_conductance(gap, pressure, rt)


@kernel
def ring_conductance(radius, sheet):
    """G [m3/(Pa s)] of a rim of revolution; radius (m,) [m], growing, and k (m,) [m3/(Pa s)] there.

    The resistance of thin rings in series, integral dr / (2 pi r k), by the trapezoidal rule with 1 / (r k)
    taken to change exponentially in between, as it does where contact pressure falls. 0 where a ring is shut.
    share (m,): of the resistance that lies inside each radius; returned with G. For a shut rim, the share is
    0 up to the first shut radius and 1 from there on.
    """
    m = radius.size
    share = radius * 0.0
    total = 0.0
    for i in range(m):
        if sheet[i] <= 0.0:
            for j in range(m):
                share[j] = 1.0 if j >= i else 0.0
            return 0.0, share
        if i > 0:
            a, b = 1.0 / (radius[i - 1] * sheet[i - 1]), 1.0 / (radius[i] * sheet[i])
            step = radius[i] - radius[i - 1]
            # the logarithmic mean, by its series where it would be 0 / 0
            ratio = math.log(b / a)
            mean = (b - a) / ratio if abs(ratio) > 1e-4 else a * (1.0 + 0.5 * ratio)
            total += step * mean / (2.0 * math.pi)
        share[i] = total
    for i in range(m):
        share[i] /= total
    return 0.5 / total, share


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

    The exact solution of dp/dt = G (P_atm^2 - p^2) / V (palpo.physics.gas.law), so that no step is too
    long. A cavity without volume keeps its n.
    """
    if volume <= 0.0:
        return n
    p = n * rt / volume
    share = math.tanh(conductance * atmosphere * h / volume)
    return atmosphere * (p + atmosphere * share) / (atmosphere + p * share) * volume / rt
