"""For how long something that counts has been silent, by somebody who may have stood still himself."""

import time

BLIND = 0.1
"""Longest time between two looks [s] that counts: for the rest of it, nobody knows who stood still."""


class Silence:
    """Watches a count that goes on as long as somebody is alive."""

    def __init__(self) -> None:
        self._count, self._looked, self._seconds = 0, time.monotonic(), 0.0

    def after(self, count: int) -> float:
        """Seconds without another count, of those in which somebody looked."""
        now = time.monotonic()
        self._seconds = self._seconds + min(now - self._looked, BLIND) if count == self._count else 0.0
        self._count, self._looked = count, now
        return self._seconds
