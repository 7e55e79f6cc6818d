"""The servo's first lap through its rings finds their memory there: no write of it waits for a page."""

import mmap
import sys

import numpy as np
import pytest

from palpo.physics.exchange.force_log import add_force, close_entry, make_force_log, open_entry
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.resident import resident
from palpo.physics.numerics.kernels import kernel

resource = pytest.importorskip("resource")


@kernel
def fill_log(log, points, ticks, force):
    """Forces on so many points in each of the ticks."""
    for tick in range(ticks):
        slot = open_entry(log, tick)
        for p in range(points):
            add_force(log, slot, p, force, 1.0)
        close_entry(log)


def faults() -> int:
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults")
def test_a_lap_through_the_force_log_meets_no_new_page() -> None:
    ticks, width = 1024, 64
    force = np.ones(3)
    fill_log(Handle(make_force_log(2, width)), 1, 1, force)
    log = make_force_log(ticks, width)
    handle, pages = Handle(log), log.force.nbytes // mmap.PAGESIZE
    before = faults()
    fill_log(handle, width, ticks, force)
    assert pages > 300
    # what is left is the test's own
    assert faults() - before < pages // 10


def test_forces_for_which_a_log_has_no_room_are_counted() -> None:
    log, force = make_force_log(4, 2), np.ones(3)
    fill_log(Handle(log), 5, 3, force)
    assert log.dropped[0] == 3 * (5 - 2) and log.used.tolist() == [2, 2, 2, 0]


def test_it_is_zero_and_of_the_type_asked_for() -> None:
    out = resident((3, 5), np.int32)
    assert out.dtype == np.int32 and out.shape == (3, 5) and not out.any()
