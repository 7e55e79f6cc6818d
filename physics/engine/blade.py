"""A blade in tissue, in a step of the engine: its edge is held up by what it cuts, its sides by the lips.

A blade is a flat sheet of points, those of its edge first, then two for each place of its sides. A low loop
has placed *inner points* of the tissue where they were as a frame was made
(palpo.physics.systems.multirate.blade_paths), and parts the mesh where the edge has passed.

    outside  the tool touches the tissue as any other, until it is pushed by the puncture force
    edge     is held by the material across the blade and free along it; where it stands at the front of its
             cut, the material bears up to its toughness times the length that the point stands for, and gives
             way there
    sides    each lip of the cut bears on its side, without friction: where both bear at once, as they do
             beside the edge, nothing would say how hard

A front that the edge has cut stays where it is in the material: drawn back, the blade is free, and pushed in
again it cuts from there on. Between edge and nodes lies tissue that the mesh does not resolve: a point of the
edge yields by it, which goes with its force. The row of a front is that of a needle's tip
(palpo.physics.contact.shaft_law; Duriez, Guebert, Marchal, Cotin & Grisoni 2009), with a force that is the
fracture's: toughness times length (A. G. Atkins, The Science and Engineering of Cutting, 2009, section 3.3).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import FIND, KEEP, append, detector
from palpo.physics.contract.stages import DONE, NOT_FINITE, PLACE, address_of, call_unit, make_problem
from palpo.physics.engine.pairs import PUSH_SPEED, QueriedBodies, look_batch
from palpo.physics.exchange.buffer import make_control, reader_slot
from palpo.physics.exchange.constraint_frame import Capacity, ConstraintFrame, make_frame
from palpo.physics.exchange.handle import handle_like, of_process
from palpo.physics.exchange.tool_state import make_incised
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, quat_rotate

STEEL, FLESH = 0, 1
"""Sides of the contacts, and places in `InsertedBlade.asked`."""

REACH = 1e-3
"""Gap [m] up to which a lip is a contact of a side."""

ACROSS, TOWARDS, ALONG = 0, 1, 2
"""Rows of `InsertedBlade.axes`: across the blade, where its edge cuts to, and along the edge."""


@of_process("asked")
class InsertedBlade(NamedTuple):
    """A blade of m points, the first e of them on its edge, the others by turns for the lip that ACROSS
    points to and for the one behind."""

    frame: ConstraintFrame
    control: NDArray[np.int64]
    asked: QueriedBodies  # the tool and the tissue
    body: NDArray[np.int32]  # (2,) their numbers in the engine
    first: NDArray[np.int64]  # (3,) slot of the tissue's first inner point; number of the blade; e
    tool: NDArray[np.int32]  # (3,) slots of the tool's points that its own are weighted of
    weights: NDArray[np.float64]  # (m, 3)
    direction: NDArray[np.float64]  # (2, 3) ACROSS and TOWARDS, axes of the tool's frame
    puncture: NDArray[np.float64]  # (1,) [N] push at which the surface gives way
    incised: NDArray[Any]  # (BLADES,) of palpo.physics.exchange.tool_state.INCISED
    apart: NDArray[np.bool_]  # of the search among pairs
    enters: NDArray[np.bool_]  # (1,) whether the last step's push was that of a puncture
    plan: NDArray[np.int64]  # (1,) of the frame that the inner points are of
    known: NDArray[np.bool_]  # (e,) whether a point was inside in the last step
    front: NDArray[np.float64]  # (e, 3) [m] where the material is cut to
    offset: NDArray[np.float64]  # (e, 3) [m] from the inner point to that
    force: NDArray[np.float64]  # (e, 3) on the tool there [N] in the last step
    yielded: NDArray[np.float64]  # (e, 3) [m] by what they had yielded
    row: NDArray[np.int64]  # (e,) contacts of this step, -1 for none
    placed: NDArray[np.bool_]  # (1,) whether the points are placed in this step
    place: NDArray[np.int64]  # (m,) scratch: of each point that is inside, in the batch that places them
    axes: NDArray[np.float64]  # (3, 3)
    at: NDArray[np.float64]  # (3,) scratch


def make_inserted_blade(
    frame: ConstraintFrame,
    control: NDArray[np.int64],
    asked: QueriedBodies,
    body: tuple[int, int],
    first: tuple[int, int, int],
    tool: NDArray[np.int32],
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    puncture: float,
    incised: NDArray[Any],
    apart: NDArray[np.bool_],
) -> InsertedBlade:
    """A blade outside. The look batches of `asked` have room for all of its points."""
    m, e = len(weights), first[2]
    return InsertedBlade(
        frame, control, asked, np.array(body, np.int32), np.array(first, np.int64), tool, weights, direction,
        np.array([puncture]), incised, apart, np.zeros(1, np.bool_), np.full(1, -1, np.int64),
        np.zeros(e, np.bool_), np.zeros((e, 3)), np.zeros((e, 3)), np.zeros((e, 3)), np.zeros((e, 3)),
        np.full(e, -1, np.int64), np.zeros(1, np.bool_), np.zeros(m, np.int64), np.zeros((3, 3)), np.zeros(3),
    )  # fmt: skip


@inlined
def _look(s, side):
    return handle_like(s.asked.batch, s.asked.look[side])


@inlined
def _told(s, k):
    """What the frame says of point k."""
    return s.frame.blades[reader_slot(s.control), s.first[1], k]


@inlined
def _inner(s, k):
    """Slot of the inner point of point k, of two by turns."""
    plan = s.frame.blade_plan[reader_slot(s.control), s.first[1]]
    return s.first[0] + k + plan % 2 * s.weights.shape[0]


@kernel
def _ask(s, side, h):
    asked = s.asked
    return (
        call_unit(asked.unit[side], PLACE, asked.state[side], asked.look[side], address_of(asked.problem), h)
        == DONE
    )


@kernel
def _place_tool(s, h):
    """x of the tool's points, and the blade's axes; False where the tool does not tell."""
    batch = _look(s, STEEL)
    batch.count[0] = 3
    for k in range(3):
        batch.slots[k, 0], batch.weights[k, 0] = s.tool[k], 1.0
    if not _ask(s, STEEL, h):
        return False
    quat_rotate(batch.q[0], s.direction[0], s.axes[ACROSS])
    quat_rotate(batch.q[0], s.direction[1], s.axes[TOWARDS])
    cross3(s.axes[ACROSS], s.axes[TOWARDS], s.axes[ALONG])
    return True


@kernel
def _place_flesh(s, h):
    """x of the inner points of what is inside; False where the tissue does not tell."""
    batch, n = _look(s, FLESH), 0
    for k in range(s.weights.shape[0]):
        if _told(s, k).inside:
            batch.slots[n, 0], batch.weights[n, 0] = _inner(s, k), 1.0
            s.place[k] = n
            n += 1
    batch.count[0] = n
    return n == 0 or _ask(s, FLESH, h)


@kernel
def _at(s, k):
    """`at` = where point k of the blade is."""
    x = _look(s, STEEL).x
    for i in range(3):
        s.at[i] = 0.0
        for j in range(3):
            s.at[i] += s.weights[k, j] * x[j, i]


@kernel
def _front(s, k, moved):
    """The front of point k, which is at `at`: what was known of it goes on, in inner points that may have
    `moved`; else the edge stands at it."""
    x = _look(s, FLESH).x[s.place[k]]
    for i in range(3):
        if not s.known[k]:
            s.offset[k, i] = s.at[i] - x[i]
            s.force[k, i] = s.yielded[k, i] = 0.0
        elif moved:
            s.offset[k, i] = s.front[k, i] - x[i]
        s.front[k, i] = x[i] + s.offset[k, i]


@kernel
def _shift(s, k, axis, way):
    """The front of point k goes on by a way along an axis."""
    for i in range(3):
        s.front[k, i] += way * s.axes[axis, i]
        s.offset[k, i] += way * s.axes[axis, i]


@kernel
def _ahead(s, k, axis):
    """How far [m] the front of point k is ahead of `at` along an axis."""
    way = 0.0
    for i in range(3):
        way += (s.front[k, i] - s.at[i]) * s.axes[axis, i]
    return way


@kernel
def _touch(s, contacts, k):
    """Slots and weights of a new contact at point k, -1 without room."""
    c = append(contacts, k, s.body[STEEL], s.body[FLESH])
    if c >= 0:
        for i in range(3):
            contacts.slots[c, 0, i], contacts.weights[c, 0, i] = s.tool[i], s.weights[k, i]
            contacts.slots[c, 1, i], contacts.weights[c, 1, i] = _inner(s, k), 1.0 if i == 0 else 0.0
    return c


@kernel
def _add_side(s, contacts, k, h):
    """The contact of a lip with point k of a side, which is at `at`, if they are near."""
    lip, sense, gap = _look(s, FLESH).x[s.place[k]], 1.0 - 2.0 * ((k - s.first[2]) % 2), 0.0
    for i in range(3):
        gap += sense * (lip[i] - s.at[i]) * s.axes[ACROSS, i]
    if gap > REACH:
        return
    c = _touch(s, contacts, k)
    if c < 0:
        return
    for i in range(3):
        contacts.frame[c, 0, i] = -sense * s.axes[ACROSS, i]
        contacts.frame[c, 1, i] = s.axes[TOWARDS, i]
        contacts.frame[c, 2, i] = -sense * s.axes[ALONG, i]
    contacts.gap[c] = max(gap, -PUSH_SPEED * h)


@kernel
def _add_edge(s, contacts, k):
    """Row of point k of the edge, which is at `at`, and has met what it cuts."""
    incised, told, towards = s.incised[s.first[1]], _told(s, k), s.axes[TOWARDS]
    _shift(s, k, ALONG, -_ahead(s, k, ALONG))
    gap = _ahead(s, k, TOWARDS)
    short = gap + dot3(s.yielded[k], towards)
    if short < 0.0:  # the edge, less what the tissue yields, is beyond the front: it has cut
        incised.work -= told.limit * short
        _shift(s, k, TOWARDS, -short)
        gap -= short
    c = _touch(s, contacts, k)
    s.row[k] = c
    if c < 0:
        return
    across = -_ahead(s, k, ACROSS)
    for i in range(3):
        contacts.frame[c, 0, i] = -towards[i]
        contacts.frame[c, 1, i] = s.axes[ACROSS, i]
        contacts.frame[c, 2, i] = s.axes[ALONG, i]
        contacts.offset[c, i] = across * s.axes[ACROSS, i]
        contacts.force[c, i] = s.force[k, i]
    contacts.gap[c], contacts.anchored[c], contacts.sheet[c] = gap, True, True
    contacts.limits[c, 0], contacts.limits[c, 1] = 0.0, told.limit
    contacts.give[c] = contacts.give_along[c] = told.give


@inlined
def _set_apart(s, apart):
    one, two = s.body[STEEL], s.body[FLESH]
    s.apart[one, two] = s.apart[two, one] = apart


@kernel
def find_sides(s, contacts, h):
    """Place a blade inside, and find the contacts of its sides; False where a point is nowhere."""
    incised, slot = s.incised[s.first[1]], reader_slot(s.control)
    s.row[:] = -1
    s.placed[0] = incised.inside == 1 or s.enters[0]
    if not s.placed[0]:
        return True
    if not _place_tool(s, h) or not _place_flesh(s, h):
        return False
    if s.enters[0]:
        s.enters[0] = False
        incised.inside = 1
        s.plan[0] = s.frame.blade_plan[slot, s.first[1]]
        s.known[:] = False
    for k in range(s.first[2], s.weights.shape[0]):
        if _told(s, k).inside:
            _at(s, k)
            _add_side(s, contacts, k, h)
    return True


@kernel
def find_edge(s, contacts):
    """The rows of the edge of a blade that is placed."""
    if not s.placed[0]:
        return
    incised, plan, some = s.incised[s.first[1]], s.frame.blade_plan[reader_slot(s.control), s.first[1]], False
    moved = s.plan[0] != plan
    for k in range(s.weights.shape[0]):
        inside = _told(s, k).inside
        some = some or _told(s, k).within
        if k >= s.first[2]:
            continue
        if inside:
            _at(s, k)
            _front(s, k, moved)
            _add_edge(s, contacts, k)
        s.known[k] = inside
    if moved and not some:
        incised.inside = 0
    s.plan[0] = plan
    _set_apart(s, incised.inside == 1)


@kernel
def _pushed(s, contacts):
    """Force [N] by which the tissue pushes the tool back from where its edge cuts to."""
    push = 0.0
    for k in range(contacts.count[0].found):
        side = 0 if contacts.body[k, 0] == s.body[STEEL] else 1
        if contacts.body[k, side] == s.body[STEEL] and contacts.body[k, 1 - side] == s.body[FLESH]:
            push -= dot3(contacts.force[k], s.axes[TOWARDS]) * (1.0 - 2.0 * side)
    return push


@kernel
def keep_blade(s, contacts, h):
    """What the rows have yielded by under the forces of the step; whether the edge breaks through."""
    for k in range(s.row.shape[0]):
        c = s.row[k]
        if c < 0:
            continue
        for i in range(3):
            s.force[k, i] = contacts.force[c, i]
            s.yielded[k, i] = -contacts.give[c] * contacts.force[c, i]
    if s.incised[s.first[1]].inside == 0:
        if not _place_tool(s, h):
            return False
        s.enters[0] = _pushed(s, contacts) >= s.puncture[0]
    return True


def _smallest() -> InsertedBlade:
    capacity = Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1)
    nobody = np.zeros(2, np.int64)
    asked = QueriedBodies(
        nobody, nobody, nobody, nobody, np.zeros(2, np.int32), look_batch(1), make_problem(1)
    )  # fmt: skip
    return make_inserted_blade(
        make_frame(capacity), make_control(), asked, (0, 1), (0, 0, 1), np.zeros(3, np.int32),
        np.zeros((1, 3)), np.zeros((2, 3)), 0.0, make_incised(), np.zeros((2, 2), np.bool_),
    )  # fmt: skip


@detector(_smallest())
def sides_detector(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts: of a blade's sides, and to place all of it."""
    if stage == FIND and not find_sides(s, contacts, h):
        return NOT_FINITE
    return DONE


@detector(_smallest())
def edge_detector(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts: of a blade's edge, after its sides."""
    if stage == FIND:
        find_edge(s, contacts)
    if stage == KEEP and not keep_blade(s, contacts, h):
        return NOT_FINITE
    return DONE
