"""The servo's clock: monotonic time and absolute deadlines, compiled, without the GIL, cacheable on disk.

It goes on while the machine sleeps, so that a servo sees by its lateness that it stood still. On Linux that
is CLOCK_BOOTTIME; the monotonic clocks of macOS and Windows do so anyway.

Symbols are looked up by name (`types.ExternalFunction`) because a captured ctypes pointer would recompile in
every process; a symbol that is missing would crash at its first call, so the choice is made at import:
`clock_nanosleep` where there is one (Linux); on Windows a high-resolution waitable timer (Windows 10
1803 has it), else `Sleep`; elsewhere (macOS) `nanosleep`, which wakes early and spins the rest.
Every function takes `scratch`, an int64 array of shape (4,) owned by the calling thread, which gives back
what the system lent it with `end_waiting`.
"""

import ctypes
import os
import sys
import time

import numpy as np
from numba import types
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel

SECOND = 1_000_000_000
"""Nanoseconds in a second."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", 1))
_ABSOLUTE = 1
_INTERRUPTED = 4

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
_clock_nanosleep = types.ExternalFunction(
    "clock_nanosleep",
    types.int32(types.int32, types.int32, types.voidptr, types.voidptr),
)
_nanosleep = types.ExternalFunction("nanosleep", types.int32(types.voidptr, types.voidptr))
_counter = types.ExternalFunction("QueryPerformanceCounter", types.int32(types.voidptr))
_frequency = types.ExternalFunction("QueryPerformanceFrequency", types.int32(types.voidptr))
_sleep_ms = types.ExternalFunction("Sleep", types.void(types.uint32))
_create_timer = types.ExternalFunction(
    "CreateWaitableTimerExW", types.int64(types.voidptr, types.voidptr, types.uint32, types.uint32)
)
_set_timer = types.ExternalFunction(
    "SetWaitableTimer",
    types.int32(types.int64, types.voidptr, types.int32, types.voidptr, types.voidptr, types.int32),
)
_wait_for = types.ExternalFunction("WaitForSingleObject", types.uint32(types.int64, types.uint32))
_close_handle = types.ExternalFunction("CloseHandle", types.int32(types.int64))
# of synchapi.h and winnt.h
_HIGH_RESOLUTION, _ALL_ACCESS = 0x2, 0x1F0003
_TIMER, _NO_TIMER = 3, -1
"""Word of the scratch that holds the timer's handle, 0 before it was asked for; and that there is none."""


def make_scratch() -> NDArray[np.int64]:
    """Scratch of one thread's calls into this module."""
    return np.zeros(4, dtype=np.int64)


@kernel
def _now_posix(scratch):
    _clock_gettime(_CLOCK, scratch.ctypes)
    return scratch[0] * SECOND + scratch[1]


@kernel
def _now_windows(scratch):
    _counter(scratch.ctypes)
    _frequency(scratch[1:].ctypes)
    ticks, rate = scratch[0], scratch[1]
    return ticks // rate * SECOND + ticks % rate * SECOND // rate


@kernel
def _sleep_until_absolute(deadline, scratch):
    scratch[0] = deadline // SECOND
    scratch[1] = deadline % SECOND
    while _clock_nanosleep(_CLOCK, _ABSOLUTE, scratch.ctypes, 0) == _INTERRUPTED:
        pass


@kernel
def _sleep_until_nanosleep(deadline, scratch):
    margin = 200_000  # ns: a relative sleep oversleeps by the timer's slack; the rest is spun
    left = deadline - _now_posix(scratch)
    while left > 0:
        if left > margin:
            scratch[0] = (left - margin) // SECOND
            scratch[1] = (left - margin) % SECOND
            _nanosleep(scratch.ctypes, 0)
        left = deadline - _now_posix(scratch)


@kernel
def _sleep_until_windows(deadline, scratch):
    left = deadline - _now_windows(scratch)
    if left > 0 and scratch[_TIMER] == 0:
        made = _create_timer(0, 0, _HIGH_RESOLUTION, _ALL_ACCESS)
        scratch[_TIMER] = made if made != 0 else _NO_TIMER
    while left > 0:
        # a negative time is relative, in units of 100 ns; never short of the deadline
        scratch[0] = -((left + 99) // 100)
        if scratch[_TIMER] != _NO_TIMER and _set_timer(scratch[_TIMER], scratch.ctypes, 0, 0, 0, 0) != 0:
            _wait_for(scratch[_TIMER], left // 1_000_000 + 2)
        else:
            # Sleep(n) lasts up to one timer period (1 ms, see request_realtime) longer than n
            _sleep_ms(max(left // 1_000_000 - 1, 0))
        left = deadline - _now_windows(scratch)


@kernel
def _end_waiting_windows(scratch):
    if scratch[_TIMER] != 0 and scratch[_TIMER] != _NO_TIMER:
        _close_handle(scratch[_TIMER])
    scratch[_TIMER] = 0


@kernel
def _end_waiting_posix(scratch):
    """Nothing is lent."""


def _sleeps_until() -> bool:
    """Whether a `clock_nanosleep` knows the clock: it returns at once from a past deadline."""
    try:
        sleep = ctypes.CDLL(None).clock_nanosleep
    except (OSError, TypeError, AttributeError):
        return False
    return bool(sleep(_CLOCK, _ABSOLUTE, (ctypes.c_int64 * 2)(), None) == 0)


if sys.platform == "win32":
    now_ns, sleep_until, WAITER = _now_windows, _sleep_until_windows, "high-resolution waitable timer"
    end_waiting = _end_waiting_windows
else:
    now_ns, end_waiting = _now_posix, _end_waiting_posix
    if _sleeps_until():
        sleep_until, WAITER = _sleep_until_absolute, "clock_nanosleep"
    else:
        sleep_until, WAITER = _sleep_until_nanosleep, "nanosleep"


def request_realtime(priority: int = 80) -> tuple[bool, str]:
    """Ask real-time scheduling for the calling thread; (granted, one sentence that says so plainly).

    Linux: SCHED_FIFO at the priority. Windows: a timer period of 1 ms for the process, nothing more.
    """
    if sys.platform == "win32":
        ctypes.windll.winmm.timeBeginPeriod(1)
        return (
            False,
            "real-time scheduling is not asked for on Windows; the timer period is 1 ms",
        )
    if not hasattr(os, "sched_setscheduler"):
        return (
            False,
            f"real-time scheduling is not available on {sys.platform}; ordinary priority",
        )
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as refusal:
        return (
            False,
            f"SCHED_FIFO was refused ({refusal.strerror}); the servo runs at ordinary priority",
        )
    return True, f"SCHED_FIFO granted at priority {priority}"
