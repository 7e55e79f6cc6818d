"""Laws of the bounded durations: percentiles within a bin, exact maxima and sums, room that never grows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.physics.exchange.durations import RECENT, Durations, StepTimes

BIN = (10.0 ** (1 / 64) - 1.0) * (1 + 1e-9)
"""Width of a bin, relative to its lower edge, on which a value may lie; with the edge's rounding."""
seconds = st.floats(1e-7, 9.0)


def counted(values):
    durations = Durations()
    for value in values:
        durations.add(value)
    return durations


@given(st.lists(seconds, min_size=1, max_size=200))
def test_percentiles_are_those_of_the_values_within_a_bin(values):
    durations = counted(values)
    summary, ordered = durations.summary_ms(), np.sort(values)
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        exact = 1e3 * ordered[int(np.ceil(share * len(values))) - 1]
        assert summary[name] == pytest.approx(exact, rel=BIN)
    assert summary["max"] == pytest.approx(1e3 * max(values), rel=1e-12)
    assert durations.last == values[-1]
    assert durations.recent() == values[-RECENT:]


def test_without_durations_there_is_nothing_to_tell():
    assert Durations().summary_ms() == {}


@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=60))
def test_a_whole_step_is_the_sum_of_its_parts(steps):
    times = StepTimes("first")
    for first, second in steps:
        times.add("first", first)
        times.add("second", second)
    whole = times.whole()
    assert whole.count == len(steps) == times.parts["second"].count
    assert whole.recent() == [sum(step) for step in steps[-RECENT:]]
    # asking twice ends no second step
    assert times.whole().count == len(steps)


def test_an_hour_of_steps_takes_the_room_of_a_minute():
    rng = np.random.default_rng(5)

    def size(n):
        times = StepTimes()
        for a, b in rng.uniform(1e-4, 5e-2, (n, 2)):
            times.add("detection", a)
            times.add("solution", b)
        times.whole()
        return len(pickle.dumps(times.parts)) + len(pickle.dumps(times.whole()))

    # integers of more digits take a byte more each
    assert size(180_000) <= 1.01 * size(3_000)
