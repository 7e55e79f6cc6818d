"""A bar laid on a liver, with and without W: bodies for which W is dear."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.laws import OPEN
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.io import read_tet_mesh
from palpo.physics.systems.hapco.detection import Detection
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import render_picture
from palpo.studies.claims import Claim, Skipped, at_most, greatest
from palpo.studies.force_errors import deviation
from palpo.studies.recording import data_folder
from palpo.studies.reference.conjugate_gradient_body import ConjugateGradientBody
from palpo.studies.reference.interaction import Interaction, StepResult
from palpo.studies.rows import Row
from palpo.studies.tables import save_figure, write_csv

LIVER_STOP = Stop(1e-6, 50_000)
BAR, LIVER = Material(200e3, 0.49, 1000.0), Material(5000e3, 0.30, 1000.0)
"""001 prints 200 and 5000 "MPa"; nothing would sag by its weight, so they are taken as kPa."""
UNIT = 0.03
"""The mesh has none. With this one [m] the liver is 19 cm long, as a grown one is."""
HUNG = np.array([[-0.15, 0.0, 0.0], [0.06, 0.0, -0.06], [0.06, 0.0, 0.09]])
"""Nearest these points [m] are the liver's three fixed nodes; where 001 has them, its picture showed."""
LOWERED = (0.0, 0.01, 0.02)
"""How far the bar's clamped end is lowered [m]: first it lies by its weight alone, on one node."""
FRICTION = 0.3


def compare_on_liver(out: Path, lowered: Sequence[float]) -> list[Claim]:
    """Figure 4.17: both bodies by conjugate gradients in Jacobi order, and by their K^-1 with W."""
    try:
        path = data_folder() / "liver.msh"
    except Skipped as reason:
        Console().print(f"the liver under a bar is left out: {reason}", soft_wrap=True)
        return []
    asked = _laid(path, ConjugateGradientBody, False, {"order": "jacobi"}, tolerance=1e-10)
    direct = _laid(path, QuasistaticBody, True, {})
    pictures, rows = [], []
    for depth in lowered:
        step, right = (i.step(i.mobile.centre - [0.0, depth, 0.0]) for i in (asked, direct))
        pictures.append(_photograph(direct, right))
        assert isinstance(right.problem, ContactProblem)
        rows.append(
            {
                "lowered_mm": 1e3 * depth,
                "gap_without_contact_mm": 1e3 * float(right.problem.b[0::3].min()),
                "bearing": int((right.result.status != OPEN).sum()),
                "force_N": float(np.linalg.norm(right.force)),
                "sweeps": step.result.iterations,
                "sweeps_with_w": right.result.iterations,
                "residual": step.result.residual,
                "other_statuses": int((step.result.status != right.result.status).sum()),
                "off_percent": deviation(step.result.r, right.result.r),
            }
        )
    write_csv(out / "liver.csv", rows)
    save_figure(out / "liver.png", 3.0, lambda figure: _draw_liver(figure, rows, pictures))
    return [
        at_most("liver: least gap of the bar if nothing held it", rows[0]["gap_without_contact_mm"], 0.0,
                "mm", "its own weight brings it there"),
        at_most("liver: worst residual, conjugate gradients and Jacobi",
                greatest(r["residual"] for r in rows), LIVER_STOP.tolerance, "", "its stop"),
        at_most("liver: contacts with other statuses than with W", sum(r["other_statuses"] for r in rows),
                0, "", "one solution"),
        at_most("liver: greatest deviation of the forces from those with W",
                greatest(r["off_percent"] for r in rows), 0.1, "%",
                "a residual of 1e-6 times a condition of 1e3"),
    ]  # fmt: skip


def _laid(path: Path, kind: Any, with_w: bool, solver_options: Row, **options: Any) -> Interaction:
    """The bar of 5 x 5 x 5 nodes, clamped at one end, over the liver, which three nodes hold."""
    liver = read_tet_mesh(path)
    liver = liver.with_nodes(UNIT * liver.nodes)
    bar = block((0.18, 0.045, 0.045), (4, 4, 4))
    top = liver.nodes[liver.nodes[:, 1].argmax()]
    bar = bar.with_nodes(bar.nodes + top + np.array([-0.03, 0.0231, 0.0]))
    x, y = bar.nodes[:, 0], bar.nodes[:, 1]
    end = np.flatnonzero(x < x.min() + 1e-9)
    feet = [int(np.linalg.norm(liver.nodes - point, axis=1).argmin()) for point in HUNG]
    below = np.setdiff1d(np.flatnonzero(y < y.min() + 1e-9), end)
    return Interaction(
        kind("bar", bar, BAR, end, **options), kind("liver", liver, LIVER, feet, **options),
        Detection(vertices=below, tolerance=0.03, edges=False), FRICTION, options=solver_options,
        stop=LIVER_STOP, assembled=with_w,
    )  # fmt: skip


Draw = Callable[[Axes], None]


def _photograph(interaction: Interaction, step: StepResult) -> Draw:
    """The bodies as they stand and the contacts that bear, to be drawn later."""
    bodies = (interaction.mobile, interaction.fixed)
    colours = ((0.75, 0.77, 0.80), (0.60, 0.22, 0.20))
    x = [body.positions(body.surface_nodes) for body in bodies]
    firsts = (0, len(x[0]))
    shapes = [
        Drawable(body.name, "surface", first, body.surface_nodes.size, body.slot[body.surface.triangles],
                 colour=colour)
        for body, first, colour in zip(bodies, firsts, colours, strict=True)
    ]  # fmt: skip
    vertices = np.concatenate(x)
    bears = step.result.status != OPEN
    state = SceneState(
        vertices=vertices, contact_point=step.points[bears], contact_force=step.forces[bears],
        contact_state=step.result.status[bears].astype(np.int64),
    )  # fmt: skip

    def draw(ax: Axes) -> None:
        ax.set_axis_off()
        try:
            ax.imshow(render_picture(make_geometry(shapes, vertices), state, width=900, height=800))
        except RenderUnavailable as reason:
            ax.text(0.5, 0.5, f"no picture: {reason}", ha="center", wrap=True, fontsize=8)

    return draw


def _draw_liver(figure: Figure, rows: list[Row], pictures: list[Draw]) -> None:
    axes = figure.subplots(1, len(rows), squeeze=False)[0]
    for ax, row, draw in zip(axes, rows, pictures, strict=True):
        draw(ax)
        said = "by its weight" if row["lowered_mm"] == 0.0 else f"lowered by {row['lowered_mm']:g} mm"
        ax.set_title(f"{said}: {row['bearing']} bearing, {row['force_N']:.2g} N", loc="left", fontsize=9)
