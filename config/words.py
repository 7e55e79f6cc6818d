"""What is said of input that cannot be used: one sentence with its key, its value and what would be right."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

Key = str | int


class Refusal(ValueError):
    """What cannot be used or carried out, told in one sentence."""


class ConfigError(Refusal):
    """A scene that cannot be used, told in one sentence: file, key, value and what would be right."""


def in_words(names: list[str], last: str = "or") -> str:
    """Join names as prose does: a, b or c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def choose(word: Any, known: Iterable[str]) -> str:
    """What would be right instead of `word`: the nearest known name, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return "choose " + in_words([f'"{name}"' for name in names]) if names else "there are none"


_WORDS = {
    "int_type": "is not a whole number; write one without quotes or decimal point",
    "bool_type": "is not true or false; write one of them, without quotes",
    "string_type": 'is not text; write it in quotes "..."',
    "tuple_type": "is not a list; write it in brackets [...]",
    "too_short": "has too few items; give at least {least}",
    "too_long": "has too many items; give at most {most}",
    "greater_than": "is too small; it must be above {gt:g}",
    "greater_than_equal": "is too small; it must be at least {ge:g}",
    "less_than": "is too large; it must be below {lt:g}",
    "less_than_equal": "is too large; it must be at most {le:g}",
    "string_pattern_mismatch": "is not a name; start with a letter, go on with letters, digits, _ or -",
    "string_too_short": "is empty; write some text",
}


def sentence(
    error: ValidationError,
    data: dict[str, Any],
    written: Callable[[tuple[Key, ...]], tuple[Key, ...]] = tuple,
    whole: str = "the scene",
) -> str:
    """The first of the errors, an unknown key before all others, as one sentence.

    data: what was refused, named `whole` where it is all of it; written: where in it a place stands.
    """
    found = error.errors(include_url=False)
    first = min(found, key=lambda one: "unknown key" not in one["msg"])
    context = first.get("ctx", {})
    kind, location = first["type"], (*first["loc"], *context.get("path", ()))
    if kind == "missing":  # of a list; missing keys are refused in words by the specification
        location = location[:-1]
    path, value = _locate(written(location), data)
    if kind == "refused":
        said = context["sentence"]
    elif kind == "missing":
        said = f"has too few items; give at least {len(value) + 1}"
    elif kind == "value_error":
        said = str(context["error"])
    elif kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        said = choose(value, known) if known else f"choose {context['expected']}"
    elif kind in _WORDS:
        said = _WORDS[kind].format(least=context.get("min_length"), most=context.get("max_length"), **context)
    else:
        said = first["msg"]
    shown = shown_value(value)
    joint = " " if re.match(r"is |has |does |starts |equals ", said) else ": "
    return f"{path or whole}{shown}{joint}{said}" if path or whole else said


_ABSENT = object()


def shown_value(value: Any) -> str:
    """What stands behind a key in a refusal; nothing where it is a table or a list of tables."""
    tables = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value))
    return "" if value is _ABSENT or tables else f" = {one_line(value)}"


def _locate(location: tuple[Key, ...], data: Any) -> tuple[str, Any]:
    """The key path as a user writes it, and the value that stands there."""
    path = ""
    for part in location:
        if isinstance(data, list):
            index = part if isinstance(part, int) else [item.get("name") for item in data].index(part)
            data = data[index] if index < len(data) else _ABSENT
            name = data.get("name") if isinstance(data, dict) else None
            path += f".{name}" if re.fullmatch(r"[\w-]+", str(name or "")) else f"[{index}]"
            continue
        if isinstance(data, dict):
            if part == data.get("kind") and part not in data:
                continue  # a union's tag, which is no key
            data = data.get(str(part), _ABSENT)
        path += f".{part}"
    return path.lstrip("."), data


def one_line(value: Any) -> str:
    """A value on one line, nearly as TOML writes it, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)
    return text if len(text) <= 60 else text[:57] + "..."
