"""The high-rate tick as a C function: what the servo and a device's own scheduler call.

Its user data is the address of a `Handle` to a `HighRate`. The type of that tuple depends on dimensions
and dtypes only, so that one compiled callback, cached on disk, serves every scene.
"""

import numpy as np
from numba import typeof, types

from palpo.physics.bodies.chain_models import rest_state, rigid_model
from palpo.physics.collision.topology import TOOL, CollisionShape, join_shapes
from palpo.physics.compliance.hold import make_hold
from palpo.physics.exchange.ahead import Ahead
from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.numerics.kernels import callback
from palpo.physics.systems.multirate.assembly import make_servo_side
from palpo.physics.systems.multirate.high_rate import tick
from palpo.physics.systems.multirate.high_state import HighRate
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


_CONTENT = typeof(make_servo_side(smallest_scene()).high)


@callback(types.int32(HandleType(_CONTENT)))
def high_rate_tick(state):
    """`int32 f(void *)`: one tick of the HighRate behind the handle; its status."""
    return tick(state)


def tick_data(high: HighRate) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(high, _CONTENT, "high-rate state")
