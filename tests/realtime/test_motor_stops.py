"""The firmware of a Force Dimension device takes the force of a program that has gone."""

import sys

import numpy as np
import pytest

from tests.realtime.motor_stops import KILL, STOP, curve, limp_after, of_library

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(sys.platform != "linux", reason="a stand-in for Linux"),
]


@pytest.mark.parametrize("event", [KILL, STOP])
def test_the_motors_of_a_program_that_is_killed_or_stopped_are_limp(event):
    table = curve(*of_library("Force Dimension", event))
    assert table[0, 1] > 1.4
    assert np.isfinite(limp_after(table))
