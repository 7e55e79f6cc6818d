"""An insertion computed by other means than the models that it judges (002, V-C, figure 7), kept as a curve.

On a finer mesh, with points every quarter of a millimetre, by the step of `studies.snap_fine_step`. A
connector that is equal all around, and stays so, is computed on one meridian (`studies.snap_ring`).

    python -m palpo.studies.snap_reference [KIND ...]

computes a connector's force and travel over time once, in minutes to an hour on one core, into
`studies/curves/KIND.csv`; `reference` reads it, and refuses the curve of another connector. With `--steps N`
it is computed at N steps in a millisecond and held against the one that is kept.
"""

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.click import click
from palpo.physics.systems.snap.connectors import buckle, cap, lan, two_prong
from palpo.physics.systems.snap.connectors.connector import Connector, Prong, with_true_corners
from palpo.physics.systems.snap.connectors.registry import KINDS
from palpo.physics.systems.snap.numerics import Numerics
from palpo.studies.snap_fine_step import FINER, MILLISECOND, TOLERANCE, How, Reference

AROUND = 96
"""Cells around the cap, the stopper's: their corners lie on the same meridians."""
FINE = {
    "two-prong": two_prong.TwoProngCells(5, 20, 5, 2, 3),
    "lan": lan.LanCells(4, 14, 4, 2, 4, 2, 3),
    "cap": cap.CapCells(6, 20, AROUND, 6, 4),
    "buckle": buckle.BuckleCells(4, 22, 4, 2, 3),
}
"""Cells of the references' meshes."""
RINGS = {"cap": AROUND}
"""Equal sectors of those that are computed on one meridian."""
CURVES = Path(__file__).parent / "curves"


@dataclass(frozen=True, eq=False)
class Curve:
    """What an insertion felt like, at the ends of milliseconds."""

    time: NDArray[np.float64]  # (n,) [s]
    force: NDArray[np.float64]  # (n,) on the floor along the push, mean of the millisecond [N]
    travel: NDArray[np.float64]  # (n,) of the plug [m]
    told: dict[str, Any]
    """What was computed, and how."""


def insertion(
    connector: Connector, numerics: Numerics, path: NDArray[np.float64], how: How, say: bool = False
) -> Curve:
    """The target led along path (n, 3) [m] from the start, a millisecond a point."""
    made, finer = Reference(connector, numerics, how), how.finer
    force, travel, last = np.zeros(len(path)), np.zeros(len(path)), np.zeros(3)
    most = 0
    for k, end in enumerate(path):
        for i in range(1, finer + 1):
            target = connector.rest_position + last + (end - last) * i / finer
            force[k] += made.step(target) @ connector.push / finer
            most = max(most, made.contacts)
        last = end
        travel[k] = (made.plug.position - connector.rest_position) @ connector.push
        if say and k % 20 == 0:
            print(f"{k} of {len(path)}: {force[k]:.4g} N, {made.contacts} contacts", file=sys.stderr)
    told = {
        "freedoms": connector.freedoms,
        "points": [int(side.told.size) for side in made.sides],
        "steps_in_1_ms": finer,
        "spacing_m": how.spacing,
        "sectors": how.ring,
        "tolerance": TOLERANCE,
        "share_of_solves_that_reach_it": 1.0 - made.short / made.solves,
        "worst_residual": made.worst,
        "most_contacts": most,
    }
    time = np.asarray(MILLISECOND * np.arange(1, len(path) + 1), dtype=np.float64)
    return Curve(time, force, travel, told)


def what_it_is(connector: Connector, numerics: Numerics) -> dict[str, Any]:
    """All that the true insertion of a connector depends on, in plain numbers of 9 digits."""
    m, a = connector.material, connector.admittance

    def short(values: Any) -> list[float]:
        return [float(f"{v:.9g}") for v in np.ravel(values)]

    return {
        "material": short([m.youngs_modulus, m.poisson_ratio, m.density, numerics.alpha, numerics.beta]),
        "friction": short([connector.friction]),
        "way": short([connector.stroke, connector.interference, *connector.push]),
        "plug": short([np.ptp(connector.plug.vertices, axis=0), connector.plug.vertices.std(axis=0)]),
        "socket": short([_round(p) for p in connector.prongs]),
        "hold": short([np.linalg.norm(g) for g in (a.mass, a.damping, a.stiffness)]),
    }


def _round(prong: Prong) -> NDArray[np.float64]:
    """Size of a prong (3,) [m], of a ring's corners if they were on the round one."""
    size = np.ptp(prong.mesh.nodes, axis=0)
    size[[0, 2]] /= prong.stands_out
    return np.asarray(size)


def finer(kind: str, connector: Connector) -> Connector:
    """The same connector on the mesh of its reference: its other socket, held and pushed alike."""
    made = KINDS[kind].dimensions().build(FINE[kind])
    made = with_true_corners(made) if kind in RINGS else made
    return replace(connector, prongs=made.prongs)


def reference(kind: str, connector: Connector, numerics: Numerics) -> Curve:
    """The stored insertion of a shipped connector at SPEED of `studies.snap_models`.

    Raises InputError where there is none, or where it is of a connector with other dimensions, material,
    friction or hold.
    """
    path = CURVES / f"{kind}.csv"
    if not path.exists():
        raise InputError(f"{path}: no reference of this connector; python -m palpo.studies.snap_reference")
    curve, now = read(path), what_it_is(connector, numerics)
    for key, value in now.items():
        if not np.allclose(curve.told["of"][key], value, rtol=1e-6, atol=1e-9):
            raise InputError(
                f"{path}: {key} is {curve.told['of'][key]} there and {value} now; compute it anew with "
                f"python -m palpo.studies.snap_reference {kind}"
            )
    return curve


def write(path: Path, curve: Curve) -> None:
    """A line of what was computed, and the curve as CSV to seven digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write("# " + json.dumps(curve.told) + "\n")
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["time_s", "force_N", "travel_m"])
        for row in zip(curve.time, curve.force, curve.travel, strict=True):
            lines.writerow([f"{v:.7g}" for v in row])


def read(path: Path) -> Curve:
    """A curve that `write` wrote."""
    with path.open(encoding="utf-8") as file:
        told = json.loads(file.readline().removeprefix("# "))
        values = np.array([[float(v) for v in row] for row in list(csv.reader(file))[1:]])
    return Curve(values[:, 0], values[:, 1], values[:, 2], told)


def main(words: Sequence[str]) -> None:
    """Compute these references, or all, and write them where `reference` looks; or say how they change."""
    from palpo.studies.snap_models import STEP, case_of, path_of

    parser = argparse.ArgumentParser(prog="python -m palpo.studies.snap_reference")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--steps", type=int, help="in a millisecond; compare, and write nothing")
    given = parser.parse_args(words)
    for kind in given.kinds or FINE:
        case = case_of(kind)
        connector = finer(kind, case.connector)
        how = How(finer=given.steps or FINER, ring=RINGS.get(kind, 1))
        curve = insertion(connector, case.numerics, path_of(connector, STEP), how, say=True)
        if given.steps:
            kept = reference(kind, case.connector, case.numerics)
            new, old = (click(c.time, c.force, c.travel, connector.interference) for c in (curve, kept))
            print(
                f"{kind} at {given.steps} steps in 1 ms: peak {new.peak:.4g} N, drop {new.drop:.4g} N; "
                f"kept: {old.peak:.4g} and {old.drop:.4g} N"
            )
            continue
        write(
            CURVES / f"{kind}.csv",
            replace(curve, told=curve.told | {"of": what_it_is(case.connector, case.numerics)}),
        )


if __name__ == "__main__":
    main(sys.argv[1:])
