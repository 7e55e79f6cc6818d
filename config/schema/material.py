"""Elastic materials with Rayleigh damping, by name or by their constants."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from palpo.config.schema.base import Only, Spec, refuse
from palpo.config.schema.units import Density, Frequency, Number, Pressure, Quantity, Time
from palpo.config.words import choose, in_words


@cache
def library() -> dict[str, dict[str, Any]]:
    """The materials of materials.toml: name -> constants, and `source` and `sure` of them."""
    return tomllib.loads(files("palpo.config").joinpath("materials.toml").read_text("utf-8"))


LAW_KEYS: dict[str, tuple[str, ...]] = {
    "neo-hookean": (),
    "mooney-rivlin": ("c10", "c01"),
    "ogden": ("terms",),
    "fung": ("exponent",),
}
"""Laws beside Hooke's, and the keys that each of them has and needs."""

DERIVED = ("mooney-rivlin", "ogden")
"""Laws whose constants say how stiff they are."""


def _with_modulus(table: dict[str, Any]) -> dict[str, Any]:
    """A material's table with the Young's modulus of its law's constants, where they are sound.

    mu = 2 (c10 + c01), or sum mu_p alpha_p / 2. Refuses another modulus beside them.
    """
    pressure, number = Quantity("pressure").to_si, Quantity("number").to_si
    try:
        if table.get("law") == "mooney-rivlin":
            shear = 2.0 * (pressure(table["c10"]) + pressure(table["c01"]))
        elif table.get("law") == "ogden":
            terms = [term if isinstance(term, dict) else term.model_dump() for term in table["terms"]]
            shear = 0.5 * sum(pressure(term["modulus"]) * number(term["exponent"]) for term in terms)
        else:
            return table
        modulus = 2.0 * shear * (1.0 + number(table["poisson_ratio"]))
        told = pressure(table.get("youngs_modulus", modulus))
    except (KeyError, TypeError, AttributeError, ValueError):
        modulus = told = -1.0
    if not modulus > 0.0:
        return {"youngs_modulus": 1.0} | table  # so that it is the constants that are refused, one by one
    if abs(told - modulus) > 1e-6 * abs(modulus):
        keys = in_words(list(LAW_KEYS[table["law"]]), "and")
        raise refuse(
            f"it follows from {keys} and poisson_ratio, {modulus:.6g} Pa: leave it out", "youngs_modulus"
        )
    return table | {"youngs_modulus": modulus}


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
        return cls._merged(data)

    @classmethod
    def _merged(cls, data: Any) -> Any:
        """A table with what the library says of its name."""
        if isinstance(data, str):
            data = {"name": data}
        if not isinstance(data, dict) or not data.get("name"):
            return data
        if data["name"] not in list(library()):
            raise refuse(f"no such material; {choose(data['name'], library())}")
        own = _with_modulus(library()[data["name"]])
        if data.get("law", own.get("law")) != own.get("law"):
            # constants of another law say nothing of this one
            gone = {"law", *(key for keys in LAW_KEYS.values() for key in keys)}
            if data["law"] in DERIVED:
                gone.add("youngs_modulus")
            own = {key: value for key, value in own.items() if key not in gone}
        return {key: value for key, value in own.items() if key in cls.model_fields} | data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        table = handler.resolve_ref_schema(handler(schema))
        named = {"required": ["name"]}
        in_full = {"required": table.pop("required")}
        return {"anyOf": [{"type": "string", "enum": list(library())}, table | {"anyOf": [named, in_full]}]}


class PronyTerm(Spec):
    """A part of the stress that fades, g (1 - exp(-t / tau)) of it after a time t."""

    ratio: Number = Field(gt=0, lt=1, description="g, of the modulus of a quick load.")
    time: Time = Field(gt=0, description="tau, after which it is down to 37%.")


class OgdenTerm(Spec):
    """One power of Ogden's law, mu / alpha (s1^alpha + s2^alpha + s3^alpha - 3)."""

    modulus: Pressure = Field(description="mu, of the sign of alpha.")
    exponent: Number = Field(ge=-50, le=50, description="alpha, not 0.")

    @model_validator(mode="after")
    def _resists(self) -> "OgdenTerm":
        if not self.modulus * self.exponent > 0.0:
            raise refuse("modulus times exponent must be positive: both of one sign, neither 0", "modulus")
        return self


LawName = Literal["linear", "neo-hookean", "mooney-rivlin", "ogden", "fung"]


class SoftMaterial(Elastic):
    """That of a soft body: it may follow another law than Hooke's."""

    law: Annotated[LawName, Only("multirate")] = Field(
        "linear",
        description="Of stress and strain. `linear`: Hooke's, in axes that turn with each element. All "
        "others are as stiff as E and nu say at rest, and stiffen or soften with the strain.",
    )
    c10: Annotated[Pressure | None, Only("multirate")] = Field(
        None, ge=0, description="Of `mooney-rivlin`, c10 (I1 - 3) + c01 (I2 - 3); E follows from both."
    )
    c01: Annotated[Pressure | None, Only("multirate")] = Field(None, ge=0, description="See c10.")
    terms: Annotated[tuple[OgdenTerm, ...], Only("multirate")] = Field(
        (), max_length=6, description="Of `ogden`; E follows from them."
    )
    exponent: Annotated[Number | None, Only("multirate")] = Field(
        None,
        gt=0,
        le=1000,
        description="b of `fung`, mu / 2b (exp(b (I1 - 3)) - 1): the larger, the sooner it stiffens.",
    )
    prony: Annotated[tuple[PronyTerm, ...], Only("multirate")] = Field(
        (),
        max_length=8,
        description="Parts of the stress that fade while the strain stays: a Prony series. E is then that "
        "of a quick load, and the ratios are below 1 together.",
    )

    @classmethod
    def _merged(cls, data: Any) -> Any:
        data = super()._merged(data)
        return _with_modulus(data) if isinstance(data, dict) else data

    @model_validator(mode="after")
    def _fits(self) -> "SoftMaterial":
        for law, keys in LAW_KEYS.items():
            for key in keys:
                given = getattr(self, key) not in (None, ())
                if given and law != self.law:
                    raise refuse(f'it belongs to law = "{law}", and this is "{self.law}"', key)
                if not given and law == self.law:
                    raise refuse(f'the key is missing, which law = "{law}" needs', key)
        if not sum(term.ratio for term in self.prony) < 1.0:
            raise refuse(
                "the ratios must be below 1 together, or nothing is left of a load that stays", "prony"
            )
        if self.law == "mooney-rivlin" and not (self.c10 or self.c01):
            raise refuse("one of c10 and c01 must be above 0", "c10")
        return self

    @property
    def shape(self) -> tuple[float, ...]:
        """What the law has besides its stiffness at rest, as palpo.physics.fem.laws take it."""
        if self.law == "mooney-rivlin":
            assert self.c10 is not None and self.c01 is not None
            return (self.c01 / (self.c10 + self.c01),)
        if self.law == "ogden":
            work = [term.modulus * term.exponent for term in self.terms]
            pairs = zip(work, self.terms, strict=True)
            return tuple(x for one, term in pairs for x in (one / sum(work), term.exponent))
        return () if self.exponent is None else (self.exponent,)
