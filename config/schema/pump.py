"""A pump that several cups share: its flow curve, the lines to the cups, valves and a vent."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from palpo.config.schema.base import Flag, Spec, refuse
from palpo.config.schema.device import in_order
from palpo.config.schema.geometry import PositiveLength
from palpo.config.schema.units import Flow, Pressure, Time, Volume

Switch = Annotated[tuple[tuple[Time, Flag], ...], AfterValidator(in_order)]
"""Rows [t, true or false]: from each time on."""


def at(rows: Switch, time: float, before: bool) -> bool:
    """What a switch is at `time` [s]; `before` its first row."""
    return next((value for since, value in reversed(rows) if since <= time), before)


class LineSpec(Spec):
    """A round line, in which air flows as Hagen and Poiseuille say."""

    diameter: PositiveLength = Field(0.004, description="Inner diameter.")
    length: PositiveLength = Field(0.3, description="Length.")


class PumpSpec(Spec):
    """A vacuum pump, or an ejector: it takes `speed` times 1 - lowest / p, both absolute, at a pressure p."""

    speed: Flow = Field(ge=0, description="Air that it takes at the atmosphere's pressure, by volume.")
    lowest: Pressure = Field(description="Pressure that it reaches, against the atmosphere: below 0.")
    state: Literal["on", "off"] = Field(
        "on", description="Without a table, or by hand; it can be changed while it runs."
    )
    table: Switch = Field((), description="Whether it runs over time, rows [t, true or false].")

    def runs(self, time: float) -> bool:
        """Whether it takes air at `time` [s]."""
        return self.speed > 0.0 and at(self.table, time, self.state == "on")


class Vent(LineSpec):
    """A valve that lets the atmosphere into the manifold, through a line of its own."""

    state: Literal["open", "shut"] = Field(
        "shut", description="By hand, where the table has it shut; it can be changed while it runs."
    )
    table: Switch = Field((), description="Whether it is open over time, rows [t, true or false].")

    def lets_in(self, time: float) -> bool:
        """Whether it is open at `time` [s], by hand or by the table."""
        return self.state == "open" or at(self.table, time, False)


class CupLine(LineSpec):
    """The line from a cup to the manifold, with its valve."""

    valve: Switch = Field((), description="Whether its valve is open over time, rows [t, true or false].")

    def lets_by(self, time: float) -> bool:
        """Whether its valve is open at `time` [s]; without rows always."""
        return at(self.valve, time, True)


class Manifold(Spec):
    """What the lines of all cups lead to, with the pump on it."""

    volume: Volume = Field(2e-5, gt=0, description="Of the manifold, and of a tank on it.")
    pump: PumpSpec = Field(description="What takes the air.")
    vent: Vent = Field(Vent(), description="What lets air in again.")

    @property
    def by_hand(self) -> tuple[bool, bool]:
        """Whether the pump runs and the vent is open where no table counts."""
        return self.pump.speed > 0.0 and self.pump.state == "on", self.vent.state == "open"

    def check(self, atmosphere: float) -> None:
        """Refuses a pump that nothing would do. atmosphere [Pa]."""
        if not -atmosphere <= self.pump.lowest < 0.0:
            said = f"a pump reaches a pressure below the atmosphere's, and no less than -{atmosphere:g} Pa"
            raise refuse(said, "manifold", "pump", "lowest")
