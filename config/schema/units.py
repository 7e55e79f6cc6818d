"""Quantities: a float in SI units, or a string with its unit such as "5 mm" or "3 kPa"."""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from palpo.config.words import in_words

# Kind of quantity -> unit -> factor to SI. The first unit of each kind is the SI unit itself.
UNITS: dict[str, dict[str, float]] = {
    "number": {"": 1.0, "%": 0.01},
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6},
    "volume": {"m^3": 1.0, "m3": 1.0, "l": 1e-3, "ml": 1e-6, "cm^3": 1e-6, "cm3": 1e-6},
    "flow": {"m^3/s": 1.0, "m3/s": 1.0, "l/s": 1e-3, "l/min": 1e-3 / 60.0},
    "pressure": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "GPa": 1e9},
    "density": {"kg/m^3": 1.0, "kg/m3": 1.0, "g/cm^3": 1e3, "g/cm3": 1e3},
    "mass": {"kg": 1.0, "g": 1e-3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
    "frequency": {"Hz": 1.0, "kHz": 1e3, "1/s": 1.0},
    "angle": {"rad": 1.0, "deg": math.pi / 180.0},
    "speed": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2},
    "slowness": {"s/m": 1.0, "s/mm": 1e3},
    "acceleration": {"m/s^2": 1.0, "m/s2": 1.0},
    "force": {"N": 1.0, "mN": 1e-3},
    "force rate": {"N/s": 1.0, "N/ms": 1e3},
    "stiffness": {"N/m": 1.0, "N/mm": 1e3, "kN/m": 1e3},
    "toughness": {"J/m^2": 1.0, "J/m2": 1.0, "kJ/m^2": 1e3, "kJ/m2": 1e3},
    "damping": {"N s/m": 1.0, "N s/mm": 1e3},
    "rotational stiffness": {"N m/rad": 1.0, "N mm/rad": 1e-3},
    "rotational damping": {"N m s/rad": 1.0, "N mm s/rad": 1e-3},
}

_TEXT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")


@dataclass(frozen=True)
class Quantity:
    """Annotation that turns a number, or a string with a unit of this kind, into an SI float."""

    kind: str

    @property
    def unit(self) -> str:
        """The SI unit; empty for a pure number."""
        return next(iter(UNITS[self.kind]))

    def to_si(self, value: Any) -> float:
        """SI value of a TOML number or string; raises ValueError in words."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise ValueError(f"is not finite; write {self._wanted()}")
            return float(value)
        match = _TEXT.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"is no {self.kind}; write {self._wanted()}")
        number, unit = match.groups()
        unit = re.sub(r"[.*·\s]+", " ", unit).replace("µ", "u")
        if self.kind == "number" and unit == "":
            raise ValueError("is text; write the number without quotes")
        if unit not in UNITS[self.kind]:
            raise ValueError(self._wrong_unit(unit))
        return float(number) * UNITS[self.kind][unit]

    def _wrong_unit(self, unit: str) -> str:
        if unit == "":
            return f"has no unit; write {self._wanted()}"
        other = next((kind for kind, units in UNITS.items() if unit in units), None)
        said = f"is a {other}" if other else f"has an unknown unit {unit!r}"
        return f"{said} where a {self.kind} is needed; write {self._wanted()}"

    def _wanted(self) -> str:
        if self.kind == "number":
            return "a plain number"
        return f"a number of {self.unit}, or text with {in_words(list(UNITS[self.kind]))}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.to_si, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        if self.kind == "number":
            return {"type": "number"}
        units = "|".join(re.escape(unit) for unit in UNITS[self.kind])
        text = {"type": "string", "pattern": rf"^\s*[-+0-9.eE]+\s*({units})\s*$"}
        return {"anyOf": [{"type": "number"}, text], "unit": self.unit}


Number = Annotated[float, Quantity("number")]
Length = Annotated[float, Quantity("length")]
Volume = Annotated[float, Quantity("volume")]
Flow = Annotated[float, Quantity("flow")]
Pressure = Annotated[float, Quantity("pressure")]
Density = Annotated[float, Quantity("density")]
Mass = Annotated[float, Quantity("mass")]
Time = Annotated[float, Quantity("time")]
Frequency = Annotated[float, Quantity("frequency")]
Angle = Annotated[float, Quantity("angle")]
Speed = Annotated[float, Quantity("speed")]
Slowness = Annotated[float, Quantity("slowness")]
Acceleration = Annotated[float, Quantity("acceleration")]
Force = Annotated[float, Quantity("force")]
ForceRate = Annotated[float, Quantity("force rate")]
Stiffness = Annotated[float, Quantity("stiffness")]
Damping = Annotated[float, Quantity("damping")]
Toughness = Annotated[float, Quantity("toughness")]
RotationalStiffness = Annotated[float, Quantity("rotational stiffness")]
RotationalDamping = Annotated[float, Quantity("rotational damping")]
