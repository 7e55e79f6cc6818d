"""Whether somebody has taken the tool yet, so that the window knows for how long to say how."""

import numpy as np
from numpy.typing import NDArray

TAKEN = 0.02
"""Way of the hand that counts as having taken the tool, in lengths of the scene."""


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
