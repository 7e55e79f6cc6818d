"""A servo in a thread of its own that asks its device for the pose, and tells it the force, in every tick."""

import math
import time
from collections.abc import Callable

from palpo.haptics.control import finished_reason
from palpo.haptics.drivers import ServoThread
from palpo.haptics.reasons import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo, poll_device
from palpo.haptics.silence import Silence
from palpo.haptics.statistics import LATE
from palpo.physics.exchange.handle import Handle

PATIENCE = 0.25
"""Seconds without a tick after which the device's library is taken for dead, as frames are for too old."""


class Watch:
    """Whether a servo still turns, which stands still with a device's library that does not return."""

    words = f"the device has not answered for {PATIENCE:g} s: the force is not known, let go of it"

    def __init__(self, servo: Servo) -> None:
        self._servo, self._silence = servo, Silence()
        self.gone = False
        """Whether it has been silent once."""

    @property
    def silent(self) -> bool:
        """Whether there was no period for PATIENCE, not even one in which a paused servo makes no tick."""
        periods = int(self._servo.statistics.histograms[LATE].sum())
        silent = self._silence.after(periods)
        self.gone = self.gone or (periods > 0 and silent > PATIENCE)
        return self.gone


class PolledThread(ServoThread):
    """Runs a servo on a device that brings two compiled functions and the handle that both are given.

    read, write: addresses of C functions `int32 f(void *)`; data: what they are given. why: what became of a
    lost device, in words. said: what it has to say since last asked, and how often. The servo's device has
    the source EXTERNAL. Where the device's library does not return from a call, the thread is left with it.
    """

    def __init__(
        self,
        servo: Servo,
        read: int,
        write: int,
        data: Handle,
        why: Callable[[], str] = str,
        said: Callable[[], dict[str, int]] = dict,
    ) -> None:
        super().__init__(servo)
        self._data = data
        poll_device(servo, read, write, data.address)
        self._why, self._said = why, said
        self._watch = Watch(servo)

    @property
    def running(self) -> bool:
        """Whether the loop still turns."""
        return super().running and not self._watch.silent

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; a lost device says what became of it."""
        if self._watch.gone:
            return self._watch.words
        reason = int(finished_reason(self.servo))
        return (self.lost if reason == STOP_DEVICE_LOST else "") or REASONS[reason]

    @property
    def lost(self) -> str:
        """What became of the device, in words, if it was lost."""
        return self._why()

    def events(self) -> dict[str, int]:
        """What the device has to say since last asked, in words, and how often each came."""
        return self._said()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out. Leaves a device that does not answer."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                return False
            time.sleep(1e-3)
        return self._watch.gone or super().join(timeout)
