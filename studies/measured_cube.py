"""A ball on a rod pressed into a cube of gel, the Truth Cube: the force and what moves inside.

A quarter of the cube is computed, stuck to its plate. The ball meets points on the facets of the top by a
stiff spring, each for the area that is its own. Where gel sticks to the ball, a point stays where it touched
first; where it slides, a neo-Hookean gel gives way at some 1.6 radii. Law, friction and modulus of the gel
are not known, so that force is said over E R^2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.fem.tet4 import gradients
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.tet import TetMesh
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.measured_data import measured
from palpo.studies.reference.at_rest import BodyAtRest, Floats, Unbalanced, free_ways
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS

MESHES = {(8, 10, 8): (4.0, 0.3, 4.0), (10, 12, 10): (5.0, 0.25, 5.0)}
"""Cells of a quarter, and their grading: at the middle of the top 2.3 and 1.6 mm."""
STEPS = 144
RATIO = 0.49
STIFF = 30.0
"""Pressure by which a point enters the ball by its radius, over Young's modulus."""
SUBDIVIDED = 4
"""Parts of a facet's side, whose middles are the points."""
REACH = 2.2
"""Radii around the axis in which the top may be touched."""
FEW = 5.0
"""What two meshes may differ by [%]."""
BEADS = 0.01 * np.arange(1, 8)
"""Heights of the layers [m]; along the sides they stand as far apart."""


class Ball:
    """An `Outside`: a ball of a radius on a rod of another, above points B x of areas (p,) on a surface."""

    def __init__(self, points: sp.csr_matrix, areas: Floats, radius: float, rod: float, stiff: float) -> None:
        self.points, self.radius, self.rod, self.stiff = points, radius, rod, stiff * areas
        self.height = 0.0
        self.stuck, self.anchor = np.zeros(len(areas), dtype=bool), np.zeros((len(areas), 3))

    def gaps(self, x: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Points relative to the ball's middle, normals, gaps [m], and which of them are beside the rod."""
        at = np.asarray(self.points @ x.ravel()).reshape(-1, 3) - [0.0, self.height, 0.0]
        level = at * [1.0, 0.0, 1.0]
        gap = np.linalg.norm(at, axis=1) - self.radius
        beside = (at[:, 1] > 0.0) & (np.linalg.norm(level, axis=1) - self.rod < gap)
        way = np.where(beside[:, None], level, at)
        length = np.maximum(np.linalg.norm(way, axis=1), 1e-12)
        return at, way / length[:, None], length - np.where(beside, self.rod, self.radius), beside

    def stick(self, x: Floats) -> None:
        """Points that touch now stay where on the ball they are."""
        at, normal, gap, _ = self.gaps(x)
        new = (gap < 0.0) & ~self.stuck
        self.anchor[new] = (at - gap[:, None] * normal)[new]
        self.stuck |= new

    def __call__(self, x: Floats) -> tuple[float, Floats, sp.csc_matrix]:
        at, normal, gap, beside = self.gaps(x)
        length = gap + np.where(beside, self.rod, self.radius)
        off = np.where(self.stuck[:, None], at - self.anchor, np.minimum(gap, 0.0)[:, None] * normal)
        across = np.eye(3) - np.where(beside[:, None, None], np.diag([0.0, 1.0, 0.0]), 0.0)
        along = normal[:, :, None] * normal[:, None, :]
        slid = along + (gap / length)[:, None, None] * (across - along)
        blocks = np.where(
            self.stuck[:, None, None], np.eye(3), np.where(gap < 0.0, 1.0, 0.0)[:, None, None] * slid
        )
        k, n = self.stiff[:, None], len(gap)
        stiffness = sp.bsr_matrix((k[:, None] * blocks, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n))
        back = self.points.T
        return (
            0.5 * float((k * off**2).sum()), -np.asarray(back @ (k * off).ravel()),
            (back @ stiffness @ self.points).tocsc(),
        )  # fmt: skip


class CubePress(NamedTuple):
    """A press of the ball on one mesh."""

    depth: Floats
    force: Floats
    """[N] (k,), as far as a state at rest was found and the force grew."""
    mesh: TetMesh
    moved: list[Floats]
    """Displacements (n, 3) [m] at the measured depths."""


def press(cells: tuple[int, int, int], sticks: bool) -> CubePress:
    """Press the ball in to the largest measured depth, or as far as it rests."""
    data = measured()["cube"]
    side, radius, depths = data["side"], 0.5 * data["ball"], np.array(data["depth"])
    made = block((0.5 * side, side, 0.5 * side), cells, MESHES[cells])
    x = made.nodes - made.nodes.min(axis=0)
    mesh = TetMesh(x, made.tets)
    young = data["youngs_modulus"]
    body = SoftBody(
        "gel",
        mesh,
        Material(young, RATIO, 1e3, law="neo-hookean"),
        (),
        (0.0, 0.0, 0.0),
        elements="tet4-patch",
    )
    held = x < 1e-9
    held[x[:, 1] < 1e-9] = True
    points, areas = points_of(mesh, REACH * radius)
    ball = Ball(points, areas, radius, 0.5 * data["rod"], STIFF * young / radius)
    rest = BodyAtRest(body, free_ways(held), young, ball)
    way = np.unique(np.concatenate([depths[-1] * np.arange(STEPS + 1) / STEPS, depths]))
    forces, moved = [0.0], list[Floats]()
    for depth in way[1:]:
        ball.height = side + radius - depth
        try:
            rest.move(np.zeros_like(x), 0)
        except Unbalanced:
            break
        if sticks:
            ball.stick(body.x)
        force = -4.0 * float(ball(body.x)[1].reshape(-1, 3)[:, 1].sum())
        if force < forces[-1]:
            break  # it goes through
        forces.append(force)
        if depth in depths:
            moved.append(body.x - x)
    return CubePress(way[: len(forces)], np.array(forces), mesh, moved)


def points_of(mesh: TetMesh, reach: float) -> tuple[sp.csr_matrix, Floats]:
    """Points on facets of the top near the axis, as B (3 p, 3 n), and their areas (p,) [m2]."""
    x, facets = mesh.nodes, mesh.surface().triangles
    middle = x[facets].mean(axis=1)
    top = (x[facets][:, :, 1] > x[:, 1].max() - 1e-9).all(axis=1)
    facets = facets[top & (np.hypot(middle[:, 0], middle[:, 2]) < reach)]
    q = 3 * SUBDIVIDED
    first = [
        (3 * i + 1 + turned, 3 * j + 1 + turned)
        for turned in (0, 1) for i in range(SUBDIVIDED) for j in range(SUBDIVIDED - i - turned)
    ]  # fmt: skip
    shares = np.array([(a, b, q - a - b) for a, b in first]) / q
    p = len(shares) * len(facets)
    columns = np.repeat(facets[:, None], len(shares), axis=1).ravel()
    each = sp.csr_matrix(
        (np.tile(shares.ravel(), len(facets)), (np.repeat(np.arange(p), 3), columns)), (p, len(x))
    )
    corners = x[facets]
    area = 0.5 * np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    return sp.kron(each, sp.eye(3)).tocsr(), np.repeat(area / len(shares), len(shares))


def at_beads(press: CubePress) -> tuple[Floats, list[Floats]]:
    """Where the beads of a quarter were (k, 3) [m], and how they moved at the depths that were reached."""
    level = np.arange(4) * 0.01
    beads = np.stack(np.meshgrid(level, BEADS, level, indexing="ij"), axis=-1).reshape(-1, 3)
    nodes, tets = press.mesh.nodes, press.mesh.tets
    _, slopes = gradients(nodes, tets)
    moved = [np.empty_like(beads) for _ in press.moved]
    for k, bead in enumerate(beads):
        shares = np.einsum("eai,ei->ea", slopes, bead - nodes[tets[:, 0]])
        shares[:, 0] += 1.0
        e = int(shares.min(axis=1).argmax())
        for out, field in zip(moved, press.moved, strict=True):
            out[k] = shares[e] @ field[tets[e]]
    return beads, moved


def rows(quick: bool) -> tuple[list[Row], dict[str, CubePress]]:
    """The beads by both meshes, and the presses by name, fine last."""
    coarse, fine = list(MESHES)
    presses = {"sticking, coarse": press(coarse, True), "sliding": press(coarse if quick else fine, False)}
    presses["sticking"] = presses["sticking, coarse"] if quick else press(fine, True)
    beads, moved = at_beads(presses["sticking"])
    out = list[Row]()
    for depth, field in zip(measured()["cube"]["depth"], moved, strict=True):
        for bead, way in zip(1e3 * beads, 1e3 * field, strict=True):
            names = ("x_mm", "y_mm", "z_mm", "moved_x_mm", "moved_y_mm", "moved_z_mm")
            out.append({"depth_mm": 1e3 * depth} | dict(zip(names, [*bead, *way], strict=True)))
    return out, presses


def lines(presses: dict[str, CubePress], quick: bool) -> list[Line]:
    """What is claimed of the cube."""
    data = measured()["cube"]
    radius, unit = 0.5 * data["ball"], data["youngs_modulus"] * (0.5 * data["ball"]) ** 2
    best, coarse, slides = presses["sticking"], presses["sticking, coarse"], presses["sliding"]
    out: list[Line] = []
    deepest, reached = data["depth"][-1], float(best.depth[-1])
    out.append(
        at_most(
            "Truth Cube, gel that sticks to the ball: depth not reached", 1e3 * (deepest - reached), 0.0,
            "mm", f"{deepest / data['side']:.0%} of the cube, {deepest / radius:.1f} radii",
        )
    )  # fmt: skip
    for depth in data["depth"]:
        force = float(np.interp(depth, best.depth, best.force))
        slid = f"{np.interp(depth, slides.depth, slides.force) / unit:.2f} sliding"
        if depth > slides.depth[-1]:
            slid = f"no rest was found beyond {1e3 * slides.depth[-1]:.1f} mm where it slides"
        out.append(
            Reported(
                f"Truth Cube pressed by {depth / data['side']:.0%}: force over E R^2", force / unit, "",
                f"gel that sticks to the ball; {slid}; {force:.2g} N with 15 kPa, which is from memory. Not "
                f"compared: {force / depth:.0f} N/m on the whole, beside 798 N/m by a tool that is not named",
            )
        )  # fmt: skip
    if quick:
        return out
    both = [np.interp(data["depth"], one.depth, one.force) for one in (coarse, best)]
    out.append(
        at_most(
            "Truth Cube: forces of two meshes differ", 100.0 * float(np.abs(both[0] / both[1] - 1.0).max()),
            FEW, "%", "what is demanded of a mesh",
        )
    )  # fmt: skip
    apart = max(
        float(np.linalg.norm(a - b, axis=1).max()) / depth
        for a, b, depth in zip(at_beads(coarse)[1], at_beads(best)[1], data["depth"], strict=True)
    )
    out.append(
        at_most(
            "Truth Cube: beads of two meshes differ", 100.0 * apart, FEW, "% of the depth",
            "worst of 112 beads of a quarter; cube.csv has where each goes, for the authors' tables",
        )
    )  # fmt: skip
    return out


def draw(figure: Figure, presses: dict[str, CubePress], rows: Sequence[Row]) -> None:
    """Force over depth, and the middle layer of beads before and after."""
    data = measured()["cube"]
    unit = data["youngs_modulus"] * (0.5 * data["ball"]) ** 2
    left, right = figure.subplots(1, 2)
    for (name, one), colour in zip(presses.items(), ("faint", "low", "krylov"), strict=True):
        left.plot(1e3 * one.depth, one.force / unit, color=COLOURS[colour], label=name)
    left.set(xlabel="depth [mm]", ylabel="force over E R^2")
    left.legend()
    radius, height = 0.5e3 * data["ball"], 1e3 * (data["side"] - data["depth"][-1])
    for row in rows:
        if row["z_mm"] == 0.0 and row["depth_mm"] == 1e3 * data["depth"][-1]:
            for side in (1.0, -1.0):
                x, y = side * row["x_mm"], row["y_mm"]
                right.plot(
                    [x, x + side * row["moved_x_mm"]],
                    [y, y + row["moved_y_mm"]],
                    color=COLOURS["faint"],
                    lw=0.8,
                )
                right.plot(
                    x + side * row["moved_x_mm"], y + row["moved_y_mm"], "o", ms=4, color=COLOURS["krylov"]
                )
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    right.plot(radius * np.sin(turn), height + radius * (1.0 + np.cos(turn)), color=COLOURS["paper"])
    right.set(xlabel="x [mm]", ylabel="y [mm]", aspect="equal", title="beads of the middle, pressed by 36%")
