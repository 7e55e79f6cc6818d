"""libdhd, the library of Force Dimension's SDK, which drives their own devices and the Novint Falcon.

Signatures and numbers are those of dhdc.h. The SDK is the maker's and on no package index: its library is
looked for where FORCEDIM_SDK says, and where the system finds libraries.
"""

import ctypes
import ctypes.util
import functools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError

# of dhdc.h
STATUS_RESET, STATUS_FORCE, STATUS_FORCE_OFF_CAUSE = 3, 5, 14
STATUSES = 32
"""Room for dhdGetStatus: DHD_MAX_STATUS is 16 or 17, by version."""
CAUSES = {
    1: "its force button is off: press it to feel",
    2: "it was too fast, and its force is off; it comes back by itself",
    3: "its watchdog took the force; it comes back by itself",
    4: "its force is off; it comes back by itself",
    6: "its dead man's switch is open: hold it to feel",
}
"""Why a device gives no force, by DHD_FORCEOFF_*; 0 and 5 have no words of their own."""
BY_ITSELF = (2, 3, 4)
"""Causes that the program puts right."""

_INT, _ID, _BYTE, _DOUBLE = ctypes.c_int, ctypes.c_byte, ctypes.c_ubyte, ctypes.c_double
_POINTER = ctypes.c_void_p
PROTOTYPES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "dhdGetDeviceCount": (_INT, ()),
    "dhdOpenID": (_INT, (_ID,)),
    "dhdClose": (_INT, (_ID,)),
    "dhdStop": (_INT, (_ID,)),
    "dhdErrorGetLastStr": (ctypes.c_char_p, ()),
    "dhdGetSystemName": (ctypes.c_char_p, (_ID,)),
    "dhdGetSerialNumber": (_INT, (_POINTER, _ID)),
    "dhdEnableForce": (_INT, (_BYTE, _ID)),
    "dhdGetStatus": (_INT, (_POINTER, _ID)),
    "dhdGetPositionAndOrientationFrame": (_INT, (_POINTER, _POINTER, _POINTER, _POINTER, _ID)),
    "dhdGetLinearVelocity": (_INT, (_POINTER, _POINTER, _POINTER, _ID)),
    "dhdGetButtonMask": (ctypes.c_uint, (_ID,)),
    "dhdSetForceAndTorqueAndGripperForce": (_INT, (_DOUBLE,) * 7 + (_ID,)),
}
OPTIONAL: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "dhdSetGravityCompensation": (_INT, (_INT, _ID)),
    "dhdEnableExpertMode": (_INT, ()),
    "dhdDisableExpertMode": (_INT, ()),
    "dhdSetWatchdog": (_INT, (_BYTE, _ID)),
    "dhdGetWatchdog": (_INT, (_POINTER, _ID)),
    "dhdHasActiveWrist": (ctypes.c_bool, (_ID,)),
    # of drdc.h, the robotic part
    "drdOpenID": (_INT, (_ID,)),
    "drdClose": (_INT, (_ID,)),
    "drdIsSupported": (ctypes.c_bool, (_ID,)),
    "drdAutoInit": (_INT, (_ID,)),
    "drdStop": (_INT, (ctypes.c_bool, _ID)),
}
"""Functions that older versions lack, and that nothing depends on."""

# What libdhd does not say of a device is its maker's: largest force, stiffness, workspace, torque.
_OMEGA = DeviceSpec("omega", 12.0, 5000.0, 0.01e-3, (0.160, 0.160, 0.110), 1, 0.15, 0.1)
MODELS = {
    "omega": _OMEGA,
    "delta": replace(_OMEGA, name="delta", max_force=20.0, workspace=(0.4, 0.4, 0.26)),
    "sigma": replace(_OMEGA, name="sigma", max_force=20.0, workspace=(0.19, 0.19, 0.13), max_torque=0.4),
    "lambda": replace(_OMEGA, name="lambda", max_force=20.0, workspace=(0.24, 0.24, 0.2), max_torque=0.4),
    "falcon": replace(
        _OMEGA, name="Falcon", max_force=8.0, max_stiffness=3000.0, resolution=0.06e-3,
        workspace=(0.1, 0.1, 0.1), buttons=4,
    ),
}  # fmt: skip
CAREFUL = replace(_OMEGA, name="Force Dimension", max_force=8.0, max_stiffness=2000.0)
"""Of a model that is not among them."""


def spec_of(name: str, active_wrist: bool) -> DeviceSpec:
    """The figures of a device by its system's name, with torques only where its wrist has motors."""
    nominal = next((spec for word, spec in MODELS.items() if word in name.lower()), CAREFUL)
    torque = (nominal.max_torque or 0.2) if active_wrist else 0.0
    return replace(nominal, name=name or nominal.name, max_torque=torque, bandwidth=200.0)


class DhdLibrary:
    """The functions of libdhd; `call.dhdOpenID(0)`."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self.call = SimpleNamespace()
        for name, (result, arguments) in (PROTOTYPES | OPTIONAL).items():
            try:
                found = ctypes.CFUNCTYPE(result, *arguments)((name, handle))
            except AttributeError:
                if name in PROTOTYPES:
                    raise HapticsError(
                        f"libdhd lacks {name}; install Force Dimension's SDK 3.5 or later"
                    ) from None
                continue
            setattr(self.call, name, found)

    def address(self, name: str) -> int:
        """Address of a function, for compiled code."""
        return int(ctypes.cast(getattr(self.call, name), ctypes.c_void_p).value or 0)

    def if_there(self, name: str, *arguments: object) -> int:
        """Call a function that may be missing; 0 then."""
        function: Callable[..., int] | None = getattr(self.call, name, None)
        return 0 if function is None else int(function(*arguments))

    def watch_over(self, device: int, eighths: int) -> int:
        """Let a device take the force of a program that is silent for so many eighths of a millisecond.

        Returns what it says of that afterwards, 0 where it has no watchdog. These are expert calls, which the
        library refuses unless they are enabled; nothing else of ours is done while they are.
        """
        if self.if_there("dhdEnableExpertMode") < 0:
            return 0
        try:
            said = ctypes.c_ubyte(0)
            if self.if_there("dhdSetWatchdog", eighths, device) < 0:
                return 0
            if self.if_there("dhdGetWatchdog", ctypes.byref(said), device) < 0:
                return 0
            return int(said.value)
        finally:
            self.if_there("dhdDisableExpertMode")

    def find_origin(self, index: int, announced: Callable[[], bool]) -> bool:
        """Let a closed device drive to where it finds its origin, if it can; whether it has.

        index: among the devices that are there. announced: says that it will move, and whether it may.
        """
        opened = self.if_there("drdOpenID", index) if hasattr(self.call, "drdAutoInit") else -1
        if opened < 0:
            return False
        try:
            may = self.if_there("drdIsSupported", opened) and announced()
            done = bool(may) and self.if_there("drdAutoInit", opened) >= 0
            self.if_there("drdStop", False, opened)
            return done
        finally:
            self.if_there("drdClose", opened)

    def error(self) -> str:
        """The library's own words for the last error."""
        text = self.call.dhdErrorGetLastStr()
        return text.decode(errors="replace") if text else "no reason given"


def candidates(environment: Mapping[str, str], platform: str = sys.platform) -> list[str]:
    """File names under which the library may be, the likeliest first."""
    windows = platform == "win32"
    bare = ["drd64.dll", "dhd64.dll"] if windows else ["libdrd.so.3", "libdhd.so.3", "libdrd.so", "libdhd.so"]
    if platform == "darwin":
        bare = ["libdrd.dylib", "libdhd.dylib"]
    found: list[str] = []
    if root := environment.get("FORCEDIM_SDK"):
        for pattern in ("d[hr]d64.dll",) if windows else ("libd[hr]d.so*", "libd[hr]d.dylib"):
            # the one with the robotic part holds the other as well
            found += [
                str(path) for path in sorted(Path(root).rglob(pattern), key=lambda p: p.name, reverse=True)
            ]
    named = [name for name in map(ctypes.util.find_library, ("drd", "dhd")) if name]
    return found + named + bare


@functools.cache
def load() -> DhdLibrary:
    """libdhd, loaded once. Raises HapticsError, in one sentence, where there is none."""
    for name in candidates(os.environ):
        try:
            return DhdLibrary(ctypes.CDLL(name))
        except OSError:
            continue
    raise HapticsError(
        "libdhd was not found; install Force Dimension's SDK and let FORCEDIM_SDK name its folder"
    )
