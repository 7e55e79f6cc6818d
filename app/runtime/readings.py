"""What the panel shows of a running session: rates and lateness of the loops, force, solver, live keys."""

import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.health import Signs, light
from palpo.app.runtime.live import few_keys, live_keys
from palpo.app.runtime.session import Session
from palpo.app.runtime.slow_thread import SlowThread
from palpo.app.web.window import PageWindow
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.flags import PASSIVATED
from palpo.haptics.passivity import MODES
from palpo.haptics.statistics import LATE
from palpo.physics.exchange.durations import percentile_us
from palpo.physics.exchange.port import WAITING
from palpo.physics.exchange.snapshot import SceneState
from palpo.render.panel_state import Light, LoopReading, Plot, Reading, Setting
from palpo.render.window import Window

SPAN = 6.0
"""Seconds of history in the plots."""
THINNED = 5
"""Rows that make one point of a curve."""
RENEWED = 0.05
"""Seconds between two looks at the servo's rows."""
WINDOW = 0.5
"""Seconds over which rates are counted."""

Columns = Mapping[str, NDArray[np.float64]]


class _Counter:
    """Counts seen at two moments at least WINDOW apart: events, how many were new, and their rate [Hz]."""

    def __init__(self) -> None:
        self._then, self._before = time.perf_counter(), 0
        self.new, self.rate = 0, float("nan")

    def see(self, count: int) -> None:
        now = time.perf_counter()
        if now - self._then >= WINDOW:
            self.new = count - self._before
            self.rate = self.new / (now - self._then)
            self._then, self._before = now, count


def _rates(slow: SlowThread) -> str:
    """The rates of the slow loops, the quickest first."""
    return " and ".join(f"{1.0 / loop.period:.3g}" for loop in (slow, *slow.beside))


class Readings:
    """One session's numbers, asked for whenever the panel is drawn, from the thread that draws."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._servo, self._slow, self._missed = (_Counter() for _ in range(3))
        self._beside = [_Counter() for _ in session.slow.beside]
        self._histogram = np.zeros(0)
        self._late = float("nan")
        self._looked = self._judged = 0.0
        self._columns: Columns = session.trace.latest(1)
        self._waiting = np.zeros(0, bool)
        self._waited, self._last_tick = 0, -1.0
        # a control keeps its range: one that followed its value would run away under the pointer
        self._ranges = {live.key: (live.lower, live.upper) for live in live_keys(session.spec)}
        self._knobs: dict[str, tuple[Setting, ...]] = {}
        self._spec: Any = None

    def look(self) -> None:
        """Bring everything to the present."""
        session, now = self.session, time.perf_counter()
        statistics = session.rig.servo.statistics
        self._servo.see(tick_count(session.rig.servo))
        self._slow.see(session.slow.steps)
        for loop, seen in zip(session.slow.beside, self._beside, strict=True):
            seen.see(loop.steps)
        self._missed.see(int(statistics.counts["missed"][0]))
        if now - self._judged > 2 * WINDOW:
            seen = statistics.histograms[LATE].copy()
            if len(self._histogram):
                self._late = percentile_us(seen - self._histogram, 0.99)
            self._histogram, self._judged = seen, now
        if now - self._looked > RENEWED:
            self._columns = session.trace.latest(round(SPAN * session.spec.rates.servo_hz))
            # by rows, which are whole: the rig's own counts are of a tick that is being made, too
            self._waiting = self._columns["tick_flags"].astype(int) & WAITING != 0
            new = self._columns["tick"] > self._last_tick
            self._waited += int(np.count_nonzero(self._waiting & new))
            self._last_tick = float(max((self._last_tick, *self._columns["tick"][-1:])))
            self._looked = now

    def light(self) -> Light:
        """How the run fares."""
        session, columns = self.session, self._columns
        flags, recorder = _last(columns, "flags"), session.recorder
        slow, pacer = session.slow, session.slow.pacer
        return light(
            Signs(
                flags=int(flags) if np.isfinite(flags) else 0,
                paused=session.paused,
                waited=int(np.count_nonzero(self._waiting[max(0, len(self._waiting) - self._servo.new) :])),
                ticks=self._servo.new,
                late=self._missed.new,
                slower="" if pacer.rung == pacer.rungs[0] else pacer.words(),
                rates=f"the hand {session.spec.rates.servo_hz:g} Hz, soft bodies {_rates(slow)} Hz",
                unrecorded=(recorder.error or "") if recorder is not None else "",
            )
        )

    def loops(self, window: Window | PageWindow) -> tuple[LoopReading, ...]:
        """Servo, slow loop and pictures; lateness at the 99th percentile."""
        session, rates = self.session, self.session.spec.rates
        statistics, slow = session.rig.servo.statistics, session.slow
        recent = slow.seconds.recent()
        over = [1e3 * max(0.0, t - slow.period) for t in recent]
        # a rate that fell is the light's
        step = slow.pacer.words() if recent and slow.pacer.rung == slow.pacer.rungs[0] else ""
        picture = f"drawn in {window.draw_ms:.0f} ms, {window.latency.p50:.0f} ms after its state"
        return (
            LoopReading("servo", self._servo.rate, rates.servo_hz, 1e-3 * self._late,
                        int(statistics.counts["missed"][0])),
            LoopReading("slow loop", self._slow.rate, 1.0 / slow.period,
                        float(np.percentile(over, 99)) if over else float("nan"), int(slow.overruns), step),
            *(
                LoopReading(f"slow loop {loop.number + 1}", seen.rate, 1.0 / loop.period)
                for loop, seen in zip(slow.beside, self._beside, strict=True)
            ),
            LoopReading("pictures", window.frame_rate, window.most_hz, note=picture),
        )  # fmt: skip

    def force(self) -> float:
        """Norm of the force that was sent last [N]."""
        sent = np.array([self._columns[f"sent_{axis}"][-1:] for axis in "xyz"])
        return float(np.linalg.norm(sent)) if sent.size else float("nan")

    def plots(self) -> tuple[Plot, ...]:
        """Force sent to the hand over the last seconds, and what the system has to show."""
        thin = slice(None, None, -THINNED)
        seconds = self._columns["time_s"][thin][::-1]
        series = {axis: self._columns[f"sent_{axis}"][thin][::-1] for axis in "xyz"}
        own = (Plot(*curves) for curves in self.session.rig.curves())
        return (Plot("force on the hand", "N", seconds, series, self.limit()), *own)

    def limit(self) -> float:
        """Largest force that is sent [N]."""
        servo, live = self.session.rig.servo, self.session.spec.safety.max_force
        return min(servo.limits.max_force, live or servo.limits.max_force)

    def groups(self, state: SceneState) -> dict[str, tuple[Reading, ...]]:
        """Numbers of contact, solver and exchange."""
        session, columns = self.session, self._columns
        servo, spec = session.rig.servo, cast(Any, session.spec)
        stale = int(servo.statistics.counts["stale"][0])
        residual, tolerance = _last(columns, "residual"), spec.solver.tolerance
        lost, waited = int(state.counters[3]), self._waited
        contact = (
            Reading("contacts", f"{_last(columns, 'contacts'):.0f}"),
            Reading("deepest penetration", f"{1e3 * _last(columns, 'depth'):.3f} mm"),
            Reading("dropped contacts", str(lost), "warn" if lost else "plain"),
        )
        solver = (
            Reading("sweeps", f"{_last(columns, 'sweeps'):.0f}"),
            Reading(
                "residual", f"{residual:.1e}" if residual else "0", "warn" if residual > tolerance else "good"
            ),
            *(
                Reading(name, f"{count}", "warn" if count else "plain")
                for name, count in session.rig.counts().items()
            ),
        )
        exchange = (
            Reading("ticks on a stale frame", str(stale), "warn" if stale else "plain"),
            Reading("age of the frame", f"{int(servo.port.status['age'][0])} ticks"),
            Reading("ticks paused for a frame", str(waited), "warn" if waited else "plain"),
        )
        energy, torque = float(servo.energy.joules["energy"][0]), float(servo.energy.peak_torque[0])
        acts = _last(columns, "flags")
        acting = bool(np.isfinite(acts)) and int(acts) & PASSIVATED != 0
        damped, mode = int(servo.energy.ticks[1]), MODES[servo.limits.passivity.mode]
        scene = float(np.linalg.norm([_last(columns, f"force_{axis}") for axis in "xyz"]))
        hand = (
            Reading("force of the scene", f"{scene:.1f} N, sent {self.force():.2f} N"),
            Reading(
                "energy given to the hand",
                f"{1e3 * energy:.2f} mJ",
                "warn" if energy > 0 else "plain",
            ),
            Reading(
                "passivity controller",
                f"{'damps' if acting else 'rests'}, {damped} ticks so far" if mode == "control" else "off",
                "warn" if acting else "plain",
            ),
            Reading("torque not rendered", f"{1e3 * torque:.1f} mN m at most"),
            *(
                Reading(f"sent to hand {k}", f"{float(np.linalg.norm(led.sent)):.2f} N")
                for k, led in enumerate(servo.led, start=2)
            ),
        )
        return {"contact": contact, "solver": solver, "exchange": exchange, "hand": hand}

    def knobs(self) -> dict[str, tuple[Setting, ...]]:
        """The live keys, by group."""
        if self._spec is not self.session.spec:
            groups: dict[str, list[Setting]] = {}
            self._spec = self.session.spec
            keys = live_keys(self._spec)
            few = few_keys(self._spec, keys)
            for live in filter(lambda live: live.group, keys):
                knob = Setting(
                    live.key, live.label, live.unit, live.value, *self._ranges[live.key], live.log,
                    live.choices or None, live.help, live.key in few,
                )  # fmt: skip
                groups.setdefault(live.group, []).append(knob)
            self._knobs = {group: tuple(knobs) for group, knobs in groups.items()}
        return self._knobs

    @property
    def frozen(self) -> bool:
        """Whether the scene's time stands still."""
        return bool(is_frozen(self.session.rig.servo))

    @property
    def elapsed(self) -> float:
        """Time of the scene [s]."""
        return _last(self._columns, "time_s")


def _last(columns: Columns, name: str) -> float:
    values = columns[name]
    return float(values[-1]) if len(values) else float("nan")
