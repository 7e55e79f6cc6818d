"""The devices that a run can use, in the order in which `--device auto` asks whether they are there."""

import warnings
from functools import cache
from importlib.metadata import entry_points

from palpo.app.devices.deflected import GamepadDevice, SpaceMouseDevice
from palpo.app.devices.device import Device, DeviceOptions
from palpo.app.devices.forcedimension import ForceDimension
from palpo.app.devices.haply import Haply
from palpo.app.devices.led import Led
from palpo.app.devices.mock import SimulatedHand
from palpo.app.devices.mouse import Mouse
from palpo.app.devices.page import PagePointer
from palpo.app.devices.remote import Remote
from palpo.app.devices.touch import TouchDevice
from palpo.app.devices.trajectory import TrajectoryDevice
from palpo.haptics.errors import HapticsError

DEVICES: tuple[type[Device], ...] = (
    TouchDevice,
    ForceDimension,
    Mouse,
    PagePointer,
    SimulatedHand,
    TrajectoryDevice,
    Haply,
    Remote,
    SpaceMouseDevice,
    GamepadDevice,
    Led,
)
AUTO = "auto"
GROUP = "palpo.devices"
"""Entry points of this group bring devices of other packages, classes as in `app/devices`, by any names."""


@cache
def brought() -> tuple[type[Device], ...]:
    """The devices of other packages that are installed; one that is none, or not new, is left out, with a
    warning."""
    words, found = {device.word for device in DEVICES}, []
    for entry in entry_points(group=GROUP):
        try:
            device = entry.load()
            if not issubclass(device, Device):
                raise TypeError("it is no palpo.app.devices.device.Device")
            if device.word in words:
                raise ValueError(f"there is a device called {device.word} already")
        except Exception as error:
            warnings.warn(f"the device {entry.name} ({entry.value}) is left out: {error}", stacklevel=2)
            continue
        words.add(device.word)
        found.append(device)
    return tuple(found)


def devices() -> tuple[type[Device], ...]:
    """Those that come with the program, and those of other packages: real ones of these are asked first."""
    first = [device for device in brought() if device.hardware]
    return *first, *DEVICES, *(device for device in brought() if not device.hardware)


def offered() -> dict[str, str]:
    """What `--device` takes, with a line for people."""
    named = {device.word + (f":{device.argument}" if device.argument else ""): device for device in devices()}
    best = "the first that is there of " + ", ".join(d.word for d in devices() if d.automatic)
    return {AUTO: best} | {word: device.about for word, device in named.items()}


def kind_of(named: str) -> type[Device]:
    """The device that a word of `--device` means. Raises HapticsError for one that is not there."""
    word, _, argument = named.partition(":")
    kind = next((device for device in devices() if device.word == word), None)
    if kind is None or (argument and not kind.argument):
        known = ", ".join(offered())
        raise HapticsError(f"--device {named}: there is no such device; choose one of {known}")
    return kind


def choose(asked: DeviceOptions) -> Device:
    """The device that `--device` names. Raises HapticsError for one that is not there."""
    word, _, argument = asked.device.partition(":")
    kind = None if word == AUTO else kind_of(asked.device)
    if asked.device == AUTO:
        kind = next(device for device in devices() if device.there(asked))
    assert kind is not None
    device = kind(asked, argument)
    device.asked = asked.device if asked.device != AUTO else device.word
    return device
