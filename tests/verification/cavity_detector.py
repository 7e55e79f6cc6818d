"""The first steps of palpo.physics.gas.enclosed by themselves: labels, flood, patches (000, 3.2)."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.border import cut_patch, make_border_work, whole_patch
from palpo.physics.gas.flood import (
    Thresholds,
    connectivity,
    distances_wanted,
    find_cavities,
    label_vertices,
    make_flood,
    require_outside,
)
from palpo.physics.gas.patch import Patch
from palpo.physics.mesh.surface import SurfaceMesh


class CavityDetector:
    """Finds the cavities of one surface, step by step, in arrays made once.

    limits: the three distances. capacity: most cavities kept; the smallest beyond it count as outside, and in
    `flood.size[0].lost`. seed: a vertex that is always outside; None to find one. exact: borders on the
    sealing iso-line, or through vertices.
    """

    def __init__(
        self,
        surface: SurfaceMesh,
        limits: Thresholds,
        capacity: int = 8,
        seed: int | None = None,
        exact: bool = True,
    ) -> None:
        n = len(surface.vertices)
        self.connectivity = connectivity(surface)
        self.limits = limits
        self.flood = make_flood(n, capacity)
        self.label = np.zeros(n, np.int64)
        self.patches: tuple[Patch, ...] = tuple(whole_patch(self.connectivity) for _ in range(capacity))
        self._seed = -1 if seed is None else seed
        self._exact = exact
        self._work = make_border_work(self.connectivity)
        self._wanted = np.zeros(n, np.int64)

    def wanted(self, distance: NDArray[np.float64]) -> NDArray[np.int64]:
        """Label the vertices by distance (n,) [m] and return those whose unknown distance (inf) is needed."""
        label_vertices(distance, self.limits, self.label)
        count = distances_wanted(self.connectivity, self.label, distance, self._wanted)
        return self._wanted[:count]

    def find(self, x: NDArray[np.float64], distance: NDArray[np.float64]) -> int:
        """Find the cavities at positions x (n, 3) [m]; the walls of the first ones are then `patches`.

        distance (n,) [m], signed: as given to `wanted`, with the wanted ones filled in. Returns their number.
        """
        label_vertices(distance, self.limits, self.label)
        find_cavities(self.connectivity, x, self.label, self._seed, self.flood)
        count = int(self.flood.size[0].cavities)
        for k in range(count):
            self.cut(self.flood.cavity, k, distance, self.patches[k])
        return count

    def cut(
        self, member: NDArray[np.int64], number: int, distance: NDArray[np.float64], patch: Patch
    ) -> None:
        """Write the patch of the vertices whose member (n,) is `number`; see `border.cut_patch`."""
        cut_patch(
            self.connectivity, member, number, self.label, distance, self.limits, self._exact, patch,
            self._work,
        )  # fmt: skip

    def require_seed_outside(self, x: NDArray[np.float64], distance: NDArray[np.float64]) -> None:
        """InputError if the given seed touches the other body or lies in a cavity at x (n, 3) [m]."""
        if self._seed >= 0:
            label_vertices(distance, self.limits, self.label)
            require_outside(self.connectivity, x, self.label, self._seed, self.flood)
