"""Constraint rows of one tick and their Delassus operator W = J A^-1 J^T h^2, at any rate.

Rows come in blocks of three. First the attachments (bilateral), then the contacts (n, t1, t2). Each block
has two sides; a side is static, a tool (a chain of six-freedom frames, its J in full) or low-rate (slots
of a constraint frame). W is assembled from the tool's inverse and the slots' compliance, so it costs what
the active rows cost, not what the bodies cost.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.topology import LOW, TOOL
from palpo.physics.exchange.constraint_frame import MOTION, N_NEAR, REDUCED
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import quat_difference, quat_multiply, quat_rotate, tangent_basis
from palpo.physics.reduction.interface_model import slot_compliance

POINT, ROTATION, SLIDE = 0, 1, 2
"""Kinds of attachment block: three translations, three rotations, two translations across a line."""


PUSH_SPEED = 0.5
"""Speed [m/s] at which a penetration is pushed out at most."""


class Attachments(NamedTuple):
    """Bilateral blocks of a scene. Sides as in Contacts: up to three weighted global points."""

    kind: NDArray[np.int32]  # (n,)
    points: NDArray[np.int32]  # (n, 2, 3), -1 unused; a ROTATION names one rotation a side, -1 for the world
    weights: NDArray[np.float64]  # (n, 2, 3)
    reference: NDArray[np.float64]  # (n, 4) q_1 = reference q_2 is kept by a ROTATION
    direction: NDArray[np.float64]  # (n, 3) free direction of a SLIDE, in the axes of `turn`
    turn: NDArray[np.int32]  # (n,) rotation that carries the direction, -1 for the world


class PointState(NamedTuple):
    """Present state of the scene's global points and rotations."""

    x: NDArray[np.float64]  # (points, 3) [m]; for a rotation its vector since the slot's reference [rad]
    step: NDArray[np.float64]  # (points, 3) displacement in the tick's free motion
    q: NDArray[np.float64]  # (points, 4) orientation, rotations only
    x_tick: NDArray[np.int64]  # (points,) tick at which x was evaluated
    step_tick: NDArray[np.int64]  # (points,)


class ToolPoints(NamedTuple):
    """Which frame of the tool carries a global point, and where."""

    span: NDArray[np.int64]  # (2,) first and past-the-last global point of the tool
    frame: NDArray[np.int32]  # (points,) frame, -1 where the point is not the tool's
    lever: NDArray[np.float64]  # (points, 3) [m], frame axes


class Rows(NamedTuple):
    """Blocks of one tick, B = capacity; forces are world-free, in the block's own directions."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (2,) attachment blocks, contact blocks
    direction: NDArray[np.float64]  # (B, 3, 3) one unit vector a row
    tool_frame: NDArray[np.int32]  # (B, 2) up to two frames, -1 unused
    jacobian: NDArray[np.float64]  # (B, 2, 3, 6) rows of J on those frames
    gain: NDArray[np.float64]  # (B, 3, 6 n) h^2 J A_tool^-1
    slot: NDArray[np.int32]  # (B, 6) up to six slots, -1 unused
    share: NDArray[np.float64]  # (B, 6) signed weight of each slot
    local: NDArray[np.float64]  # (B, 2, 3, 3) directions in the body axes of each side
    near: NDArray[np.int64]  # (B, 2) 1 where the frame knows the compliance of all slots of a side
    yielding: NDArray[np.float64]  # (3, 3, 3 near) how the near slots yield to the sides of one block
    w: NDArray[np.float64]  # (3B, 3B) [m/N]
    b: NDArray[np.float64]  # (3B,) gap or offset after the free motion [m]
    r: NDArray[np.float64]  # (3B,) force [N]
    u: NDArray[np.float64]  # (3B,) gap and offset of the contacts with that force [m]
    mu: NDArray[np.float64]  # (B,)
    status: NDArray[np.int32]  # (B,)
    factor: NDArray[np.float64]  # (3 attachments, 3 attachments)
    scratch: NDArray[np.float64]  # (8, 4)


def make_rows(n_attachments: int, n_contacts: int, n_frames: int, near: int) -> Rows:
    """Room for that many blocks against a tool of n_frames frames and frames with so many near slots."""
    n = n_attachments + n_contacts
    return Rows(
        count=np.zeros(2, np.int64),
        direction=np.zeros((n, 3, 3)),
        tool_frame=np.full((n, 2), -1, np.int32),
        jacobian=np.zeros((n, 2, 3, 6)),
        gain=np.zeros((n, 3, 6 * n_frames)),
        slot=np.full((n, 6), -1, np.int32),
        share=np.zeros((n, 6)),
        local=np.zeros((n, 2, 3, 3)),
        near=np.zeros((n, 2), np.int64),
        yielding=np.zeros((3, 3, 3 * near)),
        w=np.zeros((3 * n, 3 * n)),
        b=np.zeros(3 * n),
        r=np.zeros(3 * n),
        u=np.zeros(3 * n),
        mu=np.zeros(n),
        status=np.zeros(n, np.int32),
        factor=np.zeros((3 * n_attachments, 3 * n_attachments)),
        scratch=np.zeros((8, 4)),
    )


def make_point_state(n_points: int) -> PointState:
    """Points at the origin, to be filled by whoever moves them."""
    q = np.zeros((n_points, 4))
    q[:, 0] = 1.0
    return PointState(
        np.zeros((n_points, 3)), np.zeros((n_points, 3)), q,
        np.full(n_points, -1, np.int64), np.full(n_points, -1, np.int64),
    )  # fmt: skip


@inlined
def _clear_block(rows, k):
    for s in range(2):
        rows.tool_frame[k, s] = -1
    for e in range(6):
        rows.slot[k, e] = -1


@inlined
def _tool_side(rows, k, frame, sign, arm, rotation):
    """Add one weighted point (or rotation) of the tool to block k; sign includes the weight."""
    side = 0
    if rows.tool_frame[k, 0] >= 0 and rows.tool_frame[k, 0] != frame:
        side = 1
    fresh = rows.tool_frame[k, side] != frame
    rows.tool_frame[k, side] = frame
    for d in range(3):
        row = rows.direction[k, d]
        j = rows.jacobian[k, side, d]
        if fresh:
            for i in range(6):
                j[i] = 0.0
        if rotation:
            for i in range(3):
                j[3 + i] += sign * row[i]
        else:
            for i in range(3):
                j[i] += sign * row[i]
            j[3] += sign * (arm[1] * row[2] - arm[2] * row[1])
            j[4] += sign * (arm[2] * row[0] - arm[0] * row[2])
            j[5] += sign * (arm[0] * row[1] - arm[1] * row[0])


@inlined
def _side(
    rows, k, side, points, weights, contact_arm, rotation, topology, tool_points, tool_x,
    state, frame, f, model,
):  # fmt: skip
    """Both what side `side` of block k moves, and what its free motion adds to b."""
    sign = 1.0 if side == 0 else -1.0
    arm = rows.scratch[0]
    for i in range(3):
        p = points[i]
        if p < 0:
            continue
        role = topology.body_role[topology.point_body[p]]
        if role == TOOL:
            for c in range(3):
                arm[c] = state.x[p, c] - tool_x[tool_points.frame[p], c] + contact_arm[c]
            _tool_side(rows, k, tool_points.frame[p], sign * weights[i], arm, rotation)
        elif role == LOW:
            rows.slot[k, 3 * side + i] = frame.slot_of[f, p]
            rows.share[k, 3 * side + i] = sign * weights[i]
            for d in range(3):
                row = rows.direction[k, d]
                rows.b[3 * k + d] += (
                    sign
                    * weights[i]
                    * (row[0] * state.step[p, 0] + row[1] * state.step[p, 1] + row[2] * state.step[p, 2])
                )
    p = points[0]
    if p >= 0 and topology.body_role[topology.point_body[p]] == LOW:
        body = frame.slot_body[f, frame.slot_of[f, p]]
        turned = frame.head[f, MOTION] == REDUCED and frame.floating[f, body] == 1
        for d in range(3):
            row = rows.direction[k, d]
            for c in range(3):
                if turned:
                    rows.local[k, side, d, c] = (
                        row[0] * model.axes[body, 0, c]
                        + row[1] * model.axes[body, 1, c]
                        + row[2] * model.axes[body, 2, c]
                    )
                else:
                    rows.local[k, side, d, c] = row[c]


@kernel
def attachment_rows(attachments, topology, tool_points, tool_x, state, frame, f, model, rows):
    """Blocks of the attachments; b is the offset that remains after the free motion."""
    none = rows.scratch[7]
    for i in range(3):
        none[i] = 0.0
    count = attachments.kind.shape[0]
    rows.count[0] = count
    rows.count[1] = 0
    for k in range(count):
        kind = attachments.kind[k]
        _clear_block(rows, k)
        direction = rows.direction[k]
        for d in range(3):
            rows.b[3 * k + d] = 0.0
            for c in range(3):
                direction[d, c] = 1.0 if d == c else 0.0
        offset = rows.scratch[1]
        if kind == ROTATION:
            qa, qb, want = rows.scratch[2], rows.scratch[3], rows.scratch[4]
            for side in range(2):
                q = qa if side == 0 else qb
                p = attachments.points[k, side, 0]
                for i in range(4):
                    q[i] = state.q[p, i] if p >= 0 else (1.0 if i == 0 else 0.0)
            quat_multiply(attachments.reference[k], qb, want)
            quat_difference(qa, want, offset)
        else:
            for c in range(3):
                offset[c] = 0.0
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                for i in range(3):
                    p = attachments.points[k, side, i]
                    if p >= 0:
                        for c in range(3):
                            offset[c] += sign * attachments.weights[k, side, i] * state.x[p, c]
            if kind == SLIDE:
                if attachments.turn[k] >= 0:
                    quat_rotate(state.q[attachments.turn[k]], attachments.direction[k], direction[0])
                else:
                    for c in range(3):
                        direction[0, c] = attachments.direction[k, c]
                tangent_basis(direction[0], direction[1], direction[2])
        for side in range(2):
            _side(
                rows, k, side, attachments.points[k, side], attachments.weights[k, side], none,
                kind == ROTATION, topology, tool_points, tool_x, state, frame, f, model,
            )  # fmt: skip
        for d in range(3):
            rows.b[3 * k + d] += (
                direction[d, 0] * offset[0] + direction[d, 1] * offset[1] + direction[d, 2] * offset[2]
            )


@kernel
def contact_row(contacts, c, topology, tool_points, tool_x, state, frame, f, model, h, rows):
    """Append contact c as a block; b_n is its gap, b_t the tangential offset of the tick's free motion.

    A penetration, however deep (after a late frame, say), is closed no faster than PUSH_SPEED.
    """
    k = rows.count[0] + rows.count[1]
    rows.count[1] += 1
    _clear_block(rows, k)
    rows.b[3 * k] = max(contacts.gap[c], -PUSH_SPEED * h)
    rows.b[3 * k + 1] = 0.0
    rows.b[3 * k + 2] = 0.0
    rows.mu[k] = contacts.mu[c]
    for d in range(3):
        for i in range(3):
            rows.direction[k, d, i] = contacts.frame[c, d, i]
    for side in range(2):
        _side(
            rows, k, side, contacts.points[c, side], contacts.weights[c, side], contacts.arms[c, side],
            False, topology, tool_points, tool_x, state, frame, f, model,
        )  # fmt: skip
    return k


@kernel
def add_tool_motion(rows, twist, h):
    """b += h J twist with the tool's free velocities twist (n, 6)."""
    for k in range(rows.count[0] + rows.count[1]):
        for side in range(2):
            frame = rows.tool_frame[k, side]
            if frame < 0:
                continue
            for d in range(3):
                s = 0.0
                for i in range(6):
                    s += rows.jacobian[k, side, d, i] * twist[frame, i]
                rows.b[3 * k + d] += h * s


@kernel
def assemble_delassus(rows, attachments, inverse, frame, f, model, h):
    """Fill rows.w. `inverse` (6 n, 6 n) is A_tool^-1 at h; the slots' compliance comes from the frame."""
    n = rows.count[0] + rows.count[1]
    width = inverse.shape[0]
    for k in range(n):
        if rows.tool_frame[k, 0] < 0:
            continue
        for d in range(3):
            out = rows.gain[k, d]
            for c in range(width):
                out[c] = 0.0
            for side in range(2):
                base = 6 * rows.tool_frame[k, side]
                if base < 0:
                    continue
                for i in range(6):
                    s = h * h * rows.jacobian[k, side, d, i]
                    line = inverse[base + i]
                    for c in range(width):
                        out[c] += s * line[c]
    width = _mark_near(rows, frame.head[f, N_NEAR])
    for m in range(n):
        for side in range(2):
            if rows.near[m, side] == 1:
                _yield(rows, m, side, frame.compliance[f], width)
        for k in range(m + 1):
            _delassus_block(rows, k, m, frame, f, model, h)
    for k in range(rows.count[0]):
        if attachments.kind[k] == SLIDE:
            _free_row(rows, 3 * k, 3 * n)


@kernel
def _mark_near(rows, near):
    """Fill rows.near; returns how many columns of the frame's compliance the near slots in use span."""
    width = 0
    for k in range(rows.count[0] + rows.count[1]):
        for side in range(2):
            rows.near[k, side] = 1 if rows.slot[k, 3 * side] >= 0 else 0
            for a in range(3 * side, 3 * side + 3):
                slot = rows.slot[k, a]
                if slot >= near:
                    rows.near[k, side] = 0
                elif slot >= 0:
                    width = max(width, 3 * slot + 3)
    return width


@kernel
def _add_scaled(s, x, out):
    for q in range(out.size):
        out[q] += s * x[q]


@kernel
def _yield(rows, m, side, known, width):
    """yielding[side] (3, width) = displacement of the near slots under unit forces along one side's rows.

    One pass for a block, so that each of its products with the others reads a third of the compliance.
    """
    push, out = rows.yielding[2], rows.yielding[side]
    for c in range(3):
        push[c, :width] = 0.0
        out[c, :width] = 0.0
    for b in range(3 * side, 3 * side + 3):
        slot = rows.slot[m, b]
        if slot >= 0 and rows.share[m, b] != 0.0:
            for c in range(3):
                _add_scaled(rows.share[m, b], known[3 * slot + c, :width], push[c, :width])
    for j in range(3):
        for c in range(3):
            _add_scaled(rows.local[m, side, j, c], push[c, :width], out[j, :width])


@inlined
def _delassus_block(rows, k, m, frame, f, model, h):
    """Block (k, m) of W and its mirror, after `_yield` of m."""
    block, part = rows.scratch[0:3], rows.scratch[3:6]
    for i in range(3):
        for j in range(3):
            block[i, j] = 0.0
    if rows.tool_frame[k, 0] >= 0 and rows.tool_frame[m, 0] >= 0:
        for side in range(2):
            frame_m = rows.tool_frame[m, side]
            if frame_m < 0:
                continue
            for i in range(3):
                line = rows.gain[k, i]
                for j in range(3):
                    s = 0.0
                    for c in range(6):
                        s += line[6 * frame_m + c] * rows.jacobian[m, side, j, c]
                    block[i, j] += s
    for side_k in range(2):
        if rows.slot[k, 3 * side_k] < 0:
            continue
        for side_m in range(2):
            if rows.slot[m, 3 * side_m] < 0:
                continue
            if rows.near[k, side_k] == 1 and rows.near[m, side_m] == 1:
                _near_block(rows, k, side_k, rows.yielding[side_m], block)
            else:
                _slot_block(rows, k, side_k, m, side_m, frame, f, model, h, part, block)
    for i in range(3):
        for j in range(3):
            rows.w[3 * k + i, 3 * m + j] = block[i, j]
            rows.w[3 * m + j, 3 * k + i] = block[i, j]


@inlined
def _near_block(rows, k, side, yielding, block):
    """block += D_k (sum of shares times what the slots of that side of k yield)."""
    for j in range(3):
        y, c0, c1, c2 = yielding[j], 0.0, 0.0, 0.0
        for a in range(3 * side, 3 * side + 3):
            slot = rows.slot[k, a]
            if slot >= 0:
                share = rows.share[k, a]
                c0 += share * y[3 * slot]
                c1 += share * y[3 * slot + 1]
                c2 += share * y[3 * slot + 2]
        for i in range(3):
            d = rows.local[k, side, i]
            block[i, j] += d[0] * c0 + d[1] * c1 + d[2] * c2


@kernel
def _slot_block(rows, k, side_k, m, side_m, frame, f, model, h, part, block):
    """block += D_k (sum of shares times slot compliances) D_m^T for one side of each block."""
    if frame.slot_body[f, rows.slot[k, 3 * side_k]] != frame.slot_body[f, rows.slot[m, 3 * side_m]]:
        return
    left, right = rows.local[k, side_k], rows.local[m, side_m]
    for a in range(3):
        slot_a = rows.slot[k, 3 * side_k + a]
        if slot_a < 0:
            continue
        for b in range(3):
            slot_b = rows.slot[m, 3 * side_m + b]
            if slot_b < 0:
                continue
            share = rows.share[k, 3 * side_k + a] * rows.share[m, 3 * side_m + b]
            if share == 0.0:
                continue
            slot_compliance(frame, f, model, slot_a, slot_b, h, part)
            for i in range(3):
                for c in range(3):
                    s = share * (left[i, 0] * part[0, c] + left[i, 1] * part[1, c] + left[i, 2] * part[2, c])
                    for j in range(3):
                        block[i, j] += s * right[j, c]


@inlined
def _free_row(rows, i, n):
    """Take row i out of the bilateral problem: its force is zero."""
    for j in range(n):
        rows.w[i, j] = 0.0
        rows.w[j, i] = 0.0
    rows.w[i, i] = rows.w[i + 1, i + 1] + rows.w[i + 2, i + 2]
    rows.b[i] = 0.0


@inlined
def block_force(rows, k, out):
    """out = force of block k on body 1 in world axes [N] (or moment [N m])."""
    for c in range(3):
        out[c] = (
            rows.direction[k, 0, c] * rows.r[3 * k]
            + rows.direction[k, 1, c] * rows.r[3 * k + 1]
            + rows.direction[k, 2, c] * rows.r[3 * k + 2]
        )


@kernel
def add_tool_forces(rows, out):
    """out (n, 6) += J^T r on the tool's frames."""
    for k in range(rows.count[0] + rows.count[1]):
        for side in range(2):
            frame = rows.tool_frame[k, side]
            if frame < 0:
                continue
            for i in range(6):
                for d in range(3):
                    out[frame, i] += rows.jacobian[k, side, d, i] * rows.r[3 * k + d]
