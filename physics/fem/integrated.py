"""Elements of any law, integrated at points: what the steps of a body ask of them.

With gradients g_a of the shape functions at the points, of weights w, F = sum_a x_a g_a^T,

    E = sum w Psi(F),    f_a = -sum w P(F) g_a,    K_ab = sum w g_a . dP/dF . g_b.

Steps are made with dP/dF without its negative part, point by point, so that the matrix is never negative
(Teran, Sifakis, Irving & Fedkiw, Robust quasistatic finite elements and flesh simulation, SCA 2005).
Where elements change their volume in patches, lam / 2 ln(J)^2 of the law's energy is of the patch's mean
of J, as in `patch_volume`, with b_p = sum_e V_e dJ_e/dx / V_p.

dP/dF is what a law says of the stretches s in F = U diag(s) V^T (`palpo.physics.fem.principal`), turned by
U and V. Its negative part is
found in these axes, where it falls apart in one matrix of three stretches and six numbers.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, NodeGroups
from palpo.physics.fem.element import Element, Elements, Floats
from palpo.physics.fem.law import IsotropicLaw
from palpo.physics.fem.material import Material
from palpo.physics.fem.patch_tetrahedra import PatchTetrahedra, add_pair_products
from palpo.physics.fem.principal import (
    CROSS,
    CURVATURE,
    ENERGY,
    EVEN,
    ODD,
    RESPONSE,
    SLOPE,
    SWEEPS,
    add_volume_change,
    decompose,
    patch_volume_laws,
)
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.kernels import inlined, kernel


@kernel
def point_gradients(x, cells, slopes, f):
    """F at all points, f (m q, 3, 3), of positions x (n, 3), cells (m, c) and slopes (m, q, c, 3)."""
    points, corners = slopes.shape[1], cells.shape[1]
    for e in range(cells.shape[0]):
        first = cells[e, 0]
        for q in range(points):
            out = f[e * points + q]
            out[:] = 0.0
            for a in range(1, corners):
                g0, g1, g2 = slopes[e, q, a, 0], slopes[e, q, a, 1], slopes[e, q, a, 2]
                for i in range(3):
                    d = x[cells[e, a], i] - x[first, i]
                    out[i, 0] += d * g0
                    out[i, 1] += d * g1
                    out[i, 2] += d * g2


@inlined
def _along(v, slopes, e, q, g):
    """g (c, 3) = the gradients of a point of element e along the axes v (3, 3)."""
    for a in range(g.shape[0]):
        for j in range(3):
            g[a, j] = (
                slopes[e, q, a, 0] * v[0, j] + slopes[e, q, a, 1] * v[1, j] + slopes[e, q, a, 2] * v[2, j]
            )


@kernel
def add_point_forces(cells, slopes, weights, u, v, response, force):
    """force (n, 3) += f_int [N]; u, v (m q, 3, 3) and response (m q, RESPONSE) of the points."""
    points, corners = slopes.shape[1], cells.shape[1]
    g = np.empty((corners, 3))
    for e in range(cells.shape[0]):
        for q in range(points):
            k = e * points + q
            _along(v[k], slopes, e, q, g)
            p0 = weights[e, q] * response[k, SLOPE]
            p1 = weights[e, q] * response[k, SLOPE + 1]
            p2 = weights[e, q] * response[k, SLOPE + 2]
            for a in range(corners):
                f0, f1, f2 = p0 * g[a, 0], p1 * g[a, 1], p2 * g[a, 2]
                for i in range(3):
                    force[cells[e, a], i] -= u[k, i, 0] * f0 + u[k, i, 1] * f1 + u[k, i, 2] * f2


@kernel
def _take_positive(h, turned, vectors):
    """h (3, 3), symmetric, = itself without its negative part; whether it had one. Jacobi's method."""
    minor = h[0, 0] * h[1, 1] - h[0, 1] * h[0, 1]
    c0 = h[1, 1] * h[2, 2] - h[1, 2] * h[1, 2]
    c1 = h[0, 2] * h[1, 2] - h[0, 1] * h[2, 2]
    c2 = h[0, 1] * h[1, 2] - h[0, 2] * h[1, 1]
    if h[0, 0] > 0.0 and minor > 0.0 and h[0, 0] * c0 + h[0, 1] * c1 + h[0, 2] * c2 > 0.0:
        return False
    for i in range(3):
        for j in range(3):
            turned[i, j] = h[i, j]
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        off = turned[0, 1] ** 2 + turned[0, 2] ** 2 + turned[1, 2] ** 2
        if not off > 1e-32 * (turned[0, 0] ** 2 + turned[1, 1] ** 2 + turned[2, 2] ** 2):
            break
        for p in range(2):
            for q in range(p + 1, 3):
                if turned[p, q] == 0.0:
                    continue
                theta = 0.5 * (turned[q, q] - turned[p, p]) / turned[p, q]
                t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(1.0 + theta * theta))
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = c * t
                for i in range(3):
                    a, b = turned[i, p], turned[i, q]
                    turned[i, p], turned[i, q] = c * a - s * b, s * a + c * b
                    a, b = vectors[i, p], vectors[i, q]
                    vectors[i, p], vectors[i, q] = c * a - s * b, s * a + c * b
                for i in range(3):
                    a, b = turned[p, i], turned[q, i]
                    turned[p, i], turned[q, i] = c * a - s * b, s * a + c * b
    for i in range(3):
        for j in range(3):
            h[i, j] = 0.0
            for k in range(3):
                h[i, j] += max(turned[k, k], 0.0) * vectors[i, k] * vectors[j, k]
    return True


@kernel
def add_point_stiffness(cells, slopes, weights, u, v, response, negative, pair_block, blocks):
    """Lower blocks (b, 9) += sum of w g_a . D . g_b [N/m], D being dP/dF without its negative part, or that.

    pair_block (m, p): block of local pairs (0,0) (1,0) (1,1) (2,0) ..., or -1 where a node is fixed.
    """
    points, corners = slopes.shape[1], cells.shape[1]
    g, inner, near = np.empty((corners, 3)), np.empty((3, 3)), np.empty((3, 3))
    h, whole, turned, vectors = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    same, swapped = np.empty((3, 3)), np.empty((3, 3))
    for e in range(cells.shape[0]):
        for q in range(points):
            k = e * points + q
            for n in range(3):
                i, j = (n + 1) % 3, (n + 2) % 3
                whole[n, n] = h[n, n] = response[k, CURVATURE + n]
                whole[i, j] = whole[j, i] = h[i, j] = h[j, i] = response[k, CROSS + n]
            below = _take_positive(h, turned, vectors)
            for n in range(3):
                i, j = (n + 1) % 3, (n + 2) % 3
                even, odd = response[k, EVEN + n], response[k, ODD + n]
                below |= even < 0.0 or odd < 0.0
                if negative:
                    even, odd = min(even, 0.0), min(odd, 0.0)
                else:
                    even, odd = max(even, 0.0), max(odd, 0.0)
                same[i, j] = same[j, i] = 0.5 * (even + odd)
                swapped[i, j] = swapped[j, i] = 0.5 * (even - odd)
            if negative:
                if not below:
                    continue
                for i in range(3):
                    for j in range(3):
                        h[i, j] = whole[i, j] - h[i, j]
            _along(v[k], slopes, e, q, g)
            w, pair = weights[e, q], 0
            for a in range(corners):
                for b in range(a + 1):
                    block = pair_block[e, pair]
                    pair += 1
                    if block < 0:
                        continue
                    for i in range(3):
                        j, n = (i + 1) % 3, (i + 2) % 3
                        inner[i, i] = w * (
                            h[i, i] * g[a, i] * g[b, i]
                            + same[i, j] * g[a, j] * g[b, j]
                            + same[i, n] * g[a, n] * g[b, n]
                        )
                        inner[i, j] = w * (h[i, j] * g[a, i] * g[b, j] + swapped[i, j] * g[a, j] * g[b, i])
                        inner[i, n] = w * (h[i, n] * g[a, i] * g[b, n] + swapped[i, n] * g[a, n] * g[b, i])
                    r = u[k]
                    for i in range(3):
                        for j in range(3):
                            near[i, j] = r[i, 0] * inner[0, j] + r[i, 1] * inner[1, j] + r[i, 2] * inner[2, j]
                    for i in range(3):
                        for j in range(3):
                            blocks[block, 3 * i + j] += (
                                near[i, 0] * r[j, 0] + near[i, 1] * r[j, 1] + near[i, 2] * r[j, 2]
                            )


@kernel
def patch_slopes(cells, slopes, weights, u, v, s, places, out):
    """out (nodes of all patches, 3): sum of V dJ/dx of the patches' elements, each of one point [m2].

    places (m, 4): where an element's nodes are among those of the patches.
    """
    out[:] = 0.0
    g = np.empty((cells.shape[1], 3))
    for e in range(cells.shape[0]):
        _along(v[e], slopes, e, 0, g)
        c0, c1, c2 = s[e, 1] * s[e, 2], s[e, 2] * s[e, 0], s[e, 0] * s[e, 1]
        for a in range(cells.shape[1]):
            for i in range(3):
                out[places[e, a], i] += weights[e, 0] * (
                    u[e, i, 0] * c0 * g[a, 0] + u[e, i, 1] * c1 * g[a, 1] + u[e, i, 2] * c2 * g[a, 2]
                )


class Integrated:
    """An `Elements`. How far elements have turned, and products with a kept stiffness, are those of the same
    elements under Hooke's law. Raises InputError as the Element does."""

    def __init__(self, element: Element, mesh: Any, material: Material, law: IsotropicLaw) -> None:
        assert element.points is not None
        order = np.argsort(mesh.cells, axis=1)
        weights, slopes = element.points(np.asarray(mesh.nodes, dtype=np.float64), mesh.cells)
        if isinstance(mesh, TetMesh) and mesh.filled is not None:
            weights = weights * mesh.filled[:, None]
        slopes = np.ascontiguousarray(np.take_along_axis(slopes, order[:, None, :, None], axis=2))
        weights = weights * material.stiffness_of(len(weights))[:, None]
        self._take(law, element.moving(element, mesh, material), weights, slopes)

    def _take(self, law: IsotropicLaw, hooke: Elements, weights: Floats, slopes: Floats) -> None:
        self.law, self.hooke, self.weights, self.slopes = law, hooke, weights, slopes
        self.cells, self.gradients = hooke.cells, hooke.gradients
        k, self._at = weights.size, np.zeros((0, 3))
        self._f, self._u, self._v = np.empty((k, 3, 3)), np.empty((k, 3, 3)), np.empty((k, 3, 3))
        self._s, self._response, self._tension = np.empty((k, 3)), np.empty((k, RESPONSE)), np.empty(k)

    @property
    def groups(self) -> NodeGroups:
        """See Elements."""
        return self.hooke.groups

    @property
    def shares(self) -> Floats:
        """See Elements."""
        return self.hooke.shares

    def part(self, which: NDArray[np.int64]) -> "Integrated":
        """See Elements."""
        out = object.__new__(type(self))
        weights, slopes = np.ascontiguousarray(self.weights[which]), np.ascontiguousarray(self.slopes[which])
        out._take(self.law, self.hooke.part(which), weights, slopes)
        return out

    def apart(self) -> "Integrated":
        """See Elements."""
        out = object.__new__(type(self))
        out._take(self.law, self.hooke.apart(), self.weights, self.slopes)
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        self._respond(x)
        add_point_forces(self.cells, self.slopes, self.weights, self._u, self._v, self._response, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        self.hooke.add_turned(v, quats, since, scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        self.hooke.add_stiff(v, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self.hooke.largest_turn(x, quats, quats)
        blocks[:] = 0.0
        self._respond(x)
        self._add_stiffness(False, pattern, blocks)

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self._respond(x)
        self._add_stiffness(True, pattern, blocks)

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return self.hooke.largest_turn(x, since, quats)

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        self._respond(x)
        return float(self.weights.ravel() @ self._response[:, ENERGY])

    def _respond(self, x: Floats) -> None:
        """What the law says at all points; known where no node has moved since."""
        if np.array_equal(x, self._at):
            return
        self._at = x.copy()
        point_gradients(x, self.cells, self.slopes, self._f)
        decompose(self._f, self._u, self._v, self._s)
        self.law.response(self.law.constants, self._s, self._response)
        self._add_volume_change()

    def _add_volume_change(self) -> None:
        law = self.law
        self._tension[:] = law.straight
        add_volume_change(self._s, law.lam, law.more, self._tension, self._response)

    def _add_stiffness(self, negative: bool, pattern: BlockPattern, blocks: Floats) -> None:
        add_point_stiffness(
            self.cells, self.slopes, self.weights, self._u, self._v, self._response, negative,
            pattern.pair_block, blocks,
        )  # fmt: skip


class PatchIntegrated(Integrated):
    """The same of linear tetrahedra that change their volume in patches."""

    hooke: PatchTetrahedra

    def _volumes(self) -> tuple[Floats, Floats]:
        """Mean of J of the patches (k,), and of lam / 2 ln(J)^2 the value and slopes over it (k, 3) [Pa]."""
        hooke, laws = self.hooke, np.empty((len(self.hooke.whole), 3))
        grown = np.bincount(hooke.patch, self.weights[:, 0] * self._s.prod(axis=1), len(laws)) / hooke.whole
        patch_volume_laws(grown, self.law.lam, laws)
        return grown, laws

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        own, (grown, laws) = super().energy(x, quats), self._volumes()
        # forces are those of elements under the tension of their patch, whose work is not its energy
        return own + float(self.hooke.whole @ (laws[:, 0] - laws[:, 1] * (grown - 1.0)))

    def _add_volume_change(self) -> None:
        self._tension[:] = self._volumes()[1][self.hooke.patch, 1] + self.law.straight
        add_volume_change(self._s, 0.0, self.law.more, self._tension, self._response)

    def _add_stiffness(self, negative: bool, pattern: BlockPattern, blocks: Floats) -> None:
        super()._add_stiffness(negative, pattern, blocks)
        if not negative:
            start, places = self.hooke.groups.start, self.hooke.places
            b = np.empty((start[-1], 3))
            patch_slopes(self.cells, self.slopes, self.weights, self._u, self._v, self._s, places, b)
            stiffness = self._volumes()[1][:, 2] / self.hooke.whole
            add_pair_products(b, stiffness, start, pattern.group_block, blocks)
