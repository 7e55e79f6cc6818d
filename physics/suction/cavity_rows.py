"""The cavities of a step, of all cups in one row: what it begins with, and what gets by under their rims."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.full import Motion
from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.gas.tracking import FLAT
from palpo.physics.suction.sides import ContactSide, SoftSide


class Field(NamedTuple):
    """A number that many points of a cup and of the partner make, a row of the step's problem."""

    cup: int
    own: Motion
    """What a unit of it does to the cup, and"""
    other: Motion
    """to the partner: also the number's gradient."""


class FoundCavities(NamedTuple):
    """k cavities, cup by cup."""

    cup: NDArray[np.int64]
    """(k,) whose each is."""
    walls: list[Field]
    """The volume of each: what a unit pressure in it does."""
    identity: NDArray[np.int64]
    """(k,) the same from step to step."""
    flat: NDArray[np.bool_]
    """(k,) whether no air is left in it."""
    amount: NDArray[np.float64]
    """(k,) n [mol]."""
    volume: NDArray[np.float64]
    """(k,) V [m3]."""


def found_cavities(
    enclosures: Sequence[Enclosure], cups: Sequence[SoftSide], partner: ContactSide
) -> FoundCavities:
    """What the enclosures of these cups found last, as rows of the step."""
    turn = partner.axes[1]
    cup_of, walls, identity, flat, amount, volume = [], [], [], [], [], []
    for i, (cup, enclosure) in enumerate(zip(cups, enclosures, strict=True)):
        tracks = enclosure.tracks
        for k in enclosure.active:
            cup_of.append(i)
            own = cup.force_of_wall(enclosure.gradient[k] @ turn.T)
            walls.append(Field(i, own, partner.force_of_wall(enclosure.partner_gradient[k])))
            identity.append(tracks.identity[k])
            flat.append(tracks.state[k] == FLAT)
            amount.append(tracks.air[k])
            volume.append(enclosure.volume[k])
    return FoundCavities(
        np.array(cup_of, np.int64), walls, np.array(identity, np.int64), np.array(flat, bool),
        np.array(amount, float), np.array(volume, float),
    )  # fmt: skip


def seeping(enclosures: Sequence[Enclosure], h: float) -> NDArray[np.float64]:
    """s = h G [m3/Pa] (k + 1, k + 1) between the active cavities of all cups and, last, the outside."""
    k = sum(len(enclosure.active) for enclosure in enclosures)
    out, first = np.zeros((k + 1, k + 1)), 0
    for enclosure in enclosures:
        last = first + len(enclosure.active)
        own, its = [*range(first, last), k], [*enclosure.active.tolist(), -1]
        out[np.ix_(own, own)] = h * enclosure.conductance[np.ix_(its, its)]
        first = last
    return out


def seeped(
    enclosures: Sequence[Enclosure], pressure: NDArray[np.float64], atmosphere: float, h: float
) -> NDArray[np.float64]:
    """p V [J] (k,) that got out under the rims of the active cavities in a step, at its last pressures."""
    squares = np.append(pressure, atmosphere) ** 2
    return np.asarray((seeping(enclosures, h) * (squares[:, None] - squares)).sum(axis=1)[:-1])
