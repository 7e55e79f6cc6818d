"""What every specification shares: frozen, closed to unknown keys, and errors that know their key."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from palpo.config.toml import plain
from palpo.config.words import ConfigError, choose, in_words, sentence

Count = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]


def refuse(said: str, *path: str | int) -> PydanticCustomError:
    """An error about the key at `path` below the model that raises it."""
    return PydanticCustomError("refused", "{sentence}", {"sentence": said, "path": path})


class Only:
    """Annotation of a key that scenes of some systems alone have."""

    def __init__(self, *systems: str) -> None:
        self.systems = systems


class Default:
    """Annotation of a key that scenes of some systems, where they leave it out, have another value of."""

    def __init__(self, **values: Any) -> None:
        self.values = values


class Among:
    """Annotation of a choice by name, of which scenes of some systems have a part: names by system."""

    def __init__(self, **names: tuple[str, ...]) -> None:
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(value: Any, info: Any) -> Any:
            known = self.names.get(system_of(info.context), get_args(source))
            if value not in list(known):
                raise refuse(choose(value, known))
            return value

        return core_schema.with_info_before_validator_function(check, handler(source))


Mark = TypeVar("Mark", Only, Default, Among)


def mark_of(field: FieldInfo, kind: type[Mark]) -> Mark | None:
    """What a field is marked with of this kind."""
    return next((mark for mark in field.metadata if isinstance(mark, kind)), None)


def system_of(context: Mapping[str, Any] | None) -> str:
    """The system of the scene that is checked; empty where a part is checked by itself."""
    return str((context or {}).get("system", ""))


class Spec(BaseModel):
    """A validated, immutable part of a scene."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    misplaced: ClassVar[dict[str, str]] = {}
    """Keys that belong elsewhere, and what to do instead."""

    def __init__(self, /, **keys: Any) -> None:
        name, said = type(self).__name__, {key: value for key, value in keys.items() if value is not None}
        try:
            said = plain(said)
            super().__init__(**said)
        except TypeError as error:
            raise ConfigError(f"{name}: {error}") from None
        except ValidationError as error:
            raise ConfigError(f"{name}: {sentence(error, said, whole='')}") from None

    # Tables within a scene are validated without calling this, as those of other models are.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def tables(self) -> dict[str, Any]:
        """What was said of this part, as a file has it: plain values; what was left out stays out."""
        tagged = {"kind": kind_of(type(self))} if is_tagged(type(self)) else {}
        said = {key: getattr(self, key) for key in type(self).model_fields if key in self.model_fields_set}
        return tagged | {key: plain(value) for key, value in said.items() if value is not None}

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any, info: ValidationInfo) -> Any:
        system = system_of(info.context)
        fields = cls._fields_in(system)
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            raise refuse("a table is needed here, with the keys " + in_words(list(fields), "and"))
        for key in data:
            if key not in fields:
                raise refuse(f"unknown key; {cls.misplaced.get(key) or choose(key, fields)}", key)
        for key, field in fields.items():
            if field.is_required() and key not in data:
                raise refuse(f"the key is missing ({(field.description or 'its kind').rstrip('.')})", key)
        return cls._defaults_in(system) | data

    @classmethod
    def _fields_in(cls, system: str) -> dict[str, FieldInfo]:
        """The keys that this part has in scenes of a system; all where that is not known."""
        only = {key: mark_of(field, Only) for key, field in cls.model_fields.items()}
        return {
            key: field
            for key, field in cls.model_fields.items()
            if not system or (mark := only[key]) is None or system in mark.systems
        }

    @classmethod
    def _defaults_in(cls, system: str) -> dict[str, Any]:
        """What keys are in scenes of a system where that differs from their default."""
        found: dict[str, Any] = {}
        for key, field in cls.model_fields.items():
            mark = mark_of(field, Default)
            if mark is not None and system in mark.values:
                found[key] = mark.values[system]
            elif isinstance(field.default, Spec) and field.default._defaults_in(system):
                found[key] = {}
        return found

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(schema)
        if is_tagged(cls):
            table = handler.resolve_ref_schema(made)
            table["required"] = ["kind", *table.get("required", [])]
        return made


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


def is_tagged(model: type[BaseModel]) -> bool:
    """Whether a specification is one of several kinds."""
    field = model.model_fields.get("kind")
    names = () if field is None or get_origin(field.annotation) is not Literal else get_args(field.annotation)
    return len(names) == 1


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
