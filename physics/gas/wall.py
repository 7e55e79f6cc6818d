"""A surface that shuts in air, and that of a soft body."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.nearest import Target, fit, target
from palpo.physics.gas.gaps import farthest
from palpo.physics.mesh.surface import SurfaceMesh


class Wall(Protocol):
    """A surface that shuts in air; `local`: its vertices (n, 3) [m] in its own axes."""

    surface: SurfaceMesh
    local: NDArray[np.float64]
    odometer: float
    """How far [m] the surface has moved at most in its own axes, altogether."""
    target: Target


class SoftWall:
    """The surface of a soft body, in the world's axes; nodes (n,): of its vertices."""

    def __init__(self, body: SoftBody) -> None:
        self.body = body
        whole = body.mesh.surface(body.name)
        self.surface = whole.compact()
        self.nodes = whole.used_vertices
        self.local = np.ascontiguousarray(body.x[self.nodes])
        self.odometer = 0.0
        self.target = target(self.surface)

    def place_surface(self) -> None:
        """Bring `local` up to date with the body."""
        before = self.local
        self.local = np.ascontiguousarray(self.body.x[self.nodes])
        self.odometer += farthest(self.local, before)

    def fit_target(self) -> None:
        """Bring the target up to date with `local`."""
        fit(self.target.boxes, self.local)
