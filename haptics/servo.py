"""The servo: all that a step touches, and how it is made.

A step is `palpo.haptics.step`, its two drivers `palpo.haptics.drivers`, and what others ask of it while it
runs `palpo.haptics.control`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.clock import make_scratch
from palpo.haptics.clutch import Clutch, make_clutch, start_at_pose
from palpo.haptics.cues import CueState, make_cue_state
from palpo.haptics.device import VirtualDevice
from palpo.haptics.limiter import LimitState, make_limit_state
from palpo.haptics.limits import LimitParams
from palpo.haptics.passivity import PortEnergy, make_port_energy
from palpo.haptics.plausible import PoseMemory, make_pose_memory
from palpo.haptics.row import COLUMNS
from palpo.haptics.statistics import Statistics, make_statistics
from palpo.haptics.workspace import Workspace, make_workspace
from palpo.physics.exchange.atomics import CACHE_LINE
from palpo.physics.exchange.buffer import make_ring
from palpo.physics.exchange.handle import Handle, of_process
from palpo.physics.exchange.port import Port, make_port
from palpo.physics.exchange.resident import resident

OWNED = ("offset", "taken", "mount", "left")
"""What of its workspace a servo has for itself."""


@of_process("rows", "polled", "beside")
class ServoState(NamedTuple):
    """All that a step touches."""

    tick_address: int
    tick_data: int
    port: Port
    """Scene axes: what the tick reads and writes."""
    device_port: Port
    """Device axes; it shares status, info and live with `port`."""
    device: VirtualDevice
    workspace: Workspace
    """Its offset and how it maps orientations are the servo's own, which the clutch moves."""
    clutch: Clutch
    pose: PoseMemory
    limits: LimitParams
    limit_state: LimitState
    energy: PortEnergy
    sent: NDArray[np.float64]
    """Force sent last [N], device axes, shape (3,)."""
    turned: NDArray[np.float64]
    """Torque sent last [N m], device axes, shape (3,)."""
    ring: NDArray[np.int64]
    rows: NDArray[np.float64]
    """Recorded rows, shape (capacity, len(COLUMNS)), behind the ring."""
    recording: int
    """1 pushes a row at each tick."""
    statistics: Statistics
    control: NDArray[np.int64]
    stale_age: int
    """Age of a frame [ticks] from which a step counts as stale."""
    period_ns: int
    dt: float
    scratch: NDArray[np.int64]
    """Of the clock, for the thread that drives the servo."""
    beside: NDArray[np.int64]
    """Addresses of the servos of further hands that this one leads."""
    flags: NDArray[np.int64]
    """Those of the present step, shape (1,)."""
    polled: NDArray[np.int64]
    """Addresses of a device's two functions and of what they are given, 0 for none; shape (3,)."""
    cues: CueState


class Servo(Handle):
    """A ServoState behind a handle; made by `make_servo`. Its fields are the state's.

    Kernels take it by address: by value, each driver and each question to the servo would be compiled for
    some forty arrays.
    """

    state: ServoState
    led: tuple["Servo", ...] = ()
    """The servos of further hands that it leads."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)


def make_servo(
    tick_address: int,
    tick_data: int,
    port: Port,
    device: VirtualDevice,
    limits: LimitParams,
    workspace: Workspace | None = None,
    *,
    rate_hz: float = 1000.0,
    stale_age: int | None = None,
    ring_capacity: int = 8192,
    recording: bool = True,
    start_at: ArrayLike | None = None,
    led: Sequence[Servo] = (),
) -> Servo:
    """A servo at tick 0.

    tick_address: address of a C function `int32 f(void *)`; tick_data: the address it is given. The caller
    keeps the function, its data and the port alive. stale_age None counts a step as stale where the
    watchdog does. ring_capacity: rows, a power of two (InputError otherwise). start_at: scene point (3,) [m]
    that the device, wherever it is at the first tick, is mapped onto, upright; None keeps the workspace as
    it is. led: servos of further hands on the same tick, whose own `tick_address` nobody calls.
    """
    ring = make_ring(ring_capacity)
    place = make_workspace() if workspace is None else workspace
    state = ServoState(
        tick_address=int(tick_address),
        tick_data=int(tick_data),
        port=port,
        device_port=make_port()._replace(status=port.status, info=port.info, live=port.live),
        device=device,
        workspace=place._replace(**{name: getattr(place, name).copy() for name in OWNED}),
        clutch=make_clutch(),
        pose=make_pose_memory(),
        limits=limits,
        limit_state=make_limit_state(limits),
        energy=make_port_energy(),
        sent=np.zeros(3),
        turned=np.zeros(3),
        ring=ring,
        rows=resident((ring_capacity, len(COLUMNS))),
        recording=int(recording),
        statistics=make_statistics(),
        control=np.zeros(2 * CACHE_LINE, dtype=np.int64),
        stale_age=limits.max_age if stale_age is None else int(stale_age),
        period_ns=round(1e9 / rate_hz),
        dt=1.0 / rate_hz,
        scratch=make_scratch(),
        beside=np.array([servo.address for servo in led], dtype=np.int64),
        flags=np.zeros(1, dtype=np.int64),
        polled=np.zeros(3, dtype=np.int64),
        cues=make_cue_state(1.0 / rate_hz),
    )
    for name in ("goal", "now"):
        state.limit_state.force_scale[name] = place.force_scale
    servo = Servo(state)
    servo.led = tuple(led)
    if start_at is not None:
        start_servo_at(servo, start_at)
    return servo


def start_servo_at(servo: Servo, point: ArrayLike, turn: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> None:
    """Before the first tick: let it map the device, wherever it is, onto a scene point (3,) [m].

    turn: the orientation (4,) of the scene that it is mapped onto; it goes over to the workspace's own.
    """
    start_at_pose(servo.clutch, servo.port, point, turn)


def poll_device(servo: Servo, read: int, write: int, data: int) -> None:
    """Before the first tick: let the servo call a device's C functions `int32 f(void *)` in each step.

    read: address of what fills `device_port` and the device's health. write: of what sends `sent` and
    `turned`. data: what both are given; the caller keeps it alive.
    """
    servo.polled[:] = read, write, data
