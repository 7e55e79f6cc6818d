"""Triangulation of one triangle with points and segments inserted: how a border polyline cuts a mesh.

Points enter one by one, each splitting the triangle or the edge on which it lies; then each segment is
recovered by flipping the edges that cross it (S. W. Sloan, A fast algorithm for generating constrained
Delaunay triangulations, Computers & Structures 47, 1993, section 4). Loops inside the triangle, chains from
edge to edge and any number of both are one case.

Points are rounded to a grid of barycentric coordinates, on which every orientation is an exact integer: all
triangles come out strictly positive, cover the triangle without gap or overlap, and no tolerance decides.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

GRID = 2**30
"""Steps of a barycentric coordinate; the doubled area of a triangle then fits 63 bits with room to spare."""


class Split(NamedTuple):
    """The triangulation and its scratch. Points 0, 1, 2 are the corners, 3 + i is inserted point i."""

    triangles: NDArray[np.int64]  # (2 q + 1, 3) points, turning as the triangle does
    fixed: NDArray[np.bool_]  # (2 q + 1, 3) whether the edges ab, bc, ca lie on a segment
    same_as: NDArray[np.int64]  # (q + 3,) the point that stands for each one: itself, or one that coincides
    grid: NDArray[np.int64]  # (q + 3, 2) rounded weights of corners 1 and 2, in steps
    crossing: NDArray[np.int64]  # (8 q + 8, 2) queue of edges across a segment


def make_split(points: int) -> Split:
    """Room for that many inserted points."""
    return Split(
        triangles=np.zeros((2 * points + 1, 3), np.int64),
        fixed=np.zeros((2 * points + 1, 3), np.bool_),
        same_as=np.zeros(points + 3, np.int64),
        grid=np.zeros((points + 3, 2), np.int64),
        crossing=np.zeros((8 * points + 8, 2), np.int64),
    )


@njit(nogil=True, cache=True)
def snap(weights):
    """Round barycentric weights (3,) to the grid, in place: they sum to 1 and zeros stay zeros, exactly."""
    u = min(max(math.floor(weights[1] * GRID + 0.5), 0), GRID)
    v = min(max(math.floor(weights[2] * GRID + 0.5), 0), GRID)
    if weights[0] == 0.0 or u + v > GRID:
        v = GRID - u
    weights[0], weights[1], weights[2] = (GRID - u - v) / GRID, u / GRID, v / GRID


@njit(nogil=True, cache=True)
def split_triangle(weights, n_points, segments, n_segments, split):
    """Triangulate a triangle with points and segments in it; returns (triangles, lost segments).

    weights (>= n_points, 3): barycentric, from `snap`. segments (>= n_segments, 2): ends in the numbering of
    `Split`; one that passes through a point is cut there. A segment that would cross an earlier one is lost,
    as all are, with all points, if there are more points than room.
    """
    grid, triangles, same_as = split.grid, split.triangles, split.same_as
    grid[0, 0], grid[0, 1] = 0, 0
    grid[1, 0], grid[1, 1] = GRID, 0
    grid[2, 0], grid[2, 1] = 0, GRID
    for k in range(3):
        triangles[0, k] = k
        same_as[k] = k
        split.fixed[0, k] = False
    if n_points + 3 > same_as.size:
        return 1, n_segments
    count = 1
    for k in range(n_points):
        grid[k + 3, 0], grid[k + 3, 1] = np.int64(weights[k, 1] * GRID), np.int64(weights[k, 2] * GRID)
        count = _insert(split, count, k + 3)
    lost = 0
    for k in range(n_segments):
        a, b = same_as[segments[k, 0]], same_as[segments[k, 1]]
        while a != b:
            a = _recover(split, count, a, b)
            if a < 0:
                lost += 1
                break
    return count, lost


@njit(nogil=True, cache=True)
def _turn(grid, a, b, c):
    """Twice the signed area of points a, b, c in grid steps, exact."""
    return (grid[b, 0] - grid[a, 0]) * (grid[c, 1] - grid[a, 1]) - (grid[b, 1] - grid[a, 1]) * (
        grid[c, 0] - grid[a, 0]
    )


@njit(nogil=True, cache=True)
def _write(split, t, a, b, c, ab, bc, ca):
    """Triangle t = points a, b, c, with whether its edges are fixed."""
    split.triangles[t, 0], split.triangles[t, 1], split.triangles[t, 2] = a, b, c
    split.fixed[t, 0], split.fixed[t, 1], split.fixed[t, 2] = ab, bc, ca


@njit(nogil=True, cache=True)
def _half_edge(triangles, count, a, b):
    """3 t + j of the triangle t whose edge j runs from a to b, -1 if there is none."""
    for t in range(count):
        for j in range(3):
            if triangles[t, j] == a and triangles[t, (j + 1) % 3] == b:
                return 3 * t + j
    return -1


@njit(nogil=True, cache=True)
def _insert(split, count, p):
    """Insert point p into the first `count` triangles; returns how many there are then."""
    grid, triangles = split.grid, split.triangles
    split.same_as[p] = p
    for t in range(count):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ab, bc, ca = _turn(grid, a, b, p), _turn(grid, b, c, p), _turn(grid, c, a, p)
        if ab < 0 or bc < 0 or ca < 0:
            continue
        if ab > 0 and bc > 0 and ca > 0:
            _write(split, t, a, b, p, False, False, False)
            _write(split, count, b, c, p, False, False, False)
            _write(split, count + 1, c, a, p, False, False, False)
            return count + 2
        # a zero is an edge through p, two zeros the corner where they meet
        if ab == 0 and ca == 0:
            split.same_as[p] = a
        elif ab == 0 and bc == 0:
            split.same_as[p] = b
        elif bc == 0 and ca == 0:
            split.same_as[p] = c
        else:
            j = 0 if ab == 0 else (1 if bc == 0 else 2)
            beyond = _half_edge(triangles, count, triangles[t, (j + 1) % 3], triangles[t, j])
            count = _halve(split, count, t, j, p)
            if beyond >= 0:
                count = _halve(split, count, beyond // 3, beyond % 3, p)
        return count
    return count


@njit(nogil=True, cache=True)
def _halve(split, count, t, j, p):
    """Split triangle t at point p of its edge j."""
    a, b, c = (split.triangles[t, j], split.triangles[t, (j + 1) % 3], split.triangles[t, (j + 2) % 3])
    _write(split, t, a, p, c, False, False, False)
    _write(split, count, p, b, c, False, False, False)
    return count + 1


@njit(nogil=True, cache=True)
def _recover(split, count, a, b):
    """Make the segment from a towards b an edge, as far as the first point on it; returns that, or -1."""
    grid, triangles, queue = split.grid, split.triangles, split.crossing
    right, left = -1, -1
    for t in range(count):
        for j in range(3):
            if triangles[t, j] != a:
                continue
            p, q = triangles[t, (j + 1) % 3], triangles[t, (j + 2) % 3]
            for end in (p, q):
                ahead = (grid[b, 0] - grid[a, 0]) * (grid[end, 0] - grid[a, 0]) + (
                    grid[b, 1] - grid[a, 1]
                ) * (grid[end, 1] - grid[a, 1])
                if _turn(grid, a, b, end) == 0 and ahead > 0:
                    return _fix(split, count, a, end)
            if _turn(grid, a, b, p) < 0 < _turn(grid, a, b, q):
                right, left = p, q
    n = 0
    while True:
        # the segment leaves across the edge from right to left; both sides of it are inner by convexity
        half = _half_edge(triangles, count, left, right)
        if split.fixed[half // 3, half % 3]:
            return -1
        queue[n, 0], queue[n, 1] = right, left
        n += 1
        tip = triangles[half // 3, (half % 3 + 2) % 3]
        side = _turn(grid, a, b, tip)
        if side == 0:
            b = tip
            break
        if side < 0:
            right = tip
        else:
            left = tip
    first, waiting, size = 0, n, queue.shape[0]
    # some edge of the queue can always be flipped for good; the bound only keeps a kernel from hanging
    for _ in range(4 * n * n + 4):
        if waiting == 0:
            return _fix(split, count, a, b)
        p, q = queue[first, 0], queue[first, 1]
        first, waiting = (first + 1) % size, waiting - 1
        one, two = _half_edge(triangles, count, p, q), _half_edge(triangles, count, q, p)
        r, s = triangles[one // 3, (one % 3 + 2) % 3], triangles[two // 3, (two % 3 + 2) % 3]
        again = (p, q)
        if _turn(grid, s, r, p) > 0 > _turn(grid, s, r, q):
            _flip(split, one // 3, one % 3, two // 3, two % 3)
            # r lies left of the segment and s right, or on it: then the new edge crosses no more
            if _turn(grid, a, b, r) * 1.0 * _turn(grid, a, b, s) >= 0.0:
                continue
            again = (s, r)
        back = (first + waiting) % size
        queue[back, 0], queue[back, 1] = again
        waiting += 1
    return -1


@njit(nogil=True, cache=True)
def _flip(split, t, j, u, k):
    """Exchange edge j of triangle t, which is edge k of triangle u, for the other diagonal."""
    p, q = split.triangles[t, j], split.triangles[t, (j + 1) % 3]
    r, s = split.triangles[t, (j + 2) % 3], split.triangles[u, (k + 2) % 3]
    qr, rp = split.fixed[t, (j + 1) % 3], split.fixed[t, (j + 2) % 3]
    ps, sq = split.fixed[u, (k + 1) % 3], split.fixed[u, (k + 2) % 3]
    _write(split, t, p, s, r, ps, False, rp)
    _write(split, u, q, r, s, qr, False, sq)


@njit(nogil=True, cache=True)
def _fix(split, count, a, b):
    """Mark both sides of the edge of points a and b; returns b."""
    for half in (_half_edge(split.triangles, count, a, b), _half_edge(split.triangles, count, b, a)):
        if half >= 0:
            split.fixed[half // 3, half % 3] = True
    return b
