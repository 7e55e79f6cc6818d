"""The search for candidates by itself: without the tick or a scene, it is compiled before these."""

import numpy as np

from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.topology import LOW, CollisionShape, join_shapes


def rehearse_search() -> None:
    """A look for what may touch, of two triangles that do."""
    triangle = CollisionShape(3, np.array([[0, 1, 2]], np.int32), np.zeros((0, 2), np.int32), 0.0, LOW)
    topology, _ = join_shapes([triangle, triangle])
    x = np.vstack([np.eye(3), np.eye(3)])
    BroadPhase(topology, x, 16, 1.0, 0.0, folding=[0]).find(x, np.zeros_like(x), 1.0, 0.0)
