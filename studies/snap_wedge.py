"""Peak of a slow insertion over the ramp's angle and friction, beside a cantilever's closed form.

Of the two-prong connector as its scene has it, on the finer mesh. What the beam leaves out, the prong's width
and its hook, makes it some per cent too soft; the moment of the axial load takes back a share of what the
wedge bends, and what is left of the stiffness errs by as much more. Near jamming nothing can be told by a
beam: it turns the prong's end back, until the hook's ramp, 8 degrees flatter than the wedge, lies on it.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

from matplotlib.figure import Figure

from palpo.app.systems.snap.build import field_of, numerics_of
from palpo.app.systems.snap.connector import connector_of
from palpo.config.load import load_scene
from palpo.config.schema.snap import SnapScene
from palpo.physics.systems.snap.connectors.two_prong import TwoProng
from palpo.physics.systems.snap.travel import push_in
from palpo.studies.claims import Line, Reported, close_to
from palpo.studies.rows import Row
from palpo.studies.suction_runs import spread
from palpo.studies.tables import COLOURS, save_figure, write_csv

ANGLES, FRICTIONS = (25.0, 35.0, 45.0), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Of the wedge's flank against the push [degrees]; mu [-]."""
SPACING = 1e-3
"""Of the points that may touch [m]: scenes have more, where a click is felt point by point."""
BEAM = 5.0
"""What a beam's stiffness may err by [%]: a prong is a fifth as thick and a third as wide as it is long."""
JAMS = 0.8
"""Share that is bent back beyond which a figure is told only: a percent of stiffness is five of the force."""


def run(out: Path, quick: bool) -> list[Line]:
    """Peaks as CSV and figure, and the claims; quick: two angles without and with friction."""
    cases = list(product(ANGLES[::2], FRICTIONS[::3]) if quick else product(ANGLES, FRICTIONS))
    rows = spread(wedged, cases, "plugs pushed in", quick)
    write_csv(out / "wedge.csv", rows)
    save_figure(out / "wedge.png", 3.6, partial(_draw, rows=rows))
    return claims_of(rows)


def wedged(case: tuple[float, float]) -> Row:
    """One insertion, and the closed form's."""
    angle, mu = case
    keys = [f"connector.ramp={angle} deg", f"friction.default={mu}", f"contact.spacing={SPACING}"]
    spec = load_scene("snap", ["connector.mesh=fine", *keys])
    assert isinstance(spec, SnapScene)
    connector = connector_of(spec)
    _, force = push_in(connector, numerics_of(spec), field_of(spec, connector))
    beam = TwoProng(ramp=math.radians(angle)).wedging(connector.material, mu)
    return {
        "angle_deg": angle,
        "mu": mu,
        "peak_N": float(force.max()),
        "beam_N": 2.0 * beam.force,
        "turn_deg": math.degrees(beam.turn),
        "bent_back": beam.bent_back,
    }


def claims_of(rows: Sequence[Row]) -> list[Line]:
    """Each peak, to what a beam errs by over what its axial load leaves of it."""
    lines: list[Line] = []
    for row in rows:
        name = f"peak at {row['angle_deg']:g} degrees, mu {row['mu']:g}"
        told = f"the axial load bends back {100.0 * row['bent_back']:.0f}%"
        if row["bent_back"] > JAMS:
            about = (
                f"{row['beam_N']:.4g} N by the closed form; {told}, the end by {-row['turn_deg']:.0f} degrees"
            )
            lines.append(Reported(name, row["peak_N"], "N", about))
            continue
        percent = round(BEAM / (1.0 - row["bent_back"]), 1)
        lines.append(close_to(name, row["peak_N"], row["beam_N"], percent, "N", f"Timoshenko; {told}"))
    return lines


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    ax = figure.subplots()
    colours = (COLOURS["low"], COLOURS["krylov"], COLOURS["paper"])
    for angle, colour in zip(dict.fromkeys(row["angle_deg"] for row in rows), colours, strict=False):
        own = [row for row in rows if row["angle_deg"] == angle]
        mu = [row["mu"] for row in own]
        ax.semilogy(
            mu, [row["beam_N"] for row in own], color=colour, lw=1.2, label=f"{angle:g} degrees, beam"
        )
        ax.semilogy(mu, [row["peak_N"] for row in own], "o", color=colour, ms=5, label="computed")
    ax.set(xlabel="mu", ylabel="peak of the insertion [N]")
    ax.legend(fontsize=8, frameon=False, ncols=2)
