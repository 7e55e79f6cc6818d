"""Parts of the slow loops that need neither ticks nor a scene: another process compiles them meanwhile."""

import numpy as np

from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.topology import LOW, CollisionShape, join_shapes
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import analyse


def rehearse_parts() -> None:
    """The factor of two nodes' masses, solves by it, and a look for what may touch."""
    factor = CholeskyFactor(analyse(2, np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32)))
    factor.refactor(np.zeros((3, 9)), np.array([1.0, 0.0, 1.0]), 1.0, 1.0)
    factor.solve(np.zeros(6))
    factor.solve_many(np.zeros((6, 1)))
    triangle = CollisionShape(3, np.array([[0, 1, 2]], np.int32), np.zeros((0, 2), np.int32), 0.0, LOW)
    topology, _ = join_shapes([triangle, triangle])
    x = np.vstack([np.eye(3), np.eye(3)])
    BroadPhase(topology, x, 16, 1.0, 0.0, folding=[0]).find(x, np.zeros_like(x), 1.0, 0.0)
