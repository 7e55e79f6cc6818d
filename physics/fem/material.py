"""Isotropic material: elastic by a law, with Rayleigh damping and a memory that fades."""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.law import refuse_shape
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.numerics.errors import InputError


@dataclass(frozen=True)
class Material:
    """Constants of one body; C = alpha M + beta K (EQUATIONS.md, section 1).

    youngs_modulus [Pa], poisson_ratio [-]: at rest. density [kg/m3], alpha [1/s], beta [s]. law: by its name,
    see palpo.physics.fem.laws; shape: what that has besides, as its class says.
    prony: pairs of a ratio g_i and a time tau_i [s], see palpo.physics.fem.relaxation; the modulus is then of
    a quick load.
    moduli [Pa], densities [kg/m3]: of each element of a body of several materials, where they differ from
    youngs_modulus and density; all else is theirs together. As all stresses are proportional to the modulus,
    an element of another one is the same element, so many times.
    Raises InputError where a constant lies outside its range.
    """

    youngs_modulus: float
    poisson_ratio: float
    density: float
    alpha: float = 0.0
    beta: float = 0.0
    law: str = LINEAR
    shape: tuple[float, ...] = ()
    prony: tuple[tuple[float, float], ...] = ()
    moduli: tuple[float, ...] = ()
    densities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for key, valid, range_ in (
            ("youngs_modulus", self.youngs_modulus > 0.0, "positive [Pa]"),
            ("poisson_ratio", -1.0 < self.poisson_ratio < 0.5, "between -1 and 0.5, both excluded"),
            ("density", self.density > 0.0, "positive [kg/m3]"),
            ("alpha", self.alpha >= 0.0, "zero or positive [1/s]"),
            ("beta", self.beta >= 0.0, "zero or positive [s]"),
        ):
            if not (valid and isfinite(getattr(self, key))):
                raise InputError(f"material.{key} is {getattr(self, key)!r} but must be {range_}.")

        if self.law not in (LINEAR, *LAWS):
            raise InputError(f"material.law is {self.law!r} but must be one of {', '.join((LINEAR, *LAWS))}.")
        if self.law != LINEAR:
            LAWS[self.law](*self.lame(), self.shape)
        elif self.shape:
            raise refuse_shape(LINEAR, self.shape, "none")
        ratios = [ratio for ratio, _ in self.prony]
        if not (all(ratio > 0.0 for ratio in ratios) and sum(ratios) < 1.0):
            raise InputError(
                f"material.prony has the ratios {ratios} but needs positive ones, below 1 together."
            )
        if not all(time > 0.0 and isfinite(time) for _, time in self.prony):
            times = [time for _, time in self.prony]
            raise InputError(f"material.prony has the times {times} but needs positive ones [s].")
        for key in ("moduli", "densities"):
            if not all(one > 0.0 and isfinite(one) for one in getattr(self, key)):
                raise InputError(f"material.{key} must be positive.")

    def lame(self) -> tuple[float, float]:
        """First Lame constant and shear modulus (lambda, mu) [Pa]."""
        e, nu = self.youngs_modulus, self.poisson_ratio
        return e * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), e / (2.0 * (1.0 + nu))

    def stiffness_of(self, m: int) -> NDArray[np.float64]:
        """Young's modulus of each of m elements over this one, (m,); InputError for another number."""
        return self._of_each(self.moduli, self.youngs_modulus, m) / self.youngs_modulus

    def density_of(self, m: int) -> NDArray[np.float64]:
        """Density of each of m elements [kg/m3], (m,); InputError for another number."""
        return self._of_each(self.densities, self.density, m)

    def _of_each(self, told: tuple[float, ...], usual: float, m: int) -> NDArray[np.float64]:
        if told and len(told) != m:
            raise InputError(f"the material is told of {len(told)} elements, but the mesh has {m}.")
        return np.array(told) if told else np.full(m, usual)
