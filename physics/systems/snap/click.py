"""The click of a snap connector, read from how it was felt: the force rises to a peak, and falls at once.

002, figure 7, shows it as the force on the floor over time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palpo.physics.numerics.errors import InputError

FALLEN = 0.5
"""Share of the force at its start below which a fall is a click [-]."""

QUICKLY = 0.02
"""Within which it falls [s]."""


class Click(NamedTuple):
    """What an insertion felt like; without a click, release is NaN and the drop is 0."""

    peak: float  # largest force up to the release, or of all [N]
    drop: float  # from the peak to the least force within QUICKLY after the release [N]
    release: float  # when the force has fallen to FALLEN of what it was [s]
    travel: float  # of the plug by then [m]
    latched: bool  # whether it clicked and the plug did not come back out


def click(time: ArrayLike, force: ArrayLike, travel: ArrayLike, back: float = np.inf) -> Click:
    """The click in a force (n,) along the push [N], such as that on the floor, over time (n,) [s].

    travel (n,): of the plug along the push [m]. back: how far behind its travel at the release the plug may
    end and still be latched [m], such as the interference; at least, it must not be back at the start.
    Raises InputError for arrays of other shapes.
    """
    t, f, x = (np.asarray(a, dtype=np.float64) for a in (time, force, travel))
    if not (t.ndim == 1 and len(t) > 0 and t.shape == f.shape == x.shape):
        shapes = f"{t.shape}, {f.shape} and {x.shape}"
        raise InputError(f"a click needs as many forces and travels as times, not shapes {shapes}.")
    # a ramp may peak, in its noise, well before it breaks off: the click is the largest fall
    ahead = np.searchsorted(t, t + QUICKLY, side="right")
    fall = np.array([f[i] - f[i:j].min() for i, j in enumerate(ahead)])
    top = int(fall.argmax())
    fallen = np.flatnonzero(f[top : ahead[top]] < FALLEN * f[top])
    if f[top] <= 0.0 or not fallen.size:
        return Click(float(f.max()), 0.0, np.nan, np.nan, False)
    k = top + int(fallen[0])
    peak = float(f[: k + 1].max())
    drop = peak - float(f[k : ahead[k]].min())
    latched = x[-1] > max(x[k] - back, 0.5 * x[k])
    return Click(peak, drop, float(t[k]), float(x[k]), bool(latched))
