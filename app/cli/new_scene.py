"""`palpo new FILE`: a scene of one's own part and a probe, from three questions."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.shapes import placed, soft_mesh, surface_of
from palpo.app.cli.refusal import chosen_of
from palpo.app.runtime.keeping import write_new
from palpo.config.load import scene_of
from palpo.config.schema.body import Soft, Static
from palpo.config.schema.geometry import CLOSED_FILES, SEGMENTED_FILES, VOLUME_FILES
from palpo.config.schema.material import library
from palpo.config.toml import write_toml
from palpo.config.words import Refusal, in_words
from palpo.physics.mesh import io, labels
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

RIGID = "rigid"
UNITS = {"mm": 0.001, "cm": 0.01, "m": 1.0}
HOLDS = {"bottom": "it stands on that", "ends": "of its length", "nothing": "it lies on a floor"}
CELLS, HALVINGS = 14, 3
"""Tetrahedra along the longest side, and how often their size is halved where it is too coarse."""
HELD, BALL = 0.1, 0.08
"""Share of a side that is held; the probe's radius over the longest side."""
DEEP, TOP = 0.5, 0.05
"""How deep the probe presses, over its radius; share of the height within which a point is at the top."""
RADII = 0.002, 0.015
"""Least and greatest radius of a probe [m]."""
ABOVE, SECONDS = 0.005, (0.0, 0.5, 1.5, 2.5, 4.0)
"""Where the probe begins above the part [m], and when it is there, there, down, down and up again [s]."""


def make_scene(
    file: str, out: str | None = None, material: str | None = None, unit: str | None = None,
    held: str | None = None, label: int | None = None, size: float | None = None, up: str | None = None,
) -> Path:  # fmt: skip
    """Write a scene of a part that a probe presses, and return its name; what is not told is asked for.

    Without gravity where the part is held, since a soft one would sag out of the shape that its file has.

    file: a mesh, a closed surface or a segmented volume, of which `label` is a part. size: edge of the
    tetrahedra [m]. up: the file's axis that points up, "y" or "z". Raises Refusal and InputError for what
    cannot be.
    """
    path, segmented = Path(file), file.lower().endswith(SEGMENTED_FILES)
    known = (*VOLUME_FILES, *CLOSED_FILES, *SEGMENTED_FILES)
    if not file.lower().endswith(known):
        raise Refusal(f"{file}: has an ending that is not read here; use {in_words(list(known))}")
    name = path.name.split(".")[0]
    target = Path(f"{name}.toml" if out is None else out)
    if target.exists():
        raise Refusal(f"{target}: is there already; choose another name by --out")
    stuff = _answer("--material", material, "What is it made of, by `palpo materials`, or rigid?", "silicone")
    chosen_of(stuff, dict.fromkeys([*library(), RIGID]), "material")
    geometry = _segment(file, label, unit) if segmented else _surface(file, label, unit)
    told: dict[str, Any] = {"name": "part", "geometry": geometry, "colour": [0.85, 0.6, 0.5]}
    if stuff == RIGID:
        told["kind"] = "mesh"
    else:
        holds = "; ".join(f"{way}: {words}" for way, words in HOLDS.items())
        held = _answer("--held", held, f"What holds it? {holds}.", "bottom")
        chosen_of(held, HOLDS, "hold")
        told |= {"kind": "tets", "material": stuff}
    upright = (up or ("z" if segmented else "y")) == "y"
    told["placement"] = {} if upright else {"rotation": [1, 0, 0, "-90 deg"]}
    points = _meshed(told, size)
    low, high = points.min(axis=0), points.max(axis=0)
    shift = -np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])])
    told["placement"]["position"] = _rounded(shift)
    tables = _scene(told, points + shift, held, name)
    scene_of(tables, target)
    if target.resolve().parent == path.resolve().parent:
        geometry["path"] = path.name
    write_new(target, write_toml(tables))
    return target


def _answer(option: str, given: str | None, asked: str, usual: str) -> str:
    """What an option says, or somebody who is asked; Refusal where nobody answers."""
    if given is not None:
        return given
    try:
        return input(f"{asked} [{usual}] ").strip() or usual
    except EOFError:
        raise Refusal(f"{option}: nobody answers here; give this option") from None


def _surface(file: str, label: int | None, unit: str | None) -> dict[str, Any]:
    if label is not None:
        raise Refusal(f"--label {label}: only a segmented volume has parts")
    long = float(np.ptp(io.read_surface_mesh(file, drop_unreferenced=True).vertices, axis=0).max())
    unit = _answer("--unit", unit, f"Its longest side is {long:.4g}: mm, cm or m?", "mm")
    scale = chosen_of(unit, UNITS, "unit")
    geometry = {"kind": "file", "path": str(Path(file).resolve()), "scale": scale}
    if file.lower().endswith(CLOSED_FILES):
        geometry["size"] = long * scale / CELLS
    return geometry


def _segment(file: str, label: int | None, unit: str | None) -> dict[str, Any]:
    if unit is not None:
        raise Refusal(f"--unit {unit}: a segmented volume says its unit itself; leave it out")
    whole = labels.read_labels(file)
    there = {str(n): whole.names.get(n, "") for n in whole.parts()}
    if label is None:
        told = ", ".join(f"{n} {words}".strip() for n, words in there.items())
        answer = _answer("--label", None, f"Which label? {told}", next(iter(there), "0"))
        chosen_of(answer, there, "label")
        label = int(answer)
    part = whole.part(label)
    long = float(np.ptp(part.box, axis=0).max())
    return {"kind": "segment", "path": str(Path(file).resolve()), "label": label, "size": long / CELLS}


def _meshed(told: dict[str, Any], size: float | None) -> Floats:
    """Points of the part where it is placed (n, 3) [m]; its size, where it has one, is put in."""
    geometry, soft = told["geometry"], told["kind"] == "tets"
    if not soft and geometry["kind"] == "file":
        geometry.pop("size", None)
    if size is not None:
        geometry["size"] = size
    for left in reversed(range(HALVINGS + 1)):
        if "size" in geometry:
            geometry["size"] = float(f"{geometry['size']:.3g}")
        try:
            if soft:
                return soft_mesh(Soft.model_validate(told)).nodes
            fixed = Static.model_validate(told)
            return placed(surface_of(fixed.geometry).vertices, fixed.placement)
        except InputError:
            if size is not None or "size" not in geometry or not left:
                raise
            geometry["size"] *= 0.5
    raise AssertionError


def _scene(told: dict[str, Any], points: Floats, held: str | None, name: str) -> dict[str, Any]:
    """The tables of a scene in which a ball presses on the top of a part with such points (n, 3) [m]."""
    sides = np.ptp(points, axis=0)
    high_up = points[points[:, 1] > points[:, 1].max() - TOP * sides[1]]
    # there the probe comes down, as near to the middle as may be
    top = high_up[np.linalg.norm(high_up[:, [0, 2]] - points[:, [0, 2]].mean(axis=0), axis=1).argmin()]
    radius = float(np.clip(BALL * sides.max(), *RADII))
    floor = {"name": "floor", "kind": "plane", "colour": [0.8, 0.8, 0.8]}
    low, high = points.min(axis=0) - 1e-3, points.max(axis=0) + 1e-3
    boxes: list[tuple[Floats, Floats]] = []
    if held == "bottom":
        boxes = [(low, np.array([high[0], HELD * sides[1], high[2]]))]
    elif held == "ends":
        axis = 0 if sides[0] >= sides[2] else 2
        first, last = high.copy(), low.copy()
        first[axis], last[axis] = (points[:, axis].min() + s * HELD * sides[axis] for s in (1, 1 / HELD - 1))
        boxes = [(low, first), (last, high)]
    if boxes:
        told["fixed"] = [{"box": [_rounded(a), _rounded(b)]} for a, b in boxes]
    start = top + np.array([0.0, radius + ABOVE, 0.0])
    deep = start - np.array([0.0, ABOVE + DEEP * min(radius, sides[1]), 0.0])
    way = [[t, *_rounded(at)] for t, at in zip(SECONDS, (start, start, deep, deep, start), strict=True)]
    probe = {
        "name": "probe", "kind": "rigid", "rate": "high", "mass": "30 g", "colour": [0.7, 0.72, 0.78],
        "geometry": {"kind": "sphere", "radius": float(f"{radius:.3g}")},
        "placement": {"position": _rounded(start)},
    }  # fmt: skip
    return {
        "title": f"A probe on {name}",
        **({"gravity": [0, 0, 0]} if boxes else {}),
        "bodies": [told, *([floor] if held == "nothing" else []), probe],
        "friction": {"default": 0.3},
        "tool": {"body": "probe"},
        "device": {"path": way},
        "workspace": {"offset": _rounded(start)},
    }


def _rounded(at: Floats) -> list[float]:
    """A place to a micrometre [m]."""
    return [round(float(x), 6) + 0.0 for x in at]
