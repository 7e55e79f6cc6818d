"""A clock that a tick's driver lends to it: the physics has none, so that lock-step cannot see the time.

It is a C function `int32 f(int64 *)` that writes the time [ns] into its first word; the words after it are
its own. Without one every reading is 0, and a time limit never ends anything.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import call_tick
from palpo.physics.exchange.handle import of_process
from palpo.physics.numerics.kernels import kernel


@of_process("address")
class LentClock(NamedTuple):
    """The clock's addresses, which its lender keeps valid, and the words that it writes."""

    address: NDArray[np.int64]  # (2,) function, 0 for none; words
    words: NDArray[np.int64]  # (8,)


def make_clock(function: int = 0) -> LentClock:
    """A clock of the C function at that address; 0 for one that stands still."""
    words = np.zeros(8, np.int64)
    return LentClock(np.array([function, words.ctypes.data], np.int64), words)


@kernel
def read_clock(clock):
    """The time [ns], or 0 where no clock is lent."""
    if clock.address[0] != 0:
        call_tick(clock.address[0], clock.address[1])
    return clock.words[0]
