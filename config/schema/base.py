"""What every specification shares: frozen, closed to unknown keys, and errors that know their key."""

import difflib
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from palpo.config.schema.units import in_words

Count = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]


def refuse(sentence: str, *path: str | int) -> PydanticCustomError:
    """An error about the key at `path` below the model that raises it."""
    return PydanticCustomError("refused", "{sentence}", {"sentence": sentence, "path": path})


def choose(word: Any, known: Iterable[str]) -> str:
    """What would be right instead of `word`: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return "choose " + in_words([f'"{name}"' for name in names]) if names else "there are none"


class Spec(BaseModel):
    """A validated, immutable part of a scene."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    misplaced: ClassVar[dict[str, str]] = {}
    """Keys that belong elsewhere, and what to do instead."""

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            raise refuse("a table is needed here, with the keys " + in_words(list(cls.model_fields), "and"))
        for key in data:
            if key not in cls.model_fields:
                raise refuse(f"unknown key; {cls.misplaced.get(key) or choose(key, cls.model_fields)}", key)
        for key, field in cls.model_fields.items():
            if field.is_required() and key not in data:
                raise refuse(f"the key is missing ({(field.description or 'its kind').rstrip('.')})", key)
        return data


class Kinds:
    """Annotation of a union told apart by its key `kind`, whose errors name the kinds there are.

    default: the kind of a table that does not say, where there is one.
    """

    def __init__(self, default: str | None = None) -> None:
        self.default = default

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds = [kind_of(model) for model in get_args(source)]

        def check(data: Any) -> Any:
            if isinstance(data, BaseModel):
                return data
            named = " or ".join(f'"{kind}"' for kind in kinds)
            if not isinstance(data, dict):
                raise refuse(f"a table is needed here, with kind = {named}")
            if "kind" not in data:
                if self.default is None:
                    raise refuse(f"the key is missing; choose {named}", "kind")
                return {"kind": self.default} | data
            if data["kind"] not in kinds:
                raise refuse(choose(data["kind"], kinds), "kind")
            return data

        return core_schema.no_info_before_validator_function(check, handler(source))


def kind_of(model: type[BaseModel]) -> str:
    """The literal that a model's key `kind` takes."""
    return get_args(model.model_fields["kind"].annotation)[0]


def exactly_one(spec: BaseModel, *names: str) -> None:
    """Refuse a table that sets none or several of keys that exclude each other."""
    at_most_one(spec, *names)
    if all(getattr(spec, name) is None for name in names):
        raise refuse(f"exactly one of {in_words(list(names))} is needed, none is given")


def at_most_one(spec: BaseModel, *names: str) -> None:
    """Refuse a table that sets several of keys that exclude each other."""
    given = [name for name in names if getattr(spec, name) is not None]
    if len(given) > 1:
        raise refuse(f"{in_words(given, 'and')} exclude each other; keep one")
