"""Rules that deal the elements of a mesh out to segments (002, III-A and figure 2).

Each gives the segment of every element, shape (m,), numbered from 0: the contact segment, which holds every
element at a contact node, so that contact acts on no other.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh

from palpo.physics.fem.elements import SolidMesh
from palpo.physics.mesh import hex as hexahedra
from palpo.physics.mesh import tet as tetrahedra
from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.numerics.errors import InputError


def by_nodes(mesh: SolidMesh, labels: ArrayLike) -> NDArray[np.int64]:
    """Each element goes to the least of its nodes' labels (n,): segment 0 takes all that touch its nodes."""
    return np.asarray(labels, dtype=np.int64)[mesh.cells].min(axis=1)


def surface_and_inside(mesh: SolidMesh, contact: ArrayLike) -> NDArray[np.int64]:
    """The elements at contact nodes, and the rest: the paper's two segments."""
    labels = np.ones(len(mesh.nodes), dtype=np.int64)
    labels[np.asarray(contact)] = 0
    return by_nodes(mesh, labels)


def by_graph(mesh: SolidMesh, contact: ArrayLike, segments: int) -> NDArray[np.int64]:
    """The elements at contact nodes, and the rest in `segments` - 1 parts of equal size and little interface.

    The rest is halved again and again along the Fiedler vector of its elements' graph (Pothen, Simon and
    Liou, Partitioning sparse matrices with eigenvectors of graphs, SIAM J. Matrix Anal. Appl. 1990).
    Raises InputError for fewer than two segments, or more than there are elements for.
    """
    labels = surface_and_inside(mesh, contact)
    inside = np.flatnonzero(labels)
    if not 2 <= segments <= 1 + inside.size:
        raise InputError(
            f"partitioning by graph into {segments} segments, expected 2 to {1 + inside.size}: one for the "
            f"contact nodes, and at most one for each of the {inside.size} elements away from them."
        )
    cells, sides = mesh.cells, hexahedra if isinstance(mesh, HexMesh) else tetrahedra
    faces = cells[inside][:, sides.OUTWARD_FACES]
    per_element = faces.shape[1]
    face = distinct_sides(faces.reshape(-1, faces.shape[2])).of
    touches = sp.csr_array((np.ones(face.size), (np.arange(face.size) // per_element, face)))
    labels[inside] = 1 + _halved(sp.csr_array(touches @ touches.T), segments - 1)
    return labels


def _halved(graph: sp.csr_array, parts: int) -> NDArray[np.int64]:
    """Part of each vertex of a symmetric graph, numbered from 0, parts of equal size within one vertex."""
    n = graph.shape[0]
    label = np.zeros(n, dtype=np.int64)
    if parts == 1:
        return label
    few = parts // 2
    fiedler = np.zeros(n)
    if n > 2:
        # shifted below zero, where the Laplacian is singular
        start = np.cos(np.arange(n))
        fiedler = eigsh(laplacian(graph).tocsc(), 2, sigma=-1e-3, v0=start)[1][:, 1]
    order = np.argsort(fiedler, kind="stable")
    cut = n * few // parts
    for vertices, first, count in ((order[:cut], 0, few), (order[cut:], few, parts - few)):
        label[vertices] = first + _halved(sp.csr_array(graph[vertices][:, vertices]), count)
    return label
