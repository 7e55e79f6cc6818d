"""Air that a cup shuts in against another soft body."""

from typing import Annotated

from pydantic import Field, model_validator

from palpo.config.schema.base import Count, refuse
from palpo.config.schema.gas import SealedGas
from palpo.config.schema.units import Length, Time

SLOWEST_HZ = 50.0
"""Slow rate below which what air holds together may be torn apart by the length of a frame."""


class AirSpec(SealedGas):
    """A cup and what it is set on: where their surfaces enclose air, its pressure holds or pushes both."""

    cup: str = Field(description="Name of the soft body that is or has the cup.")
    partner: str = Field(description="Name of the soft body that it is set on.")
    sealing: Length = Field(0.0005, gt=0, description="Gap up to which a vertex seals.")
    alarm: Length = Field(0.002, gt=0, description="Gap up to which gaps are measured.")
    roughness: Length = Field(
        1e-5, ge=0, description="Mean depth of the valleys of both surfaces, where air stays under a seal."
    )
    valve_button: Annotated[Count, Field(ge=0, le=8)] = Field(
        1,
        description="Button of the first hand's device that opens the cup's valve while it is down; with the "
        "mouse, key x presses button 1. 0 is none.",
    )
    valve_open: tuple[tuple[Time, Time], ...] = Field(
        (), description="Times, rows [from, to], between which the valve is open whatever the button does."
    )
    most: Annotated[Count, Field(ge=1, le=4)] = Field(2, description="Most cavities at once.")

    @model_validator(mode="after")
    def _agrees(self) -> "AirSpec":
        if self.cup == self.partner:
            raise refuse("a cup is set on another body; name two", "partner")
        if self.sealing > self.alarm:
            said = f"it must not exceed alarm = {self.alarm:g} m, beyond which no gap is known"
            raise refuse(said, "sealing")
        for i, (start, stop) in enumerate(self.valve_open):
            if not 0.0 <= start < stop:
                raise refuse("it must open at 0 or later and shut after that", "valve_open", i)
        return self
