"""The servo's rows on their way out: taken from its ring, kept for the report, and written to a recording."""

import threading
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.drain import drain_rows
from palpo.haptics.recording import Recorder
from palpo.haptics.row import columns_of
from palpo.haptics.servo import Servo

PERIOD = 0.05
"""Seconds between two times that the ring is emptied; it holds eight seconds."""

FLUSH = 250
"""Rows that are written at once."""

KEPT = 1_200_000
"""Rows kept in memory unless told, 20 minutes at 1 kHz: an operator may leave a window open for a day."""

REPORTED = (
    "tick", "time_s", "px", "py", "pz", "force_x", "force_y", "force_z", "sent_x", "sent_y", "sent_z",
    "depth", "held_x", "held_y", "held_z", "contacts", "flags", "residual", "sweeps",
    "tick_flags",
)  # fmt: skip
"""Columns that a result and its report are made from: 9 MB a minute."""


class RingTrace:
    """Empties the servo's ring, in the background or when asked; keeps the named columns in memory.

    Rows go to the recorder, a flush at a time; `record` exchanges it.
    """

    def __init__(
        self, servo: Servo, recorder: Recorder | None = None, names: Sequence[str] | None = REPORTED
    ) -> None:
        """names None: all columns there are."""
        known = [column.name for column in columns_of(1 + len(servo.led))]
        self.names = tuple(known if names is None else names)
        self.kept = KEPT
        """Rows that are kept in memory."""
        self._servo, self._recorder = servo, recorder
        self._index = [known.index(name) for name in self.names]
        self._parts: deque[NDArray[np.float64]] = deque()
        self._rows = 0
        self._unwritten: list[NDArray[np.float64]] = []
        self._taking = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Empty the ring now."""
        with self._taking:
            rows = drain_rows(self._servo)
            if len(rows):
                self._parts.append(rows[:, self._index])
                self._rows += len(rows)
            while self._parts and self._rows > self.kept + len(self._parts[0]):
                self._rows -= len(self._parts.popleft())
            if self._recorder is not None:
                self._unwritten.append(rows)
                if sum(map(len, self._unwritten)) >= FLUSH:
                    self._write()

    def _write(self) -> None:
        if self._recorder is not None and self._unwritten:
            self._recorder.write(np.concatenate(self._unwritten))
        self._unwritten = []

    def record(self, recorder: Recorder | None) -> Recorder | None:
        """Give the rows from now on to another recorder, or to none; returns the one before, all written."""
        self.take()
        with self._taking:
            self._write()
            before, self._recorder = self._recorder, recorder
        return before

    def start(self) -> None:
        """Empty the ring in the background until `finish`."""
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            self.take()

    def finish(self) -> dict[str, NDArray[np.float64]]:
        """Take what is left; all columns by name, one row a tick, the last `kept` of them."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.take()
        with self._taking:
            self._write()
        return self._columns(list(self._parts))

    def latest(self, n: int) -> dict[str, NDArray[np.float64]]:
        """The last n rows, or a little more; any thread may ask."""
        parts: list[NDArray[np.float64]] = []
        with self._taking:
            for part in reversed(self._parts):
                parts.append(part)
                n -= len(part)
                if n <= 0:
                    break
        return self._columns(parts[::-1])

    def _columns(self, parts: list[NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
        table = np.concatenate([np.zeros((0, len(self.names))), *parts])
        return dict(zip(self.names, table.T, strict=True))
