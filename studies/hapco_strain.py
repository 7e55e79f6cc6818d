"""How deep linear elasticity bears to be pressed: HapCo with a linear and with a St Venant-Kirchhoff body.

A stiff tip is pressed into a block of soft tissue, once linear as the bodies of the scenes are (001, N.
Talbi's thesis, (1.6)) and once of large strains ((1.13) to (1.19)), by the same contact solver. Both are the
same tetrahedra, so that what differs is the law. Their difference is linear in the depth as long as it is
small; from it follows the depth at which they part by 5%. The law of large strains is none of tissue either:
squeezed to 0.58 of its length (1/sqrt 3) it yields, as no tissue does. So the difference says how far the
law matters, not which one is right.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.problem import Stop
from palpo.physics.mesh.generate import block
from palpo.physics.systems.hapco.detection import Detection
from palpo.studies.claims import Line, Reported, at_most, close_to, greatest
from palpo.studies.hapco_benches import BENCHES, CM, MATERIALS, lead, side_nodes
from palpo.studies.reference.interaction import Interaction
from palpo.studies.reference.large_strain import LargeStrainBody
from palpo.studies.rows import Row, pick
from palpo.studies.tables import COLOURS, save_figure, write_csv

LAWS = {"linear": QuasistaticBody, "St Venant-Kirchhoff": LargeStrainBody}
DEPTHS = tuple(CM * d for d in (0.0125, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4))
QUICK_DEPTHS = DEPTHS[:5:2]
MU = 0.3
WEIGHTLESS = (0.0, 0.0, 0.0)
APART = 5.0
"""Per cent of the force by which a linear body may err before one should look for another."""
EXACT = Stop(1e-8, 20000)


def run(out: Path, quick: bool) -> list[Line]:
    """The same press on both laws."""
    rows = [row for law in LAWS for row in _pressed(law, QUICK_DEPTHS if quick else DEPTHS)]
    write_csv(out / "strain.csv", rows)
    save_figure(out / "strain.png", 4.2, lambda figure: _draw(figure, rows))
    depths, differ = _differences(rows)
    order = float(np.log(differ[1] / differ[0]) / np.log(depths[1] / depths[0]))
    apart = APART / differ[0] * depths[0]
    most = greatest(row["increments"] for row in rows)
    return [
        close_to("order of the difference in the depth", order, 1.0, 15.0, "", "the next term of the strain"),
        at_most("increments of the slowest press", most, 20.0, "", "Newton-Raphson finds the equilibrium"),
        Reported(f"depth at which the laws differ by {APART:g}%", 1e3 * apart, "mm", "into a block of 25 mm"),
        Reported(f"difference at {1e3 * depths[-1]:g} mm", differ[-1], "%", "of the linear body's force"),
    ]


def _pressed(law: str, depths: Sequence[float]) -> list[Row]:
    """Force at each depth [m]."""
    interaction = _interaction(law)
    rows = []
    for depth in depths:
        step = lead(interaction, np.array([0.0, -depth, 0.0]))
        told = {"law": law, "depth": depth, "force_N": float(step.force[1])}
        rows.append(told | {"increments": step.increments.increments})
    return rows


def _interaction(law: str) -> Interaction:
    """A stiff tip above a soft block of one of the LAWS, the bench of 66 contacts in tetrahedra."""
    blocks = BENCHES["66"]
    height = 0.5 * (blocks.fixed.size[1] + blocks.mobile.size[1])
    lower = block(blocks.fixed.size, (10, 5, 6))
    upper = block(blocks.mobile.size, (3, 5, 3))
    upper = upper.with_nodes(upper.nodes + np.array([0.0, height, 0.0]))
    return Interaction(
        QuasistaticBody("tip", upper, MATERIALS["aluminium"], side_nodes(upper, "top"), WEIGHTLESS),
        LAWS[law]("tissue", lower, MATERIALS["tissue"], side_nodes(lower, "bottom"), WEIGHTLESS),
        Detection(side_nodes(upper, "bottom"), tolerance=np.inf, edges=False),
        MU,
        stop=EXACT,
        newton_tolerance=1e-9,
    )


def _differences(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Depths [m], and the difference of the forces in per cent of the linear one's."""
    linear, large = (pick(rows, law=law) for law in LAWS)
    differ = [100.0 * abs(b["force_N"] / a["force_N"] - 1.0) for a, b in zip(linear, large, strict=True)]
    return [row["depth"] for row in linear], differ


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Force over depth under both laws, and their difference."""
    left, right = figure.subplots(1, 2)
    for law, colour in zip(LAWS, (COLOURS["krylov"], COLOURS["paper"]), strict=True):
        found = pick(rows, law=law)
        x, y = [1e3 * row["depth"] for row in found], [row["force_N"] for row in found]
        left.plot(x, y, "o-", color=colour, label=law)
    depths, differ = _differences(rows)
    right.plot(1e3 * np.array(depths), differ, "o-", color=COLOURS["monolithic"])
    right.axhline(APART, color=COLOURS["faint"], lw=0.8)
    left.set_ylabel("force [N]")
    left.legend(frameon=False, fontsize=8.5)
    right.set_ylabel("difference [% of the linear one]")
    for axes in (left, right):
        axes.set_xlabel("depth [mm]")
