"""Clocks that a run lends to the quasi-static tick (physics.engine.solve) for its solver's time limit.

A run in threads lends the machine's. A replay lends one that stands still and, in a tick that the recording
says was cut short, leaps after as many readings as the solver had then made; so that the tick ends at the
same sweep, for the same reason.
"""

from numba import carray, types

from palpo.haptics.clock import now_ns
from palpo.physics.numerics.kernels import callback

READINGS = 1
"""Word of a counted clock: readings that are left before it leaps."""
ENDLESS = 1 << 62
"""Readings that never end, and the time to which a counted clock leaps [ns]."""

_SIGNATURE = types.int32(types.CPointer(types.int64))


@callback(_SIGNATURE)
def machine_clock(words):
    """The machine's monotonic time."""
    array = carray(words, 8)
    array[0] = now_ns(array[1:5])
    return 0


@callback(_SIGNATURE)
def counted_clock(words):
    """0 as long as there are readings left, then ENDLESS."""
    array = carray(words, 8)
    if array[1] > 0:
        array[1] -= 1
        array[0] = 0
    else:
        array[0] = ENDLESS
    return 0
