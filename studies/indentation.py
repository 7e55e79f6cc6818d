"""How far the elements of a soft body are off, and a scene with them: a ball pressed into a block.

Held against triquadratic hexahedra of another program (palpo.studies.reference.indentation), at Poisson's
ratios and depths. First the elements on its problem of small strains, without friction, the ball on the
block's middle and beside it: it meets facets by area as a scene's does (physics/collision/round_facets.py).
Then the scene, its friction and weight taken away and its pose imposed, against strains in axes that turn,
which is what a scene computes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.round_facets import POINTS, parts_of_facets, weight_on
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.facet_yield import mean_longest_edge
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.reference.indentation import (
    DEPTHS,
    HEIGHT,
    RADIUS,
    RATIOS,
    SIDE,
    YOUNG,
    stored,
    without_pull,
)
from palpo.studies.rows import Row, pick
from palpo.studies.runs import SceneDrive, legs
from palpo.studies.tables import save_figure, write_csv

MESHES = {"as shipped": (12, 3, 12), "cells of 3.3 mm": (18, 5, 18), "cells of 10 mm": (6, 3, 6)}
GRADING = (1.0, 0.4, 1.0)
ALONE = ("tet4", "tet4-patch", "hex8")
IN_SCENE = ("tet4", "tet4-patch")
ASIDE = ((0.0, 0.0), (0.0025, 0.0), (0.0025, 0.0025), (0.0012, -0.0004))
"""Where the ball meets the block off a node [m]: on the shipped mesh an edge's middle, a cell's, anywhere."""
FEW, SOME = 5.0, 10.0
"""What is demanded of elements that do not lock, on average over the depths and at worst [%]."""


def alone(
    elements: str, cells: tuple[int, int, int], nu: float, aside: tuple[float, float] = (0.0, 0.0)
) -> NDArray[np.float64]:
    """Forces [N] at DEPTHS of the elements on the reference's own problem, the ball so far aside [m]."""
    cut = hex_block if ELEMENTS[elements].mesh is HexMesh else block
    mesh = cut((2.0 * SIDE, HEIGHT, 2.0 * SIDE), cells, GRADING)
    y = mesh.nodes[:, 1]
    low = np.flatnonzero(y < y.min() + 1e-9)
    body = SoftBody("block", mesh, Material(YOUNG, nu, 1e3), low, (0.0, 0.0, 0.0), elements=elements)
    facets = mesh.surface().triangles
    points = POINTS * parts_of_facets(RADIUS, mean_longest_edge(mesh.nodes, facets))
    x, z = (mesh.nodes[facets][..., [0, 2]].mean(axis=1) - aside).T
    facets = facets[(y[facets] > y.max() - 1e-9).all(axis=1) & (np.hypot(x, z) < 1.4 * RADIUS)]
    corners = mesh.nodes[facets]
    area = 0.5 * np.linalg.norm(np.cross(*(corners[:, k] - corners[:, 0] for k in (1, 2))), axis=1)
    shares = np.array([[weight_on(points // POINTS, q, i) for i in range(3)] for q in range(points)])
    x, _, z = (shares @ corners).reshape(-1, 3).T - [[aside[0]], [0.0], [aside[1]]]
    near = np.hypot(x, z) < 0.98 * RADIUS
    rows = np.zeros((points * len(facets), body.n_dof))
    for k, row in enumerate(rows):
        row[body.dofs_of(facets[k // points])[:, 1]] = shares[k % points]
    rows, x, z = rows[near], x[near], z[near]
    yielding = rows @ splu(body.tangent().tocsc()).solve(np.ascontiguousarray(rows.T))
    give = np.repeat(points * body.facet_yield(facets) / area, points)[near]
    yielding = 0.5 * (yielding + yielding.T) + np.diag(give)
    under = RADIUS - np.sqrt(RADIUS**2 - x**2 - z**2)
    return np.array([without_pull(yielding, under - depth).sum() for depth in DEPTHS])


def in_scene(elements: str, nu: float) -> NDArray[np.float64]:
    """Forces [N] at DEPTHS in the scene at its two rates, the ball at rest at each."""
    told = [
        f'bodies.block.elements="{elements}"', f"bodies.block.material.poisson_ratio={nu}",
        'tool.hold.mode="direct"', "friction.default=0", "gravity=[0, 0, 0]", 'contact.distance="0.05 mm"',
    ]  # fmt: skip
    rows = [(0.05, -0.01, 0.045, 0.0), (0.2, 0.0, HEIGHT + RADIUS + 5e-4, 0.0)]
    for depth in DEPTHS:
        rows += 2 * [(0.15, 0.0, HEIGHT + RADIUS - depth, 0.0)]
    ends = np.rint(1e3 * (np.cumsum([row[0] for row in rows]) - rows[0][0])).astype(int)[3::2] - 3
    with SceneDrive("probe", told) as drive:
        return np.asarray(drive.go(legs(*rows))["force"][ends, 1])


def run(out: Path, quick: bool) -> Sequence[Line]:
    """Table, figure and claims; quick: two ratios, and the shipped mesh alone."""
    rows = list[Row]()
    ratios = RATIOS[1::2] if quick else RATIOS
    for nu in ratios:
        upright, turning = (np.array([stored(turns)[nu, d] for d in DEPTHS]) for turns in (False, True))
        for mesh, cells in list(MESHES.items())[: 1 if quick else None]:
            for name in ALONE:
                for aside in ASIDE:
                    force = alone(name, cells, nu, aside)
                    rows += _rows(nu, mesh, name, "elements alone", aside, force, upright)
        for name in IN_SCENE:
            rows += _rows(nu, "as shipped", name, "scene", ASIDE[0], in_scene(name, nu), turning)
    write_csv(out / "indentation.csv", rows)
    save_figure(out / "indentation.png", 4.5, lambda figure: _draw(figure, rows, ratios))
    return _lines(rows, ratios)


def _rows(
    nu: float, mesh: str, name: str, what: str, aside: tuple[float, float], force: NDArray[np.float64],
    known: NDArray[np.float64],
) -> list[Row]:  # fmt: skip
    return [
        {
            "poisson_ratio": nu, "mesh": mesh, "elements": name, "what": what, "x_mm": 1e3 * aside[0],
            "z_mm": 1e3 * aside[1], "depth_mm": 1e3 * depth,
            "force_N": f, "reference_N": r, "error_percent": 100.0 * (f / r - 1.0),
        }
        for depth, f, r in zip(DEPTHS, force, known, strict=True)
    ]  # fmt: skip


def _lines(rows: Sequence[Row], ratios: Sequence[float]) -> list[Line]:
    lines: list[Line] = []
    for nu in ratios:
        for name in IN_SCENE:
            for what in ("elements alone", "scene"):
                found = pick(rows, poisson_ratio=nu, mesh="as shipped", elements=name, what=what)
                errors = np.array([row["error_percent"] for row in found])
                errors = errors.reshape(-1, len(DEPTHS))
                each = "; ".join(", ".join(f"{error:+.0f}" for error in row) for row in errors)
                title = f"{name}, nu {nu:.2f}, {what}: mean error"
                value, about = float(np.abs(errors).mean()), f"at {_depths()}: {each}%"
                if name == "tet4":
                    lines.append(Reported(title, value, "%", about))
                else:
                    lines.append(at_most(title, value, FEW, "%", about))
                    worst = float(np.abs(errors).max())
                    lines.append(at_most(f"{name}, nu {nu:.2f}, {what}: worst", worst, SOME, "%", about))
    return lines


def _depths() -> str:
    return ", ".join(f"{1e3 * depth:g}" for depth in DEPTHS) + " mm"


def _draw(figure: Figure, rows: Sequence[Row], ratios: Sequence[float]) -> None:
    """Error over depth, a panel a ratio."""
    for axes, nu in zip(np.atleast_1d(figure.subplots(1, len(ratios), sharey=True)), ratios, strict=True):
        for name in ALONE:
            found = pick(rows, poisson_ratio=nu, mesh="as shipped", elements=name, what="elements alone")
            error = np.array([row["error_percent"] for row in found]).reshape(-1, len(DEPTHS)).T
            axes.plot(1e3 * np.array(DEPTHS), error, "o-", color=f"C{ALONE.index(name)}", label=name)
        axes.axhline(0.0, color="black", lw=0.6)
        axes.set(title=f"Poisson's ratio {nu:.2f}", xlabel="depth [mm]")
    axes.legend()
    figure.axes[0].set_ylabel("error of the force [%]")
