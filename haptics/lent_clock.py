"""The servo's clock as a C function, to be lent to a tick (physics.exchange.lent_clock)."""

from numba import carray, cfunc, types

from haptics.clock import now_ns


@cfunc(types.int32(types.CPointer(types.int64)), cache=True)
def write_time(words):
    """`int32 f(int64 *)`: words[0] = monotonic time [ns]; words[4:8] are scratch."""
    block = carray(words, (8,))
    block[0] = now_ns(block[4:8])
    return 0
