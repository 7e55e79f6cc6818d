"""The files that a scene names: where they stand in it, and their whole paths."""

from collections.abc import Iterator, Mapping
from typing import Any

from palpo.config.schema.base import Spec
from palpo.config.schema.geometry import FileOf
from palpo.config.words import Key


def files_of(part: Any, place: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Each file of a scene or of a part: the keys it stands under, and its whole path."""
    if isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from files_of(item, (*place, i))
    if isinstance(part, Spec):
        for key, field in type(part).model_fields.items():
            value = getattr(part, key)
            if value is not None and any(isinstance(mark, FileOf) for mark in field.metadata):
                yield (*place, key), value
            yield from files_of(value, (*place, key))


def with_files(tables: dict[str, Any], files: Mapping[tuple[Key, ...], str]) -> dict[str, Any]:
    """The tables of a scene, which are changed, with those paths."""
    for (*keys, last), path in files.items():
        table: Any = tables
        for key in keys:
            table = table[key]
        table[last] = path
    return tables
