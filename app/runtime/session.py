"""A run: three loops in threads, or the same steps in lock-step.

The servo has a thread of its own that holds no GIL, or the device's scheduler; the slow loop has a Python
thread; the main thread looks at what there is to see, waits for the end and listens to signals. Whatever ends
the run, an error in any thread included, the servo fades the force before it stops.
"""

import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.compile_ahead import compile_ahead
from palpo.app.cli.progress import Progress, Silent
from palpo.app.cli.refusal import account
from palpo.app.devices.device import Device, ServoDriver, Speaking
from palpo.app.devices.hands import Paths, chosen, drive, further_hands, open_further
from palpo.app.devices.protection import device_spec, limits_of, workspace_of
from palpo.app.report.album import Album
from palpo.app.report.outcome import Outcome, measured, outcome_of, process_age, warnings_of
from palpo.app.report.trace import RingTrace
from palpo.app.runtime import live
from palpo.app.runtime.endings import FADE, Endings, ending_of, errors_told
from palpo.app.runtime.meta import meta_of
from palpo.app.runtime.notes import Notes
from palpo.app.runtime.options import Options
from palpo.app.runtime.pacing import Pacer, pacers_of
from palpo.app.runtime.problem_export import ProblemExport
from palpo.app.runtime.rigs import Rig
from palpo.app.runtime.slow_thread import SlowThread, lock_step_run, step_columns, step_times
from palpo.app.systems.system import check_kind, make_rig
from palpo.config.load import load_scene
from palpo.config.schema.scene import BaseScene
from palpo.haptics.control import (
    finished_reason,
    grant_ticks,
    mute_servo,
    request_pause,
    request_stop,
    take_orientation,
    tick_count,
)
from palpo.haptics.device import VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.drivers import servo_baseline, servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.reasons import RUNNING, STOP_EMERGENCY, STOP_REQUESTED
from palpo.haptics.recording import Recorder
from palpo.haptics.row import columns_of
from palpo.haptics.servo import Servo
from palpo.physics.exchange.snapshot import SceneState
from palpo.physics.numerics.arithmetic import arithmetic
from palpo.physics.numerics.compilations import COMPILATIONS

BASELINE = 0.5
"""Seconds that the bare clock is measured for before a run in threads, or half the run if that is shorter."""
PATIENCE = 5.0
"""Seconds that a thread may take to end."""
SWITCH = 2e-4
"""Seconds for which a Python thread may hold the GIL while another waits; the usual 5 ms are too long."""
BATCH = 2000
"""Ticks in lock-step between two times that the servo's ring is emptied."""
ENDLESS = sys.maxsize
"""Ticks of a run that lasts until somebody ends it."""

Watch = Callable[[SceneState, bool], None]
"""Called from the main thread again and again while a run lasts: the newest frame, and whether it is new."""


Launch = Callable[[Callable[[], object]], object]


class Session:
    """One run: `prepare`, then `run`. Raises ConfigError, InputError or HapticsError for bad input."""

    def __init__(
        self, options: Options, progress: Progress | None = None, spec: BaseScene | None = None,
        since: float | None = None,
    ) -> None:  # fmt: skip
        """spec: a scene that was loaded before, of which the options have but the name.

        since: when the operator chose it (`time.perf_counter`), where the process began before.
        """
        self.options, self.progress = options, progress or Silent()
        self.spec: BaseScene = spec or load_scene(options.scene, options.overrides)
        self.kind = check_kind(self.spec, options.interface, options.lock_step)
        if options.duration is not None and not options.duration > 0.0:
            raise HapticsError(f"--duration {options.duration:g}: give a positive number of seconds")
        self.export = ProblemExport(
            options.export, options.export_at, options.lock_step, self.spec.rates.servo_hz
        )
        self.choices = chosen(self.spec, options, options.further)
        self.choice = self.choices[0]
        self.device = device_spec(self.spec)
        self._figures: list[DeviceSpec] = []
        self.first_tick, self.scheduler = math.nan, "the servo was not started"
        self._since = since
        self.paused = False
        self.names: tuple[str, ...] = ()  # parts of a slow step that are timed; without a clock none is
        self.recorder: Recorder | None = None
        self.recordings: list[Path] = []
        self._notes = Notes(self.progress)
        self._broken = self._why = ""
        self._open = ExitStack()
        self._endings = Endings(self.end, lambda: finished_reason(self.rig.servo) != RUNNING)

    @property
    def title(self) -> str:
        """The devices, for people."""
        return " and ".join(choice.title for choice in self.choices)

    @property
    def state(self) -> str:
        """What whoever holds a device should do or know now; empty while all is well."""
        told = next((choice.state for choice in self.choices if choice.state), "")
        compiling = f"compiling {COMPILATIONS.now}" if COMPILATIONS.now else ""
        return told or compiling or (self.rig.doing if hasattr(self, "rig") else "")

    @property
    def pointed(self) -> Servo | None:
        """The servo of the hand that the window's pointer moves, if it does; once there is a rig."""
        choice, servo = self.taught
        return servo if choice.pointed else None

    @property
    def turned(self) -> bool:
        """Whether somebody turns the first hand's device, and not a pointer or a script."""
        return self.choice.live and not self.choice.pointed

    @property
    def taught(self) -> tuple[Device, Servo]:
        """The device by which somebody takes a tool here, and its servo: the pointer, or the first."""
        servos = (self.rig.servo, *self.rig.servo.led)
        hands = list(zip(self.choices, servos, strict=False))
        return next((hand for hand in hands if hand[0].pointed), hands[0])

    @property
    def notes(self) -> list[str]:
        """What the device and the threads had to say, with how often each was said."""
        return self._notes.all()

    def prepare(self) -> None:
        """Open the device, build the scene, compile, measure the bare clock, open the recording."""
        try:
            self._prepare()
        except BaseException:
            self._open.close()
            raise

    def leave(self) -> None:
        """Give back what `prepare` opened, where there will be no run."""
        self.rig.low.close()
        self.record(None)
        self._open.close()

    def _prepare(self) -> None:
        hardware = any(choice.hardware for choice in self.choices)
        with self.progress.stage("opening the device") if hardware else nullcontext():
            for choice in self.choices:
                choice.heard = self.progress.say
            self.device = self.choice.ready(self.spec, self._open)
            self._figures = open_further(self.spec, self.choices, self._open)
        self._soften()
        compile_ahead(self.spec, self.progress)
        arithmetic()  # asked now: a recording may begin while the servo runs
        self.rig = self._make(self.progress)
        path = self._path
        duration, rate = self.options.duration, self.spec.rates.servo_hz
        if duration is not None:
            self.ticks = max(1, round(duration * rate))
        else:
            live = any(choice.live for choice in self.choices)
            self.ticks = ENDLESS if self.options.window or live else path.ticks
        pacer, *others = self._pacers(self.rig) if self.options.lock_step else self._warm_up()
        for sentence in self.rig.mesh_errors:
            self.progress.say(sentence)
        self.baseline: dict[str, Any] = {}
        if self.options.baseline and not self.options.lock_step:
            seconds = min(BASELINE, 0.5 * self.ticks / rate)
            with self.progress.stage("measuring the bare clock"):
                self.baseline = servo_baseline(max(1, round(seconds * rate)), rate)
        self.visual = self.rig.visual
        self.visual.timed = not self.options.lock_step
        self.visual.follow_servo()
        self.album = Album(self.ticks / rate)
        self.slow = SlowThread(self.rig, self.names, path=path, pacer=pacer, others=others)
        self.trace = RingTrace(self.rig.servo)
        if self.options.record is not None:
            self.record(self.options.record)

    def _soften(self) -> list[str]:
        """Keep the couplings within what the devices render, and say so; the changes that this needs."""
        self.spec, changes, said = live.softened(self.spec, [self.device, *self._figures])
        for words in said:
            self._notes.add_once(words)
        return changes

    def _make(self, progress: Progress | None = None) -> Rig:
        """A rig at rest."""
        self._path = paths = Paths()

        def device_at(held: NDArray[np.float64]) -> VirtualDevice:
            device, path = self.choice.make(self.spec, held)
            paths.add(path)
            return device

        workspace, limits = workspace_of(self.spec), limits_of(self.spec, self.device)
        threads = not self.options.lock_step
        return make_rig(
            self.spec, self.kind, device_at, workspace, limits, threads, self.choice.rebased, progress,
            further_hands(self.spec, self.choices, paths, self._figures),
        )  # fmt: skip

    def _warm_up(self) -> list[Pacer]:
        """Run another rig, so that nothing is slow for being the first; what chooses each slow rate."""
        warm = self._make()
        warm.warm_up(self.progress)
        self.names = tuple(warm.low.times.parts)
        pacers = self._pacers(warm)
        for pacer, times in zip(pacers, step_times(warm), strict=True):
            pacer.begin(times)
            self.progress.say(pacer.words())
        warm.low.close()
        return pacers

    def _pacers(self, rig: Rig) -> list[Pacer]:
        """What chooses the slow rates of a rig; in lock-step nothing does."""
        return pacers_of(self.spec, rig.lows, free=not self.options.lock_step)

    def meta(self) -> dict[str, Any]:
        """What a recording must hold so that the run can be repeated."""
        titles = [choice.title for choice in self.choices]
        ticks = None if self.ticks == ENDLESS else self.ticks
        return meta_of(self.options, self.spec, self.kind, titles, [self.device, *self._figures], ticks)

    def run(self, watch: Watch | None = None, launch: Launch = lambda start: start()) -> Outcome:
        """Run to the end; the outcome's status says how it ended. What `watch` raises ends the run, too.

        launch: calls what starts a thread, in the thread whose priority the new one shall have.
        """
        try:
            with self._endings, errors_told(self._break):
                if self.options.lock_step:
                    self._in_lock_step(watch)
                else:
                    self._in_threads(watch, launch)
            columns = self.trace.finish()
            self.export.take_last(self.rig)
        finally:
            self.leave()
        return self._outcome(columns)

    # ---- what an operator may do meanwhile, from the main thread

    def change(self, key: str, value: object) -> None:
        """Change a live key of the scene from the next slow step on; raises ConfigError if it cannot be."""
        text = live.change_text(self.spec, key, value)
        self.spec = live.changed(self.spec, text)
        softer = self._soften()
        # a device that is to feel more of the scene meets a coupling that is soft enough already
        for asked in (*softer, text):
            if asked in softer or not any(live.same_key(text, other) for other in softer):
                self.slow.ask(asked)

    def pause(self, on: bool) -> None:
        """Fade the force and stop the scene's time, or go on."""
        self.paused = on
        request_pause(self.rig.servo, on)

    def mute(self, on: bool) -> None:
        """Leave out vibrations and sounds, or not."""
        mute_servo(self.rig.servo, on)

    def align(self) -> None:
        """Take how each device is held now for neutral: what it holds goes over to where it is at rest."""
        for servo in (self.rig.servo, *self.rig.servo.led):
            take_orientation(servo)

    def step_once(self) -> int:
        """One slow period, as long as it is now, of a scene whose time stands still; its ticks."""
        ticks = self.slow.budget.period
        grant_ticks(self.rig.servo, ticks)
        return ticks

    def end(self, emergency: bool = False) -> None:
        """Fade the force and end the run; within milliseconds in an emergency."""
        request_stop(self.rig.servo, STOP_EMERGENCY if emergency else STOP_REQUESTED)

    def record(self, path: Path | None) -> None:
        """Record to this file from now on, or no longer; raises HapticsError if it cannot be written."""
        columns = columns_of(1 + len(self.rig.servo.led))
        steps = step_columns(self.names, several=len(self.rig.lows) > 1)
        new = None if path is None else Recorder(path, self.meta(), columns, steps)
        self.slow.recorder = new
        old, self.recorder = self.trace.record(new), new
        if new is not None:
            self.recordings.append(new.path)
        if old is not None:
            old.append_event(int(tick_count(self.rig.servo)), self._ending()[0])
            old.close()
            self._check(old)

    def _check(self, recorder: Recorder | None) -> None:
        """Say once why a recording stopped."""
        if recorder is not None and recorder.error:
            self._notes.add_once(recorder.error)

    # ---- the two drivers

    def _in_threads(self, watch: Watch | None, launch: Launch) -> None:
        """The servo, the slow loop, and this thread as the one that looks."""
        rig, slow = self.rig, self.slow
        # only a state that was kept begins in a pause
        if not launch(lambda: slow.first(kept=self.paused)):
            return
        # the slow loop gives the GIL up at every compiled call, and waits so long for it beside a busy thread
        sys.setswitchinterval(SWITCH)
        self.trace.start()
        servo = drive(self.choices, rig.servo)
        try:
            launch(servo.start)
            launch(slow.start)
            while servo.running and not tick_count(rig.servo):
                time.sleep(1e-3)
            if self._since is None:
                self.first_tick, after = process_age(), "the start"
            else:
                self.first_tick, after = time.perf_counter() - self._since, "the choice"
            self.progress.say(f"first tick {self.first_tick:.1f} s after {after}")
            self._look_on(servo, watch)
        finally:
            self.scheduler = servo.scheduler
            servo.stop()
            if not servo.join(self.spec.safety.fade_out + FADE):
                self._notes.add("the servo did not end in time: let go, the force on the hand is not known")
                servo.join(PATIENCE)
            slow.join(PATIENCE)
            self._hear(servo)
            self._why = servo.reason
        self.album.look(self.visual.latest()[0], self.rig)

    def _look_on(self, servo: ServoDriver, watch: Watch | None) -> None:
        """Until the servo ends: keep pictures, show them, ask it to stop when the run is over or must be."""
        while servo.running:
            state, fresh = self.visual.latest()
            if fresh:
                self.album.look(state, self.rig)
            self._check(self.recorder)
            over = tick_count(self.rig.servo) - self.rig.behind >= self.ticks
            if over or self.slow.failure or self._broken:
                request_stop(self.rig.servo, STOP_REQUESTED)
            self._hear(servo)
            wait, stream = 1.0 / self.spec.rates.render_hz, self.options.stream
            if stream is not None:
                stream.offer(state, float(self.rig.servo.limit_state.gate["gain"][0]))
                wait = min(wait, stream.wait)
                for words in stream.said:
                    self._notes.add_once(words)
            if watch is not None:
                watch(state, fresh)
            else:
                time.sleep(wait)

    def _hear(self, servo: ServoDriver) -> None:
        """Take what the device has to say."""
        if isinstance(servo, Speaking):
            for words, times in servo.events().items():
                self._notes.add(words, times)

    def _in_lock_step(self, watch: Watch | None) -> None:
        """Both rates in this thread, then the fade."""
        rig = self.rig

        def make(n: int) -> int:
            return self.export.run(rig, n)

        def each() -> None:
            state, fresh = self.visual.latest()
            if fresh:
                self.album.look(state, self.rig)
            if watch is not None:
                watch(state, fresh)
            if rig.lock.tick % BATCH < rig.ratio:
                self.trace.take()

        fade = round(self.spec.safety.fade_out * self.spec.rates.servo_hz) + 1
        try:
            lock_step_run(rig, self.slow, self.ticks, make, each)
            request_stop(rig.servo)
            lock_step_run(rig, self.slow, rig.lock.tick + fade, make, each)
        except (FloatingPointError, RuntimeError) as error:
            self.slow.failure = f"the slow loop stopped: {account(error)}"
            request_stop(rig.servo)
            servo_run(rig.servo, fade)

    # ---- the end

    def _break(self, words: str) -> None:
        """An error of a thread ends the run; the first one is told."""
        self._broken = self._broken or words

    def _ending(self) -> tuple[str, int]:
        """Why the run ended, and the exit status for it."""
        failure, reason = self.slow.failure or self._broken, int(finished_reason(self.rig.servo))
        return ending_of(reason, failure, self._endings.number, self._why)

    def _outcome(self, columns: Any) -> Outcome:
        rig = self.rig
        result: dict[str, Any] = {
            "title": self.spec.title,
            "scene": self.options.scene,
            "device": self.title,
            "interface": self.kind,
            "driver": "lock-step" if self.options.lock_step else "threads",
            "latency": rig.latency,
            "duration_s": len(columns["tick"]) * rig.dt,
        }
        result |= measured(rig, self.slow, columns)
        reason, status = self._ending()
        result |= {"exit_reason": reason, "exit_status": status}
        if self.baseline:
            result["clock_baseline_us"] = self.baseline.pop("clock_baseline_us")
            result["clock_baseline"] = self.baseline
        result["warnings"] = warnings_of(rig, self.slow, result) + self.notes
        if not self.options.lock_step:
            result["first_tick_s"] = self.first_tick
            result["scheduler"] = self.scheduler
            if not self.choice.schedules and not self.scheduler.startswith("SCHED_FIFO granted"):
                result["warnings"].insert(0, f"{self.scheduler[0].upper()}{self.scheduler[1:]}.")
        self.export.write(rig, self.options.scene, self.spec.title, result)
        if self.recordings:
            result["recording"] = ", ".join(map(str, self.recordings))
        return outcome_of(result, rig, self.spec, self.album, columns)


def run(options: Options, progress: Progress | None = None) -> Outcome:
    """Prepare and run a session."""
    session = Session(options, progress)
    session.prepare()
    return session.run()
