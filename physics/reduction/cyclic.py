"""Motions of a ring of equal sectors by cyclic orders: what goes around it as a cosine does m times.

A ring's model couples no two orders. What pushes it along its axis pushes all of its sectors alike, which is
order zero; what pushes it aside or tilts it is order one. On p meridians alone, equally far apart, a motion
of order m looks like those of orders p - m, p + m, ...; orders below p / 2 are told apart, as of any function
that is sampled. Source:
D. L. Thomas, Dynamics of rotationally periodic structures (Int. J. Numer. Meth. Engng 1979).
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError

DIGITS = 9
"""Decimals of a metre to which the nodes of a circle agree."""
ON = 1e-6
"""Angle from a meridian up to which a point is on it [rad]."""


def equal_motions(nodes: NDArray[np.float64], sectors: int) -> sp.csr_array:
    """Motions of nodes (n, 3) that are the same in each of so many sectors, (3 n, m); all of them in one.

    A radial and an axial one of each circle of nodes. Raises InputError for nodes that are not equal all
    around.
    """
    n = len(nodes)
    if sectors == 1:
        return sp.eye_array(3 * n, format="csr")
    x, z = nodes[:, 0], nodes[:, 2]
    r, (of, circles) = np.hypot(x, z), _circles(nodes, sectors)
    values = np.stack([x / r, z / r, np.ones(n)], axis=1).ravel()
    rows = (3 * np.arange(n)[:, None] + np.array([0, 2, 1])).ravel()
    columns = np.stack([2 * of, 2 * of, 2 * of + 1], axis=1).ravel()
    return sp.csr_array((values, (rows, columns)), shape=(3 * n, 2 * circles))


def low_motions(nodes: NDArray[np.float64], sectors: int, meridians: int) -> NDArray[np.float64]:
    """Motions of nodes (n, 3) whose cyclic orders so many meridians tell apart, orthonormal, (3 n, m).

    Raises InputError as `equal_motions`, and for meridians that are not among the sectors' own.
    """
    if meridians < 3 or sectors % meridians:
        raise InputError(
            f"meridians: {meridians} of {sectors} sectors, expected a divisor of these from 3 on."
        )
    n, (of, circles) = len(nodes), _circles(nodes, sectors)
    angle = np.arctan2(nodes[:, 2], nodes[:, 0])
    zero, along = np.zeros(n), np.tile([0.0, 1.0, 0.0], (n, 1))
    out = np.stack([np.cos(angle), zero, np.sin(angle)], axis=1)
    around = np.stack([-np.sin(angle), zero, np.cos(angle)], axis=1)
    found = []
    for order in range((meridians + 1) // 2):
        for wave in (np.cos, np.sin) if order else (np.cos,):
            for way in (out, along, around):
                shape = np.zeros((n, 3, circles))
                shape[np.arange(n), :, of] = wave(order * angle)[:, None] * way
                found.append(shape.reshape(3 * n, circles))
    motions = np.hstack(found)
    return np.asarray(motions / np.linalg.norm(motions, axis=0))


def on_meridians(points: NDArray[np.float64], meridians: int) -> NDArray[np.bool_]:
    """Which points (n, 3) [m] lie on one of so many meridians about y, the first of them at z = 0, x > 0."""
    apart = 2.0 * np.pi / meridians
    angle = np.arctan2(points[:, 2], points[:, 0])
    return np.asarray(np.abs(angle - apart * np.round(angle / apart)) < ON)


def _circles(nodes: NDArray[np.float64], sectors: int) -> tuple[NDArray[np.int64], int]:
    """The circle of each node (n,), and how many there are."""
    r = np.hypot(nodes[:, 0], nodes[:, 2])
    circles, of = np.unique(np.round(np.stack([r, nodes[:, 1]], axis=1), DIGITS), axis=0, return_inverse=True)
    of = of.reshape(-1)
    if not (np.bincount(of) == sectors).all():
        raise InputError(f"nodes do not repeat in {sectors} sectors about y.")
    return of, len(circles)
