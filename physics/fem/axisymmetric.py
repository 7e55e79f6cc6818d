"""Large deformations of solids of revolution: quadratic elements of the meridian, a neo-Hookean material.

A point of the meridian is (r, z); a displacement has the two components (u_r, u_z), and the hoop stretch is
1 + u_r / r. The deformation gradient has five components, F = (F_rr, F_rz, F_zr, F_zz, F_hoop), and

    W = mu / 2 (tr F^T F - 3 - 2 ln J) + lambda / 2 (ln J)^2,   P = mu (F - F^-T) + lambda ln J F^-T

(J. Bonet and R. D. Wood, Nonlinear Continuum Mechanics for Finite Element Analysis, 2nd ed., 6.4.3). Elements
are the eight-node ones of the serendipity family with nine Gauss points. For small strains it is Hooke's law.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array

from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

GAUSS = np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])
GAUSS_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 9.0
CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [0, -1], [1, 0], [0, 1], [-1, 0]], float)
"""Nodes of an element: four corners counter-clockwise, then the middles of the sides that follow them."""


def shapes(xi: float, eta: float) -> tuple[Floats, Floats]:
    """Shape functions (8,) and their derivatives by (xi, eta), (2, 8), of the serendipity element."""
    a, b = CORNERS[:, 0], CORNERS[:, 1]
    value, slope = np.empty(8), np.empty((2, 8))
    corner, flat, steep = slice(0, 4), [4, 6], [5, 7]
    p, q = 1 + a[corner] * xi, 1 + b[corner] * eta
    value[corner] = 0.25 * p * q * (p + q - 3)
    slope[0, corner] = 0.25 * a[corner] * q * (2 * p + q - 3)
    slope[1, corner] = 0.25 * b[corner] * p * (p + 2 * q - 3)
    value[flat] = 0.5 * (1 - xi * xi) * (1 + b[flat] * eta)
    slope[0, flat], slope[1, flat] = -xi * (1 + b[flat] * eta), 0.5 * (1 - xi * xi) * b[flat]
    value[steep] = 0.5 * (1 - eta * eta) * (1 + a[steep] * xi)
    slope[0, steep], slope[1, steep] = 0.5 * (1 - eta * eta) * a[steep], -eta * (1 + a[steep] * xi)
    return value, slope


def edge_shapes(s: Floats) -> tuple[Floats, Floats]:
    """Of the three nodes of an edge at s in [-1, 1]: values and derivatives, (..., 3)."""
    value = np.stack([0.5 * s * (s - 1), 1 - s * s, 0.5 * s * (s + 1)], axis=-1)
    return value, np.stack([s - 0.5, -2 * s, s + 0.5], axis=-1)


class SolidOfRevolution:
    """A solid of revolution.

    nodes: (n, 2), r and z [m]. elements: (m, 8) nodes. Freedoms are (u_r, u_z) of each node in turn.
    Raises InputError for a material that is not stable and an element that is inside out.
    """

    def __init__(
        self, nodes: Floats, elements: NDArray[np.int64], youngs_modulus: float, poisson_ratio: float
    ) -> None:
        if not (youngs_modulus > 0.0 and -1.0 < poisson_ratio < 0.5):
            raise InputError(
                f"E = {youngs_modulus}, nu = {poisson_ratio}: give E above 0 and nu from -1 to 0.5"
            )
        self.nodes, self.elements = nodes, elements
        self.shear = youngs_modulus / (2 * (1 + poisson_ratio))
        self.lame = youngs_modulus * poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio))
        self.freedoms = 2 * len(nodes)
        self._dofs = np.stack([2 * elements, 2 * elements + 1], axis=2).reshape(len(elements), 16)
        self._rows = np.repeat(self._dofs, 16, axis=1).ravel()
        self._columns = np.tile(self._dofs, (1, 16)).ravel()
        self._map, self._weight = self._gauss()

    def _gauss(self) -> tuple[Floats, Floats]:
        """B (9, m, 5, 16) from an element's displacements to F - 1, and 2 pi r times the area (9, m)."""
        x = self.nodes[self.elements]
        maps, weights = np.zeros((9, len(x), 5, 16)), np.zeros((9, len(x)))
        for k, (i, j) in enumerate(np.ndindex(3, 3)):
            value, slope = shapes(float(GAUSS[i]), float(GAUSS[j]))
            jacobian = np.einsum("in,enk->eik", slope, x)
            area = np.linalg.det(jacobian)
            if not (area > 0.0).all():
                raise InputError(f"element {int(np.argmin(area))} of the meridian is inside out")
            gradient = np.linalg.solve(jacobian, np.broadcast_to(slope, (len(x), 2, 8)))
            r = x[:, :, 0] @ value
            for component, (direction, axis) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
                maps[k, :, component, direction::2] = gradient[:, axis]
            maps[k, :, 4, ::2] = value / r[:, None]
            weights[k] = 2 * np.pi * r * area * GAUSS_WEIGHTS[i] * GAUSS_WEIGHTS[j]
        return maps, weights

    def elastic(self, u: Floats) -> tuple[float, Floats, csc_array] | None:
        """Energy [J], forces (2 n,) [N] and their derivative [N/m]; None where an element is inside out."""
        f = np.einsum("gekd,ed->gek", self._map, u[self._dofs]) + np.array([1.0, 0.0, 0.0, 1.0, 1.0])
        plane, hoop = f[..., 0] * f[..., 3] - f[..., 1] * f[..., 2], f[..., 4]
        if not ((plane > 0.0).all() and (hoop > 0.0).all()):
            return None
        log = np.log(plane * hoop)
        inverse = np.stack(  # F^-T
            [f[..., 3] / plane, -f[..., 2] / plane, -f[..., 1] / plane, f[..., 0] / plane, 1 / hoop], axis=-1
        )
        stress = self.shear * (f - inverse) + self.lame * log[..., None] * inverse
        energy = 0.5 * self.shear * ((f * f).sum(axis=-1) - 3 - 2 * log) + 0.5 * self.lame * log**2
        tangent = (self.shear - self.lame * log)[..., None, None] * _swapped(inverse)
        tangent += self.lame * inverse[..., :, None] * inverse[..., None, :] + self.shear * np.eye(5)
        forces = np.einsum("gekd,gek,ge->ed", self._map, stress, self._weight)
        blocks = np.einsum(
            "gekc,gekl,geld,ge->ecd", self._map, tangent, self._map, self._weight, optimize=True
        )
        total = np.bincount(self._dofs.ravel(), forces.ravel(), self.freedoms).astype(np.float64)
        size = (self.freedoms, self.freedoms)
        return (
            float((energy * self._weight).sum()),
            total,
            coo_array((blocks.ravel(), (self._rows, self._columns)), size).tocsc(),
        )


def _swapped(inverse: Floats) -> Floats:
    """d(-F^-T)/dF: components (ij, kl) are F^-T_il F^-T_kj, (..., 5, 5)."""
    out = np.zeros((*inverse.shape, 5))
    pairs = ((0, 0), (0, 1), (1, 0), (1, 1))
    for a, (i, j) in enumerate(pairs):
        for b, (k, m) in enumerate(pairs):
            out[..., a, b] = inverse[..., 2 * i + m] * inverse[..., 2 * k + j]
    out[..., 4, 4] = inverse[..., 4] ** 2
    return out


class EnclosedVolume(NamedTuple):
    """The volume between a curve of the meridian and the plane z = 0 [m3], and its derivatives."""

    volume: float
    gradient: Floats  # (2 n,) [m2]
    hessian: csc_array  # [m]


def enclosed(place: Floats, curve: NDArray[np.int64], until: float) -> EnclosedVolume:
    """2 pi times the integral of r z dr along a curve of quadratic edges, from its start to `until` edges.

    place: (n, 2) where the nodes are [m]. curve: (2 e + 1,) nodes in order, outward.
    """
    n = len(place)
    gradient, volume = np.zeros(2 * n), 0.0
    rows, columns, values = [], [], []
    for edge in range(int(np.ceil(until))):
        nodes = curve[2 * edge : 2 * edge + 3]
        share = min(1.0, until - edge)
        value, slope = edge_shapes(share * (GAUSS + 1) - 1)
        weight = 2 * np.pi * share * GAUSS_WEIGHTS
        r, z, along = value @ place[nodes, 0], value @ place[nodes, 1], slope @ place[nodes, 0]
        volume += float(weight @ (r * z * along))
        gradient[2 * nodes] += (weight * z * along) @ value + (weight * r * z) @ slope
        gradient[2 * nodes + 1] += (weight * r * along) @ value
        radial = np.einsum("g,ga,gb->ab", weight * z, value, slope)
        mixed = np.einsum("g,ga,gb->ab", weight * along, value, value)
        mixed += np.einsum("g,ga,gb->ab", weight * r, slope, value)
        blocks = ((0, 0, radial + radial.T), (0, 1, mixed), (1, 0, mixed.T))
        for i, j, block in blocks:
            rows.append(np.repeat(2 * nodes + i, 3))
            columns.append(np.tile(2 * nodes + j, 3))
            values.append(block.ravel())
    if not values:
        return EnclosedVolume(0.0, gradient, csc_array((2 * n, 2 * n)))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return EnclosedVolume(volume, gradient, coo_array(entries, (2 * n, 2 * n)).tocsc())
