"""Rules that deal the elements of a mesh out to segments (002, III-A and figure 2).

Each gives the segment of every element, shape (m,), numbered from 0: the contact segment, which holds every
element at a contact node, so that contact acts on no other.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from physics.errors import InputError
from physics.mesh.tet import OUTWARD_FACES, TetMesh


def by_nodes(mesh: TetMesh, labels: ArrayLike) -> NDArray[np.int64]:
    """Each element goes to the least of its nodes' labels (n,): segment 0 takes all that touch its nodes."""
    return np.asarray(labels, dtype=np.int64)[mesh.tets].min(axis=1)


def surface_and_inside(mesh: TetMesh, contact: ArrayLike) -> NDArray[np.int64]:
    """The elements at contact nodes, and the rest: the paper's two segments."""
    labels = np.ones(len(mesh.nodes), dtype=np.int64)
    labels[np.asarray(contact)] = 0
    return by_nodes(mesh, labels)


def by_boxes(mesh: TetMesh, boxes: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """Nodes in box i, (lowest, highest corner) [m], shape (2, 3), have label i; the rest, the next one."""
    labels = np.full(len(mesh.nodes), len(boxes), dtype=np.int64)
    for i in reversed(range(len(boxes))):
        low, high = np.asarray(boxes[i], dtype=np.float64)
        labels[((mesh.nodes >= low) & (mesh.nodes <= high)).all(axis=1)] = i
    return by_nodes(mesh, labels)


def by_graph(mesh: TetMesh, contact: ArrayLike, segments: int) -> NDArray[np.int64]:
    """The elements at contact nodes, and the rest in `segments` - 1 parts of little interface, by METIS.

    Raises InputError for fewer than two segments, or where pymetis is not installed.
    """
    try:
        import pymetis
    except ImportError as error:
        raise InputError("partitioning by graph needs pymetis: pip install pymetis.") from error
    if segments < 2:
        raise InputError(f"partitioning by graph into {segments} segments, expected at least 2.")
    labels = surface_and_inside(mesh, contact)
    inside = np.flatnonzero(labels)
    _, faces = np.unique(
        np.sort(mesh.tets[inside][:, OUTWARD_FACES].reshape(-1, 3), axis=1), axis=0, return_inverse=True
    )
    order = np.argsort(faces, kind="stable")
    shared = np.flatnonzero(np.diff(faces[order]) == 0)
    one, other = order[shared] // 4, order[shared + 1] // 4
    neighbours: list[list[int]] = [[] for _ in inside]
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        neighbours[a].append(b)
        neighbours[b].append(a)
    labels[inside] = 1 + np.asarray(pymetis.part_graph(segments - 1, adjacency=neighbours).vertex_part)
    return labels
