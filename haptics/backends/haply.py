"""A Haply Inverse3: a process of its own speaks with its service (`haply_bridge`); the tick is compiled."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.haptics.backends import haply_bridge
from palpo.haptics.backends.haply_bridge import (
    FORCE,
    OVER,
    POSE,
    READY,
    SERVICE,
    SIZE,
    SKIPPED,
    STARTING,
    said,
)
from palpo.haptics.device import (
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    begin_measuring,
    make_virtual_device,
    measure_spin,
)
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import make_limits
from palpo.haptics.polled import PolledThread
from palpo.haptics.servo import Servo, ServoState, make_servo
from palpo.physics.exchange.atomics import load_acquire
from palpo.physics.exchange.buffer import SLOTS, acquire, make_control, publish, writer_slot
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import make_port
from palpo.physics.numerics.kernels import callback, kernel

INVERSE3 = DeviceSpec("Inverse3", 10.0, 2000.0, 0.02e-3, (0.3, 0.2, 0.2), 3, 0.15, 0.1, bandwidth=100.0)
"""The maker's figures, which the service does not state; stiffness, mass and friction are careful guesses."""
OPENING = 20.0
"""Seconds that the process may take to start and to find the device."""
SILENCE = 0.25
"""Seconds without a pose after which the device is lost."""
FILTER_HZ = 30.0
"""Low-pass of the angular velocity, which is that of the poses."""


COUNTS = np.dtype([("quiet", np.int64), ("sent", np.int64), ("taken", np.int64)])
"""Ticks without a new pose, forces sent, poses taken."""


class HaplyTick(NamedTuple):
    """All that the two functions touch."""

    servo: ServoState
    poses: NDArray[np.float64]
    pose_control: NDArray[np.int64]
    forces: NDArray[np.float64]
    force_control: NDArray[np.int64]
    state: NDArray[np.int64]
    counts: NDArray[np.void]
    """Shape (1,) of COUNTS."""


@kernel
def read_haply(tick):
    """Fill the device's port with the newest pose; SILENCE, or the process's end, is a lost device."""
    servo, counts, port = tick.servo, tick.counts[0], tick.servo.device_port
    slot, fresh = acquire(tick.pose_control)
    if fresh:
        pose = tick.poses[slot]
        for i in range(3):
            port.position[i], port.velocity[i] = pose[i], pose[3 + i]
        square = pose[6] * pose[6] + pose[7] * pose[7] + pose[8] * pose[8] + pose[9] * pose[9]
        if 0.98 < square < 1.02:
            for i in range(4):
                port.orientation[i] = pose[6 + i] / np.sqrt(square)
        port.buttons[0] = int(pose[10])
        if counts.taken == 0:
            begin_measuring(servo.device, port)
        else:
            measure_spin(servo.device, port, servo.dt * (1 + counts.quiet))
        counts.taken += 1
        counts.quiet = 0
    else:
        counts.quiet += 1
    if servo.device.health[0] == DEVICE_OK and (
        counts.quiet * servo.dt > SILENCE or load_acquire(tick.state, 0) == OVER
    ):
        servo.device.health[0] = DEVICE_GONE
    return 1


@kernel
def write_haply(tick):
    """Leave the force for the process."""
    tick.counts[0].sent += 1
    force = tick.forces[writer_slot(tick.force_control)]
    for i in range(3):
        force[i] = tick.servo.sent[i]
    force[3] = tick.counts[0].sent
    publish(tick.force_control)
    return 1


def make_haply_tick(servo: Servo, shared: haply_bridge.Shared) -> HaplyTick:
    """State before the first tick, on the memory that the process shares."""
    return HaplyTick(
        servo.state, shared.poses, shared.pose_control, shared.forces, shared.force_control, shared.state,
        np.zeros(1, COUNTS),
    )  # fmt: skip


def _smallest() -> HaplyTick:
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    servo = make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)
    poses, forces = np.zeros((SLOTS, POSE)), np.zeros((SLOTS, FORCE))
    text = np.zeros(1, dtype=np.uint8)
    state = np.zeros(8, dtype=np.int64)
    shared = haply_bridge.Shared(poses, make_control(), forces, make_control(), state, text)
    return make_haply_tick(servo, shared)


_CONTENT = typeof(_smallest())


@callback(types.int32(HandleType(_CONTENT)))
def haply_read(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(read_haply(tick))


@callback(types.int32(HandleType(_CONTENT)))
def haply_write(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(write_haply(tick))


class HaplyDevice:
    """The process, its memory, and the device behind it; a context manager that ends them.

    wanted: its id, empty for the first. given_up says that nobody waits any more. Raises HapticsError, in one
    sentence, where there is no service, no such device, or no websockets.
    """

    def __init__(self, address: str = SERVICE, given_up: Callable[[], bool] = bool, wanted: str = "") -> None:
        with tempfile.NamedTemporaryFile(prefix="palpo-haply-", delete=False) as file:
            file.truncate(SIZE)
        self._file = Path(file.name)
        self.shared = haply_bridge.shared_views(self._file)
        haply_bridge.begin(self.shared)
        command = [sys.executable, "-m", haply_bridge.__name__, str(self._file), address, wanted]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            self._wait(given_up)
        except BaseException:
            self.close()
            raise
        self.title = said(self.shared)
        self.serial = self.title.rpartition(" ")[2]

    def _wait(self, given_up: Callable[[], bool]) -> None:
        end = time.monotonic() + OPENING
        while self.shared.state[0] == STARTING:
            if self._process.poll() is not None:
                raise HapticsError("the process that speaks with Haply's service ended at once")
            if time.monotonic() > end or given_up():
                raise HapticsError(f"Haply's service has named no device for {OPENING:g} s")
            time.sleep(0.01)
        if self.shared.state[0] != READY:
            raise HapticsError(said(self.shared))

    def spec(self) -> DeviceSpec:
        """The maker's figures."""
        return INVERSE3

    @property
    def lost(self) -> str:
        """What became of the device, in words."""
        if self.shared.state[0] == OVER:
            return f"{self.title} was lost: {said(self.shared)}"
        if self._process.poll() is not None:
            return f"{self.title} was lost: the process that speaks with Haply's service ended"
        skipped = int(self.shared.state[SKIPPED])
        beside = f", and {skipped} messages that do not fit" if skipped else ""
        return f"{self.title} was lost: Haply's service has sent no pose for {SILENCE:g} s{beside}"

    def close(self) -> None:
        """End the process, which leaves no force, and take the memory away. A second time does nothing."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class HaplyThread(PolledThread):
    """Runs a servo on an Inverse3."""

    def __init__(self, servo: Servo, device: HaplyDevice) -> None:
        self._tick = make_haply_tick(servo, device.shared)
        if typeof(self._tick) != _CONTENT:
            raise TypeError("this servo is not laid out as the compiled functions expect")
        super().__init__(
            servo, haply_read.address, haply_write.address, Handle(self._tick), lambda: device.lost
        )


def find(address: str = SERVICE) -> tuple[bool, str]:
    """Whether an Inverse3 can be used now, and which it is or why not; never raises."""
    try:
        with HaplyDevice(address) as device:
            return True, f"ready: {device.title}"
    except HapticsError as missing:
        return False, str(missing)
