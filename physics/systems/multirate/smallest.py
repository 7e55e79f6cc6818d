"""The least that a tick can be laid out for.

The type of what a servo exchanges depends on dimensions and dtypes only, so that one compiled link, cached on
disk, serves every scene.
"""

import numpy as np

from palpo.physics.bodies.chain_models import rest_state, rigid_model
from palpo.physics.collision.topology import TOOL, CollisionShape, join_shapes
from palpo.physics.compliance.hold import make_hold
from palpo.physics.exchange.ahead import Ahead
from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.exchange.gains import Gains
from palpo.physics.systems.multirate.scene import Attachments, MovingPoints, Numbers, Scene, ToolPoints


def smallest_scene() -> Scene:
    """One rigid ball in empty space: the least that a tick can be run on."""
    none = np.zeros((0, 3), np.int32)
    shape = CollisionShape(1, none, np.array([[0, 0]], np.int32), 0.01, TOOL)
    topology, _ = join_shapes([shape])
    moving = MovingPoints(
        np.zeros(0, np.int32), np.zeros((0, 1, 3)), np.zeros((0, 1, 4)), np.ones(1, np.int64)
    )
    return Scene(
        names=["ball"],
        topology=topology,
        rest=np.zeros((1, 3)),
        members=[],
        model=rigid_model(0.03, 1e-6 * np.eye(3)),
        tool=rest_state(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]])),
        hold=make_hold(0, False, True, Gains(500.0, 1.0, 1.0, 1e-3)),
        tool_points=ToolPoints(np.array([0, 1]), np.zeros(1, np.int32), np.zeros((1, 3))),
        moving=moving,
        script=Ahead(lambda first, stop: (), 1, (), moving.known),
        attachments=Attachments(
            np.zeros(0, np.int32), np.zeros((0, 2, 3), np.int32), np.zeros((0, 2, 3)), np.zeros((0, 4)),
            np.zeros((0, 3)), np.zeros(0, np.int32),
        ),
        mu=np.zeros((1, 1)),
        ignored=frozenset(),
        numbers=Numbers(dt=1e-3, ratio=20),
        capacity=Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1),
    )  # fmt: skip
