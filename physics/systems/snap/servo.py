"""The servo of a snap connector: the hand's pose is the target that the admittance controller follows.

Everything is computed at the servo's rate (`palpo.physics.engine.servo`), in steps along which the target
goes evenly from one pose of the hand to the next. The hand feels the pull of the hold, D_ad (V - W) +
K_ad eh, in the mean of the tick: its work on the hand's way is the energy that the books say the hand gave,
so that the coupling is passive.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.admittance import PlugModel, plug_energy
from palpo.physics.collision.distance_field import EXACT, DistanceField
from palpo.physics.collision.grid_distance import no_grid_distance
from palpo.physics.collision.learned_distance import no_learned_distance
from palpo.physics.collision.near_band import everywhere
from palpo.physics.collision.signed_distance import no_exact_distance
from palpo.physics.contract.links import BOOK, FRAME, SETTINGS, TELL, link
from palpo.physics.contract.stages import DONE
from palpo.physics.engine import servo as engine
from palpo.physics.engine.build import Bound
from palpo.physics.engine.grip import UPRIGHT, Grip, make_grip
from palpo.physics.engine.servo import TickState, make_ticks
from palpo.physics.exchange.buffer import make_control, publish, writer_slot
from palpo.physics.exchange.frames import SlowFrames, make_frames, take_frame
from palpo.physics.exchange.hand_state import HandState, make_hand_state, write_hand
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import Port, make_port
from palpo.physics.exchange.snap_frame import (
    SnapPicture,
    SnapSettings,
    make_snap_picture,
    make_snap_settings,
)
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.snap.connectors.connector import Admittance, Connector, make_prong
from palpo.physics.systems.snap.model import SnapModel, SnapState
from palpo.physics.systems.snap.numerics import Numerics, default_settings
from palpo.physics.systems.snap.step import book, take_settings


class SnapLink(NamedTuple):
    """What the servo of a connector exchanges with its slow loop."""

    grip: Grip
    ticks: NDArray[np.void]  # (1,) the servo's
    snap: SnapState
    frames: SlowFrames
    settings: SnapSettings  # that the frames bring
    picture: HandState
    more: SnapPicture
    picture_control: NDArray[np.int64]


@kernel
def _take_settings(s):
    """What an operator may have changed; what other gains do to the hold's energy is work of the target."""
    slot = take_frame(s.frames, 0, s.ticks[0])
    if slot >= 0:
        plug, motion, new = s.snap.plug.model, s.snap.plug.motion, s.settings.gains[slot]
        take_settings(s.snap, s.settings.value, slot)
        before = plug_energy(plug, motion)
        for i in range(6):
            for j in range(6):
                plug.mass[i, j] = new[0, i, j]
                plug.damping[i, j] = new[1, i, j]
                plug.stiffness[i, j] = new[2, i, j]
                plug.inverse[i, j] = new[3, i, j]
                plug.follow[i, j] = new[4, i, j]
        motion.work[0].target += plug_energy(plug, motion) - before


@kernel
def _place(s):
    """Before the first tick the plug is where the hand is, at rest."""
    m = s.snap.plug.motion
    copy(s.grip.goal, m.position)
    copy(s.grip.goal, m.target_position)
    copy(s.grip.goal_q, m.orientation)
    copy(s.grip.goal_q, m.target_orientation)


@kernel
def _publish(s):
    """The picture of this tick, and the deepest penetration."""
    out, more, snap, w, first = s.picture, s.more, s.snap, writer_slot(s.picture_control), 0
    write_hand(out, w, s.ticks[0], snap.aim, snap.plug.motion.orientation)
    for k in range(snap.prongs.size):
        x = handle_like(snap.prong, snap.prongs[k]).state.x
        copy(x, more.coordinates[w, first : first + x.size])
        first += x.size
    copy(snap.plug.wrench[:3], out.force[w])
    copy(snap.plug.wrench[3:], out.torque[w])
    copy(snap.floor, more.floor[w])
    copy(s.grip.felt, more.hand[w])
    more.energy[w] = snap.books[0]
    t, search, n, depth = snap.engine.contacts, snap.search, snap.engine.contacts.count[0].found, 0.0
    out.n_contacts[w] = n
    for k in range(n):
        depth = max(depth, -search.found.gap[k])
        out.contact_status[w, k] = t.status[k]
        copy(search.candidates.position[search.found.candidate[k]], out.contact_point[w, k])
        for i in range(3):
            out.contact_force[w, k, i] = -t.force[k, i]
    s.grip.port.info[0].depth = depth
    publish(s.picture_control)


def gains_of(plug: PlugModel) -> NDArray[np.float64]:
    """The matrices that SnapSettings carries, shape (GAINS, 6, 6)."""
    return np.stack([plug.mass, plug.damping, plug.stiffness, plug.inverse, plug.follow])


def _make_link(
    model: SnapModel,
    substeps: int = 1,
    turns: bool = True,
    rest: ArrayLike = UPRIGHT,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rail: bool = False,
    port: Port | None = None,
) -> SnapLink:
    """The servo's side of a connector, which it has with the slow loop."""
    state = model.state
    line = np.array([model.start, model.connector.push]) if rail else None
    return SnapLink(
        grip=make_grip(port or make_port(), state.aim, model.built.batches[-1], turns, rest, offset, line),
        ticks=make_ticks(substeps),
        snap=state,
        frames=make_frames(0),
        settings=make_snap_settings(
            default_settings(model.connector, model.numerics), gains_of(state.plug.model)
        ),
        picture=make_hand_state(len(state.engine.contacts.gap)),
        more=make_snap_picture(model.coordinates.size),
        picture_control=make_control(),
    )


def _smallest() -> SnapLink:
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
    return _make_link(SnapModel(connector, Numerics(segments=1, spacing=1.0), field))


@link(_smallest())
def snap_link(stage, s, h):
    """The stages of palpo.physics.contract.links."""
    if stage == SETTINGS:
        _take_settings(s)
    elif stage == FRAME:
        if s.ticks[0].done == 0:
            _place(s)
    elif stage == BOOK:
        book(s.snap)
    elif stage == TELL:
        _publish(s)
    return DONE


def make_servo(
    model: SnapModel,
    substeps: int = 1,
    turns: bool = True,
    rest: ArrayLike = UPRIGHT,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rail: bool = False,
    port: Port | None = None,
) -> tuple[TickState, SnapLink]:
    """The servo of a connector, whose model must outlive it and is moved by it, and what that exchanges.

    A tick is `substeps` of the model's steps. turns: whether the plug turns with the hand. rest: orientation
    of the plug when the device's is the identity (w, x, y, z). offset: of its target from the hand [m].
    rail: whether that keeps to the line of the push, on which alone the hand then feels a force.
    Raises InputError for less than one substep.
    """
    side = _make_link(model, substeps, turns, rest, offset, rail, port)
    links = [Bound.bind(snap_link, side)]
    return engine.make_servo(model.state.engine, [side.grip], links, side.ticks, side.frames), side
