"""How the tool is taken, and whether somebody has, so that the window knows for how long to say it."""

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TAKEN = 0.02
"""Way of the hand that counts as having taken the tool, in lengths of the scene."""

ABOUT = 76
"""Letters in a line that says what a scene is, at most."""


def how_to_take(taking: Sequence[str], scene: str, about: str) -> tuple[str, tuple[str, ...]]:
    """Title and lines of a hint: those of the device, after what the scene is where that is said."""
    title, *lines = taking
    told = textwrap.wrap(about, ABOUT)
    if told:
        title, lines = scene, [*told, f"{title}: {lines[0]}", *lines[1:]]
    return title, tuple(lines)


class Taking:
    """Done once the hand has led the tool some way from where it took it."""

    def __init__(self, length: float, grips: bool) -> None:
        """length: of the scene [m]. grips: whether only a gripped tool is led."""
        self.done = False
        self._enough, self._grips = TAKEN * length, grips
        self._begun: NDArray[np.float64] | None = None

    def look(self, hand: NDArray[np.float64], grip: bool) -> None:
        """The hand is here (3,) [m], gripping or not."""
        if self._grips and not grip:
            self._begun = None
        elif np.isfinite(hand).all():
            if self._begun is None:
                self._begun = hand.copy()
            self.done = self.done or float(np.linalg.norm(hand - self._begun)) >= self._enough
