"""What there is to see: shapes, and frames behind a triple buffer: the slow loop writes, one thread reads.

What the servo itself has at that moment is newer: a reader that follows the servo gets that.
"""

import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import acquire, make_control, publish, writer_slot
from palpo.physics.exchange.hand_state import HandState
from palpo.physics.exchange.snapshot import (
    COUNTERS,
    Drawable,
    SceneGeometry,
    SceneState,
    make_geometry,
    make_snapshot,
    view,
    write,
)


class Shapes:
    """Drawables in a row, with their vertices [m]."""

    def __init__(self) -> None:
        self.drawables: list[Drawable] = []
        self.points: list[NDArray[np.float64]] = []

    def add(
        self,
        name: str,
        points: NDArray[np.float64],
        triangles: Any = None,
        kind: str = "surface",
        **rest: Any,
    ) -> Drawable:
        """One more shape; `rest` are fields of its Drawable."""
        if triangles is not None:
            rest["triangles"] = np.asarray(triangles, np.int32)
        first = sum(map(len, self.points))
        drawable = Drawable(name, kind, first, len(points), **rest)  # type: ignore[arg-type]
        self.drawables.append(drawable)
        self.points.append(np.asarray(points, float))
        return drawable

    @property
    def vertices(self) -> NDArray[np.float64]:
        """Those of all shapes, (n, 3) [m]."""
        return np.vstack(self.points)


class Picture(ABC):
    """What there is to see of one run; the slow loop writes, one other thread reads.

    geometry: its shapes. vertices: where everything is [m], (n, 3), written in place. strain: whether frames
    carry the bodies' strain, where a system knows it. timed: whether they carry the clock of their
    publication, which a run in lock-step must not. Any thread may set them. follows: whether the reader gets
    what the servo has, and not what the slow loop left.
    """

    def __init__(self, shapes: Shapes, contacts: int, attachments: int = 0, patches: int = 0) -> None:
        """Of these shapes, and at most so many of the others."""
        self.vertices = shapes.vertices
        self.geometry: SceneGeometry = make_geometry(shapes.drawables, self.vertices)
        self.strain = self.timed = self.follows = False
        faces = sum(shape.face_room for shape in shapes.drawables)
        self.snapshot = make_snapshot(len(self.vertices), contacts, attachments, patches, faces)
        self.control = make_control()

    def follow_servo(self) -> None:
        """From now on the reader gets what the servo has; before the loops start."""
        self.follows = True

    def clock(self) -> int:
        """Time for a frame that is published now [ns]."""
        return time.perf_counter_ns() if self.timed else 0

    @abstractmethod
    def take_tool(self) -> int:
        """Slot of the newest state of the tool, kept until the next call."""

    @abstractmethod
    def publish(self, k: int, tick: int, counters: NDArray[np.int64]) -> None:
        """Write everything as it is, with the tool of slot k."""

    def hand_over(self, now: SceneState) -> None:
        """Make a state the newest frame."""
        now.published_ns = self.clock()
        write(self.snapshot, int(writer_slot(self.control)), now)
        publish(self.control)

    def latest(self) -> tuple[SceneState, bool]:
        """The reader's side: the newest frame, and whether it is new. One thread may ask."""
        slot, fresh = acquire(self.control)
        return view(self.snapshot, int(slot)), bool(fresh)


class ServoPicture(Picture):
    """The picture of a system whose servo tells all that there is to see, at each of its ticks.

    Whoever reads it is the one that looks: the slow loop, which hands it over, or a reader that follows.
    """

    def __init__(self, shapes: Shapes, picture: HandState, control: NDArray[np.int64], dt: float) -> None:
        """picture: triple-buffered by `control`. dt: period of a tick [s]."""
        super().__init__(shapes, picture.contact_point.shape[1])
        self.picture, self.picture_control, self.dt = picture, control, dt
        self._counters = np.zeros(len(COUNTERS), np.int64)

    @abstractmethod
    def told(self, k: int, tick: int, counters: NDArray[np.int64]) -> SceneState:
        """The picture of slot k as a state, whose arrays may be the slot's own."""

    def contacts_and_hand(self, k: int, tick: int, counters: NDArray[np.int64]) -> SceneState:
        """The vertices as they are, and of slot k the contacts, the hand and its force [N], once it began."""
        p = self.picture
        state = SceneState(self.vertices, tick, tick * self.dt, counters=counters)
        if p.tick[k] < 0:
            return state
        n = int(p.n_contacts[k])
        state.contact_point, state.contact_force = p.contact_point[k, :n], p.contact_force[k, :n]
        state.contact_state = p.contact_status[k, :n].astype(np.int64)
        state.device_point, state.device_turn = p.target[k], p.target_q[k]
        state.held_point, state.hand_force = p.position[k], p.force[k]
        return state

    def take_tool(self) -> int:
        """Slot of the newest picture, which stays until this is asked again; -1 where the reader takes it."""
        return -1 if self.follows else int(acquire(self.picture_control)[0])

    def publish(self, k: int, tick: int, counters: NDArray[np.int64]) -> None:
        """Hand over the picture of slot k."""
        self._counters[:] = counters
        if k >= 0:
            self.hand_over(self.told(k, tick, counters))

    def latest(self) -> tuple[SceneState, bool]:
        """The reader's side: the newest frame, and whether it is new."""
        if not self.follows:
            return super().latest()
        k, fresh = acquire(self.picture_control)
        now = self.told(int(k), max(0, int(self.picture.tick[k])), self._counters)
        now.published_ns = self.clock()
        return now, bool(fresh)
