"""The operator's desk: one window with its panel, over one session after another.

The window belongs to the main thread and reads snapshots only; what the operator asks for goes to the
session. A session is prepared in a thread of its own while the window goes on drawing. Drawing waits for the
loops where the system can be told so: on a machine without a graphics card it would take a core from them.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import is_refusal
from palpo.app.report.draw import camera_of, near_points
from palpo.app.report.outcome import Outcome
from palpo.app.runtime.cards import cards
from palpo.app.runtime.endings import SIGNALLED
from palpo.app.runtime.readings import Readings
from palpo.app.runtime.session import Options, Session
from palpo.app.visual.rest import rest_picture
from palpo.haptics.device import send_target
from palpo.haptics.servo import is_frozen
from palpo.haptics.workspace import orientations_to_device, positions_to_device
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState, make_geometry
from palpo.render.camera import Camera
from palpo.render.controls import Controls, Hand, key_list
from palpo.render.legend import Entry, legend_entries
from palpo.render.panel import Panel
from palpo.render.panel_state import Level, PanelState, Waiting
from palpo.render.requests import Request
from palpo.render.window import Window

WIDTH, HEIGHT = 1280, 800
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
SAID = 6
"""Messages that the panel keeps."""
RUNNING = "running"
SHOWN_FIRST = "a simulated hand shows it, then it is yours"
YOURS = "yours: drag with the left button"
"""What stands in the panel while a demo runs."""
WAITING_HZ = 5.0
"""Pictures a second, at most, until the loops run: what compiles needs the processor."""
GIVING_WAY = 4
"""Niceness of the thread that draws."""


class Told(Progress):
    """Progress that the window can show as well: `words` is the present stage, `share` what is done of it."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.words, self.share = progress, "", math.nan

    @contextmanager
    def stage(self, what: str) -> Iterator[None]:
        """Show `what` while the block runs."""
        self.words, self.share = what, math.nan
        with self._progress.stage(what):
            yield

    def come_to(self, share: float) -> None:
        """Show this much of a bar."""
        self.share = share

    def say(self, words: str) -> None:
        """One line."""
        self._progress.say(words)


class Operator:
    """Someone at the window. Raises RenderUnavailable where there can be no window or panel."""

    def __init__(self, progress: Progress) -> None:
        self.progress = Told(progress)
        # threads that begin in it keep their priority when this one gives way
        self._launcher = ThreadPoolExecutor(1, "launcher")
        self._launcher.submit(int).result()
        give_way()
        self.panel = Panel()
        self.window = Window("Palpo", WIDTH, HEIGHT, self.panel)
        self.controls = Controls(Camera())
        self.messages: list[str] = []
        self.help = self.closing = self._frozen = False
        self.next: Options | None = None
        """What to run after the present session."""
        self._cards, self._choosing = cards(), False
        self._scenes = tuple(sorted(card.name for card in self._cards))
        self._shown = ""
        """The scene that the camera was turned to."""
        self._waiting = False
        self._session: Session | None = None
        self._readings: Readings | None = None
        self._state = SceneState(np.zeros((0, 3)))
        self._geometry = make_geometry([], self._state.vertices)
        self._status: tuple[str, Level] = "", "plain"
        self._running = RUNNING
        self.window.show(self._geometry, self._state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.window.close()
        self._launcher.shutdown()

    # ---- one session after another

    def launch(self) -> Outcome | None:
        """Let the operator choose scene after scene, until the window closes; the last outcome, if any."""
        self._choosing = True
        self._status = "choose a scene", "plain"
        first = self._following()
        return None if first is None else self._go_on(first)

    def run(self, options: Options, then: Options | None = None) -> Outcome:
        """Run sessions until the operator quits, or one ends that had a duration; the last one's outcome.

        then: what follows the first session that ends by itself, to be led by the operator.
        """
        for keys, words in key_list(True):
            self.progress.say(f"  {keys:<24}{words}")
        if then is not None:
            self._running = SHOWN_FIRST
            self._say(SHOWN_FIRST)
        return self._go_on(self._prepared(Session(options, self.progress)), then)

    def _go_on(self, session: Session, then: Options | None = None) -> Outcome:
        """This session, and those that follow it."""
        while True:
            self._attend(session)
            done = session.run(self._watch, lambda start: self._launcher.submit(start).result())
            done.result["window"] = self._measured()
            if self.closing or done.status > SIGNALLED:
                return done
            if self.next is None and then is not None and not done.status:
                self.next, then, self._running = then, None, YOURS
                self._say(YOURS)
            if self.next is None and session.options.duration is not None and not self._choosing:
                return done
            self._rest(done)
            following = self._following()
            if following is None:
                return done
            session = following

    def _measured(self) -> dict[str, object]:
        """Frames a second, time to draw one, and how old its state is when it is shown [ms]."""
        window = self.window
        return {
            "renderer": window.renderer,
            "frames_hz": window.frame_rate,
            "draw_ms": window.draw_ms,
            "latency_ms": {"p50": window.latency.p50, "p99": window.latency.p99},
        }

    def _following(self) -> Session | None:
        """The session that the operator wants next, None to quit; one that is refused is forgotten."""
        while not self.closing:
            if self.next is None:
                self._frame(self._state)
                self._heed()
                continue
            options, self.next = self.next, None
            try:
                return self._prepared(Session(options, self.progress))
            except Exception as error:
                if not is_refusal(error):
                    raise
                self._say(str(error))
                self._status = "that scene cannot be run", "bad"
        return None

    def _prepared(self, session: Session) -> Session:
        """Prepare in a thread, while the window shows the scene at rest; raises what that raises."""
        self._readings, self.progress.words = None, "loading"
        self._show(session, *rest_picture(session.spec))
        ready: Future[None] = self._launcher.submit(session.prepare)
        self._waiting = True
        self.window.at_most(WAITING_HZ)
        while not ready.done():
            self._status = self.progress.words, "warn"
            self._frame(self._state)
            self._heed()
        self._waiting = False
        ready.result()
        return session

    def _attend(self, session: Session) -> None:
        """Look at this session from now on."""
        self._show(session, session.visual.geometry, SceneState(session.visual.vertices.copy()))
        self._session, self._readings = session, Readings(session)
        drives = session.choice.pointed
        self.controls.drives_tool, self.controls.follow = drives, None
        self.controls.take_hold(session.rig.held, UPRIGHT)
        self.controls.follow = self._lead if drives else None
        self._status = self._running, "good"

    def _show(self, session: Session, geometry: SceneGeometry, rest: SceneState) -> None:
        """Draw this scene from now on; another one than before from its own side."""
        if self._shown != session.options.scene:
            self._shown = session.options.scene
            camera = camera_of(geometry, [rest], session.spec.view, WIDTH / HEIGHT)
            self.controls = Controls(camera, self.controls.overlays)
        self._geometry, self._state = geometry, rest
        self.window.show(geometry, rest)

    def _lead(self, hand: Hand) -> None:
        """The mouse leads the simulated hand."""
        assert self._session is not None
        servo = self._session.rig.servo
        position = positions_to_device(servo.workspace, hand.position[None])[0]
        orientation = orientations_to_device(servo.workspace, hand.orientation[None])[0]
        send_target(servo.device, position, orientation, hand.buttons)

    def _resume(self, session: Session) -> None:
        """After a pause the mouse goes on from where the tool is."""
        frozen, servo = is_frozen(session.rig.servo), session.rig.servo
        if self._frozen and not frozen:
            self.controls.take_hold(servo.port.position.copy(), servo.port.orientation.copy())
        self._frozen = frozen

    def _rest(self, done: Outcome) -> None:
        """The session is over and the force is off; its last state stays."""
        self._state = self._state.copy()
        words, bad = done.result["exit_reason"], bool(done.status)
        self._status = f"{words}; the force is off, r resets", "bad" if bad else "warn"
        self._say(words)

    # ---- one frame

    def _watch(self, state: SceneState, fresh: bool) -> None:
        """Called by the session while it runs."""
        session = self._session
        assert session is not None
        session.visual.strain = self.controls.overlays.strain
        self._state = state
        self.window.at_most(session.slow.pacer.rung.pictures_hz)
        self._resume(session)
        if fresh:
            width, height = self.window.scene_size
            self.controls.keep(near_points(self._geometry, state), width / height)
        self._frame(state)
        self._heed()
        if self.closing or self.next is not None:
            session.end()

    def _frame(self, state: SceneState) -> None:
        asked: list[Request] = []
        self.window.frame(
            state, self.controls, lambda: asked.extend(self.panel.draw(self._panel_state(state)))
        )
        for request in asked:
            self.controls.ask(request)

    def _panel_state(self, state: SceneState) -> PanelState:
        shown = PanelState(
            scene=self._shown,
            scenes=self._scenes,
            cards=self._cards if self._choosing else (),
            status=self._status[0],
            status_level=self._status[1],
            keys=key_list(self.controls.drives_tool),
            help=self.help,
            messages=tuple(self.messages[-SAID:]),
            overlays=self.controls.overlays,
            waiting=Waiting(self.progress.words, self.progress.share) if self._waiting else None,
        )
        session, readings = self._session, self._readings
        if session is None or readings is None:
            return shown
        readings.look()
        return replace(
            shown,
            device=session.choice.title,
            elapsed=readings.elapsed,
            paused=session.paused,
            frozen=readings.frozen,
            light=readings.light(),
            recording=session.recorder is not None and session.recorder.error is None,
            recording_path=str(session.recorder.path) if session.recorder else "",
            force=readings.force(),
            force_limit=readings.limit(),
            loops=readings.loops(self.window),
            readings=readings.groups(state),
            knobs=readings.knobs(),
            plots=readings.plots(),
            messages=(*session.notes[-SAID:], *self.messages)[-SAID:],
            legend=tuple(self._legend(state)),
            seen=self._seen(),
        )

    def _seen(self) -> NDArray[np.float64]:
        """Where the bodies are in the picture; at rest, so that the legend stays where it is."""
        solid = [self._geometry.rest[d.span] for d in self._geometry.drawables if d.kind != "plane"]
        width, height = self.window.scene_size
        return self.controls.camera.project(np.vstack(solid), width, height) / height

    def _legend(self, state: SceneState) -> list[Entry]:
        camera, overlays, height = self.controls.camera, self.controls.overlays, self.window.size[1]
        scale = self.window.arrow_scale
        return legend_entries(self._geometry, state, camera, overlays, scale, height, self.panel.em)

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
        session = self._session if self._readings is not None else None
        match request.kind:
            case "quit":
                self.closing = True
            case "help":
                self.help = not self.help
            case "fullscreen":
                self.window.toggle_fullscreen()
            case "screenshot":
                self._say(f"screenshot {self._screenshot()}")
            case "scenes":
                self._choosing = not self._choosing
                if self._choosing and session is not None:
                    # the cards hide what takes the force off
                    session.end()
            case "scene":
                before = self._again(self._session) if self._session is not None else Options("", window=True)
                self.next = replace(before, scene=str(request.value), overrides=())
                self._choosing = False
            case "reset" if self._session is not None:
                self.next = self._again(self._session)
            case "set" if session is not None:
                session.change(request.key, request.value)
            case "emergency" if session is not None:
                session.end(emergency=True)
            case "pause" if session is not None:
                session.pause(not session.paused)
                self._status = (
                    ("paused; space goes on", "warn") if session.paused else (self._running, "good")
                )
            case "step" if session is not None and session.paused:
                session.step_once()
            case "record" if session is not None:
                self._record(session)

    @staticmethod
    def _again(session: Session) -> Options:
        """The same with what was changed meanwhile; a recording is made once."""
        kept = session.spec.origin.overrides
        return replace(session.options, overrides=kept, record=None, baseline=False)

    def _record(self, session: Session) -> None:
        if session.recorder is not None:
            path = session.recorder.path
            session.record(None)
            self._say(f"recorded {path}")
            return
        session.record(_named("recording", session.options.scene, "h5"))

    def _screenshot(self) -> Path:
        path = _named("screenshot", self._session.options.scene if self._session else "palpo", "png")
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


def _named(what: str, scene: str, suffix: str) -> Path:
    """A new file below `out`, by scene and time."""
    folder = Path("out")
    folder.mkdir(exist_ok=True)
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return folder / f"{what}-{Path(scene).stem}-{stamp}.{suffix}"
