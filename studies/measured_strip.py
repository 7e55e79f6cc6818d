"""Strips of silicone in tension: each law fitted, the body pulled by it, and what one set says of the other.

An eighth of the strip is computed, between three planes of symmetry. Its end is pulled along and free across:
the strip is the narrow part of a dumbbell, whose grips are far away.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.app.cli.identify_material import PARAMETERS, Fit, Specimen, fitted
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.laws import LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.mesh.generate import block
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.measured_cylinder import silicone
from palpo.studies.measured_data import RATIO, measured
from palpo.studies.reference.at_rest import BodyAtRest, free_ways
from palpo.studies.tables import COLOURS, FOUR

Floats = NDArray[np.float64]

CELLS, STEPS = (10, 4, 2), 20
"""Of an eighth, and parts of the way."""
ALIKE = 1e-3
"""What a pulled body may be off its closed form [%]: what Newton's steps leave, for it stays even."""
AT = 0.2
"""Compression at which constants from tension foretell the cylinders."""


class Strip(NamedTuple):
    """A measured strip and the laws fitted to it."""

    name: str
    strain: Floats
    stress: Floats
    """As measured [Pa]."""
    fits: list[Fit]
    """Best first."""


def strips(quick: bool) -> list[Strip]:
    """The strips; quick: one."""
    data = measured()["tension"]
    length, width, thickness = data["size"]
    strain = np.array(data["strain"])
    specimen = Specimen("strip", (width, thickness, length))
    out = []
    for name, stress in list(data["stress"].items())[: 1 if quick else None]:
        force = np.array(stress) * width * thickness
        fits = [fitted(specimen, law, RATIO, strain * length, force) for law in PARAMETERS if law != LINEAR]
        out.append(Strip(name, strain, np.array(stress), sorted(fits, key=lambda fit: fit.residual)))
    return out


def pulled(material: Material, stretch: float) -> float:
    """Nominal stress [Pa] of the strip as a body."""
    size = np.array(measured()["tension"]["size"])
    mesh = block((0.5 * size).tolist(), CELLS)
    x = mesh.nodes - mesh.nodes.min(axis=0)
    body = SoftBody("strip", mesh, material, (), (0.0, 0.0, 0.0), elements="tet4-patch")
    held = x < 1e-9
    end = x[:, 0] > 0.5 * size[0] - 1e-9
    held[end, 0] = True
    rest = BodyAtRest(body, free_ways(held), material.youngs_modulus)
    way = np.zeros_like(x)
    way[end, 0] = 0.5 * size[0] * (stretch - 1.0) / STEPS
    for _ in range(STEPS):
        rest.move(way)
    return float(-rest.force()[end, 0].sum() / (0.25 * size[1] * size[2]))


def lines(found: Sequence[Strip]) -> list[Line]:
    """What is claimed of the strips."""
    out: list[Line] = []
    for strip in found:
        stretch = 1.0 + float(strip.strain[-1])
        best = strip.fits[0]
        rest = ", ".join(f"{fit.law} {100.0 * fit.residual:.1f}%" for fit in strip.fits[1:])
        out.append(
            Reported(
                f"{strip.name}, tension to {strip.strain[-1]:.0%}: the best law, {best.law}, misses",
                100.0 * best.residual, "%", f"RMS of the largest force, as palpo identify fits it; {rest}",
            )
        )  # fmt: skip
        off = 0.0
        for fit in strip.fits:
            known = float(nominal_stress(fit.material, np.array([stretch]))[0])
            off = max(off, abs(pulled(fit.material, stretch) / known - 1.0))
        out.append(
            at_most(
                f"{strip.name}: body pulled to {stretch:g} times its length, off a bar's closed form",
                100.0 * off, ALIKE, "%", f"worst of {len(strip.fits)} laws; it stays even, any mesh is exact",
            )
        )  # fmt: skip
        out += _across(strip)
    return out


def _across(strip: Strip) -> list[Line]:
    """What the constants of one set say of the other."""
    pressed = silicone(strip.name)
    fit = next(fit.material for fit in strip.fits if fit.law == pressed.law)
    both = nominal_stress(pressed, 1.0 + strip.strain) / strip.stress
    data = measured()["compression"]
    known = np.interp(AT * data["height"], data["depth"], data["force"][strip.name])
    sliding = -0.25 * np.pi * data["diameter"] ** 2 * float(nominal_stress(fit, np.array([1.0 - AT]))[0])
    return [
        Reported(
            f"{strip.name}: modulus at rest, fitted to cylinders over fitted to strips",
            pressed.youngs_modulus / fit.youngs_modulus, "times",
            "two laboratories, one product: no bar across them below a factor of 2",
        ),
        Reported(
            f"{strip.name}: tension by the cylinders' constants, over measured, at 50%",
            float(np.interp(0.5, strip.strain, both)), "times",
            f"{both.min():.2f} to {both.max():.2f} over {strip.strain[0]:.0%} to {strip.strain[-1]:.0%}",
        ),
        Reported(
            f"{strip.name}: measured cylinder at {AT:.0%}, over one by the strip's constants that slides",
            float(known / sliding), "times", "bonded plates explain some 1.45 of it",
        ),
    ]  # fmt: skip


def draw(figure: Figure, found: Sequence[Strip]) -> None:
    """Nominal stress over strain as measured, by each law, and by the other set's constants."""
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for axes, strip in zip(panels, found, strict=True):
        fine = np.linspace(0.0, float(strip.strain[-1]), 200)
        for k, fit in enumerate(strip.fits):
            axes.plot(fine, 1e-3 * nominal_stress(fit.material, 1.0 + fine), color=FOUR[k], label=fit.law)
        limit = 1.4e-3 * float(strip.stress.max())
        other = 1e-3 * nominal_stress(silicone(strip.name), 1.0 + fine)
        axes.plot(
            fine[other < limit],
            other[other < limit],
            "--",
            color=COLOURS["faint"],
            label="cylinders' constants",
        )
        axes.plot(strip.strain, 1e-3 * strip.stress, "o", color=COLOURS["paper"], label="measured")
        axes.set(title=strip.name, xlabel="strain", ylim=(0.0, limit))
    panels[0].set_ylabel("nominal stress [kPa]")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=6)
