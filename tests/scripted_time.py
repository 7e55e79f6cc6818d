"""Both loops of a session in one thread, on a clock of its own: slow steps of any duration."""

from collections.abc import Callable
from pathlib import Path

from palpo.app.runtime.options import Options
from palpo.app.runtime.pacing import Pacer, rungs_of
from palpo.app.runtime.session import Session
from palpo.app.runtime.slow_thread import SlowThread
from palpo.haptics.control import finished_reason, request_stop, tick_count
from palpo.haptics.drivers import servo_run
from palpo.haptics.reasons import RUNNING
from palpo.physics.exchange.budget import Budget

Duration = Callable[[float, Budget], float]
"""Seconds that a slow step takes, of the time [s] at which it begins and what it may cost."""


BEGUN = 0.4
"""Share of a slow step's time after which the forces are read that its frame contains."""


class ScriptedTime:
    """A session in which slow steps take the time that a script says, while the servo's ticks go on.

    The loop is the one of threads, `SlowThread`, with this as its clock: the servo makes its ticks while it
    sleeps, and in both halves of each of its steps. budgets: what each step had; waited: ticks that waited.
    """

    def __init__(self, scene: str, overrides: tuple[str, ...], takes: Duration, record: Path, seconds: float):
        options = Options(scene, overrides, device="mock", duration=seconds, baseline=False)
        self.session = session = Session(options)
        session.prepare()
        self.rig, self.takes = session.rig, takes
        rates = session.spec.rates
        rungs = rungs_of(self.rig.ratio, rates.servo_hz, self.rig.low.spares)
        self.pacer = Pacer(rungs if rates.adapt is not False else rungs[:1], self.rig.dt)
        session.slow = SlowThread(
            self.rig, session.names, path=session.slow._path, pacer=self.pacer, clock=self
        )
        session.record(record)
        self.budgets: list[Budget] = []
        self._ticks = 0
        self._owed = 0.0
        self._make_steps_last()

    def now(self) -> float:
        """See Clock."""
        return self._ticks * self.rig.dt + self._owed

    def sleep(self, seconds: float) -> None:
        """The servo's ticks of that time; the end comes when the session's are done."""
        self._owed += seconds
        n = int(self._owed / self.rig.dt + 1e-6)
        self._owed -= n * self.rig.dt
        while n and finished_reason(self.rig.servo) == RUNNING:
            made = servo_run(self.rig.servo, min(n, 1000))
            self.session.trace.take()
            self._ticks += made
            n -= made
            if tick_count(self.rig.servo) >= self.session.ticks:
                request_stop(self.rig.servo)

    def _make_steps_last(self) -> None:
        low, slow = self.rig.low, self.session.slow
        make, publish, rest = low.step, low.publish, [0.0]

        def step_and_take_time() -> int:
            calls = make()
            if tick_count(self.rig.servo):
                self.budgets.append(slow.budget)
                takes = self.takes(self.now(), slow.budget)
                rest[0] = (1.0 - BEGUN) * takes
                self.sleep(BEGUN * takes)
            return calls

        def take_time_and_publish(tick: int, frame_tick: int | None = None) -> None:
            self.sleep(rest[0])
            publish(tick, frame_tick)

        low.step, low.publish = step_and_take_time, take_time_and_publish  # type: ignore[method-assign]

    def run(self) -> None:
        """To the end of the session's ticks and of the fade; the recording is closed."""
        slow = self.session.slow
        assert slow.first()
        # the first tick comes before the second step
        self.sleep(self.rig.dt)
        slow._run()
        assert not slow.failure, slow.failure
        self.session.trace.take()
        self.session.record(None)
        self.rig.low.close()

    @property
    def waited(self) -> int:
        """Ticks in which the scene's time stood still."""
        return self.rig.waited
