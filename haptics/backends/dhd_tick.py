"""A Force Dimension device or a Falcon in each tick: two compiled functions for `palpo.haptics.polled`.

libdhd's functions are called by address. Its axes are x toward the user, y right, z up; the servo's are x
right, y up, z toward the user, so that a vector (x, y, z) of libdhd is (y, z, x) here. Units are SI on both
sides.

The servo is held, faded and frozen, while the device's force is off: by its button, its dead man's switch,
its watchdog, or because it was too fast. What the program may put right it does at zero force.

Calls of libdhd's functions at addresses: a device's id is a char, and all return int.
"""

import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.haptics.backends.dhd_library import STATUS_FORCE, STATUS_FORCE_OFF_CAUSE, STATUSES
from palpo.haptics.backends.foreign import BYTES, I32, I64, invoke
from palpo.haptics.backends.openhaptics_reading import quaternion_of
from palpo.haptics.clock import make_scratch, now_ns
from palpo.haptics.control import hold_servo, is_frozen
from palpo.haptics.device import (
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    begin_measuring,
    make_virtual_device,
    measure_spin,
)
from palpo.haptics.limits import make_limits
from palpo.haptics.servo import Servo, ServoState, make_servo
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.port import make_port
from palpo.physics.numerics.kernels import callback, inlined, kernel

_I8, _F64 = ir.IntType(8), ir.DoubleType()


def _dhd(builder, address, arguments, device):
    signed = invoke(builder, address, I32, [*arguments, builder.trunc(device, _I8)])
    return builder.sext(signed, I64)


@intrinsic
def call_dhd_pointers(typing_context, address, a, b, c, d, n, device):
    """Call `int f(void *, ..., char)` with the first n, a literal, of four addresses; its result."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    count = n.literal_value

    def codegen(context, builder, signature, args):
        pointers = [builder.inttoptr(pointer, BYTES) for pointer in args[1 : 1 + count]]
        return _dhd(builder, args[0], pointers, args[6])

    return types.int64(address, types.int64, types.int64, types.int64, types.int64, n, types.int64), codegen


@intrinsic
def call_dhd_force(typing_context, address, fx, fy, fz, tx, ty, tz, device):
    """Call `int f(double x 6, double, char)`: force, torque, and no force of a gripper; its result."""

    def codegen(context, builder, signature, args):
        return _dhd(builder, args[0], [*args[1:7], ir.Constant(_F64, 0.0)], args[7])

    return types.int64(types.int64, *[types.float64] * 6, types.int64), codegen


@intrinsic
def call_dhd_byte(typing_context, address, byte, device):
    """Call `int f(unsigned char, char)`; its result."""

    def codegen(context, builder, signature, args):
        return _dhd(builder, args[0], [builder.trunc(args[1], _I8)], args[2])

    return types.int64(types.int64, types.int64, types.int64), codegen


@intrinsic
def call_dhd_id(typing_context, address, device):
    """Call `unsigned f(char)`; its result."""

    def codegen(context, builder, signature, args):
        return builder.zext(invoke(builder, args[0], I32, [builder.trunc(args[1], _I8)]), I64)

    return types.int64(types.int64, types.int64), codegen


FUNCTIONS = (
    "dhdGetPositionAndOrientationFrame",
    "dhdGetLinearVelocity",
    "dhdGetButtonMask",
    "dhdSetForceAndTorqueAndGripperForce",
    "dhdGetStatus",
    "dhdEnableForce",
)
"""What is called, in the order of `DhdTick.functions`."""
_POSE, _VELOCITY, _BUTTONS, _FORCE, _STATUS, _ENABLE = range(len(FUNCTIONS))
COUNTS = np.dtype(
    [("failed", np.int64), ("held", np.int64), ("calls", np.int64), ("errors", np.int64),
     ("saturated", np.int64)]
)  # fmt: skip
"""Failures in a row; why the servo is held (0, or 1 + DHD_FORCEOFF_*); reads; errors; and how often the
motors were saturated."""
FAILURES = 5
"""Failures in a row after which the device is lost, as poses are given up that no hand can have."""
HOUSEKEEPING = 50
"""Ticks between two looks at the device's status."""
_MOTOR_SATURATED = 2
_AXES = (1, 2, 0)
"""Of libdhd, in the order of the servo's."""


class DhdTick(NamedTuple):
    """All that the two functions touch."""

    servo: ServoState
    functions: NDArray[np.int64]
    device: int
    """libdhd's id."""
    pose: NDArray[np.float64]
    """Position (3) and rotation matrix by rows (9), shape (12,)."""
    velocity: NDArray[np.float64]
    transform: NDArray[np.float64]
    """The rotation in the servo's axes, column-major as libHD's, shape (16,)."""
    status: NDArray[np.int32]
    counts: NDArray[np.void]
    """Shape (1,) of COUNTS."""
    clock: NDArray[np.int64]
    """Time of the last pose [ns], 0 for none, shape (1,)."""
    scratch: NDArray[np.int64]


def make_dhd_tick(servo: Servo, functions: list[int], device: int) -> DhdTick:
    """State before the first tick; functions: addresses of FUNCTIONS; device: libdhd's id."""
    return DhdTick(
        servo=servo.state,
        functions=np.array(functions, dtype=np.int64),
        device=int(device),
        pose=np.zeros(12),
        velocity=np.zeros(3),
        transform=np.zeros(16),
        status=np.zeros(STATUSES, dtype=np.int32),
        counts=np.zeros(1, COUNTS),
        clock=np.zeros(1, dtype=np.int64),
        scratch=make_scratch(),
    )


@kernel
def convert_pose(pose, velocity, transform, port):
    """Bring a reading of libdhd into the port; False, with the port as it was, if it is none."""
    total = 0.0
    for i in range(12):
        total += pose[i]
    for i in range(3):
        total += velocity[i]
    for i in range(3):
        for j in range(3):
            transform[4 * j + i] = pose[3 + 3 * _AXES[i] + _AXES[j]]
    if not (math.isfinite(total) and quaternion_of(transform, port.orientation)):
        return False
    for i in range(3):
        port.position[i] = pose[_AXES[i]]
        port.velocity[i] = velocity[_AXES[i]]
    return True


@inlined
def _failed(tick):
    """Count a failure; from FAILURES in a row on the device is lost."""
    counts = tick.counts[0]
    counts.failed += 1
    counts.errors += 1
    if counts.failed >= FAILURES:
        tick.servo.device.health[0] = DEVICE_GONE


@inlined
def _measure(tick):
    """Angular velocity by the last two poses, as time went on between them."""
    now, servo = now_ns(tick.scratch), tick.servo
    if tick.clock[0] == 0 or now <= tick.clock[0]:
        begin_measuring(servo.device, servo.device_port)
    else:
        measure_spin(servo.device, servo.device_port, 1e-9 * (now - tick.clock[0]))
    tick.clock[0] = now


@inlined
def _look_after(tick):
    """Hold the servo while the device's force is off, and switch it on again where that is ours to do."""
    f, counts = tick.functions, tick.counts[0]
    counts.calls += 1
    if counts.calls % HOUSEKEEPING != 1:
        return
    if call_dhd_pointers(f[_STATUS], tick.status.ctypes.data, 0, 0, 0, 1, tick.device) < 0:
        return
    cause = tick.status[STATUS_FORCE_OFF_CAUSE]
    counts.held = 0 if tick.status[STATUS_FORCE] != 0 else 1 + cause
    hold_servo(tick.servo, counts.held != 0)
    if counts.held != 0 and 2 <= cause <= 4 and is_frozen(tick.servo):
        call_dhd_byte(f[_ENABLE], 1, tick.device)


@kernel
def read_dhd(tick):
    """Fill the device's port."""
    servo, f = tick.servo, tick.functions
    if servo.device.health[0] != DEVICE_OK:
        return 1
    at, to = tick.pose.ctypes.data, tick.velocity.ctypes.data
    got = call_dhd_pointers(f[_POSE], at, at + 8, at + 16, at + 24, 4, tick.device)
    moved = call_dhd_pointers(f[_VELOCITY], to, to + 8, to + 16, 0, 3, tick.device)
    if got < 0 or moved < 0 or not convert_pose(tick.pose, tick.velocity, tick.transform, servo.device_port):
        _failed(tick)
        return 0
    tick.counts[0].failed = 0
    servo.device_port.buttons[0] = call_dhd_id(f[_BUTTONS], tick.device)
    _measure(tick)
    _look_after(tick)
    return 1


@kernel
def write_dhd(tick):
    """Send force and torque, also the last ones of a fade to a device that may not hear them."""
    f, t = tick.servo.sent, tick.servo.turned
    done = call_dhd_force(
        tick.functions[_FORCE], f[2], f[0], f[1], t[2], t[0], t[1], tick.device
    )  # fmt: skip
    if done < 0:
        _failed(tick)
        return 0
    tick.counts[0].saturated += done == _MOTOR_SATURATED
    return 1


def _smallest() -> Servo:
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    return make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)


_CONTENT = typeof(make_dhd_tick(_smallest(), [0] * len(FUNCTIONS), 0))


@callback(types.int32(HandleType(_CONTENT)))
def dhd_read(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(read_dhd(tick))


@callback(types.int32(HandleType(_CONTENT)))
def dhd_write(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(write_dhd(tick))


def dhd_data(tick: DhdTick) -> Handle:
    """The handle that both functions are given; TypeError for a tuple of another layout."""
    return handle_for(tick, _CONTENT, "servo")
