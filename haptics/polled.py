"""A servo in a thread of its own that asks its device for the pose, and tells it the force, in every tick."""

import math
import time
from collections.abc import Callable

from palpo.haptics.limits import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo, ServoThread, finished_reason, poll_device
from palpo.haptics.statistics import LATE
from palpo.physics.exchange.handle import Handle

PATIENCE = 0.25
"""Seconds without a tick after which the device's library is taken for dead, as frames are for too old."""


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
        self._seen, self._silent = (0, math.inf), False

    @property
    def running(self) -> bool:
        """Whether the loop still turns."""
        if not super().running:
            return False
        # also those periods in which a paused servo makes no tick
        periods, now = int(self.servo.statistics.histograms[LATE].sum()), time.monotonic()
        if periods != self._seen[0] or not periods:
            self._seen = periods, now
        self._silent = self._silent or now - self._seen[1] > PATIENCE
        return not self._silent

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; a lost device says what became of it."""
        if self._silent:
            return f"the device has not answered for {PATIENCE:g} s: the force is not known, let go of it"
        reason = int(finished_reason(self.servo))
        return (self._why() if reason == STOP_DEVICE_LOST else "") or REASONS[reason]

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
        return self._silent or super().join(timeout)
