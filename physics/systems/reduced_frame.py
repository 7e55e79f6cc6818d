"""Writing a member's reduced model into a constraint frame (EQUATIONS.md, 1, "The Krylov interface")."""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from physics.bodies.body import Factor
from physics.exchange.constraint_frame import (
    MODE_DAMPING,
    MODE_FORCE,
    MODE_RATE,
    MODE_STIFFNESS,
    MODE_Z,
    N_MODES,
    ConstraintFrame,
)
from physics.reduction.rational_krylov import krylov_modes, rigid_motions
from physics.systems.members import BeamMember, Member, RigidMember, TetMember


@dataclass
class Tangent:
    """A member linearised at the start of a low step: what its basis and its substeps are made from."""

    member: Member
    factors: list[Factor]
    """At each shift, the servo's step first."""
    columns: NDArray[np.float64]
    """A_h^-1 J^T at every shift, (n_dof, k)."""
    rest: NDArray[np.float64]
    """Centred positions of the free nodes, body axes of this frame, (n, 3)."""


def linearise(member: Member, shifts: list[float], near: NDArray[np.intp], pool: Executor) -> Tangent:
    """L3 and L5 of a member: factors at each shift and the columns A_h^-1 J^T of its near points."""
    body = member.body
    if isinstance(member, RigidMember):
        body.linearise()
        return Tangent(member, [body.factor(shifts[0])], np.zeros((6, 0)), np.zeros((0, 3)))
    body.linearise()
    load = member.columns(near)
    load = load[:, np.abs(load).sum(axis=0) > 0.0]

    def at(shift: float) -> tuple[Factor, NDArray[np.float64]]:
        factor = body.factor(shift)
        return factor, factor.solve_many(load.copy()) if load.shape[1] else load

    solved = list(pool.map(at, shifts))
    rest = np.zeros((0, 3))
    if isinstance(member, TetMember):
        x = body.x[member.body.free]
        rest = x - member.mass_free @ x / member.mass_free.sum() if member.floating else x.copy()
    return Tangent(member, [f for f, _ in solved], np.hstack([c for _, c in solved]), rest)


def _rotate_nodes(values: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """R^T applied to nodal vectors (3 n, ...)."""
    shape = values.shape
    return np.einsum("ji,njk->nik", axes, values.reshape(shape[0] // 3, 3, -1)).reshape(shape)


def write_reduced(
    tangent: Tangent,
    frame: ConstraintFrame,
    f: int,
    low: int,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
    max_modes: int,
    near: int,
    h: float,
) -> None:
    """Fill slot f of the frame with member number `low`: base state, modes and compliance of its slots.

    slots: the frame's slots of this member; local: its points there. Modes are appended to those of the
    members before. `near`: slots below this number get their compliance precomputed.
    """
    member, body = tangent.member, tangent.member.body
    first = int(frame.head[f, N_MODES])
    axes = np.eye(3)
    frame.floating[f, low] = int(member.floating)
    turns = member.turns(local)
    frame.slot_turns[f, slots] = turns
    frame.slot_body[f, slots] = low
    if isinstance(member, RigidMember):
        _write_rigid(member, frame, f, low, slots, local, turns)
        modal = np.zeros((3 * len(slots), 0))
        n = 0
    else:
        v, force = body.v, body.undamped_force()
        if isinstance(member, TetMember):
            x = member.positions()[local]
            if member.floating:
                axes = member.rotation_since(tangent.rest)
                v, force, x = _write_floating(member, frame, f, low, axes, v, force, x)
            frame.slot_x[f, slots] = x
            alpha, beta = body.material.alpha, body.material.beta
        else:
            assert isinstance(member, BeamMember)
            frame.slot_x[f, slots] = np.where(turns[:, None] == 1, 0.0, member.positions()[local])
            alpha, beta = body.model.alpha, body.model.beta
        frame.slot_q[f, slots] = member.orientations(local)
        mv = body.M @ v
        residual = force - alpha * mv - beta * (body.K @ v)
        extra = [v] + [factor.solve(residual) for factor in tangent.factors[:2]]
        columns = np.column_stack([tangent.columns, *extra])
        if member.floating:
            rigid = rigid_motions(tangent.rest)
            mass_rigid = body.M @ rigid
            columns -= rigid @ np.linalg.solve(rigid.T @ mass_rigid, mass_rigid.T @ columns)
        mass_columns, stiff_columns = body.M @ columns, body.K @ columns
        modes = krylov_modes(columns.T @ mass_columns, columns.T @ stiff_columns, max_modes - first)
        n = len(modes.stiffness)
        span = slice(first, first + n)
        frame.modes[f, MODE_STIFFNESS, span] = modes.stiffness
        frame.modes[f, MODE_DAMPING, span] = alpha + beta * modes.stiffness
        frame.modes[f, MODE_FORCE, span] = modes.transform.T @ (columns.T @ force)
        frame.modes[f, MODE_Z, span] = 0.0
        frame.modes[f, MODE_RATE, span] = modes.transform.T @ (mass_columns.T @ v)
        modal = member.columns(local).T @ (columns @ modes.transform) if len(local) else np.zeros((0, n))
        frame.slot_modes[f, slots, :, first : first + n] = modal.reshape(len(slots), 3, n)
    frame.mode_body[f, low] = first
    frame.mode_body[f, low + 1 :] = first + n
    frame.head[f, N_MODES] = first + n
    _write_compliance(frame, f, low, slots, modal, first, n, near, h)


def _write_rigid(
    member: RigidMember,
    frame: ConstraintFrame,
    f: int,
    low: int,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
    turns: NDArray[np.int32],
) -> None:
    centre, velocity, spin, inertia = member.rigid_state()
    _write_motion(frame, f, low, member.body.mass, centre, velocity, spin, inertia, member.body.model.alpha)
    frame.orientation[f, low] = member.body.q[0]
    points = np.vstack([member.points, np.zeros((1, 3))])
    frame.slot_x[f, slots] = points[local]
    frame.slot_q[f, slots] = [1.0, 0.0, 0.0, 0.0]
    frame.slot_turns[f, slots] = turns


def _write_floating(
    member: TetMember,
    frame: ConstraintFrame,
    f: int,
    low: int,
    axes: NDArray[np.float64],
    v: NDArray[np.float64],
    force: NDArray[np.float64],
    x: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rigid part into the frame; velocity without it, force and slot positions in body axes."""
    centre, velocity, spin, inertia = member.rigid_state()
    local_inertia = axes.T @ inertia @ axes
    _write_motion(
        frame, f, low, member.body.mass, centre, velocity, spin, local_inertia, member.body.material.alpha
    )
    frame.orientation[f, low] = quaternion_of(axes)
    arms = member.body.x[member.body.free] - centre
    rigid = velocity + np.cross(spin, arms)
    own = _rotate_nodes(v - rigid.reshape(-1), axes)
    return own, _rotate_nodes(force, axes), (x - centre) @ axes


def _write_motion(
    frame: ConstraintFrame,
    f: int,
    low: int,
    mass: float,
    centre: NDArray[np.float64],
    velocity: NDArray[np.float64],
    spin: NDArray[np.float64],
    inertia: NDArray[np.float64],
    alpha: float,
) -> None:
    frame.mass[f, low] = mass
    frame.centre[f, low] = centre
    frame.velocity[f, low] = velocity
    frame.spin[f, low] = spin
    frame.inertia[f, low, 0] = inertia
    frame.inertia[f, low, 1] = np.linalg.inv(inertia)
    frame.alpha[f, low] = alpha


def _write_compliance(
    frame: ConstraintFrame,
    f: int,
    low: int,
    slots: NDArray[np.intp],
    modal: NDArray[np.float64],
    first: int,
    n: int,
    near: int,
    h: float,
) -> None:
    """W_soft^dt over the near slots of a member, in its body axes: modes and, where it floats, rigid motion."""
    kept = slots < near
    rows = (3 * slots[kept][:, None] + np.arange(3)).reshape(-1)
    modal = modal.reshape(len(slots), 3, n)[kept].reshape(-1, n)
    stiffness = frame.modes[f, MODE_STIFFNESS, first : first + n]
    damping = frame.modes[f, MODE_DAMPING, first : first + n]
    half = modal * (h / np.sqrt(1.0 + h * damping + h * h * stiffness))
    compliance = half @ half.T
    if frame.floating[f, low]:
        arms = frame.slot_x[f, slots[kept]]
        fields = rigid_motions(arms).reshape(-1, 3, 6)
        turning = frame.slot_turns[f, slots[kept]] == 1
        fields[turning] = 0.0
        fields[turning, :, 3:] = np.eye(3)
        fields = fields.reshape(-1, 6)
        inverse = np.zeros((6, 6))
        inverse[:3, :3] = np.eye(3) / frame.mass[f, low]
        inverse[3:, 3:] = frame.inertia[f, low, 1]
        compliance += fields @ inverse @ fields.T * (h * h / (1.0 + h * frame.alpha[f, low]))
    frame.compliance[f][np.ix_(rows, rows)] = compliance


def quaternion_of(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit quaternion (w, x, y, z) of a rotation matrix (3, 3), w >= 0."""
    m = matrix
    w2 = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
    x2 = 1.0 + m[0, 0] - m[1, 1] - m[2, 2]
    y2 = 1.0 - m[0, 0] + m[1, 1] - m[2, 2]
    z2 = 1.0 - m[0, 0] - m[1, 1] + m[2, 2]
    # the column of the largest component is the one that loses no digits
    candidates = np.array(
        [
            [w2, m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], x2, m[1, 0] + m[0, 1], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[1, 0] + m[0, 1], y2, m[2, 1] + m[1, 2]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[2, 1] + m[1, 2], z2],
        ]
    )
    q = candidates[int(np.argmax([w2, x2, y2, z2]))]
    q = q / np.linalg.norm(q)
    return q if q[0] >= 0.0 else -q
