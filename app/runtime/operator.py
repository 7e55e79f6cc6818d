"""The operator's desk: one window with its panel, over one session after another.

The window belongs to the main thread and reads snapshots only; what the operator asks for goes to the
session. A session is prepared in a thread of its own while the window goes on drawing. Drawing waits for the
loops where the system can be told so: on a machine without a graphics card it would take a core from them.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import is_refusal
from palpo.app.report.draw import camera_of, near_points
from palpo.app.report.outcome import Outcome
from palpo.app.runtime.cards import cards
from palpo.app.runtime.desk import HEIGHT, SAID, WIDTH, Desk, Screen, give_way, named, own_window
from palpo.app.runtime.editing import Editing
from palpo.app.runtime.endings import SIGNALLED
from palpo.app.runtime.first_steps import Taking, how_to_take
from palpo.app.runtime.keeping import Kept, go_back, keep, options_again, scene_text, write_new
from palpo.app.runtime.knob import ViewKnob
from palpo.app.runtime.live import live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.readings import Readings
from palpo.app.runtime.reel import Ghost, reel_of
from palpo.app.runtime.session import Session
from palpo.app.runtime.sound import Hearing
from palpo.app.systems.system import system_of
from palpo.app.visual.held import held_name, shape_of, swept
from palpo.app.visual.nearness import Nearness
from palpo.app.visual.picking import picked
from palpo.app.visual.rest import rest_picture
from palpo.config.words import Refusal
from palpo.haptics.control import is_frozen
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState
from palpo.render.controls import Controls, key_list
from palpo.render.headset import Tracking
from palpo.render.panel_state import Hint, Level, PanelState, Waiting
from palpo.render.requests import Request

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
RUNNING = "running"
SHOWN_FIRST = "watch first; then it is your turn"
BUILDING = "building the change; the scene runs on"
YOURS = "your turn: drag with the left button"
WATCH = "watch"
"""What stands in the panel while a demo runs."""
WAITING_HZ = 2.0
"""Pictures a second, at most, until the loops run: what compiles needs the processor."""


class Operator(Desk):
    """Someone at the window. Raises RenderUnavailable where there can be no window or panel."""

    def __init__(
        self, progress: Progress, knob: ViewKnob | None = None, headset: Tracking | None = None,
        screen: Screen = own_window,
    ) -> None:  # fmt: skip
        # threads that begin in it keep their priority when this one gives way
        self._launcher = ThreadPoolExecutor(1, "launcher")
        self._launcher.submit(int).result()
        give_way()
        super().__init__(progress, knob, headset, screen)
        self._hearing = Hearing()
        self._muted = self._frozen = False
        self.next: Options | None = None
        """What to run after the present session."""
        self._cards, self._choosing = cards(), False
        self._blank = Options("", window=True)
        self._scenes = tuple(sorted(card.name for card in self._cards))
        self._shown = ""
        """The scene that the camera was turned to."""
        self._waiting = False
        self._session: Session | None = None
        self._readings: Readings | None = None
        self._held: Drawable | None = None
        """The shape that the hand holds."""
        self._nearness: Nearness | None = None
        self._taking: Taking | None = None
        self._taught: set[str] = set()
        """Devices with which somebody took a tool."""
        self._ghosts: dict[Path, Ghost] = {}
        """By recording."""
        self._kept: Kept | None = None
        self._returning: Kept | None = None
        """The state that `next` begins with."""
        self._keeping = self._resuming = False
        """Whether a state is to be kept, and whether the run is to go on then."""
        self._running = RUNNING
        self._editing = Editing()
        self._coming: tuple[Session, Future[None]] | None = None
        """The scene as it is edited, which is built while the one before runs on."""

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        self._forget()
        self._launcher.shutdown()
        self._hearing.close()

    # ---- one session after another

    def launch(self, blank: Options | None = None) -> Outcome | None:
        """Let the operator choose scene after scene, until the window closes; the last outcome, if any.

        blank: what scenes are run by.
        """
        self._choosing, self._blank = True, blank or self._blank
        self._status = "choose a scene", "plain"
        first = self._following()
        return None if first is None else self._go_on(first)

    def run(self, options: Options, then: Options | None = None) -> Outcome:
        """Run sessions until the operator quits, or one ends that had a duration; the last one's outcome.

        then: what follows the first session that ends by itself, to be led by the operator.
        """
        for words in self.window.told:
            self.progress.say(words)
        if then is not None:
            self._running = SHOWN_FIRST
            self._say(SHOWN_FIRST)
        return self._go_on(self._prepared(Session(options, self.progress)), then)

    def _go_on(self, session: Session, then: Options | None = None) -> Outcome:
        """This session, and those that follow it."""
        while True:
            self._attend(session)
            done = session.run(self._watch, lambda start: self._launcher.submit(start).result())
            done.result["window"] = self.window.figures()
            if self.closing or done.status > SIGNALLED:
                return done
            if self.next is None and then is not None and not done.status:
                self._go(then)
                then, self._running = None, YOURS
                self._say(YOURS)
            over = session.options.duration is not None and not self._choosing
            if self.next is None and self._coming is None and over:
                return done
            self._rest(done)
            following = self._following()
            if following is None:
                return done
            session = following

    def _following(self) -> Session | None:
        """The session that the operator wants next, None to quit; one that is refused is forgotten."""
        while not self.closing:
            if self._coming is not None and self.next is None and self._coming[1].done():
                (session, ready), self._coming = self._coming, None
                if (error := ready.exception()) is None:
                    return session
                self._refused(error)
            if self.next is None:
                self._frame(self._state)
                self._heed()
                continue
            (options, self.next), kept = (self.next, None), self._returning
            self._forget()
            try:
                return self._prepared(Session(options, self.progress, since=time.perf_counter()), kept)
            except Exception as error:
                if not is_refusal(error):
                    raise
                self._say(str(error))
                self._status = "that scene cannot be run", "bad"
                self.next = self._editing.taken_back()
        return None

    def _prepared(self, session: Session, kept: Kept | None = None) -> Session:
        """Prepare in a thread, while the window shows the scene at rest; raises what that raises."""
        self._readings, self.progress.words = None, "loading"
        self._show(session, *rest_picture(session.spec))
        ready: Future[None] = self._launcher.submit(self._prepare, session, kept)
        self._waiting = True
        self.window.at_most(WAITING_HZ)
        while not ready.done():
            self._status = session.state or self.progress.words, "warn"
            self._frame(self._state)
            self._heed()
            for choice in session.choices:
                choice.given_up = self.closing
        self._waiting = False
        ready.result()
        self._editing.before = None
        return session

    def _prepare(self, session: Session, kept: Kept | None) -> None:
        """What can be done in another thread: the recorded tool first, since it may be refused."""
        path = session.options.ghost
        if path is not None and path not in self._ghosts:
            self._ghosts[path] = reel_of(path, self.progress).ghost()
        session.prepare()
        if kept is not None:
            go_back(session, kept)

    def _attend(self, session: Session) -> None:
        """Look at this session from now on."""
        self._show(session, session.visual.geometry, SceneState(session.visual.vertices.copy()))
        self._haunt(self._ghosts[session.options.ghost] if session.options.ghost else None)
        self._session, self._readings = session, Readings(session)
        pointed = session.pointed
        self._held = shape_of(session.visual.geometry, held_name(session.spec))
        drives = pointed is not None and self._held is not None
        choice, _ = session.taught
        self.controls.drives_tool, self.controls.follow = drives, None
        led = pointed is not None and pointed is not session.rig.servo
        self.controls.take_hold(
            pointed.port.position.copy() if led and pointed else session.rig.held, UPRIGHT
        )
        self.controls.follow = None if pointed is None else partial(choice.follow, pointed)
        self._nearness = None if self._held is None else Nearness(session.visual.geometry, self._held)
        told = self._held is None or not choice.taking or choice.word in self._taught
        self._taking = None if told else Taking(session.visual.geometry.length, drives)
        self._keeping = False
        if deaf := self._hearing.begin(session.spec.cues.sound):
            self._say(deaf)
        if self._muted:
            session.mute(True)
        self._status = self._said(session)

    def _said(self, session: Session) -> tuple[str, Level]:
        """What the session is doing."""
        if session.paused:
            return "paused; press space to go on", "warn"
        return self._running if self._held is not None else WATCH, "good"

    def _led_by(self, session: Session) -> str:
        """What leads the scene, for people."""
        if self._held is not None:
            return session.title
        valve = system_of(session.spec).valve_key(session.spec)
        return f"watch: nothing here is held{'; x opens or shuts the valve' if valve else ''}"

    def _show(self, session: Session, geometry: SceneGeometry, rest: SceneState) -> None:
        """Draw this scene from now on; another one than before from its own side."""
        if self._shown != session.options.scene:
            self._editing = Editing()
            self._shown = session.options.scene
            self._way = swept(session.spec, geometry)
            camera = camera_of(geometry, [rest], session.spec.view, WIDTH / HEIGHT, self._way)
            self.controls = Controls(camera, self.controls.overlays)
        if self.headset is not None:
            self.headset.scale = session.spec.workspace.scale
        self._geometry, self._state, self._ghost = geometry, rest, None
        self._seen_from = None
        self.window.show(geometry, rest, held_name(session.spec))

    def _resume(self, session: Session) -> None:
        """After a pause the mouse goes on from where the tool is."""
        frozen, servo = is_frozen(session.rig.servo), session.pointed or session.rig.servo
        if self._frozen and not frozen:
            self.controls.take_hold(servo.port.position.copy(), servo.port.orientation.copy())
        self._frozen = frozen

    def _rest(self, done: Outcome) -> None:
        """The session is over and the force is off; its last state stays."""
        self._state = self._state.copy()
        words, bad = done.result["exit_reason"], bool(done.status)
        self._status = f"{words}; the force is off, press r to reset", "bad" if bad else "warn"
        self._say(words)

    # ---- one frame

    def _watch(self, state: SceneState, fresh: bool) -> None:
        """Called by the session while it runs."""
        session = self._session
        assert session is not None
        session.visual.strain = self.controls.overlays.strain
        self._state = state
        self.window.at_most(session.spec.rates.render_hz)
        self._resume(session)
        if self._coming is not None:
            self._take_over(session, *self._coming)
        elif self._editing.due(time.perf_counter()):
            self._edit(session)
        if session.spec.cues.sound:
            self._hearing.listen(session.rig.servo)
        if self._keeping:
            self._keep(session)
        self._look(session, state, fresh)
        self._frame(state)
        self._heed()
        if self.closing or self.next is not None:
            session.end()

    def _look(self, session: Session, state: SceneState, fresh: bool) -> None:
        """Turn the view to what there is to see, and see whether the tool was taken."""
        controls, (width, height) = self.controls, self.window.scene_size
        if self._nearness is not None and controls.overlays.nearness:
            self._nearness.look(state)
        if fresh:
            controls.keep(near_points(self._geometry, state), width / height)
            if self._held is not None:
                held = state.vertices[self._held.span]
                controls.track(held, state.held_point, width / height)
        if self._taking is not None and not self._taking.done:
            choice, servo = session.taught
            port, pointed = servo.port, choice.pointed
            self._taking.look(
                controls.hand.position if pointed else port.position, pointed and controls.hand.grip
            )
            if self._taking.done:
                self._taught.add(choice.word)

    def _hint(self, session: Session, state: SceneState) -> Hint | None:
        """What the scene is and how to take the tool, until it was taken."""
        if self._taking is None or self._taking.done or session.paused:
            return None
        choice, servo = session.taught
        first = servo is session.rig.servo
        at = state.held_point if first else servo.port.info["held"][0].copy()
        # two pictures have two such places
        one = np.isfinite(at).all() and not self.controls.overlays.side_by_side
        place = self._places(at[None])[0] if one else None
        title, lines = how_to_take(choice.taking, session.spec.title, session.spec.description)
        return Hint(title, lines, None if place is None else (float(place[0]), float(place[1])))

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
            device=self._led_by(session),
            status=session.state or shown.status,
            status_level="warn" if session.state else shown.status_level,
            elapsed=readings.elapsed,
            paused=session.paused,
            frozen=readings.frozen,
            light=readings.light(),
            recording=session.recorder is not None and session.recorder.error is None,
            muted=self._muted,
            handed=session.spec.workspace.handed if session.turned else "",
            kept="" if self._kept is None else f"{self._kept.seconds:.1f} s",
            recording_path=str(session.recorder.path) if session.recorder else "",
            force=readings.force(),
            force_limit=readings.limit(),
            loops=readings.loops(self.window),
            readings=readings.groups(state),
            knobs={**self._editing.groups(), **readings.knobs()},
            plots=readings.plots(),
            messages=(*session.notes[-SAID:], *self.messages)[-SAID:],
            hint=self._hint(session, state),
            legend=tuple(self._legend(state)),
            seen=self._seen(),
        )

    # ---- what is asked for

    def _answer(self, request: Request) -> None:
        session = self._session if self._readings is not None else None
        match request.kind:
            case "scenes":
                self._choosing = not self._choosing
                if self._choosing and session is not None:
                    # the cards hide what takes the force off
                    session.end()
            case "scene":
                old = self._session
                before = self._blank if old is None else options_again(old)
                self._go(replace(before, scene=str(request.value), overrides=(), ghost=None))
                self._choosing = False
            case "reset" if self._session is not None:
                again = options_again(self._session)
                if self._session.recorder is not None:
                    # from its start, which the one so far has not
                    again = replace(again, record=named("recording", again.scene, "h5"))
                self._go(again)
            case "pick" if session is not None:
                self._pick(session, request.value)
            case "set" if self._editing.change(request.key, request.value, time.perf_counter()):
                pass
            case "set" if session is not None:
                session.change(request.key, request.value)
            case "press" if session is not None:
                valve = system_of(session.spec).valve_key(session.spec)
                if valve:
                    key = next(live for live in live_keys(session.spec) if live.key == valve)
                    session.change(valve, next(way for way in key.choices if way != key.value))
            case "emergency" if session is not None:
                self._forget()
                session.end(emergency=True)
            case "pause" if session is not None:
                session.pause(not session.paused)
                self._status = self._said(session)
            case "keep" if session is not None and not self._keeping:
                self._keeping, self._resuming = True, not session.paused
                session.pause(True)
            case "undo":
                if self._kept is None:
                    raise Refusal("there is no kept state; k keeps one")
                self._go(self._kept.options, self._kept)
            case "save" if self._session is not None:
                path = named("scene", self._session.options.scene, "toml")
                write_new(path, scene_text(self._session.spec))
                self._say(f"scene {path}")
            case "mute" if session is not None:
                self._muted = not self._muted
                session.mute(self._muted)
                self._say(f"vibrations and sounds are {'off' if self._muted else 'on'}")
            case "align" if session is not None and session.turned:
                session.align()
                self._say("the tool is as at rest, for how the device is held now")
            case "mirror" if session is not None and session.turned:
                other = "left" if session.spec.workspace.handed == "right" else "right"
                session.change("workspace.handed", other)
                self._say(f"the tool is held in the {other} hand")
            case "step" if session is not None and session.paused:
                session.step_once()
            case "record" if session is not None:
                self._record(session)
            case _:
                super()._answer(request)

    @property
    def _name(self) -> str:
        return self._session.options.scene if self._session else super()._name

    def _go(self, options: Options, kept: Kept | None = None) -> None:
        """Run this next, from its start or from a state that was kept."""
        self.next, self._returning = options, kept

    def _keep(self, session: Session) -> None:
        """Keep the state once the scene stands still, and go on."""
        self._keeping = session.paused
        kept = keep(session, options_again(session)) if session.paused else None
        if kept is not None:
            self._kept, self._keeping = kept, False
            self._say(f"kept the state at {kept.seconds:.1f} s; z goes back to it")
            if self._resuming:
                session.pause(False)

    def _pick(self, session: Session, at: object) -> None:
        """Choose the body at a place of the picture, in shares of its width and height, to change it."""
        assert isinstance(at, tuple)
        if self.controls.overlays.side_by_side:
            raise Refusal("two pictures have two such places; b shows one")
        size = self.window.scene_size
        name = picked(self._geometry, self._state.vertices, self.controls.camera, at, size)
        shape = shape_of(self._geometry, name)
        points = self._geometry.rest[shape.span if shape is not None else slice(0)]
        self._say(self._editing.choose(session.spec, name, self._geometry.length, points))

    def _edit(self, session: Session) -> None:
        """Build the scene anew with what is wanted of the body that is chosen.

        It runs on meanwhile, where nobody holds a device of which there is but one.
        """
        try:
            options = self._editing.apply(session.spec, options_again(session))
            if any(choice.live and not choice.pointed for choice in session.choices):
                self._go(options)
                return
            coming = Session(options, self.progress, since=time.perf_counter())
        except Exception as error:
            if not is_refusal(error):
                raise
            self._say(str(error))
            return
        self._coming = coming, self._launcher.submit(coming.prepare)
        self._status = BUILDING, "warn"

    def _take_over(self, session: Session, coming: Session, ready: Future[None]) -> None:
        """Go on with what is built once it is, or with this session where it cannot be."""
        if not ready.done():
            return
        self._status = self._said(session)
        error = ready.exception()
        if error is None:
            self._editing.before = None
            session.end()
            return
        self._coming = None
        self._refused(error)

    def _refused(self, error: BaseException) -> None:
        """What was built for a change cannot be: say why, and take the change back."""
        if not is_refusal(error):
            raise error
        self._editing.taken_back()
        self._say(str(error))

    def _forget(self) -> None:
        """Give up what is being built for a change: something else is wanted."""
        if self._coming is None:
            return
        (coming, ready), self._coming = self._coming, None
        self._editing.taken_back()

        def leave(done: Future[None]) -> None:
            if not done.cancelled() and done.exception() is None:
                coming.leave()

        ready.cancel()
        ready.add_done_callback(leave)

    def _record(self, session: Session) -> None:
        if session.recorder is not None:
            path = session.recorder.path
            session.record(None)
            self._say(f"recorded {path}")
            return
        session.record(named("recording", session.options.scene, "h5"))
        self._say("recording; for one that can be replayed and filmed, press r to start over")
