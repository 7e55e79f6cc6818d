"""The slow loop of a servo that computes everything itself: it carries settings, and its picture is drawn.

Settings travel as frames do in the multi-rate system: one each slow period, under a number that the servo's
rows name, so that a replay finds where each was adopted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import published_count, taken_count
from palpo.physics.exchange.durations import StepTimes

Publish = Callable[[Any, int], None]
"""Hands the settings to the servo under a number."""


class SettingsLoop:
    """The slow loop's work (palpo.app.runtime.rigs.LowLoop): `values` to the servo.

    control: of the settings' triple buffer. ticks, lost: the servo's counts of ticks done, and of contacts
    that found no room.
    """

    spares: tuple[str, ...] = ()
    slowest_hz = 0.0

    def __init__(
        self,
        values: Any,
        publish: Publish,
        control: NDArray[np.int64],
        ticks: Callable[[], int],
        lost: Callable[[], int],
    ) -> None:
        self.values = values
        self.times = StepTimes()
        self.frame_id = self.tick = self.present = self.lost_slots = 0
        self._publish, self._control, self._ticks, self._count_lost = publish, control, ticks, lost
        self._begun, self._lost = -1, 0

    def set_budget(self, budget: Budget) -> None:
        """Nothing is made ahead of the servo."""

    def begin(self) -> None:
        """Note how far the servo is."""
        self._begun = self._ticks() or -1
        lost = self._count_lost()
        self.lost_slots, self._lost = lost - self._lost, lost

    def begun(self) -> int:
        """Ticks that the servo had done then, -1 for none."""
        return self._begun

    def complete(self) -> int:
        """Ticks done by now."""
        return self._ticks()

    def finish(self, until: int, present: int | None = None) -> None:
        """Publish the settings."""
        self.frame_id += 1
        self._publish(self.values, self.frame_id)
        self.tick = until
        self.present = until if present is None else present

    def asked(self) -> bool:
        """Never before a step is due."""
        return False

    def adopted(self) -> bool:
        """Whether the servo has taken them."""
        return bool(taken_count(self._control) >= published_count(self._control))

    def check(self) -> None:
        """Nothing of the slow loop can break."""

    def close(self) -> None:
        """There are no worker threads."""
