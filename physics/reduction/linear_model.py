"""Matrices of a clamped linear body or of a part of it, and of its Galerkin models (002, eqs 2, 8 and 15).

Constant-strain tetrahedra, or hexahedra with incompatible modes, about the rest shape; the mass is lumped,
which keeps the answer to a short push positive at every node and the clamped nodes free of inertia forces.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.fem.elements import SolidMesh, element_of
from palpo.physics.fem.laws import LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import assemble, element_stiffness
from palpo.physics.numerics.errors import InputError

RIGID = 1e-9
"""Eigenvalues of (K, M) below this share of the largest belong to rigid motions [-]; their own errors are of
1e-14, the lowest bending mode of a sound mesh stands above 1e-7."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """M x'' + D x' + K x = f over the free nodes of some elements, D = alpha M + beta K.

    nodes: free nodes of the mesh, ascending, shape (k,). M [kg], K [N/m]: shape (3 k, 3 k), symmetric.
    base [N/m]: force on all clamped nodes together per displacement of the free ones, shape (3, 3 k).
    alpha [1/s], beta [s].
    """

    nodes: NDArray[np.int64]
    M: sp.csr_array
    K: sp.csr_array
    base: sp.csr_array
    alpha: float
    beta: float

    @property
    def D(self) -> sp.csr_array:
        """Rayleigh damping [N s/m], shape (3 k, 3 k)."""
        return self.alpha * self.M + self.beta * self.K

    @property
    def n_dof(self) -> int:
        """Number of freedoms, 3 k."""
        return self.M.shape[0]

    def dofs_of(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """Freedoms of nodes of the mesh, shape (3 m,), node by node.

        Raises InputError for a node that is not among `nodes`.
        """
        asked = np.atleast_1d(np.asarray(nodes, dtype=np.int64))
        slot = np.searchsorted(self.nodes, asked)
        missing = asked[self.nodes[np.minimum(slot, len(self.nodes) - 1)] != asked]
        if missing.size:
            raise InputError(f"node {missing[0]} is clamped or in no element of this model.")
        return (3 * slot[:, None] + np.arange(3)).ravel()


def linear_model(
    mesh: SolidMesh, material: Material, clamped: ArrayLike = (), elements: ArrayLike | None = None
) -> LinearModel:
    """Model of the body, or of `elements` of it, shape (m,), without the rows of `clamped` nodes (eq. 2).

    Raises InputError where no free node is left, for a clamped index out of range, a flat element and
    a law that is not linear or remembers.
    """
    if material.law != LINEAR:
        raise InputError(f"material.law is {material.law!r}, but this model is linear.")
    if material.prony:
        raise InputError("material.prony is given, but this model remembers nothing: leave it out.")
    n = len(mesh.nodes)
    clamped = np.unique(np.asarray(clamped, dtype=np.int64))
    if clamped.size and not 0 <= clamped[0] <= clamped[-1] < n:
        wrong = clamped[0] if clamped[0] < 0 else clamped[-1]
        raise InputError(f"clamped node {wrong} is not one of the mesh's nodes 0 to {n - 1}.")
    cells = mesh.cells if elements is None else mesh.cells[np.asarray(elements)]
    used = np.unique(cells).astype(np.int64)
    nodes = np.setdiff1d(used, clamped)
    if not nodes.size:
        raise InputError(
            f"a model of {len(cells)} elements has no free node: clamp fewer of its {used.size}."
        )
    K = assemble(cells, element_stiffness(mesh, cells, material), n)
    K = 0.5 * (K + K.T)  # sums in another order differ in the last digit
    shares = material.density * element_of(mesh).volumes(mesh.nodes, cells)
    mass = np.bincount(cells.ravel(), shares.ravel(), minlength=n)
    dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
    held = (3 * np.intersect1d(used, clamped)[:, None] + np.arange(3)).ravel()
    sum_up = sp.csr_array((np.ones(held.size), (held % 3, held)), shape=(3, 3 * n))
    return LinearModel(
        nodes,
        sp.csr_array(sp.diags_array(np.repeat(mass[nodes], 3))),
        sp.csr_array(K[dofs][:, dofs]),
        sp.csr_array((sum_up @ K)[:, dofs]),
        material.alpha,
        material.beta,
    )


class VibrationModes(NamedTuple):
    """All vibration modes of a model: V^T M V = 1, V^T K V = diag(stiffness)."""

    vectors: NDArray[np.float64]  # (n, n), rigid motions first
    stiffness: NDArray[np.float64]  # (n,) squared angular frequencies [1/s2], exactly zero for rigid motions
    rigid: int  # number of rigid motions


def vibration_modes(model: LinearModel) -> VibrationModes:
    """All modes of a model in ascending order of frequency."""
    values, vectors = sl.eigh(model.K.toarray(), model.M.toarray())
    rigid = int(np.count_nonzero(values < RIGID * values[-1]))
    values[:rigid] = 0.0
    return VibrationModes(vectors, values, rigid)


class Basis(NamedTuple):
    """A Galerkin basis x = V z of a model, and how it was found; z has the model V^T M V, V^T D V, V^T K V.

    An orthogonal projection keeps M and D + K semidefinite, hence passivity; here V^T M V = 1 and
    V^T K V = diag(stiffness).
    """

    vectors: NDArray[np.float64]  # (n, r) V [kg^-1/2]
    stiffness: NDArray[np.float64]  # (r,) [1/s2]
    method: str
    rigid: int  # how many of the columns, the first ones, are rigid motions
    hankel: NDArray[np.float64]  # Hankel values of a balanced basis, descending, rigid motions apart; or none

    @property
    def order(self) -> int:
        """Number of columns, r."""
        return self.vectors.shape[1]


def galerkin(
    model: LinearModel, modes: VibrationModes, span: NDArray[np.float64], method: str, hankel: ArrayLike = ()
) -> Basis:
    """Basis of the columns of `span` in modal coordinates, shape (n, r), made orthonormal and diagonal.

    The rigid motions must be in the span, as its first columns if there are any.
    """
    q = np.linalg.qr(span)[0]
    stiffness, turn = sl.eigh(q.T @ (modes.stiffness[:, None] * q))
    stiffness[: modes.rigid] = 0.0
    return Basis(modes.vectors @ (q @ turn), stiffness, method, modes.rigid, np.asarray(hankel, dtype=float))


def require_order(order: int, modes: VibrationModes, method: str) -> None:
    """Raise InputError unless a basis of `order` columns exists and holds the rigid motions."""
    least, most = max(1, modes.rigid), len(modes.stiffness)
    if not (order == int(order) and least <= order <= most):
        why = f" (its {modes.rigid} rigid motions are kept)" if modes.rigid else ""
        raise InputError(
            f"{method}: the order is {order}, expected a whole number from {least} to {most}{why}."
        )
