"""What a run asks of a device: a new one is a file with a `Device` in it and its line in `table`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.profile import profiled
from palpo.app.devices.protection import device_spec, workspace_of
from palpo.config.schema.scene import BaseScene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import (
    EXTERNAL,
    TABLE,
    HandGrip,
    VirtualDevice,
    first_rows,
    make_virtual_device,
    path_ahead,
)
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.drivers import ServoThread
from palpo.haptics.path import TickPath, waypoints
from palpo.haptics.workspace import Workspace, orientations_to_device, positions_to_device
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.app.streams.stream import Stream
    from palpo.haptics.servo import Servo
    from palpo.render.controls import PointedPose

KEY_VARIABLE = "PALPO_REMOTE_KEY"
"""Variable that holds the key of a remote hand's two ends; without it the scene makes one for this run."""


class DeviceOptions(Protocol):
    """What a user says of the device, in the command line's words (`palpo.app.runtime.options.Options`)."""

    @property
    def device(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def replay_scale(self) -> float: ...
    @property
    def lock_step(self) -> bool: ...
    @property
    def window(self) -> bool: ...
    @property
    def page(self) -> bool: ...
    @property
    def stream(self) -> Stream | None: ...


class ServoDriver(Protocol):
    """What calls the servo's step at its rate: a thread of our own, or a device's scheduler."""

    servo: Servo

    @property
    def scheduler(self) -> str:
        """What calls the servo, in words."""
        ...

    @property
    def running(self) -> bool:
        """Whether it still turns."""
        ...

    @property
    def reason(self) -> str:
        """Why it stopped, in words; a lost device says what became of it."""
        ...

    def prepare(self) -> None:
        """Compile, so that `start` need not."""
        ...

    def start(self) -> object:
        """Begin; returns once it turns."""
        ...

    def stop(self) -> None:
        """Ask for the fade and the end."""
        ...

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out."""
        ...


@runtime_checkable
class Speaking(Protocol):
    """A driver whose device has warnings to give."""

    def events(self) -> dict[str, int]:
        """Sentences since last asked, and how often each came."""
        ...


def found_by(backend: str) -> str:
    """`Device.question` of a module of palpo.haptics.backends whose `find` says whether one is there."""
    return f"""
from palpo.haptics.backends.{backend} import find
ok, words = find()
print(words)
sys.exit(not ok)
"""


class Device:
    """A device of one run: chosen, opened, placed in the scene, and driven.

    What stands here is a simulated Touch in a simulated hand, which follows a path; others say what differs.
    """

    word: ClassVar[str]
    """What `--device` calls it."""
    about: ClassVar[str]
    """One line for `palpo devices`."""
    taking: ClassVar[tuple[str, ...]] = ()
    """How a person takes the tool with it: a heading and lines for the window; empty where nobody does."""
    argument: ClassVar[str] = ""
    """What stands after the word and a colon, for people; empty for nothing."""
    question: ClassVar[str] = ""
    """Lines of Python that print what is there, and raise or exit where it cannot be used; empty: it can."""
    label: ClassVar[str] = ""
    """What `palpo doctor` calls it; empty where it does not ask."""
    steps: ClassVar[tuple[tuple[str, str], ...]] = ()
    """What `palpo doctor --device` asks, in order: a name, and lines as those of `question`."""
    live: ClassVar[bool] = False
    """Whether somebody moves it, so that it has no end of its own."""
    pointed: ClassVar[bool] = False
    """Whether the window's pointer moves it."""
    rebased: ClassVar[bool] = False
    """Whether its first position is taken as the tool's, wherever the hand is."""
    hardware: ClassVar[bool] = False
    """Whether it is real: it is looked for first."""
    schedules: ClassVar[bool] = False
    """Whether its own scheduler calls the servo."""

    automatic: ClassVar[bool] = True
    """Whether `--device auto` asks whether it is there."""

    source: ClassVar[int] = TABLE
    asked: str = ""
    """What `--device` called it."""
    state: str = ""
    """What whoever holds it should do or know now, in a sentence; empty while all is well."""
    heard: Callable[[str], object] | None = None
    """Takes each new state."""
    given_up: bool = False
    """Whether whoever waits for it to open no longer wants it."""

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        """Raises HapticsError where it cannot be used in such a run."""

    @classmethod
    def there(cls, asked: DeviceOptions) -> bool:
        """Whether `--device auto` may take it now."""
        return cls.automatic

    @property
    def title(self) -> str:
        """For people."""
        return self.word

    @property
    def serial(self) -> str:
        """Its serial number once it is open; empty where it tells none."""
        return ""

    def tell(self, words: str) -> None:
        """Change the state."""
        if words != self.state:
            self.state = words
            if words and self.heard is not None:
                self.heard(words)

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        """Make it ready, until the stack closes; returns its figures. Raises HapticsError if it cannot be."""
        return device_spec(spec)

    def ready(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        """`open`, and its figures by its profile, if it has been examined; ConfigError for a bad one."""
        found = self.open(spec, stack)
        if not self.hardware:
            return found
        own = profiled(self.asked, self.serial, found)
        if own is not found and self.heard is not None:
            self.heard(f"{self.title}: by its profile, couplings up to {own.max_stiffness:.4g} N/m")
        return own

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        """Where the hand is led, a row a tick, scene axes. held (3,) [m]: the tool's held point."""
        raise NotImplementedError

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        """The device in its own axes, and what keeps its path ahead of the servo."""
        path = to_device(self.path(spec, held), workspace_of(spec))
        hand = spec.device.hand
        device = make_mock(
            device_spec(spec), *first_rows(path), grip=HandGrip(hand.stiffness, hand.damping),
            dt=spec.rates.dt,
        )._replace(source=self.source)  # fmt: skip
        return device, path_ahead(device, path)

    def driver(self, servo: Servo) -> ServoDriver:
        """What calls the servo's step."""
        return ServoThread(servo)

    def follow(self, servo: Servo, hand: PointedPose) -> None:
        """Go to where the pointer's hand is in the scene, if this is what it moves."""
        raise NotImplementedError

    def companion(self, servo: Servo) -> ServoDriver:
        """What serves the device of a hand after the first, whose servo another one's calls."""
        return self.driver(servo)


def external_device(dt: float, cutoff_hz: float) -> tuple[VirtualDevice, Ahead]:
    """A device that somebody else's scheduler or service reports, period dt [s], and no path.

    cutoff_hz: low-pass of its velocity.
    """
    device = make_virtual_device(np.zeros((1, 3)), source=EXTERNAL, velocity_cutoff_hz=cutoff_hz, dt=dt)
    return device, path_ahead(device, waypoints([[0.0, 0.0, 0.0, 0.0]]))


def to_device(path: TickPath, workspace: Workspace) -> TickPath:
    """A path in scene axes, in the device's."""
    return path.mapped(lambda x, q: (positions_to_device(workspace, x), orientations_to_device(workspace, q)))
