"""A recorded run in a window: played, stopped, and turned to any of its moments."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.app.report.draw import camera_of, near_points
from palpo.app.report.outcome import Outcome
from palpo.app.runtime.desk import HEIGHT, SAID, WIDTH, Desk, Screen, own_window
from palpo.app.runtime.knob import ViewKnob
from palpo.app.runtime.reel import Reel, reel_of
from palpo.app.visual.held import shape_of
from palpo.app.visual.nearness import Nearness
from palpo.physics.exchange.snapshot import SceneState
from palpo.render.controls import Controls, key_list
from palpo.render.headset import Tracking
from palpo.render.panel_state import PanelState, Timeline, Waiting
from palpo.render.requests import Request

COLUMNS = 400
"""Bars of the timeline's curve."""


class Viewer(Desk):
    """Somebody who looks at a recording. Raises RenderUnavailable where there can be no window or panel."""

    def __init__(
        self, recording: Path, progress: Progress, ghost: Path | None = None, knob: ViewKnob | None = None,
        headset: Tracking | None = None, screen: Screen = own_window,
    ) -> None:  # fmt: skip
        """ghost: another recording, whose tool is shown beside."""
        super().__init__(progress, knob, headset, screen)
        self._beside = ghost
        self.recording, self.now, self.speed, self.playing = recording, 0.0, 1.0, False
        self._reel: Reel | None = None
        self._nearness: Nearness | None = None
        self._curve = np.zeros(0), np.zeros(0)

    def run(self) -> Outcome:
        """Repeat the recording and show it until the window closes; the outcome of the repeated run.

        Raises what `reel_of` raises.
        """
        with ThreadPoolExecutor(1, "repeating") as pool:
            made: Future[Reel] = pool.submit(reel_of, self.recording, self.progress)
            beside = None if self._beside is None else pool.submit(reel_of, self._beside, self.progress)
            while not (made.done() and (beside is None or beside.done())):
                self._status = self.progress.words, "warn"
                self._frame(self._state)
                self._heed()
            reel = made.result()
        self._open(reel)
        self._haunt(None if beside is None else beside.result().ghost())
        last = time.perf_counter()
        while not self.closing:
            here = time.perf_counter()
            if self.playing:
                self._seek(self.now + self.speed * (here - last))
                self.playing = self.now < reel.duration
            last = here
            self._show(reel)
            self._heed()
        return reel.done

    def _open(self, reel: Reel) -> None:
        self._reel, self._geometry, self._seen_from = reel, reel.done.geometry, None
        self._curve = reel.force(COLUMNS)
        shape = shape_of(self._geometry, reel.tool)
        self._nearness = None if shape is None else Nearness(self._geometry, shape)
        camera = camera_of(self._geometry, reel.states, reel.done.view, WIDTH / HEIGHT)
        # above the timeline
        share = self.panel.below
        camera = camera.zoom(1.0 - share).pan(0.0, -0.5 * share)
        self.controls = Controls(camera, replace(self.controls.overlays, axes=False))
        self.window.show(self._geometry, reel.states[0])
        self._status = reel.done.result["exit_reason"], "bad" if reel.done.status else "good"
        self.playing = True

    def _show(self, reel: Reel) -> None:
        """One frame, of the moment."""
        state, (width, height) = reel.at(self.now), self.window.scene_size
        self.controls.keep(near_points(self._geometry, state), width / height)
        shape = shape_of(self._geometry, reel.tool)
        if self._nearness is not None and self.controls.overlays.nearness:
            self._nearness.look(state)
        if shape is not None:
            self.controls.track(state.vertices[shape.span], state.held_point, width / height)
        self._frame(state)

    def _seek(self, seconds: float) -> None:
        """Show this moment, or the end that is nearest to it."""
        assert self._reel is not None
        self.now = min(max(seconds, 0.0), self._reel.duration)

    def _turn(self, pictures: int) -> None:
        """Stop, and go on or back by some pictures."""
        assert self._reel is not None
        self.playing = False
        last = len(self._reel.times) - 1
        self.now = float(self._reel.times[min(max(self._reel.index(self.now) + pictures, 0), last)])

    def _panel_state(self, state: SceneState) -> PanelState:
        reel, shown = self._reel, self.progress
        return PanelState(
            scene=self.recording.name,
            device="recorded",
            status=self._status[0],
            status_level=self._status[1],
            elapsed=self.now,
            force=float(np.linalg.norm(state.hand_force)),
            timeline=None if reel is None else Timeline(
                reel.duration, self.now, self.playing, self.speed, *self._curve
            ),
            keys=key_list(False, recorded=True),
            help=self.help,
            waiting=Waiting(shown.words, shown.share) if reel is None else None,
            messages=tuple(self.messages[-SAID:]),
            overlays=self.controls.overlays,
            legend=() if reel is None else tuple(self._legend(state)),
            seen=np.zeros((0, 2)) if reel is None else self._seen(),
        )  # fmt: skip

    def _answer(self, request: Request) -> None:
        if self._reel is not None:
            match request.kind:
                case "pause":
                    if not self.playing and self.now >= self._reel.duration:
                        self._seek(0.0)
                    self.playing = not self.playing
                case "step":
                    self._turn(1)
                case "back":
                    self._turn(-1)
                case "seek":
                    self.playing = False
                    self._seek(float(str(request.value)))
                case "speed":
                    self.speed = float(str(request.value))
        super()._answer(request)

    @property
    def _name(self) -> str:
        return self.recording.stem
