"""What a device is examined by: forces laid out in time, and a spring, instead of a scene.

  f = push(tick) - K (x - c) - B v
until the stylus has gone `trip` from the centre c, where the run began; from then on a soft spring with
damping holds it where it is. A tick is a C function like that of any system, so that limits, fades and
emergency stop stand between it and the hand as always.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import ArrayLike, NDArray

from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback, kernel

CATCH_STIFFNESS, CATCH_DAMPING = 50.0, 3.0
"""What holds the stylus once it has tripped [N/m], [N s/m]."""
DRILL = np.dtype(
    [("stiffness", np.float64), ("damping", np.float64), ("trip", np.float64), ("call", np.int64),
     ("tripped", np.int64)]
)  # fmt: skip
"""K [N/m], B [N s/m], the way [m] to the trip, ticks so far, and 1 from the trip on."""


class Drill(NamedTuple):
    """The state of the tick."""

    port: Port
    own: NDArray[Any]
    """Shape (1,) of DRILL."""
    push: NDArray[np.float64]
    """Force of each tick [N], shape (n, 3); after the last none."""
    centre: NDArray[np.float64]
    """Shape (3,) [m]."""


def make_drill(push: ArrayLike, stiffness: float = 0.0, damping: float = 0.0, trip: float = np.inf) -> Drill:
    """Before the first tick, around wherever that finds the stylus."""
    own = np.array([(stiffness, damping, trip, 0, 0)], DRILL)
    return Drill(make_port(), own, np.array(push, float).reshape(-1, 3), np.zeros(3))


@kernel
def drill_forces(s):
    """The force of one tick, in s.port."""
    port, own, far = s.port, s.own[0], 0.0
    if own.call == 0:
        s.centre[:] = port.position
    for i in range(3):
        far += (port.position[i] - s.centre[i]) ** 2
    if own.tripped == 0 and far > own.trip * own.trip:
        own.tripped = 1
        s.centre[:] = port.position
    caught = own.tripped != 0
    stiffness = CATCH_STIFFNESS if caught else own.stiffness
    damping = CATCH_DAMPING if caught else own.damping
    for i in range(3):
        push = s.push[own.call, i] if not caught and own.call < s.push.shape[0] else 0.0
        port.force[i] = push - stiffness * (port.position[i] - s.centre[i]) - damping * port.velocity[i]
    own.call += 1
    return end_tick(port, OK, 0)


_CONTENT = typeof(make_drill(np.zeros((1, 3))))


@callback(types.int32(HandleType(_CONTENT)))
def drill_tick(s):
    """`int32 f(void *)` for `palpo.haptics.servo.make_servo`."""
    return np.int32(drill_forces(s))


def drill_data(drill: Drill) -> Handle:
    """The handle whose address is the tick's data."""
    return handle_for(drill, _CONTENT, "drill")
