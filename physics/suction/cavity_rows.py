"""Rows of the cavities in a step's problem: W_cp, W_pp and V_free of 3.3.3 (000)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.suction.enclosure import Enclosure
from palpo.physics.suction.sides import Motion, Side

Array = NDArray[np.float64]
Walls = Sequence[tuple[Motion, Motion]]
"""Of each cavity, on its cup and on the partner: forces of a unit pressure, or what they yield to them."""


def fill_cavity_rows(
    w: Array, b: Array, cup_of: NDArray[np.int64], walls: Walls, yields: Walls, volume: Array,
    sides: Sequence[Side], free: Sequence[Motion], h: float,
) -> None:  # fmt: skip
    """Fill the last k rows and columns of w (n + k, n + k) and of b (n + k,).

    cup_of, volume (k,): whose each cavity is, and its volume [m3] at the step's start. sides: the cups, last
    the partner; each has taken the rows of the contacts. free: their motion without contact and pressure.
    """
    k, partner = len(cup_of), sides[-1]
    n = len(b) - k
    for j, ((own, other), (own_yield, other_yield)) in enumerate(zip(walls, yields, strict=True)):
        cup = int(cup_of[j])
        column = np.zeros(n)
        sides[cup].add_displacement(own_yield, h, column)
        partner.add_displacement(other_yield, h, column)
        w[:n, n + j] = w[n + j, :n] = column
        for m, (own_2, other_2) in enumerate(walls):
            shared = h * float((other_2 * other_yield).sum())
            if cup_of[m] == cup:
                shared += h * float((own_2 * own_yield).sum())
            w[n + j, n + m] = shared
        b[n + j] = volume[j] + h * float((own * free[cup]).sum() + (other * free[-1]).sum())
    # the last bits of a product depend on its order
    w[n:, n:] = 0.5 * (w[n:, n:] + w[n:, n:].T)


def seeping(enclosures: Sequence[Enclosure], h: float) -> Array:
    """s = h G [m3/Pa] (k + 1, k + 1) between the active cavities of all cups and, last, the outside."""
    k = sum(len(enclosure.active) for enclosure in enclosures)
    out, first = np.zeros((k + 1, k + 1)), 0
    for enclosure in enclosures:
        last = first + len(enclosure.active)
        own, its = [*range(first, last), k], [*enclosure.active.tolist(), -1]
        out[np.ix_(own, own)] = h * enclosure.conductance[np.ix_(its, its)]
        first = last
    return out


def seeped(enclosures: Sequence[Enclosure], pressure: Array, atmosphere: float, h: float) -> Array:
    """p V [J] (k,) that got out under the rims of the active cavities in a step, at its last pressures."""
    squares = np.append(pressure, atmosphere) ** 2
    return np.asarray((seeping(enclosures, h) * (squares[:, None] - squares)).sum(axis=1)[:-1])
