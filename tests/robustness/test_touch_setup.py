"""What the doctor finds out about a Touch from files: settings, ports, permissions; and what to do."""

import os
from pathlib import Path

import pytest

from palpo.haptics.backends.openhaptics_setup import RULE, SetupError, driver, port, ports, settings


def plugged(root: Path, name: str, vendor: str, kind: str = "tty") -> Path:
    """A device file with its place in /sys, as the kernel lays it out."""
    usb = root / "sys/devices/usb1/1-2"
    (usb / "1-2:1.0" / kind / name).mkdir(parents=True)
    (usb / "idVendor").write_text(f"{vendor}\n")
    entry = root / "sys/class" / kind / name
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.symlink_to(usb / "1-2:1.0" / kind / name)
    device = root / "dev" / name
    device.parent.mkdir(exist_ok=True)
    device.touch()
    return device


@pytest.mark.parametrize(("name", "kind"), [("ttyACM0", "tty"), ("hidraw3", "hidraw")])
def test_the_port_of_a_3d_systems_device_is_found_by_its_vendor(tmp_path, name, kind):
    device = plugged(tmp_path, name, "2988", kind)
    assert ports(tmp_path) == [device] and port(tmp_path) == str(device)


def test_another_maker_s_port_is_none_of_it(tmp_path):
    plugged(tmp_path, "ttyACM0", "2341")
    assert ports(tmp_path) == []
    with pytest.raises(SetupError, match="check cable and power"):
        port(tmp_path)


def test_a_port_that_may_not_be_opened_comes_with_the_udev_rule(tmp_path, monkeypatch):
    device = plugged(tmp_path, "ttyACM0", "2988")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SetupError, match="may not be opened") as refused:
        port(tmp_path)
    assert str(device) in str(refused.value) and RULE.splitlines()[0] in str(refused.value)
    assert "99-3dsystems.rules" in str(refused.value)


def test_the_rule_names_every_kind_of_port_and_is_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "devices.md").read_text("utf-8")
    for line in RULE.splitlines():
        assert line in text
    assert [word in RULE for word in ("tty", "hidraw", "usb")] == [True] * 3


def test_gtdd_home_that_is_no_folder_is_named(tmp_path):
    assert ".3dsystems" in driver({}, tmp_path)
    assert driver({"GTDD_HOME": str(tmp_path)}) == f"GTDD_HOME = {tmp_path}"
    with pytest.raises(SetupError, match="no folder"):
        driver({"GTDD_HOME": str(tmp_path / "none")})


def test_settings_are_listed_by_device_and_missing_ones_say_run_touch_setup(tmp_path, monkeypatch):
    with pytest.raises(SetupError, match="run Touch Setup once"):
        settings({}, tmp_path)
    folder = tmp_path / ".3dsystems" / "config"
    folder.mkdir(parents=True)
    assert "no device yet" in settings({}, tmp_path)
    (folder / "Left Device.config").write_text("")
    assert settings({}, tmp_path).endswith("Left Device")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, how: Path(path).suffix != ".config" and real(path, how))
    with pytest.raises(SetupError, match=r"Left Device.config cannot be read.*chown"):
        settings({}, tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SetupError, match="may be root's"):
        settings({}, tmp_path)
