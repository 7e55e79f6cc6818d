"""What somebody at the window changes of a body: material, size and place. The scene is built anew for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from palpo.app.runtime.live import same_key
from palpo.app.runtime.options import Options
from palpo.app.visual.held import held_name
from palpo.config.load import load_scene
from palpo.config.schema.geometry import Placement
from palpo.config.schema.material import library
from palpo.config.schema.scene import BaseScene
from palpo.config.toml import plain, value_text
from palpo.render.panel_state import Setting

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
        self._wanted: dict[str, object] = {}
        self._since = 0.0
        self._settings: dict[str, Setting] = {}
        self._earlier = self._settings
        self.before: Options | None = None
        """What ran before the last change, to go back to where that cannot be built."""

    def choose(self, spec: BaseScene, name: str, length: float) -> str:
        """Take this body; what to say of it. length: of the scene [m], by which it may be moved."""
        self._body, self._wanted = name, {}
        self._settings = {setting.key: setting for setting in self._of(spec, length)}
        if name and not self._settings:
            return f"{name}: nothing of it can be changed here"
        return f"{name}: its material, size and place are in the panel" if name else "no body is chosen"

    def groups(self) -> dict[str, tuple[Setting, ...]]:
        """For the panel, as they are or are wanted; none where no body is chosen."""
        shown = tuple(_with(one, self._wanted.get(key, one.value)) for key, one in self._settings.items())
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
        told = changes(spec, self._body, wanted)
        kept = [old for old in options.overrides if not any(same_key(old, new) for new in told)]
        load_scene(options.scene, (*kept, *told))
        self.before, self._earlier = options, self._settings
        self._settings = {key: _with(one, wanted.get(key, one.value)) for key, one in self._settings.items()}
        return replace(options, overrides=(*kept, *told))

    def taken_back(self) -> Options | None:
        """What ran before the last change, where that is not built yet; it counts as never made."""
        before, self.before = self.before, None
        if before is not None:
            self._settings = self._earlier
        return before

    def _of(self, spec: BaseScene, length: float) -> list[Setting]:
        body, found = _body(spec, self._body), []
        material = getattr(body, "material", None)
        if material is not None:
            names = tuple(library())
            found.append(
                Setting(
                    "material",
                    f"material of {body.name}",
                    "",
                    material.name or "its own",
                    choices=names,
                    matters=True,
                )
            )
        placement = getattr(body, "placement", None)
        if placement is None or _is_tied(spec, self._body):
            return found
        now = placement.scale
        found.append(
            Setting("scale", f"size of {body.name}", "x", now, now / SCALES, now * SCALES, True, matters=True)
        )
        found += [
            Setting(axis, f"{axis} of {body.name}", "m", at, at - length, at + length, matters=True)
            for axis, at in zip(AXES, placement.position, strict=True)
        ]
        return found


def _with(setting: Setting, value: Any) -> Setting:
    return setting._replace(value=value)


def changes(spec: BaseScene, name: str, wanted: dict[str, Any]) -> list[str]:
    """The changes "key=value" that give a body another `material`, `scale`, or place `x`, `y`, `z` [m]."""
    body, key = _body(spec, name), f"bodies.{name}"
    told = [f"{key}.material={wanted['material']}"] if "material" in wanted else []
    if wanted.keys() <= {"material"}:
        return told
    old: Placement = body.placement
    scale = float(wanted.get("scale", old.scale))
    position = [float(wanted.get(axis, at)) for axis, at in zip(AXES, old.position, strict=True)]
    told += [f"{key}.placement.scale={scale!r}", f"{key}.placement.position={value_text(position)}"]
    times, first = scale / old.scale, np.array(old.position)

    def moved(point: Any) -> list[float]:
        return [float(x) for x in np.array(position) + times * (np.array(point) - first)]

    for regions in REGIONS:
        rows = plain(getattr(body, regions, ()))
        if not rows or not any(row.get("box") or row.get("sphere") for row in rows):
            continue
        for row in rows:
            if row.get("box"):
                row["box"] = [moved(corner) for corner in row["box"]]
            if row.get("sphere"):
                row["sphere"] = {
                    "centre": moved(row["sphere"]["centre"]), "radius": times * row["sphere"]["radius"]
                }  # fmt: skip
        told.append(f"{key}.{regions}={value_text(rows)}")
    return told


def _body(spec: BaseScene, name: str) -> Any:
    """The body of this name; None where the scene has none."""
    return next((body for body in getattr(spec, "bodies", ()) if body.name == name), None)


def _is_tied(spec: BaseScene, name: str) -> bool:
    """Whether a body's place is the hand's, or another body's: it is held or attached."""
    held = {held_name(spec), *(getattr(getattr(hand, "tool", None), "body", "") for hand in spec.hands)}
    ends = (end for a in getattr(spec, "attachments", ()) for end in (a.a, getattr(a, "b", None)) if end)
    return name in held | {end.body for end in ends}
