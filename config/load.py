"""Scenes from TOML: read, overridden, validated; every refusal is one sentence."""

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Union

from pydantic import TypeAdapter, ValidationError

from palpo.config.earlier import as_today, key_today, left_out
from palpo.config.schema.scene import Origin
from palpo.config.systems import all_systems, foreign_key, system_told
from palpo.config.toml import write_toml
from palpo.config.words import ConfigError, Key, choose, one_line, sentence, shown_value

CARDS = Path(__file__).parent / "scenes" / "cards"
"""Where each shipped scene has its small picture, NAME.png."""


def list_scenes() -> dict[str, str]:
    """The scenes that come with the program: name -> one line about it."""
    return {name: tables.get("description", "") for name, tables in shipped_tables().items()}


def shipped_tables() -> dict[str, dict[str, Any]]:
    """The files of the scenes that come with the program as tables, by the scene's name."""
    return {path.stem: read_toml(path.read_text("utf-8"), path.name) for path in _shipped()}


def load_scene(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Any:
    """A shipped scene by name, or a user's TOML file by path; raises ConfigError.

    The specification is that of the system that its tables belong to (palpo.config.systems).
    Each override is "key=value", such as "bodies.wire.material.youngs_modulus=2 GPa".
    """
    path = _find(str(name_or_path))
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); give a TOML file in UTF-8") from None
    return parse_scene(text, path, overrides)


def parse_scene(text: str, path: str | Path, overrides: Sequence[str] = ()) -> Any:
    """A scene from its text, as a recording keeps it; mesh files are looked for beside `path`."""
    path = Path(path)
    origin = Origin(path, text, tuple(overrides))
    return _validated(scene_tables(origin), origin)


def recorded_scene(told: Mapping[str, Any]) -> Any:
    """The scene of a recording from what that tells of it; what it leaves out means what it meant then."""
    origin = Origin(Path(told["path"]), told["text"], tuple(told["overrides"]))
    then = left_out(scene_tables(origin), told.get("defaults", 1))
    return parse_scene(origin.text, origin.path, (*origin.overrides, *then))


def scene_of(tables: dict[str, Any], path: str | Path) -> Any:
    """A scene from its tables, plain values as TOML has them; mesh files are looked for beside `path`."""
    tables = as_today(tables)
    return _validated(tables, Origin(Path(path), write_toml(tables), ()))


def scene_tables(origin: Origin) -> dict[str, Any]:
    """The tables of a scene with its overrides, before its defaults and units."""
    data = as_today(read_toml(origin.text, origin.path.name))
    for override in origin.overrides:
        set_key(data, override)
    return data


def _validated(data: dict[str, Any], origin: Origin) -> Any:
    path = origin.path
    system = system_told(data)
    if system not in list(all_systems()):
        raise ConfigError(f"{path.name}: system = {one_line(system)}: {choose(system, all_systems())}")
    if foreign := foreign_key(data, system):
        key, said = foreign
        raise ConfigError(f"{path.name}: {key}{shown_value(data[key])}: {said}")
    try:
        scene = all_systems()[system].model_validate(
            data, context={"folder": str(path.parent), "system": system}
        )
    except ValidationError as error:
        raise ConfigError(f"{path.name}: {sentence(error, data, partial(_as_written, data))}") from None
    scene._origin = origin
    return scene


def read_toml(text: str, file: str) -> dict[str, Any]:
    """The tables of a TOML text; raises ConfigError with line and column."""
    try:
        return copy.deepcopy(_parsed(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None


@lru_cache(maxsize=64)
def _parsed(text: str) -> dict[str, Any]:
    """A text's tables, to be copied: each change of a running scene reads the scene anew."""
    return tomllib.loads(text)


def json_schema() -> dict[str, Any]:
    """JSON schema of a scene file, of any system."""
    every: Any = Union[tuple(all_systems().values())]  # noqa: UP007
    return TypeAdapter(every).json_schema()


def set_key(data: dict[str, Any], override: str) -> None:
    """Put "a.b.c=value" into the tables of a scene; list items go by number, bodies by name too."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write key=value, such as rates.low_hz=25")
    put_value(data, key.strip(), _value(text), f"--set {override}")


def said_today(origin: Origin, override: str) -> str:
    """An override "key=value" with its key as a scene writes it today."""
    key, equals, text = override.partition("=")
    parts = _parts(key)
    if not parts or not equals:
        return override
    now, _ = key_today(scene_tables(origin), parts, None)
    return override if now == parts else f"{'.'.join(now)}={text}"


def put_value(data: dict[str, Any], key: str, value: Any, said: str) -> None:
    """Put a value under "a.b.c" into the tables of a scene; `said` stands before what a refusal says."""
    parts = _parts(key)
    if not parts:
        raise ConfigError(f"{said}: the key is empty; write one such as rates.low_hz")
    parts, value = key_today(data, _of_first_tool(data, parts), value)
    table: Any = data
    for i, part in enumerate(parts[:-1]):
        if isinstance(table, list):
            table = table[_item(table, part, said)]
        else:
            if part == "material" and isinstance(table.get(part), str):
                table[part] = {"name": table[part]}
            table = table.setdefault(part, {})
        if not isinstance(table, dict | list):
            raise ConfigError(f"{said}: {'.'.join(parts[: i + 1])} is a single value; it has no keys below")
    if isinstance(table, list):
        table[_item(table, parts[-1], said)] = value
    else:
        table[parts[-1]] = value


def _parts(key: str) -> list[str]:
    """The parts of a key "a.b[0].c"."""
    return [part for part in re.split(r"[.\[\]]+", key.strip()) if part]


def _of_first_tool(data: dict[str, Any], parts: list[str]) -> list[str]:
    """The key's parts; where a list of tools stands for the tool, those of the first one's place there."""
    first = _first_of_tools(data)
    if first is None:
        return parts
    if parts[0] == "tool":
        return ["tools", "0", *parts[1:]]
    return ["tools", "0", *parts] if parts[0] in ("device", "workspace") and parts[0] in first else parts


def _first_of_tools(data: dict[str, Any]) -> dict[str, Any] | None:
    """The tool, where it is the first of a list of tools."""
    tools = data.get("tools")
    if "tool" in data or not isinstance(tools, list) or not tools or not isinstance(tools[0], dict):
        return None
    return tools[0]


def _value(text: str) -> Any:
    """The text as a TOML value, or else as a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _item(items: list[Any], part: str, said: str) -> int:
    """Index of a list's item by its number or by its name."""
    names = [str(item["name"]) for item in items if isinstance(item, dict) and "name" in item]
    if part in names:
        return names.index(part)
    if part.isdecimal() and int(part) < len(items):
        return int(part)
    known = names or [str(i) for i in range(len(items))]
    raise ConfigError(f'{said}: there is no "{part}"; {choose(part, known)}')


def _shipped() -> list[Path]:
    return sorted(
        Path(str(files("palpo.config"))).joinpath("scenes").glob("*.toml"), key=lambda path: path.stem
    )


def _find(name: str) -> Path:
    shipped = {path.stem: path for path in _shipped()}
    if name in shipped:
        return shipped[name]
    path = Path(name).expanduser()
    if path.is_file():
        return path
    said = "is not there" if path.suffix or len(path.parts) > 1 else "is not a scene"
    raise ConfigError(f"{name} {said}; give a TOML file or a shipped scene: {choose(name, shipped)}")


def _as_written(data: dict[str, Any], location: tuple[Key, ...]) -> tuple[Key, ...]:
    """A place in the scene as its file has it, where the first of a list of tools stands for the tool."""
    if _first_of_tools(data) is None:
        return location
    match location:
        case ("tools", int(index), *below):
            return ("tools", index + 1, *below)
        case ("tool", *below):
            return ("tools", 0, *below)
        case (("device" | "workspace") as key, *_) if key not in data:
            return ("tools", 0, *location)
    return location
