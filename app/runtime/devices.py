"""The device of a run, placed in the scene: a real one, a mouse, a simulated hand, a trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import h5py
import numpy as np
from numpy.typing import NDArray

from palpo.config.schema.scene import BaseScene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import (
    DEVICES,
    EXTERNAL,
    MAILBOX,
    TABLE,
    DeviceSpec,
    VirtualDevice,
    first_rows,
    make_virtual_device,
    path_ahead,
)
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import make_guard
from palpo.haptics.limits import LimitParams, buttons_mask, make_limits
from palpo.haptics.passivity import make_passivity
from palpo.haptics.path import Table, Way, upright, waypoints
from palpo.haptics.workspace import (
    Workspace,
    make_workspace,
    orientations_to_device,
    positions_to_device,
    quaternion_product,
)
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.app.runtime.session import Options
    from palpo.haptics.backends.openhaptics import OpenHapticsDevice
    from palpo.haptics.servo import Servo

OFFERED = {
    "auto": "the best that is there: touch, else the mouse where there is a window, else mock",
    "touch": "a Touch or Phantom through OpenHaptics; --device-name says which",
    "mouse": "the pointer in the window moves a simulated Touch in a simulated hand",
    "mock": "a simulated Touch in a simulated hand that follows the scene's path",
    "replay:FILE": "a recording (.h5), or a table t x y z (CSV or whitespace columns)",
}


@dataclass(frozen=True)
class Choice:
    """Which device a run uses."""

    kind: Literal["touch", "mouse", "mock", "replay"]
    path: Path | None = None
    unit: str = "m"
    scale: float = 1.0
    name: str | None = None
    """A real device's name, None for the default one."""

    @property
    def title(self) -> str:
        """For people."""
        if self.path is not None:
            return f"replay of {self.path.name}"
        named = f' "{self.name}"' if self.name else ""
        return {"touch": f"Touch{named}", "mouse": "mouse", "mock": "simulated hand"}[self.kind]

    @property
    def live(self) -> bool:
        """Whether somebody moves it, so that it has no end of its own."""
        return self.kind in ("touch", "mouse")

    @property
    def rebased(self) -> bool:
        """Whether its first position is taken as the tool's, wherever the hand is."""
        return self.kind == "touch"


def choose(options: Options) -> Choice:
    """The device that `--device` names. Raises HapticsError for one that is not there."""
    word, name = options.device, options.device_name
    if name is not None and word not in ("auto", "touch"):
        raise HapticsError(f"--device-name {name}: only a Touch has a name; use it with --device touch")
    if word == "auto":
        real = name is not None or (not options.lock_step and _touch_there())
        word = "touch" if real else "mouse" if options.window else "mock"
    if word == "touch":
        if options.lock_step:
            raise HapticsError("--device touch: a hand cannot be held in lock-step; leave --lock-step out")
        return Choice("touch", name=name)
    if word == "mouse":
        if not options.window:
            raise HapticsError("--device mouse: there is no window for its pointer; use mock or replay:FILE")
        return Choice("mouse")
    if word == "mock":
        return Choice("mock")
    kind, colon, path = word.partition(":")
    if kind == "replay" and colon and path:
        return Choice("replay", Path(path), options.unit, options.replay_scale)
    known = ", ".join(OFFERED)
    raise HapticsError(f"--device {word}: there is no such device in this version; choose one of {known}")


def _touch_there() -> bool:
    """Whether a Touch can be opened now."""
    from palpo.haptics.backends.openhaptics_library import load

    try:
        load()
    except HapticsError:
        return False  # so that its callback, half a minute of compiling, is not even imported
    from palpo.haptics.backends.openhaptics import find

    return bool(find().ok)


class ServoDriver(Protocol):
    """What calls the servo's step at its rate: a thread of our own, or a device's scheduler."""

    scheduler: str

    @property
    def running(self) -> bool:
        """Whether it still turns."""
        ...

    @property
    def reason(self) -> str:
        """Why it stopped, in words; a lost device says what became of it."""
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


def open_touch(choice: Choice) -> OpenHapticsDevice:
    """The real device, open; raises HapticsError in one sentence for every reason why it cannot be."""
    from palpo.haptics.backends.openhaptics import OpenHapticsDevice

    return OpenHapticsDevice(choice.name)


def touch_thread(servo: Servo, device: OpenHapticsDevice) -> ServoDriver:
    """The servo in the real device's scheduler."""
    from palpo.haptics.backends.openhaptics import TouchThread

    return TouchThread(servo, device)


def device_spec(spec: BaseScene) -> DeviceSpec:
    """The device's nominal figures with the scene's own mass and friction."""
    nominal, hand = DEVICES[spec.device.model], spec.device.hand
    return replace(
        nominal,
        mass=nominal.mass if hand.mass is None else hand.mass,
        friction=nominal.friction if hand.friction is None else hand.friction,
    )


def workspace_of(spec: BaseScene) -> Workspace:
    """The map from the device's axes to the scene's."""
    w = spec.workspace
    clutch = buttons_mask([w.clutch_button] if w.clutch_button else [])
    return make_workspace(w.scale, w.offset, w.quaternion, w.force_scale, clutch)


def limits_of(spec: BaseScene, device: DeviceSpec | None = None) -> LimitParams:
    """What protects the hand: the scene's limits, never above the device's; None is the scene's model."""
    safety, dt = spec.safety, spec.rates.dt
    device = device or DEVICES[spec.device.model]
    guard = make_guard(*device.reach, safety.edge_margin, safety.edge_stiffness, safety.saturation_damping)
    return make_limits(
        min(safety.max_force or device.max_force, device.max_force),
        max_rate=min(safety.max_rate, device.max_rate),
        fade_in=safety.fade_in,
        fade_out=safety.fade_out,
        recovery=safety.recovery,
        max_age=safety.frame_age_limit,
        dt=dt,
        emergency=safety.emergency,
        start_force=safety.start_force,
        ceiling=device.max_force,
        emergency_buttons=buttons_mask(safety.emergency_buttons),
        guard=guard,
        passivity=make_passivity(safety.passivity or spec.passivity, safety.passivity_damping, dt),
    )


def scripted_path(spec: BaseScene) -> Way:
    """The scene's path, one row a tick, scene axes."""
    device, rate = spec.device, spec.rates.servo_hz
    kind: Literal["smooth", "linear"] = "smooth" if device.smooth else "linear"
    moving = waypoints(device.path, kind, None, rate)
    if not device.turns:
        return moving
    turns = np.array(device.turns, float)
    still = np.hstack([turns[:, :1], np.zeros((len(turns), 3))])
    turning = waypoints(still, kind, turns[:, 1:], rate)

    def at(ticks: NDArray[np.int64]) -> Table:
        positions, _ = moving.at(np.minimum(ticks, moving.ticks - 1))
        return positions, turning.at(np.minimum(ticks, turning.ticks - 1))[1]

    return Way(max(moving.ticks, turning.ticks), at)


def trajectory_path(choice: Choice, rate_hz: float, start: NDArray[np.float64]) -> Way:
    """A trajectory at the servo's rate, scene axes; a foreign one starts at `start` (3,) [m], upright.

    A recording of ours is in scene axes already and stays where it was, unless it is scaled.
    """
    # its splines take half a second to import, which a start without a trajectory need not wait for
    from palpo.haptics.backends.replay import place, read_trajectory, spline_path

    assert choice.path is not None
    raw = read_trajectory(choice.path, choice.unit)
    path = spline_path(raw.times, raw.positions, raw.quaternions, rate_hz)
    if h5py.is_hdf5(choice.path) and choice.scale == 1.0:
        return path
    positions, turns = path.rows(0, 1)
    origin, back = place(positions, choice.scale)[0], turns[0] * [1.0, -1.0, -1.0, -1.0]

    def begun_here(positions: NDArray[np.float64], turns: NDArray[np.float64]) -> Table:
        return place(positions, choice.scale) - origin + start, quaternion_product(turns, back)

    return path.mapped(begun_here)


def make_device(spec: BaseScene, choice: Choice, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
    """The device in its own axes, and what keeps its path ahead of the servo.

    held (3,) [m]: the tool's held point.
    """
    dt, workspace = spec.rates.dt, workspace_of(spec)
    if choice.kind == "touch":
        device = make_virtual_device(np.zeros((1, 3)), source=EXTERNAL, dt=dt)
        return device, path_ahead(device, waypoints([[0.0, 0.0, 0.0, 0.0]]))
    if choice.kind == "replay":
        path = trajectory_path(choice, spec.rates.servo_hz, held)
    elif choice.kind == "mouse":
        path = Way(1, lambda ticks: (np.tile(held, (len(ticks), 1)), upright(len(ticks))))
    else:
        path = scripted_path(spec)
    path = path.mapped(lambda x, q: (positions_to_device(workspace, x), orientations_to_device(workspace, q)))
    if choice.kind == "replay":
        device = make_virtual_device(*first_rows(path), dt=dt)
        return device, path_ahead(device, path)
    hand, source = spec.device.hand, MAILBOX if choice.kind == "mouse" else TABLE
    device = make_mock(
        device_spec(spec), *first_rows(path), hand_stiffness=hand.stiffness, hand_damping=hand.damping, dt=dt
    )._replace(source=source)
    return device, path_ahead(device, path)
