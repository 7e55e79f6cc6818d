"""Repeating a recording: in lock-step as it was, a run in threads by its schedule; both bit for bit where the
recording was made, on the same kind of processor with the same libraries, and elsewhere to ELSEWHERE.

A run in threads depends on the clock only through the ticks at which slow steps read the tool, up to which
their frames contain the servo's forces, and at which the servo adopts them. The recording has all three, so
one thread can repeat it: a step begins when the servo has done `begin_tick` ticks, and its frame is
finished right before the first tick whose row names it.
"""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress, Silent
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.report.album import Album, Film
from palpo.app.report.outcome import (
    FAILED,
    FINISHED,
    Outcome,
    measured,
    outcome_of,
    warnings_of,
)
from palpo.app.report.trace import RingTrace
from palpo.app.runtime.comparison import Comparison, compare
from palpo.app.runtime.live import changed
from palpo.app.runtime.meta import RecordedRun, recorded_run
from palpo.app.runtime.rigs import Further, Rig
from palpo.app.runtime.schedule import in_order, known_until, steps_of
from palpo.app.runtime.slow_thread import SlowThread, lock_step_run
from palpo.app.systems.system import NO_INTERFACE, make_rig, system_of
from palpo.config.load import load_scene, recorded_scene
from palpo.config.schema.scene import BaseScene
from palpo.haptics.backends.replay import make_recorded, recorded_start
from palpo.haptics.control import (
    grant_ticks,
    mute_servo,
    request_pause,
    request_stop,
    take_orientation,
)
from palpo.haptics.device import DEVICE_ERRED, DEVICE_GONE, DEVICE_OK
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import (
    DEVICE_LOST,
    EMERGENCY,
    MUTED,
    NON_FINITE,
    PAUSING,
    POSE_HELD,
    STOOD_STILL,
    STOPPING,
    TAKEN,
    TICK_FAILED,
)
from palpo.haptics.limiter import NOTED
from palpo.haptics.plausible import HELD_TICKS
from palpo.haptics.reasons import STOP_EMERGENCY
from palpo.haptics.recording import Recording, read_recording
from palpo.haptics.servo import Servo, start_servo_at
from palpo.physics.exchange.port import WAITING

DIFFERENT = 1
"""Exit status of a replay that is not the same."""
ASKED = STOPPING | EMERGENCY | PAUSING | DEVICE_LOST | POSE_HELD | MUTED | STOOD_STILL | TAKEN
"""Flags by which a run tells what was asked of it, or happened to its device, from outside."""
OWN = NON_FINITE | TICK_FAILED
"""Flags of a tick that stops the run by itself, and will again."""


def replay(
    path: Path, scene: str | None = None, progress: Progress | None = None, film: Film | None = None
) -> Outcome:
    """Run a recording again, or another scene under its hand; raises HapticsError for one that cannot be.

    film: what it looked like, at the film's own pace from what the servo had, whatever the slow rate was.
    """
    progress = progress or Silent()
    recording = read_recording(path)
    if not len(recording.columns["tick"]):
        raise HapticsError(f"{path}: holds no tick, so it cannot be replayed")
    first = int(recording.columns["tick"][0])
    if first > 0:
        raise HapticsError(
            f"{path}: begins at tick {first} of its run, so it cannot be replayed; "
            f"--device replay:{path} follows its hand"
        )
    if not np.array_equal(recording.columns["tick"], np.arange(len(recording.columns["tick"]))):
        raise HapticsError(f"{path}: some ticks are missing, so it cannot be replayed")
    if scene is None and recording.earlier:
        raise HapticsError(
            f"{path}: made by an earlier version, with other force limits, so it cannot be "
            f"replayed; --device replay:{path} follows its hand"
        )
    made = recorded_run(recording, path)
    if scene is None:
        spec = recorded_scene(made.scene.model_dump())
        kinds = system_of(spec).interfaces or (NO_INTERFACE,)
        if made.interface not in kinds:
            raise HapticsError(f"{path}: interface = {made.interface}: choose one of {', '.join(kinds)}")
    else:
        spec = load_scene(scene)
    rerun = _Rerun(path, recording, made, spec, scene is not None, film)
    warm = rerun.rig()
    warm.warm_up(progress)
    warm.low.close()
    with progress.stage(f"repeating {len(recording.columns['tick']):,} ticks"):
        columns = rerun.run()
    compared = None if scene else compare(rerun.recording, rerun.known, columns)
    return rerun.outcome(columns, compared, scene or f"{made.scene.name}, replay of {path.name}")


def _befall(servo: Servo, flags: int) -> None:
    """Let happen to a hand's servo what happened from outside in a tick with these flags."""
    erred = DEVICE_ERRED if flags & POSE_HELD else DEVICE_OK
    servo.device.health[0] = DEVICE_GONE if flags & DEVICE_LOST else erred
    if flags & STOOD_STILL and not servo.limit_state.gate["standstill"]:
        servo.limit_state.gate["standstill"] = NOTED
    if flags & TAKEN:
        take_orientation(servo)


class _Rerun:
    """One recording on a rig of its own."""

    def __init__(
        self,
        path: Path,
        recording: Recording,
        made: RecordedRun,
        spec: BaseScene,
        other: bool,
        film: Film | None,
    ) -> None:
        self.path, self.recording, self.spec = path, recording, spec
        self.made, self.kind = made, made.interface
        self.lock_step, self.other, self.film = other or made.driver == "lock-step", other, film
        self.n = len(recording.columns["tick"])
        self.asked = self._asked()
        own = [columns for name, columns in recording.columns.items() if re.fullmatch(r"flags(_\d+)?", name)]
        self.alone = np.flatnonzero(np.any([flags.astype(int) & (STOOD_STILL | TAKEN) for flags in own], 0))
        """Ticks that are repeated by themselves."""
        self.changes = [] if other else list(recording.changes)
        self._done = 0
        self.known = self.n
        """Ticks before the first one whose frame the schedule does not know: a crash may cut it short."""

    def rig(self) -> Rig:
        """The scene with the recorded inputs: the device's own, or in another scene the hand as it moved."""
        device = None if self.other else self.made.device_spec
        workspace, limits = workspace_of(self.spec), limits_of(self.spec, device)
        if self.other:
            # what the clutch did is in the hand's motion already
            workspace = workspace._replace(clutch_buttons=0)
        hand = make_recorded(self.recording, workspace if self.other else None)
        threads = not self.lock_step
        others = [self._hand(k) for k in range(2, len(self.spec.hands) + 1)]
        rig = make_rig(
            self.spec, self.kind, lambda _held: hand, workspace, limits, threads, further=others
        )  # fmt: skip
        if not self.other:
            for k, servo in enumerate((rig.servo, *rig.servo.led), start=1):
                start = recorded_start(self.recording, k)
                if start is not None:
                    start_servo_at(servo, *start)
        return rig

    def _hand(self, number: int) -> Further:
        """The recorded device of a hand after the first."""
        spec = self.spec.hands[number - 1]
        recorded = make_recorded(self.recording, workspace_of(spec) if self.other else None, number)
        stored = [] if self.other else self.made.further_specs
        own = stored[number - 2] if len(stored) > number - 2 else None
        return Further(lambda _held: recorded, own)

    def _asked(self) -> NDArray[np.int64]:
        """What was asked at each tick, as flags; another scene is asked only to stop."""
        flags = self.recording.columns["flags"].astype(np.int64)
        fading = np.flatnonzero(flags & STOPPING)
        asked = flags & (STOPPING | EMERGENCY if self.other else ASKED)
        if len(fading) and self._has_cause(flags[: fading[0] + 1]):
            # the cause comes by itself, or has a word of its own
            asked &= ~STOPPING
        return asked

    @staticmethod
    def _has_cause(flags: NDArray[np.int64]) -> bool:
        """Whether the flags up to a stop tell what stopped it."""
        held = flags[-HELD_TICKS - 1 :] & POSE_HELD > 0
        return bool(flags[-1] & (OWN | EMERGENCY | DEVICE_LOST) or (held.all() and len(held) > HELD_TICKS))

    def run(self) -> dict[str, NDArray]:
        """All columns of the repeated run."""
        self.now = self.rig()
        self.visual = self.now.visual
        self.slow = SlowThread(self.now, ())
        self.album = Album(self.n * self.spec.rates.dt)
        if self.film is not None:
            self.album.film = self.film
            self.visual.follow_servo()
            # nothing was published yet
            rest = self.visual.vertices.copy()
            self.album.look(replace(self.visual.latest()[0], vertices=rest), self.now)
        self.trace = RingTrace(self.now.servo, names=None)
        try:
            if self.lock_step:
                self._change()
                lock_step_run(self.now, self.slow, self.n, self._ticks, self._look)
            else:
                self._by_schedule()
        except FloatingPointError as error:
            self.slow.failure = f"the slow loop stopped: {error}"
            self._ticks(self.n - self._done)
        finally:
            self.now.low.close()
        return self.trace.finish()

    def _ticks(self, n: int) -> None:
        """n ticks, with what was asked where it was; the ring is emptied before it can fill."""
        servo = self.now.servo
        end = self._done + n
        while self._done < end:
            asked = int(self.asked[self._done])
            same = self.asked[self._done : min(end, self._done + len(servo.rows) // 2)] == asked
            span = min(len(same) if same.all() else int(np.argmin(same)), self._to_picture())
            # one standstill may follow another, and any hand's orientation may be taken
            coming = self.alone[np.searchsorted(self.alone, self._done) :]
            span = min(span, max(1, int(coming[0]) - self._done)) if len(coming) else span
            self._ask(asked, span)
            for k, led in enumerate(servo.led, start=2):
                flags = int(self.recording.columns.get(f"flags_{k}", self.asked)[self._done])
                _befall(led, 0 if self.other else flags)
            if self.lock_step:
                servo_run(servo, span)
            else:
                here = slice(self._done, self._done + span)
                rows = self.recording.columns
                self.now.repeat(rows["sweeps"][here].astype(int), rows["tick_flags"][here].astype(int))
            self._done += span
            self.trace.take()
            if self.film is not None:
                self.album.look(self.visual.latest()[0], self.now)

    def _to_picture(self) -> int:
        """Ticks to the film's next picture, at least one."""
        if self.film is None:
            return self.n
        ticks = self.film.period / self.now.dt
        return max(1, math.ceil((self._done // ticks + 1) * ticks - 1e-6) - self._done)

    def _ask(self, asked: int, span: int) -> None:
        """Ask of the servo what was asked of it for these ticks."""
        servo = self.now.servo
        _befall(servo, asked)
        if asked & EMERGENCY:
            request_stop(servo, STOP_EMERGENCY)
        if asked & STOPPING:
            request_stop(servo)
        mute_servo(servo, bool(asked & MUTED))
        request_pause(servo, bool(asked & PAUSING))
        if asked & PAUSING:
            # those that come before it froze need none; a resume drops the rest
            grant_ticks(servo, span)

    def _change(self) -> None:
        """Ask for what the operator changed before the next slow step."""
        while self.changes and self.changes[0][0] <= self.slow.steps:
            text = self.changes.pop(0)[1]
            self.spec = changed(self.spec, text)
            self.slow.ask(text, at_once=True)

    def _look(self) -> None:
        """After a slow step: keep a picture, and ask for the changes before the next."""
        state, fresh = self.visual.latest()
        if fresh:
            self.album.look(state, self.now)
        self._change()

    def _by_schedule(self) -> None:
        """A run in threads: each slow step where it was."""
        lows, loops = self.now.lows, self.slow.loops
        steps = steps_of(self.recording, [low.ratio for low in lows])
        self._change()
        for tick, step, ends in in_order(steps):
            self._run_to(tick)
            low, loop = lows[step.loop], loops[step.loop]
            leads = step.loop == 0
            if not ends:
                loop.use(step.budget)
                if leads:
                    self.slow.take_changes()
                low.step()
                continue
            slot = self.visual.take_tool() if leads else -1
            low.publish(step.tick, step.frame_tick)
            loop.steps += 1
            low.check()
            if leads:
                self.slow.show(slot, step.tick)
                self._look()
        self.known = known_until(self.recording, steps)
        self._run_to(self.known)

    def _run_to(self, tick: int) -> None:
        # a tick in which the scene waits publishes nothing: a step that begins then reads the state before
        if (self.recording.columns["tick_flags"][tick : self._done] & WAITING).all():
            tick = max(tick, self._done)
        if tick < self._done:
            raise HapticsError(f"{self.path}: its slow steps are out of order, so it cannot be replayed")
        self._ticks(min(tick, self.n) - self._done)

    def outcome(self, columns: dict[str, NDArray], compared: Comparison | None, name: str) -> Outcome:
        """Result and series, as of a run."""
        rig, spec = self.now, self.spec
        result: dict[str, Any] = {
            "title": spec.title,
            "scene": name,
            "device": f"recording {self.path.name}",
            "interface": self.kind,
            "driver": "lock-step",
            "latency": "as recorded",
            "duration_s": len(columns["tick"]) * rig.dt,
        }
        result |= measured(rig, self.slow, columns)
        status, reason = FINISHED, "finished"
        if compared is not None:
            status, reason = (FINISHED if compared.same else DIFFERENT), compared.words()
            result["replay"] = compared.told()
        elif self.slow.failure:
            status, reason = FAILED, self.slow.failure
        result |= {"exit_reason": reason, "exit_status": status}
        result["warnings"] = warnings_of(rig, self.slow, result)
        return outcome_of(result, rig, spec, self.album, columns)
