"""Suction cups held against what others measured: each row with its source, uncertainty, verdict and why.

Nothing here is fitted: a cup's dimensions are those of its source, or of a cup drawn to the source's few
figures before anything was computed, and materials are those of their data sheets. A row that does not fit
stays in the table and says why; what is published without a number, or without a source, is none.
"""

import math
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palpo.config.load import load_scene
from palpo.config.schema.geometry import RevolvedCup
from palpo.config.schema.suction import ScriptedDrive, SuctionScene
from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO, CupShape
from palpo.physics.suction.walled_cup import ATMOSPHERE, RT, Lost, WalledCup
from palpo.studies.claims import Claim, Line, Reported
from palpo.studies.reference.hold_time import HeldCup, hold_time
from palpo.studies.suction_runs import lead, spread
from palpo.studies.tables import write_csv

DATA_SHEET = {24e-3: 27.0, 32e-3: 48.0, 48e-3: 109.0}
"""Holding force [N] at -60 kPa by effective diameter [m], as makers of flat cups print it."""
PUMPED = 60e3
"""[Pa] below the atmosphere."""
NITRILE = 55.0
"""Shore A of the common cup material, 50 to 60."""
ON_STEEL = 0.5
"""mu of cups on dry metal and glass (Schmalz, theoretical holding force of a suction cup)."""
SHEET = RoughSurface(1e-6, 50e-6)
"""What the cup is pulled off: cold-rolled sheet of Ra 0.8 um, 1 um rms for Gaussian heights. It hardly
matters: no pump shuts so hard a rim, and the air's pressure falls all over what touches."""
GRAIN = 68e-6
"""Grain of Sandoval's moderate surface [m]."""
CLINGING = 10.1e3
"""Sandoval's adhesive stress on it [Pa], +- 0.3 kPa."""
SOFT_LAYER = 69e3
"""Young's modulus of what touches [Pa]: Ecoflex 00-30 (its data sheet, 10 psi at 100%)."""
DISC = HeldCup(radius=14e-3, rim=5e-3, volume=1e-6)
"""A disc of 38 mm with a shallow cavity, as the clingfish-inspired one is."""
PULLING = 1.0
"""What a pull-off test takes at the least [s]."""
SHEET_FILE, SHEET_SCENE = "suction-steel", 32e-3
"""The scene of a cup of a data sheet, and its effective diameter [m]."""


class MeasuredRow(NamedTuple):
    """One measurement and what we have beside it."""

    name: str
    source: str
    measured: float
    uncertainty: str
    ours: float
    unit: str
    tolerance: str
    holds: bool
    why: str  # what the figure is, and why it does not fit if it does not


def young_of_shore(shore: float) -> float:
    """Young's modulus [Pa] of a rubber by its Shore A (A. N. Gent, Rubber Chem. Technol. 31 (1958) 896)."""
    return 0.0981e6 * (56 + 7.62336 * shore) / (0.137505 * (254 - 2.54 * shore))


def pumped_force(
    shape: CupShape, youngs_modulus: float, mu: float, suction: float, wall: RoughSurface | None = None
) -> float:
    """Largest force [N] on the stem of a cup whose cavity is kept that far [Pa] below the atmosphere.

    wall: its roughness, over which the air's pressure falls under the rim; without it a rim that touches is
    tight, and suction ends where it begins to touch.
    """
    seal = None if wall is None else seal_of(wall, youngs_modulus / (1 - POISSON_RATIO**2))
    cup = WalledCup(shape, youngs_modulus, mu, seal=seal)
    size = shape.inner / 16e-3
    height, step, most = -5e-4 * size, 4e-4 * size, -math.inf
    cup.step(height, 0.0, 0.0)
    for share in np.linspace(0.05, 1.0, 20):
        most = cup.step(height, share * suction, 0.0).force
    while step > 1e-5 * size:
        before = cup.saved()
        try:
            most = max(most, cup.step(height + step, suction, 0.0).force)
            height += step
        except Lost:
            cup.restore(before)
            step /= 4
    return most


def _data_sheet_rows(item: tuple[float, float]) -> list[MeasuredRow]:
    diameter, force = item
    size = diameter / SHEET_SCENE
    small = CUPS["small"].shape
    lengths = ("inner", "top", "height", "rim", "stem", "stem_length")
    shape = replace(small, **{name: size * getattr(small, name) for name in lengths})
    modulus = young_of_shore(NITRILE)
    tight = pumped_force(shape, modulus, ON_STEEL, PUMPED)
    drawn = f"the small cup's shape, {size:g} times as large, of Shore A {NITRILE:g}, mu {ON_STEEL:g}"
    models = {
        "model of revolution": (
            pumped_force(shape, modulus, ON_STEEL, PUMPED, SHEET),
            f"{drawn}: its opening shrinks as it is drawn in, but suction reaches out under its rim to where "
            f"that touches last; ending where the rim begins to touch, {tight:.3g} N. Makers' shapes are not "
            "printed",
        ),
        "the scene's own body": (
            body_force(size),
            f"suction-steel, {size:g} times as large, hexahedra: suction ends at the cavity's border, where "
            f"the rim begins to touch, as does {tight:.3g} N of the model of revolution",
        ),
    }
    return [
        MeasuredRow(
            f"holding force of a cup of {1e3 * diameter:g} mm effective at -60 kPa, {name}",
            "data sheets of flat cups, F = dp A_eff", force, "theoretical, rounded to 1 N", ours, "N", "10%",
            abs(ours - force) <= 0.1 * force, why,
        )
        for name, (ours, why) in models.items()
    ]  # fmt: skip


def body_force(size: float) -> float:
    """Largest pull [N] on the cup of suction-steel, made so many times as large, without its weight."""
    spec = load_scene(SHEET_FILE)
    assert isinstance(spec, SuctionScene)
    geometry, drive = spec.cups[0].geometry, spec.cups[0].drive
    assert isinstance(geometry, RevolvedCup) and isinstance(drive, ScriptedDrive)
    lengths = ("opening", "top", "height", "rim", "stem", "stem_length")
    told = ", ".join(f"{name}={size * getattr(geometry, name)!r}" for name in lengths)
    path = ", ".join(f"[{t!r}, 0, {size * y!r}, 0]" for t, _, y, _ in drive.path)
    trace = lead(
        [
            f'bodies.cup.geometry={{kind="revolved", {told}, resolution={geometry.resolution}}}',
            f"bodies.cup.placement.position=[0, {size * spec.cups[0].placement.position[1]!r}, 0]",
            f"bodies.cup.drive.path=[{path}]",
        ],
        after=lambda suction: suction.time > drive.path[-2][0] and suction.cavity_count == 0,
        scene=SHEET_FILE,
    )
    return float(trace.hold[trace.time > drive.path[-2][0]].max() - trace.hold[0])


def sandpaper(grain: float) -> RoughSurface:
    """A wall of grains in a layer [m]: waves of two grains and shorter, a quarter of a grain rms."""
    return RoughSurface(0.25 * grain, 2.0 * grain)


def clinging_time(modulus: float, stress: float, wall: RoughSurface) -> float:
    """Seconds for which the disc holds that pull over its area [Pa], sealed at twice the suction it needs."""
    area = math.pi * (DISC.radius + DISC.rim) ** 2
    ring = area - math.pi * DISC.radius**2
    needed = stress * area / (area - 0.5 * ring)
    seal = seal_of(wall, modulus / (1 - POISSON_RATIO**2))
    return hold_time(DISC, seal, stress * area, min(2.0 * needed, 0.9 * ATMOSPHERE), RT)


def clinging_stress(modulus: float, wall: RoughSurface) -> float:
    """Largest stress [Pa] that the disc holds for a pull-off test, by bisection to a thousandth; 0 for less
    than a pascal."""
    low, high = 1.0, 0.4 * ATMOSPHERE
    if clinging_time(modulus, low, wall) < PULLING:
        return 0.0
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if clinging_time(modulus, middle, wall) >= PULLING else (low, middle)
    return low


def _sandoval_row() -> MeasuredRow:
    ours = clinging_stress(SOFT_LAYER, sandpaper(GRAIN))
    return MeasuredRow(
        "stress that a bioinspired disc with a soft layer holds for a second on grain of 68 um, in air",
        "Sandoval et al., Bioinspir. Biomim. 14 (2019) 066016", 1e-3 * CLINGING, "0.3 kPa", 1e-3 * ours,
        "kPa", "0.3 kPa", abs(ours - CLINGING) <= 300.0,
        f"all air has leaked in {clinging_time(SOFT_LAYER, CLINGING, sandpaper(GRAIN)):.2g} s: a disc of 38 "
        "mm, Ecoflex 00-30, on waves of two grains, a quarter of a grain rms; without adhesion, which draws "
        "so soft a layer into valleys, and without its slits",
    )  # fmt: skip


def rows(quick: bool) -> list[MeasuredRow]:
    """The table."""
    sheets = list(DATA_SHEET.items())[1:2] if quick else list(DATA_SHEET.items())
    found = spread(_data_sheet_rows, sheets, "pumped cups pulled off", quick=True)
    return [*chain.from_iterable(found), _sandoval_row()]


def run(out: Path, quick: bool) -> list[Line]:
    """The table as CSV and Markdown, and its verdicts."""
    table = rows(quick)
    write_csv(out / "measured.csv", [row._asdict() for row in table])
    head = "| measurement | source | measured | uncertainty | ours | tolerance | within | what it is |\n"
    cells = [
        f"| {r.name} | {r.source} | {_number(r.measured, r.unit)} | {r.uncertainty} "
        f"| {_number(r.ours, r.unit)} | {r.tolerance} | {'yes' if r.holds else '**no**'} | {r.why} |\n"
        for r in table
    ]
    (out / "measured.md").write_text(head + "|---" * 8 + "|\n" + "".join(cells), "utf-8")
    lines: list[Line] = [
        Claim(
            r.name,
            r.ours,
            r.unit,
            f"{_number(r.measured, r.unit)}, {r.tolerance} ({r.source}). {r.why}",
            r.holds,
        )
        for r in table
    ]
    within = sum(r.holds for r in table)
    return [*lines, Reported("rows within their tolerance", within, f"of {len(table)}", "as it is")]


def _number(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}".strip()
