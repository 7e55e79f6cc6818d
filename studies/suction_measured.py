"""Suction cups held against what others measured: each row with its source, uncertainty, verdict and why.

Nothing here is fitted: a cup's dimensions are those of its source, or of a cup drawn to the source's few
figures before anything was computed, and materials are those of their data sheets. A row that does not fit,
or that nothing here can be set against, stays in the table and says why.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO, CupShape
from palpo.physics.suction.walled_cup import ATMOSPHERE, BONDED, RT, Lost, WalledCup
from palpo.studies.claims import Claim, Line
from palpo.studies.reference.hold_time import HeldCup, hold_time
from palpo.studies.suction_runs import PUSH, spread
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
SOFT_LAYER, COMMERCIAL = 69e3, 3e6
"""Young's moduli of what touches [Pa]: Ecoflex 00-30 (its data sheet, 10 psi at 100%), and of Shore A 55."""
DISC = HeldCup(radius=14e-3, rim=5e-3, volume=1e-6)
"""A disc of 38 mm with a shallow cavity, as the clingfish-inspired one is."""
PULLING = 1.0
"""What a pull-off test takes at the least [s]."""
SUBSTRATES = (np.inf, 1e6, 1e5, 3e4)
"""Young's moduli of what a cup stands on [Pa]."""


class MeasuredRow(NamedTuple):
    """One measurement and what we have beside it."""

    name: str
    source: str
    measured: float
    uncertainty: str
    ours: float  # nan: nothing to set against it
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


def _data_sheet_row(item: tuple[float, float]) -> MeasuredRow:
    diameter, force = item
    scale = 0.5 * diameter / CUPS["small"].shape.inner
    small = CUPS["small"].shape
    lengths = ("inner", "top", "height", "rim", "stem", "stem_length")
    shape = replace(small, **{name: scale * getattr(small, name) for name in lengths})
    modulus = young_of_shore(NITRILE)
    ours = pumped_force(shape, modulus, ON_STEEL, PUMPED, SHEET)
    tight = pumped_force(shape, modulus, ON_STEEL, PUMPED)
    return MeasuredRow(
        f"holding force of a cup of {1e3 * diameter:g} mm effective at -60 kPa",
        "data sheets of flat cups, F = dp A_eff", force, "theoretical, rounded to 1 N", ours, "N", "10%",
        abs(ours - force) <= 0.1 * force,
        f"the small cup's shape, {scale:g} times as large, of Shore A {NITRILE:g}, mu {ON_STEEL:g}: its "
        "opening shrinks as it is drawn in, but suction reaches out under its rim to where that touches "
        f"last; ending where the rim begins to touch, {tight:.3g} N. Makers' shapes are not printed",
    )  # fmt: skip


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


def _sandoval_rows() -> list[MeasuredRow]:
    source = "Sandoval et al., Bioinspir. Biomim. 14 (2019) 066016"
    wall = sandpaper(GRAIN)
    soft, hard = (clinging_time(e, CLINGING, wall) for e in (SOFT_LAYER, COMMERCIAL))
    return [
        MeasuredRow(
            "bioinspired disc with a soft layer holds 10.1 kPa on grain of 68 um, in air: for how long",
            source, PULLING, "10.1 +- 0.3 kPa", soft, "s", f"at least a pull's {PULLING:g} s",
            soft >= PULLING,
            "leak of a disc of 38 mm, Ecoflex 00-30, on waves of two grains, a quarter of a grain rms; "
            "without adhesion, which draws so soft a layer into valleys, and without its slits",
        ),
        MeasuredRow(
            "commercial cup there: for how long it would hold a tenth of that",
            source, 0.0, "no significant adhesion",
            clinging_time(COMMERCIAL, 0.1 * CLINGING, wall), "s", f"less than a pull's {PULLING:g} s",
            clinging_time(COMMERCIAL, 0.1 * CLINGING, wall) < PULLING,
            f"the same disc of Shore A 55; at 10.1 kPa it would hold {hard:.2g} s",
        ),
        MeasuredRow(
            "commercial cup on sandpaper of Ra 15 um: for how long it would hold 1 kPa",
            "Wainwright et al., Biol. Lett. 9 (2013) 20130234", 0.0, "adheres to the smoothest only",
            clinging_time(COMMERCIAL, 1e3, RoughSurface(19e-6, 152e-6)), "s",
            f"less than a pull's {PULLING:g} s",
            clinging_time(COMMERCIAL, 1e3, RoughSurface(19e-6, 152e-6)) < PULLING,
            "rms 1.25 Ra as of Gaussian heights, waves of eight times that",
        ),
    ]  # fmt: skip


def limit_on(youngs_modulus: float) -> float:
    """What the small cup holds [N] after 1 mm of push, its rim bonded to an elastic half-space.

    The half-space rises into the cavity by 16 (1 - nu^2) a^3 / (3 E) for each pascal (K. L. Johnson, Contact
    Mechanics, 3.4): more give beside the cup's own in the linear limit of EQUATIONS.md, section 5.
    """
    design, small = CUPS["small"], 1e-4
    rest, lifted, sucked = (
        WalledCup(design.shape, design.youngs_modulus, BONDED).step(height, suction, 0.0)
        for height, suction in ((-2 * small, 0.0), (-small, 0.0), (-2 * small, 10.0))
    )
    stiffness, alpha = (lifted.force - rest.force) / small, (lifted.volume - rest.volume) / small
    radius = design.shape.inner
    below = 16 * (1 - 0.5**2) * radius**3 / (3 * youngs_modulus)
    give = (rest.volume - sucked.volume) / 10.0 + below
    area = math.pi * radius**2
    air = stiffness * (rest.volume / ATMOSPHERE + give) / alpha
    return float(area * stiffness * PUSH / (air - (area - alpha)))


def _substrate_row() -> MeasuredRow:
    limits = [limit_on(e) for e in SUBSTRATES]
    return MeasuredRow(
        "least loss of hold from one substrate to a softer one (rigid, 1 MPa, 100 kPa, 30 kPa)",
        "Huie & Summers, J. Exp. Biol. 225 (2022) jeb243773", 0.0, "all cups hold less on softer ones",
        100.0 * float(np.min(-np.diff(limits) / limits[:-1])), "%", "above 0",
        bool((np.diff(limits) < 0.0).all()),
        f"linear limit of the small cup, bonded: {', '.join(f'{f:.2g}' for f in limits)} N",
    )  # fmt: skip


def _pad_rows() -> list[MeasuredRow]:
    forces = {216e2: 5.15, 480e2: 4.5, 900e2: 1.6}
    first = 216e2
    area = math.pi * 37.5e-3**2
    share = 100 * forces[first] / ((ATMOSPHERE - first) * area)
    why = (
        f"suction goes as P_atm - p; but the measured force is {share:.1f}% of dp A, so that something else "
        "let go first: it is no cup pulled along its axis"
    )
    rows = []
    for p in (480e2, 900e2):
        measured, ours = forces[p] / forces[first], (ATMOSPHERE - p) / (ATMOSPHERE - first)
        rows.append(
            MeasuredRow(
                f"75 mm pad: pull-off at {1e-2 * p:g} hPa over that at 216 hPa", "no source was found again",
                measured, "not given", ours, "", "20%", abs(ours - measured) <= 0.2 * measured, why,
            )
        )  # fmt: skip
    return rows


def _lifetime_row() -> MeasuredRow:
    return MeasuredRow(
        "lifetime against load of soft PVC cups on sandblasted PMMA",
        "Tiwari & Persson, Soft Matter 15 (2019) 9482", math.nan, "a figure of points", math.nan, "s",
        "a factor of 2", False,
        "not compared: the times are printed as points of a figure, which was not at hand. The leak is "
        "theirs (palpo.studies.reference.hold_time), which they found to agree above 1 um rms",
    )  # fmt: skip


def rows(quick: bool) -> list[MeasuredRow]:
    """The table."""
    sheets = list(DATA_SHEET.items())[1:2] if quick else list(DATA_SHEET.items())
    found = spread(partial(_data_sheet_row), sheets, "pumped cups pulled off", quick=True)
    return [*found, _lifetime_row(), *_pad_rows(), *_sandoval_rows(), _substrate_row()]


def run(out: Path, quick: bool) -> list[Line]:
    """The table as CSV and Markdown, and its verdicts."""
    table = rows(quick)
    write_csv(out / "measured.csv", [row._asdict() for row in table])
    head = "| measurement | source | measured | uncertainty | ours | tolerance | within | what it is |\n"
    lines = [
        f"| {r.name} | {r.source} | {_number(r.measured, r.unit)} | {r.uncertainty} "
        f"| {_number(r.ours, r.unit)} | {r.tolerance} | {'yes' if r.holds else '**no**'} | {r.why} |\n"
        for r in table
    ]
    (out / "measured.md").write_text(head + "|---" * 8 + "|\n" + "".join(lines), "utf-8")
    claims: list[Line] = [
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
    claims.append(
        Claim(
            "rows within their tolerance",
            within,
            f"of {len(table)}",
            "at least 6 of 8",
            within >= 0.75 * len(table),
        )
    )
    return claims


def _number(value: float, unit: str) -> str:
    return "-" if math.isnan(value) else f"{value:.3g} {unit}".strip()
