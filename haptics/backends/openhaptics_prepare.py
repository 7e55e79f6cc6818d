"""A device made ready at zero force on its running scheduler: calibration, and which properties it has.

libHD knows the state of a calibration only while its scheduler calls, and an inkwell calibrates when the
stylus is put into it. Until the device is calibrated the callback makes frames without force, and whoever
waits reads from the words what to tell the operator.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import call_for_error, call_for_word, call_values, call_word
from palpo.haptics.backends.openhaptics_library import ERROR_DEPTH
from palpo.haptics.backends.openhaptics_tick import (
    CONTINUE,
    DONE,
    FUNCTIONS,
    HD_CALIBRATION_NEEDS_UPDATE,
    HD_CALIBRATION_OK,
    HD_CURRENT_FORCE,
    HD_CURRENT_TRANSFORM,
    HD_MAX_FORCE_CLAMPING,
    OPTIONS,
    SAFETY_SWITCH,
    TIME_STAMP,
)
from palpo.haptics.backends.openhaptics_timing import SPENT, spend, stamp
from palpo.physics.exchange.atomics import load_acquire, store_release
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.numerics.kernels import callback, inlined, kernel

_OF = {name: k for k, name in enumerate(FUNCTIONS)}
_MAKE_CURRENT, _BEGIN, _END, _ENABLE = (
    _OF[name] for name in ("hdMakeCurrentDevice", "hdBeginFrame", "hdEndFrame", "hdEnable")
)
_GET, _GET_INTEGERS, _SET, _ERROR = (
    _OF[name] for name in ("hdGetDoublev", "hdGetIntegerv", "hdSetDoublev", "hdGetError")
)
_CHECK, _UPDATE = _OF["hdCheckCalibration"], _OF["hdUpdateCalibration"]
LEAVE, ENDED, CALLS, STATUS, STEADY, FAULT, FAULT_INTERNAL = range(7)
"""Words: asked to end, ended, calls so far, state of the calibration, calls for which it has been well, first
error and its internal code."""
STEADY_CALLS = 5
"""Calls in a row after which a calibration that is well is taken for well."""
UPDATE_CALLS = 50
"""Calls between two updates of a calibration."""


class Preparing(NamedTuple):
    """All that the callback touches."""

    functions: NDArray[np.int64]
    """Addresses of FUNCTIONS."""
    device: int
    """libHD's handle."""
    style: int
    """How its calibration is updated."""
    options: NDArray[np.int64]
    """Properties to try: OPTIONS."""
    has: NDArray[np.int64]
    """Which of them it has."""
    values: NDArray[np.float64]
    """Room for any property, shape (32,)."""
    still: NDArray[np.float64]
    """No force, shape (3,) [N]."""
    words: NDArray[np.int64]
    spent: NDArray[Any]
    """Of SPENT, shape (1,)."""


def make_preparing(functions: list[int], device: int, style: int) -> Preparing:
    """State before the first call."""
    return Preparing(
        functions=np.array(functions, dtype=np.int64),
        device=int(device),
        style=int(style),
        options=np.array(OPTIONS, dtype=np.int64),
        has=np.zeros(len(OPTIONS), dtype=np.int64),
        values=np.zeros(32),
        still=np.zeros(3),
        words=np.zeros(7, dtype=np.int64),
        spent=np.zeros(1, SPENT),
    )


@inlined
def _refused(tick):
    """Empty the error stack; whether what was asked last is not known here. Any other error is the fault."""
    refused = False
    for _ in range(ERROR_DEPTH):
        info = call_for_error(tick.functions[_ERROR])
        code = info & 0xFFFFFFFF
        if code == 0:
            break
        if 0x100 <= code < 0x104:
            refused = True
        elif tick.words[FAULT] == 0:
            tick.words[FAULT], tick.words[FAULT_INTERNAL] = code, info >> 32
    return refused


@inlined
def _try_option(tick, k):
    if k < tick.options.shape[0]:
        get = _GET_INTEGERS if k == SAFETY_SWITCH else _GET
        call_values(tick.functions[get], tick.options[k], tick.values.ctypes.data)
        tick.has[k] = 0 if _refused(tick) else 1


@kernel
def prepare_tick(tick):
    """A frame without force; what libHD's scheduler is to do next."""
    f, words = tick.functions, tick.words
    if words[ENDED] != 0:
        return DONE
    called = stamp(f[TIME_STAMP])
    call_word(f[_MAKE_CURRENT], tick.device)
    call_word(f[_BEGIN], tick.device)
    call_values(f[_GET], HD_CURRENT_TRANSFORM, tick.values.ctypes.data)
    read = stamp(f[TIME_STAMP])
    _refused(tick)
    _try_option(tick, words[CALLS])
    status = call_for_word(f[_CHECK])
    call_values(f[_SET], HD_CURRENT_FORCE, tick.still.ctypes.data)
    stepped = stamp(f[TIME_STAMP])
    call_word(f[_END], tick.device)
    spend(tick.spent[0], called, read, stepped, stamp(f[TIME_STAMP]))
    if words[CALLS] == 0:
        call_word(f[_ENABLE], HD_MAX_FORCE_CLAMPING)
    if status == HD_CALIBRATION_NEEDS_UPDATE and words[CALLS] % UPDATE_CALLS == UPDATE_CALLS - 1:
        call_word(f[_UPDATE], tick.style)
    _refused(tick)
    words[STATUS] = status
    words[STEADY] = words[STEADY] + 1 if status == HD_CALIBRATION_OK else 0
    store_release(words, CALLS, words[CALLS] + 1)
    if load_acquire(words, LEAVE) != 0:
        store_release(words, ENDED, 1)
        return DONE
    return CONTINUE


_CONTENT = typeof(make_preparing([0] * len(FUNCTIONS), 0, 0))


@callback(types.uint32(HandleType(_CONTENT)))
def prepare_callback(tick):
    """`HDCallbackCode f(void *)` for hdScheduleAsynchronous; its user data is a `Preparing`'s handle."""
    return prepare_tick(tick)


def preparing_data(tick: Preparing) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(tick, _CONTENT, "tuple")
