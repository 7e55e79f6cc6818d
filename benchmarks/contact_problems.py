"""Contact problems made to be timed: easy, soft on soft, squeezed from two sides, walls of rigid bricks."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from palpo.physics.contact.problem import ContactProblem, SparseProblem
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.generate import block

Array = NDArray[np.float64]

SIZE, TISSUE = (0.05, 0.02, 0.05), Material(15e3, 0.45, 1e3)
"""The soft blocks: edges [m] along x, y, z and material; y is up."""

BRICK, MASS = np.array([0.2, 0.06, 0.1]), 2.4
"""The rigid bricks: edges [m] and mass [kg]."""


def pressed_block(cells: int, mu: float) -> ContactProblem:
    """A soft block, clamped below, under a plate that comes down by 1 mm at most, turns and drags by 2 mm."""
    at, compliance = _block(cells, lambda x: x[:, 1] < -0.999 * SIZE[1] / 2)
    top = at[:, 1] > 0.0
    return _pressed(at[top], compliance[np.ix_(np.repeat(top, 3), np.repeat(top, 3))], mu)


def soft_on_soft(cells: int, mu: float) -> ContactProblem:
    """The same on another such block, upside down."""
    at, compliance = _block(cells, lambda x: x[:, 1] < -0.999 * SIZE[1] / 2)
    top = at[:, 1] > 0.0
    lower = compliance[np.ix_(np.repeat(top, 3), np.repeat(top, 3))]
    mirror = np.tile([1.0, -1.0, 1.0], np.count_nonzero(top))
    return _pressed(at[top], lower + mirror[:, None] * lower * mirror, mu)


def squeezed_block(cells: int, mu: float) -> ContactProblem:
    """A soft block, clamped at one end, between two plates that come together and move apart along x."""
    at, compliance = _block(cells, lambda x: x[:, 0] < -0.999 * SIZE[0] / 2)
    rng, up = np.random.default_rng(0), np.where(at[:, 1] > 0.0, 1.0, -1.0)
    # relative to the block the plates come by 1 mm and drag by 2 mm
    motion = np.stack([2e-3 * up, 1e-3 * up, np.full(len(at), 4e-4)], axis=1)
    motion += 2e-4 * rng.normal(size=motion.shape)
    frames = _frames(np.stack([0.0 * up, -up, 0.0 * up], axis=1))
    return _in_contact(compliance, frames, motion, mu)


def brick_wall(courses: int, bricks: int, mu: float) -> ContactProblem:
    """Rigid bricks, kicked at random, over one step h = 1 ms: W = h^2 J M^-1 J^T has rank 6 a brick."""
    w, b, friction = _brick_wall(courses, bricks, mu)
    return ContactProblem(w.toarray(), b, friction)


def large_brick_wall(courses: int, bricks: int, mu: float) -> SparseProblem:
    """The same with W kept sparse: a brick hangs together with those that it touches."""
    return SparseProblem(*_brick_wall(courses, bricks, mu))


def _brick_wall(courses: int, bricks: int, mu: float) -> tuple[sp.csr_array, Array, Array]:
    rng, h = np.random.default_rng(0), 1e-3
    at = np.array(
        [[1.02 * BRICK[0] * (c + 0.5 * (k % 2)), BRICK[1] * (k + 0.5), 0.0] for k in range(courses)
         for c in range(bricks)]
    )  # fmt: skip
    blocks = [
        _corners(at, upper, lower)
        for upper in range(len(at))
        for lower in ([-1] if upper < bricks else _course(upper // bricks - 1, bricks))
    ]
    j = sp.vstack([rows for rows in blocks if rows is not None], format="csr")
    inertia = MASS / 12.0 * (BRICK @ BRICK - BRICK**2)
    inverse = np.tile(np.concatenate([np.full(3, 1.0 / MASS), 1.0 / inertia]), len(at))
    v = 0.05 * rng.normal(size=6 * len(at))
    v[1::6] -= 9.81 * h
    w = sp.csr_array(h * h * (j @ sp.diags_array(inverse) @ j.T))
    return sp.csr_array(0.5 * (w + w.T)), h * (j @ v), np.full(j.shape[0] // 3, mu)


def _course(k: int, bricks: int) -> range:
    return range(k * bricks, (k + 1) * bricks)


def _corners(at: Array, upper: int, lower: int) -> sp.coo_array | None:
    """Rows of J of the corners where a brick lies on another (-1: the ground); None where it does not."""
    below = at[lower] if lower >= 0 else at[upper] - [0.0, BRICK[1], 0.0]
    left, right = max(at[upper, 0], below[0]) - BRICK[0] / 2, min(at[upper, 0], below[0]) + BRICK[0] / 2
    if right <= left:
        return None
    axes = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    bodies = [(upper, 1.0), (lower, -1.0)][: 1 + (lower >= 0)]
    rows = np.zeros((12, 6 * len(bodies)))
    for c, (x, z) in enumerate((x, z) for x in (left, right) for z in (-BRICK[2] / 2, BRICK[2] / 2)):
        for side, (body, sign) in enumerate(bodies):
            arm = np.array([x, at[upper, 1] - BRICK[1] / 2, z]) - at[body]
            rows[3 * c : 3 * c + 3, 6 * side : 6 * side + 6] = sign * np.hstack([axes, np.cross(arm, axes)])
    columns = np.concatenate([6 * body + np.arange(6) for body, _ in bodies])
    row, column = np.nonzero(rows)
    return sp.coo_array((rows[row, column], (row, columns[column])), shape=(12, 6 * len(at)))


def _block(cells: int, clamped: Callable[[Array], NDArray[np.bool_]]) -> tuple[Array, Array]:
    """Positions (n, 3) and compliance (3 n, 3 n) [m/N] of the free nodes of both faces of the soft block."""
    mesh = block(SIZE, (cells, 4, cells))
    free = ~clamped(mesh.nodes)
    faces = np.flatnonzero(free & (np.abs(mesh.nodes[:, 1]) > 0.999 * SIZE[1] / 2))
    dofs = np.flatnonzero(np.repeat(free, 3))
    stiffness = rest_stiffness(mesh, TISSUE)[dofs][:, dofs].tocsc()
    at = np.searchsorted(dofs, (3 * faces[:, None] + np.arange(3)).ravel())
    unit = np.zeros((len(dofs), len(at)))
    unit[at, np.arange(len(at))] = 1.0
    return mesh.nodes[faces], splu(stiffness).solve(unit)[at]


def _pressed(at: Array, compliance: Array, mu: float) -> ContactProblem:
    rng = np.random.default_rng(0)
    crown = 3.0 * (at[:, 0] ** 2 + at[:, 2] ** 2) / SIZE[0] ** 2
    gap = 1e-3 * (crown - 1.0 + 0.2 * rng.normal(size=len(at)))
    motion = np.stack([2e-3 - 0.03 * at[:, 2], gap, 0.03 * at[:, 0]], axis=1)
    return _in_contact(compliance, _frames(np.tile([0.0, 1.0, 0.0], (len(at), 1))), motion, mu)


def _frames(normals: Array) -> Array:
    """Rows (n, t1, t2) of each contact, shape (n, 3, 3); t1 is x, to which all normals are perpendicular."""
    t1 = np.tile([1.0, 0.0, 0.0], (len(normals), 1))
    return np.stack([normals, t1, np.cross(normals, t1)], axis=1)


def _in_contact(compliance: Array, frames: Array, motion: Array, mu: float) -> ContactProblem:
    n = len(frames)
    w = np.einsum("iab,ibjc,jdc->iajd", frames, compliance.reshape(n, 3, n, 3), frames, optimize=True)
    b = np.einsum("iab,ib->ia", frames, motion)
    return ContactProblem(_symmetric(w.reshape(3 * n, 3 * n)), b.ravel(), np.full(n, mu))


def _symmetric(w: Array) -> Array:
    return np.ascontiguousarray(0.5 * (w + w.T))
