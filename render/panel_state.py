"""What the operator's panel shows: plain numbers and words that the application fills for each frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.render.legend import Entry
from palpo.render.overlays import Overlays

Floats = NDArray[np.float64]
Level = Literal["plain", "good", "warn", "bad"]


class LoopReading(NamedTuple):
    """One loop beside its target; NaN, or -1 missed, where nothing was measured."""

    name: str
    rate_hz: float
    target_hz: float
    late_p99_ms: float = float("nan")
    missed: int = -1
    note: str = ""


class Reading(NamedTuple):
    """A number with its unit, or a word, as text."""

    label: str
    text: str
    level: Level = "plain"


class Setting(NamedTuple):
    """Something that the operator may change.

    The widget follows from the value: a checkbox for a bool, one of `choices` for a str, else a slider from
    `lower` to `upper` [unit], logarithmic if `log`, that also takes a typed number.
    """

    key: str
    label: str
    unit: str
    value: bool | int | float | str
    lower: float = 0.0
    upper: float = 1.0
    log: bool = False
    choices: tuple[str, ...] | None = None
    help: str = ""
    matters: bool = False
    """Whether it is one of the few that are shown before all others."""


class Plot(NamedTuple):
    """Curves over time; `limit` [unit] is drawn as a dashed line."""

    title: str
    unit: str
    seconds: Floats  # (n,) s, ascending
    series: Mapping[str, Floats]  # (n,) each
    limit: float | None = None


class Waiting(NamedTuple):
    """What is being done, and the share of it that is; NaN where nobody knows."""

    words: str
    share: float = float("nan")


class Hint(NamedTuple):
    """How to begin, for somebody who has not: a heading, lines, and the place that they are about."""

    title: str
    lines: tuple[str, ...]
    at: tuple[float, float] | None = None
    """Right and down from the upper left corner, in shares of the window's height."""


class Timeline(NamedTuple):
    """A recorded run, and which moment of it is shown."""

    duration: float  # s
    now: float  # s
    playing: bool
    speed: float  # seconds of the run in one
    seconds: Floats  # (n,) ascending
    force: Floats  # (n,) N


class Light(NamedTuple):
    """How the run fares: a word, and the sentence that explains it."""

    word: str
    sentence: str = ""
    level: Level = "plain"


class Card(NamedTuple):
    """A scene to choose: what it is called, under which heading, and what it looks like."""

    name: str
    title: str
    words: str
    group: str
    picture: NDArray[np.uint8] | None = None  # (h, w, 3)


@dataclass(frozen=True, eq=False)
class PanelState:
    """One frame of the panel. Groups of readings and knobs are shown in their order, under their names."""

    scene: str = ""
    scenes: tuple[str, ...] = ()
    device: str = ""
    status: str = ""
    status_level: Level = "plain"
    light: Light | None = None  # while the loops run
    elapsed: float = 0.0  # s
    paused: bool = False
    frozen: bool = False
    recording: bool = False
    emergency: bool = False
    recording_path: str = ""
    muted: bool = False  # without vibrations and sounds
    handed: Literal["", "right", "left"] = ""  # the hand that turns a device, empty where none does
    kept: str = ""  # when the state was that can be gone back to
    force: float = float("nan")  # N, on the hand
    force_limit: float = float("nan")  # N, of the device
    loops: tuple[LoopReading, ...] = ()
    readings: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    knobs: Mapping[str, tuple[Setting, ...]] = field(default_factory=dict)
    plots: tuple[Plot, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()  # what to press, what it does
    help: bool = False  # the list of keys is open
    cards: tuple[Card, ...] = ()  # of scenes to choose from, over everything else
    waiting: Waiting | None = None  # what has to be done before the scene moves
    hint: Hint | None = None  # until it was done
    timeline: Timeline | None = None  # of a recording: nobody's hand is at stake
    messages: tuple[str, ...] = ()
    overlays: Overlays = field(default_factory=Overlays)
    legend: tuple[Entry, ...] = ()  # of `legend_entries`
    seen: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    """What the legend should not hide: points (n, 2) right and down, in shares of the picture's height."""
