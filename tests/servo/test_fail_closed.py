"""Whatever goes wrong in a tick: the force is gone within 50 ms, in every system, by every driver."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import carray, cfunc, typeof, types
from numpy.typing import NDArray

from palpo.app.runtime import tick_clock
from palpo.haptics.backends import openhaptics_tick
from palpo.haptics.backends.openhaptics import OpenHapticsDevice
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.control import finished_reason
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread, compile_servo, servo_loop, servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.reasons import REASONS, STOP_NON_FINITE, STOP_TICK_FAILED
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo, make_servo
from palpo.physics.compliance import chain, fixed, surface
from palpo.physics.engine import blade, dissipating, insertion, relaxing, stepping, sweeping
from palpo.physics.engine import servo as engine_servo
from palpo.physics.exchange.atomics import call_tick
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, make_port
from palpo.physics.systems.hapco import servo as hapco_servo
from palpo.physics.systems.hapco import two_rates
from palpo.physics.systems.multirate import high_rate
from palpo.physics.systems.snap import servo as snap_servo
from palpo.physics.systems.suction import servo as suction_servo
from palpo.studies import sampled_wall
from tests.engine import whole_step
from tests.libhd.bench import press, touch_wall
from tests.libhd.stand_in import DEFAULT, fresh_stand_in
from tests.servo.hand import along, columns, external, move
from tests.servo.wall import make_wall
from tests.verification import test_hapco_tick, test_snap_servo, test_suction_servo
from tests.verification.small_scenes import BALL_ON_BLOCK, SKIN, lock_step

FADE = 50
"""Ticks of 1 ms in which all force must be gone."""
K, DEEP = 300.0, 9e-3
"""Wall [N/m], and how deep the hand is when its tick fails [m]: 2.7 N."""
IN = np.linspace(0.0, DEEP, 300)
OUT = np.concatenate([np.linspace(DEEP, -0.05, 200), np.full(800, -0.05)])
raises = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def assert_fades(sent: NDArray, failed: int, reason: int | None = None, servo: Servo | None = None) -> None:
    """There was a force before the row `failed`; from there on it only falls, to zero within FADE ticks."""
    norm = np.linalg.norm(sent, axis=1)
    assert norm[failed - 1] > 0.05, "the hand felt something"
    assert np.isfinite(sent).all()
    assert (np.diff(norm[failed - 1 :]) <= 1e-12).all()
    assert (norm[failed + FADE - 1 :] == 0.0).all()
    if servo is not None:
        assert finished_reason(servo) == reason, REASONS[finished_reason(servo)]


# ---- a tick that raises


@raises
def test_in_lock_step_a_tick_that_raises_leaves_no_force():
    wall = make_wall(external(), K, limits=make_limits(TOUCH.max_force, fades=AT_ONCE), raise_at=len(IN))
    sent = move(wall.servo, along((1.0, 0.0, 0.0), np.concatenate([IN, OUT])))["sent"]
    assert len(sent) == len(IN) + FADE and wall.calls == len(IN) + 1
    assert_fades(sent, len(IN), STOP_TICK_FAILED, wall.servo)


@raises
def test_on_the_servos_own_clock_a_tick_that_raises_leaves_no_force():
    wall = make_wall(external(), K, limits=make_limits(TOUCH.max_force, fades=AT_ONCE), raise_at=200)
    wall.servo.device_port.position[0] = 5e-3
    compile_servo(wall.servo)
    with ServoThread(wall.servo, realtime=False) as thread:
        assert thread.join(20.0), "the servo ends by itself"
    assert_fades(columns(wall.servo)["sent"], 200, STOP_TICK_FAILED, wall.servo)


@raises
def test_on_a_devices_scheduler_a_tick_that_raises_leaves_no_force_and_every_frame_is_ended():
    stand_in = fresh_stand_in()
    stand_in.script(DEFAULT, press())
    wall = touch_wall(raise_at=300)
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        end = time.monotonic() + 20.0
        while thread.running and time.monotonic() < end:
            time.sleep(1e-3)
        assert thread.reason == REASONS[STOP_TICK_FAILED]
    applied = stand_in.forces(DEFAULT)
    assert len(applied) == 300 + FADE, "a force was set, and the frame ended, in each of them"
    assert stand_in.counts["illegal"] == 0, "no frame was begun before the last one had ended"
    assert_fades(applied, 300)
    stand_in.disconnect()


@cfunc(types.int32(HandleType(typeof(make_port()))), cache=True)
def silent(port):
    """A force, and success in the returned value alone: as of a tick that never came to its last act."""
    port.force[0] = -1.0
    return np.int32(1)


def test_a_tick_that_does_not_say_that_it_is_done_has_failed_and_nothing_is_sent():
    port = make_port()
    data = Handle(port)
    limits = make_limits(TOUCH.max_force, fades=AT_ONCE)
    servo = make_servo(silent.address, data.address, port, external(), limits)
    assert (move(servo, along((1.0, 0.0, 0.0), [0.0] * 100))["sent"] == 0.0).all()
    assert finished_reason(servo) == STOP_TICK_FAILED


# ---- no compiled tick can raise


def code_of(compiled: Any) -> str:
    """The LLVM text of all that a compiled function is made of, also if it came from the cache."""
    return str(compiled._get_module_for_linking())


def test_what_can_raise_shows_in_the_compiled_code():
    @cfunc(types.int32(types.int32), error_model="numpy")
    def may(n):
        if n > 3:
            raise ValueError
        return n

    assert "picklebuf" in code_of(may._library)


CALLBACKS = {
    "multi-rate link": high_rate.multirate_link,
    "hapco's link": hapco_servo.hapco_link,
    "link of hapco at two rates": two_rates.two_rate_link,
    "servo": engine_servo.servo_tick,
    "snap's link": snap_servo.snap_link,
    "suction's link": suction_servo.suction_link,
    "engine": whole_step.engine_step,
    "needle in tissue": insertion.insertion_detector,
    "sides of a blade": blade.sides_detector,
    "edge of a blade": blade.edge_detector,
    "fixed bodies": fixed.fixed_unit,
    "chains": chain.chain_unit,
    "surfaces": surface.surface_unit,
    "anderson": relaxing.anderson_unit,
    "uzawa": relaxing.uzawa_unit,
    "newton": stepping.newton_unit,
    "gauss-seidel": sweeping.gauss_seidel_unit,
    "maximal dissipation": dissipating.maximal_dissipation_unit,
    "touch": openhaptics_tick.touch_callback,
    "sampled wall": sampled_wall._wall_tick,
    "machine's clock": tick_clock.machine_clock,
    "counted clock": tick_clock.counted_clock,
}


@pytest.mark.parametrize("name", CALLBACKS)
def test_no_callback_can_raise(name):
    assert "picklebuf" not in code_of(CALLBACKS[name]._library)


@pytest.mark.parametrize("driver", [servo_run, servo_loop])
def test_no_driver_can_raise(driver):
    compile_servo(touch_wall().servo)
    for overload in driver.overloads.values():
        assert "picklebuf" not in code_of(overload.library)


# ---- the ticks of all systems


@cfunc(types.int32(types.voidptr), cache=True)
def shell(data):
    """A system's own tick, whole; then, in one call, a raise."""
    words = carray(data, (4,), np.int64)
    call = words[2]
    words[2] = call + 1
    code = call_tick(words[0], words[1])
    if call == words[3]:
        raise ValueError("a tick of this test")
    return code


@dataclass
class Ride:
    """A system's servo with a hand on it."""

    address: int
    handle: Any
    port: Port
    way: NDArray[np.float64]
    """Positions (n, 3) [m] that lead into contact."""
    spoil: dict[str, Callable[[], None]]
    """By what becomes NaN: the state, W, b."""
    advance: Callable[[Callable[[int], object]], None] = lambda tick: tick(1)
    owner: Any = None
    """Of memory that the state points to."""

    def run(self, spoil: str | None) -> tuple[Servo, NDArray, int]:
        """Lead the hand in, let the tick raise or its numbers be spoiled, lead it out."""
        words = np.array([self.address, self.handle.address, 0, -1], np.int64)
        limits = make_limits(1e3, max_rate=1e6, fades=AT_ONCE)
        servo = make_servo(shell.address, words.ctypes.data, self.port, external(), limits)
        rows = [self._lead(servo, self.way)]
        if spoil is None:
            words[3] = words[2]
        else:
            self.spoil[spoil]()
        back = self.way[::-1]
        rows.append(self._lead(servo, np.vstack([back, np.tile(back[-1:], (FADE, 1))])))
        return servo, np.vstack(rows), len(self.way)

    def _lead(self, servo: Servo, positions: NDArray) -> NDArray:
        sent = [np.zeros((0, 3))]
        for position in positions:
            servo.device_port.position[:] = position
            try:
                self.advance(lambda n: servo_run(servo, n))
            except FloatingPointError:  # the slow loop has seen it too, and ends; the servo goes on
                self.advance = lambda tick: tick(1)
            sent.append(drain_rows(servo)[:, [NAMES.index(f"sent_{c}") for c in "xyz"]])
        return np.vstack(sent)


def multirate() -> Ride:
    run = lock_step(BALL_ON_BLOCK)
    start = np.array([0.003, 0.008 + SKIN + 3e-4, -0.002])
    high = run.high

    def rigid():
        high.held.tool.v[0, 1] = np.nan

    def compliance():
        for array in (high.link.frame.compliance, high.link.frame.slot_rest, high.link.frame.slot_modes):
            array[:] = np.nan

    def gaps():
        high.search.topology.body_radius[:] = np.nan

    # until a tick within a slow period: a new frame brings numbers anew
    return Ride(
        engine_servo.servo_tick.address, run.handle, high.port,
        start - np.linspace(0.0, 3e-3, 207)[:, None] * np.array([0.0, 1.0, 0.0]),
        {"state": rigid, "W": compliance, "b": gaps},
        lambda tick: run.advance(1, tick),
    )  # fmt: skip


def hapco() -> Ride:
    state, handle = test_hapco_tick.servo(hold=test_hapco_tick.Hold(gains=test_hapco_tick.GAINS))
    start = state.port.position + state.mobile.frame.now.position

    def pose():
        state.mobile.frame.error[:] = np.nan

    def compliance():
        state.mobile.boundary.compliance[:] = np.nan

    def sag():
        state.mobile.boundary.rest[:] = np.nan

    way = start - np.linspace(0.0, 3e-3, 60)[:, None] * np.array([0.0, 1.0, 0.0])
    return Ride(
        engine_servo.servo_tick.address, handle, state.port, way, {"state": pose, "W": compliance, "b": sag}
    )


def snap() -> Ride:
    model, side, handle = test_snap_servo.make()
    motion = side.snap.plug.motion

    def velocity():
        motion.velocity[:] = np.nan

    def inverse():
        side.snap.plug.model.inverse[:] = np.nan

    def pose():
        motion.position[:] = np.nan

    return Ride(
        engine_servo.servo_tick.address, handle, handle.state.port, test_snap_servo.way(model, 6.5e-3),
        {"state": velocity, "W": inverse, "b": pose}, owner=model,
    )  # fmt: skip


def suction() -> Ride:
    held, *_ = test_suction_servo.soft_cup()
    error = np.array([1e-3, -2e-3, 5e-4, 1e-2, 0.0, -2e-2])
    state, handle, _ = test_suction_servo.servo_on(held, test_suction_servo.GAINS, error, origin=-9)

    def frame():
        state.cup.frame.position[:] = np.nan

    def matrix():
        state.cup.frame.w[:] = np.nan

    def free():
        state.cup.frame.b[:] = np.nan

    way = np.linspace(0.0, 1.0, 40)[:, None] * np.array([1e-3, -3e-3, 2e-3])
    return Ride(
        engine_servo.servo_tick.address, handle, state.port, way,
        {"state": frame, "W": matrix, "b": free},
    )  # fmt: skip


SYSTEMS = {"multi-rate": multirate, "hapco": hapco, "snap": snap, "suction": suction}


@raises
@pytest.mark.parametrize("spoil", [None, "state", "W", "b"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_whose_tick_raises_or_whose_numbers_are_none_leaves_no_force(system, spoil):
    ride = SYSTEMS[system]()
    servo, sent, failed = ride.run(spoil)
    assert_fades(sent, failed)
    assert finished_reason(servo) in (STOP_TICK_FAILED, STOP_NON_FINITE)
    assert servo.port.status["code"][0] != OK
