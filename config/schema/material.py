"""Linear elastic material with Rayleigh damping, by name or by its constants."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from palpo.config.schema.base import Spec, refuse
from palpo.config.schema.units import Density, Frequency, Number, Pressure, Time
from palpo.config.words import choose


@cache
def library() -> dict[str, dict[str, Any]]:
    """The materials of materials.toml: name -> constants."""
    return tomllib.loads(files("palpo.config").joinpath("materials.toml").read_text("utf-8"))


class Elastic(Spec):
    """A name of the library, `material = "liver"`, or a table; with a name, it changes what it gives."""

    name: str = Field("", description="Entry of the library that supplies the constants not given here.")
    youngs_modulus: Pressure = Field(gt=0, description="Young's modulus E.")
    poisson_ratio: Number = Field(gt=-1, lt=0.5, description="Poisson's ratio, below 0.5.")
    density: Density = Field(gt=0, description="Mass per volume.")
    alpha: Frequency = Field(
        0.0, ge=0, description="Rayleigh damping proportional to mass: C = alpha M + beta K."
    )
    beta: Time = Field(0.0, ge=0, description="Rayleigh damping proportional to stiffness.")

    @classmethod
    def named(cls, name: str, /, **constants: Any) -> "Elastic":
        """The material of this name, such as "liver", with other constants where they are given."""
        return cls(**{"name": name, **constants})

    def tables(self) -> dict[str, Any]:
        """See Spec; what the library says is left to it."""
        told = super().tables()
        own = Elastic.model_validate(self.name).model_dump(exclude={"name"}) if self.name else {}
        return {key: value for key, value in told.items() if value != own.get(key)}

    @model_validator(mode="before")
    @classmethod
    def _from_library(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, dict) or not data.get("name"):
            return data
        if data["name"] not in list(library()):
            raise refuse(f"no such material; {choose(data['name'], library())}")
        return library()[data["name"]] | data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        table = handler.resolve_ref_schema(handler(schema))
        named = {"required": ["name"]}
        in_full = {"required": table.pop("required")}
        return {"anyOf": [{"type": "string", "enum": list(library())}, table | {"anyOf": [named, in_full]}]}
