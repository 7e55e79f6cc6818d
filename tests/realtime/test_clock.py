"""Laws of the clock: it never goes back, and no waiter wakes before its deadline."""

import ctypes
import sys
from itertools import pairwise

import llvmlite.binding
import pytest

from palpo.haptics import clock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the POSIX waiters are tested here")
WAITERS = [clock._sleep_until_nanosleep] + (
    [clock._sleep_until_absolute] if clock.WAITER == "clock_nanosleep" else []
)


def test_the_clock_never_goes_back():
    scratch = clock.make_scratch()
    times = [clock.now_ns(scratch) for _ in range(1000)]
    assert all(a <= b for a, b in pairwise(times))


@pytest.mark.parametrize("sleep_until", WAITERS)
@pytest.mark.parametrize("ahead_ns", [-1_000_000, 0, 50_000, 1_000_000, 3_000_000])
def test_a_waiter_never_wakes_before_its_deadline(sleep_until, ahead_ns):
    scratch = clock.make_scratch()
    for _ in range(20):
        deadline = clock.now_ns(scratch) + ahead_ns
        sleep_until(deadline, scratch)
        assert clock.now_ns(scratch) >= deadline


def test_a_refused_realtime_request_says_so(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(clock.os, "sched_setscheduler", refuse, raising=False)
    granted, message = clock.request_realtime()
    assert not granted
    assert "refused (Operation not permitted)" in message or "not available" in message


class Windows:
    """The documented functions of kernel32 that the waiter calls, over a clock of its own.

    late: time [ns] by which a wait lasts longer than asked. timer: whether there are high-resolution ones.
    """

    def __init__(self, late: int = 0, timer: bool = True) -> None:
        self.now, self.late, self.handle = 5 * clock.SECOND, late, 0x1234 if timer else 0
        self.due, self.calls = 0, []
        i32, u32, i64, pointer = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p
        self._kept = []
        for name, result, arguments in (
            ("QueryPerformanceCounter", i32, (pointer,)),
            ("QueryPerformanceFrequency", i32, (pointer,)),
            ("Sleep", None, (u32,)),
            ("CreateWaitableTimerExW", i64, (pointer, pointer, u32, u32)),
            ("SetWaitableTimer", i32, (i64, pointer, i32, pointer, pointer, i32)),
            ("WaitForSingleObject", u32, (i64, u32)),
            ("CloseHandle", i32, (i64,)),
        ):
            function = ctypes.CFUNCTYPE(result, *arguments)(self._noted(name))
            self._kept.append(function)
            llvmlite.binding.add_symbol(name, ctypes.cast(function, pointer).value)

    def _noted(self, name):
        method = getattr(self, name)

        def call(*arguments):
            self.calls.append(name)
            return method(*arguments)

        return call

    def QueryPerformanceCounter(self, out):
        ctypes.c_int64.from_address(out).value = self.now // 100
        return 1

    def QueryPerformanceFrequency(self, out):
        ctypes.c_int64.from_address(out).value = 10_000_000
        return 1

    def Sleep(self, milliseconds):
        self.now += 1_000_000 * milliseconds + 500_000

    def CreateWaitableTimerExW(self, attributes, name, flags, access):
        assert (attributes, name, flags, access) == (None, None, 0x2, 0x1F0003)
        return self.handle

    def SetWaitableTimer(self, handle, due, period, routine, argument, resume):
        assert (handle, period, routine, argument, resume) == (self.handle, 0, None, None, 0)
        self.due = ctypes.c_int64.from_address(due).value
        assert self.due < 0, "relative"
        return 1

    def WaitForSingleObject(self, handle, milliseconds):
        assert handle == self.handle and milliseconds * 10_000 > -self.due
        self.now += -100 * self.due + self.late
        return 0

    def CloseHandle(self, handle):
        assert handle == self.handle
        return 1


@pytest.fixture(scope="module")
def windows():
    """One stand-in, since compiled code keeps the addresses that it was linked with."""
    return Windows()


@pytest.mark.parametrize("ahead_ns", [-1_000_000, 0, 50_000, 999_999, 1_000_000, 40_000_000])
@pytest.mark.parametrize(("late_ns", "timer"), [(0, True), (300_000, True), (0, False)])
def test_on_windows_a_wait_ends_at_its_deadline_without_spinning(windows, ahead_ns, late_ns, timer):
    scratch = clock.make_scratch()
    windows.late, windows.handle = late_ns, 0x1234 if timer else 0
    windows.calls.clear()
    before = clock._now_windows(scratch)
    clock._sleep_until_windows(before + ahead_ns, scratch)
    after = clock._now_windows(scratch)
    assert after >= before + ahead_ns
    waits = windows.calls.count("WaitForSingleObject" if timer else "Sleep")
    if timer:
        # its unit is 100 ns
        assert after <= before + max(ahead_ns, 0) + late_ns + 100
        assert waits == (ahead_ns > 0)
        assert "Sleep" not in windows.calls
        assert windows.calls.count("QueryPerformanceCounter") <= 4
    clock._end_waiting_windows(scratch)
    clock._end_waiting_windows(scratch)
    assert windows.calls.count("CloseHandle") == (timer and ahead_ns > 0)
    assert windows.calls.count("CreateWaitableTimerExW") == (ahead_ns > 0)
