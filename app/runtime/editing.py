"""What somebody at the window changes of a body: material, size and place. The scene is built anew for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.live import same_key
from palpo.app.runtime.options import Options
from palpo.app.visual.held import held_name
from palpo.config.load import load_scene
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
        tied = "" if "scale" in self._settings else "; its place is that of what holds it"
        return f"{name}: change it in the panel{tied}"

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
    told += [f"{key}.placement.scale={scale!r}", f"{key}.placement.position={value_text(position)}"]
    for regions in REGIONS:
        rows = plain(getattr(body, regions, ()))
        if not rows or not any(row.get("box") or row.get("sphere") for row in rows):
            continue
        for row in rows:
            if row.get("box"):
                row["box"] = [_moved(old, new, corner).tolist() for corner in row["box"]]
            if ball := row.get("sphere"):
                ball["centre"] = _moved(old, new, ball["centre"]).tolist()
                ball["radius"] *= scale / old.scale
        told.append(f"{key}.{regions}={value_text(rows)}")
    return told


def _moved(old: Placement, new: Placement, point: Any) -> Floats:
    """Where a point (3,) of a body goes when its placement changes, which turns nothing [m]."""
    away = np.array(point, float) - np.array(old.position)
    return np.asarray(np.array(new.position) + new.scale / old.scale * away)


def _settings(spec: BaseScene, name: str, length: float) -> Iterator[Setting]:
    """What of a body can be changed: of one that is held or attached the material alone."""
    body = _body(spec, name)
    values = {} if body is None else _values(body)
    if "material" in values:
        names = tuple(library())
        label = f"material of {name}"
        yield Setting("material", label, "", values["material"], choices=names, matters=True)
    if "scale" not in values or _is_tied(spec, name):
        return
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


def _is_tied(spec: BaseScene, name: str) -> bool:
    """Whether a body's place is the hand's, or another body's: it is held or attached."""
    held = {held_name(spec), *(getattr(getattr(hand, "tool", None), "body", "") for hand in spec.hands)}
    ends = (end for a in getattr(spec, "attachments", ()) for end in (a.a, getattr(a, "b", None)) if end)
    return name in held | {end.body for end in ends}
