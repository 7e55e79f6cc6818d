"""What somebody at the window changes of a body: material, size and place. The scene is built anew for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.live import same_key
from palpo.app.runtime.options import Options
from palpo.app.systems.system import system_of
from palpo.app.visual.held import held_name
from palpo.config.load import load_scene, scene_tables
from palpo.config.schema.geometry import Placement
from palpo.config.schema.material import library
from palpo.config.schema.scene import BaseScene
from palpo.config.toml import plain, value_text
from palpo.render.panel_state import Setting

Floats = NDArray[np.float64]

SETTLED = 0.5
"""Seconds after the last change until the scene is built anew: nobody drags and wants each place."""
SCALES = 4.0
"""By what a body may become larger or smaller at once."""
AXES = "xyz"
REGIONS = ("fixed", "clamped", "contact", "regions")
"""Keys of a body whose boxes and spheres are places in the scene, which go where the body goes."""


class Editing:
    """The body that was chosen, and what is wanted of it until the scene is built anew."""

    def __init__(self) -> None:
        self._body = ""
        self._wanted: dict[str, Any] = {}
        self._since = 0.0
        self._settings: dict[str, Setting] = {}
        self._foot = np.zeros(3)
        self._earlier = self._settings, self._foot
        self.before: Options | None = None
        """What ran before the last change, to go back to where that cannot be built."""

    def choose(self, spec: BaseScene, name: str, length: float, points: Floats) -> str:
        """Take this body, or none; what to say of it.

        length: of the scene [m], by which it may be moved. points: of the body at rest [m], shape (n, 3);
        their lowest place stays where it is when the size changes.
        """
        self._body, self._wanted = name, {}
        self._settings = {setting.key: setting for setting in _settings(spec, name, length)}
        if not name:
            return "no body is chosen"
        low, high = points.min(axis=0), points.max(axis=0)
        self._foot = np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])])
        if not self._settings:
            return f"{name}: nothing of it can be changed here"
        along = sorted(joined(spec, name) - {name})
        told = f"; {' and '.join(along)} goes along with its place" if along and "x" in self._settings else ""
        return f"{name}: change it in the panel{told}"

    def groups(self) -> dict[str, tuple[Setting, ...]]:
        """For the panel, as they are or are wanted; none where no body is chosen."""
        shown = tuple(
            one._replace(value=self._wanted.get(key, one.value)) for key, one in self._settings.items()
        )
        return {self._body: shown} if shown else {}

    def change(self, key: str, value: object, now: float) -> bool:
        """Take over what is wanted of a key at a time [s]; whether it is one of these."""
        if key not in self._settings:
            return False
        self._wanted[key], self._since = value, now
        return True

    def due(self, now: float) -> bool:
        """Whether something is wanted, and has been for a while."""
        return bool(self._wanted) and now - self._since >= SETTLED

    def apply(self, spec: BaseScene, options: Options) -> Options:
        """Options of a run with what is wanted, which is done then; ConfigError for what cannot be."""
        wanted, self._wanted = self._wanted, {}
        told = changes(spec, self._body, wanted, self._foot)
        kept = [old for old in options.overrides if not any(same_key(old, new) for new in told)]
        before, after = (_body(one, self._body) for one in (spec, load_scene(options.scene, (*kept, *told))))
        self.before, self._earlier = options, (self._settings, self._foot)
        values = _values(after)
        self._settings = {key: one._replace(value=values[key]) for key, one in self._settings.items()}
        if before.kind != "plane":
            self._foot = _moved(before.placement, after.placement, self._foot)
        return replace(options, overrides=(*kept, *told))

    def taken_back(self) -> Options | None:
        """What ran before the last change, where that is not built yet; it counts as never made."""
        before, self.before = self.before, None
        if before is not None:
            self._settings, self._foot = self._earlier
        return before


def changes(spec: BaseScene, name: str, wanted: dict[str, Any], foot: Floats) -> list[str]:
    """The changes "key=value" that give a body another `material`, `scale`, or place `x`, `y`, `z` [m].

    foot: what stays where it is when the scale changes, unless a place is told [m], shape (3,).
    """
    body, key = _body(spec, name), f"bodies.{name}"
    told = [f"{key}.material={wanted['material']}"] if "material" in wanted else []
    if wanted.keys() <= {"material"}:
        return told
    old: Placement = body.placement
    scale = float(wanted.get("scale", old.scale))
    stays = foot + scale / old.scale * (np.array(old.position) - foot)
    position = [float(wanted.get(axis, at)) for axis, at in zip(AXES, stays, strict=True)]
    new = Placement(position=(position[0], position[1], position[2]), scale=scale)
    told += [f"{key}.placement.scale={scale!r}", *_placed(body, old, new)]
    return [*told, *_along(spec, name, old, new)]


def joined(spec: BaseScene, name: str) -> set[str]:
    """A body, and all that is attached to it, to these, and so on."""
    pairs, found = [_ends(attachment) for attachment in getattr(spec, "attachments", ())], {name}
    while more := set().union(*(pair for pair in pairs if pair & found)) - found:
        found |= more
    return found


def _ends(attachment: Any) -> set[str]:
    return {end.body for end in (attachment.a, getattr(attachment, "b", None)) if end is not None}


def _placed(body: Any, old: Placement, new: Placement) -> Iterator[str]:
    """The changes that move a body, and the places on it, from one placement to another."""
    key, way = f"bodies.{body.name}", np.subtract(new.position, old.position)
    place = new.position if body.placement == old else (np.array(body.placement.position) + way).tolist()
    yield f"{key}.placement.position={value_text(list(place))}"
    for regions in REGIONS:
        rows = plain(getattr(body, regions, ()))
        if rows and _regions_moved(rows, old, new):
            yield f"{key}.{regions}={value_text(rows)}"


def _regions_moved(rows: list[dict[str, Any]], old: Placement, new: Placement) -> bool:
    """Move the boxes and spheres among these regions in place; whether there are any."""
    for row in rows:
        if row.get("box"):
            row["box"] = [_moved(old, new, corner).tolist() for corner in row["box"]]
        if ball := row.get("sphere"):
            ball["centre"] = _moved(old, new, ball["centre"]).tolist()
            ball["radius"] *= new.scale / old.scale
    return any(row.get("box") or row.get("sphere") for row in rows)


def _along(spec: Any, name: str, old: Placement, new: Placement) -> Iterator[str]:
    """The changes by which what a body is attached to goes along, and the hands that hold one of these."""
    if not system_of(spec).starts_anywhere():
        return
    bodies = joined(spec, name)
    for other in bodies - {name}:
        yield from _placed(spec.body(other), old, new)
    rows = plain([s for s in spec.surfaces if s.body in bodies])
    if rows and _regions_moved(rows, old, new):
        yield f"surfaces={value_text(rows + plain([s for s in spec.surfaces if s.body not in bodies]))}"
    rows = plain(spec.attachments)
    ends = [row[end] for row in rows for end in "ab" if end in row and row[end]["body"] in bodies]
    for end in ends:
        if end.get("at"):
            end["at"] = _moved(old, new, end["at"]).tolist()
    if ends:
        yield f"attachments={value_text(rows)}"
    for number, hand in enumerate(spec.hands):
        if hand.tool.body in bodies:
            place = number - ("tool" in scene_tables(spec.origin))
            yield from _led_along(hand, "" if place < 0 else f"tools.{place}.", old, new)


def _led_along(hand: Any, key: str, old: Placement, new: Placement) -> Iterator[str]:
    """The changes by which a hand holds its body where it is then, and goes the same way from there."""
    at = hand.tool.hold.at
    held = np.array(old.position if at is None else at, float)
    way = _moved(old, new, held) - held
    if at is not None:
        yield f"{key or 'tool.'}hold.at={value_text((held + way).tolist())}"
    path = [[row[0], *(np.array(row[1:]) + way).tolist()] for row in hand.device.path]
    yield f"{key}device.path={value_text(path)}"
    yield f"{key}workspace.offset={value_text((np.array(hand.workspace.offset) + way).tolist())}"


def _moved(old: Placement, new: Placement, point: Any) -> Floats:
    """Where a point (3,) of a body goes when its placement changes, which turns nothing [m]."""
    away = np.array(point, float) - np.array(old.position)
    return np.asarray(np.array(new.position) + new.scale / old.scale * away)


def _settings(spec: BaseScene, name: str, length: float) -> Iterator[Setting]:
    """What of a body can be changed: of one that is attached not its size, beside a plane not its place."""
    body = _body(spec, name)
    values = {} if body is None else _values(body)
    if "material" in values:
        names = tuple(library())
        label = f"material of {name}"
        yield Setting("material", label, "", values["material"], choices=names, matters=True)
    if "scale" not in values or _is_tied(spec, name):
        return
    if joined(spec, name) == {name} and not any(name in _ends(a) for a in getattr(spec, "attachments", ())):
        now = values["scale"]
        yield Setting("scale", f"size of {name}", "x", now, now / SCALES, now * SCALES, True, matters=True)
    for axis in AXES:
        at = values[axis]
        yield Setting(axis, f"{axis} of {name}", "m", at, at - length, at + length, matters=True)


def _values(body: Any) -> dict[str, Any]:
    """The present values of what can be changed of a body."""
    found: dict[str, Any] = {}
    if getattr(body, "material", None) is not None:
        found["material"] = body.material.name or "its own"
    if body.kind != "plane":
        found |= {"scale": body.placement.scale, **dict(zip(AXES, body.placement.position, strict=True))}
    return found


def _body(spec: BaseScene, name: str) -> Any:
    """The body of this name; None where the scene has none."""
    return next((body for body in getattr(spec, "bodies", ()) if body.name == name), None)


def _is_tied(spec: Any, name: str) -> bool:
    """Whether a body's place cannot change: it is attached to a plane, or held in a scene of another kind."""
    if system_of(spec).starts_anywhere():
        return any(spec.body(other).kind == "plane" for other in joined(spec, name))
    held = {held_name(spec), *(getattr(getattr(hand, "tool", None), "body", "") for hand in spec.hands)}
    return name in held
