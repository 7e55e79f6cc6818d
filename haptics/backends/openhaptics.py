"""A Phantom or Touch through OpenHaptics: which are there, what they state, and the servo on their scheduler.

Built on pyOpenHaptics' definitions and library handle, with a compiled callback of our own
(`openhaptics_tick`). Import this module only when the device is asked for: the compiled callback takes half a
second to load. Nothing is loaded from libHD until `find`, or until a device is opened.
"""

import ctypes
import math
import time
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from palpo.haptics.backends.guardian import Guardian
from palpo.haptics.backends.openhaptics_library import ERRORS, Library, explain, load
from palpo.haptics.backends.openhaptics_tick import (
    ENDED,
    FAULT_CODE,
    FAULT_INTERNAL,
    FUNCTIONS,
    INSIDE,
    UNKNOWN_CODE,
    UNKNOWN_INTERNAL,
    make_touch_tick,
    touch_callback,
    touch_data,
)
from palpo.haptics.device import DEVICE_GONE, PHANTOM_DESKTOP, TOUCH, DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo, compile_servo, finished_reason, request_stop, servo_run, tick_count
from palpo.haptics.statistics import SKIPPED, STEPS
from palpo.physics.exchange.handle import Handle

STARTING = 1.0
"""Seconds that the device's scheduler may take to its first tick."""
QUIET = 0.05
"""Seconds without a tick, as long as a fade takes, after which the force is said not to be known."""
PATIENCE = 0.25
"""Seconds without a tick after which the device's scheduler is taken for dead, as frames are for too old."""
CALIBRATION_TRIES, CALIBRATION_PAUSE = 10, 0.05
"""Updates of an automatic calibration, and seconds between two."""
MILLIMETRE = 1e-3

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

    name: the device's name in Touch Setup, None for the default one. Raises HapticsError, in one sentence,
    when pyOpenHaptics, libHD or the device is missing, when it is not calibrated, or when a servo runs on the
    scheduler already: libHD's current device is one for the process, so open all devices first.
    """

    def __init__(self, name: str | None = None) -> None:
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
            self._calibrate()
        except BaseException:
            hd.hdDisableDevice(self.handle)
            raise
        _opened[name] = self

    def _cause(self) -> str:
        errors = self.library.take_errors()
        return explain(*errors[0]) if errors else "check its name in Touch Setup, cable and power"

    def _calibrate(self) -> None:
        """Update an automatic calibration; raises HapticsError where the operator must lend a hand."""
        hd, c = self.library.hd, self.library.constants
        styles = self._integer(c.HD_CALIBRATION_STYLE)
        status = hd.hdCheckCalibration()
        for _ in range(CALIBRATION_TRIES):
            if status != c.HD_CALIBRATION_NEEDS_UPDATE:
                break
            hd.hdUpdateCalibration(_update_style(styles, c))
            time.sleep(CALIBRATION_PAUSE)
            status = hd.hdCheckCalibration()
        self.library.take_errors()
        if status != c.HD_CALIBRATION_OK:
            raise HapticsError(f"{self.title} is not calibrated: {_what_to_do(styles, c)}")

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
        sides = _sides(found.usable_workspace)
        return replace(
            nominal,
            name=found.model or nominal.name,
            max_force=found.max_force if found.max_force > 0.0 else nominal.max_force,
            max_stiffness=found.max_stiffness if found.max_stiffness > 0.0 else nominal.max_stiffness,
            workspace=sides if min(sides) > 0.0 else nominal.workspace,
        )

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
        return "put the stylus into the inkwell until its light is steady, then start again"
    if styles & c.HD_CALIBRATION_AUTO:
        return "move the stylus slowly through its whole workspace, then start again"
    return "bring the arm to its reset position, calibrate it in Touch Setup, then start again"


class TouchThread:
    """Runs a servo on the scheduler of a device: as `haptics.servo.ServoThread`, without a thread of its own.

    The servo's device has the source EXTERNAL and its period is the scheduler's. The device stays open: close
    it afterwards. A context manager that stops the servo however the block ends.
    """

    def __init__(self, servo: Servo, device: OpenHapticsDevice) -> None:
        self.servo, self.device = servo, device
        self.error: BaseException | None = None
        self.scheduler = "the device's scheduler was not started"
        library = device.library
        addresses = [library.address(name) for name in FUNCTIONS]
        self._tick = make_touch_tick(servo, addresses, device.handle)
        self._data = touch_data(self._tick)
        self._job: int | None = None
        self._silent = ""
        self._quiet = 0  # 1 when a silence is still to be told, 2 once it is
        self._seen = 0, 0.0
        self._guardian: Guardian | None = None
        self._told = np.zeros_like(self._tick.counts)

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
        ticks, now = tick_count(self.servo), time.monotonic()
        patience = PATIENCE if ticks else STARTING
        if ticks != self._seen[0]:
            self._seen = ticks, now
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
        return said

    def served(self) -> float:
        """Ticks done over the periods that have passed, by the servo's own statistics."""
        counters = self.servo.statistics.counters
        return float(counters[STEPS] / max(counters[STEPS] + counters[SKIPPED], 1))

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
