"""Scenes as they were written before all systems had one list of bodies: read as today's.

A HapCo scene had its bodies as `[mobile]` and `[fixed]`, with `[hold]` beside them, a suction scene as
`[[cups]]` and `[partner]`, with the hand among the cups' drives. Files, recordings and `--set` of that time
go on working.

A key that a scene leaves out means today what docs/scenes.md says. In a recording it means what it meant
when that was made: `left_out` says it in today's words.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_PRESSED = ("mobile", "fixed", "hold")
_STUCK = ("cups", "partner")
_PARTNERS = {"static": "mesh", "soft": "tets"}
"""What kinds of partner are called today."""

DEFAULTS = 5
"""What keys left out mean today, by number; a recording tells its own. 1: all cups are of tetrahedra. 2: soft
bodies at two rates are of plain ones. 3: couplings are damped by 1 N s/m. 4: a device is neutral
when upright, and a plug does not turn with it."""


def as_today(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables of a scene in today's form; tables that have it already come back as they are."""
    if "bodies" in tables:
        return tables
    if isinstance(mobile := tables.get("mobile"), dict):
        hold = {"hold": tables["hold"]} if "hold" in tables else {}
        tool = {"body": mobile.get("name"), **hold}
        return {**_without(tables, _PRESSED), "bodies": list(_bodies(tables)), "tool": tool}
    if isinstance(tables.get("cups"), list):
        held = [cup for cup in tables["cups"] if isinstance(cup, dict) and _by_hand(cup.get("drive"))]
        tool = {"tool": {"body": held[0].get("name"), "hold": _hold(held[0]["drive"])}} if held else {}
        return {**_without(tables, _STUCK), "bodies": list(_bodies(tables)), **tool}
    return tables


def left_out(tables: Mapping[str, Any], defaults: int) -> list[str]:
    """The overrides that give today's tables the meaning they had under these DEFAULTS."""
    if defaults >= DEFAULTS:
        return []
    return [
        *_upright(tables),
        *(_damped(tables) if defaults < 4 else ()),
        *(_elements(tables, defaults) if defaults < 3 else ()),
    ]


def _upright(tables: Mapping[str, Any]) -> Iterator[str]:
    """Of the hands."""
    tools = tables.get("tools")
    listed = tools if isinstance(tools, list) else []
    own = "tool" not in tables and any("workspace" in tool for tool in listed[:1] if isinstance(tool, dict))
    beside = {f"tools.{i}.": tool for i, tool in enumerate(listed) if i or own or "tool" in tables}
    for key, table in {**({} if own else {"": tables}), **beside}.items():
        workspace = table.get("workspace", {}) if isinstance(table, dict) else None
        if isinstance(workspace, dict) and "neutral" not in workspace:
            yield f'{key}workspace.neutral="upright"'
    admittance = tables.get("admittance", {})
    if "connector" in tables and isinstance(admittance, dict) and "orientation" not in admittance:
        yield "admittance.orientation=false"


def _damped(tables: Mapping[str, Any]) -> Iterator[str]:
    """Of the couplings."""
    tools = tables.get("tools")
    listed = {f"tools.{i}": tool for i, tool in enumerate(tools)} if isinstance(tools, list) else {}
    for key, tool in {"tool": tables.get("tool"), **listed}.items():
        hold = tool.get("hold", {}) if isinstance(tool, dict) else None
        if isinstance(hold, dict) and hold.get("mode") != "direct" and "damping" not in hold:
            yield f"{key}.hold.damping=1.0"


def _elements(tables: Mapping[str, Any], defaults: int) -> Iterator[str]:
    """Of soft bodies."""
    bodies = tables.get("bodies")
    if not isinstance(bodies, list):
        return
    kinds = [body.get("kind") if isinstance(body, dict) else None for body in bodies]
    then, which = ("tetrahedra", "cup") if "cup" in kinds else ("tet4", "tets")
    for i, kind in enumerate(kinds):
        if kind == which and "elements" not in bodies[i] and (defaults < 2 or which == "tets"):
            yield f'bodies.{i}.elements="{then}"'


def _by_hand(drive: Any) -> bool:
    return isinstance(drive, dict) and drive.get("kind") == "hand"


def _hold(drive: dict[str, Any]) -> dict[str, Any]:
    return _without(drive, ("kind",))


def _without(tables: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in tables.items() if key not in keys}


def _bodies(tables: dict[str, Any]) -> Iterator[Any]:
    """The bodies of earlier tables as today's list has them."""
    for key in ("mobile", "fixed"):
        if key in tables:
            yield _body_today(key, tables[key])
    yield from (_body_today("cups", cup) for cup in tables.get("cups", ()))
    if "partner" in tables:
        yield _body_today("partner", tables["partner"])


def _body_today(key: str, body: Any) -> Any:
    """One body as today's list has it."""
    if not isinstance(body, dict):
        return body
    if key == "partner":
        return {"name": "partner", **body, "kind": _kind_today(body.get("kind"))}
    if key == "cups" and _by_hand(body.get("drive")):
        body = _without(body, ("drive",))
    return {"kind": "cup" if key == "cups" else "quasistatic", **body}


def _kind_today(kind: Any) -> Any:
    return _PARTNERS.get(kind, kind) if isinstance(kind, str) else kind


def key_today(tables: dict[str, Any], parts: list[str], value: Any) -> tuple[list[str], Any]:
    """A key's parts and the value to put there as they are in today's tables, from those of any time."""
    bodies = tables.get("bodies")
    if not isinstance(bodies, list) or not all(isinstance(body, dict) for body in bodies):
        return parts, value
    kinds = {str(body.get("kind")) for body in bodies}
    if parts[0] not in (*(_PRESSED if kinds == {"quasistatic"} else ()), *(_STUCK if "cup" in kinds else ())):
        return parts, value
    if parts[0] == "hold" and "tool" in tables:
        return ["tool", *parts], value
    held = tables["tool"].get("body") if isinstance(tables.get("tool"), dict) else None
    whole, below = 1, parts[1:]
    match parts[0]:
        case "mobile" | "fixed" if held is not None:
            meant = [body for body in bodies if (body.get("name") == held) == (parts[0] == "mobile")]
        case "partner":
            meant = [body for body in bodies if body.get("kind") != "cup"]
        case "cups" if below:
            cups = [body for body in bodies if body.get("kind") == "cup"]
            meant = [cup for i, cup in enumerate(cups) if below[0] in (cup.get("name"), str(i))]
            whole, below = 2, below[1:]
        case _:
            return parts, value
    if len(meant) != 1 or "name" not in meant[0]:
        return parts, value
    if parts[0] == "cups" and below[:1] == ["drive"]:
        if meant[0]["name"] == held:
            return ["tool", "hold", *below[1:]], value
        if _by_hand(value):
            return ["tool"], {"body": meant[0]["name"], "hold": _hold(value)}
    if len(parts) == whole:
        value = _body_today(parts[0], value)
    elif parts[0] == "partner" and below == ["kind"]:
        value = _kind_today(value)
    return ["bodies", str(meant[0]["name"]), *below], value
