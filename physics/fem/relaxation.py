"""Linear viscoelasticity by a Prony series, in axes that turn with each element.

All of an element's stress relaxes alike, G(t) = 1 - sum_i g_i (1 - e^(-t / tau_i)) times that of its elastic
law, so that Poisson's ratio stays. With s the forces on an element's corners by that law, in its own axes, a
branch remembers q_i, and over a step h

    q_i' = e^(-h / tau_i) q_i + g_i c_i (s' - s),    c_i = (1 - e^(-h / tau_i)) / (h / tau_i),

which is exact for a force that changes evenly. The forces at its end are a s' + p,

    a = 1 - sum g_i + sum g_i c_i,    p = sum (e^(-h / tau_i) q_i - g_i c_i s),

so that an implicit step has a times the stiffness, and p turns with the element.
Sources: Taylor, Pister & Goudreau, Thermomechanical analysis of viscoelastic solids (IJNME 1970); Simo &
Hughes, Computational Inelasticity (Springer 1998), 10.3 and 10.5, with forces where they have stresses.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.element import Elements, Floats
from palpo.physics.fem.element_rotations import matrix_of
from palpo.physics.numerics.kernels import kernel


class PronySeries:
    """What the elements of a body remember. prony: pairs of a ratio g_i [-] and a time tau_i [s].

    then (m, c, 3): forces s [N] of the elastic law at the end of the last step, kept (k, m, c, 3): q_i [N].
    """

    def __init__(self, elements: Elements, prony: tuple[tuple[float, float], ...]) -> None:
        m, c = elements.cells.shape
        self.ratios, self.times = np.array(prony).T.copy()
        self._corners, self._apart = elements.cells, elements.apart()
        self.then, self.kept = np.zeros((m, c, 3)), np.zeros((len(prony), m, c, 3))

    def share(self, h: float) -> float:
        """a of a step h [s]."""
        return float(1.0 - self.ratios.sum() + self.ratios @ averages(h, self.times))

    def remember(self, x: Floats, quats: Floats, h: float) -> None:
        """The end of a step h [s] that led to positions x (n, 3) [m]; refreshes quats (m, 4)."""
        at = np.ascontiguousarray(x[self._corners].reshape(-1, 3))
        force = np.zeros_like(at)
        self._apart.add_forces(at, quats, force)
        self._apart.largest_turn(at, quats, quats)
        grown = self.ratios * averages(h, self.times)
        remember(force.reshape(self.then.shape), quats, np.exp(-h / self.times), grown, self.then, self.kept)

    def add_forces(self, x: Floats, quats: Floats, h: float, force: Floats) -> None:
        """force (n, 3) += p [N] of a step h [s], turned as the elements are at x; refreshes quats (m, 4)."""
        self._turn(x, quats)
        add_remembered(self._corners, quats, self._remembered(h), force)

    def energy(self, x: Floats, quats: Floats, h: float) -> float:
        """Potential [J] of these forces at positions x."""
        self._turn(x, quats)
        return float(-remembered_work(x, self._corners, quats, self._remembered(h)))

    def _turn(self, x: Floats, quats: Floats) -> None:
        self._apart.largest_turn(np.ascontiguousarray(x[self._corners].reshape(-1, 3)), quats, quats)

    def _remembered(self, h: float) -> Floats:
        """p (m, c, 3)."""
        fading = np.exp(-h / self.times)
        old = np.einsum("i,ieaj->eaj", fading, self.kept)
        return np.asarray(old - (self.ratios @ averages(h, self.times)) * self.then)


def averages(h: float, times: NDArray[np.float64]) -> Floats:
    """c_i (k,): means of e^(-t / tau_i) over a step h [s]."""
    z = h / times
    return np.where(z > 0.0, -np.expm1(-z) / np.where(z > 0.0, z, 1.0), 1.0)


@kernel
def remember(force, quats, fading, grown, then, kept):
    """`kept` and `then` of PronySeries after a step that led to corner forces (m, c, 3), not yet turned.

    fading (k,): e^(-h / tau_i), grown (k,): g_i c_i.
    """
    for e in range(then.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        for a in range(then.shape[1]):
            x, y, z = force[e, a, 0], force[e, a, 1], force[e, a, 2]
            for i in range(3):
                now = r[i] * x + r[3 + i] * y + r[6 + i] * z
                change = now - then[e, a, i]
                for k in range(fading.size):
                    kept[k, e, a, i] = fading[k] * kept[k, e, a, i] + grown[k] * change
                then[e, a, i] = now


@kernel
def add_remembered(cells, quats, p, force):
    """force (n, 3) += R p of the elements' corners, p (m, c, 3)."""
    for e in range(cells.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        for a in range(cells.shape[1]):
            for i in range(3):
                n = cells[e, a]
                force[n, i] += r[3 * i] * p[e, a, 0] + r[3 * i + 1] * p[e, a, 1] + r[3 * i + 2] * p[e, a, 2]


@kernel
def remembered_work(x, cells, quats, p):
    """Sum of p . R^T x [J] over the corners, about each element's first."""
    work = 0.0
    for e in range(cells.shape[0]):
        r = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        first = cells[e, 0]
        for a in range(1, cells.shape[1]):
            for j in range(3):
                d = x[cells[e, a], j] - x[first, j]
                work += d * (r[3 * j] * p[e, a, 0] + r[3 * j + 1] * p[e, a, 1] + r[3 * j + 2] * p[e, a, 2])
    return work
