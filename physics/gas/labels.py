"""What a vertex's distance from the other body says of it (000, 3.2.1)."""

from typing import NamedTuple

import numpy as np

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel

FAR, NEAR, SEALED, TOUCHING = 0, 1, 2, 3
"""Labels of a vertex; air passes where it is less than SEALED."""


class Thresholds(NamedTuple):
    """The three distances [m]; see `thresholds`."""

    contact: float
    sealing: float
    alarm: float


def thresholds(contact: float, sealing: float, alarm: float) -> Thresholds:
    """The gap that contact keeps, the one that lets no air through, and the one up to which contacts are
    looked for [m].

    Raises InputError unless 0 <= contact <= sealing <= alarm and sealing > 0, all finite.
    """
    for name, value in (("contact", contact), ("sealing", sealing), ("alarm", alarm)):
        if not 0.0 <= value < np.inf:
            raise InputError(f"The {name} distance is {value:g} m; it must be finite and not negative.")
    if sealing > alarm:
        raise InputError(
            f"The sealing distance, {sealing:g} m, is above the alarm distance, {alarm:g} m: vertices would "
            "have to seal that are never looked at; choose it at most equal."
        )
    if sealing <= 0.0 or sealing < contact:
        raise InputError(
            f"The sealing distance is {sealing:g} m; it must be positive and at least the contact distance, "
            f"{contact:g} m, or a pressed rim would not seal."
        )
    return Thresholds(float(contact), float(sealing), float(alarm))


@kernel
def label_vertices(distance, limits, label):
    """label (n,) = the label of each vertex at its signed distance (n,) [m] from the other body.

    A vertex whose distance is not known, inf or nan, is FAR.
    """
    for v in range(distance.size):
        d = distance[v]
        if d <= limits.contact:
            label[v] = TOUCHING
        elif d <= limits.sealing:
            label[v] = SEALED
        elif d <= limits.alarm:
            label[v] = NEAR
        else:
            label[v] = FAR


@kernel
def distances_wanted(connectivity, label, distance, out):
    """Vertices beside a sealed one that let air through and whose distance is not known; returns how many.

    The sealing iso-line is interpolated on the edges to them, though they may lie beyond the alarm distance:
    query their distances. out (n,).
    """
    count = 0
    for v in range(label.size):
        if label[v] >= SEALED or np.isfinite(distance[v]):
            continue
        for k in range(connectivity.around[v], connectivity.around[v + 1]):
            if label[connectivity.neighbours[k]] >= SEALED:
                out[count] = v
                count += 1
                break
    return count
