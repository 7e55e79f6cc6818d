"""A connector that is equal all around, and stays so: what of it is computed, on one meridian.

Of n equal sectors about y each moves as the next one does, turned. A push along y, friction and a linear body
that is its own mirror image keep it so; what is left of the body's freedoms is in
`palpo.physics.reduction.cyclic`. Contacts of one meridian stand for those of all
sectors. No polygon is left where the plug's corners lie on the meridians.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.reduction.cyclic import ON


def on_meridian(points: NDArray[np.float64], sectors: int) -> NDArray[np.bool_]:
    """Which points (n, 3) [m] lie on the first meridian, z = 0 and x > 0; all of them in one sector."""
    return _angle(points) < ON if sectors > 1 else np.ones(len(points), bool)


def beside_meridian(nodes: NDArray[np.float64], some: NDArray[np.int32], sectors: int) -> NDArray[np.int32]:
    """Of some nodes those on it or in the sectors beside it."""
    return some[_angle(nodes[some]) < 2.0 * np.pi / sectors + ON] if sectors > 1 else some


def felt_of(sectors: int, push: NDArray[np.float64]) -> NDArray[np.float64]:
    """What of a sector's wrench (6,) is left where all of them pull: of several what is along `push`."""
    felt = np.eye(6)
    if sectors > 1:
        felt[:3, :3], felt[3:] = np.outer(push, push), 0.0
    return felt


def _angle(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(np.arctan2(points[:, 2], points[:, 0]))
