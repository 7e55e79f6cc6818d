"""Writing a body's reduced model into a constraint frame (EQUATIONS.md, 1, "The Krylov interface")."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from palpo.physics.bodies.low_body import LowBody
from palpo.physics.exchange.constraint_frame import (
    FIELDS,
    IS_FIELD,
    MODE_FADING,
    MODE_FORCE,
    MODE_RATE,
    MODE_Z,
    ConstraintFrame,
)
from palpo.physics.numerics.kernels import kernel
from palpo.physics.reduction.rational_krylov import ReducedModes, krylov_modes


class Page(NamedTuple):
    """A body's part of slot f of a frame."""

    frame: ConstraintFrame
    f: int
    low: int
    """Number of the body among the low-rate bodies."""
    slots: NDArray[np.intp]
    """The frame's slots of this body, ascending, (k,)."""
    local: NDArray[np.intp]
    """Its points there, (k,)."""
    near: int
    """Slots below this number get their compliance precomputed."""
    h: float
    """The servo's step [s]."""
    limit: int
    """Modes that the frame has room for, those of all bodies together."""

    @property
    def run(self) -> slice | NDArray[np.intp]:
        """The slots as a slice where they are a run: arrays are then written in place, not gathered."""
        return as_run(self.slots)


class Grams(NamedTuple):
    """A basis B (n_dof, k) of a body, its last columns included, and what the modes are made from."""

    basis: NDArray[np.float64]
    mass: NDArray[np.float64]  # (k, k) B^T M B
    stiffness: NDArray[np.float64]  # (k, k) B^T K B, K the exact tangent
    force: NDArray[np.float64]  # (2, n_dof) f_ext + f_int [N], and its rate as a material forgets [N/s]
    velocity: int  # number of the column that is the present velocity
    diagonal: tuple[NDArray[np.float64], NDArray[np.float64]]  # (n_dof,) those of M and K


def as_run(ascending: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Distinct ascending numbers as a slice, where they leave none out."""
    n = len(ascending)
    if n and ascending[-1] - ascending[0] == n - 1:
        return slice(int(ascending[0]), int(ascending[0]) + n)
    return ascending


def write_points(
    page: Page, body: LowBody, damping: tuple[float, float], x: NDArray[np.float64], q: NDArray[np.float64]
) -> None:
    """What every kind of body says of its slots: places x (k, 3) [m] and orientations q (k, 4)."""
    frame, f, low, run = page.frame, page.f, page.low, page.run
    frame.floating[f, low] = int(body.rides)
    frame.damping[f, low] = damping
    frame.slot_turns[f, run] = body.turns(page.local)
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
    """The rigid motion of a body that floats; inertia (3, 3) in its body axes, orientation (4,) theirs."""
    frame, f, low = page.frame, page.f, page.low
    frame.mass[f, low] = mass
    frame.centre[f, low] = centre
    frame.velocity[f, low] = velocity
    frame.spin[f, low] = spin
    frame.inertia[f, low, 0] = inertia
    frame.inertia[f, low, 1] = np.linalg.inv(inertia)
    frame.orientation[f, low] = orientation


def write_fields(page: Page, pulls: NDArray[np.float64]) -> None:
    """Append those of a body's slots that are fields; pulls (k, 6) of all its slots, see the frame."""
    frame, f = page.frame, page.f
    for slot, pull in zip(page.slots, pulls, strict=True):
        if frame.slot_turns[f, slot] == IS_FIELD:
            k = int(frame.head["n_fields"][f])
            if k == FIELDS:
                raise ValueError(f"a frame has room for {FIELDS} fields of cavities")
            frame.field_slot[f, k], frame.field_pull[f, k] = slot, pull
            frame.head["n_fields"][f] = k + 1


def write_modes(page: Page, body: LowBody, grams: Grams) -> tuple[ReducedModes, slice]:
    """Append a deformable body's modes to those of the bodies before; returns them and their place."""
    frame, f, low, h = page.frame, page.f, page.low, page.h
    alpha, beta = frame.damping[f, low]
    held, pull = 1.0 + h * alpha, h * (beta + h)
    first = int(frame.head["n_modes"][f])
    modes = krylov_modes(grams.mass, grams.stiffness, held, pull, page.limit - first)
    n = len(modes.order)
    span = slice(first, first + n)
    frame.mode_body[f, low] = first
    frame.mode_body[f, low + 1 :] = first + n
    frame.head["n_modes"][f] = first + n
    frame.modes[f, MODE_FORCE : MODE_FADING + 1, span] = (grams.force @ grams.basis)[
        :, modes.order
    ] @ modes.factor
    frame.modes[f, MODE_Z, span] = 0.0
    frame.modes[f, MODE_RATE, span] = modes.coordinates(grams.velocity)
    frame.stiffness[f, span, span] = modes.stiffness
    mass, stiffness = grams.diagonal
    own = h * h / (held * mass + pull * np.maximum(stiffness, 0.0))
    alone = body.alone(page.local, own)
    modal = modes.combine(body.gather(page.local, grams.basis, modes.order))
    _place_rows(modal, page.slots, alone, h * h, first, frame.slot_modes[f], frame.slot_rest[f])
    write_compliance(page, modal)
    return modes, span


def write_compliance(page: Page, modal: NDArray[np.float64]) -> None:
    """W_soft^dt over the near slots of a body by its modes, in its body axes.

    modal (3 k, modes): the rows of V at all of its slots.
    """
    frame, f = page.frame, page.f
    count = int(np.searchsorted(page.slots, page.near))
    slots = page.slots[:count]
    if not count:
        return
    factor = page.h * modal[: 3 * count]
    # the transpose of a C-contiguous array is a matrix of BLAS: half of a symmetric product
    half = dsyrk(1.0, factor.T, trans=1) if factor.size else np.zeros((3 * count, 3 * count), order="F")
    _place_compliance(half.T, slots, frame.slot_rest[f], frame.compliance[f])


@kernel
def _place_rows(modal, slots, own, scale, first, out, rest):
    """Rows of V at slots (k,), modal (3 k, n), to out (slots, 3, modes) from column `first` on.

    rest (slots, 3) = what the modes miss of each slot's own compliance, at least h^2 / diag(A_h) -
    h^2 diag(V V^T), h^2 being `scale`: a point that no column was made for would otherwise meet a contact
    with the inertia of the whole body, and the full body would get that force on one node.
    """
    n = modal.shape[1]
    for k in range(slots.size):
        for i in range(3):
            row, to, met = modal[3 * k + i], out[slots[k], i, first : first + n], 0.0
            for j in range(n):
                to[j] = row[j]
            for j in range(n):
                met += row[j] * row[j]
            rest[slots[k], i] = max(0.0, own[3 * k + i] - scale * met)


@kernel
def _place_compliance(lower, slots, rest, out):
    """out (3 near, 3 near) = a symmetric matrix by its lower triangle, rest (slots, 3) on its diagonal."""
    for a in range(slots.size):
        for i in range(3):
            row = out[3 * slots[a] + i]
            for b in range(a + 1):
                for j in range(3 if b < a else i + 1):
                    value = lower[3 * a + i, 3 * b + j]
                    row[3 * slots[b] + j] = value
                    out[3 * slots[b] + j, 3 * slots[a] + i] = value
            row[3 * slots[a] + i] += rest[slots[a], i]
