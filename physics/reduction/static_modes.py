"""Static modes: a basis whose compliance at the interface is the body's own, within a tolerance.

The responses K^-1 f at rest to loads f on the interface nodes are what a body does while it is slow. A basis
of r columns keeps r of their combinations; the best are those of the leading eigenvectors of the compliance
C = B^T K^-1 B, for then B^T V (V^T K V)^-1 V^T B is C's best approximation of rank r: what is left out is
the sum of the other eigenvalues. Vibration modes are added from the lowest on, as Craig and Bampton do.
Sources: Craig and Chang, On the use of attachment modes in substructure coupling (AIAA 1977); Craig and
Hale, Block-Krylov component synthesis method (J. Guidance 1988).

Rules that deal the elements of a mesh out to segments (002, III-A and figure 2).

Each gives the segment of every element, shape (m,), numbered from 0: the contact segment, which holds every
element at a contact node, so that contact acts on no other.

Guyan's reduction: what a clamped body does at rest, exactly, for forces on some of its nodes.

Source: R. J. Guyan, Reduction of stiffness and mass matrices, AIAA Journal 3 (1965). The span of the static
answers to motions of the input nodes; at rest nothing of the full model is lost, however few columns.
"""

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh, splu

from palpo.physics.fem.elements import SolidMesh
from palpo.physics.mesh import hex as hexahedra
from palpo.physics.mesh import tet as tetrahedra
from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import RIGID, Basis, LinearModel


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


STATIC = "static"
LOOSE = "static shapes: the clamped nodes do not hold the body."


def static_shapes(model: LinearModel, inputs: ArrayLike) -> Basis:
    """Basis of three columns for each of the nodes `inputs`, shape (m,), of a clamped model.

    Raises InputError for a model that these nodes and its clamps do not hold.
    """
    boundary = model.dofs_of(inputs)
    inside = np.setdiff1d(np.arange(model.n_dof), boundary)
    shapes = np.zeros((model.n_dof, boundary.size))
    shapes[boundary] = np.eye(boundary.size)
    if inside.size:
        K = model.K.tocsr()[inside]
        try:
            shapes[inside] = -splu(K[:, inside].tocsc()).solve(K[:, boundary].toarray())
        except RuntimeError as singular:
            raise InputError(LOOSE) from singular
    K_s, M_s = shapes.T @ (model.K @ shapes), shapes.T @ (model.M @ shapes)
    stiffness, turn = sl.eigh(0.5 * (K_s + K_s.T), 0.5 * (M_s + M_s.T))
    # a motion that costs nothing is one to rounding
    if stiffness[0] < RIGID * float((model.K.diagonal() / model.M.diagonal()).max()):
        raise InputError(LOOSE)
    return Basis(shapes @ turn, stiffness, STATIC, 0, np.zeros(0))


METHOD = "static"
VIBRATIONS = 10
"""Lowest vibration modes that are kept beside the static ones."""


def static_modes(
    model: LinearModel,
    inputs: ArrayLike,
    tolerance: float,
    even: sp.csr_array | None = None,
    loads: NDArray[np.float64] | None = None,
) -> Basis:
    """Basis that yields as the model does to forces at the nodes `inputs`, shape (m,), at rest.

    As few static modes as leave out at most the share `tolerance` [-] of the mean compliance of these nodes.
    even (3 m, k): loads that are answered in full, such as those that are the same all around a ring. It is
    stiff to these, so that by the mean alone they come after what hardly matters; no other eigenvector of C
    may have a share of them. loads (3 m, j): all that the nodes are loaded with,
    orthonormal, any load by default; vibrations that move the nodes in other ways are left out.
    Raises InputError for a tolerance out of range and for a body that floats.
    """
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"static: the tolerance is {tolerance}, expected a number between 0 and 1.")
    if not model.base.nnz:
        raise InputError("static: the body floats, so that forces on it have no answer at rest; clamp it.")
    rows, n = model.dofs_of(inputs), model.n_dof
    space = np.eye(rows.size) if loads is None else loads
    load = np.zeros((n, space.shape[1]))
    load[rows] = space
    answer = splu(sp.csc_matrix(model.K)).solve(load)
    compliance = space.T @ answer[rows]
    compliance = 0.5 * (compliance + compliance.T)
    whole = np.trace(compliance)
    kept = load[:0].T if even is None else np.linalg.qr(space.T @ even.toarray())[0]
    rest = compliance - kept @ (kept.T @ compliance)
    values, vectors = sl.eigh(0.5 * (rest + rest.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    left = 1.0 - (np.trace(kept.T @ compliance @ kept) + np.cumsum(values)) / whole
    keep = 1 + int(np.argmax(left <= tolerance))
    few = min(VIBRATIONS, n - keep - kept.shape[1])
    lowest = (
        eigsh(model.K.tocsc(), few, model.M.tocsc(), sigma=0.0, v0=np.ones(n))[1] if few > 0 else load[:, :0]
    )
    told = np.linalg.norm(space.T @ lowest[rows], axis=0) >= 0.5 * np.linalg.norm(lowest[rows], axis=0)
    span = np.hstack([lowest[:, told], answer @ kept, answer @ vectors[:, :keep]])
    # the mass is lumped: with its root as a measure, orthogonal columns have V^T M V = 1
    root = np.sqrt(model.M.diagonal())[:, None]
    q = np.linalg.qr(root * (span / np.linalg.norm(span, axis=0)))[0] / root
    stiffness, turn = sl.eigh(q.T @ (model.K @ q))
    return Basis(q @ turn, stiffness, METHOD, 0, np.zeros(0))
