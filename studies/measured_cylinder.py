"""Cylinders of silicone between plates, by the law that was fitted to them: bonded, sliding, as measured.

A twelfth of the cylinder is computed: a wedge of 60 degrees, above the middle. What bulges onto a plate that
bonds stays where it touched first, so that this run is the stiffest there can be; the sliding one keeps its
shape and is the softest. The authors fitted force over area, so that their constants with plates that slide
give back their curve; with plates that bond they count twice what barrelling adds.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.app.library.computing import materials
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.mesh.generate import cylinder
from palpo.physics.mesh.tet import TetMesh
from palpo.studies.claims import Line, Reported, at_least, at_most
from palpo.studies.measured_data import measured, rubber
from palpo.studies.reference.at_rest import BodyAtRest, free_ways
from palpo.studies.rows import Row, pick
from palpo.studies.tables import COLOURS

Floats = NDArray[np.float64]

TO, STEPS = 0.6, 30
"""Compression at the end, and parts of the way."""
WEDGE = np.pi / 3.0
MESHES = (8, 12)
"""Rings of elements from the axis to the wall, and layers in half the height."""
FEW = 5.0
"""What a mesh may leave [%]."""


class CylinderPress(NamedTuple):
    """A cylinder pressed between plates."""

    compression: Floats
    """Of its height (k,)."""
    force: Floats
    """[N] (k,)."""
    inside_out: int
    """Elements that are crushed at the end."""


def silicone(name: str) -> Material:
    """The authors' law and constants (`palpo materials`), of a volume that stays."""
    made = materials()[name].material
    return rubber(made.youngs_modulus / (2.0 * (1.0 + made.poisson_ratio)), made.law, made.shape)


@cache
def wedge(rings: int) -> TetMesh:
    """60 degrees of the upper half; as large as a piece of the round cylinder, whose rim is cut by chords.

    Cells get smaller by squares towards the edge at the plate, where the stress of a bonded one is singular.
    """
    data, half = measured()["compression"], WEDGE / (2.0 * rings)
    radius = 0.5 * data["diameter"] * np.sqrt(2.0 * half / np.sin(2.0 * half))
    whole = cylinder(radius, data["height"], 6 * rings, 2 * rings)
    middle = whole.nodes[whole.tets].mean(axis=1)
    angle = np.arctan2(middle[:, 0], middle[:, 2])
    kept = (angle > 0.0) & (angle < WEDGE) & (middle[:, 1] > 0.0)
    used, cells = np.unique(whole.tets[kept], return_inverse=True)
    x = whole.nodes[used]
    inward, upward = np.hypot(x[:, 0], x[:, 2]) / radius, 2.0 * x[:, 1] / data["height"]
    x[:, [0, 2]] *= (2.0 - inward)[:, None]
    x[:, 1] *= 2.0 - upward
    return TetMesh(x, cells.reshape(-1, 4).astype(np.int32))


def press(material: Material, rings: int, bonded: bool) -> CylinderPress:
    """Press the cylinder to TO in STEPS parts."""
    mesh = wedge(rings)
    body = SoftBody("cylinder", mesh, material, (), (0.0, 0.0, 0.0), elements="tet4-patch")
    x, height = mesh.nodes, float(mesh.nodes[:, 1].max())
    small = 1e-6 * height
    aside = np.array([np.cos(WEDGE), 0.0, -np.sin(WEDGE)])  # across the wedge's other plane
    axes = np.tile(np.eye(3), (len(x), 1, 1))
    slanted = (np.abs(x @ aside) < small) & (np.hypot(x[:, 0], x[:, 2]) > small)
    axes[slanted] = np.column_stack([aside, [0.0, 1.0, 0.0], np.cross(aside, [0.0, 1.0, 0.0])])
    held = np.zeros((len(x), 3), dtype=bool)
    held[:, 0] = slanted | (np.abs(x[:, 0]) < small)
    held[np.hypot(x[:, 0], x[:, 2]) < small] = [True, False, True]
    held[x[:, 1] < small, 1] = True
    plate = x[:, 1] > height - small
    rest = BodyAtRest(body, free_ways(held, axes), material.youngs_modulus)
    compression = TO * np.arange(STEPS + 1) / STEPS
    forces = []
    for at in height * (1.0 - compression):
        touching = plate
        while touching.any():
            plate = plate | touching
            held[plate] |= [bonded, True, bonded]
            rest.ways = free_ways(held, axes)
            way = np.zeros_like(x)
            way[plate, 1] = at - body.x[plate, 1]
            rest.move(way)
            touching = (body.x[:, 1] > at + small) & ~plate
        forces.append(2.0 * np.pi / WEDGE * float(rest.force()[plate, 1].sum()))
    return CylinderPress(compression, np.array(forces), int((body.volume_ratios() <= 0.0).sum()))


def rows(quick: bool) -> tuple[list[Row], dict[str, dict[str, CylinderPress]]]:
    """Each measured force beside the runs; the runs by material, as drawn."""
    data, out, runs = measured()["compression"], list[Row](), dict[str, dict[str, CylinderPress]]()
    pressed = np.array(data["depth"]) / data["height"]
    area = 0.25 * np.pi * data["diameter"] ** 2
    for name, forces in data["force"].items():
        if quick and runs:
            break
        material = silicone(name)
        coarse = press(material, MESHES[0], True)
        runs[name] = {
            "sliding": press(material, MESHES[0], False),
            "coarse": coarse,
            "bonded": coarse if quick else press(material, MESHES[1], True),
        }
        at = {kind: np.interp(pressed, run.compression, run.force) for kind, run in runs[name].items()}
        known = -area * nominal_stress(material, 1.0 - pressed)
        for k, force in enumerate(forces):
            low, high = at["sliding"][k], at["bonded"][k]
            out.append({
                "material": name, "compression": float(pressed[k]), "measured_N": force, "sliding_N": low,
                "bonded_N": high, "coarse_N": at["coarse"][k], "closed_form_N": known[k],
                "between": bool(low <= force <= high),
                "outside_percent": 100.0 * max(1.0 - force / low, force / high - 1.0, 0.0),
            })  # fmt: skip
    return out, runs


def lines(rows: Sequence[Row], runs: dict[str, dict[str, CylinderPress]], quick: bool) -> list[Line]:
    """What is claimed of the cylinders."""
    out: list[Line] = []
    for name, kinds in runs.items():
        found = pick(rows, material=name)
        why = "published mean of ten runs; sliding is softest, bonded stiffest"
        for row in found:
            if not row["between"]:
                law = 100.0 * (row["closed_form_N"] / row["measured_N"] - 1.0)
                why += (
                    f"; at {row['compression']:.0%} outside by {row['outside_percent']:.1f}%, where the "
                    f"authors' law by itself is {law:+.1f}% off their curve"
                )
        out.append(
            at_least(
                f"{name}, 60% between plates: measurements between sliding and bonded",
                sum(row["between"] for row in found), len(found), f"of {len(found)}", why,
            )
        )  # fmt: skip
        place = [
            (row["measured_N"] - row["sliding_N"]) / (row["bonded_N"] - row["sliding_N"]) for row in found
        ]
        out.append(
            Reported(
                f"{name}: where between, 0 sliding and 1 bonded, at {found[0]['compression']:.0%}", place[0],
                "", f"deeper {', '.join(f'{p:.2f}' for p in place[1:])}: with constants fitted to force over "
                "area a bonded run counts barrelling twice",
            )
        )  # fmt: skip
        if not quick:
            apart = max(abs(row["coarse_N"] / row["bonded_N"] - 1.0) for row in found)
            out.append(
                at_most(
                    f"{name}, bonded: what the mesh leaves, by two",
                    100.0 * apart / (MESHES[1] / MESHES[0] - 1.0), FEW, "%",
                    f"if it halves with its cells; {kinds['bonded'].inside_out} elements at the plate's "
                    "edge, where the stress has no bound, are crushed at 60%",
                )
            )  # fmt: skip
        off = max(abs(row["sliding_N"] / row["closed_form_N"] - 1.0) for row in found)
        out.append(
            at_most(
                f"{name}, sliding: off its closed form", 100.0 * off, 1.0, "%", f"read between {STEPS} steps"
            )
        )
    return out


def draw(figure: Figure, rows: Sequence[Row], runs: dict[str, dict[str, CylinderPress]]) -> None:
    """Force over compression, a panel a material, and below it over the sliding run's."""
    panels = figure.subplots(2, len(runs), squeeze=False, sharex=True, height_ratios=[3, 2])
    for (upper, lower), (name, kinds) in zip(panels.T, runs.items(), strict=True):
        found = pick(rows, material=name)
        percent = [100.0 * row["compression"] for row in found]
        low, high = kinds["sliding"], kinds["bonded"]
        at = 100.0 * low.compression
        for axes, over in ((upper, np.ones_like(at)), (lower, np.maximum(low.force, 1e-9))):
            axes.fill_between(
                at[1:], (low.force / over)[1:], (high.force / over)[1:], color=COLOURS["krylov"], alpha=0.15
            )
            axes.plot(at[1:], (high.force / over)[1:], color=COLOURS["krylov"], label="bonded to the plates")
            axes.plot(at[1:], (low.force / over)[1:], color=COLOURS["low"], label="sliding on them")
        upper.plot(
            percent, [row["measured_N"] for row in found], "o", color=COLOURS["paper"], label="measured"
        )
        lower.plot(
            percent, [row["measured_N"] / row["sliding_N"] for row in found], "o", color=COLOURS["paper"]
        )
        upper.set(title=name)
        lower.set(xlabel="compression [%]")
    panels[0, 0].set_ylabel("force [N]")
    panels[1, 0].set_ylabel("over the sliding run")
    panels[0, 0].legend()
