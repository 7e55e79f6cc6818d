"""A desk: one window with its panel, over what is shown on it. Everything here belongs to the main thread."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from palpo.app.cli.progress import Progress, TimeLeft
from palpo.app.cli.refusal import is_refusal
from palpo.app.runtime.knob import ViewKnob
from palpo.app.runtime.reel import Ghost
from palpo.app.web.panel import PagePanel
from palpo.app.web.window import PageWindow
from palpo.physics.exchange.snapshot import SceneState, make_geometry
from palpo.render import palette
from palpo.render.camera import Camera
from palpo.render.controls import Controls
from palpo.render.headset import Headset, Tracking
from palpo.render.legend import Entry, evenly, legend_entries
from palpo.render.panel import Panel
from palpo.render.panel_state import Level, PanelState
from palpo.render.requests import Request
from palpo.render.window import Window

WIDTH, HEIGHT = 1280, 800
SAID = 6
"""Messages that the panel keeps."""
LONGEST = 0.1
"""Most seconds between two pictures for which a knob turns the view."""
GIVING_WAY = 4
"""Niceness of the thread that draws."""


class Told(Progress):
    """Progress that the window can show as well.

    `words` is the present stage, with the time that is left where it is known, `share` what is done of it.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self.words, self.share = progress, "", math.nan
        self._what, self._pace = "", TimeLeft()

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Show `what` while the block runs."""
        self.words, self.share = what, math.nan
        self._what, self._pace = what, TimeLeft()
        with self._progress.stage(what):
            yield

    def come_to(self, share: float, even: bool = True) -> None:
        """Show this much of a bar, and the time that is left."""
        self.share = share
        self.words = f"{self._what}: {self._pace.words(share, even)}"
        self._progress.come_to(share, even)

    def say(self, words: str) -> None:
        """One line."""
        self._progress.say(words)


Screen = Callable[[], tuple[Window | PageWindow, Panel | PagePanel]]


def own_window() -> tuple[Window, Panel]:
    """A window of this machine's screen."""
    panel = Panel()
    return Window("Palpo", WIDTH, HEIGHT, panel), panel


CELL = 0.02
"""Width of a place in the picture that counts as one, in its heights."""


class Desk:
    """Someone at a window. Raises RenderUnavailable where there can be no window or panel."""

    def __init__(
        self, progress: Progress, knob: ViewKnob | None = None, headset: Tracking | None = None,
        screen: Screen = own_window,
    ) -> None:  # fmt: skip
        """knob: what turns the view beside the pointer; it is closed with the window.

        headset: whether one is used, and how. screen: makes what is looked at, and its panel.
        """
        self.progress = Told(progress)
        self._knob, self._framed = knob, time.perf_counter()
        self.window, self.panel = screen()
        self.controls = Controls(Camera())
        self.headset: Headset | None = None
        if headset is not None:
            try:
                self.headset = Headset(headset)
            except BaseException:
                self.window.close()
                raise
            self.window.wear(self.headset)
        self.messages: list[str] = []
        self.help = self.closing = False
        self._state = SceneState(np.zeros((0, 3)))
        self._geometry = make_geometry([], self._state.vertices)
        self._status: tuple[str, Level] = "", "plain"
        self._ghost: Ghost | None = None
        """The tool of a recording, to be shown beside."""
        self._way = np.zeros((0, 3))
        """Where the scene's own path leads what is held [m]."""
        self._seen_from: object = None
        """The view that `_last_seen` is of; None where the scene is another one."""
        self._last_seen = np.zeros((0, 2))
        self.window.show(self._geometry, self._state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.headset is not None:
            self.headset.close()
        self.window.close()
        if self._knob is not None:
            self._knob.close()

    # ---- one frame

    def _glide(self) -> None:
        """Let the knob turn the view; say once that it was lost."""
        now, knob = time.perf_counter(), self._knob
        seconds, self._framed = now - self._framed, now
        if knob is None:
            return
        knob.turn(self.controls, min(seconds, LONGEST))
        if knob.lost:
            self._say(knob.lost)
            knob.close()
            self._knob = None

    def _frame(self, state: SceneState) -> None:
        self._glide()
        asked: list[Request] = []
        self.window.frame(
            state,
            self.controls,
            lambda: asked.extend(self.panel.draw(self._panel_state(state))),
            None if self._ghost is None else self._ghost.at(state.time),
        )
        for request in asked:
            self.controls.ask(request)
        if self.headset is not None and self.headset.lost:
            self._say(self.headset.lost)
            self.headset.close()
            self.headset = None
            self.window.wear(None)

    def _panel_state(self, state: SceneState) -> PanelState:
        """What the panel shows."""
        raise NotImplementedError

    def _seen(self) -> NDArray[np.float64]:
        """Where the bodies are in the picture, and where the scene's own path leads what is held.

        At rest, so that the legend stays where it is.
        """
        view = self.controls.camera, self.window.scene_size
        if self._seen_from != view:
            solid = [self._geometry.rest[d.span] for d in self._geometry.drawables if d.kind != "plane"]
            self._seen_from = view
            self._last_seen = evenly(self._places(np.vstack([*solid, self._way])), CELL)
        return self._last_seen

    def _places(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where points (n, 3) [m] are in the picture, right and down, in shares of its height (n, 2)."""
        width, height = self.window.scene_size
        return self.controls.camera.project(points, width, height) / height

    def _legend(self, state: SceneState) -> list[Entry]:
        camera, overlays, height = self.controls.camera, self.controls.overlays, self.window.size[1]
        scale = self.window.arrow_scale
        entries = legend_entries(self._geometry, state, camera, overlays, scale, height, self.panel.em)
        if self._ghost is not None and overlays.ghost:
            entries.append(Entry("square", "tool of the recording", palette.GHOST))
        return entries

    def _haunt(self, ghost: Ghost | None) -> None:
        """Show this tool beside the scene from now on; after the scene itself."""
        self._ghost = ghost
        self.window.haunt(None if ghost is None else ghost.geometry)

    # ---- what is asked for

    def _heed(self) -> None:
        """Answer the requests of keys, pointer and panel."""
        for request in self.controls.requests():
            try:
                self._answer(request)
            except Exception as error:
                if not is_refusal(error):
                    raise
                self._say(str(error))
        self.closing = self.closing or self.window.should_close

    def _answer(self, request: Request) -> None:
        """What every desk can do."""
        match request.kind:
            case "quit":
                self.closing = True
            case "help":
                self.help = not self.help
            case "fullscreen":
                self.window.toggle_fullscreen()
            case "screenshot":
                self._say(f"screenshot {self._screenshot()}")

    @property
    def _name(self) -> str:
        """What files made here are called after."""
        return "palpo"

    def _screenshot(self) -> Path:
        path = named("screenshot", self._name, "png")
        Image.fromarray(self.window.screenshot()).save(path)
        return path

    def _say(self, words: str) -> None:
        self.messages.append(words)
        del self.messages[:-SAID]
        self.progress.say(words)


def give_way() -> None:
    """Let this thread, and those that it starts, wait for others, where threads have priorities."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), GIVING_WAY)


def named(what: str, scene: str, suffix: str) -> Path:
    """A new file below `out`, by scene and time."""
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return folder / f"{what}-{Path(scene).stem}-{stamp}.{suffix}"
