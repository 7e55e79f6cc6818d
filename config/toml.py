"""A scene's tables as TOML: what was told in Python can be kept in a file."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """A value as TOML knows it: arrays and tuples become lists, paths texts, parts of a scene tables.

    TypeError for anything else.
    """
    if hasattr(value, "tables"):
        return value.tables()
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, which is not imported here
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a {type(value).__name__} is no value of a scene: give a number, text, list or table")


def write_toml(tables: dict[str, Any]) -> str:
    """The TOML text of plain tables; reading it gives them again."""
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Keys with values first, then the tables below, each under its full name."""
    below = {key: value for key, value in table.items() if _has_header(value)}
    for key, value in table.items():
        if key not in below:
            yield f"{_key(key)} = {value_text(value)}"
    for key, value in below.items():
        name = ".".join(map(_key, (*path, key)))
        for item in [value] if isinstance(value, dict) else value:
            yield ""
            yield f"[{name}]" if isinstance(value, dict) else f"[[{name}]]"
            yield from _lines(item, (*path, key))


def _has_header(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def value_text(value: Any) -> str:
    """A plain value as TOML writes it in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)} = {value_text(item)}' for key, item in value.items())}}}"
    return repr(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
