"""A recorded run as pictures to look up: repeated once, then shown at any moment in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.app.report.album import Film
from palpo.app.report.outcome import Outcome
from palpo.app.runtime.meta import recorded_run
from palpo.app.runtime.replay import replay
from palpo.app.visual.held import held_name, shape_of
from palpo.config.load import recorded_scene
from palpo.config.words import Refusal
from palpo.haptics.recording import read_recording
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState, make_geometry

Floats = NDArray[np.float64]

PERIOD = 1.0 / 50.0
"""Seconds of the scene between two of its pictures, as long as there are few enough."""
MOST = 3000
"""Pictures, at most; of a longer run every second goes."""


@dataclass(frozen=True, eq=False)
class Reel:
    """A recorded run. Raises what `replay` raises, and Refusal for one too short to be shown."""

    done: Outcome
    """Of the repeated run, with its forces and how it compares with the recorded one."""
    states: list[SceneState]
    times: Floats
    """Of the states [s], ascending, shape (n,)."""
    tool: str
    """Name of the shape that the hand held; empty for none."""

    @property
    def duration(self) -> float:
        """Time of the last picture [s]."""
        return float(self.times[-1])

    def index(self, seconds: float) -> int:
        """The newest picture at this time of the scene; before the first one, the first."""
        return max(0, int(np.searchsorted(self.times, seconds + 1e-9, side="right")) - 1)

    def at(self, seconds: float) -> SceneState:
        """The newest state at this time of the scene; after the last one, the last."""
        return self.states[self.index(seconds)]

    def force(self, n: int) -> tuple[Floats, Floats]:
        """Middles of at most n even spans [s], and the largest force that was sent in each [N]."""
        sent = np.linalg.norm(self.done.series["force_sent_N"], axis=1)
        first = np.unique(np.linspace(0, len(sent), min(n, len(sent)), endpoint=False).astype(int))
        return self.done.series["time_s"][first], np.maximum.reduceat(sent, first)

    def ghost(self) -> Ghost:
        """The tool alone; Refusal where the hand held none."""
        geometry = self.done.geometry
        shape = shape_of(geometry, self.tool)
        if shape is None:
            raise Refusal(f"{self.done.result['scene']}: the hand holds nothing in it that could be shown")
        alone = make_geometry([replace(shape, first_vertex=0)], geometry.rest[shape.span])
        return Ghost(alone, self, [state.vertices[shape.span] for state in self.states])


@dataclass(frozen=True, eq=False)
class Ghost:
    """The tool of a recorded run, to be shown beside a live one."""

    geometry: SceneGeometry
    reel: Reel
    vertices: list[Floats]

    def at(self, seconds: float) -> Floats:
        """Where the tool's vertices were (n, 3) [m]."""
        return self.vertices[self.reel.index(seconds)]


def reel_of(recording: Path, progress: Progress | None = None) -> Reel:
    """Repeat a recording (an HDF5 file of `palpo run --record`) and keep what it looked like."""
    film = Film(PERIOD, MOST)
    done = replay(recording, progress=progress, film=film)
    states = [state for state in film.states if np.isfinite(state.vertices).all()]
    if not states:
        raise Refusal(f"{recording}: too short to be shown")
    spec = recorded_scene(recorded_run(read_recording(recording), recording).scene.model_dump())
    return Reel(done, states, np.array([state.time for state in states]), held_name(spec))
