"""Writes the stored contact problems beside this file: python -m tests.contact.generate_problems

Each is an .npz of W [m/N], q [m] and mu, rows (n, t1, t2), as ContactProblem(W, q, mu) takes them.

elastic   tetrahedral blocks clamped at the far side, pressed together and dragged; W is the compliance of the
          facing nodes, of one block (easy), of two (soft on soft), or of two beside each other (two-sided)
rigid     boxes with mass over one step h: W = h^2 J M^-1 J^T, of rank 6 a box: hyperstatic, rank-deficient
wedges    a plug between two prongs over one step of passive midpoint, from loose to nearly jammed; those in
          `hard` have 72 rows and 18 freedoms, and Uzawa's method takes more than 10000 sweeps
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.tet4 import gradients, stiffness
from palpo.physics.mesh.generate import block as tet_block
from palpo.studies.squeezes import SQUEEZES, squeeze_problem

FOLDER = Path(__file__).parent / "problems"
Array = NDArray[np.float64]


def surface_compliance(
    size: tuple[float, float, float], divisions: tuple[int, int, int], young: float, nu: float, side: int
) -> tuple[Array, Array]:
    """Positions (n, 3) and compliance (3 n, 3 n) [m/N], axes (x, y, z), of the nodes of the top (side = 1) or
    bottom (-1) of a block that is clamped at the other end; without the outermost ring of nodes."""
    mesh = tet_block(size, divisions)
    lam, mu = young * nu / ((1 + nu) * (1 - 2 * nu)), young / (2 * (1 + nu))
    volumes, g = gradients(mesh.nodes, mesh.tets)
    element = stiffness(volumes, g, lam, mu)
    k = np.zeros((3 * len(mesh.nodes),) * 2)
    for tet, part in zip(mesh.tets, element, strict=True):
        dofs = (3 * tet[:, None] + np.arange(3)).reshape(-1)
        k[np.ix_(dofs, dofs)] += part.reshape(12, 12)
    y = side * mesh.nodes[:, 1]
    free = np.flatnonzero(y > y.min() + 1e-9)
    x, z = np.abs(mesh.nodes[:, 0]), np.abs(mesh.nodes[:, 2])
    inside = (x < x.max() - 1e-9) & (z < z.max() - 1e-9)
    face = np.flatnonzero((y > y.max() - 1e-9) & inside)
    dofs = (3 * free[:, None] + np.arange(3)).reshape(-1)
    inverse = np.linalg.inv(k[np.ix_(dofs, dofs)])
    at = (3 * np.searchsorted(free, face)[:, None] + np.arange(3)).reshape(-1)
    order = np.lexsort(np.round(mesh.nodes[face].T, 9))
    at = at.reshape(-1, 3)[order].reshape(-1)
    c = inverse[np.ix_(at, at)]
    return mesh.nodes[face][order], 0.5 * (c + c.T)


def in_contact_rows(compliance: Array) -> Array:
    """Rows (y, x, z) of each point: the normal is +y, t1 = +x and t2 = +z."""
    n = len(compliance) // 3
    index = (3 * np.arange(n)[:, None] + np.array([1, 0, 2])).reshape(-1)
    return compliance[np.ix_(index, index)]


def pressed(positions: Array, depth: float, drag: tuple[float, float], tilt: float) -> Array:
    """Free offsets of a face pushed in by depth, tilted about z and dragged, rows (n, t1, t2)."""
    q = np.empty((len(positions), 3))
    q[:, 0] = -depth + tilt * positions[:, 0] + 0.3 * tilt * positions[:, 2]
    q[:, 1:] = drag
    return q.reshape(-1)


def elastic_problems() -> dict[str, tuple[Array, Array, Array]]:
    """Blocks 80 x 25 x 35 mm and 20 x 30 x 20 mm; E and nu of 001's kidney tissue and rubber."""
    size, divisions = (0.02, 0.03, 0.02), (6, 4, 6)
    at, upper = surface_compliance(size, divisions, 20e3, 0.40, -1)
    _, lower = surface_compliance((0.02, 0.015, 0.02), divisions, 20e3, 0.40, 1)
    _, stiffer = surface_compliance((0.02, 0.015, 0.02), divisions, 60e3, 0.49, 1)
    n = len(at)
    one, both, mixed = (in_contact_rows(c) for c in (lower, lower + upper, stiffer + 0.3 * upper))
    squeeze = np.zeros((6 * n, 6 * n))  # the second finger comes from below: n and t1 turn around
    squeeze[: 3 * n, : 3 * n] = both
    squeeze[3 * n :, 3 * n :] = mixed
    flip = np.tile([-1.0, -1.0, 1.0], n)
    middle = 0.15 * in_contact_rows(upper)
    squeeze[: 3 * n, : 3 * n] += middle
    squeeze[: 3 * n, 3 * n :] += middle * flip
    squeeze[3 * n :, : 3 * n] += flip[:, None] * middle
    squeeze[3 * n :, 3 * n :] += flip[:, None] * middle * flip
    few = np.flatnonzero(np.arange(n) % 2 == 0)
    pick = (3 * np.concatenate([few, few + n])[:, None] + np.arange(3)).reshape(-1)
    q = np.concatenate([pressed(at, 1.5e-3, (3e-3, 0.0), 0.05), pressed(at, 1.2e-3, (-2e-3, 1e-3), -0.04)])
    return {
        "easy": (one, pressed(at, 2e-3, (5e-4, 2e-4), 0.15), np.full(n, 0.3)),
        "soft_on_soft": (both, pressed(at, 3e-3, (8e-3, 2e-3), 0.3), np.full(n, 0.5)),
        "high_friction": (both, pressed(at, 2e-3, (1.2e-2, 3e-3), 0.2), np.full(n, 1.0)),
        "two_sided_squeeze": (squeeze[np.ix_(pick, pick)], q[pick], np.full(2 * len(few), 0.5)),
    }


def rigid_rows(points: Array, normals: Array, centre: Array) -> Array:
    """J (3 n, 6): motion of the points of a rigid body along (n, t1, t2)."""
    rows = []
    for p, n in zip(points, normals, strict=True):
        t1 = np.cross(n, [0.0, 0.0, 1.0]) if abs(n[2]) < 0.9 else np.array([1.0, 0.0, 0.0])
        t1 /= np.linalg.norm(t1)
        frame = np.stack([n, t1, np.cross(n, t1)])
        arm = p - centre
        rows.append(np.concatenate([frame, np.cross(arm, frame)], axis=1))
    return np.concatenate(rows)


def box_corners(size: Array, axis: int, sign: float) -> Array:
    """The four corners of one face of a box about the origin, shape (4, 3)."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    return corners[np.sign(corners[:, axis]) == sign]


def rigid_problems(h: float = 1e-2, gravity: float = 9.81) -> dict[str, tuple[Array, Array, Array]]:
    """Boxes of 40 mm and 64 g, one held between two fingers, five stacked and pushed."""
    size, mass = np.full(3, 0.04), 0.064
    inverse = np.diag(1.0 / np.array([mass] * 3 + [mass * (0.04**2) / 6] * 3))
    points = np.concatenate([box_corners(size, 0, -1.0), box_corners(size, 0, 1.0)])
    normals = np.repeat([[1.0, 0, 0], [-1.0, 0, 0]], 4, axis=0)
    j = rigid_rows(points, normals, np.zeros(3))
    held = h * h * j @ inverse @ j.T
    fall = h * j @ np.array([0, -gravity * h, 0, 0, 0, 0])
    pinch = fall + np.tile([-2e-4, 0, 0], 8)  # padded fingers come closer by 0.2 mm each
    pads = np.diag(np.tile([2e-4, 4e-4, 4e-4], 8))
    finger, pull = 0.1, 2.0  # rigid fingers slide along x, each pulled by 2 N
    slide = np.zeros((24, 2))
    slide[0:12:3, 0] = slide[12:24:3, 1] = 1.0
    grip = fall - h * h * pull / finger * slide.sum(axis=1)
    gripped = held + h * h / finger * slide @ slide.T

    n_boxes, blocks, q = 5, [], []
    for i in range(n_boxes):  # contact layer i: box i on box i - 1, or on the ground
        rows = np.zeros((12, 6 * n_boxes))
        feet = box_corners(size, 1, -1.0)
        up = np.tile([0, 1.0, 0], (4, 1))
        rows[:, 6 * i : 6 * i + 6] = rigid_rows(feet, up, np.zeros(3))
        if i:
            rows[:, 6 * i - 6 : 6 * i] = -rigid_rows(feet + np.array([0, 0.04, 0]), up, np.zeros(3))
        blocks.append(rows)
    stack = np.concatenate(blocks)
    free = np.tile([0, -gravity * h, 0, 0, 0, 0], n_boxes).astype(float)
    free[6 * (n_boxes - 1)] = 0.05  # the top box is pushed
    q = h * stack @ free
    w = h * h * stack @ np.kron(np.eye(n_boxes), inverse) @ stack.T
    return {
        "hyperstatic_grip": (gripped, grip, np.full(8, 0.6)),
        "padded_grip": (held + pads, pinch, np.full(8, 0.6)),
        "rank_deficient_stack": (w, q, np.full(4 * n_boxes, 0.4)),
    }


def wedge_problems() -> dict[str, tuple[Array, Array, Array]]:
    """The squeezes of the study of snap connectors' solver."""
    named = {("" if case.modes is None else "hard/") + case.name: squeeze_problem(case) for case in SQUEEZES}
    return {name: (problem.w, problem.b, problem.mu) for name, problem in named.items()}


def main() -> None:
    """Write every problem."""
    (FOLDER / "hard").mkdir(parents=True, exist_ok=True)
    for name, (w, q, mu) in {**elastic_problems(), **rigid_problems(), **wedge_problems()}.items():
        np.savez_compressed(FOLDER / f"{name}.npz", W=0.5 * (w + w.T), q=q, mu=mu)


if __name__ == "__main__":
    main()
