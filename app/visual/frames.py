"""Frames of the picture behind a triple buffer: the slow loop writes, one other thread reads."""

import time

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import acquire, make_control, publish, writer_slot
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState, make_snapshot, view, write


class Frames:
    """What every system's picture shares (palpo.app.runtime.system.Picture).

    strain: whether frames carry the bodies' strain, where a system knows it. timed: whether they carry the
    clock of their publication, which a run in lock-step must not. Any thread may set them.
    """

    geometry: SceneGeometry

    def __init__(
        self, vertices: NDArray[np.float64], contacts: int, attachments: int = 0, patches: int = 0
    ) -> None:
        """Frames of vertices (n, 3) [m], which are written in place, and at most so many of the others."""
        self.vertices = vertices
        self.strain = self.timed = False
        self.snapshot = make_snapshot(len(vertices), contacts, attachments, patches)
        self.control = make_control()

    def hand_over(self, now: SceneState) -> None:
        """Make a state the newest frame."""
        now.published_ns = time.perf_counter_ns() if self.timed else 0
        write(self.snapshot, int(writer_slot(self.control)), now)
        publish(self.control)

    def latest(self) -> tuple[SceneState, bool]:
        """The reader's side: the newest frame, and whether it is new. One thread may ask."""
        slot, fresh = acquire(self.control)
        return view(self.snapshot, int(slot)), bool(fresh)
