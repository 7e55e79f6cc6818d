"""The servo's step inside the scheduler of a Phantom or Touch: a compiled callback `uint32 f(void *)`.

Each tick: make the device current, begin a frame, read, step the servo, set the force, end the frame, take
the errors. libHD's functions are called by address, so that nothing here enters the interpreter and the
compiled code is kept on disk. libHD's units end here: its millimetres become metres, its column-major
transform a unit quaternion; its axes (x right, y up, z toward the user) and newtons are the servo's own.

What ends a run ends it as every servo ends: health becomes DEVICE_GONE and the force fades, through the
device for as long as it takes forces. With the last frame the force output is switched off, and the scheduler
is told to call no more.
"""

import math
import platform
import sys
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.haptics.backends.openhaptics_library import (
    BAD_HANDLE,
    BAD_READING,
    ERROR_DEPTH,
    ERRORS,
    FATAL,
)
from palpo.haptics.clock import now_ns
from palpo.haptics.device import DEVICE_GONE, DEVICE_OK, EXTERNAL, make_virtual_device
from palpo.haptics.limits import make_limits
from palpo.haptics.servo import Servo, ServoState, make_servo, servo_step
from palpo.haptics.statistics import LATE, MISSED, SKIPPED, count_duration
from palpo.physics.exchange.atomics import store_release
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import make_port
from palpo.physics.kernels import callback, inlined, kernel

FUNCTIONS = (
    "hdMakeCurrentDevice",
    "hdGetCurrentDevice",
    "hdBeginFrame",
    "hdEndFrame",
    "hdEnable",
    "hdDisable",
    "hdGetDoublev",
    "hdGetIntegerv",
    "hdSetDoublev",
    "hdGetError",
)
"""What the callback calls, in the order of `TouchTick.functions`."""
(
    _MAKE_CURRENT,
    _GET_CURRENT,
    _BEGIN_FRAME,
    _END_FRAME,
    _ENABLE,
    _DISABLE,
    _GET_DOUBLES,
    _GET_INTEGERS,
    _SET_DOUBLES,
    _GET_ERROR,
) = range(len(FUNCTIONS))

# of hdDefines.h
HD_CURRENT_BUTTONS, HD_CURRENT_VELOCITY, HD_CURRENT_TRANSFORM = 0x2000, 0x2051, 0x2052
HD_CURRENT_ANGULAR_VELOCITY, HD_CURRENT_FORCE, HD_FORCE_OUTPUT = 0x2053, 0x2700, 0x4000
_DONE, _CONTINUE = 0, 1

ENDED, INSIDE = 0, 1
"""Words that are 1 when the callback will do nothing more, and while it works."""
LAST_CALL, LAG = 0, 1
FAULT_CODE, FAULT_INTERNAL, UNKNOWN_CODE, UNKNOWN_INTERNAL = 0, 1, 2, 3
_KNOWN = np.array([[code, error.severity] for code, error in ERRORS.items()], dtype=np.int64)


class TouchTick(NamedTuple):
    """All that the callback touches."""

    servo: ServoState
    functions: NDArray[np.int64]
    """Addresses of FUNCTIONS."""
    device: int
    """libHD's handle."""
    transform: NDArray[np.float64]
    """Last reading, column-major, shape (16,) [mm]."""
    velocity: NDArray[np.float64]
    """Shape (3,) [mm/s]."""
    angular_velocity: NDArray[np.float64]
    """Shape (3,) [rad/s]."""
    buttons: NDArray[np.int32]
    known: NDArray[np.int64]
    """Code and severity of each error in ERRORS, shape (n, 2)."""
    counts: NDArray[np.int64]
    """Times that each of them was raised, and unknown ones, shape (n + 1,)."""
    fault: NDArray[np.int64]
    """First fatal error and last unknown one, code and internal code each, shape (4,)."""
    clock: NDArray[np.int64]
    """Time of the last call (0: none yet) and how far the calls lag behind the rate [ns], shape (2,)."""
    words: NDArray[np.int64]


def make_touch_tick(servo: Servo, functions: list[int], device: int) -> TouchTick:
    """State before the first call; functions: addresses of FUNCTIONS; device: libHD's handle."""
    return TouchTick(
        servo=servo.state,
        functions=np.array(functions, dtype=np.int64),
        device=int(device),
        transform=np.zeros(16),
        velocity=np.zeros(3),
        angular_velocity=np.zeros(3),
        buttons=np.zeros(1, dtype=np.int32),
        known=_KNOWN.copy(),
        counts=np.zeros(len(_KNOWN) + 1, dtype=np.int64),
        fault=np.zeros(4, dtype=np.int64),
        clock=np.zeros(2, dtype=np.int64),
        words=np.zeros(2, dtype=np.int64),
    )


# ---- C functions at an address

_I32, _I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()
_BYTES = ir.IntType(8).as_pointer()
# HDErrorInfo, three 32-bit words, comes back in two registers, but on x86-64 Windows through a hidden pointer
_THROUGH_MEMORY = sys.platform == "win32" and platform.machine().lower() in ("amd64", "x86_64")


def _call(builder, address, result, arguments):
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(builder.inttoptr(address, function_type.as_pointer()), arguments)


@intrinsic
def _call_word(typing_context, address, word):
    """Call `void f(unsigned)`."""

    def codegen(context, builder, signature, args):
        _call(builder, args[0], _VOID, [builder.trunc(args[1], _I32)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def _call_values(typing_context, address, word, values):
    """Call `void f(unsigned, void *)`; values: an address."""

    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[2], _BYTES)
        _call(builder, args[0], _VOID, [builder.trunc(args[1], _I32), pointer])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _call_for_word(typing_context, address):
    """Call `unsigned f(void)`."""

    def codegen(context, builder, signature, args):
        return builder.zext(_call(builder, args[0], _I32, []), _I64)

    return types.int64(types.int64), codegen


@intrinsic
def _call_for_error(typing_context, address):
    """Call `HDErrorInfo f(void)`; the code is the low half of the result, the internal code the high half."""

    def codegen(context, builder, signature, args):
        if _THROUGH_MEMORY:
            place = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
            _call(builder, args[0], _VOID, [builder.bitcast(place, _BYTES)])
            return builder.load(builder.bitcast(place, _I64.as_pointer()))
        pair = _call(builder, args[0], ir.LiteralStructType([_I64, _I32]), [])
        return builder.extract_value(pair, 0)

    return types.int64(types.int64), codegen


# ---- readings


@kernel
def quaternion_of(transform, out):
    """out (4,) = unit quaternion of the rotation in a column-major transform (16,); False if it is none.

    The largest of the four components is computed first and divides the others, so that no rotation loses
    digits (Shepperd 1978). Of q and -q the one nearer to the old `out` is taken.
    """
    r00, r10, r20 = transform[0], transform[1], transform[2]
    r01, r11, r21 = transform[4], transform[5], transform[6]
    r02, r12, r22 = transform[8], transform[9], transform[10]
    trace = r00 + r11 + r22
    largest = max(trace, r00, r11, r22)
    if largest == trace:
        w, x, y, z = 1.0 + trace, r21 - r12, r02 - r20, r10 - r01
    elif largest == r00:
        w, x, y, z = r21 - r12, 1.0 + 2.0 * r00 - trace, r01 + r10, r02 + r20
    elif largest == r11:
        w, x, y, z = r02 - r20, r01 + r10, 1.0 + 2.0 * r11 - trace, r12 + r21
    else:
        w, x, y, z = r10 - r01, r02 + r20, r12 + r21, 1.0 + 2.0 * r22 - trace
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    # 2 at least for a rotation; not so if an entry is not finite or the matrix is far from one
    if not 1.0 < norm < 8.0:
        return False
    if w * out[0] + x * out[1] + y * out[2] + z * out[3] < 0.0:
        norm = -norm
    out[0], out[1], out[2], out[3] = w / norm, x / norm, y / norm, z / norm
    return True


@kernel
def convert_reading(transform, velocity, angular_velocity, buttons, port):
    """Bring a reading of libHD [mm, mm/s, rad/s] into the port [m, m/s]; False if it is not finite."""
    total = 0.0
    for i in range(3):
        total += transform[12 + i] + velocity[i] + angular_velocity[i]
    if not (math.isfinite(total) and quaternion_of(transform, port.orientation)):
        return False
    for i in range(3):
        port.position[i] = 1e-3 * transform[12 + i]
        port.velocity[i] = 1e-3 * velocity[i]
        port.angular_velocity[i] = angular_velocity[i]
    port.buttons[0] = buttons[0]
    return True


# ---- the tick


@inlined
def _lateness(tick):
    """Time since the last call beyond a period [ns]; counts late calls and periods that passed without one.

    The scheduler's deadlines are its own secret, so a call is measured against the one before; a call that
    comes early makes up for one that came late, by no more than a period.
    """
    now = now_ns(tick.servo.scratch)
    last = tick.clock[LAST_CALL]
    tick.clock[LAST_CALL] = now
    if last == 0:
        return 0
    period = tick.servo.period_ns
    excess = now - last - period
    lag = tick.clock[LAG] + excess
    skipped = max(lag, 0) // period
    tick.clock[LAG] = max(lag - skipped * period, -period)
    late = max(excess, 0)
    statistics = tick.servo.statistics
    count_duration(statistics, LATE, late)
    statistics.counters[MISSED] += late > period
    statistics.counters[SKIPPED] += skipped
    return late


@kernel
def _note(tick, code, internal):
    """Count an error; whether it ends the run, as an unknown one does."""
    n = tick.known.shape[0]
    for k in range(n):
        if tick.known[k, 0] == code:
            tick.counts[k] += 1
            return tick.known[k, 1] == FATAL
    tick.counts[n] += 1
    tick.fault[UNKNOWN_CODE] = code
    tick.fault[UNKNOWN_INTERNAL] = internal
    return True


@kernel
def _fail(tick, code, internal):
    """End the run for an error; later ones are its consequences."""
    if tick.servo.device.health[0] == DEVICE_OK:
        tick.servo.device.health[0] = DEVICE_GONE
        tick.fault[FAULT_CODE] = code
        tick.fault[FAULT_INTERNAL] = internal


@kernel
def _take_errors(tick):
    """Empty the error stack, whose newest comes first: the oldest fatal one is the fault.

    The stack is the process's: an error of another device, taken here, stops this one too, and its own will
    meet the next.
    """
    fault, fault_internal = 0, 0
    for _ in range(ERROR_DEPTH):
        info = _call_for_error(tick.functions[_GET_ERROR])
        code, internal = info & 0xFFFFFFFF, info >> 32
        if code == 0:
            break
        if _note(tick, code, internal):
            fault, fault_internal = code, internal
    if fault != 0:
        _fail(tick, fault, fault_internal)


@kernel
def _begin(tick, first):
    """Begin a frame and read; False if the device is not to be made current: another would get its force."""
    f = tick.functions
    _call_word(f[_MAKE_CURRENT], tick.device)
    if _call_for_word(f[_GET_CURRENT]) != tick.device:
        _fail(tick, BAD_HANDLE, 0)
        _take_errors(tick)
        return False
    if first:
        _call_word(f[_ENABLE], HD_FORCE_OUTPUT)
    _call_word(f[_BEGIN_FRAME], tick.device)
    _call_values(f[_GET_DOUBLES], HD_CURRENT_TRANSFORM, tick.transform.ctypes.data)
    _call_values(f[_GET_DOUBLES], HD_CURRENT_VELOCITY, tick.velocity.ctypes.data)
    _call_values(f[_GET_DOUBLES], HD_CURRENT_ANGULAR_VELOCITY, tick.angular_velocity.ctypes.data)
    _call_values(f[_GET_INTEGERS], HD_CURRENT_BUTTONS, tick.buttons.ctypes.data)
    _take_errors(tick)
    return True


@kernel
def _end(tick, done):
    """Send the force and end the frame; after the last one switch the force output off."""
    f = tick.functions
    _call_values(f[_SET_DOUBLES], HD_CURRENT_FORCE, tick.servo.sent.ctypes.data)
    _call_word(f[_END_FRAME], tick.device)
    if done:
        _call_word(f[_DISABLE], HD_FORCE_OUTPUT)
    _take_errors(tick)


@kernel
def _read(tick):
    """Fill the device port; a reading that is none ends the run, with the last good pose in the port."""
    servo = tick.servo
    if servo.device.health[0] != DEVICE_OK:
        return
    if not convert_reading(
        tick.transform, tick.velocity, tick.angular_velocity, tick.buttons, servo.device_port
    ):
        _note(tick, BAD_READING, 0)
        _fail(tick, BAD_READING, 0)


@kernel
def touch_tick(tick):
    """One tick of the device; what libHD's scheduler is to do next."""
    if tick.words[ENDED] != 0:
        return _DONE
    store_release(tick.words, INSIDE, 1)
    first = tick.clock[LAST_CALL] == 0
    late = _lateness(tick)
    there = _begin(tick, first)
    _read(tick)
    done = servo_step(tick.servo, late, 1)
    if there:
        _end(tick, done)
    store_release(tick.words, INSIDE, 0)
    if done:
        store_release(tick.words, ENDED, 1)
        return _DONE
    return _CONTINUE


def _smallest_servo() -> Servo:
    """A servo of no use but its type, which every other's shares."""
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    return make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)


_CONTENT = typeof(make_touch_tick(_smallest_servo(), [0] * len(FUNCTIONS), 0))


@callback(types.uint32(HandleType(_CONTENT)))
def touch_callback(tick):
    """`HDCallbackCode f(void *)` for hdScheduleAsynchronous; its user data is a `touch_data` address."""
    return touch_tick(tick)


def touch_data(tick: TouchTick) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    if typeof(tick) != _CONTENT:
        raise TypeError("this servo is not laid out as the compiled callback expects")
    return Handle(tick)
