"""The servo's step inside the scheduler of a Phantom or Touch: a compiled callback `uint32 f(void *)`.

Each tick: make the device current, begin a frame, read, step the servo, set the force, end the frame, take
the errors. libHD's functions are called by address, so that nothing here enters the interpreter and the
compiled code is kept on disk. Its axes (x right, y up, z toward the user) and newtons are the servo's own.

The servo is held, faded and frozen, while the device cannot give a force or may not get one: its calibration
needs an update, which comes at zero force and may move its origin; its safety switch is open; its driver has
switched the force off, as it does when the stylus is too fast, or could not give it; it is then switched on
again at zero force. A switch counts as one once it has been seen closed: devices without one may report it
open for ever.

A second device is read and told its force within the first one's tick, in a frame of its own (`touch_read`,
`touch_write`), since one scheduler calls all of libHD's devices: each call is preceded by making it current.

What ends a run ends it as every servo ends: health becomes DEVICE_GONE and the force fades, through the
device for as long as it takes forces. With the last frame the force output is switched off, and the scheduler
is told to call no more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import (
    call_for_byte,
    call_for_error,
    call_for_word,
    call_values,
    call_word,
)
from palpo.haptics.backends.guardian import RESTS
from palpo.haptics.backends.openhaptics_library import (
    BAD_HANDLE,
    BAD_READING,
    ERROR_DEPTH,
    ERRORS,
    FADE,
    FATAL,
)
from palpo.haptics.backends.openhaptics_reading import convert_reading
from palpo.haptics.backends.openhaptics_timing import SPENT, owe, spend, stamp
from palpo.haptics.clock import now_ns
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
from palpo.haptics.plausible import forget_pose
from palpo.haptics.servo import Servo, ServoState, make_servo
from palpo.haptics.statistics import LATE, count_duration
from palpo.haptics.step import servo_step
from palpo.physics.exchange.atomics import store_release
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.port import make_port
from palpo.physics.numerics.kernels import callback, inlined, kernel

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
    "hdIsEnabled",
    "hdCheckCalibration",
    "hdUpdateCalibration",
    "hdGetSchedulerTimeStamp",
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
    _IS_ENABLED,
    _CHECK_CALIBRATION,
    _UPDATE_CALIBRATION,
    TIME_STAMP,
) = range(len(FUNCTIONS))

# of hdDefines.h
HD_CURRENT_BUTTONS, HD_CURRENT_SAFETY_SWITCH = 0x2000, 0x2001
HD_CURRENT_VELOCITY, HD_CURRENT_TRANSFORM = 0x2051, 0x2052
HD_MOTOR_TEMPERATURE, HD_CURRENT_FORCE = 0x2605, 0x2700
HD_FORCE_OUTPUT, HD_MAX_FORCE_CLAMPING = 0x4000, 0x4001
HD_CALIBRATION_OK, HD_CALIBRATION_NEEDS_UPDATE, HD_CALIBRATION_NEEDS_MANUAL_INPUT = 0x5000, 0x5001, 0x5002
DONE, CONTINUE = 0, 1
"""What a callback answers the scheduler."""

ENDED, INSIDE, HELD, CALLS, _SWITCH_SEEN = range(5)
"""Words: 1 when the callback will do nothing more, and while it works; why the servo is held; calls made;
whether the safety switch has been seen closed."""
CALIBRATING, BY_HAND, SWITCH_OPEN, FORCE_TAKEN = 1, 2, 4, 8
"""Bits of the word HELD: the calibration is updated, or needs the operator; the switch; the driver."""
OPTIONS = (HD_CURRENT_SAFETY_SWITCH, HD_MOTOR_TEMPERATURE)
"""Properties that not every device has, in the order of `TouchTick.has`."""
SAFETY_SWITCH, TEMPERATURE = range(len(OPTIONS))
HOUSEKEEPING = 100
"""Ticks between two looks at calibration, motors and force output."""
WARM = 0.8
"""Motor temperature, over the largest, from which on the force is taken back."""
CLOCK = np.dtype([(name, np.int64) for name in ("last_call", "lag", "last_pose")])
"""[ns] Time of the last call (0: none yet), how far the calls lag behind the rate, and time of the last pose
(0: none from which to measure)."""
FAULT = np.dtype([(name, np.int64) for name in ("code", "internal", "unknown", "unknown_internal")])
"""The first fatal error and the last unknown one, code and internal code each."""
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
    buttons: NDArray[np.int32]
    switch: NDArray[np.int32]
    """Of the safety switch, shape (1,)."""
    temperatures: NDArray[np.float64]
    """Of the motors, over the largest, shape (6,)."""
    has: NDArray[np.int64]
    """Which of OPTIONS the device has."""
    style: int
    """How its calibration is updated."""
    lasting: float
    """Share of its largest force that it can give for ever."""
    known: NDArray[np.int64]
    """Code and severity of each error in ERRORS, shape (n, 2)."""
    counts: NDArray[np.int64]
    """Times that each of them was raised, and unknown ones, shape (n + 1,)."""
    fault: NDArray[Any]
    """Of FAULT, shape (1,)."""
    clock: NDArray[Any]
    """Of CLOCK, shape (1,)."""
    spent: NDArray[Any]
    """Of SPENT, shape (1,)."""
    words: NDArray[np.int64]
    heart: NDArray[np.int64]
    """For the device's guardian: time of the last call that has sent its force [ns], RESTS after the last;
    shape (1,)."""


def make_touch_tick(
    servo: Servo,
    functions: list[int],
    device: int,
    has: Sequence[bool] = (False,) * len(OPTIONS),
    style: int = 0,
    lasting: float = 1.0,
    heart: NDArray[np.int64] | None = None,
) -> TouchTick:
    """State before the first call; functions: addresses of FUNCTIONS; device: libHD's handle.

    heart (1,): what a guardian listens to, None for no guardian.
    """
    return TouchTick(
        servo=servo.state,
        functions=np.array(functions, dtype=np.int64),
        device=int(device),
        transform=np.zeros(16),
        velocity=np.zeros(3),
        buttons=np.zeros(1, dtype=np.int32),
        switch=np.zeros(1, dtype=np.int32),
        temperatures=np.zeros(6),
        has=np.array(has, dtype=np.int64),
        style=int(style),
        lasting=float(lasting),
        known=_KNOWN.copy(),
        counts=np.zeros(len(_KNOWN) + 1, dtype=np.int64),
        fault=np.zeros(1, FAULT),
        clock=np.zeros(1, CLOCK),
        spent=np.zeros(1, SPENT),
        words=np.zeros(5, dtype=np.int64),
        heart=np.zeros(1, dtype=np.int64) if heart is None else heart,
    )


# ---- the tick


@inlined
def _lateness(tick):
    """Time since the last call beyond a period [ns]; counts late calls and periods that passed without one.

    The scheduler's deadlines are its own secret, so a call is measured against the one before; a call that
    comes early makes up for one that came late, by no more than a period.
    """
    now = now_ns(tick.servo.scratch)
    last = tick.clock[0].last_call
    tick.clock[0].last_call = now
    if last == 0:
        return 0
    period = tick.servo.period_ns
    excess = now - last - period
    lag = tick.clock[0].lag + excess
    skipped = max(lag, 0) // period
    tick.clock[0].lag = max(lag - skipped * period, -period)
    late = max(excess, 0)
    statistics = tick.servo.statistics
    count_duration(statistics, LATE, late)
    statistics.counts[0].missed += late > period
    statistics.counts[0].skipped += skipped
    if skipped > 0:
        owe(tick.spent[0], skipped, period)
    return late


@inlined
def _hold(tick, why, on):
    held = tick.words[HELD]
    tick.words[HELD] = held | why if on else held & ~why


@kernel
def _note(tick, code, internal):
    """Count an error; whether it ends the run, as an unknown one does. One may hold the force off."""
    n = tick.known.shape[0]
    for k in range(n):
        if tick.known[k, 0] == code:
            tick.counts[k] += 1
            if tick.known[k, 1] == FADE:
                _hold(tick, FORCE_TAKEN, True)
            return tick.known[k, 1] == FATAL
    tick.counts[n] += 1
    tick.fault[0].unknown = code
    tick.fault[0].unknown_internal = internal
    return True


@kernel
def _fail(tick, code, internal):
    """End the run for an error; later ones are its consequences."""
    if tick.servo.device.health[0] == DEVICE_OK:
        tick.servo.device.health[0] = DEVICE_GONE
        tick.fault[0].code = code
        tick.fault[0].internal = internal


@kernel
def _take_errors(tick):
    """Empty the error stack, whose newest comes first: the oldest fatal one is the fault.

    The stack is the process's: an error of another device, taken here, stops this one too, and its own will
    meet the next.
    """
    fault, fault_internal = 0, 0
    for _ in range(ERROR_DEPTH):
        info = call_for_error(tick.functions[_GET_ERROR])
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
    call_word(f[_MAKE_CURRENT], tick.device)
    if call_for_word(f[_GET_CURRENT]) != tick.device:
        _fail(tick, BAD_HANDLE, 0)
        _take_errors(tick)
        return False
    if first:
        call_word(f[_ENABLE], HD_FORCE_OUTPUT)
    call_word(f[_BEGIN_FRAME], tick.device)
    call_values(f[_GET_DOUBLES], HD_CURRENT_TRANSFORM, tick.transform.ctypes.data)
    call_values(f[_GET_DOUBLES], HD_CURRENT_VELOCITY, tick.velocity.ctypes.data)
    call_values(f[_GET_INTEGERS], HD_CURRENT_BUTTONS, tick.buttons.ctypes.data)
    if tick.has[SAFETY_SWITCH]:
        call_values(f[_GET_INTEGERS], HD_CURRENT_SAFETY_SWITCH, tick.switch.ctypes.data)
    _take_errors(tick)
    return True


@kernel
def _heed_motors(tick):
    """What the temperature of the motors leaves of the force; figures that are none leave all of it."""
    call_values(tick.functions[_GET_DOUBLES], HD_MOTOR_TEMPERATURE, tick.temperatures.ctypes.data)
    warmest = 0.0
    for i in range(tick.temperatures.shape[0]):
        if 0.0 <= tick.temperatures[i] <= 1.5:
            warmest = max(warmest, tick.temperatures[i])
    share = min(max((warmest - WARM) / (1.0 - WARM), 0.0), 1.0)
    tick.servo.device.allowance[0] = 1.0 - share * (1.0 - tick.lasting)


@kernel
def _look_after(tick):
    """Inside the frame: hold the servo while the device must not, or cannot, give a force."""
    f, words = tick.functions, tick.words
    words[CALLS] += 1
    due = words[CALLS] % HOUSEKEEPING
    if tick.has[SAFETY_SWITCH]:
        closed = tick.switch[0] != 0
        words[_SWITCH_SEEN] |= closed
        _hold(tick, SWITCH_OPEN, words[_SWITCH_SEEN] != 0 and not closed)
    if due == 1 or words[HELD] & (CALIBRATING | BY_HAND):
        status = call_for_word(f[_CHECK_CALIBRATION])
        if words[HELD] & (CALIBRATING | BY_HAND) and is_frozen(tick.servo):
            # its origin may move: no pose is a jump
            forget_pose(tick.servo.pose)
            tick.clock[0].last_pose = 0
        _hold(tick, CALIBRATING, status == HD_CALIBRATION_NEEDS_UPDATE)
        _hold(tick, BY_HAND, status == HD_CALIBRATION_NEEDS_MANUAL_INPUT)
    if tick.has[TEMPERATURE] and due == 2:
        _heed_motors(tick)
    hold_servo(tick.servo, words[HELD] != 0)


@kernel
def _put_right(tick):
    """Between two frames, at zero force: update the calibration, switch the force on again."""
    f, words = tick.functions, tick.words
    if words[CALLS] % HOUSEKEEPING == 3 and call_for_byte(f[_IS_ENABLED], HD_FORCE_OUTPUT) == 0:
        _hold(tick, FORCE_TAKEN, True)
    if words[HELD] == 0 or not is_frozen(tick.servo):
        return
    if words[HELD] & FORCE_TAKEN:
        call_word(f[_ENABLE], HD_FORCE_OUTPUT)
        _hold(tick, FORCE_TAKEN, False)
    if words[HELD] & CALIBRATING and words[CALLS] % HOUSEKEEPING == 4:
        call_word(f[_UPDATE_CALIBRATION], tick.style)


@kernel
def _end(tick, done):
    """Send the force and end the frame; after the last one switch the force output off."""
    f = tick.functions
    call_word(f[_MAKE_CURRENT], tick.device)  # another hand's may be, since the frame was begun
    call_values(f[_SET_DOUBLES], HD_CURRENT_FORCE, tick.servo.sent.ctypes.data)
    call_word(f[_END_FRAME], tick.device)
    if done:
        call_word(f[_DISABLE], HD_FORCE_OUTPUT)
    elif tick.servo.device.health[0] == DEVICE_OK:
        _put_right(tick)
    _take_errors(tick)


@kernel
def _read(tick):
    """Fill the device port; a reading that is none ends the run, with the last good pose in the port."""
    servo = tick.servo
    if servo.device.health[0] != DEVICE_OK:
        return
    port, now = servo.device_port, tick.clock[0].last_call
    if not convert_reading(tick.transform, tick.velocity, tick.buttons, port):
        _note(tick, BAD_READING, 0)
        _fail(tick, BAD_READING, 0)
    elif tick.clock[0].last_pose == 0 or now <= tick.clock[0].last_pose:
        begin_measuring(servo.device, port)
    else:
        measure_spin(servo.device, port, 1e-9 * (now - tick.clock[0].last_pose))
    tick.clock[0].last_pose = now


@kernel
def read_touch(tick):
    """Within the tick of another device: begin a frame of this one and read it; 0 if there is no frame."""
    first = tick.clock[0].last_call == 0
    tick.clock[0].last_call = now_ns(tick.servo.scratch)
    there = _begin(tick, first)
    tick.words[INSIDE] = there
    if there:
        _look_after(tick)
    _read(tick)
    return np.int64(there)


@kernel
def write_touch(tick):
    """Send its force and end its frame, if one was begun; the output is switched off as it is closed."""
    there = tick.words[INSIDE]
    if there != 0:
        _end(tick, False)
    tick.words[INSIDE] = 0
    store_release(tick.heart, 0, tick.clock[0].last_call)
    return there


@kernel
def touch_tick(tick):
    """One tick of the device; what libHD's scheduler is to do next."""
    if tick.words[ENDED] != 0:
        return DONE
    store_release(tick.words, INSIDE, 1)
    clock, called = tick.functions[TIME_STAMP], stamp(tick.functions[TIME_STAMP])
    first = tick.clock[0].last_call == 0
    late = _lateness(tick)
    there = _begin(tick, first)
    read = stamp(clock)
    if there:
        _look_after(tick)
    _read(tick)
    done = servo_step(tick.servo, late, 1)
    stepped = stamp(clock)
    if there:
        _end(tick, done)
    spend(tick.spent[0], called, read, stepped, stamp(clock))
    store_release(tick.heart, 0, RESTS if done else tick.clock[0].last_call)
    store_release(tick.words, INSIDE, 0)
    if done:
        store_release(tick.words, ENDED, 1)
        return DONE
    return CONTINUE


def _smallest_servo() -> Servo:
    """A servo of no use but its type, which every other's shares."""
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    return make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)


_CONTENT = typeof(make_touch_tick(_smallest_servo(), [0] * len(FUNCTIONS), 0))


@callback(types.uint32(HandleType(_CONTENT)))
def touch_callback(tick):
    """`HDCallbackCode f(void *)` for hdScheduleAsynchronous; its user data is a `touch_data` address."""
    return touch_tick(tick)


@callback(types.int32(HandleType(_CONTENT)))
def touch_read(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(read_touch(tick))


@callback(types.int32(HandleType(_CONTENT)))
def touch_write(tick):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(write_touch(tick))


def touch_data(tick: TouchTick) -> Handle:
    """The handle whose address is the callbacks' user data; TypeError for a tuple of another layout."""
    return handle_for(tick, _CONTENT, "servo")
