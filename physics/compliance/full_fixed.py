"""What never moves, beside bodies of full order: it answers what those of `compliance.full` answer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.full import Array, BodyContacts, Motion
from palpo.physics.exchange.handle import Handle


class Nowhere(BodyContacts):
    """The points of what never moves: nobody asks for them."""

    def __init__(self) -> None:
        super().__init__(0)

    def take(self, contacts: Handle, member: NDArray[np.int64], body: int) -> None:
        """None."""


class FullFixed:
    """What never moves: its points are places in the world."""

    def __init__(self) -> None:
        self.points: BodyContacts = Nowhere()
        self.fewer: BodyContacts = self.points
        self.part: BodyContacts = self.points

    def begin(self, h: float) -> Motion | None:
        """It has no motion."""
        return np.zeros(0)

    def free_motion(self, h: float) -> Motion:
        """It has none."""
        return np.zeros(0)

    def moving(self) -> Motion:
        """It has no motion."""
        return np.zeros(0)

    def take_fields(self, forces: Sequence[Motion | None], free: Motion | None, h: float) -> Motion:
        """It yields to none."""
        return np.zeros(0)

    def places(self, slots: NDArray[np.int32], weights: Array, arm: Array) -> Array:
        """See FullOrder."""
        return arm.copy()

    def displacement(self, points: BodyContacts, motion: Motion, h: float, out: Array) -> None:
        """It has none."""

    def find_yields(self, h: float) -> None:
        """It yields nothing."""

    def add_yields(self, w: Array, span: NDArray[np.int64]) -> None:
        """It yields nothing."""

    def add_lines(self, lines: Array) -> None:
        """It yields nothing."""

    def push(self, x: Array) -> Motion:
        """It takes none."""
        return np.zeros(0)

    def answer(self, x: Array, h: float) -> Motion:
        """It does not."""
        return np.zeros(0)

    def finish(self, motion: Motion, h: float) -> None:
        """It stays."""
