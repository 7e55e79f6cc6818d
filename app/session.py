"""A run from the command line: three loops in threads, or the same steps in lock-step.

The servo has a thread of its own that holds no GIL, the slow loop a Python thread, and the main thread looks
at what there is to see, waits for the end and listens to signals.
"""

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app import devices
from app.album import Album
from app.build import build_scene
from app.machine import LIBRARIES, version
from app.outcome import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    TERMINATED,
    Outcome,
    config_text,
    measured,
    process_age,
    series_of,
    warnings_of,
)
from app.progress import Progress, Silent
from app.rig import KINDS, Rig
from app.slow_loop import SlowLoop, lock_step_run, step_columns
from app.trace import Trace
from app.visual import Visual
from config.load import load_scene
from config.schema.scene import SceneSpec
from haptics.errors import HapticsError
from haptics.limits import REASONS, RUNNING, STOP_REQUESTED
from haptics.recording import Recorder
from haptics.row import COLUMNS
from haptics.servo import (
    ServoThread,
    finished_reason,
    request_stop,
    servo_baseline,
    servo_run,
    tick_count,
)
from physics.systems.hold import held_point

BASELINE = 1.0
"""Seconds that the bare clock is measured for before a run in threads, or half the run if that is shorter."""
PATIENCE = 5.0
"""Seconds that a thread may take to end."""
SWITCH = 2e-4
"""Seconds for which a Python thread may hold the GIL while another waits; the usual 5 ms are too long."""
BATCH = 2000
"""Ticks in lock-step between two times that the servo's ring is emptied."""


@dataclass(frozen=True)
class Options:
    """What to run and how; the command line's own words."""

    scene: str
    overrides: tuple[str, ...] = ()
    device: str = "auto"
    unit: str = "m"
    replay_scale: float = 1.0
    duration: float | None = None
    record: Path | None = None
    lock_step: bool = False
    interface: str | None = None
    baseline: bool = True


class Session:
    """One run: `prepare`, then `run`. Raises ConfigError, InputError or HapticsError for bad input."""

    def __init__(self, options: Options, progress: Progress | None = None) -> None:
        self.options, self.progress = options, progress or Silent()
        self.spec: SceneSpec = load_scene(options.scene, options.overrides)
        self.kind = options.interface or self.spec.interface.kind
        if self.kind not in KINDS:
            raise HapticsError(f"--interface {self.kind}: choose one of {', '.join(KINDS)}")
        if self.kind == "monolithic" and not options.lock_step:
            raise HapticsError(
                "--interface monolithic: every body at the servo's rate is no real-time run; add --lock-step"
            )
        if options.duration is not None and not options.duration > 0.0:
            raise HapticsError(f"--duration {options.duration:g}: give a positive number of seconds")
        self.choice = devices.choose(options.device, options.unit, options.replay_scale)
        self.first_tick, self.scheduler = math.nan, "the servo was not started"
        self._signal = 0
        self._recorder: Recorder | None = None

    def prepare(self) -> None:
        """Build the scene, compile, measure the bare clock, open the recording."""
        with self.progress.stage("building the scene"):
            self.rig, path_ticks = self._make()
        duration = self.options.duration
        rate = self.spec.rates.servo_hz
        self.ticks = path_ticks if duration is None else max(1, round(duration * rate))
        warm, _ = self._make()
        warm.warm_up(self.progress)
        self.names = tuple(warm.low.times)
        self.baseline: dict[str, Any] = {}
        if self.options.baseline and not self.options.lock_step:
            seconds = min(BASELINE, 0.5 * self.ticks / rate)
            with self.progress.stage("measuring the bare clock"):
                self.baseline = servo_baseline(max(1, round(seconds * rate)), rate)
        if self.options.record is not None:
            self._recorder = Recorder(self.options.record, self.meta(), COLUMNS, step_columns(self.names))
        self.visual = Visual(self.spec, self.rig.scene, self.rig.high)
        self.album = Album(self.ticks / rate)
        self.slow = SlowLoop(self.rig, self.visual, self.names, self._recorder)
        self.trace = Trace(self.rig.servo, self._recorder)

    def _make(self) -> tuple[Rig, int]:
        """A rig at rest, and the ticks that its device's path lasts."""
        spec, threads = self.spec, not self.options.lock_step
        scene, held = build_scene(spec), np.zeros(3)
        held_point(scene.hold, scene.tool, held)
        device, ticks = devices.make_device(spec, self.choice, held)
        workspace, limits = devices.workspace_of(spec), devices.limits_of(spec)
        return Rig(spec, scene, self.kind, device, workspace, limits, threads), ticks

    def meta(self) -> dict[str, Any]:
        """What a recording must hold so that the run can be repeated."""
        origin = self.spec.origin
        return {
            "program": "palpo",
            "versions": {name: version(name) for name in LIBRARIES},
            "driver": "lock-step" if self.options.lock_step else "threads",
            "scene": {
                "name": self.options.scene,
                "path": str(origin.path.resolve()),
                "text": origin.text,
                "overrides": list(origin.overrides),
            },
            "interface": self.kind,
            "device": self.choice.title,
            "ticks": self.ticks,
        }

    def run(self) -> Outcome:
        """Run to the end; the outcome's status says how it ended."""
        try:
            with self._signals():
                if self.options.lock_step:
                    self._in_lock_step()
                else:
                    self._in_threads()
            columns = self.trace.finish()
        finally:
            self.rig.low.close()
            if self._recorder is not None:
                self._recorder.append_event(int(tick_count(self.rig.servo)), self._ending()[0])
                self._recorder.close()
        return self._outcome(columns)

    # ---- the two drivers

    def _in_threads(self) -> None:
        """The servo, the slow loop, and this thread as the one that looks."""
        rig, slow = self.rig, self.slow
        if not slow.first():
            return
        # the slow loop gives the GIL up at every compiled call, and waits so long for it beside a busy thread
        sys.setswitchinterval(SWITCH)
        self.trace.start()
        servo = ServoThread(rig.servo)
        try:
            servo.start()
            slow.start()
            while servo.running and not tick_count(rig.servo):
                time.sleep(1e-3)
            self.first_tick = process_age()
            self.progress.say(f"first tick {self.first_tick:.1f} s after the start")
            self._look_on(servo)
        finally:
            servo.stop()
            servo.join(PATIENCE)
            slow.join(PATIENCE)
        self.scheduler = servo.scheduler
        self.album.look(self.visual.latest()[0])

    def _look_on(self, servo: ServoThread) -> None:
        """Until the servo ends: keep pictures, and ask it to stop when the run is over or must be."""
        period = 1.0 / self.spec.rates.render_hz
        while servo.running:
            state, fresh = self.visual.latest()
            if fresh:
                self.album.look(state)
            if tick_count(self.rig.servo) >= self.ticks or self.slow.failure or self._signal:
                request_stop(self.rig.servo)
            time.sleep(period)

    def _in_lock_step(self) -> None:
        """Both rates in this thread, then the fade."""
        rig = self.rig

        def make(n: int) -> int:
            return int(servo_run(rig.servo, n))

        def each() -> None:
            state, fresh = self.visual.latest()
            if fresh:
                self.album.look(state)
            if rig.lock.tick % BATCH < rig.scene.numbers.ratio:
                self.trace.take()
            if self._signal:
                request_stop(rig.servo)

        fade = round(self.spec.safety.fade_out * self.spec.rates.servo_hz) + 1
        try:
            lock_step_run(rig, self.slow, self.ticks, make, each)
            request_stop(rig.servo)
            lock_step_run(rig, self.slow, rig.lock.tick + fade, make, each)
        except (FloatingPointError, RuntimeError) as error:
            self.slow.failure = f"the slow loop stopped: {error}"
            request_stop(rig.servo)
            servo_run(rig.servo, fade)

    # ---- the end

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask for the end; a second one acts as it always does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[signal.Signals, Any] = {}

        def ask(number: int, _frame: object) -> None:
            self._signal = number
            signal.signal(number, before[signal.Signals(number)])

        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ending(self) -> tuple[str, int]:
        """Why the run ended, and the exit status for it."""
        reason = int(finished_reason(self.rig.servo))
        if self.slow.failure:
            return self.slow.failure, FAILED
        if reason not in (RUNNING, STOP_REQUESTED):
            return f"the servo stopped: {REASONS[reason]}", FAILED
        if self._signal == signal.SIGINT:
            return "interrupted", INTERRUPTED
        if self._signal == signal.SIGTERM:
            return "terminated", TERMINATED
        if reason == RUNNING:
            return "the servo did not end in time", FAILED
        return "finished", FINISHED

    def _outcome(self, columns: Any) -> Outcome:
        rig = self.rig
        result: dict[str, Any] = {
            "title": self.spec.title,
            "scene": self.options.scene,
            "device": self.choice.title,
            "interface": self.kind,
            "driver": "lock-step" if self.options.lock_step else "threads",
            "latency": _latency(self.kind, self.spec, self.options.lock_step),
            "duration_s": len(columns["tick"]) * rig.scene.numbers.dt,
        }
        result |= measured(rig, self.slow, columns)
        reason, status = self._ending()
        result |= {"exit_reason": reason, "exit_status": status}
        if self.baseline:
            result["clock_baseline_us"] = self.baseline.pop("clock_baseline_us")
            result["clock_baseline"] = self.baseline
        result["warnings"] = warnings_of(rig, self.slow, result)
        if not self.options.lock_step:
            result["first_tick_s"] = self.first_tick
            result["scheduler"] = self.scheduler
            if not self.scheduler.startswith("SCHED_FIFO granted"):
                result["warnings"].insert(0, f"{self.scheduler[0].upper()}{self.scheduler[1:]}.")
        if self._recorder is not None:
            result["recording"] = str(self._recorder.path)
            if self._recorder.error:
                result["warnings"].append(self._recorder.error)
        return Outcome(
            result, series_of(rig, columns), self.visual.geometry, self.album.states(), self.spec.view,
            config_text(self.spec),
        )  # fmt: skip


def _latency(kind: str, spec: SceneSpec, lock_step: bool) -> str:
    """How old a frame is when it is first felt, in words."""
    if kind == "monolithic":
        return "none: every body at the servo's rate"
    if lock_step:
        return "none" if spec.interface.latency == "none" else "one low period"
    return "as long as a low step takes"


def run(options: Options, progress: Progress | None = None) -> Outcome:
    """Prepare and run a session."""
    session = Session(options, progress)
    session.prepare()
    return session.run()


__all__: Sequence[str] = ["Options", "Session", "run"]
