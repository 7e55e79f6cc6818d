"""The devices that a run can use, in the order in which `--device auto` asks whether they are there."""

from palpo.app.devices.deflected import GamepadDevice, SpaceMouseDevice
from palpo.app.devices.device import Device, DeviceOptions
from palpo.app.devices.forcedimension import ForceDimension
from palpo.app.devices.haply import Haply
from palpo.app.devices.led import Led
from palpo.app.devices.mock import SimulatedHand
from palpo.app.devices.mouse import Mouse
from palpo.app.devices.remote import Remote
from palpo.app.devices.touch import TouchDevice
from palpo.app.devices.trajectory import TrajectoryDevice
from palpo.haptics.errors import HapticsError

DEVICES: tuple[type[Device], ...] = (
    TouchDevice,
    ForceDimension,
    Mouse,
    SimulatedHand,
    TrajectoryDevice,
    Haply,
    Remote,
    SpaceMouseDevice,
    GamepadDevice,
    Led,
)
AUTO = "auto"


def offered() -> dict[str, str]:
    """What `--device` takes, with a line for people."""
    named = {device.word + (f":{device.argument}" if device.argument else ""): device for device in DEVICES}
    best = "the first that is there of " + ", ".join(d.word for d in DEVICES if d.automatic)
    return {AUTO: best} | {word: device.about for word, device in named.items()}


def kind_of(named: str) -> type[Device]:
    """The device that a word of `--device` means. Raises HapticsError for one that is not there."""
    word, _, argument = named.partition(":")
    kind = next((device for device in DEVICES if device.word == word), None)
    if kind is None or (argument and not kind.argument):
        known = ", ".join(offered())
        raise HapticsError(f"--device {named}: there is no such device; choose one of {known}")
    return kind


def choose(asked: DeviceOptions) -> Device:
    """The device that `--device` names. Raises HapticsError for one that is not there."""
    word, _, argument = asked.device.partition(":")
    kind = None if word == AUTO else kind_of(asked.device)
    if asked.device == AUTO:
        kind = next(device for device in DEVICES if device.there(asked))
    assert kind is not None
    device = kind(asked, argument)
    device.asked = asked.device if asked.device != AUTO else device.word
    return device
