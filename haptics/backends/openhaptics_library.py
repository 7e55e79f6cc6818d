"""libHD, the device library of OpenHaptics, through pyOpenHaptics' library handle and definitions.

Signatures are those of HD/hdDevice.h and HD/hdScheduler.h. pyOpenHaptics is imported at the first `load`: its
import loads libHD, which only the owner of a device has.
"""

import ctypes
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from palpo.haptics.errors import HapticsError

WARN, FATAL, FADE = 0, 1, 2
"""Severity of an error: report it and go on, fade and stop, or fade and bring the force back."""
DEFAULT_NAMES = (None, "Default Device", "Default PHANToM")
"""What drivers call the device that nobody names: libHD's own default, that of Touch Setup's drivers, and
that of those before, for a Phantom."""


class DeviceError(NamedTuple):
    """What an error code of libHD means."""

    name: str
    sentence: str
    severity: int


ANSWER = 0.5
"""Seconds within which a library that works returns from any call."""
ERROR_DEPTH = 64
"""Errors taken from the stack at a time; libHD's holds fewer."""
BAD_HANDLE = 0x0104
ABSENT = 0x0303
BAD_READING = 0x10000
"""Not libHD's: a pose that is no rotation or not finite."""
# The numbers of hdDefines.h; pyOpenHaptics gives HD_INVALID_OPERATION that of HD_INVALID_INPUT_TYPE.
ERRORS = {
    0x0100: DeviceError("HD_INVALID_ENUM", "the device does not know a property that was asked for", WARN),
    0x0101: DeviceError("HD_INVALID_VALUE", "the device refused a value", FATAL),
    0x0102: DeviceError("HD_INVALID_OPERATION", "the device cannot do that in its present state", FATAL),
    0x0103: DeviceError("HD_INVALID_INPUT_TYPE", "the device refused a value for its type", FATAL),
    BAD_HANDLE: DeviceError("HD_BAD_HANDLE", "the device is no longer there for its driver", FATAL),
    0x0200: DeviceError("HD_WARM_MOTORS", "the motors are warm; rest the device for a few minutes", WARN),
    0x0201: DeviceError("HD_EXCEEDED_MAX_FORCE", "the force exceeded what the device can give", WARN),
    0x0202: DeviceError("HD_EXCEEDED_MAX_FORCE_IMPULSE", "the force changed too fast for the device", WARN),
    0x0203: DeviceError("HD_EXCEEDED_MAX_VELOCITY", "the stylus moved too fast for the device", WARN),
    0x0204: DeviceError("HD_FORCE_ERROR", "the device failed to give the force", FADE),
    0x0300: DeviceError("HD_DEVICE_FAULT", "the device reports a fault; switch it off and on again", FATAL),
    0x0301: DeviceError("HD_DEVICE_ALREADY_INITIATED", "the device is in use already", FATAL),
    0x0302: DeviceError("HD_COMM_ERROR", "the device was lost; check its cable and power", FATAL),
    ABSENT: DeviceError("HD_COMM_CONFIG_ERROR", "the device is not connected; check name and cable", FATAL),
    0x0304: DeviceError("HD_TIMER_ERROR", "the driver's timer failed", FATAL),
    0x0400: DeviceError("HD_ILLEGAL_BEGIN", "a frame of the device was begun out of order", FATAL),
    0x0401: DeviceError("HD_ILLEGAL_END", "a frame of the device was ended out of order", FATAL),
    0x0402: DeviceError("HD_FRAME_ERROR", "the device was used outside a frame", FATAL),
    0x0500: DeviceError("HD_INVALID_PRIORITY", "the driver refused the servo's priority", FATAL),
    0x0501: DeviceError("HD_SCHEDULER_FULL", "the driver has no room for another servo", FATAL),
    0x0600: DeviceError("HD_INVALID_LICENSE", "the licence of OpenHaptics is not valid", FATAL),
    BAD_READING: DeviceError("BAD_READING", "the device reported a pose that is none", FATAL),
}  # fmt: skip


def explain(code: int, internal: int = 0) -> str:
    """An error code in words; internal: the driver's own number, added where there is one."""
    known = ERRORS.get(code)
    if known is None:
        return f"the device reported the unknown error 0x{code:04X} ({internal})"
    own = f", {internal}" if internal else ""
    return f"{known.sentence} ({known.name}{own})"


def _prototypes(d: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Result and argument types by pyOpenHaptics' definitions d."""
    get = (None, (d.HDenum, ctypes.c_void_p))
    return {
        "hdInitDevice": (d.HHD, (d.HDstring,)),
        "hdDisableDevice": (None, (d.HHD,)),
        "hdMakeCurrentDevice": (None, (d.HHD,)),
        "hdGetCurrentDevice": (d.HHD, ()),
        "hdBeginFrame": (None, (d.HHD,)),
        "hdEndFrame": (None, (d.HHD,)),
        "hdEnable": (None, (d.HDenum,)),
        "hdDisable": (None, (d.HDenum,)),
        "hdGetDoublev": get,
        "hdGetIntegerv": get,
        "hdGetString": (d.HDstring, (d.HDenum,)),
        "hdSetDoublev": get,
        "hdGetError": (d.HDErrorInfo, ()),
        "hdIsEnabled": (d.HDboolean, (d.HDenum,)),
        "hdCheckCalibration": (d.HDenum, ()),
        "hdUpdateCalibration": (None, (d.HDenum,)),
        "hdGetSchedulerTimeStamp": (ctypes.c_double, ()),
        "hdStartScheduler": (None, ()),
        "hdStopScheduler": (None, ()),
        "hdSetSchedulerRate": (None, (d.HDulong,)),
        "hdScheduleAsynchronous": (d.HDulong, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ushort)),
        "hdUnschedule": (None, (d.HDulong,)),
    }


class HdLibrary:
    """The functions of libHD (`hd.hdInitDevice` ...), its constants (`constants.HD_...`) and its scheduler.

    libHD has one scheduler, one error stack and one current device for the whole process: what concerns the
    current device happens before the scheduler runs, or inside a callback.
    """

    def __init__(self, handle: ctypes.CDLL, definitions: Any) -> None:
        self.constants = definitions
        self.hd = SimpleNamespace()
        self._jobs: dict[int, float] = {}
        self.hangs = False
        """Whether a call has not returned; then no other is made that could hang as well."""
        for name, (result, arguments) in _prototypes(definitions).items():
            try:
                # a prototype of our own leaves what pyOpenHaptics has declared on its handle as it was
                setattr(self.hd, name, ctypes.CFUNCTYPE(result, *arguments)((name, handle)))
            except AttributeError:
                raise HapticsError(f"libHD lacks {name}; install OpenHaptics 3.4 or later") from None

    def address(self, name: str) -> int:
        """Address of a function, for compiled code."""
        return int(ctypes.cast(getattr(self.hd, name), ctypes.c_void_p).value or 0)

    def integer(self, name: int) -> int:
        """A property of the current device; 0 for one that it does not know."""
        value = ctypes.c_int(0)
        self.hd.hdGetIntegerv(name, ctypes.byref(value))
        return 0 if self.take_errors() else value.value

    def initialise(self, name: str | None) -> tuple[int, str | None, list[tuple[int, int]]]:
        """Open the device of this name, or of the first of DEFAULT_NAMES that one is connected by.

        Returns its handle, the name that it answers to, and the errors on the way; where nothing answers
        HD_INVALID_HANDLE, and the errors of the first name.
        """
        first: list[tuple[int, int]] = []
        for answering in DEFAULT_NAMES if name is None else (name,):
            handle = int(self.hd.hdInitDevice(None if answering is None else answering.encode()))
            errors = self.take_errors()
            if handle != self.constants.HD_INVALID_HANDLE:
                return handle, answering, errors
            first = first or errors
            if any(code != ABSENT for code, _ in errors):
                break  # it is there, but cannot be used: no other one is meant
        return int(self.constants.HD_INVALID_HANDLE), name, first

    def take_errors(self) -> list[tuple[int, int]]:
        """Empty the error stack: (code, internal code), the oldest first."""
        found: list[tuple[int, int]] = []
        while len(found) < ERROR_DEPTH and (error := self.hd.hdGetError()).errorCode:
            found.append((int(error.errorCode), int(error.internalErrorCode)))
        return found[::-1]

    def refuse_fatal(self, doing: str, errors: Sequence[tuple[int, int]] | None = None) -> None:
        """Raise HapticsError for the first fatal one of these errors, or of the stack's, which is emptied."""
        for code, internal in self.take_errors() if errors is None else errors:
            if is_fatal(code):
                raise HapticsError(f"{doing}: {explain(code, internal)}")

    @property
    def scheduling(self) -> bool:
        """Whether some device's servo is on the scheduler."""
        return bool(self._jobs)

    def schedule(self, callback: int, data: int, rate_hz: float) -> int:
        """Have the scheduler call `callback(data)` at each tick; the job's handle. The first job starts it.

        A driver may refuse to be told the rate: then what it says of its own decides. Raises HapticsError if
        the scheduler does not run at the rate, or refuses the job.
        """
        self.refuse_hanging()
        if any(rate != rate_hz for rate in self._jobs.values()):
            raise HapticsError(
                f"a servo of {rate_hz:g} Hz cannot share the device's scheduler with one of another rate"
            )
        first = not self._jobs
        if first:
            self.take_errors()
            self.hd.hdSetSchedulerRate(round(rate_hz))
            refused = any(is_fatal(code) for code, _ in self.take_errors())
            own = self.integer(self.constants.HD_UPDATE_RATE)
            if refused and own not in (0, round(rate_hz)):
                raise HapticsError(
                    f"the device's scheduler does not run at {rate_hz:g} Hz but at {own}; "
                    f"run the scene with --set rates.servo_hz={own}"
                )
        job = int(self.hd.hdScheduleAsynchronous(callback, data, self.constants.HD_MAX_SCHEDULER_PRIORITY))
        if first:
            self.refuse_fatal("the device's scheduler refused the servo")
            self.hd.hdStartScheduler()
        self._jobs[job] = rate_hz
        return job

    def release(self, job: int, scheduled: bool) -> bool:
        """Forget a job, unscheduling it if it still is, and stop the scheduler after the last one.

        False if libHD did not answer: it waits for a callback that never returns, or for its device.
        """
        del self._jobs[job]
        last = not self._jobs

        def leave() -> None:
            if scheduled:
                self.hd.hdUnschedule(job)
            if last:
                self.hd.hdStopScheduler()

        return self.bounded(leave)

    def bounded(self, calls: Callable[[], object]) -> bool:
        """Make calls that may hang in a thread of their own; whether they returned within ANSWER."""
        if self.hangs:
            return False
        done = threading.Event()

        def make() -> None:
            calls()
            done.set()

        threading.Thread(target=make, name="libHD", daemon=True).start()
        self.hangs = not done.wait(ANSWER)
        return not self.hangs

    def refuse_hanging(self) -> None:
        """Raise HapticsError if a call has hung."""
        if self.hangs:
            raise HapticsError("libHD does not answer any more; switch the device off and start again")


def is_fatal(code: int) -> bool:
    """Whether an error ends a run; one that is not known does."""
    return code not in ERRORS or ERRORS[code].severity == FATAL


def library_folders(environment: Mapping[str, str]) -> list[Path]:
    """Folders that hold HD.dll: those of PATH, and of the places that OpenHaptics' installer names."""
    folders = [Path(folder) for folder in environment.get("PATH", "").split(os.pathsep) if folder]
    for name in ("OH_SDK_BASE", "3DTOUCH_BASE"):
        if root := environment.get(name):
            folders += [Path(root, "lib", "x64"), Path(root, "bin", "x64"), Path(root, "bin"), Path(root)]
    return [folder for folder in dict.fromkeys(folders) if (folder / "HD.dll").is_file()]


def let_find(folders: Iterable[Path], add: Callable[[str], object]) -> None:
    """Have Windows look for libraries there, as Python keeps it off PATH. add: os.add_dll_directory."""
    for folder in folders:
        add(str(folder.resolve()))


@functools.cache
def load() -> HdLibrary:
    """libHD, loaded once. Raises HapticsError, in one sentence, where there is none."""
    if sys.platform not in ("linux", "win32"):
        raise HapticsError(f"OpenHaptics, which the Touch needs, does not exist for {sys.platform}")
    if importlib.util.find_spec("pyOpenHaptics") is None:
        raise HapticsError("pyOpenHaptics is not installed; pip install palpo[touch]")
    if sys.platform == "win32":
        let_find(library_folders(os.environ), os.add_dll_directory)
    try:
        from pyOpenHaptics import hd, hd_define
    except OSError as error:
        raise HapticsError(
            f"libHD was not found ({error}); install OpenHaptics and the device's driver"
        ) from None
    return HdLibrary(hd._lib_hd, hd_define)
