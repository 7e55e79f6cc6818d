"""The hands of a run, each with a device of its own: the first drives the servo, the others go along."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver, Speaking
from palpo.app.devices.mock import SimulatedHand
from palpo.app.devices.protection import device_spec
from palpo.app.devices.table import choose
from palpo.app.runtime.rigs import DeviceAt, Further
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import DEVICE_OK, VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.drivers import ServoThread
from palpo.haptics.errors import HapticsError
from palpo.haptics.polled import PolledThread, Watch
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.app.streams.stream import Stream
    from palpo.haptics.servo import Servo


class Paths:
    """The paths of all hands, kept ahead of the servo together; ticks: of the longest."""

    def __init__(self) -> None:
        self._paths: list[Ahead] = []

    @property
    def ticks(self) -> int:
        """Rows of the longest path."""
        return max(path.ticks for path in self._paths)

    def add(self, path: Ahead) -> None:
        """One more."""
        self._paths.append(path)

    def keep(self, tick: int) -> None:
        """Fill what the servo may ask for soon, now that `tick` ticks are done."""
        for path in self._paths:
            path.keep(tick)


@dataclass(frozen=True)
class _As:
    """What was asked of one device after the first: another word, else the same."""

    device: str
    unit: str
    replay_scale: float
    lock_step: bool
    window: bool
    page: bool
    stream: Stream | None


def chosen(spec: BaseScene, asked: DeviceOptions, named: Sequence[str]) -> list[Device]:
    """The devices of all hands: the one that is asked for, then those named, then simulated ones.

    Raises HapticsError for one that cannot be used, or not in that place.
    """
    first, hands = choose(asked), len(spec.hands)
    if len(named) >= hands:
        has = "one hand" if hands == 1 else f"{hands} hands"
        raise HapticsError(f"--device {named[hands - 1]}: this scene has {has}; name no more devices")
    words = [*named, *[SimulatedHand.word] * (hands - 1 - len(named))]
    further = [
        choose(
            _As(word, asked.unit, asked.replay_scale, asked.lock_step, asked.window, asked.page, asked.stream)
        )
        for word in words
    ]
    for device in further:
        if device.schedules and device.word != first.word:
            raise HapticsError(
                f"--device {device.word}: its own scheduler calls the servo of all hands, so name it first"
            )
    if sum(device.pointed for device in (first, *further)) > 1:
        raise HapticsError(f"--device {first.word}: one pointer leads one hand; choose another device")
    return [first, *further]


def open_further(spec: BaseScene, devices: Sequence[Device], stack: ExitStack) -> list[DeviceSpec]:
    """Open the devices after the first until the stack closes; their figures."""
    return [device.ready(hand, stack) for device, hand in zip(devices[1:], spec.hands[1:], strict=True)]


def further_hands(
    spec: BaseScene, devices: Sequence[Device], paths: Paths, figures: Sequence[DeviceSpec] = ()
) -> Sequence[Further]:
    """The devices of the hands after the first, whose paths join `paths` when they are made."""

    def at(hand: BaseScene, device: Device) -> DeviceAt:
        def make(held: NDArray[np.float64]) -> VirtualDevice:
            made, path = device.make(hand, held)
            paths.add(path)
            return made

        return make

    further, hands = devices[1:], spec.hands[1:]
    found = figures or [device_spec(hand) for hand in hands]
    return [
        Further(at(hand, device), own, device.rebased)
        for hand, device, own in zip(hands, further, found, strict=True)
    ]


def drive(devices: Sequence[Device], servo: Servo) -> ServoDriver:
    """What calls the servo's step, and serves the devices of all hands."""
    further = [
        device.companion(led) for device, led in zip(devices[1:], servo.led, strict=True) if device.live
    ]
    leader = devices[0].driver(servo)
    companions = [driver for driver in further if isinstance(driver, ServoThread)]
    return Together(leader, companions) if companions else leader


class Together:
    """The driver of the first hand's servo, with the devices of other hands: a `ServoDriver`.

    The first one's servo calls what is polled; a thread that leads a hand runs beside it.
    """

    def __init__(self, leader: ServoDriver, companions: Sequence[ServoThread]) -> None:
        self.servo = leader.servo
        self._leader, self._companions = leader, companions
        polled = any(isinstance(driver, PolledThread) for driver in companions)
        self._watch = Watch(leader.servo) if polled else None

    @property
    def running(self) -> bool:
        """Whether it still turns."""
        return self._leader.running and not (self._watch is not None and self._watch.silent)

    @property
    def reason(self) -> str:
        """Why it stopped, in words; a lost device says what became of it."""
        if self._watch is not None and self._watch.gone:
            return self._watch.words
        own = self._leader.servo.device.health[0] == DEVICE_OK
        lost = [c.lost for c in self._companions if c.servo.device.health[0] != DEVICE_OK and c.lost]
        return lost[0] if own and lost else self._leader.reason

    @property
    def scheduler(self) -> str:
        """What calls the servo."""
        return self._leader.scheduler

    def events(self) -> dict[str, int]:
        """What all devices have to say since last asked, and how often each said it."""
        found: dict[str, int] = {}
        for driver in (self._leader, *self._companions):
            if isinstance(driver, Speaking):
                for words, times in driver.events().items():
                    found[words] = found.get(words, 0) + times
        return found

    def prepare(self) -> None:
        """Compile, so that `start` need not."""
        self._leader.prepare()

    def start(self) -> object:
        """Begin; returns once it turns."""
        self.prepare()
        for driver in self._companions:
            driver.accompany()
        return self._leader.start()

    def stop(self) -> None:
        """Ask for the fade and the end."""
        self._leader.stop()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out."""
        ended = (self._watch is not None and self._watch.gone) or self._leader.join(timeout)
        for driver in self._companions:
            driver.leave()
        return ended
