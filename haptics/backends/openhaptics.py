"""A Phantom or Touch through OpenHaptics: which are there, what they state, and the servo on their scheduler.

Built on pyOpenHaptics' definitions and library handle, with a compiled callback of our own
(`openhaptics_tick`). Import this module only when the device is asked for: the compiled callback takes half a
second to load. Nothing is loaded from libHD until `find`, or until a device is opened.
"""

import ctypes
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from palpo.haptics.backends import openhaptics_prepare as prepare
from palpo.haptics.backends.guardian import Guardian
from palpo.haptics.backends.openhaptics_library import ERRORS, Library, explain, load
from palpo.haptics.backends.openhaptics_tick import (
    BY_HAND,
    CALIBRATING,
    ENDED,
    FAULT_CODE,
    FAULT_INTERNAL,
    FORCE_TAKEN,
    FUNCTIONS,
    HELD,
    INSIDE,
    LAST_CALL,
    SWITCH_OPEN,
    UNKNOWN_CODE,
    UNKNOWN_INTERNAL,
    make_touch_tick,
    touch_callback,
    touch_data,
)
from palpo.haptics.control import finished_reason, request_stop, tick_count
from palpo.haptics.device import DEVICE_GONE, PHANTOM_DESKTOP, TOUCH, DeviceSpec
from palpo.haptics.drivers import compile_servo, servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo
from palpo.physics.exchange.handle import Handle

STARTING = 1.0
"""Seconds that the device's scheduler may take to its first tick."""
QUIET = 0.05
"""Seconds without a tick, as long as a fade takes, after which the force is said not to be known."""
PATIENCE = 0.25
"""Seconds without a tick after which the device's scheduler is taken for dead, as frames are for too old."""
CALIBRATION = 1.0
"""Seconds that an automatic calibration may take."""
SERVED = 0.9
"""Share of the ticks below which the bus is said to be slow."""
LASTING = {TOUCH.name: 0.88, PHANTOM_DESKTOP.name: 1.75}
"""Force [N] that a device stands for ever where it does not say so itself."""
FILTER_HZ = 30.0
"""Low-pass of the angular velocity, which is that of the poses."""
MILLIMETRE = 1e-3

Corner = tuple[float, float, float]

_opened: dict[str | None, "OpenHapticsDevice"] = {}
_kept: list[Handle] = []
"""Data of callbacks that a dead scheduler may still call: they must outlive it."""


@dataclass(frozen=True)
class Availability:
    """Whether a device can be used now, and one sentence that says which, or why not."""

    ok: bool
    sentence: str


@dataclass(frozen=True)
class DeviceIdentity:
    """What a device states of itself, SI units; NaN or an empty text for what it does not state."""

    model: str
    vendor: str
    driver: str
    serial: str
    firmware: float
    update_rate: int
    """Rate of its scheduler [Hz]."""
    max_force: float
    """Nominal largest force [N]."""
    max_continuous_force: float
    """Force that it can hold without its motors warming [N]."""
    max_stiffness: float
    """Nominal largest stiffness of a closed loop [N/m]."""
    max_damping: float
    """Nominal largest damping [N s/m]."""
    max_workspace: tuple[float, ...]
    """Mechanical limits x y z, lowest then highest [m]."""
    usable_workspace: tuple[float, ...]
    """Where forces are reliable, likewise [m]."""
    input_dof: int
    output_dof: int

    def describe(self) -> str:
        """One line for people."""
        size = " x ".join(f"{1e3 * side:.0f}" for side in _sides(self.usable_workspace))
        return (
            f"{self.model} ({self.vendor}, driver {self.driver}, serial number {self.serial}): "
            f"{self.update_rate} Hz, {self.max_force:g} N, {self.max_continuous_force:g} N continuous, "
            f"{self.max_stiffness:g} N/m, {size} mm"
        )


def _sides(box: tuple[float, ...]) -> tuple[float, float, float]:
    return box[3] - box[0], box[4] - box[1], box[5] - box[2]


def _reach(box: tuple[float, ...]) -> tuple[Corner, Corner] | None:
    """The corners of a box that is one."""
    if not all(math.isfinite(x) for x in box) or min(_sides(box)) <= 0.0:
        return None
    return (box[0], box[1], box[2]), (box[3], box[4], box[5])


def find(name: str | None = None) -> Availability:
    """Whether the device of this name (None: the default one) can be used now; never raises.

    The device is opened, asked what it is, and closed again; one that this process has open is left alone.
    """
    try:
        device = _opened.get(name)
        if device is not None:
            return Availability(True, f"in use: {device.identity.describe()}")
        with OpenHapticsDevice(name) as device:
            return Availability(True, f"ready: {device.identity.describe()}")
    except HapticsError as missing:
        return Availability(False, str(missing))


class OpenHapticsDevice:
    """An initialised device; a context manager that disables it however the block ends.

    name: the device's name in Touch Setup, None for the default one. A device that is not calibrated is
    waited for as long as `patience` [s]: tell hears what the operator is to do, and given_up says that nobody
    waits any more. Raises HapticsError, in one sentence, when pyOpenHaptics, libHD or the device is missing,
    when it is not calibrated, or when a servo runs on the scheduler already: libHD's current device is one
    for the process, so open all devices first.
    """

    def __init__(
        self,
        name: str | None = None,
        patience: float = CALIBRATION,
        tell: Callable[[str], object] = str,
        given_up: Callable[[], bool] = bool,
    ) -> None:
        self.name = name
        self.title = "the default device" if name is None else f'the device "{name}"'
        self.library: Library = load()
        if self.library.scheduling:
            raise HapticsError(f"{self.title} must be opened before a servo runs on another one")
        hd, constants = self.library.hd, self.library.constants
        self.library.refuse_hanging()
        self.library.take_errors()
        self.handle = int(hd.hdInitDevice(None if name is None else name.encode()))
        if self.handle == constants.HD_INVALID_HANDLE:
            raise HapticsError(f"{self.title} cannot be opened: {self._cause()}")
        try:
            self.library.refuse_fatal(f"{self.title} cannot be opened")
            self.identity = self._read_identity()
            self._prepare(patience, tell, given_up)
        except BaseException:
            hd.hdDisableDevice(self.handle)
            raise
        _opened[name] = self

    def _cause(self) -> str:
        errors = self.library.take_errors()
        return explain(*errors[0]) if errors else "check its name in Touch Setup, cable and power"

    def _prepare(self, patience: float, tell: Callable[[str], object], given_up: Callable[[], bool]) -> None:
        """On the running scheduler, without force: calibrate, and find out what the device has."""
        c = self.library.constants
        styles = self._integer(c.HD_CALIBRATION_STYLE)
        self.style, self.what_to_do = _update_style(styles, c), _what_to_do(styles, c)
        addresses = [self.library.address(name) for name in FUNCTIONS]
        tick = prepare.make_preparing(addresses, self.handle, self.style)
        data = prepare.preparing_data(tick)
        rate = self.identity.update_rate or 1000
        job = self.library.schedule(prepare.prepare_callback.address, data.address, rate)
        try:
            self._wait_until_ready(tick, patience, tell, given_up)
        finally:
            tick.words[prepare.LEAVE] = 1
            end = time.monotonic() + PATIENCE
            while not tick.words[prepare.ENDED] and time.monotonic() < end:
                time.sleep(1e-3)
            ended = bool(tick.words[prepare.ENDED])
            tick.words[prepare.ENDED] = 1
            if not ended:
                _kept.append(data)
            self.library.release(job, scheduled=not ended)
            tell("")
        self.has = [bool(there) for there in tick.has]

    def _wait_until_ready(
        self,
        tick: prepare.Preparing,
        patience: float,
        tell: Callable[[str], object],
        given_up: Callable[[], bool],
    ) -> None:
        """Until the calibration is well; raises HapticsError where it does not become so."""
        words, begun, told = tick.words, time.monotonic(), False
        while words[prepare.CALLS] < len(tick.has) or words[prepare.STEADY] < prepare.STEADY_CALLS:
            waited = time.monotonic() - begun
            if words[prepare.FAULT]:
                fault = explain(int(words[prepare.FAULT]), int(words[prepare.FAULT_INTERNAL]))
                raise HapticsError(f"{self.title} cannot be opened: {fault}")
            if not words[prepare.CALLS] and waited > STARTING:
                raise HapticsError(f"the scheduler of {self.title} has not called for {STARTING:g} s")
            if words[prepare.CALLS] and (waited > patience or given_up()):
                raise HapticsError(f"{self.title} is not calibrated: {self.what_to_do}, then start again")
            by_hand = words[prepare.STATUS] == self.library.constants.HD_CALIBRATION_NEEDS_MANUAL_INPUT
            if by_hand and not told:
                told = True
                tell(f"{self.title} wants to be calibrated: {self.what_to_do}")
            time.sleep(2e-3)

    # ---- what it states

    def _read_identity(self) -> DeviceIdentity:
        c = self.library.constants
        reach, usable = (
            tuple(MILLIMETRE * x for x in self._doubles(name, 6))
            for name in (c.HD_MAX_WORKSPACE_DIMENSIONS, c.HD_USABLE_WORKSPACE_DIMENSIONS)
        )
        return DeviceIdentity(
            model=self._text(c.HD_DEVICE_MODEL_TYPE),
            vendor=self._text(c.HD_DEVICE_VENDOR),
            driver=self._text(c.HD_DEVICE_DRIVER_VERSION),
            serial=self._text(c.HD_DEVICE_SERIAL_NUMBER),
            firmware=self._doubles(c.HD_DEVICE_FIRMWARE_VERSION, 1)[0],
            update_rate=self._integer(c.HD_UPDATE_RATE),
            max_force=self._doubles(c.HD_NOMINAL_MAX_FORCE, 1)[0],
            max_continuous_force=self._doubles(c.HD_NOMINAL_MAX_CONTINUOUS_FORCE, 1)[0],
            max_stiffness=self._doubles(c.HD_NOMINAL_MAX_STIFFNESS, 1)[0] / MILLIMETRE,
            max_damping=self._doubles(c.HD_NOMINAL_MAX_DAMPING, 1)[0] / MILLIMETRE,
            max_workspace=reach,
            usable_workspace=usable,
            input_dof=self._integer(c.HD_INPUT_DOF),
            output_dof=self._integer(c.HD_OUTPUT_DOF),
        )

    def _doubles(self, name: int, n: int) -> list[float]:
        values = (ctypes.c_double * n)(*[math.nan] * n)
        self.library.hd.hdGetDoublev(name, values)
        return [math.nan] * n if self.library.take_errors() else list(values)

    def _integer(self, name: int) -> int:
        value = ctypes.c_int(0)
        self.library.hd.hdGetIntegerv(name, ctypes.byref(value))
        return 0 if self.library.take_errors() else value.value

    def _text(self, name: int) -> str:
        text = self.library.hd.hdGetString(name)
        return "" if self.library.take_errors() or text is None else text.decode(errors="replace")

    def spec(self) -> DeviceSpec:
        """The nominal figures of its model, with force, stiffness and workspace as the device states them."""
        found = self.identity
        model = found.model.lower()
        # the Touch X is the Desktop under its later name
        nominal = PHANTOM_DESKTOP if "desktop" in model or "touch x" in model else TOUCH
        sides, lasting = _sides(found.usable_workspace), found.max_continuous_force
        return replace(
            nominal,
            name=found.model or nominal.name,
            max_force=found.max_force if found.max_force > 0.0 else nominal.max_force,
            max_stiffness=found.max_stiffness if found.max_stiffness > 0.0 else nominal.max_stiffness,
            workspace=sides if min(sides) > 0.0 else nominal.workspace,
            reach=_reach(found.max_workspace) or nominal.reach,
            continuous_force=lasting if lasting > 0.0 else LASTING[nominal.name],
            bandwidth=200.0,
        )

    @property
    def lasting(self) -> float:
        """Share of its largest force that it can give for ever."""
        spec = self.spec()
        return min(1.0, spec.continuous_force / spec.max_force)

    # ---- its end

    def close(self) -> None:
        """Disable the device: it gives no force any more. A second time does nothing."""
        if _opened.get(self.name) is self:
            del _opened[self.name]
            self.library.bounded(lambda: self.library.hd.hdDisableDevice(self.handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _update_style(styles: int, c: Any) -> int:
    """The calibration that needs no reset: by itself, or in the inkwell."""
    return int(c.HD_CALIBRATION_AUTO if styles & c.HD_CALIBRATION_AUTO else c.HD_CALIBRATION_INKWELL)


def _what_to_do(styles: int, c: Any) -> str:
    if styles & c.HD_CALIBRATION_INKWELL:
        return "put the stylus into the inkwell until its light is steady"
    if styles & c.HD_CALIBRATION_AUTO:
        return "move the stylus slowly through its whole workspace"
    return "bring the arm to its reset position and calibrate it in Touch Setup"


class TouchThread:
    """Runs a servo on the scheduler of a device: as `haptics.servo.ServoThread`, without a thread of its own.

    The servo's device has the source EXTERNAL and its period is the scheduler's. The device stays open: close
    it afterwards. A context manager that stops the servo however the block ends.
    """

    def __init__(self, servo: Servo, device: OpenHapticsDevice, tell: Callable[[str], object] = str) -> None:
        """tell: hears why the device gives no force now, and an empty text once it does."""
        self.servo, self.device, self._tell = servo, device, tell
        self.error: BaseException | None = None
        self.scheduler = "the device's scheduler was not started"
        library = device.library
        addresses = [library.address(name) for name in FUNCTIONS]
        self._tick = make_touch_tick(
            servo, addresses, device.handle, device.has, device.style, device.lasting
        )
        self._data = touch_data(self._tick)
        self._job: int | None = None
        self._silent = ""
        self._quiet = 0  # 1 when a silence is still to be told, 2 once it is
        self._seen = 0, 0.0
        self._guardian: Guardian | None = None
        self._told = np.zeros_like(self._tick.counts)
        self._said, self._served = "", (0, 0)

    def start(self) -> Self:
        """Compile, then put the servo on the scheduler; returns after its first tick.

        Raises HapticsError if the scheduler refuses it or does not call within STARTING.
        """
        compile_servo(self.servo)
        rate = 1e9 / self.servo.period_ns
        self._job = self.device.library.schedule(touch_callback.address, self._data.address, rate)
        self._guardian = Guardian(self.device.name)
        self.scheduler = f"the device's own scheduler calls the servo at {rate:g} Hz"
        self._seen = 0, time.monotonic()
        try:
            while self.running and tick_count(self.servo) == 0:
                time.sleep(1e-3)
        except BaseException:
            self.stop()
            self.join(PATIENCE)
            raise
        if self._silent:
            self._release()
            raise HapticsError(self._silent)
        return self

    @property
    def _ended(self) -> bool:
        return bool(self._tick.words[ENDED])

    @property
    def running(self) -> bool:
        """Whether the scheduler still calls the servo."""
        if self._job is None or self._ended or self._silent:
            return False
        # a paused servo is called and makes no tick
        ticks, called, now = tick_count(self.servo), int(self._tick.clock[LAST_CALL]), time.monotonic()
        patience = PATIENCE if ticks else STARTING
        if called != self._seen[0]:
            self._seen = called, now
            self._quiet = 0
        elif now - self._seen[1] > patience:
            self._silent = f"the scheduler of {self.device.title} has not called for {patience:g} s"
        elif now - self._seen[1] > QUIET and ticks and self._quiet == 0:
            self._quiet = 1
        return not self._silent

    @property
    def reason(self) -> str:
        """Why the servo stopped, in words; "running" until then. A lost device says what became of it."""
        if self._silent:
            return self._silent
        reason = int(finished_reason(self.servo))
        if reason == STOP_DEVICE_LOST:
            fault = self._tick.fault
            return explain(int(fault[FAULT_CODE]), int(fault[FAULT_INTERNAL]))
        return REASONS[reason]

    def events(self) -> dict[str, int]:
        """The device's warnings and errors since last asked, in words, and how often each came."""
        new = self._tick.counts - self._told
        self._told += new
        fault = self._tick.fault
        unknown = explain(int(fault[UNKNOWN_CODE]), int(fault[UNKNOWN_INTERNAL]))
        sentences = [*map(explain, ERRORS), unknown]
        said = {sentence: int(n) for n, sentence in zip(new, sentences, strict=True) if n > 0}
        if self._quiet == 1:
            self._quiet = 2
            said[f"the scheduler of {self.device.title} does not call: the force is not known, let go"] = 1
        state = self.state
        if state != self._said:
            self._tell(state)
        self._said = state
        slow = self._slow_bus()
        if slow:
            said[slow] = 1
        return said

    @property
    def state(self) -> str:
        """Why the device gives no force now and what to do about it; empty while it does."""
        held, device = int(self._tick.words[HELD]), self.device
        if held & BY_HAND:
            return f"{device.title} wants to be calibrated: {device.what_to_do}"
        if held & CALIBRATING:
            return f"{device.title} updates its calibration; the force comes back by itself"
        if held & SWITCH_OPEN:
            return "the safety switch of the stylus is open: hold it to feel"
        if held & FORCE_TAKEN:
            return "the driver switched the force off, as it does when the stylus is too fast; it comes back"
        return ""

    def _slow_bus(self) -> str:
        """A sentence for each second in which fewer than SERVED of the ticks were served."""
        steps, skipped = (int(self.servo.statistics.counts[k][0]) for k in ("steps", "skipped"))
        done, lost = steps - self._served[0], skipped - self._served[1]
        if (done + lost) * self.servo.dt < 1.0:
            return ""
        self._served = steps, skipped
        if done >= SERVED * (done + lost):
            return ""
        return f"the bus of {self.device.title} is slow: it misses ticks; give it a port of its own"

    @property
    def lost(self) -> bool:
        """Whether the device is not to be used again without being opened anew."""
        return bool(self._silent) or int(finished_reason(self.servo)) == STOP_DEVICE_LOST

    def served(self) -> float:
        """Ticks done over the periods that have passed, by the servo's own statistics."""
        counts = self.servo.statistics.counts[0]
        return float(counts["steps"] / max(counts["steps"] + counts["skipped"], 1))

    def stop(self) -> None:
        """Ask the servo to fade and end; returns at once."""
        request_stop(self.servo)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out. Afterwards the scheduler calls no more."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                return False
            time.sleep(1e-3)
        self._release()
        return True

    def _release(self) -> None:
        """Leave the scheduler; without a last tick, disable the device and bring the servo to its end."""
        if self._job is None:
            return
        silent, job, self._job = not self._ended, self._job, None
        # first of all: a callback that comes late does nothing
        self._tick.words[ENDED] = 1
        if silent:
            _kept.append(self._data)
            # before the scheduler is left: that may wait for ever, and this takes the force
            self.device.close()
        answered = self.device.library.release(job, scheduled=silent)
        if self._guardian is not None and answered:
            self._guardian.dismiss()
        if not answered:
            self._silent += "; libHD does not answer: the force is not known, let go of the stylus"
        if silent and not self._tick.words[INSIDE]:
            self.servo.device.health[0] = DEVICE_GONE
            servo_run(self.servo, round(STARTING / self.servo.dt))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.join(5.0)
