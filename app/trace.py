"""The servo's rows on their way out: taken from its ring, kept for the report, and written to a recording."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from haptics.recording import Recorder
from haptics.row import NAMES
from haptics.servo import Servo, drain_rows

PERIOD = 0.25
"""Seconds between two times that the ring is emptied; it holds eight seconds."""

REPORTED = (
    "tick", "time_s", "px", "py", "pz", "force_x", "force_y", "force_z", "sent_x", "sent_y", "sent_z",
    "depth", "held_x", "held_y", "held_z", "contacts", "flags", "residual", "sweeps",
)  # fmt: skip
"""Columns that a result and its report are made from: 9 MB a minute."""


class Trace:
    """Empties the servo's ring, in the background or when asked; keeps the named columns in memory."""

    def __init__(
        self, servo: Servo, recorder: Recorder | None = None, names: Sequence[str] = REPORTED
    ) -> None:
        self.names = tuple(names)
        self._servo, self._recorder = servo, recorder
        self._index = [NAMES.index(name) for name in self.names]
        self._parts: list[NDArray[np.float64]] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Empty the ring now."""
        rows = drain_rows(self._servo)
        self._parts.append(rows[:, self._index])
        if self._recorder is not None:
            self._recorder.write(rows)

    def start(self) -> None:
        """Empty the ring in the background until `finish`."""
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD):
            self.take()

    def finish(self) -> dict[str, NDArray[np.float64]]:
        """Take what is left; all columns by name, one row a tick."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.take()
        table = np.concatenate(self._parts)
        return dict(zip(self.names, table.T, strict=True))
