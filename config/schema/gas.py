"""The air in the cavities: shut in, leaking by the rim's roughness, or pumped."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from palpo.config.schema.base import Kinds, Spec, refuse
from palpo.config.schema.device import in_order
from palpo.config.schema.geometry import (
    PositiveLength,
)
from palpo.config.schema.pump import Manifold
from palpo.config.schema.units import (
    Length,
    Number,
    Pressure,
    Time,
)

Pressures = Annotated[tuple[tuple[Time, Pressure], ...], AfterValidator(in_order)]
WAVES = 50.0
"""Longest wavelength of a roughness over its height: of sandblasted plates, 50 to 100."""


class _Gas(Spec):
    atmosphere: Pressure = Field(101_325.0, gt=0, description="Pressure outside.")
    temperature: Number = Field(
        293.15, gt=0, description="In kelvin; it sets how many moles are reported, and no force."
    )


class SealSpec(Spec):
    """Cup and partner as surfaces of measured roughness, self-affine; where they touch air leaks."""

    rms: Length = Field(
        2e-6, gt=0, description="Root mean square height of both together; milled plastic by default."
    )
    wavelength: PositiveLength | None = Field(
        None, description="Longest wavelength of their roughness; without it, 50 times `rms`."
    )
    hurst: Number = Field(0.8, gt=0, lt=1, description="Hurst exponent of their spectrum.")

    @property
    def longest(self) -> float:
        """Longest wavelength [m]."""
        return WAVES * self.rms if self.wavelength is None else self.wavelength


_FLOWS = 'the seal says how air gets by; rims that are tight by themselves are kind = "airtight"'


class PassiveGas(_Gas):
    """Air shut in by the cups: p V = n R T. What gets by under the rims is computed."""

    misplaced: ClassVar[dict[str, str]] = dict.fromkeys(("max_pressure", "leak"), _FLOWS)

    kind: Literal["passive"] = "passive"
    seal: SealSpec = Field(
        SealSpec(),
        description="Air flows through the gap under a rim, and between rough surfaces the less the harder "
        "they are pressed.",
    )


class SealedGas(_Gas):
    """What rims hold up to a pressure."""

    max_pressure: Pressure = Field(102_000.0, gt=0, description="At which air lifts the rim and escapes.")

    @model_validator(mode="after")
    def _above_atmosphere(self) -> Self:
        if self.max_pressure <= self.atmosphere:
            said = f"air would leave by itself; give more than atmosphere = {self.atmosphere:g} Pa"
            raise refuse(said, "max_pressure")
        return self


class AirtightGas(SealedGas):
    """As the thesis has it: rims are airtight up to `contact.sealing`, and lift at a given pressure."""

    misplaced: ClassVar[dict[str, str]] = {
        "seal": 'these rims are tight by themselves; what gets by is computed with kind = "passive"'
    }

    kind: Literal["airtight"] = "airtight"
    leak: Length = Field(
        0.0, ge=0, description="Height of the gap through which air seeps in under the rim; 0 is tight."
    )


class ActiveGas(_Gas):
    """A pump imposes the pressure, given relative to the atmosphere: negative is suction."""

    kind: Literal["active"] = "active"
    gauge: Pressure = Field(0.0, description="Without a table; it can be changed while the scene runs.")
    table: Pressures = Field((), description="Pressure over time, rows [t, p], with straight ramps between.")

    @model_validator(mode="after")
    def _above_vacuum(self) -> "ActiveGas":
        said = f"no pump goes below a vacuum, {-self.atmosphere:g} Pa; give more"
        if self.gauge < -self.atmosphere:
            raise refuse(said, "gauge")
        for i, (_, pressure) in enumerate(self.table):
            if pressure < -self.atmosphere:
                raise refuse(said, "table", i, 1)
        return self


class PumpedGas(PassiveGas):
    """A pump, its manifold and a line to each cup: all share a vacuum, and lose it to one that leaks."""

    kind: Literal["pumped"] = "pumped"  # type: ignore[assignment]
    manifold: Manifold = Field(description="Pump, vent and volume.")

    @model_validator(mode="after")
    def _pumps(self) -> "PumpedGas":
        self.manifold.check(self.atmosphere)
        return self


Gas = Annotated[
    PassiveGas | AirtightGas | ActiveGas | PumpedGas, Field(discriminator="kind"), Kinds("passive")
]
