"""Writing a member's reduced model into a constraint frame (EQUATIONS.md, 1, "The Krylov interface")."""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from physics.bodies.body import Factor
from physics.exchange.constraint_frame import (
    MODE_FORCE,
    MODE_INVERSE,
    MODE_RATE,
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
    """Centred positions of the free nodes of a floating body, (n, 3)."""


def linearise(member: Member, shifts: list[float], near: NDArray[np.intp], pool: Executor) -> Tangent:
    """L3 and L5 of a member: factors at each shift and the columns A_h^-1 J^T of its near points."""
    body = member.body
    body.linearise()
    if isinstance(member, RigidMember):
        return Tangent(member, [body.factor(shifts[0])], np.zeros((6, 0)), np.zeros((0, 3)))
    load = member.columns(near)
    load = np.ascontiguousarray(load[:, load.any(axis=0)])

    def at(shift: float) -> tuple[Factor, NDArray[np.float64]]:
        factor = body.factor(shift)
        return factor, factor.solve_many(load.copy()) if load.shape[1] else load

    solved = list(pool.map(at, shifts))
    rest = np.zeros((0, 3))
    if isinstance(member, TetMember) and member.floating:
        x = body.x[member.body.free]
        rest = x - member.mass_free @ x / member.mass_free.sum()
    return Tangent(member, [f for f, _ in solved], np.hstack([c for _, c in solved]), rest)


def _turn_nodes(values: NDArray[np.float64], axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """R applied to nodal vectors (3 n, ...)."""
    shape = values.shape
    return np.einsum("ij,njk->nik", axes, values.reshape(shape[0] // 3, 3, -1)).reshape(shape)


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
    pool: Executor,
) -> None:
    """Fill slot f of the frame with member number `low`: base state, modes and compliance of its slots.

    The basis comes from `tangent`, turned with the body since then; force, stiffness and damping are those
    of the present state. slots: the frame's slots of this member; local: its points there. Modes are
    appended to those of the members before. `near`: slots below this number get their compliance
    precomputed; h is the servo's step.
    """
    member = tangent.member
    first = int(frame.head[f, N_MODES])
    frame.floating[f, low] = int(member.floating)
    turns = member.turns(local)
    frame.slot_turns[f, slots] = turns
    frame.slot_body[f, slots] = low
    if isinstance(member, RigidMember):
        _write_rigid(member, frame, f, low, slots, local)
        modal = np.zeros((3 * len(slots), 0))
    else:
        modal = _write_modes(tangent, frame, f, low, slots, local, max_modes - first, h, pool)
    n = modal.shape[1]
    frame.mode_body[f, low] = first
    frame.mode_body[f, low + 1 :] = first + n
    frame.head[f, N_MODES] = first + n
    _write_compliance(frame, f, low, slots, modal, first, near, h)


def _write_modes(
    tangent: Tangent,
    frame: ConstraintFrame,
    f: int,
    low: int,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
    limit: int,
    h: float,
    pool: Executor,
) -> NDArray[np.float64]:
    """Modes of a deformable member; returns the modal rows of its slots, (3 slots, modes)."""
    member = tangent.member
    assert isinstance(member, TetMember | BeamMember)
    body = member.body
    body.linearise()
    v, force = body.v, body.undamped_force()
    alpha, beta = member.damping
    x = np.where(member.turns(local)[:, None] == 1, 0.0, member.positions()[local])
    columns, axes = tangent.columns, np.eye(3)
    if isinstance(member, TetMember) and member.floating:
        axes = member.rotation_since(tangent.rest)
        columns = _turn_nodes(columns, axes)
        v, x = _write_floating(member, frame, f, low, v, x)
    frame.slot_x[f, slots] = x
    frame.slot_q[f, slots] = member.orientations(local)
    mv = body.M @ v
    residual = force - alpha * mv - beta * (body.K @ v)
    # the factor at the servo's step was renewed on the way here, that at the low step was not
    solved = [tangent.factors[0].solve(residual)]
    if member.floating:
        solved.append(_turn_nodes(tangent.factors[1].solve(_turn_nodes(residual, axes.T)), axes))
    else:
        solved.append(tangent.factors[1].solve(residual))
    columns = np.column_stack([columns, v, *solved])
    if isinstance(member, TetMember) and member.floating:
        # rigid motions have their own freedoms: take them out of the basis
        rigid = rigid_motions(body.x[body.free] - frame.centre[f, low])
        mass_rigid = body.M @ rigid
        columns -= rigid @ np.linalg.solve(rigid.T @ mass_rigid, mass_rigid.T @ columns)
    mass_gram, warped_gram, stiff_gram = pool.map(
        lambda matrix: columns.T @ (matrix @ columns), (body.M, body.K, body.tangent())
    )
    held = (1.0 + h * alpha) * mass_gram + h * beta * warped_gram
    modes = krylov_modes(mass_gram, held, stiff_gram, h, limit)
    n, first = len(modes.system), int(frame.head[f, N_MODES])
    span = slice(first, first + n)
    frame.modes[f, MODE_INVERSE, span] = 1.0 / modes.system
    frame.modes[f, MODE_FORCE, span] = modes.transform.T @ (columns.T @ force)
    frame.modes[f, MODE_Z, span] = 0.0
    frame.modes[f, MODE_RATE, span] = modes.transform.T @ (columns.T @ mv)
    frame.stiffness[f, span, span] = modes.stiffness
    modal = member.gather(local, columns) @ modes.transform
    frame.slot_modes[f, slots, :, span] = modal.reshape(len(slots), 3, n)
    _write_rest(member, frame, f, slots, local, modal, modes.system, h)
    return modal


def _write_rest(
    member: TetMember | BeamMember,
    frame: ConstraintFrame,
    f: int,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
    modal: NDArray[np.float64],
    system: NDArray[np.float64],
    h: float,
) -> None:
    """What the modes miss of each slot's own compliance, at least: h^2 / diag(A_h) - h^2 diag(V a^-1 V^T).

    A point that no column was made for would otherwise meet a contact with the inertia of the whole body,
    and the full body would get that force on one node.
    """
    body, (alpha, beta) = member.body, member.damping
    diagonal = (1.0 + h * alpha) * body.M.diagonal() + (h * beta + h * h) * body.K.diagonal()
    own = member.gather(local, (h * h / diagonal)[:, None])[:, 0]
    missed = own - h * h * ((modal * modal) @ (1.0 / system))
    frame.slot_rest[f, slots] = np.maximum(missed, 0.0).reshape(-1, 3)


def _write_rigid(
    member: RigidMember,
    frame: ConstraintFrame,
    f: int,
    low: int,
    slots: NDArray[np.intp],
    local: NDArray[np.intp],
) -> None:
    centre, velocity, spin, inertia = member.rigid_state()
    _write_motion(frame, f, low, member.body.mass, centre, velocity, spin, inertia, member.body.model.alpha)
    frame.orientation[f, low] = member.body.q[0]
    points = np.vstack([member.points, np.zeros((1, 3))])
    frame.slot_x[f, slots] = points[local]
    frame.slot_q[f, slots] = [1.0, 0.0, 0.0, 0.0]
    frame.slot_rest[f, slots] = 0.0


def _write_floating(
    member: TetMember,
    frame: ConstraintFrame,
    f: int,
    low: int,
    v: NDArray[np.float64],
    x: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rigid part into the frame; returns the velocity without it and the slots' place from the centre.

    The body axes start as the world's, at the centre of mass.
    """
    centre, velocity, spin, inertia = member.rigid_state()
    alpha = member.damping[0]
    _write_motion(frame, f, low, member.body.mass, centre, velocity, spin, inertia, alpha)
    frame.orientation[f, low] = [1.0, 0.0, 0.0, 0.0]
    rigid = velocity + np.cross(spin, member.body.x[member.body.free] - centre)
    return v - rigid.reshape(-1), x - centre


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
    near: int,
    h: float,
) -> None:
    """W_soft^dt over the near slots of a member, in its body axes: modes and, if it floats, rigid motion."""
    kept = slots < near
    rows = (3 * slots[kept][:, None] + np.arange(3)).reshape(-1)
    n = modal.shape[1]
    modal = modal.reshape(len(slots), 3, n)[kept].reshape(len(rows), n)
    compliance = h * h * (modal * frame.modes[f, MODE_INVERSE, first : first + n]) @ modal.T
    compliance[np.diag_indices_from(compliance)] += frame.slot_rest[f, slots[kept]].reshape(-1)
    if frame.floating[f, low]:
        arms = frame.slot_x[f, slots[kept]]
        fields = rigid_motions(arms).reshape(-1, 3, 6)
        turning = frame.slot_turns[f, slots[kept]] == 1
        fields[turning] = 0.0
        fields[turning, :, 3:] = np.eye(3)
        flat = fields.reshape(-1, 6)
        inverse = np.zeros((6, 6))
        inverse[:3, :3] = np.eye(3) / frame.mass[f, low]
        inverse[3:, 3:] = frame.inertia[f, low, 1]
        compliance += flat @ inverse @ flat.T * (h * h / (1.0 + h * frame.alpha[f, low]))
    frame.compliance[f][np.ix_(rows, rows)] = compliance
