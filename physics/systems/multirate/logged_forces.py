"""The forces of a span of the servo's log (palpo.physics.exchange.force_log), point by point."""

import numpy as np

from palpo.physics.numerics.kernels import kernel


@kernel
def gather_forces(count, point, force, tick, n, n_points):
    """The points under load in n ticks from `tick` on, (k,), ascending, and the forces on them (n, k, 3)."""
    mask, place = point.shape[0] - 1, np.full(n_points, -1)
    for t in range(n):
        e = (tick + t) & mask
        for k in range(count[e]):
            place[point[e, k]] = 0
    points = np.flatnonzero(place == 0).astype(np.int32)
    place[points] = np.arange(points.size)
    out = np.zeros((n, points.size, 3))
    for t in range(n):
        e = (tick + t) & mask
        for k in range(count[e]):
            for i in range(3):
                out[t, place[point[e, k]], i] += force[e, k, i]
    return points, out
