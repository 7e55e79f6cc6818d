"""A cup of revolution pushed on a wall and pulled off it, its air kept, let go, or leaking by its rim.

See palpo.physics.suction.walled_cup for the cup.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from palpo.physics.suction.walled_cup import ATMOSPHERE, CupEquilibrium, Lost, WalledCup

PUSH_STEP, PULL_STEP, LEAST_STEP, LONGEST = 1e-4, 2e-4, 1e-5, 25e-3
"""Of the stem [m]: while pushed, while pulled and at the least, and how far it is pulled at most."""
SPEED, REST, RESTS = 0.01, 2.0, 4
"""At which the stem moves [m/s] and how long it rests when pushed [s], in so many steps; of account where a
rim leaks."""
HIGHEST = 5e3
"""Pressure up to which a rim's largest is looked for [Pa]."""


class Handling(NamedTuple):
    """How a cup is handled."""

    push: float  # [m]
    largest: float = 0.0  # pressure over the atmosphere that the rim bears [Pa]: inf leaves it to the rim
    pull_step: float = PULL_STEP  # [m]


def pull_off(
    cup: WalledCup, how: Handling, look: Callable[[CupEquilibrium], None] = lambda state: None
) -> list[CupEquilibrium]:
    """Push a cup, and pull it until there is no equilibrium; its states from when it is pushed.

    look: called in each of them, while the cup is in it.
    """
    state, held = _pushed(cup, how)
    look(state)
    height, step, states = -how.push, how.pull_step, [state]
    while step >= LEAST_STEP and height < LONGEST:
        before = cup.saved()
        try:
            if cup.seal is not None:
                state, held = cup.breathe(height + step, held, step / SPEED)
            else:
                state = cup.step(height + step, 0.0, held)
            states.append(state)
            height += step
            look(state)
        except Lost:
            cup.restore(before)
            step /= 4
    return states


def _pushed(cup: WalledCup, how: Handling) -> tuple[CupEquilibrium, float]:
    """The state when pushed, and p V of what air is left [J]."""
    steps, held = max(2, round(how.push / PUSH_STEP)), 0.0
    for k in range(1, steps + 1):
        height = -how.push * k / steps
        if k == 1 or how.largest == 0.0:
            state = cup.step(height, 0.0, 0.0)
            held = ATMOSPHERE * state.volume
        elif cup.seal is not None:
            state, held = cup.breathe(height, held, how.push / steps / SPEED)
        else:
            state, held = _squeezed(cup, height, held, how.largest)
    for _ in range(RESTS if cup.seal is not None else 0):
        state, held = cup.breathe(-how.push, held, REST / RESTS)
    return state, held


def _squeezed(cup: WalledCup, height: float, held: float, largest: float) -> tuple[CupEquilibrium, float]:
    """A step of the push, its air shut in while its pressure is at most `largest` and the rim bears it."""
    before = cup.saved()
    try:
        state = cup.step(height, 0.0, held)
        if -state.suction <= largest:
            return state, held
    except Lost:
        pass
    cup.restore(before)
    try:
        if largest == np.inf:
            raise Lost
        state = cup.step(height, -largest, 0.0)
    except Lost:
        cup.restore(before)
        state = cup.step(height, -cup.largest_pressure(height, HIGHEST), 0.0)
    return state, (ATMOSPHERE - state.suction) * state.volume
