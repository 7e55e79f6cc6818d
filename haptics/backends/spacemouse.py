"""A SpaceMouse of 3Dconnexion through hidapi: reports of a knob with six axes, and its buttons.

Report 1 is the translation, with the rotation behind it in newer models; report 2 the rotation of older ones;
report 3 the buttons. Each axis is a signed 16-bit number, least byte first, of about 350 at full deflection.
The knob's axes are x right, y toward the user, z down, so that its vector (x, y, z) is (x, -z, y) here.
"""

import importlib.util
from typing import Any

from palpo.haptics.errors import HapticsError
from palpo.haptics.rate import Deflection, can_open

FULL = 350.0
"""Number that an axis reports at full deflection."""
MODELS = {
    0x256F: (0xC62E, 0xC62F, 0xC631, 0xC632, 0xC633, 0xC635, 0xC636, 0xC63A, 0xC652),
    0x046D: (0xC603, 0xC605, 0xC606, 0xC621, 0xC623, 0xC625, 0xC626, 0xC627, 0xC628, 0xC629, 0xC62B, 0xC640),
}
"""USB products by vendor: 3Dconnexion's own, and those from its time with Logitech."""
RULE_FILE = "/etc/udev/rules.d/99-spacemouse.rules"
MULTI_AXIS = (1, 8)
"""HID usage of the interface that reports the knob."""


def _axis(report: bytes, at: int) -> float:
    raw = int.from_bytes(report[at : at + 2], "little", signed=True)
    return max(-1.0, min(1.0, raw / FULL))


def _vector(report: bytes, at: int) -> tuple[float, float, float]:
    x, y, z = (_axis(report, at + 2 * k) for k in range(3))
    return x, -z, y


def decode(report: bytes, before: Deflection) -> Deflection:
    """The deflection after a report; one that is none of the three, or too short, changes nothing."""
    kind, size = (report[0] if report else 0), len(report)
    if kind == 1 and size >= 13:
        return before._replace(along=_vector(report, 1), about=_vector(report, 7))
    if kind == 1 and size >= 7:
        return before._replace(along=_vector(report, 1))
    if kind == 2 and size >= 7:
        return before._replace(about=_vector(report, 1))
    if kind == 3 and size >= 2:
        return before._replace(buttons=int.from_bytes(report[1:5], "little"))
    return before


def hid_module() -> Any:
    """The module hid of hidapi. Raises HapticsError, in one sentence, where there is none."""
    if importlib.util.find_spec("hid") is None:
        raise HapticsError("hidapi is not installed; pip install palpo[spacemouse]")
    import hid

    return hid


def found(name: str | None = None) -> list[dict[str, Any]]:
    """What hidapi says of each SpaceMouse, of those whose product's name holds `name`."""
    there = []
    for entry in hid_module().enumerate():
        usage = (entry.get("usage_page", 0), entry.get("usage", 0))
        ours = entry["product_id"] in MODELS.get(entry["vendor_id"], ())
        if ours and usage in (MULTI_AXIS, (0, 0)):
            product = entry.get("product_string") or "SpaceMouse"
            if name is None or name.lower() in product.lower():
                there.append(entry | {"product_string": product})
    return there


class SpaceMouse:
    """An open SpaceMouse. Raises HapticsError where there is none, or none that may be opened."""

    def __init__(self, name: str | None = None) -> None:
        there = found(name)
        if not there:
            wanted = "no SpaceMouse" if name is None else f"no SpaceMouse {name}"
            raise HapticsError(f"{wanted}; check its cable, or its receiver")
        self.title = str(there[0]["product_string"])
        self._device = hid_module().device()
        try:
            self._device.open_path(there[0]["path"])
        except OSError as error:
            rule = 'SUBSYSTEM=="hidraw", ATTRS{idVendor}=="256f", MODE="0660", TAG+="uaccess"'
            raise HapticsError(
                f"{self.title} may not be opened ({error}); write {rule} to {RULE_FILE}, then "
                "sudo udevadm control --reload, and plug it in again"
            ) from None
        self._deflection = Deflection()

    def read(self, patience: float) -> Deflection | None:
        """The deflection after the next report, None after `patience` [s]. Raises OSError if it is lost."""
        report = self._device.read(64, max(1, round(1e3 * patience)))
        if not report:
            return None
        self._deflection = decode(bytes(report), self._deflection)
        return self._deflection

    def close(self) -> None:
        """Leave it."""
        self._device.close()


def find() -> tuple[bool, str]:
    """Whether one can be used now, and which it is or why not; never raises."""
    return can_open(SpaceMouse)
