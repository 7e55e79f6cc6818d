"""The servo's two drivers, in lock-step and in real time, and its thread.

`servo_run` repeats the step without a clock; `servo_loop` paces it by absolute deadlines, without the GIL,
until a stop has been asked for and the force has faded. Both call the same `servo_step`, so what a test sees
is what the hand gets.
"""

import threading
from typing import Self

from numba import typeof, types

from palpo.haptics.clock import end_waiting, make_scratch, now_ns, request_realtime, sleep_until
from palpo.haptics.control import (
    TICK,
    finished_reason,
    grant_ticks,
    is_frozen,
    mute_servo,
    request_pause,
    request_stop,
    take_orientation,
    tick_count,
)
from palpo.haptics.reasons import REASONS, RUNNING, STOP_REQUESTED
from palpo.haptics.row import write_row
from palpo.haptics.servo import Servo
from palpo.haptics.statistics import LATE, count_duration, make_statistics, summarise_duration
from palpo.haptics.step import call_system, led_servo, servo_step
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.kernels import inlined, kernel

CATCH_UP = 10
"""Periods by which the loop may lag and still catch up tick by tick; beyond, it skips them and counts."""


@kernel
def servo_run(servo, n):
    """Lock-step driver: n ticks without a clock.

    Returns the ticks done, fewer than n once the servo has stopped, or stands frozen without a grant.
    """
    if finished_reason(servo) != RUNNING:
        return 0
    first = tick_count(servo)
    for k in range(n):
        if servo_step(servo, 0, 0) or tick_count(servo) == first + k:
            break
    return tick_count(servo) - first


@inlined
def _impose(port, position, orientation, velocity, spin):
    """A hand's pose in the scene's axes."""
    for i in range(3):
        port.position[i] = position[i]
        port.velocity[i] = velocity[i]
        port.angular_velocity[i] = spin[i]
    for i in range(4):
        port.orientation[i] = orientation[i]


@inlined
def _write_led(row, servo, tick):
    """A tick under an imposed hand: nothing was sent and nobody was late."""
    write_row(
        row, tick, servo.dt, servo.port, servo.device_port, servo.sent, servo.turned, 0, 0.0, 0.0,
        servo.energy.joules[0].energy, 1.0,
    )  # fmt: skip


@kernel
def servo_lead(servo, positions, orientations, velocities, spins, rows):
    """Ticks of the system alone under hands that are imposed: no device, no limits, no clock.

    positions (n, hands, 3) [m], orientations (n, hands, 4), velocities (n, hands, 3) [m/s] and spins
    (n, hands, 3) [rad/s] in the scene's axes, one row a tick. rows (n, hands, len(COLUMNS)): what each tick
    came to. Returns how many were well.
    """
    control = servo.control
    for k in range(positions.shape[0]):
        _impose(servo.port, positions[k, 0], orientations[k, 0], velocities[k, 0], spins[k, 0])
        for j in range(servo.beside.shape[0]):
            own = j + 1
            _impose(
                led_servo(servo, j).port, positions[k, own], orientations[k, own], velocities[k, own],
                spins[k, own],
            )  # fmt: skip
        call_system(servo)
        _write_led(rows[k, 0], servo, control[TICK])
        for j in range(servo.beside.shape[0]):
            _write_led(rows[k, j + 1], led_servo(servo, j), control[TICK])
        control[TICK] += 1
        if servo.port.status[0].code != OK:
            return k
    return positions.shape[0]


@inlined
def _pace(deadline, period, statistics, scratch):
    """Wait for a deadline; (lateness, next deadline), counting lateness, misses and skipped periods."""
    sleep_until(deadline, scratch)
    late = now_ns(scratch) - deadline
    count_duration(statistics, LATE, late)
    statistics.counts[0].missed += late > period
    skipped = late // period if late > CATCH_UP * period else 0
    statistics.counts[0].skipped += skipped
    return late, deadline + (1 + skipped) * period


@kernel
def servo_loop(servo):
    """Real-time driver: a tick at each deadline until a stop has been asked for and the force has faded.

    Returns the stop reason. A deadline is missed when the tick starts more than a period late; a servo
    that lags catches up, unless it lags by more than CATCH_UP periods (a suspended machine).
    """
    deadline = now_ns(servo.scratch) + servo.period_ns
    done = finished_reason(servo) != RUNNING
    while not done:
        late, deadline = _pace(deadline, servo.period_ns, servo.statistics, servo.scratch)
        done = servo_step(servo, late, 1)
    end_waiting(servo.scratch)
    return finished_reason(servo)


@kernel
def baseline_loop(n, period_ns, statistics, scratch):
    """n deadlines of the servo's clock with nothing in between: what the machine gives at best."""
    deadline = now_ns(scratch) + period_ns
    for _ in range(n):
        _late, deadline = _pace(deadline, period_ns, statistics, scratch)
        statistics.counts[0].steps += 1
    end_waiting(scratch)


def servo_baseline(n: int = 1000, rate_hz: float = 1000.0, realtime: bool = True) -> dict[str, object]:
    """Lateness of n deadlines of the bare clock loop, scheduled as the servo is.

    Returns {rate_hz, steps, missed, skipped, scheduler, clock_baseline_us: {p50, p99, p999, max}}.
    """
    statistics, period_ns = make_statistics(), round(1e9 / rate_hz)
    message = []
    baseline_loop(0, period_ns, statistics, make_scratch())

    def measure() -> None:
        message.append(request_realtime()[1] if realtime else "ordinary priority")
        baseline_loop(n, period_ns, statistics, make_scratch())

    # a thread of its own, so that the caller's scheduling stays as it was
    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    return {
        "rate_hz": rate_hz,
        "steps": int(statistics.counts["steps"][0]),
        "missed": int(statistics.counts["missed"][0]),
        "skipped": int(statistics.counts["skipped"][0]),
        "scheduler": message[0],
        "clock_baseline_us": summarise_duration(statistics, LATE),
    }


def compile_servo(servo: Servo) -> None:
    """Compile both drivers for this servo, or load them from the cache, without running a tick."""
    for driver in (servo_run, servo_loop):
        arguments = (typeof(servo), typeof(1)) if driver is servo_run else (typeof(servo),)
        driver.compile(arguments)
    own = typeof(servo)
    for asking in (tick_count, finished_reason, is_frozen):
        asking.compile((own,))
    request_stop.compile((own, types.Omitted(STOP_REQUESTED)))
    request_stop.compile((own, types.int64))
    request_pause.compile((own, types.boolean))
    grant_ticks.compile((own, types.int64))
    mute_servo.compile((own, types.boolean))
    take_orientation.compile((own,))


class ServoThread:
    """Runs `servo_loop` in a thread of its own; a context manager that stops it however the block ends.

    scheduler: one sentence on what real-time scheduling was granted. error: what the loop raised, if it did.
    """

    def __init__(self, servo: Servo, realtime: bool = True) -> None:
        self.servo = servo
        self.scheduler = "ordinary priority"
        self.error: BaseException | None = None
        self._realtime = realtime
        # daemon: an interpreter that dies of an exception must not hang on a servo that nobody will stop
        self._thread = threading.Thread(target=self._run, name="servo", daemon=True)
        self._ready = threading.Event()

    def _run(self) -> None:
        try:
            if self._realtime:
                self.scheduler = request_realtime()[1]
            self._ready.set()
            self._drive()
        except BaseException as error:  # join raises it where the user can be told
            self.error = error
        finally:
            self._ready.set()

    def _drive(self) -> None:
        servo_loop(self.servo)

    def prepare(self) -> None:
        """Compile, so that `start` need not."""
        compile_servo(self.servo)

    def start(self) -> Self:
        """Compile, then start; returns once the scheduling has been asked for."""
        self.prepare()
        self._thread.start()
        self._ready.wait()
        return self

    @property
    def running(self) -> bool:
        """Whether the loop still turns."""
        return self._thread.is_alive()

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; "running" until then."""
        return REASONS[finished_reason(self.servo)]

    def accompany(self) -> None:
        """Begin what leads this servo's hand, while the servo of another hand makes its steps."""

    def leave(self) -> None:
        """End that, once the other servo has ended."""

    @property
    def lost(self) -> str:
        """What became of the device, in words, if it was lost."""
        return ""

    def stop(self) -> None:
        """Ask the loop to fade and end; returns at once."""
        request_stop(self.servo)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out. Raises what the loop raised."""
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error
        return not self.running

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.join(5.0)
