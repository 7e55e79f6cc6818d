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

from palpo.haptics.backends import openhaptics_prepare as prepare
from palpo.haptics.backends.openhaptics_library import HdLibrary, explain, load
from palpo.haptics.backends.openhaptics_tick import (
    FUNCTIONS,
)
from palpo.haptics.backends.openhaptics_timing import shares
from palpo.haptics.device_spec import PHANTOM_DESKTOP, TOUCH, DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.physics.exchange.handle import Handle

STARTING = 1.0
"""Seconds that the device's scheduler may take to its first tick."""
PATIENCE = 0.25
"""Seconds without a tick after which the device's scheduler is taken for dead, as frames are for too old."""
CALIBRATION = 1.0
"""Seconds that an automatic calibration may take."""
LASTING = {TOUCH.name: 0.88, PHANTOM_DESKTOP.name: 1.75}
"""Force [N] that a device stands for ever where it does not say so itself."""
FILTER_HZ = 30.0
"""Low-pass of the angular velocity, which is that of the poses."""
MILLIMETRE = 1e-3

Corner = tuple[float, float, float]

_opened: dict[str | None, "OpenHapticsDevice"] = {}
kept: list[Handle] = []
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
            return Availability(True, f"ready: {device.identity.describe()}; {device.timing}")
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
        self.library: HdLibrary = load()
        if self.library.scheduling:
            raise HapticsError(f"{self.title} must be opened before a servo runs on another one")
        if name in _opened:
            raise HapticsError(f"{self.title} leads a hand already; name another one: touch:NAME")
        hd, constants = self.library.hd, self.library.constants
        self.library.refuse_hanging()
        self.library.take_errors()
        self.handle, self.answers_to, errors = self.library.initialise(name)
        if self.handle == constants.HD_INVALID_HANDLE:
            cause = explain(*errors[0]) if errors else "check its name in Touch Setup, cable and power"
            raise HapticsError(f"{self.title} cannot be opened: {cause}")
        try:
            self.library.refuse_fatal(f"{self.title} cannot be opened", errors)
            self.identity = self._read_identity()
            self._prepare(patience, tell, given_up)
        except BaseException:
            hd.hdDisableDevice(self.handle)
            raise
        _opened[name] = self

    def _prepare(self, patience: float, tell: Callable[[str], object], given_up: Callable[[], bool]) -> None:
        """On the running scheduler, without force: calibrate, and find out what the device has."""
        c = self.library.constants
        styles = self.library.integer(c.HD_CALIBRATION_STYLE)
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
                kept.append(data)
            self.library.release(job, scheduled=not ended)
            tell("")
        self.has = [bool(there) for there in tick.has]
        self.timing = shares(tick.spent)

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
            update_rate=self.library.integer(c.HD_UPDATE_RATE),
            max_force=self._doubles(c.HD_NOMINAL_MAX_FORCE, 1)[0],
            max_continuous_force=self._doubles(c.HD_NOMINAL_MAX_CONTINUOUS_FORCE, 1)[0],
            max_stiffness=self._doubles(c.HD_NOMINAL_MAX_STIFFNESS, 1)[0] / MILLIMETRE,
            max_damping=self._doubles(c.HD_NOMINAL_MAX_DAMPING, 1)[0] / MILLIMETRE,
            max_workspace=reach,
            usable_workspace=usable,
            input_dof=self.library.integer(c.HD_INPUT_DOF),
            output_dof=self.library.integer(c.HD_OUTPUT_DOF),
        )

    def _doubles(self, name: int, n: int) -> list[float]:
        values = (ctypes.c_double * n)(*[math.nan] * n)
        self.library.hd.hdGetDoublev(name, values)
        return [math.nan] * n if self.library.take_errors() else list(values)

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
