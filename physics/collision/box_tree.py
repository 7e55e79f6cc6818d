"""Trees of axis-aligned boxes over the triangles of a surface, or the edges of a line.

Built once by median splits, refitted to the present positions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.topology import Topology
from palpo.physics.numerics.kernels import inlined, kernel

LEAF = 4
"""Most primitives in a leaf of the tree."""
DEPTH = 64
"""Most boxes that wait in a search of one tree; median splits of any mesh that fits in memory need fewer."""


class Tree(NamedTuple):
    """A binary tree of axis-aligned boxes over the primitives of one body, children after parents."""

    order: NDArray[np.int32]  # (n_primitives,) primitives, those of a node contiguous
    span: NDArray[np.int32]  # (n_nodes, 2) range in `order`
    children: NDArray[np.int32]  # (n_nodes, 2), -1 for a leaf
    box: NDArray[np.float64]  # (n_nodes, 6) lower and upper corner [m]


class Primitives(NamedTuple):
    """The primitives of one body and the points and edges that each one answers for."""

    points: NDArray[np.int32]  # (n_primitives, 3) points; an edge repeats its second point
    triangle: NDArray[np.int32]  # (n_primitives,) triangle, -1 for an edge
    own_points: NDArray[np.int32]  # (n_primitives, 3) points named by no earlier primitive, else -1
    own_edges: NDArray[np.int32]  # (n_primitives, 3) edges likewise


def _first_seen(names: NDArray[np.int32]) -> NDArray[np.int32]:
    """names where a name appears for the first time (row by row), -1 elsewhere."""
    flat = names.reshape(-1)
    _, first = np.unique(flat, return_index=True)
    kept = np.full(flat.shape, -1, np.int32)
    kept[first] = flat[first]
    return kept.reshape(names.shape)


def body_primitives(topology: Topology, body: int, parted: NDArray[np.int64]) -> Primitives:
    """Triangles of the body but for those `parted` (k,), or its edges where it has no triangles."""
    triangles = np.flatnonzero(topology.point_body[topology.triangles[:, 0]] == body).astype(np.int32)
    triangles = np.setdiff1d(triangles, parted)
    if len(triangles):
        points, edges = topology.triangles[triangles], topology.triangle_edges[triangles]
        return Primitives(points, triangles, _first_seen(points), _first_seen(edges))
    edges = np.flatnonzero(topology.point_body[topology.edges[:, 0]] == body).astype(np.int32)
    points = topology.edges[edges][:, [0, 1, 1]]
    own_edges = np.full((len(edges), 3), -1, np.int32)
    own_edges[:, 0] = edges
    return Primitives(
        np.ascontiguousarray(points), np.full(len(edges), -1, np.int32), _first_seen(points), own_edges
    )


def build_tree(centres: NDArray[np.float64]) -> Tree:
    """Median-split tree over primitives with the given centres, shape (n, 3)."""
    order = np.arange(len(centres), dtype=np.int32)
    spans, children = [(0, len(centres))], [[-1, -1]]
    node = 0
    while node < len(spans):
        start, stop = spans[node]
        if stop - start > LEAF:
            part = order[start:stop]
            axis = int(np.argmax(np.ptp(centres[part], axis=0)))
            middle = (stop - start) // 2
            order[start:stop] = part[np.argpartition(centres[part, axis], middle)]
            children[node] = [len(spans), len(spans) + 1]
            spans += [(start, start + middle), (start + middle, stop)]
            children += [[-1, -1], [-1, -1]]
        node += 1
    return Tree(
        order,
        np.array(spans, np.int32).reshape(-1, 2),
        np.array(children, np.int32).reshape(-1, 2),
        np.zeros((len(spans), 6)),
    )


@kernel
def refit_nodes(tree, points, x, first, stop):
    """Fit the boxes of nodes first to stop - 1, all of a body, to the present positions x (n_points, 3).

    points (n_primitives, 3): of each primitive.
    """
    for node in range(stop - 1, first - 1, -1):
        for i in range(3):
            tree.box[node, i] = 1e300
            tree.box[node, 3 + i] = -1e300
        left, right = tree.children[node, 0], tree.children[node, 1]
        if left >= 0:
            for i in range(3):
                tree.box[node, i] = min(tree.box[left, i], tree.box[right, i])
                tree.box[node, 3 + i] = max(tree.box[left, 3 + i], tree.box[right, 3 + i])
        else:
            for k in range(tree.span[node, 0], tree.span[node, 1]):
                for c in range(3):
                    p = points[tree.order[k], c]
                    for i in range(3):
                        tree.box[node, i] = min(tree.box[node, i], x[p, i])
                        tree.box[node, 3 + i] = max(tree.box[node, 3 + i], x[p, i])


@kernel
def refit(tree, points, x):
    """Fit all boxes of the tree to the present positions x (n_points, 3) of its primitives' points."""
    refit_nodes(tree, points, x, 0, tree.span.shape[0])


@inlined
def low_corner(box, node):
    """Least coordinates [m] of a node's box."""
    return box[node, 0], box[node, 1], box[node, 2]


@inlined
def high_corner(box, node):
    """Greatest coordinates [m] of a node's box."""
    return box[node, 3], box[node, 4], box[node, 5]


@inlined
def box_distance2(box, node, low, high):
    """Squared distance [m2] of a node's box from the box with the corners low and high; a point is both."""
    d2 = 0.0
    for i in range(3):
        gap = max(box[node, i] - high[i], low[i] - box[node, 3 + i])
        if gap > 0.0:
            d2 += gap * gap
    return d2


@kernel
def next_leaf(tree, low, high, reach, stack, top):
    """The next leaf within reach [m] of the box with the corners low and high; -1 after the last.

    stack (DEPTH,): nodes to visit, of which the last is stack[top]; also returns the new top. A search
    begins with stack[0] = 0, the root, and top = 0.
    """
    children, box = tree.children, tree.box
    while top >= 0:
        node = stack[top]
        top -= 1
        if box_distance2(box, node, low, high) > reach * reach:
            continue
        if children[node, 0] < 0:
            return node, top
        stack[top + 1] = children[node, 0]
        stack[top + 2] = children[node, 1]
        top += 2
    return -1, top
