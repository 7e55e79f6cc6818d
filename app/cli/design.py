"""What a designer of a snap connector asks: force over travel, loads, what a change does, how many will do.

A point is a scene with some keys changed. Its row says what was found; limits say which rows pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import account, is_refusal
from palpo.app.cli.sweep import Axis, axis_of
from palpo.app.systems.snap.build import field_of, numerics_of
from palpo.app.systems.snap.connector import connector_of
from palpo.config.load import load_scene
from palpo.config.schema.snap import SnapScene
from palpo.config.words import Refusal
from palpo.physics.systems.snap.connectors.registry import KINDS
from palpo.physics.systems.snap.travel import Travel, push_and_pull

Row = dict[str, Any]

SCENE = "scene"
"""Key of an axis whose values are scenes."""
WITHIN = 3.0
"""Standard deviations in a tolerance: 99.7 % of all parts are inside."""
TWO_SIDED = 1.96
"""Standard deviations of a confidence of 95 %."""


@dataclass(frozen=True)
class Limits:
    """What a connector must keep to; None asks nothing."""

    insertion_below: float | None = None  # [N]
    retention_above: float | None = None  # [N]
    strain_below: float | None = None  # [-]
    stress_below: float | None = None  # [Pa]

    def passes(self, row: Row) -> bool:
        """Whether a row keeps to them; one that does not latch, or was not computed, never does."""
        held = {
            "insertion_N": (self.insertion_below, -1.0),
            "retention_N": (self.retention_above, 1.0),
            "strain": (self.strain_below, -1.0),
            "stress_Pa": (self.stress_below, -1.0),
        }
        return bool(row["latched"]) and all(
            limit is None or sign * row[name] >= sign * limit for name, (limit, sign) in held.items()
        )


@dataclass(frozen=True)
class Tolerance:
    """A key that comes out normally distributed about the scene's own value."""

    key: str
    about: float
    deviation: float
    """Standard deviation."""


@dataclass(frozen=True)
class DesignRequest:
    """What is asked of a scene."""

    scene: str
    """The one that is looked at closely."""
    overrides: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ()
    tolerances: tuple[str, ...] = ()
    runs: int = 0
    seed: int = 0
    back: float | None = None
    """How far the latched plug is pulled [m]; without it, a third of the stroke."""
    limits: Limits = field(default_factory=Limits)


@dataclass
class DesignResult:
    """What was found."""

    spec: SnapScene
    travel: Travel
    row: Row
    axes: tuple[Axis, ...]
    grid: list[Row]
    curves: list[tuple[int, Travel]]
    """Of each point of the grid that could be computed, by its place."""
    tolerances: tuple[Tolerance, ...]
    parts: list[Row]
    limits: Limits

    def export(self, folder: str | Path) -> Path:
        """Write the connector as a joint with friction and a latch for MuJoCo, Drake and USD, with its law in
        Python, into a folder that is made."""
        from palpo.app.report.connector_joint import write_joint

        Path(folder).mkdir(parents=True, exist_ok=True)
        write_joint(Path(folder), self.spec.title, connector_of(self.spec), self.travel)
        return Path(folder)


def investigate(design: DesignRequest, progress: Progress) -> DesignResult:
    """All of it. Raises Refusal, ConfigError and InputError for a scene that cannot be computed as it is."""
    spec = scene_of(design.scene, design.overrides)
    tolerances = tuple(tolerance_of(text, spec) for text in design.tolerances)
    if len(design.axes) > 2:
        raise Refusal("--param: a map has two axes; give at most two")
    if tolerances and design.runs < 2:
        raise Refusal(f"--runs {design.runs}: tolerances need at least two")
    with progress.stage("meshes, distance, force over travel"):
        travel = travel_of(spec, design, progress)
    row = row_of(travel, design.limits)
    grid, curves = [], []
    for k, point in enumerate(_points(design.axes)):
        name = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items())
        with progress.stage(name):
            found, why = _tried(design, point, progress)
        grid.append({**point, **_row(found, why, design.limits)})
        if found is not None:
            curves.append((k, found))
    parts = []
    rng = np.random.default_rng(design.seed)
    for k in range(design.runs if tolerances else 0):
        point = {t.key: repr(float(rng.normal(t.about, t.deviation))) for t in tolerances}
        with progress.stage(f"part {k + 1} of {design.runs}"):
            found, why = _tried(design, point, progress)
        parts.append({**point, **_row(found, why, design.limits)})
    return DesignResult(spec, travel, row, design.axes, grid, curves, tolerances, parts, design.limits)


def scene_of(name: str, overrides: Sequence[str]) -> SnapScene:
    """The scene; Refusal for one of another system."""
    spec = load_scene(name, list(overrides))
    if not isinstance(spec, SnapScene):
        raise Refusal(f'{name}: system = "{spec.system}"; this command needs a snap scene')
    return spec


def travel_of(spec: SnapScene, design: DesignRequest, progress: Progress) -> Travel:
    """Force over travel of a scene."""
    connector = connector_of(spec, progress)
    back = connector.stroke / 3.0 if design.back is None else design.back
    if not 0.0 < back <= connector.stroke:
        raise Refusal(
            f"--back {back:g}: pull by a positive way [m], at most the stroke, {connector.stroke:g}"
        )
    field = field_of(spec, connector)
    return push_and_pull(connector, numerics_of(spec), field, back, progress.come_to)


def row_of(travel: Travel, limits: Limits) -> Row:
    """What is said of a connector in a table."""
    inward, outward = travel.insertion, travel.retention
    row: Row = {
        "insertion_N": inward.peak,
        "plateau_N": inward.plateau,
        "sliding_N": inward.sliding,
        "insertion_at_m": inward.at_peak,
        "retention_N": outward.peak,
        "released": travel.released,
        "latched": travel.latched,
        "strain": float(inward.strain.max()),
        "stress_Pa": float(inward.stress.max()),
        "strain_pulled": float(outward.strain.max()),
        "why": "",
    }
    return row | {"passes": limits.passes(row)}


def _row(travel: Travel | None, why: str, limits: Limits) -> Row:
    if travel is not None:
        return row_of(travel, limits)
    nothing = dict.fromkeys(
        ("insertion_N", "plateau_N", "sliding_N", "insertion_at_m", "retention_N", "strain", "stress_Pa",
         "strain_pulled"), math.nan,
    )  # fmt: skip
    return {**nothing, "released": False, "latched": False, "passes": False, "why": why}


def _tried(design: DesignRequest, point: dict[str, str], progress: Progress) -> tuple[Travel | None, str]:
    """What a point gives, or why it cannot be computed."""
    changes = (f"{key}={value}" for key, value in point.items() if key != SCENE)
    try:
        spec = scene_of(point.get(SCENE, design.scene), (*design.overrides, *changes))
        return travel_of(spec, design, progress), ""
    except Exception as error:
        if is_refusal(error) or isinstance(error, RuntimeError):
            return None, account(error)
        raise


def _points(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    if axes:
        keys = [axis.key for axis in axes]
        for values in itertools.product(*(axis.values for axis in axes)):
            yield dict(zip(keys, values, strict=True))


def axes_of(scenes: Sequence[str], texts: Sequence[str]) -> tuple[Axis, ...]:
    """Axes from `--param`, and one of the scenes where there are several."""
    axes = tuple(axis_of(text) for text in texts)
    return axes if len(scenes) == 1 else (Axis(SCENE, tuple(scenes)), *axes)


def tolerance_of(text: str, spec: SnapScene) -> Tolerance:
    """From `key=0.0001` or `key=10%`: three deviations about the scene's own value; Refusal otherwise."""
    key, _, width = text.partition("=")
    about = value_at(spec, key.strip())
    try:
        share = width.strip().endswith("%")
        found = float(width.strip().rstrip("%")) * (abs(about) / 100.0 if share else 1.0)
    except ValueError:
        found = math.nan
    if not (found > 0.0 and math.isfinite(found)):
        raise Refusal(f"--tolerance {text}: write key=width or key=10%, a positive number without unit")
    return Tolerance(key.strip(), about, found / WITHIN)


def value_at(spec: SnapScene, key: str) -> float:
    """The number that stands at a key, or the generator's own; Refusal where there is none."""
    value: Any = spec
    for part in key.split("."):
        if isinstance(value, tuple) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = getattr(value, part, math.nan)
    if value is None and key.startswith("connector.") and spec.connector.kind in KINDS:
        value = getattr(KINDS[spec.connector.kind].dimensions(), key.partition(".")[2])
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refusal(f"--tolerance {key}: the scene has no number there to vary")
    return float(value)


def share_of(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Yield: share of the rows that pass, and its confidence interval of 95 % after Wilson.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference (JASA 22, 1927).
    """
    n, z = len(rows), TWO_SIDED
    p = sum(bool(row["passes"]) for row in rows) / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return p, max(0.0, middle - half), min(1.0, middle + half)


def print_found(found: DesignResult) -> None:
    """The scene and the sweep's points as a table."""
    keys = [axis.key for axis in found.axes]
    table = Table(
        *keys, "insertion [N]", "plateau [N]", "retention [N]", "strain [%]", "stress [MPa]", "latches",
        "passes",
    )  # fmt: skip
    names = {axis.key: dict(zip(axis.values, short_names(axis.values), strict=True)) for axis in found.axes}
    for row in [{**dict.fromkeys(keys, "as it is"), **found.row}, *found.grid]:
        where = [names[key].get(row[key], row[key]) for key in keys]
        if row["why"]:
            table.add_row(*where, row["why"])
            continue
        table.add_row(
            *where, f"{row['insertion_N']:.3g}", f"{row['plateau_N']:.3g}",
            f"{row['retention_N']:.3g}{'' if row['released'] else ' or more'}",
            f"{100.0 * row['strain']:.3g}", f"{1e-6 * row['stress_Pa']:.3g}",
            _yes(row["latched"]), _yes(row["passes"]),
        )  # fmt: skip
    Console(highlight=False).print(table)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def short_names(values: Sequence[str]) -> list[str]:
    """Texts without what all of them begin and end with: paths by what tells them apart."""
    if len(values) < 2 or "/" not in values[0]:
        return list(values)
    parts = [Path(value).parts for value in values]
    same = [len(set(column)) == 1 for column in zip(*parts, strict=False)]
    return ["/".join(p for p, k in zip(part, same, strict=False) if not k) or part[-1] for part in parts]
