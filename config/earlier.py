"""Scenes as they were written before all systems had one list of bodies: read as today's.

A HapCo scene had its bodies as `[mobile]` and `[fixed]`, and `[hold]` beside them. Files, recordings and
`--set` of that time go on working.
"""

from typing import Any


def as_today(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables of a scene in today's form; tables that have it already come back as they are."""
    if "bodies" in tables or not isinstance(tables.get("mobile"), dict):
        return tables
    mobile, rest = tables["mobile"], {key: tables[key] for key in tables if key not in _PLACES}
    bodies = [{"kind": "quasistatic"} | body for body in (mobile, tables.get("fixed")) if body is not None]
    hold = {"hold": tables["hold"]} if "hold" in tables else {}
    return {**rest, "bodies": bodies, "tool": {"body": mobile.get("name"), **hold}}


_PLACES = ("mobile", "fixed", "hold")


def key_today(tables: dict[str, Any], parts: list[str], value: Any) -> tuple[list[str], Any]:
    """A key's parts and the value to put there as they are in today's tables, from those of any time."""
    bodies, tool = tables.get("bodies"), tables.get("tool")
    if parts[0] not in _PLACES or not isinstance(bodies, list) or not isinstance(tool, dict):
        return parts, value
    if parts[0] == "hold":
        return ["tool", *parts], value
    held = [isinstance(body, dict) and body.get("name") == tool.get("body") for body in bodies]
    wanted = parts[0] == "mobile"
    if len(held) != 2 or sum(held) != 1:
        return parts, value
    if len(parts) == 1 and isinstance(value, dict):
        value = {"kind": "quasistatic"} | value
    return ["bodies", str(bodies[held.index(wanted)]["name"]), *parts[1:]], value
