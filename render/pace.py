"""When frames are due, and what they took: rate, time to draw, latency from snapshot to picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

KEPT = 240
"""Frames that the statistics look back on."""


class Latency(NamedTuple):
    """Milliseconds from a snapshot's publication to its picture; NaN before the first."""

    p50: float
    p99: float


class Pace:
    """At most `hz` frames a second that take at most this `share` of the time to draw.

    Times are those of `time.perf_counter_ns`.
    """

    def __init__(self, hz: float, share: float = 1.0) -> None:
        self._period = round(1e9 / hz)
        self._rest = 1.0 / share - 1.0
        self._due = 0
        self._published = 0
        self._shown: deque[int] = deque(maxlen=KEPT)
        self._drawing: deque[tuple[int, int]] = deque(maxlen=KEPT)
        """When what was drawn was shown, and how long it took [ns]."""
        self._latency: deque[int] = deque(maxlen=KEPT)

    def shown(self, began: int, now: int, published: int = 0, drawn: bool = True) -> None:
        """A frame was begun and is now shown; a snapshot counts for latency when it is first shown.

        published: when it was, 0 if that is not known. drawn: whether it differs from the frame before.
        """
        self._shown.append(now)
        if drawn:
            self._drawing.append((now, now - began))
        if published and published != self._published:
            self._latency.append(now - published)
            self._published = published
        # Of frames that come late, none is made up for.
        self._due = max(self._due + self._period, now + round(self._rest * (now - began)))

    def at_most(self, hz: float) -> None:
        """So many frames a second from now on."""
        self._period = round(1e9 / hz)

    def left(self, now: int) -> float:
        """Seconds until the next frame is due, at least zero."""
        return max(0, self._due - now) * 1e-9

    @property
    def frame_rate(self) -> float:
        """Frames a second over the frames looked back on; NaN before the second."""
        return _rate(list(self._shown))

    @property
    def drawn_rate(self) -> float:
        """Of them those a second that differed from the frame before; NaN before the second."""
        return _rate([when for when, _ in self._drawing])

    @property
    def draw_ms(self) -> float:
        """Median time from the begin of a frame until it is shown [ms]; NaN before the first."""
        return _percentile([took for _, took in self._drawing], 50)

    @property
    def latency(self) -> Latency:
        """Median and 99th percentile of the snapshots' way to the picture."""
        return Latency(_percentile(self._latency, 50), _percentile(self._latency, 99))


class Paced:
    """What is drawn at a pace, and tells it. renderer: what draws; most_hz: frames a second at most."""

    renderer: str
    most_hz: float
    _pace: Pace

    @property
    def frame_rate(self) -> float:
        """Frames a second, lately; NaN before the second."""
        return self._pace.frame_rate

    @property
    def draw_ms(self) -> float:
        """Median time that a frame took to be drawn and shown, or sent [ms]; NaN before the first."""
        return self._pace.draw_ms

    @property
    def latency(self) -> Latency:
        """Time from the publication of a snapshot until the call that shows or sends it has returned [ms]."""
        return self._pace.latency

    def figures(self) -> dict[str, object]:
        """How it draws: frames a second, those that differ from the one before, time to draw one, how old its
        state is when it is shown [ms].
        """
        return {
            "renderer": self.renderer,
            "frames_hz": self.frame_rate,
            "drawn_hz": self._pace.drawn_rate,
            "draw_ms": self.draw_ms,
            "latency_ms": {"p50": self.latency.p50, "p99": self.latency.p99},
        }

    def at_most(self, hz: float) -> None:
        """Draw so many frames a second from now on, but never more than most_hz."""
        self._pace.at_most(min(hz, self.most_hz))


def _rate(times: Sequence[int]) -> float:
    """Events a second at these times [ns]; NaN of fewer than two."""
    if len(times) < 2:
        return float("nan")
    return (len(times) - 1) / max(1e-9, (times[-1] - times[0]) * 1e-9)


def _percentile(nanoseconds: Collection[int], q: float) -> float:
    return float(np.percentile(list(nanoseconds), q)) * 1e-6 if nanoseconds else float("nan")
