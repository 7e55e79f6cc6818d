"""Laws of the clock: it never goes back, and no waiter wakes before its deadline."""

import sys
from itertools import pairwise

import pytest

from haptics import clock

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
