"""Persson's theory of rough contact: how much of it touches, how far apart the rest is, where air gets by.

A rough hard surface and a smooth elastic one, pressed together by p. Heights are Gaussian with a self-affine
spectrum C(q) = C_0 (q / q_0)^(-2 - 2 H) from q_0 to q_1. Seen at the magnification zeta = q / q_0, where no
roughness shorter than 2 pi / q shows, they touch over the share (Persson, J. Chem. Phys. 115 (2001) 3840)

    A / A_0 = erf(w p / E*),    w(q)^-2 = pi int_q0^q C(k) k^3 dk

and are apart by (C. Yang and B. N. J. Persson, J. Phys.: Condens. Matter 20 (2008) 215214)

    u(zeta) = sqrt(pi) int_(zeta q0)^q1 q^2 C(q) w(q, zeta) I(w(q, zeta) p A_0 / (A E*)) dq
    I(s)    = int_s^inf (gamma + 3 (1 - gamma) erf(t)^2) exp(-t^2) dt / t,    gamma = 0.45

on average, where they touched at zeta; for weak pressure p ~ exp(-u / u_0), u_0 about 0.4 h_rms. What comes
apart between zeta and zeta + d zeta is u_1 = u + u' A / A' apart.

Air gets by as long as the gaps join up. Seen ever more closely they first do so where 0.42 of the area
touches (W. B. Dapp et al., Phys. Rev. Lett. 108 (2012) 244301), and nearly all pressure falls over those
narrowest places, u_c = u_1 high, as many in a row as side by side: a square conducts as a smooth gap u_c does
(B. N. J. Persson and C. Yang, J. Phys.: Condens. Matter 20 (2008) 315011; for gases A. Tiwari and Persson,
Soft Matter 15 (2019) 9482). Where 0.42 touches at every magnification, none passes.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfinv, exp1

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined

Floats = NDArray[np.float64]

PERCOLATION = 0.42
"""Share of the area that touches when the last way through closes."""
GAMMA = 0.45
"""Of the elastic energy, Yang and Persson 2008."""
WAVES = 400
"""Wave vectors of a quadrature, spaced by the roots of their logarithms."""
DECADES, PER_DECADE = 7, 16
"""Pressures of a table below the one that shuts the last way, and how finely."""


class RoughSurface:
    """A rough surface. Raises InputError for lengths not positive or not in order, and H not within (0, 1).

    height: h_rms [m]. longest, shortest: wavelengths [m] 2 pi / q_0 and 2 pi / q_1. hurst: H.
    """

    def __init__(
        self, height: float, longest: float, shortest: float | None = None, hurst: float = 0.8
    ) -> None:
        shortest = 1e-3 * longest if shortest is None else shortest
        if not (0.0 < height < math.inf and 0.0 < shortest < longest < math.inf and 0.0 < hurst < 1.0):
            raise InputError(
                f"a rough surface has h_rms = {height} m, wavelengths from {shortest} to {longest} m and "
                f"H = {hurst}: give lengths above 0, the longest wavelength above the shortest, and H "
                "between 0 and 1."
            )
        self.height, self.hurst = height, hurst
        self.first, self.last = 2 * math.pi / longest, 2 * math.pi / shortest
        ratio = (self.first / self.last) ** (2 * hurst)
        self._scale = height**2 * hurst / (math.pi * self.first**2 * (1 - ratio))  # C_0

    def spectrum(self, q: Floats) -> Floats:
        """C(q) [m4], of wave vectors from q_0 to q_1 [1/m]."""
        return self._scale * (q / self.first) ** (-2 - 2 * self.hurst)

    def _fourth(self, start: Floats | float, end: Floats | float) -> Floats:
        """pi int C k^3 dk: half the mean square slope of the waves from `start` to `end` [1/m]."""
        power, q0 = 2 - 2 * self.hurst, self.first
        grown = (np.asarray(end) / q0) ** power - (np.asarray(start) / q0) ** power
        return np.asarray(math.pi * self._scale * q0**4 * grown / power)

    @property
    def slope(self) -> float:
        """Root mean square slope."""
        return math.sqrt(2 * self._fourth(self.first, self.last))

    def touching(self, load: float, q: float | None = None) -> float:
        """A / A_0 at p / E* = load, seen down to the wave vector q [1/m]; to q_1 if none is given."""
        depth = float(self._fourth(self.first, self.last if q is None else q))
        return float(erf(load / math.sqrt(depth))) if depth > 0.0 else 1.0

    def separation(self, load: float, q: float | None = None) -> float:
        """u [m] at p / E* = load where they touch seen down to q [1/m]; of the whole area without a q."""
        start = self.first if q is None else q
        share = self.touching(load, start)
        # evenly spaced in the root of ln q: at the start w is infinite as 1 / t, the integrand finite
        t, long = np.linspace(0.0, 1.0, WAVES + 1)[1:], math.log(self.last / start)
        waves = start * np.exp(long * t**2)
        w = 1.0 / np.sqrt(self._fourth(start, waves))
        values = 2 * t * long * waves**3 * self.spectrum(waves) * w * _gap_integral(w * load / share)
        return float(math.sqrt(math.pi) * np.trapezoid(np.concatenate([[0.0], values]), dx=1.0 / WAVES))

    @property
    def shutting(self) -> float:
        """p / E* from which no air passes at any magnification."""
        return float(erfinv(PERCOLATION) * math.sqrt(self._fourth(self.first, self.last)))

    def narrowest(self, load: float) -> float:
        """u_c [m], the gap of a smooth slot that conducts as the contact at p / E* = load does; 0 if shut."""
        if load >= self.shutting:
            return 0.0
        depth, step = (load / erfinv(PERCOLATION)) ** 2, 1e-3
        q, below, above = (self._wave_of(depth * f) for f in (1.0, 1.0 - step, 1.0 + step))
        if above >= self.last:
            return 0.0
        du = self.separation(load, above) - self.separation(load, below)
        share = self.touching(load, above) - self.touching(load, below)
        return self.separation(load, q) + du / share * PERCOLATION

    def _wave_of(self, depth: float) -> float:
        """The wave vector [1/m] down to which pi int C k^3 dk is `depth`."""
        power = 2 - 2 * self.hurst
        zeta = (1 + depth * power / (math.pi * self._scale * self.first**4)) ** (1 / power)
        return float(self.first * zeta)


def _universal() -> tuple[Floats, Floats]:
    """ln s and the part of I(s) with erf^2, from where it no longer changes to where it is nothing."""
    log = np.linspace(math.log(1e-4), math.log(8.0), 4001)
    s = np.exp(log)
    integrand = 3 * (1 - GAMMA) * erf(s) ** 2 * np.exp(-s * s)
    pieces = 0.5 * (integrand[1:] + integrand[:-1]) * np.diff(log)
    return log, np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])


_LOG, _INTEGRAL = _universal()


def _gap_integral(s: Floats) -> Floats:
    """I(s)."""
    return np.asarray(0.5 * GAMMA * exp1(s * s) + np.interp(np.log(s), _LOG, _INTEGRAL))


class SealTable(NamedTuple):
    """u_c by contact pressure: what a compiled function needs. Made by `seal_of`."""

    first: float  # ln of the lowest pressure [Pa]
    step: float  # of ln p
    gap: Floats  # (m,) [m], down to 0 at the pressure that shuts


def seal_of(surface: RoughSurface, modulus: float) -> SealTable:
    """The seal of a smooth elastic body of E* = E / (1 - nu^2) [Pa] on a rough surface.

    Below 1e-7 of the pressure that shuts it, the gap no longer grows: as its logarithm would, without end.
    """
    if not 0.0 < modulus < math.inf:
        raise InputError(f"E* = {modulus} Pa must be positive and finite")
    shut = math.log(surface.shutting)
    loads = np.linspace(shut - DECADES * math.log(10.0), shut, DECADES * PER_DECADE + 1)
    gap = np.array([surface.narrowest(math.exp(load)) for load in loads])
    return SealTable(float(loads[0] + math.log(modulus)), float(loads[1] - loads[0]), gap)


@inlined
def contact_gap(seal, pressure):
    """u_c [m] under a contact pressure [Pa], between the table's entries by a straight line in ln p."""
    if pressure <= 0.0:
        return seal.gap[0]
    at = (math.log(pressure) - seal.first) / seal.step
    if at <= 0.0:
        return seal.gap[0]
    k = int(at)
    if k >= seal.gap.size - 1:
        return 0.0
    return seal.gap[k] + (at - k) * (seal.gap[k + 1] - seal.gap[k])
