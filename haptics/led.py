"""A simulated hand that something else leads, by a thread beside the servo."""

import threading
import time
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.control import finished_reason, is_frozen
from palpo.haptics.device import DEVICE_GONE, send_target
from palpo.haptics.drivers import ServoThread
from palpo.haptics.reasons import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo

LONGEST = 0.05
"""Longest time [s] that a step of motion makes up for: a program that slept does not jump."""
FAR = 0.3
"""Way [m] from the start at which the led point stops, along each axis."""

News = TypeVar("News")
News_co = TypeVar("News_co", covariant=True)
Target = tuple[NDArray[np.float64], NDArray[np.float64], int]
"""Position (3,) [m], orientation (4,) and buttons, device axes."""


class Source(Protocol[News_co]):
    """What is open and leads."""

    title: str

    def read(self, patience: float) -> News_co | None:
        """What it says once there is news, None after `patience` [s]. Raises OSError if it is lost."""
        ...

    def close(self) -> None:
        """Leave it."""
        ...


class LedThread(ServoThread, Generic[News]):
    """The servo on a simulated hand, and a thread that leads it as a source says.

    The servo's device has the source MAILBOX. Losing what leads fades the force and ends the run.
    """

    def __init__(self, servo: Servo, source: Source[News]) -> None:
        super().__init__(servo)
        self.source, self._lost = source, ""
        self._leading = threading.Thread(target=self._lead, name="leading", daemon=True)
        self._over = threading.Event()

    def led(self, news: News | None, quiet: float, seconds: float) -> Target:
        """The hand's target. quiet: since the last news [s]; seconds: for which it moves, 0 in a pause."""
        raise NotImplementedError

    def start(self) -> Self:
        """Compile, start, and lead."""
        super().start()
        self.accompany()
        return self

    def accompany(self) -> None:
        """Lead."""
        self._leading.start()

    def leave(self) -> None:
        """Lead no longer."""
        self._over.set()
        if self._leading.is_alive():
            self._leading.join()

    @property
    def lost(self) -> str:
        """What became of the device, in words, if it was lost."""
        return self._lost

    def _lead(self) -> None:
        last = heard = time.monotonic()
        while not self._over.is_set():
            try:
                news = self.source.read(LONGEST / 5)
            except OSError as error:
                reason = error.strerror or str(error) or "no reason given"
                self._lost = f"{self.source.title} was lost; plug it in again ({reason})"
                self.servo.device.health[0] = DEVICE_GONE
                return
            now = time.monotonic()
            heard = heard if news is None else now
            seconds = 0.0 if is_frozen(self.servo) else min(max(now - last, 0.0), LONGEST)
            send_target(self.servo.device, *self.led(news, now - heard, seconds))
            last = now

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; a lost device says what became of it."""
        reason = int(finished_reason(self.servo))
        return self._lost if reason == STOP_DEVICE_LOST and self._lost else REASONS[reason]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out."""
        ended = super().join(timeout)
        self.leave()
        return ended
