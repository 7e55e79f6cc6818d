"""What a surface must be to have an inside: closed, facing outward, and nowhere through itself."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import DEPTH, Tree, build_tree, next_leaf, refit
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

TOUCHING = 1e-9
"""Length over the surface's size below which two parts touch and do not cross [-]."""


def require_solid(surface: SurfaceMesh, source: str) -> None:
    """InputError unless the surface is closed, encloses a positive volume and does not cross itself."""
    if not surface.closed:
        a, b = surface.edges[int(np.argmax(surface.edge_triangles[:, 1] < 0))]
        raise InputError(
            f"{source}: the surface is open at the edge of nodes {a} and {b} (counted from 0), so it has no "
            "inside and no signed distance; close it."
        )
    surface.require_volume(source)
    tree = build_tree(surface.vertices[surface.triangles].mean(axis=1))
    refit(tree, surface.triangles, surface.vertices)
    eps = TOUCHING * float(np.linalg.norm(tree.box[0, 3:] - tree.box[0, :3]))
    edge, triangle = _first_crossing(surface.vertices, surface.edges, surface.triangles, tree, eps)
    if edge >= 0:
        a, b = surface.edges[edge]
        raise InputError(
            f"{source}: the surface crosses itself where the edge of nodes {a} and {b} (counted from 0) runs "
            f"through triangle {triangle}; unite the parts into one solid."
        )


@kernel
def _first_crossing(
    x: NDArray[np.float64],
    edges: NDArray[np.int32],
    triangles: NDArray[np.int32],
    tree: Tree,
    eps: float,
) -> tuple[int, int]:
    """An edge and a triangle that cross, or (-1, -1).

    Two triangles cross exactly where an edge of one runs through the other. An edge at one of the triangle's
    own vertices ends in its plane, and so does not.
    """
    stack = np.zeros(DEPTH, np.int64)
    for e in range(edges.shape[0]):
        p, q = edges[e, 0], edges[e, 1]
        low = min(x[p, 0], x[q, 0]), min(x[p, 1], x[q, 1]), min(x[p, 2], x[q, 2])
        high = max(x[p, 0], x[q, 0]), max(x[p, 1], x[q, 1]), max(x[p, 2], x[q, 2])
        stack[0] = 0
        leaf, top = next_leaf(tree, low, high, 0.0, stack, 0)
        while leaf >= 0:
            for k in range(tree.span[leaf, 0], tree.span[leaf, 1]):
                t = tree.order[k]
                a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
                if _runs_through(x[p], x[q], x[a], x[b], x[c], eps):
                    return e, t
            leaf, top = next_leaf(tree, low, high, 0.0, stack, top)
    return -1, -1


@inlined
def _runs_through(p, q, a, b, c, eps):
    """Whether p and q lie on two sides of the triangle's plane and pq meets the triangle or its border."""
    u, v = b - a, c - a
    n = np.cross(u, v)
    area2 = np.dot(n, n)
    length = area2**0.5
    above, below = np.dot(p - a, n), np.dot(q - a, n)
    if min(above, below) >= -eps * length or max(above, below) <= eps * length:
        return False
    s = above / (above - below)
    w = p + s * (q - p) - a
    beta = np.dot(np.cross(w, v), n) / area2
    gamma = np.dot(np.cross(u, w), n) / area2
    return beta >= 0.0 and gamma >= 0.0 and beta + gamma <= 1.0
