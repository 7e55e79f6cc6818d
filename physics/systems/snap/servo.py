"""From a snap connector to the state of the servo's tick, and the tick as a C function.

The callback's user data is the address of a `Handle` to a `SnapServo`; its type depends on dimensions and
dtypes only, so that one compiled function, cached on disk, serves every connector.
"""

import numpy as np
from numba import typeof, types
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.admittance import PlugModel
from palpo.physics.collision.distance_field import EXACT, DistanceField
from palpo.physics.collision.grid_distance import no_grid_distance
from palpo.physics.collision.learned_distance import no_learned_distance
from palpo.physics.collision.near_band import everywhere
from palpo.physics.collision.signed_distance import no_exact_distance
from palpo.physics.exchange.buffer import make_control
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.port import Port, make_port
from palpo.physics.exchange.snap_frame import make_snap_picture, make_snap_settings
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import callback
from palpo.physics.systems.snap.connectors.connector import Admittance, Connector, make_prong
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import Numerics, default_settings
from palpo.physics.systems.snap.tick import COUNT, SnapServo, tick

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def gains_of(plug: PlugModel) -> NDArray[np.float64]:
    """The matrices that SnapSettings carries, shape (GAINS, 6, 6)."""
    return np.stack([plug.mass, plug.damping, plug.stiffness, plug.inverse, plug.follow])


def make_servo(
    model: SnapModel,
    substeps: int = 1,
    turns: bool = True,
    rest: ArrayLike = UPRIGHT,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rail: bool = False,
    port: Port | None = None,
) -> SnapServo:
    """The servo's side of a connector, whose model must outlive it and is moved by it.

    A tick is `substeps` of the model's steps. turns: whether the plug turns with the hand. rest: orientation
    of the plug when the device's is the identity (w, x, y, z). offset: of its target from the hand [m].
    rail: whether that keeps to the line of the push, on which alone the hand then feels a force.
    Raises InputError for less than one substep.
    """
    if substeps < 1:
        raise InputError(f"a tick of {substeps} steps: there must be at least one.")
    state = model.state
    q = np.array(rest, float)
    return SnapServo(
        port=port or make_port(),
        count=np.zeros(1, COUNT),
        substeps=int(substeps),
        turns=int(turns),
        snap=state,
        rest=q / np.linalg.norm(q),
        offset=np.array(offset, float),
        rail=np.array([model.start, model.connector.push]) if rail else np.zeros((2, 3)),
        goal=np.zeros(3),
        goal_q=np.zeros(4),
        way=np.zeros(6),
        target=np.zeros(3),
        target_q=np.zeros(4),
        hand=np.zeros(6),
        settings=make_snap_settings(
            default_settings(model.connector, model.numerics), gains_of(state.plug.model)
        ),
        settings_control=make_control(),
        picture=make_snap_picture(model.coordinates.size, len(state.engine.contacts.gap)),
        picture_control=make_control(),
    )


def smallest_servo() -> SnapServo:
    """A block and another as its plug, of unknown distance: the least that a tick can be laid out for."""
    mesh = block((0.01, 0.01, 0.01), (1, 1, 1))
    skin = mesh.surface()
    held = np.flatnonzero(mesh.nodes[:, 1] < np.median(mesh.nodes[:, 1]))
    prong = make_prong(mesh, held, skin.triangles[~np.isin(skin.triangles, held).any(axis=1)])
    six, up = np.ones(6), np.array([0.0, 1.0, 0.0])
    connector = Connector(
        (prong,), skin, Material(1e6, 0.3, 1000.0), 0.3, -up, 0.1 * up, 0.01, 0.0, Admittance(six, six, six)
    )
    field = DistanceField(
        EXACT, everywhere(mesh.nodes), no_exact_distance(), no_grid_distance(), no_learned_distance()
    )
    return make_servo(SnapModel(connector, Numerics(segments=1, spacing=1.0), field))


_CONTENT = typeof(smallest_servo())


@callback(types.int32(HandleType(_CONTENT)))
def snap_tick(state):
    """`int32 f(void *)`: one tick of the SnapServo behind the handle; its status."""
    return tick(state)


def tick_data(servo: SnapServo) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(servo, _CONTENT, "servo of a snap connector")
