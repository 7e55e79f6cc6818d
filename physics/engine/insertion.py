"""A needle in tissue, in a step of the engine: puncture, the shaft's points along its path, the tip that
cuts.

Duriez, Guebert, Marchal, Cotin & Grisoni 2009 put constraints along the path of a needle, which follow the
material and are solved with the compliance of both bodies; here they are rows of a 1 kHz step (EQUATIONS.md,
1, "A needle in tissue"). The path is a list of places in the material. A low loop has placed *inner points*
of the tissue along the line that the needle is on (palpo.physics.systems.multirate.needle_paths); the path
leaves that line as the needle does, by an offset of each of its points.

    outside   the tip is a contact like any other, until it is pushed by the puncture force
    at the tip  up to what cutting takes, where it is at the end of its channel; where it cuts the channel
                goes on, and the path has new points; at the border of another material up to what that bears
    on the shaft  held across the needle; along it friction, a force per length, over the covered length

Between the needle and the nodes of a mesh lies tissue that the mesh does not resolve: a point yields by it,
across and along, the more the shorter the length is that it stands for. What it has yielded by goes with its
force, so that a row of friction begins where that of the last step left it. A channel stays in the tissue
while the needle is in it: drawn back and pushed in again, the tip cuts from its end on.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import FIND, KEEP, append, detector
from palpo.physics.contract.stages import DONE, NOT_FINITE, PLACE, address_of, call_unit, make_problem
from palpo.physics.engine.pairs import QueriedBodies, look_batch
from palpo.physics.exchange.buffer import make_control, reader_slot
from palpo.physics.exchange.constraint_frame import Capacity, ConstraintFrame, make_frame
from palpo.physics.exchange.handle import handle_like, of_process
from palpo.physics.exchange.tool_state import make_inserted
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3, quat_rotate, tangent_basis

TISSUE = np.dtype(
    [("puncture", np.float64), ("spacing", np.float64), ("across", np.float64), ("along", np.float64),
     ("tip", np.float64), ("clear", np.float64), ("turn", np.float64)]
)  # fmt: skip
"""Force on the tip at which the surface gives way [N]; about how far points of the path are apart [m]; by
how much a line load of the shaft sinks in beside what the mesh does, across and along, a unit of ln(R/r)
[m2/N], and the tip in a body that is endless [m/N]; by how much the tip must be before its way in to be
out, where it touches nothing [m]; and by what angle the tip cuts aside of the needle's direction [rad]."""

NEEDLE, FLESH = 0, 1
"""Sides of the contacts, and places in `InsertedNeedle.asked`."""

SHORTEST = 0.1
"""Share of the spacing that a point stands for at least, in what it yields by."""

NEAR = 2.0
"""Spacings, beside what lies between the tip and the surface that it touches, within which the first planned
point must be for the tip to go in."""

BREAKS = 1.0 - 1e-9
"""Share of a border's strength at which it gives way: what the solver bounds by it may round below it."""

BACK = 0.5
"""Spacings by which a tip that draws back is still held across."""


@of_process("asked")
class InsertedNeedle(NamedTuple):
    """A needle of m points, tip first, and a path of up to c points."""

    frame: ConstraintFrame
    control: NDArray[np.int64]
    asked: QueriedBodies  # the needle and the tissue
    body: NDArray[np.int32]  # (2,) their numbers in the engine
    first: NDArray[np.int64]  # (2,) slot of the tissue's first inner point; which of the frame's paths it is
    needle: NDArray[np.int32]  # (m,) slots of the needle's points
    point: NDArray[np.float64]  # (2, 3) where the tip points, and where its bevel cuts to, axes of its frame
    tissue: NDArray[Any]  # (1,) of TISSUE
    inserted: NDArray[Any]  # (PATHS,) of palpo.physics.exchange.tool_state.INSERTED; `first` says which
    apart: NDArray[np.bool_]  # of the search among pairs
    enters: NDArray[np.bool_]  # (1,) whether the last step's force was that of a puncture
    offset: NDArray[np.float64]  # (c, 3) [m] from an inner point to that of the path
    at: NDArray[np.float64]  # (c, 3) [m] points of the path
    force: NDArray[np.float64]  # (c + 1, 3) on the needle there [N] in the last step; the last is the tip's
    yielded: NDArray[np.float64]  # (c + 1, 3) [m] by what they had yielded
    cut: NDArray[np.float64]  # (1,) [m] how far beyond the path's last point the channel is cut
    wall: NDArray[np.float64]  # (1,) [N] what the border bears that stands at the channel's end; 0 for none
    row: NDArray[np.int64]  # (c + 1,) contacts of this step, -1 for none
    vectors: NDArray[np.float64]  # (4, 3) scratch


def make_inserted_needle(
    frame: ConstraintFrame,
    control: NDArray[np.int64],
    asked: QueriedBodies,
    body: tuple[int, int],
    first: int,
    number: int,
    needle: NDArray[np.int32],
    point: NDArray[np.float64],
    tissue: NDArray[Any],
    inserted: NDArray[Any],
    apart: NDArray[np.bool_],
    at: NDArray[np.float64],
) -> InsertedNeedle:
    """A needle outside. The look batches of `asked` have room for all points of the needle and the path."""
    room = len(at)
    return InsertedNeedle(
        frame, control, asked, np.array(body, np.int32), np.array([first, number], np.int64), needle, point,
        tissue, inserted, apart, np.zeros(1, np.bool_), np.zeros((room, 3)), at,
        np.zeros((room + 1, 3)), np.zeros((room + 1, 3)), np.zeros(1), np.zeros(1),
        np.full(room + 1, -1, np.int64), np.zeros((4, 3)),
    )  # fmt: skip


@inlined
def _look(s, side):
    return handle_like(s.asked.batch, s.asked.look[side])


@kernel
def _place(s, side, count, h):
    """x of the first `count` points of a side; False where that side does not tell."""
    batch = _look(s, side)
    batch.count[0] = count
    for k in range(count):
        batch.slots[k, 0] = s.needle[k] if side == NEEDLE else s.first[0] + k
        batch.weights[k, 0] = 1.0
    asked = s.asked
    code = call_unit(
        asked.unit[side], PLACE, asked.state[side], asked.look[side], address_of(asked.problem), h
    )  # fmt: skip
    return code == DONE


@kernel
def _cuts_to(s, ahead, out):
    """out (3,) = the direction that the tip cuts in: `ahead`, turned aside by its bevel."""
    quat_rotate(_look(s, NEEDLE).q[0], s.point[1], out)
    along, size, turn = dot3(out, ahead), 0.0, s.tissue[0].turn
    for i in range(3):
        out[i] -= along * ahead[i]
        size += out[i] * out[i]
    for i in range(3):
        aside = math.sin(turn) * out[i] / size**0.5 if size > 0.0 else 0.0
        out[i] = math.cos(turn) * ahead[i] + aside


@kernel
def _place_path(s, inside, plan):
    """Points of the path, by the inner points; those of another plan are led to where the path was."""
    x = _look(s, FLESH).x
    for k in range(inside.count):
        for i in range(3):
            if inside.plan != plan:
                s.offset[k, i] = s.at[k, i] - x[k, i]
            s.at[k, i] = x[k, i] + s.offset[k, i]
    inside.plan = plan


@kernel
def _enter(s, inside):
    """The tip goes in, where the plan begins near it."""
    tip, first, apart = _look(s, NEEDLE).x[0], _look(s, FLESH).x[0], 0.0
    for i in range(3):
        apart += (tip[i] - first[i]) ** 2
    if not apart < (s.tissue[0].clear + NEAR * s.tissue[0].spacing) ** 2:
        return
    inside.count = 1
    s.cut[0] = s.wall[0] = 0.0
    s.force[:] = 0.0
    s.yielded[:] = 0.0
    for i in range(3):
        s.at[0, i] = tip[i]
        s.offset[0, i] = tip[i] - first[i]


@kernel
def _advance(s, ahead):
    """How far the tip is beyond the path's last point, in the direction `ahead` [m]."""
    tip, last, way = _look(s, NEEDLE).x[0], s.at[s.inserted[s.first[1]].count - 1], 0.0
    for i in range(3):
        way += (tip[i] - last[i]) * ahead[i]
    return way


@kernel
def _step_of(s, k):
    """Distance [m] from inner point k to the next one."""
    x, square = _look(s, FLESH).x, 0.0
    for i in range(3):
        square += (x[k + 1, i] - x[k, i]) ** 2
    return square**0.5


@kernel
def _grow(s, inside, looked, ends, ahead):
    """How far the channel is cut, and another point of the path for each inner point that it has come to.

    The tip that cuts is ahead of the channel's end by what the tissue has yielded. It goes no farther than
    the tissue, which ends at the last point if it `ends`, nor than the border of another material that bears.
    Into a firmer material its force goes on, into a softer one what has yielded: neither adds energy.
    """
    if s.wall[0] > 0.0:
        return
    x, tip, mine = _look(s, FLESH).x, _look(s, NEEDLE).x[0], s.force.shape[0] - 1
    along = dot3(s.yielded[mine], ahead)
    short = s.cut[0] - (_advance(s, ahead) - along)
    if short < 0.0:
        s.cut[0], short = s.cut[0] - short, 0.0
    while inside.count < looked:
        k = inside.count
        length = _step_of(s, k - 1)
        if s.cut[0] < length:
            return
        beyond, firmer = s.cut[0] - length, _tissue(s, k - 1).softness / _tissue(s, k).softness
        for i in range(3):
            if firmer > 1.0:
                s.yielded[mine, i] /= firmer
            s.at[k, i] = tip[i] - s.yielded[mine, i] + (short - beyond) * ahead[i]
            s.offset[k, i] = s.at[k, i] - x[k, i]
            s.force[k, i] = s.yielded[k, i] = 0.0
        inside.count = k + 1
        s.wall[0] = _tissue(s, k).wall
        s.cut[0] = 0.0 if s.wall[0] > 0.0 else beyond
        if s.wall[0] > 0.0:
            return
    if ends == 1:
        s.cut[0] = 0.0


@kernel
def _foot(s, p, out):
    """(segment, share, arc length from the tip [m]) of the needle's point nearest to p; -1 for one ahead of
    the tip. out (3,) = that point."""
    x, best, segment, share, arc, length = _look(s, NEEDLE).x, np.inf, -1, 0.0, 0.0, 0.0
    for j in range(s.needle.shape[0] - 1):
        along, square = 0.0, 0.0
        for i in range(3):
            side = x[j + 1, i] - x[j, i]
            along += (p[i] - x[j, i]) * side
            square += side * side
        t = along / square
        if j == 0 and t < 0.0:
            return -1, 0.0, 0.0
        t, apart, size = min(max(t, 0.0), 1.0), 0.0, square**0.5
        for i in range(3):
            apart += (p[i] - x[j, i] - t * (x[j + 1, i] - x[j, i])) ** 2
        if apart < best:
            best, segment, share, arc = apart, j, t, length + t * size
        length += size
    for i in range(3):
        out[i] = x[segment, i] + share * (x[segment + 1, i] - x[segment, i])
    return segment, share, arc


@kernel
def _add(s, contacts, k, segment, share, n):
    """Contact of row k at a share of the needle's segment, along n (3,); -1 without room."""
    c = append(contacts, k, s.body[NEEDLE], s.body[FLESH])
    s.row[k] = c
    if c < 0:
        return c
    frame = contacts.frame[c]
    for i in range(3):
        frame[0, i] = n[i]
        contacts.slots[c, 0, i] = s.needle[segment + 1] if i == 1 else s.needle[segment]
        contacts.slots[c, 1, i] = s.first[0]
        contacts.weights[c, 0, i] = contacts.weights[c, 1, i] = 0.0
        contacts.force[c, i] = s.force[k, i]
    contacts.weights[c, 0, 0], contacts.weights[c, 0, 1] = 1.0 - share, share
    tangent_basis(frame[0], frame[1], frame[2])
    contacts.gap[c] = dot3(frame[0], s.yielded[k])
    contacts.anchored[c] = True
    return c


@inlined
def _tissue(s, k):
    """The material at inner point k."""
    return s.frame.path_tissue[reader_slot(s.control), s.first[1], k]


@kernel
def _add_shaft(s, contacts, inside):
    """Rows of the path's points that the shaft has come to."""
    x, foot, back, tissue = _look(s, NEEDLE).x, s.vectors[1], s.vectors[2], s.tissue[0]
    inside.depth = inside.inside = 0.0
    for k in range(inside.count):
        length = s.cut[0]
        if k + 1 < inside.count:
            square = 0.0
            for i in range(3):
                square += (s.at[k + 1, i] - s.at[k, i]) ** 2
            length = square**0.5
        inside.depth += length
        segment, share, arc = _foot(s, s.at[k], foot)
        if segment < 0:
            for i in range(3):
                s.force[k, i] = s.yielded[k, i] = 0.0
            continue
        covered = min(arc, length)
        inside.inside += covered
        size = 0.0
        for i in range(3):
            back[i] = x[segment + 1, i] - x[segment, i]
            size += back[i] * back[i]
        for i in range(3):
            back[i] /= size**0.5
        c = _add(s, contacts, k, segment, share, back)
        if c < 0:
            continue
        flesh = _tissue(s, k)
        give = flesh.unresolved * flesh.softness / max(covered, SHORTEST * tissue.spacing)
        contacts.give[c], contacts.give_along[c] = tissue.across * give, tissue.along * give
        contacts.slots[c, 1, 0] += k
        contacts.weights[c, 1, 0] = 1.0
        contacts.limits[c, 0], contacts.limits[c, 1] = -flesh.friction * covered, flesh.friction * covered
        for i in range(3):
            contacts.offset[c, i] = foot[i] - s.at[k, i]


@kernel
def _add_tip(s, contacts, inside, looked, ends, ahead):
    """The row of the tip, where it is near the end of its channel."""
    tip, last, spacing = s.force.shape[0] - 1, inside.count - 1, s.tissue[0].spacing
    gap = s.cut[0] - _advance(s, ahead)
    if gap > BACK * spacing or (ends == 1 and inside.count == looked):  # or it is out on the other side
        for i in range(3):
            s.force[tip, i] = s.yielded[tip, i] = 0.0
        return
    back = s.vectors[2]
    for i in range(3):
        back[i] = -ahead[i]
    c = _add(s, contacts, tip, 0, 0.0, back)
    if c < 0:
        return
    share = min(s.cut[0] / _step_of(s, last), 1.0) if inside.count < looked else 0.0
    contacts.slots[c, 1, 0] += last
    contacts.slots[c, 1, 1] = contacts.slots[c, 1, 0] + (1 if share > 0.0 else 0)
    contacts.weights[c, 1, 0], contacts.weights[c, 1, 1] = 1.0 - share, share
    flesh, onward = _tissue(s, last), _tissue(s, last + (1 if share > 0.0 else 0))
    unresolved = (1.0 - share) * flesh.unresolved + share * onward.unresolved
    sinks = s.tissue[0].tip * flesh.softness * (1.0 - math.exp(-unresolved))
    contacts.give[c] = contacts.give_along[c] = sinks
    contacts.limits[c, 0], contacts.limits[c, 1] = 0.0, max(s.wall[0], flesh.cutting)
    contacts.gap[c] = gap
    for i in range(3):
        contacts.offset[c, i] = s.yielded[tip, i]


@kernel
def find_path(s, contacts, h):
    """The rows of a needle inside; False where a point is nowhere."""
    inside, path = s.inserted[s.first[1]], s.frame.paths[reader_slot(s.control), s.first[1]]
    s.row[:] = -1
    if inside.count == 0 and not s.enters[0]:
        inside.plan = path.plan
        return True
    ends = path.ends if path.planned <= inside.count + 2 else 0
    looked, ahead, cuts = min(inside.count + 2, path.planned), s.vectors[0], s.vectors[3]
    if looked < max(1, inside.count):
        s.enters[0] = False
        return True  # no frame has this path's points any more, or yet
    if not _place(s, NEEDLE, s.needle.shape[0], h) or not _place(s, FLESH, looked, h):
        return False
    quat_rotate(_look(s, NEEDLE).q[0], s.point[0], ahead)
    _cuts_to(s, ahead, cuts)
    if s.enters[0]:
        s.enters[0] = False
        _enter(s, inside)
        inside.plan = path.plan
    _place_path(s, inside, path.plan)
    if inside.count > 0:
        _grow(s, inside, looked, ends, cuts)
        out = 0.0
        for i in range(3):
            out += (s.at[0, i] - _look(s, NEEDLE).x[0, i]) * ahead[i]
        if out > s.tissue[0].clear:
            inside.count = 0
            inside.depth = inside.inside = 0.0
    _set_apart(s, inside.count > 0)
    if inside.count > 0:
        _add_shaft(s, contacts, inside)
        _add_tip(s, contacts, inside, looked, ends, cuts)
    return True


@inlined
def _set_apart(s, apart):
    one, two = s.body[NEEDLE], s.body[FLESH]
    s.apart[one, two] = s.apart[two, one] = apart


@kernel
def _press(s, contacts):
    """Whether the tip is pushed back by the puncture force; where it touches is told."""
    inside, ahead, push, most = s.inserted[s.first[1]], s.vectors[0], 0.0, 0.0
    for i in range(3):
        inside.point[i] = -1
    if not _place(s, NEEDLE, 2, 0.0):
        return False
    quat_rotate(_look(s, NEEDLE).q[0], s.point[0], ahead)
    for k in range(contacts.count[0].found):
        side = 0 if contacts.body[k, 0] == s.body[NEEDLE] else 1
        if contacts.body[k, side] != s.body[NEEDLE] or contacts.body[k, 1 - side] != s.body[FLESH]:
            continue
        share = 0.0
        for i in range(3):
            if contacts.slots[k, side, i] == s.needle[0]:
                share += contacts.weights[k, side, i]
        if share < 0.5:
            continue
        back = -dot3(contacts.force[k], ahead) * (1.0 - 2.0 * side)
        push += back
        if back >= most:
            most = back
            for i in range(3):
                used = contacts.weights[k, 1 - side, i] != 0.0
                inside.point[i] = contacts.slots[k, 1 - side, i] if used else -1
                inside.weight[i] = contacts.weights[k, 1 - side, i]
    return push >= s.tissue[0].puncture


@kernel
def keep_path(s, contacts):
    """What the rows have yielded by under the forces of the step; whether the tip breaks through."""
    for k in range(s.row.shape[0]):
        c = s.row[k]
        if c < 0:
            continue
        n, force = contacts.frame[c, 0], contacts.force[c]
        along = dot3(n, force)
        for i in range(3):
            across = force[i] - along * n[i]
            s.force[k, i] = force[i]
            s.yielded[k, i] = -contacts.give_along[c] * along * n[i] - contacts.give[c] * across
    c = s.row[s.row.shape[0] - 1]
    if c >= 0 and dot3(contacts.frame[c, 0], contacts.force[c]) >= BREAKS * s.wall[0]:
        s.wall[0] = 0.0
    if s.inserted[s.first[1]].count == 0:
        s.enters[0] = _press(s, contacts)


def _smallest() -> InsertedNeedle:
    capacity = Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1)
    nobody = np.zeros(2, np.int64)
    asked = QueriedBodies(
        nobody, nobody, nobody, nobody, np.zeros(2, np.int32), look_batch(1), make_problem(1)
    )  # fmt: skip
    return make_inserted_needle(
        make_frame(capacity), make_control(), asked, (0, 1), 0, 0, np.zeros(2, np.int32),
        np.zeros((2, 3)), np.zeros(1, TISSUE), make_inserted(), np.zeros((2, 2), np.bool_), np.zeros((1, 3)),
    )  # fmt: skip


@detector(_smallest())
def insertion_detector(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts."""
    if stage == FIND:
        return DONE if find_path(s, contacts, h) else NOT_FINITE
    if stage == KEEP:
        keep_path(s, contacts)
    return DONE
