"""What a Touch needs of the system, as far as files can tell: settings, and a port that may be opened.

The driver (Geomagic Touch Device Driver) reads its settings from the folder that GTDD_HOME names, or from
~/.3dsystems; a Touch with USB is a serial port (ttyACM) of 3D Systems' vendor id, older ones are HID devices.
"""

import os
from collections.abc import Mapping
from pathlib import Path

VENDORS = ("2988",)
"""USB vendor ids of 3D Systems, in hexadecimal."""
RULE_FILE = "/etc/udev/rules.d/99-3dsystems.rules"
RULE = "\n".join(
    f'SUBSYSTEM=="{system}", ATTRS{{idVendor}}=="{vendor}", MODE="0660", TAG+="uaccess"'
    for vendor in VENDORS
    for system in ("tty", "hidraw", "usb")
)
"""What lets whoever sits at the machine open the device's port."""


class SetupError(OSError):
    """A sentence that says what is missing and what to do."""


def driver(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str:
    """Where the driver's settings are looked for. Raises SetupError where GTDD_HOME names no folder."""
    named = environment.get("GTDD_HOME")
    if named is None:
        return f"GTDD_HOME is not set; the driver looks in {(home or Path.home()) / '.3dsystems'}"
    if not Path(named).is_dir():
        raise SetupError(f"GTDD_HOME = {named} is no folder; let it name the one that Touch Setup writes to")
    return f"GTDD_HOME = {named}"


def settings(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str:
    """The devices that are set up. Raises SetupError where there is none that can be read and written."""
    folder = Path(environment.get("GTDD_HOME") or (home or Path.home()) / ".3dsystems")
    if not folder.is_dir():
        raise SetupError(f"{folder} is not there; run Touch Setup once, and pair the device in it")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise SetupError(
            f"{folder} cannot be read and written; it may be root's: sudo chown -R $USER {folder}"
        )
    shut = [path for path in sorted(folder.rglob("*")) if path.is_file() and not os.access(path, os.R_OK)]
    if shut:
        raise SetupError(f"{shut[0]} cannot be read; it may be root's: sudo chown -R $USER {folder}")
    named = sorted(path.stem for path in folder.rglob("*.config")) + sorted(
        path.stem for path in folder.rglob("*.xml")
    )
    return f"{folder}: {', '.join(named) if named else 'no device yet; run Touch Setup'}"


def ports(root: Path = Path("/")) -> list[Path]:
    """The device files of 3D Systems' devices: serial ports and HID."""
    found = []
    for kind, folder in (("tty", "class/tty"), ("hidraw", "class/hidraw")):
        for entry in sorted((root / "sys" / folder).glob(f"{'ttyACM' if kind == 'tty' else kind}*")):
            if _vendor(entry) in VENDORS:
                found.append(root / "dev" / entry.name)
    return found


def _vendor(entry: Path) -> str:
    """USB vendor id above an entry of /sys/class, empty for none."""
    place = entry.resolve()
    for folder in (place, *place.parents):
        try:
            return (folder / "idVendor").read_text().strip().lower()
        except OSError:
            continue
    return ""


def port(root: Path = Path("/")) -> str:
    """The device's port. Raises SetupError where there is none, or none that may be opened."""
    found = ports(root)
    if not found:
        raise SetupError(
            "no port of a 3D Systems device (ttyACM or hidraw); check cable and power. "
            "One with Ethernet or FireWire has none"
        )
    shut = [path for path in found if not os.access(path, os.R_OK | os.W_OK)]
    if shut:
        rule = RULE.splitlines()[0]
        raise SetupError(
            f"{shut[0]} may not be opened; write {rule} (and the same for hidraw and usb) to {RULE_FILE}, "
            "then sudo udevadm control --reload, and plug it in again; docs/devices.md has the whole rule"
        )
    return ", ".join(map(str, found))
