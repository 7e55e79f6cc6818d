"""The tangent that a model of a soft body is made of: that of the shape which the body takes soon."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody

AHEAD = 0.3
"""The tangent is that of the shape which the body takes at its present velocity after this share of the low
step. A tangent halfway to where a model serves is a secant: the force that the model has there errs by the
third power of the way and not by the second. With 0.4 a quick slide of `wire` errs no less, and the force
after a landing by half as much again."""

AHEAD_OF_MEMORY = 1.0
"""Low steps after which a material that remembers is taken to be: a model has no memory of its own. Its
stiffness, its force and the rate at which that fades are those in the middle of the time that it serves."""

MOST_AHEAD = 0.008
"""Time [s] beyond which the velocity is no guide to the shape."""

MOST_DEFORMED = 0.2
"""Change of an element's deformation gradient beyond which it is none either: in a hard impact elements would
be turned inside out in milliseconds if nothing stopped them, and the tangent of such a shape makes energy."""


def tangent_ahead(body: SoftBody, v: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Blocks of the tangent where the body is soon, v (free nodes, 3) [m/s] being without its rigid motion.

    step: the low step [s]. The body stays where it is.
    """
    free = body.free
    here = body.x[free]
    soon = min(AHEAD * step, MOST_AHEAD, MOST_DEFORMED / max(body.largest_gradient(v), 1e-300))
    body.x[free] = here + soon * v
    blocks = body.tangent_blocks()
    body.x[free] = here
    return blocks
