"""How far the elements of a soft body are off when a cube of it is pressed flat, bonded or frictionless.

Held at Poisson's ratios and shares of the height against the closed form where its ends slide, and where they
are held against triquadratic hexahedra and the neo-Hookean law of another program
(palpo.studies.reference.compression), wherever its two meshes agree.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.reference.compression import (
    HALF,
    RATIOS,
    SHARES,
    YOUNG,
    press,
    stored,
)
from palpo.studies.rows import Row, pick
from palpo.studies.tables import save_figure, write_csv

Floats = NDArray[np.float64]

MESHES = {"tet4": (8, 4.0), "tet4-patch": (8, 4.0), "tet10": (4, 3.0)}
"""Cells along each side of an eighth, and the middle's length over that of the plate's and the sides'."""
AGREE = 0.02
"""By how much the reference's meshes may differ where it has converged."""
ENOUGH = 3.0
"""What is demanded of elements that do not lock [%]."""


def eighth(elements: str, nu: float, mesh: tuple[int, float]) -> SoftBody:
    """Of the cube, of those elements, on a mesh such as MESHES has."""
    cells, growth = mesh
    corners = block(3 * (HALF,), 3 * (cells,), 3 * (1.0 / growth,))
    corners = corners.with_nodes(corners.nodes + 0.5 * HALF)
    ten = ELEMENTS[elements].mesh is QuadraticTetMesh
    material = Material(YOUNG, nu, 1e3, law="neo-hookean")
    cut = with_middles(corners)[1] if ten else corners
    return SoftBody("cube", cut, material, gravity=(0.0, 0.0, 0.0), elements=elements)


def sliding(nu: float, share: float) -> float:
    """Force on the whole cube [N] whose ends slide: that of a bar which is free across."""
    bar = nominal_stress(Material(YOUNG, nu, 1e3, law="neo-hookean"), np.array([1.0 - share]))
    return -float(bar[0]) * (2.0 * HALF) ** 2


def converged(coarse: float, fine: float) -> bool:
    """Whether the reference tells a force, by those of its two meshes [N]."""
    return abs(coarse / fine - 1.0) <= AGREE


def run(out: Path, quick: bool) -> Sequence[Line]:
    """Table, figure and claims; quick: two ratios."""
    ratios, known, rows = RATIOS[1::2] if quick else RATIOS, stored(), list[Row]()
    for bonded in (True, False):
        for nu in ratios:
            for name, mesh in MESHES.items():
                found = press(eighth(name, nu, mesh), bonded)
                for share, force in zip(SHARES, found, strict=True):
                    coarse, fine = known[nu, share] if bonded else 2 * (sliding(nu, share),)
                    rows.append(
                        {
                            "ends": "bonded" if bonded else "frictionless", "poisson_ratio": nu,
                            "elements": name, "share": share, "force_N": force, "reference_N": fine,
                            "converged": converged(coarse, fine),
                            "error_percent": 100.0 * (force / fine - 1.0),
                        }
                    )  # fmt: skip
    write_csv(out / "compression.csv", rows)
    save_figure(out / "compression.png", 4.5, lambda figure: _draw(figure, rows, ratios))
    return _lines(rows, ratios)


def _lines(rows: Sequence[Row], ratios: Sequence[float]) -> list[Line]:
    lines: list[Line] = []
    for ends in ("bonded", "frictionless"):
        for name in MESHES:
            told, worst = list[str](), 0.0
            for nu in ratios:
                found = pick(rows, ends=ends, poisson_ratio=nu, elements=name, converged=True)
                each = ", ".join(f"{row['error_percent']:+.1f} at {100 * row['share']:.0f}" for row in found)
                told.append(f"nu {nu:.2f}: {each}%")
                worst = max([worst, *(abs(row["error_percent"]) for row in found)])
            title, about = f"{name}, {ends}: worst error", "; ".join(told)
            if name == "tet4" and ends == "bonded":
                lines.append(Reported(title, worst, "%", about))
            else:
                lines.append(at_most(title, worst, ENOUGH, "%", about))
    not_told = pick(rows, elements="tet4", converged=False)
    cases = "; ".join(f"nu {row['poisson_ratio']:.2f} at {100 * row['share']:.0f}%" for row in not_told)
    lines.append(Reported("cases where the reference has not converged", len(not_told), "", cases))
    return lines


def _draw(figure: Figure, rows: Sequence[Row], ratios: Sequence[float]) -> None:
    """Force over compression with bonded ends, a panel a ratio."""
    known = stored()
    for axes, nu in zip(np.atleast_1d(figure.subplots(1, len(ratios))), ratios, strict=True):
        two = np.array([known[nu, share] for share in SHARES])
        percent = 100.0 * np.array(SHARES)
        axes.fill_between(percent, *two.T, color="0.7", label="reference, two meshes")
        axes.plot(percent, two[:, 1], color="black", lw=0.8)
        for k, name in enumerate(MESHES):
            found = pick(rows, ends="bonded", poisson_ratio=nu, elements=name)
            axes.plot(percent, [row["force_N"] for row in found], "os^"[k], ms=4, mfc="none", label=name)
        axes.set(title=f"Poisson's ratio {nu:.2f}", xlabel="compression [%]", ylim=(0.0, None))
    figure.axes[0].legend(loc="lower right")
    figure.axes[0].set_ylabel("force [N]")
