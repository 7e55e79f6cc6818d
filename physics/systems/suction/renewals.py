"""When bodies of a step make their factors anew: not all in one step.

Cups that are alike turn alike, so that all of them come to the angle at which a factor is made anew at once,
and again a period later: one step in ten does the work of all. Some are so made before that, as late as lets
the others wait their turn; from then on they come one after another by themselves.
"""

import numpy as np
from numpy.typing import NDArray

SPREAD = 8
"""Steps over which renewals that fall together are spread."""


def early(turned: NDArray[np.float64], age: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of n bodies are to renew their factors in the next step, whether they have to by then or not.

    turned (n,): how far each has turned since its last renewal, over how far it may. age (n,): steps since.
    One that goes on as it has is due at turned = 1, and a step has room for ceil(n / SPREAD). The first are
    taken of those that would be too late if none went ahead in the next step.
    """
    room = -(-len(turned) // SPREAD)
    moving = turned > 0.0
    left = np.where(moving, (1.0 - turned) * age / np.where(moving, turned, 1.0), np.inf)
    order = np.argsort(left, kind="stable")
    late = np.flatnonzero(left[order] < np.arange(len(order)) // room + 1)
    return order[: min(room, late.max(initial=-1) + 1)]
