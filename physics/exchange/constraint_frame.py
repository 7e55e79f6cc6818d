"""The constraint frame, low rate to high: what the servo needs to feel the soft bodies for one low period.

The unit of the interface is the *slot*: one point of a low-rate body (three translations), one of its
frames' rotations, or a field (palpo.physics.contract.stages.FIELD), in use by a candidate pair, an attachment
or a cavity. A frame gives each slot a position, a way
to move between low steps and its compliance at the high rate; which of these are used is its `MOTION`:

HELD          x_slot is the free position at dt of low step L3 and stays (003, eq. 10-12)
EXTRAPOLATED  the same, carried on at the slot's velocity of L7, limited in distance and time
REDUCED       x_slot = c + R (X + V z) with the reduced model of EQUATIONS.md, 1, "The Krylov interface"
EXACT         x_slot is the position now and `slot_step` its free displacement in this one tick: a frame a
              tick, which is the monolithic reference

Every array has the three slots of a triple buffer as its leading dimension.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.cavity_frame import CavityFrame, make_cavity_frame
from palpo.physics.exchange.gains import GAINS

HELD, EXTRAPOLATED, REDUCED, EXACT = 0, 1, 2, 3
"""How slots move between low steps."""

FRESH, FROZEN = 0, 1
"""Whether contacts are found anew at every tick from `pairs`, or given once by low step L1."""

SETTINGS = np.dtype([("tolerance", np.float64), ("sweeps", np.int64), ("hold", GAINS)])
"""What an operator may change while a scene runs: of the solver; of the hold."""

HEAD = np.dtype(
    [(name, np.int64) for name in ("id", "motion", "geometry", "base_tick", "n_slots", "n_near", "n_pairs",
                                   "n_modes", "n_contacts", "n_fields")]
)  # fmt: skip
"""Which frame it is; HELD to EXACT; FRESH or FROZEN; the first tick that it has not in it; and how many there
are of each."""

TURNS, IS_FIELD = 1, 2
"""What ConstraintFrame.slot_turns says of a slot that is no point."""

FIELDS, CAVITIES = 16, 8
"""Most fields and cavities in a frame."""

PATHS, PATH_POINTS = 4, 64
"""Most needles that may be in tissue, and most points of the path of one."""

PATH = np.dtype([("plan", np.int64), ("planned", np.int64), ("ends", np.int64)])
"""Of the inner points along a needle's path: the number of their plan, which is another one when points of
the path have got other places; how many have a place; whether the last one is where the tissue ends."""

PATH_TISSUE = np.dtype(
    [("unresolved", np.float64), ("softness", np.float64), ("cutting", np.float64), ("friction", np.float64),
     ("wall", np.float64)]
)  # fmt: skip
"""Of the material at a point of a path, up to the next: ln(R/r), by which the shaft sinks in beside the mesh;
by how many times it is softer than the body's material; force that a tip cuts at [N], friction of a shaft
[N/m]; force on the tip at which the border gives way that lies at the point [N], 0 for none."""


BLADES, BLADE_POINTS = 2, 64
"""Most blades that may be in tissue, and most points of one."""

BLADE_POINT = np.dtype(
    [("within", np.bool_), ("inside", np.bool_), ("limit", np.float64), ("give", np.float64)]
)
"""Of a blade's point, as a frame was made: whether it was within the body; whether tissue met it there;
what the tissue bears there before it gives way [N], to be cut by an edge, to be rubbed by a side; and by
how much it yields to it beside what the mesh does [m/N]."""


class Capacity(NamedTuple):
    """Sizes fixed when a scene is built."""

    slots: int
    near: int
    modes: int
    pairs: int
    contacts: int
    points: int  # global points and rotations of the scene
    bodies: int  # low-rate bodies
    all_bodies: int  # these, the tool and those that never move


class ConstraintFrame(NamedTuple):
    """Low rate to high. World axes unless a field says body axes; L = number of low-rate bodies."""

    head: NDArray[Any]  # (3,) of HEAD
    slot_point: NDArray[np.int32]  # (3, slots) global point of each slot
    slot_body: NDArray[np.int32]  # (3, slots) low-rate body
    slot_turns: NDArray[np.int32]  # (3, slots) TURNS for the rotation of a frame, IS_FIELD, 0 for a point
    slot_of: NDArray[np.int32]  # (3, points) slot of a global point, -1 for none
    slot_x: NDArray[np.float64]  # (3, slots, 3) [m] or [rad]; body axes from the centre if REDUCED
    slot_q: NDArray[np.float64]  # (3, slots, 4) orientation that a rotation slot's vector starts from
    slot_step: NDArray[np.float64]  # (3, slots, 3) free displacement within a tick (EXACT)
    slot_v: NDArray[np.float64]  # (3, slots, 3) [m/s] (EXTRAPOLATED)
    slot_modes: NDArray[np.float64]  # (3, slots, 3, modes) rows of V, body axes (REDUCED)
    slot_rest: NDArray[np.float64]  # (3, slots, 3) compliance of a slot that its modes miss [m/N] (REDUCED)
    field_slot: NDArray[np.int32]  # (3, FIELDS) slots of the fields, whose V and X have a first row only
    field_pull: NDArray[np.float64]  # (3, FIELDS, 6) force and moment about the centre of a unit pressure
    # [N/Pa], [N m/Pa], body axes (REDUCED, floating)
    cavities: CavityFrame  # CAVITIES at most, whose fields are global points
    paths: NDArray[Any]  # (3, PATHS) of PATH
    path_tissue: NDArray[Any]  # (3, PATHS, PATH_POINTS) of PATH_TISSUE
    blade_plan: NDArray[np.int64]  # (3, BLADES) number of the places of each blade's points in the material
    blades: NDArray[Any]  # (3, BLADES, BLADE_POINTS) of BLADE_POINT
    compliance: NDArray[np.float64]  # (3, 3 near, 3 near) W_soft^dt over the first slots [m/N], body axes
    extrapolation: NDArray[np.float64]  # (3, 2) most distance [m] and time [s]
    modes: NDArray[np.float64]  # (3, 4, modes) force, its rate, z and dz/dt of each mode, see below
    stiffness: NDArray[np.float64]  # (3, modes, modes) V^T K V, one block a body [1/s^2]
    mode_body: NDArray[np.int32]  # (3, L + 1) first mode of each body
    floating: NDArray[np.int64]  # (3, L) 1 where the body moves as a whole
    centre: NDArray[np.float64]  # (3, L, 3) centre of mass
    orientation: NDArray[np.float64]  # (3, L, 4) body axes
    velocity: NDArray[np.float64]  # (3, L, 3)
    spin: NDArray[np.float64]  # (3, L, 3) [rad/s]
    mass: NDArray[np.float64]  # (3, L) [kg]
    inertia: NDArray[np.float64]  # (3, L, 2, 3, 3) about the centre, and its inverse; body axes
    damping: NDArray[np.float64]  # (3, L, 2) Rayleigh: of the mass [1/s] and of the stiffness [s]
    gravity: NDArray[np.float64]  # (3, 3)
    settings: NDArray[Any]  # (3,) of SETTINGS
    friction: NDArray[np.float64]  # (3, all bodies, all bodies) coefficients
    soft_speed: NDArray[np.float64]  # (3,) bound on the speed of low-rate points [m/s]
    pair_kind: NDArray[np.int32]  # (3, pairs)
    pair_first: NDArray[np.int32]  # (3, pairs)
    pair_second: NDArray[np.int32]  # (3, pairs)
    pair_due: NDArray[np.float64]  # (3, pairs) [m] reading of the servo's odometer below which it is apart
    contact_identity: NDArray[np.int64]  # (3, contacts) FROZEN contacts, as in collision.proximity_contacts
    contact_points: NDArray[np.int32]  # (3, contacts, 2, 3)
    contact_weights: NDArray[np.float64]  # (3, contacts, 2, 3)
    contact_arms: NDArray[np.float64]  # (3, contacts, 2, 3)
    contact_frame: NDArray[np.float64]  # (3, contacts, 3, 3)
    contact_mu: NDArray[np.float64]  # (3, contacts)
    contact_rest: NDArray[np.float64]  # (3, contacts) [m] gap less its points' distance along the normal
    contact_give: NDArray[np.float64]  # (3, contacts)
    contact_body: NDArray[np.int32]  # (3, contacts, 2)


# Rows of ConstraintFrame.modes
MODE_FORCE, MODE_FADING, MODE_Z, MODE_RATE = range(4)


def make_frame(capacity: Capacity) -> ConstraintFrame:
    """An empty frame for the triple buffer: no slots, no pairs, nothing to touch."""
    n = SLOTS
    s, low = capacity.slots, capacity.bodies
    orientation = np.zeros((n, low, 4))
    orientation[..., 0] = 1.0
    slot_q = np.zeros((n, s, 4))
    slot_q[..., 0] = 1.0
    return ConstraintFrame(
        head=np.zeros(n, HEAD),
        slot_point=np.zeros((n, s), np.int32),
        slot_body=np.zeros((n, s), np.int32),
        slot_turns=np.zeros((n, s), np.int32),
        slot_of=np.full((n, capacity.points), -1, np.int32),
        slot_x=np.zeros((n, s, 3)),
        slot_q=slot_q,
        slot_step=np.zeros((n, s, 3)),
        slot_v=np.zeros((n, s, 3)),
        slot_modes=np.zeros((n, s, 3, capacity.modes)),
        slot_rest=np.zeros((n, s, 3)),
        field_slot=np.zeros((n, FIELDS), np.int32),
        field_pull=np.zeros((n, FIELDS, 6)),
        cavities=make_cavity_frame(CAVITIES),
        paths=np.zeros((n, PATHS), PATH),
        path_tissue=np.zeros((n, PATHS, PATH_POINTS), PATH_TISSUE),
        blade_plan=np.zeros((n, BLADES), np.int64),
        blades=np.zeros((n, BLADES, BLADE_POINTS), BLADE_POINT),
        compliance=np.zeros((n, 3 * capacity.near, 3 * capacity.near)),
        extrapolation=np.zeros((n, 2)),
        modes=np.zeros((n, 4, capacity.modes)),
        stiffness=np.zeros((n, capacity.modes, capacity.modes)),
        mode_body=np.zeros((n, low + 1), np.int32),
        floating=np.zeros((n, low), np.int64),
        centre=np.zeros((n, low, 3)),
        orientation=orientation,
        velocity=np.zeros((n, low, 3)),
        spin=np.zeros((n, low, 3)),
        mass=np.ones((n, low)),
        inertia=np.tile(np.eye(3), (n, low, 2, 1, 1)),
        damping=np.zeros((n, low, 2)),
        gravity=np.zeros((n, 3)),
        settings=np.zeros(n, SETTINGS),
        friction=np.zeros((n, capacity.all_bodies, capacity.all_bodies)),
        soft_speed=np.zeros(n),
        pair_kind=np.zeros((n, capacity.pairs), np.int32),
        pair_first=np.zeros((n, capacity.pairs), np.int32),
        pair_second=np.zeros((n, capacity.pairs), np.int32),
        pair_due=np.zeros((n, capacity.pairs)),
        contact_identity=np.zeros((n, capacity.contacts), np.int64),
        contact_points=np.full((n, capacity.contacts, 2, 3), -1, np.int32),
        contact_weights=np.zeros((n, capacity.contacts, 2, 3)),
        contact_arms=np.zeros((n, capacity.contacts, 2, 3)),
        contact_frame=np.zeros((n, capacity.contacts, 3, 3)),
        contact_mu=np.zeros((n, capacity.contacts)),
        contact_rest=np.zeros((n, capacity.contacts)),
        contact_give=np.zeros((n, capacity.contacts)),
        contact_body=np.zeros((n, capacity.contacts, 2), np.int32),
    )
