"""A run as others hear it: pose, force and contacts, at a rate of their own; and a pose of theirs that leads.

The thread that looks at the run offers each picture that it has taken; the servo knows nothing of it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import Guide
from palpo.physics.exchange.snapshot import CONTACT_STATES, OPEN, SceneState

MOST_HZ = 250.0
"""Readings a second at most: more would take the time from the loops."""
MOST_CONTACTS = 64
"""Contacts of a reading: those with the largest forces."""

SENTENCES = 8
"""That a stream says of what it was sent."""


class Moment(NamedTuple):
    """One moment; scene axes, y up; NaN for what is not there yet."""

    tick: int
    seconds: float
    """Time of the scene."""
    position: NDArray[np.float64]
    """Of the hand, shape (3,) [m]."""
    orientation: NDArray[np.float64]
    """Of the hand (w, x, y, z), shape (4,)."""
    held: NDArray[np.float64]
    """The point of the tool that it holds, shape (3,) [m]."""
    force: NDArray[np.float64]
    """On the hand, shape (3,) [N], as far as it is felt: zero while it is off."""
    points: NDArray[np.float64]
    """Bearing contacts, shape (n, 3) [m]."""
    forces: NDArray[np.float64]
    """On the tool, shape (n, 3) [N]."""
    states: tuple[str, ...]
    """"stick", "slip" or "bilateral" of each."""
    led: bool
    """Whether somebody's pose has come lately."""


def moment_of(state: SceneState, felt: float, led: bool) -> Moment:
    """What a picture says, in arrays of its own."""
    bearing = np.flatnonzero(state.contact_state != OPEN)
    size = np.linalg.norm(state.contact_force[bearing], axis=1)
    kept = bearing[np.argsort(-size, kind="stable")[:MOST_CONTACTS]]
    return Moment(
        int(state.tick), float(state.time), state.device_point.copy(), state.device_turn.copy(),
        state.held_point.copy(), felt * state.hand_force, state.contact_point[kept],
        state.contact_force[kept], tuple(CONTACT_STATES[k] for k in state.contact_state[kept]), led,
    )  # fmt: skip


class Stream(ABC):
    """Somebody's side of a run; a context manager that is open for as long as they may hear it.

    rate: readings a second. Raises HapticsError for one that is not above 0, or above MOST_HZ.
    """

    title: str

    def __init__(self, rate: float, title: str) -> None:
        if not 0.0 < rate <= MOST_HZ:
            raise HapticsError(f"--rate {rate:g}: give readings a second, above 0 and at most {MOST_HZ:g}")
        self.rate, self.title = rate, title
        self.guide = Guide(title)
        """Takes the poses that are sent."""
        self.said: list[str] = []
        """What whoever runs the scene should know, in sentences."""
        self._due = 0.0

    def say(self, words: str) -> None:
        """Leave a sentence for whoever runs the scene; others than us can make it, so there are few."""
        if len(self.said) < SENTENCES and words not in self.said:
            self.said.append(words)

    @property
    def wait(self) -> float:
        """Seconds until the next reading is due."""
        return max(self._due - time.monotonic(), 0.0)

    def offer(self, state: SceneState, felt: float) -> None:
        """Publish a picture if a reading is due; one thread may call it.

        felt: share of its force that the hand feels now.
        """
        now = time.monotonic()
        if now < self._due:
            return
        # those that were missed are not made up for
        period = 1.0 / self.rate
        self._due = (self._due if now - self._due < period else now) + period
        self.publish(moment_of(state, felt, self.guide.leads))

    @property
    @abstractmethod
    def told(self) -> tuple[str, ...]:
        """Sentences for whoever opened it: how others reach it, and what to mind."""

    @abstractmethod
    def publish(self, reading: Moment) -> None:
        """Send a reading to whoever listens, and wait for nobody."""

    @abstractmethod
    def __enter__(self) -> Stream: ...

    @abstractmethod
    def __exit__(self, *exception: object) -> None: ...
