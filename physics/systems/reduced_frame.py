"""Writing a member's reduced model into a constraint frame (EQUATIONS.md, 1, "The Krylov interface")."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.constraint_frame import (
    FIELDS,
    IS_FIELD,
    MODE_FORCE,
    MODE_RATE,
    MODE_Z,
    N_FIELDS,
    N_MODES,
    TURNS,
    ConstraintFrame,
)
from palpo.physics.reduction.rational_krylov import Modes, krylov_modes, rigid_motions
from palpo.physics.systems.members import Member


class Page(NamedTuple):
    """A member's part of slot f of a frame."""

    frame: ConstraintFrame
    f: int
    low: int
    """Number of the member among the low-rate bodies."""
    slots: NDArray[np.intp]
    """The frame's slots of this member, ascending, (k,)."""
    local: NDArray[np.intp]
    """Its points there, (k,)."""
    near: int
    """Slots below this number get their compliance precomputed."""
    h: float
    """The servo's step [s]."""
    limit: int
    """Modes that the frame has room for, those of all members together."""

    @property
    def run(self) -> slice | NDArray[np.intp]:
        """The slots as a slice where they are a run: arrays are then written in place, not gathered."""
        return as_run(self.slots)


class Grams(NamedTuple):
    """A basis B (n_dof, k) of a member, its last columns included, and what the modes are made from."""

    basis: NDArray[np.float64]
    mass: NDArray[np.float64]  # (k, k) B^T M B
    stiffness: NDArray[np.float64]  # (k, k) B^T K B, K the exact tangent
    force: NDArray[np.float64]  # (n_dof,) f_ext + f_int [N]
    velocity: int  # number of the column that is the present velocity
    diagonal: tuple[NDArray[np.float64], NDArray[np.float64]]  # (n_dof,) those of M and K


def as_run(ascending: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Distinct ascending numbers as a slice, where they leave none out."""
    n = len(ascending)
    if n and ascending[-1] - ascending[0] == n - 1:
        return slice(int(ascending[0]), int(ascending[0]) + n)
    return ascending


def write_points(
    page: Page, member: Member, damping: tuple[float, float], x: NDArray[np.float64], q: NDArray[np.float64]
) -> None:
    """What every kind of member says of its slots: places x (k, 3) [m] and orientations q (k, 4)."""
    frame, f, low, run = page.frame, page.f, page.low, page.run
    frame.floating[f, low] = int(member.floating)
    frame.damping[f, low] = damping
    frame.slot_turns[f, run] = member.turns(page.local)
    frame.slot_body[f, run] = low
    frame.slot_x[f, run] = x
    frame.slot_q[f, run] = q


def write_motion(
    page: Page,
    mass: float,
    centre: NDArray[np.float64],
    velocity: NDArray[np.float64],
    spin: NDArray[np.float64],
    inertia: NDArray[np.float64],
    orientation: NDArray[np.float64],
) -> None:
    """The rigid motion of a member that floats; inertia (3, 3) in its body axes, orientation (4,) theirs."""
    frame, f, low = page.frame, page.f, page.low
    frame.mass[f, low] = mass
    frame.centre[f, low] = centre
    frame.velocity[f, low] = velocity
    frame.spin[f, low] = spin
    frame.inertia[f, low, 0] = inertia
    frame.inertia[f, low, 1] = np.linalg.inv(inertia)
    frame.orientation[f, low] = orientation


def write_fields(page: Page, pulls: NDArray[np.float64]) -> None:
    """Append those of a member's slots that are fields; pulls (k, 6) of all its slots, see the frame."""
    frame, f = page.frame, page.f
    for slot, pull in zip(page.slots, pulls, strict=True):
        if frame.slot_turns[f, slot] == IS_FIELD:
            k = int(frame.head[f, N_FIELDS])
            if k == FIELDS:
                raise ValueError(f"a frame has room for {FIELDS} fields of cavities")
            frame.field_slot[f, k], frame.field_pull[f, k] = slot, pull
            frame.head[f, N_FIELDS] = k + 1


def write_modes(page: Page, member: Member, grams: Grams) -> tuple[Modes, slice]:
    """Append a deformable member's modes to those of the members before; returns them and their place."""
    frame, f, low, h = page.frame, page.f, page.low, page.h
    alpha, beta = frame.damping[f, low]
    held, pull = 1.0 + h * alpha, h * (beta + h)
    first = int(frame.head[f, N_MODES])
    modes = krylov_modes(grams.mass, grams.stiffness, held, pull, page.limit - first)
    n, k = len(modes.order), len(page.slots)
    span = slice(first, first + n)
    frame.mode_body[f, low] = first
    frame.mode_body[f, low + 1 :] = first + n
    frame.head[f, N_MODES] = first + n
    frame.modes[f, MODE_FORCE, span] = (grams.force @ grams.basis)[modes.order] @ modes.factor
    frame.modes[f, MODE_Z, span] = 0.0
    frame.modes[f, MODE_RATE, span] = modes.coordinates(grams.velocity)
    frame.stiffness[f, span, span] = modes.stiffness
    in_place = isinstance(page.run, slice)
    modal = frame.slot_modes[f, page.run, :, span] if in_place else np.empty((k, 3, n))
    mass, stiffness = grams.diagonal
    own = h * h / (held * mass + pull * np.maximum(stiffness, 0.0))
    alone = member.gather(page.local, own[:, None]).reshape(k, 3)
    # points that are fixed have slots too, and nothing in them
    field = frame.slot_turns[f, page.run] == IS_FIELD
    moves = alone.any(axis=1) | field
    modal[moves] = modes.combine(member.gather(page.local[moves], grams.basis)).reshape(-1, 3, n)
    modal[~moves] = 0.0
    if not in_place:
        frame.slot_modes[f, page.run, :, span] = modal
    # what the modes miss of each slot's own compliance, at least h^2 / diag(A_h) - h^2 diag(V V^T): a point
    # that no column was made for would otherwise meet a contact with the inertia of the whole body, and the
    # full body would get that force on one node
    missed = alone - h * h * np.einsum("ijk,ijk->ij", modal, modal)
    missed[field] = 0.0  # a field has columns of its own
    frame.slot_rest[f, page.run] = np.maximum(missed, 0.0)
    write_compliance(page, modal.reshape(3 * k, n))
    return modes, span


def write_compliance(page: Page, modal: NDArray[np.float64]) -> None:
    """W_soft^dt over the near slots of a member, in its body axes: modes and, if it floats, rigid motion.

    modal (3 k, modes): the rows of V at all of its slots.
    """
    frame, f, low, h = page.frame, page.f, page.low, page.h
    count = int(np.searchsorted(page.slots, page.near))
    slots = page.slots[:count]
    modal = modal[: 3 * count]
    compliance = modal @ modal.T
    compliance *= h * h
    compliance[np.diag_indices_from(compliance)] += frame.slot_rest[f, slots].reshape(-1)
    if frame.floating[f, low]:
        fields = rigid_motions(frame.slot_x[f, slots]).reshape(-1, 3, 6)
        turning = frame.slot_turns[f, slots] == TURNS
        fields[turning] = 0.0
        fields[turning, :, 3:] = np.eye(3)
        for k in range(int(frame.head[f, N_FIELDS])):
            here = slots == frame.field_slot[f, k]
            fields[here] = 0.0
            fields[here, 0] = frame.field_pull[f, k]
        flat = fields.reshape(-1, 6)
        inverse = np.zeros((6, 6))
        inverse[:3, :3] = np.eye(3) / frame.mass[f, low]
        inverse[3:, 3:] = frame.inertia[f, low, 1]
        compliance += (flat @ inverse * (h * h / (1.0 + h * frame.damping[f, low, 0]))) @ flat.T
    rows = as_run((3 * slots[:, None] + np.arange(3)).reshape(-1))
    if isinstance(rows, slice):
        frame.compliance[f, rows, rows] = compliance
    else:
        frame.compliance[f][np.ix_(rows, rows)] = compliance
