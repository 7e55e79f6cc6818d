"""A Force Dimension device or a Novint Falcon through libdhd: which are there, and the servo that polls one.

Import this module only when the device is asked for: its compiled functions take a moment to load.
"""

import ctypes
import time
from collections.abc import Callable
from typing import Self

import numpy as np

from palpo.haptics.backends.dhd_library import (
    BY_ITSELF,
    CAUSES,
    STATUS_RESET,
    STATUSES,
    DhdLibrary,
    load,
    spec_of,
)
from palpo.haptics.backends.dhd_tick import (
    FUNCTIONS,
    DhdTick,
    dhd_data,
    dhd_read,
    dhd_write,
    make_dhd_tick,
)
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.haptics.polled import PolledThread
from palpo.haptics.servo import Servo

WATCHDOG = 160
"""Eighths of a millisecond, 20 ms, after which the device takes the force of a program that is gone."""
FILTER_HZ = 30.0
"""Low-pass of the angular velocity, which is that of the poses."""
NOTICE = 3.0
"""Seconds between saying that a device will move by itself, and its moving."""
ANSWER = 1.0
"""Seconds for which a device that is not calibrated is waited for where nobody was told."""


class DhdDevice:
    """An open device; a context manager that closes it however the block ends.

    name: its serial number, or a word of its system's name; None for the first. A device that is not
    calibrated is waited for as long as `patience` [s]: tell hears what the operator is to do, and given_up
    says that nobody waits any more. Raises HapticsError, in one sentence, where there is no library, no such
    device, or none that is calibrated.
    """

    def __init__(
        self,
        name: str | None = None,
        patience: float = ANSWER,
        tell: Callable[[str], object] = str,
        given_up: Callable[[], bool] = bool,
    ) -> None:
        self.library: DhdLibrary = load()
        self._closed, self.watchdog = True, 0.0
        """watchdog: silence [s] after which it takes the force, as it says itself; 0 without one."""
        self.id = self._open(name)
        self._closed = False
        try:
            self._wait_until_calibrated(patience, tell, given_up)
            self.library.if_there("dhdSetGravityCompensation", 1, self.id)
            self.watchdog = 125e-6 * self.library.watch_over(self.id, WATCHDOG)
            if self.library.call.dhdEnableForce(1, self.id) < 0:
                raise HapticsError(f"{self.title} does not switch its force on: {self.library.error()}")
        except BaseException:
            self.close()
            raise

    def _open(self, name: str | None) -> int:
        """The id of the device of this name, opened; the others are closed again."""
        call, seen = self.library.call, []
        for index in range(max(0, call.dhdGetDeviceCount())):
            found = int(call.dhdOpenID(index))
            if found < 0:
                seen.append(f"number {index}, which does not open ({self.library.error()})")
                continue
            self.model, self.serial = self._model(found), self._serial(found)
            self.title = f"{self.model} {self.serial}"
            if name is None or name == str(self.serial) or name.lower() in self.model.lower():
                self._index = index
                return found
            seen.append(self.title)
            call.dhdClose(found)
        wanted = "no Force Dimension device or Falcon" if name is None else f"no device {name}"
        there = f"; there is {', '.join(seen)}" if seen else "; check cable and power"
        raise HapticsError(wanted + there)

    def _model(self, device: int) -> str:
        text = self.library.call.dhdGetSystemName(device)
        return text.decode(errors="replace") if text else "Force Dimension"

    def _serial(self, device: int) -> int:
        number = ctypes.c_ushort(0)
        self.library.call.dhdGetSerialNumber(ctypes.byref(number), device)
        return number.value

    def _status(self) -> np.ndarray:
        status = np.zeros(STATUSES, dtype=np.int32)
        if self.library.call.dhdGetStatus(status.ctypes.data, self.id) < 0:
            raise HapticsError(f"{self.title} does not answer: {self.library.error()}")
        return status

    def _wait_until_calibrated(
        self, patience: float, tell: Callable[[str], object], given_up: Callable[[], bool]
    ) -> None:
        """Without force, until the device no longer asks to be put where it can find its origin.

        One that can drive there by itself does, where somebody was told.
        """
        if self._status()[STATUS_RESET] and patience > NOTICE:
            self._find_origin(tell, given_up)
        end, told = time.monotonic() + patience, False
        todo = (
            "push its grip all the way in and pull it all the way out, until its light is no longer red"
            if "falcon" in self.model.lower()
            else "bring it to its rest position, and let it find its origin"
        )
        while self._status()[STATUS_RESET]:
            if not told:
                told = True
                tell(f"{self.title} wants to be calibrated: {todo}")
            if time.monotonic() > end or given_up():
                raise HapticsError(f"{self.title} is not calibrated: {todo}, then start again")
            time.sleep(0.01)
        tell("")

    def _find_origin(self, tell: Callable[[str], object], given_up: Callable[[], bool]) -> None:
        """Let it drive to its origin, if it can. Raises HapticsError where it is gone afterwards."""

        def announced() -> bool:
            tell(f"{self.title} will move by itself in {NOTICE:g} s, to find its origin: keep your hands off")
            end = time.monotonic() + NOTICE
            while time.monotonic() < end and not given_up():
                time.sleep(0.01)
            return not given_up()

        self.library.call.dhdClose(self.id)
        try:
            self.library.find_origin(self._index, announced)
        finally:
            self.id = int(self.library.call.dhdOpenID(self._index))
        if self.id < 0:
            raise HapticsError(f"{self.title} does not open again: {self.library.error()}")

    @property
    def watched(self) -> str:
        """Whether the device itself takes the force of a program that is gone, as it says, in words."""
        if self.watchdog == 0.0:
            return "no watchdog: it keeps the last force of a program that is killed"
        return f"its watchdog takes the force after {1e3 * self.watchdog:g} ms of silence"

    def spec(self) -> DeviceSpec:
        """The figures of its model."""
        return spec_of(self.model, bool(self.library.if_there("dhdHasActiveWrist", self.id)))

    def close(self) -> None:
        """Close it: it gives no force any more. A second time does nothing."""
        if not self._closed:
            self._closed = True
            self.library.call.dhdEnableForce(0, self.id)
            self.library.call.dhdClose(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class DhdThread(PolledThread):
    """Runs a servo on a device: `palpo.haptics.polled` with what it has to say.

    tell: hears why the device gives no force now, and an empty text once it does.
    """

    def __init__(self, servo: Servo, device: DhdDevice, tell: Callable[[str], object] = str) -> None:
        self.device, self._tell = device, tell
        addresses = [device.library.address(name) for name in FUNCTIONS]
        self._tick: DhdTick = make_dhd_tick(servo, addresses, device.id)
        data = dhd_data(self._tick)
        super().__init__(servo, dhd_read.address, dhd_write.address, data, self._lost, self._words)
        self._counted = np.zeros_like(self._tick.counts)
        self._state = ""

    @property
    def state(self) -> str:
        """Why the device gives no force now and what to do about it; empty while it does."""
        held = int(self._tick.counts["held"][0])
        return "" if held == 0 else f"{self.device.title}: {CAUSES.get(held - 1, CAUSES[BY_ITSELF[-1]])}"

    def _lost(self) -> str:
        return f"{self.device.title} was lost; check its cable and power ({self.device.library.error()})"

    def _words(self) -> dict[str, int]:
        state = self.state
        if state != self._state:
            self._tell(state)
            self._state = state
        before, self._counted = self._counted, self._tick.counts.copy()
        new = {name: int(self._counted[name][0] - before[name][0]) for name in ("errors", "saturated")}
        said = {
            f"{self.device.title} did not answer a call; its last pose was held": new["errors"],
            "the force exceeded what the device's motors can give": new["saturated"],
        }
        return {words: n for words, n in said.items() if n > 0}


def find(name: str | None = None) -> tuple[bool, str]:
    """Whether the device of this name can be used now, and which it is or why not; never raises."""
    try:
        with DhdDevice(name) as device:
            spec = device.spec()
            torque = f", {spec.max_torque:g} N m" if spec.max_torque else ""
            return True, f"ready: {device.title}, {spec.max_force:g} N{torque}, {device.watched}"
    except HapticsError as missing:
        return False, str(missing)
