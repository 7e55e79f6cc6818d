"""The reduced models of a low loop's bodies as the servo left them, tick by tick, high rate to low.

The full bodies are set to the state of a tick, and a new frame begins where the servo is: so no tick has to
be made again, in which nothing would answer to its forces. A row is written before the force log's entry of
that tick is published (palpo.physics.exchange.force_log).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.exchange.resident import resident


class ModelLog(NamedTuple):
    """The last n ticks, n a power of two."""

    tick: NDArray[np.int64]  # (n,) at whose end the state is this
    frame: NDArray[np.int64]  # (n,) id of the frame whose model it is
    z: NDArray[np.float64]  # (n, modes)
    rate: NDArray[np.float64]  # (n, modes)
    centre: NDArray[np.float64]  # (n, L, 3) [m]
    q: NDArray[np.float64]  # (n, L, 4)
    velocity: NDArray[np.float64]  # (n, L, 3) [m/s]
    spin: NDArray[np.float64]  # (n, L, 3) [rad/s]
    work: NDArray[np.float64]  # (n, L) [J] that forces have done on each body by then
    total: NDArray[np.float64]  # (L,) and by now


def make_model_log(ticks: int, capacity: Capacity) -> ModelLog:
    """No tick is known so far."""
    n, m, bodies = ticks, capacity.modes, capacity.bodies
    return ModelLog(
        np.full(n, -1, np.int64), resident(n, np.int64), resident((n, m)), resident((n, m)),
        resident((n, bodies, 3)), resident((n, bodies, 4)), resident((n, bodies, 3)),
        resident((n, bodies, 3)), resident((n, bodies)), np.zeros(bodies),
    )  # fmt: skip
