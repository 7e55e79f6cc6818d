"""The contact map H of one body (001, N. Talbi's thesis, 2.48 to 2.57).

    X(P_a) = B_a X,    x_a = axes_a X(P_a),    R = H^T r

A contact's point P_a lies on a node, on an edge or in a triangle of the body: B_a is up to three nodes and
their weights.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError


@dataclass(frozen=True, eq=False)
class ContactMap:
    """H of n contacts on one body; raises InputError for shapes that do not agree."""

    nodes: NDArray[np.int32]
    """Nodes of the body that carry each contact's point, shape (n, 3); ignored where the weight is 0."""
    weights: NDArray[np.float64]
    """Their weights in it, shape (n, 3)."""
    axes: NDArray[np.float64]
    """Rows n, t1, t2 in world axes, shape (n, 3, 3); negative on the body that the normal leaves (body 2)."""

    def __post_init__(self) -> None:
        n = len(self.nodes)
        if self.nodes.shape != (n, 3) or self.weights.shape != (n, 3) or self.axes.shape != (n, 3, 3):
            raise InputError(
                f"a contact map of {n} contacts needs nodes and weights of shape {(n, 3)} and axes of shape "
                f"{(n, 3, 3)}; got {self.nodes.shape}, {self.weights.shape} and {self.axes.shape}"
            )

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.nodes)

    @cached_property
    def points(self) -> NDArray[np.int32]:
        """All that need be asked of the body: the distinct nodes that carry a contact, ascending, (m,)."""
        return np.unique(self.nodes[self.weights != 0.0])

    @cached_property
    def place(self) -> NDArray[np.int32]:
        """Where in `points` each of `nodes` stands, shape (n, 3); 0 where the weight is 0."""
        found = np.searchsorted(self.points, self.nodes)
        return np.where(self.weights != 0.0, found, 0).astype(np.int32)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """H between the rows of the contacts and the freedoms of `points`, shape (3 n, 3 m)."""
        n, i = self.n_contacts, np.arange(3)
        values = np.einsum("kc,kij->kicj", self.weights, self.axes)
        row = np.broadcast_to((3 * np.arange(n)[:, None] + i)[:, :, None, None], values.shape)
        column = np.broadcast_to((3 * self.place[:, :, None] + i)[:, None], values.shape)
        bears = values != 0.0
        entries = values[bears], (row[bears], column[bears])
        return sp.csr_array(entries, shape=(3 * n, 3 * self.points.size))

    def forces(self, r: NDArray) -> NDArray:
        """H^T r: forces on `points` [N], shape (m, 3), world axes, of contact forces r (3 n,)."""
        return (self.matrix.T @ r).reshape(-1, 3)

    def rows(self, u: NDArray) -> NDArray:
        """H u: this body's part in the offsets [m], shape (3 n,), of displacements u (m, 3) of `points`."""
        return self.matrix @ u.ravel()

    def own(self, k: int) -> tuple[NDArray, NDArray]:
        """Contact k's nodes, by their place in `points`, and their weights; up to three of each."""
        bears = self.weights[k] != 0.0
        return self.place[k, bears], self.weights[k, bears]
