"""The frictional problem of two bodies that only answer how they yield: no Delassus operator is formed.

001, N. Talbi's thesis, section 4.2:

    x(r) = g + H1 u1(H1^T r) + H2 u2(H2^T r)        (4.3, in place of x = W r + b of 4.1)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.boundary import Boundary
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.studies.reference.contact_map import ContactMap
from palpo.studies.reference.displacement import DisplacementSolver

PROBE = 1e-2
"""Force with which a body is asked for its compliance [N]: what a fingertip feels, and still a small strain
of soft tissue."""

POWER_TOLERANCE, POWER_STEPS = 1e-2, 100
"""Relative change of the estimate at which the power iteration ends, and its most steps."""


@runtime_checkable
class OnBoundary(Protocol):
    """What a linear body with K^-1 at hand may offer beside its displacements: its columns."""

    boundary: Boundary
    slot: NDArray[np.int32]
    rotation: NDArray[np.float64]


class Columns(NamedTuple):
    """K^-1 of a linear body between the m points of its contacts, and its contact map, in the body's axes."""

    compliance: NDArray[np.float64]
    """[m/N], shape (3 m, 3 m), symmetric."""
    place: NDArray[np.int32]
    weights: NDArray[np.float64]
    axes: NDArray[np.float64]
    rotation: NDArray[np.float64]
    """From the body's axes to the world's, shape (3, 3)."""


@dataclass(frozen=True, eq=False)
class UnassembledProblem:
    """x(r) = gap + sum of H u(H^T r) over two bodies, with r in the product of Coulomb cones.

    The bodies are asked for the points of their contacts only. Raises InputError for shapes that do not
    agree, one body on both sides, and, when it is first solved, as `ContactProblem`.
    """

    bodies: tuple[DisplacementSolver, DisplacementSolver]
    maps: tuple[ContactMap, ContactMap]
    gap: NDArray[np.float64]
    """Gap and tangential offset of the undeformed bodies where they stand now [m], shape (3 n,)."""
    mu: NDArray[np.float64]
    """Friction coefficient of each contact, shape (n,)."""
    warm: NDArray[np.float64] | None = None
    """Force to start from [N], shape (3 n,)."""

    def __post_init__(self) -> None:
        n = len(self.mu)
        counts = [H.n_contacts for H in self.maps]
        if counts != [n, n] or self.gap.shape != (3 * n,):
            raise InputError(
                f"a problem of {n} friction coefficients needs two maps of {n} contacts and a gap of shape "
                f"{(3 * n,)}; got {counts[0]} and {counts[1]} contacts and {self.gap.shape}"
            )
        if self.bodies[0] is self.bodies[1]:
            raise InputError("a problem without W is between two bodies, but both of its sides are the same")

    def offsets(self, r: NDArray) -> NDArray:
        """x(r) [m], shape (3 n,), of contact forces r (3 n,): one question to each body (4.3)."""
        u = self.displacements(r)
        return self.gap + self.maps[0].rows(u[0]) + self.maps[1].rows(u[1])

    def displacements(self, r: NDArray) -> tuple[NDArray, NDArray]:
        """u of each body at its contact points [m], shape (m, 3), world axes, under contact forces r."""
        (one, two), (H1, H2) = self.bodies, self.maps
        return (
            one.displacements(H1.points, H1.forces(r), H1.points),
            two.displacements(H2.points, H2.forces(r), H2.points),
        )

    @cached_property
    def columns(self) -> tuple[Columns, Columns] | None:
        """The columns of both bodies, or None where one of them does not offer its own."""
        first, second = (_columns(body, H) for body, H in zip(self.bodies, self.maps, strict=True))
        return (first, second) if first is not None and second is not None else None

    @cached_property
    def own_compliances(self) -> NDArray[np.float64]:
        """W_aa of each body at each contact [m/N], shape (2, n, 3, 3), about no force."""
        if self.columns is not None:
            return np.stack([_diagonal_blocks(*side[:4]) for side in self.columns])
        pairs = zip(self.bodies, self.maps, strict=True)
        return np.stack([_asked_blocks(body, H) for body, H in pairs])

    @cached_property
    def uncoupled(self) -> ContactProblem:
        """The problem without what one contact does to another: W of its diagonal blocks, b = x(0).

        It has the diagonal of W, so the scales that are read from it (rho, the residual's, the runaway's)
        are those of the assembled problem.
        """
        n = len(self.mu)
        w = np.zeros((n, 3, n, 3))
        w[np.arange(n), :, np.arange(n)] = self.own_compliances.sum(axis=0)
        return ContactProblem(w.reshape(3 * n, 3 * n), self.offsets(np.zeros(3 * n)), self.mu, self.warm)

    @property
    def softest(self) -> tuple[float, float]:
        """1 / rho_1 and 1 / rho_2 [m/N]: the greatest W_ii of each body alone."""
        diagonals = np.diagonal(self.own_compliances, axis1=2, axis2=3).reshape(2, -1)
        first, second = diagonals.max(axis=1, initial=0.0)
        return float(first), float(second)

    def largest_compliance(self) -> float:
        """Greatest eigenvalue of W [m/N], from below, by power iteration: a question to each body a step."""
        b = self.uncoupled.b
        v = np.random.default_rng(0).standard_normal(b.size)
        largest = 0.0
        for _ in range(POWER_STEPS):
            size = np.linalg.norm(v)
            if not size > 0.0:
                break
            v = (self.offsets(PROBE / size * v) - b) / PROBE
            before, largest = largest, float(np.linalg.norm(v))
            if abs(largest - before) <= POWER_TOLERANCE * largest:
                break
        return largest


def _columns(body: DisplacementSolver, H: ContactMap) -> Columns | None:
    if not isinstance(body, OnBoundary):
        return None
    freedoms = (3 * body.slot[H.points][:, None] + np.arange(3)).ravel()
    compliance = body.boundary.compliance[freedoms[:, None], freedoms]
    return Columns(
        compliance, H.place, np.ascontiguousarray(H.weights), H.axes @ body.rotation, body.rotation
    )


@kernel
def _diagonal_blocks(compliance, place, weights, axes):
    """H_a K^-1 H_a^T of each contact, shape (n, 3, 3)."""
    n = place.shape[0]
    out = np.zeros((n, 3, 3))
    for k in range(n):
        for c in range(3):
            for d in range(3):
                share = weights[k, c] * weights[k, d]
                if share == 0.0:
                    continue
                p, q = 3 * place[k, c], 3 * place[k, d]
                for a in range(3):
                    for i in range(3):
                        factor = share * axes[k, a, i]
                        for b in range(3):
                            for j in range(3):
                                out[k, a, b] += factor * compliance[p + i, q + j] * axes[k, b, j]
    return out


def _asked_blocks(body: DisplacementSolver, H: ContactMap) -> NDArray:
    """H_a K^-1 H_a^T of each contact, shape (n, 3, 3), by PROBE along each of its three rows."""
    out = np.zeros((H.n_contacts, 3, 3))
    free = body.displacements((), (), H.points)
    for k in range(H.n_contacts):
        at, weights = H.own(k)
        nodes = H.points[at]
        for j in range(3):
            forces = np.outer(weights, PROBE * H.axes[k, j])
            u = body.displacements(nodes, forces, nodes) - free[at]
            out[k, :, j] = H.axes[k] @ (weights @ u) / PROBE
    # symmetric up to the body's own tolerance
    return 0.5 * (out + out.swapaxes(1, 2))
