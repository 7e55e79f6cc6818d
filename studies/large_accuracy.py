"""How far the servo's force is from that of everything at 1 kHz on a large soft body, the scene `organ`.

The liver is pressed and stroked at the pace of a palpating finger, 9 and 12 mm/s. The reference has every
body at the servo's rate, its systems solved to 1e-5 of a step's change; the quick form's has factors.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.force_errors import Floats, compare
from palpo.studies.runs import drive, legs
from palpo.studies.tables import COLOURS, save_figure, write_csv

PATH = (
    (0.0, -0.035, 0.0722, 0.0), (1.2, -0.035, 0.0615, 0.0), (0.2, -0.035, 0.0615, 0.0),
    (1.0, -0.023, 0.0615, 0.0),
)  # fmt: skip
"""Seconds of each leg, and where it ends [m]."""

COARSE = ("bodies.liver.geometry.spacing=12.5 mm", 'bodies.liver.elements="tet4"')
"""The liver in 2,100 tetrahedra, of the kind that multigrid takes; with factors others are the default."""

LOW_HZ = (10, 20)


def run(out: Path, quick: bool) -> list[Line]:
    """The reference, then `krylov` at each slow rate."""
    path = legs(*PATH)
    mesh = COARSE if quick else ()
    exact = drive("organ", path, mesh, "monolithic").trace["force"]
    rows, forces = [], {}
    for low_hz in LOW_HZ:
        changes = [*mesh, f"rates.low_hz={low_hz}", 'bodies.liver.solver="multigrid"']
        other = drive("organ", path, changes)
        forces[low_hz] = other.trace["force"]
        row = compare(exact, forces[low_hz], path, other.lock.ratio, other.dt)
        rows.append({"tetrahedra": len(other.lock.scene.members[0].body.mesh.tets), "low_hz": low_hz} | row)
    write_csv(out / "organ.csv", rows)
    save_figure(out / "force-organ.png", 5.6, lambda figure: _draw(figure, exact, forces))
    lines: list[Line] = []
    for row in rows:
        name, unit = f"organ, {row['tetrahedra']} tetrahedra, krylov at {row['low_hz']} Hz", "% of peak"
        error = row["moving_rms_percent"]
        lines.append(at_most(f"{name}, moving, RMS", error, 1.0, unit, "everything at 1 kHz"))
        lines.append(Reported(f"{name}, moving, largest", row["moving_max_percent"], unit, "as it is"))
    return lines


def _draw(figure: Figure, exact: Floats, forces: dict[int, Floats]) -> None:
    """The reference's force, and how far each rate is from it."""
    top, bottom = figure.subplots(2, 1, sharex=True)
    t, peak = 1e-3 * np.arange(len(exact)), float(np.linalg.norm(exact, axis=1).max())
    top.plot(t, np.linalg.norm(exact, axis=1), color=COLOURS["monolithic"], lw=1.2, label="all at 1 kHz")
    for (low_hz, force), style in zip(forces.items(), ("-", "--"), strict=True):
        n = min(len(force), len(exact))
        error = 100.0 / peak * np.linalg.norm(force[:n] - exact[:n], axis=1)
        bottom.plot(
            t[:n],
            np.maximum(error, 1e-4),
            color=COLOURS["krylov"],
            ls=style,
            lw=0.8,
            label=f"krylov at {low_hz} Hz",
        )
    top.set_ylabel("force [N]")
    top.set_title("organ: pressed, then stroked", loc="left", fontsize=10)
    top.legend(frameon=False, fontsize=8.5)
    bottom.set_yscale("log")
    bottom.set_ylabel("error [% of peak]")
    bottom.set_xlabel("time [s]")
    bottom.legend(frameon=False, fontsize=8.5)
