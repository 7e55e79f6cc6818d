"""Chains of six-freedom frames: beams of Timoshenko elements and, as a chain of one, rigid bodies.

One kernel family serves the 1 kHz tool and the low-rate bodies. A step is
    chain_assemble, the caller's holds, chain_factor, chain_solve (and contact), chain_advance
and solves EQUATIONS.md, section 1: A_h dv = h (f_ext + f_int - C v - h K v), A_h = M + h C + h^2 K. A_h is
block tridiagonal, hence O(n). Freedoms of frame i are (velocity, angular velocity) in world axes.

The gyroscopic torque is implicit, frame by frame (physics/dynamics/rigid.py), and enters as the impulse that
carries w to the spin of the free body; A_h stays symmetric and any spin is stable at any h.
A_h also holds what a taut beam needs of the string's stiffness at this h (physics/fem/beam.py).
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.arrays import copy, copy_rows
from palpo.physics.dynamics.rigid import free_spin
from palpo.physics.errors import InputError
from palpo.physics.fem.beam import (
    Section,
    add_beam,
    beam_energy,
    circular_section,
    element_constants,
    product,
)
from palpo.physics.fem.material import Material
from palpo.physics.kernels import kernel
from palpo.physics.math3 import rotate_by

MassMatrix = Literal["lumped", "averaged", "consistent"]


class ChainModel(NamedTuple):
    """What never changes. n frames, n - 1 elements.

    mass (n,): diagonal translational mass [kg].
    coupling (n - 1,): mass shared by neighbours, zero if lumped [kg].
    weight (n,): mass that gravity pulls at each frame [kg].  inertia (n, 3, 3): in body axes [kg m2].
    rest_length (n - 1,) [m]; stiffness (n - 1, 6): element_constants of fem/beam.py.
    rest_first, rest_second (n - 1, 4): quaternions from the axes of an element's first and second frame to
    the element's own at rest, so that the rest line may be curved.
    fixed (n,): clamped frames.  alpha [1/s], beta [s].  gravity (3,) [m/s2].
    """

    mass: NDArray
    coupling: NDArray
    weight: NDArray
    inertia: NDArray
    rest_length: NDArray
    stiffness: NDArray
    rest_first: NDArray
    rest_second: NDArray
    fixed: NDArray
    alpha: float
    beta: float
    gravity: NDArray


class ChainState(NamedTuple):
    """x (n, 3) [m], q (n, 4) body to world, v (n, 3) [m/s], w (n, 3) [rad/s] in world axes."""

    x: NDArray
    q: NDArray
    v: NDArray
    w: NDArray


class ChainWork(NamedTuple):
    """Workspace of one step.

    D (n, 6, 6), U (n - 1, 6, 6) with U[i] = A[i, i+1], rhs (n, 6): the system, later its factor.
    held (1,): frame under a direct hold or -1; held_mask (6,); held_D, held_left, held_right (6, 6) and
    held_rhs (6,): that frame's rows as they were before.  block (2, 6, 6): scratch.
    """

    D: NDArray
    U: NDArray
    rhs: NDArray
    held: NDArray
    held_mask: NDArray
    held_D: NDArray
    held_left: NDArray
    held_right: NDArray
    held_rhs: NDArray
    block: NDArray


def chain_work(n: int) -> ChainWork:
    """Workspace for n frames."""
    return ChainWork(
        np.zeros((n, 6, 6)), np.zeros((max(n - 1, 0), 6, 6)), np.zeros((n, 6)),
        np.full(1, -1, dtype=np.int32), np.zeros(6, dtype=np.bool_), np.zeros((6, 6)), np.zeros((6, 6)),
        np.zeros((6, 6)), np.zeros(6), np.zeros((2, 6, 6)),
    )  # fmt: skip


def rigid_model(
    mass: float, inertia: ArrayLike, gravity: ArrayLike = (0.0, -9.81, 0.0), alpha: float = 0.0
) -> ChainModel:
    """A rigid body: a chain of one frame at its centre of mass.

    mass [kg], inertia (3, 3) in body axes [kg m2], alpha: mass-proportional damping [1/s].
    Raises InputError unless mass is positive and inertia symmetric positive definite.
    """
    inertia = np.array(inertia, dtype=np.float64)
    if not mass > 0.0:
        raise InputError(f"rigid body mass is {mass!r} kg but must be positive.")
    if (
        inertia.shape != (3, 3)
        or not np.allclose(inertia, inertia.T)
        or np.linalg.eigvalsh(inertia)[0] <= 0.0
    ):
        raise InputError(
            f"rigid body inertia is {inertia.tolist()} kg m2 but must be a symmetric positive "
            "definite 3 by 3 tensor."
        )
    none = np.zeros((0, 4))
    return ChainModel(
        np.array([mass]), np.zeros(0), np.array([mass]), inertia[None].copy(), np.zeros(0), np.zeros((0, 6)),
        none, none, np.zeros(1, dtype=np.bool_), float(alpha), 0.0, np.array(gravity, dtype=np.float64),
    )  # fmt: skip


def rest_state(x: ArrayLike, q: ArrayLike) -> ChainState:
    """State at rest at x (n, 3) [m], q (n, 4)."""
    x, q = np.array(x, dtype=np.float64), np.array(q, dtype=np.float64)
    return ChainState(x, q, np.zeros_like(x), np.zeros_like(x))


def _quaternion_onto(a: NDArray, b: NDArray) -> NDArray:
    """The shortest turn of unit vector a onto unit vector b."""
    along = float(a @ b)
    if along < -1.0 + 1e-12:
        normal = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
        return np.concatenate([[0.0], normal / np.linalg.norm(normal)])
    q = np.concatenate([[1.0 + along], np.cross(a, b)])
    return q / np.linalg.norm(q)


def line_frames(nodes: NDArray) -> tuple[NDArray, NDArray]:
    """Orientations of the frames (n, 4) and elements (n - 1, 4) of a line of nodes (n, 3) [m].

    The first axis is the tangent (of a node: the mean of its elements'), carried along without twist.
    """
    chords = np.diff(nodes, axis=0)
    chords /= np.linalg.norm(chords, axis=1)[:, None]
    tangents = np.vstack([chords[:1], chords[:-1] + chords[1:], chords[-1:]])
    tangents /= np.linalg.norm(tangents, axis=1)[:, None]
    axis = np.array([1.0, 0.0, 0.0])
    q = _quaternion_onto(axis, tangents[0])
    frames, elements = [q], []
    for i in range(len(chords)):
        element = np.array(product(tuple(_quaternion_onto(tangents[i], chords[i])), tuple(q)))
        q = np.array(product(tuple(_quaternion_onto(chords[i], tangents[i + 1])), tuple(element)))
        elements.append(element)
        frames.append(q)
    return np.array(frames), np.array(elements)


def beam_model(
    nodes: ArrayLike,
    radius: float,
    material: Material,
    fixed: ArrayLike = (),
    gravity: ArrayLike = (0.0, -9.81, 0.0),
    section: Section | None = None,
    mass_matrix: MassMatrix = "averaged",
) -> tuple[ChainModel, ChainState]:
    """Model and rest state of the beam along nodes (n, 3) [m], n >= 2, of one section (a circle by default).

    fixed: clamped frames. mass_matrix: translational mass lumped, consistent with linear interpolation, or
    the mean of both, whose frequency errors of opposite sign cancel to leading order: 0.4% instead of 3% in
    the third mode of a cantilever of ten elements. The small rotary inertia is lumped in each.
    Raises InputError for fewer than two nodes, coincident neighbours or a fixed index out of range.
    """
    x = np.array(nodes, dtype=np.float64)
    n = len(x)
    if n < 2:
        raise InputError(f"a beam line has {n} node but needs at least two.")
    lengths = np.linalg.norm(np.diff(x, axis=0), axis=1)
    if not (lengths > 0.0).all():
        raise InputError(f"beam element {int(np.argmin(lengths))} has no length; its two nodes must differ.")
    clamped = np.zeros(n, dtype=np.bool_)
    indices = np.asarray(fixed, dtype=np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise InputError(f"beam frame {indices.max()} is fixed but the frames are 0 to {n - 1}.")
    clamped[indices] = True
    section = section or circular_section(radius, material.poisson_ratio)

    element_mass = material.density * section.area * lengths
    half = np.zeros(n)
    half[:-1] += 0.5 * element_mass
    half[1:] += 0.5 * element_mass
    coupling = {"lumped": 0.0, "averaged": 1.0 / 12.0, "consistent": 1.0 / 6.0}[mass_matrix] * element_mass
    mass = half.copy()
    mass[:-1] -= coupling
    mass[1:] -= coupling
    polar = section.second_moment_y + section.second_moment_z
    rotary = np.diag([polar, section.second_moment_y, section.second_moment_z])
    inertia = (half / section.area)[:, None, None] * rotary

    q, elements = line_frames(x)
    inverse = q * np.array([1.0, -1.0, -1.0, -1.0])
    first = np.array([product(tuple(inverse[i]), tuple(elements[i])) for i in range(n - 1)])
    second = np.array([product(tuple(inverse[i + 1]), tuple(elements[i])) for i in range(n - 1)])
    stiffness = np.array([element_constants(length, section, material) for length in lengths])
    model = ChainModel(
        mass, coupling, half, inertia, lengths, stiffness, first, second, clamped,
        float(material.alpha), float(material.beta), np.array(gravity, dtype=np.float64),
    )  # fmt: skip
    return model, rest_state(x, q)


@kernel
def _rotate(q, a, sign):
    """q a q^-1 for sign = 1, q^-1 a q for sign = -1; returns 3 floats."""
    w, x, y, z = q[0], sign * q[1], sign * q[2], sign * q[3]
    tx, ty, tz = 2.0 * (y * a[2] - z * a[1]), 2.0 * (z * a[0] - x * a[2]), 2.0 * (x * a[1] - y * a[0])
    return (
        a[0] + w * tx + y * tz - z * ty,
        a[1] + w * ty + z * tx - x * tz,
        a[2] + w * tz + x * ty - y * tx,
    )


@kernel
def add_mass(model, state, weight, D, U):
    """Add weight M to the block-tridiagonal D (n, 6, 6), U (n - 1, 6, 6); world inertia at state.q."""
    n = model.mass.size
    for i in range(n):
        w, x, y, z = state.q[i, 0], state.q[i, 1], state.q[i, 2], state.q[i, 3]
        r = (
            (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
            (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
            (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
        )
        inertia = model.inertia[i]
        for j in range(3):
            D[i, j, j] += weight * model.mass[i]
            a = r[j][0] * inertia[0, 0] + r[j][1] * inertia[1, 0] + r[j][2] * inertia[2, 0]
            b = r[j][0] * inertia[0, 1] + r[j][1] * inertia[1, 1] + r[j][2] * inertia[2, 1]
            c = r[j][0] * inertia[0, 2] + r[j][1] * inertia[1, 2] + r[j][2] * inertia[2, 2]
            for k in range(3):
                D[i, 3 + j, 3 + k] += weight * (a * r[k][0] + b * r[k][1] + c * r[k][2])
    for i in range(n - 1):
        for j in range(3):
            U[i, j, j] += weight * model.coupling[i]


@kernel
def add_elastic(model, state, weight, h, D, U, f):
    """Set D, U to weight K + the string term of a step h, and f (n, 6) to f_int [N, N m]."""
    D[:] = 0.0
    f[:] = 0.0
    for i in range(model.rest_length.size):
        mass = 0.5 * (model.mass[i] + model.mass[i + 1])
        add_beam(
            state.x[i : i + 2], state.q[i : i + 2], model.rest_first[i], model.rest_second[i],
            model.rest_length[i], model.stiffness[i], weight, h, mass, D[i : i + 2], U[i], f[i : i + 2],
        )  # fmt: skip


@kernel
def subtract_product(D, U, state, out):
    """out (n, 6) -= A (v, w) for a block-tridiagonal A."""
    n = D.shape[0]
    for i in range(n):
        for r in range(6):
            total = 0.0
            for c in range(3):
                total += D[i, r, c] * state.v[i, c] + D[i, r, 3 + c] * state.w[i, c]
            if i + 1 < n:
                for c in range(3):
                    total += U[i, r, c] * state.v[i + 1, c] + U[i, r, 3 + c] * state.w[i + 1, c]
            if i > 0:
                for c in range(3):
                    total += U[i - 1, c, r] * state.v[i - 1, c] + U[i - 1, 3 + c, r] * state.w[i - 1, c]
            out[i, r] -= total


@kernel
def apply_fixed(model, D, U, rhs):
    """Clamped frames: identity block, no coupling, zero right-hand side."""
    n = D.shape[0]
    for i in range(n):
        if model.fixed[i]:
            D[i] = 0.0
            rhs[i] = 0.0
            for r in range(6):
                D[i, r, r] = 1.0
            if i > 0:
                U[i - 1] = 0.0
            if i + 1 < n:
                U[i] = 0.0


@kernel
def chain_assemble(model, state, h, work):
    """work.D, work.U = A_h and work.rhs = h (f_ext + f_int - C v - h K v) + the gyroscopic impulse.

    Clears a direct hold. The caller may then add its own 6x6 blocks and loads (times h) to D and rhs.
    """
    D, U, rhs = work.D, work.U, work.rhs
    work.held[0] = -1
    add_elastic(model, state, h * (model.beta + h), h, D, U, rhs)
    add_mass(model, state, h * model.alpha, D, U)
    for i in range(D.shape[0]):
        for r in range(6):
            rhs[i, r] *= h
        for r in range(3):
            rhs[i, r] += h * model.weight[i] * model.gravity[r]
        inertia = model.inertia[i]
        before = _rotate(state.q[i], state.w[i], -1.0)
        after = free_spin(inertia, before, h)
        change = (after[0] - before[0], after[1] - before[1], after[2] - before[2])
        impulse = (
            inertia[0, 0] * change[0] + inertia[0, 1] * change[1] + inertia[0, 2] * change[2],
            inertia[1, 0] * change[0] + inertia[1, 1] * change[1] + inertia[1, 2] * change[2],
            inertia[2, 0] * change[0] + inertia[2, 1] * change[1] + inertia[2, 2] * change[2],
        )
        impulse = _rotate(state.q[i], impulse, 1.0)
        for r in range(3):
            rhs[i, 3 + r] += impulse[r]
    # so far D and U hold h C + h^2 K, whose product with v is just what the right-hand side lacks
    subtract_product(D, U, state, rhs)
    add_mass(model, state, 1.0, D, U)
    apply_fixed(model, D, U, rhs)


@kernel
def chain_hold_direct(work, state, i, mask, v_imposed):
    """Impose the freedoms mask (6,) of frame i to have the velocity v_imposed (6,) after the step, exactly.

    Call between chain_assemble and chain_factor, for one frame. The known columns move to the right-hand
    side, so that the matrix stays symmetric; the rows are kept for chain_reaction.
    """
    D, U, rhs = work.D, work.U, work.rhs
    n = D.shape[0]
    work.held[0] = i
    copy(mask, work.held_mask)
    copy_rows(D[i], work.held_D)
    copy(rhs[i], work.held_rhs)
    if i > 0:
        copy_rows(U[i - 1], work.held_left)
    if i + 1 < n:
        copy_rows(U[i], work.held_right)
    for c in range(6):
        if not mask[c]:
            continue
        dv = v_imposed[c] - (state.v[i, c] if c < 3 else state.w[i, c - 3])
        for r in range(6):
            rhs[i, r] -= D[i, r, c] * dv
            D[i, r, c] = 0.0
            D[i, c, r] = 0.0
            if i > 0:
                rhs[i - 1, r] -= U[i - 1, r, c] * dv
                U[i - 1, r, c] = 0.0
            if i + 1 < n:
                rhs[i + 1, r] -= U[i, c, r] * dv
                U[i, c, r] = 0.0
        D[i, c, c] = 1.0
    for c in range(6):
        if mask[c]:
            rhs[i, c] = v_imposed[c] - (state.v[i, c] if c < 3 else state.w[i, c - 3])


@kernel
def chain_reaction(work, dv, h, out):
    """Force and moment (6,) [N, N m] that the direct hold exerted, from the change of velocity dv (n, 6).

    Zero in freedoms that are not held. Contact forces on the held frame itself, if any, are still in it.
    """
    i = work.held[0]
    out[:] = 0.0
    if i < 0:
        return
    n = work.D.shape[0]
    for r in range(6):
        if not work.held_mask[r]:
            continue
        total = -work.held_rhs[r]
        for c in range(6):
            total += work.held_D[r, c] * dv[i, c]
            if i > 0:
                total += work.held_left[c, r] * dv[i - 1, c]
            if i + 1 < n:
                total += work.held_right[r, c] * dv[i + 1, c]
        out[r] = total / h


@kernel
def _factor_blocks(D, U):
    n = D.shape[0]
    for i in range(n):
        L = D[i]
        if i > 0:
            Y = U[i - 1]
            for k in range(6):
                for r in range(6):
                    for c in range(r + 1):
                        L[r, c] -= Y[k, r] * Y[k, c]
        for c in range(6):
            pivot = L[c, c]
            for k in range(c):
                pivot -= L[c, k] * L[c, k]
            if not pivot > 0.0:
                return i + 1
            pivot = np.sqrt(pivot)
            L[c, c] = pivot
            inverse = 1.0 / pivot
            for r in range(c + 1, 6):
                total = L[r, c]
                for k in range(c):
                    total -= L[r, k] * L[c, k]
                L[r, c] = total * inverse
        if i + 1 < n:
            Y = U[i]
            for r in range(6):
                for k in range(r):
                    for c in range(6):
                        Y[r, c] -= L[r, k] * Y[k, c]
                inverse = 1.0 / L[r, r]
                for c in range(6):
                    Y[r, c] *= inverse
    return 0


@kernel
def chain_factor(work):
    """Block Cholesky in place: D[i] = L_i (lower part), U[i] = L_i^-1 U_i.

    Returns 0, or 1 + the first frame whose pivot is not positive (a non-finite state).
    """
    return _factor_blocks(work.D, work.U)


@kernel
def chain_solve(work, b, out):
    """out = A_h^-1 b for b (n, 6), after chain_factor; out may be b."""
    D, U = work.D, work.U
    n = D.shape[0]
    for i in range(n):
        for r in range(6):
            total = b[i, r]
            if i > 0:
                for k in range(6):
                    total -= U[i - 1, k, r] * out[i - 1, k]
            for k in range(r):
                total -= D[i, r, k] * out[i, k]
            out[i, r] = total / D[i, r, r]
    for i in range(n - 1, -1, -1):
        for r in range(5, -1, -1):
            total = out[i, r]
            if i + 1 < n:
                for k in range(6):
                    total -= U[i, r, k] * out[i + 1, k]
            for k in range(r + 1, 6):
                total -= D[i, k, r] * out[i, k]
            out[i, r] = total / D[i, r, r]


@kernel
def chain_inverse(work, out):
    """out (6 n, 6 n) = A_h^-1 after chain_factor, by blocks from the last frame up.

    With S_i = L_i L_i^T and G_i = S_i^-1 U_i:  P_ij = -G_i P_i+1,j for j > i,  P_ii = S_i^-1 - P_i,i+1 G_i^T.
    """
    D, U = work.D, work.U
    n = D.shape[0]
    size = 6 * n
    inverse, G = work.block[0], work.block[1]
    for i in range(n - 1, -1, -1):
        L, o = D[i], 6 * i
        for c in range(6):
            inverse[c, c] = 1.0 / L[c, c]
            for r in range(c + 1, 6):
                total = 0.0
                for k in range(c, r):
                    total -= L[r, k] * inverse[k, c]
                inverse[r, c] = total / L[r, r]
        for r in range(6):
            for c in range(r + 1):
                total = 0.0
                for k in range(r, 6):
                    total += inverse[k, r] * inverse[k, c]
                out[o + r, o + c] = total
                out[o + c, o + r] = total
        if i + 1 == n:
            continue
        Y = U[i]
        for r in range(6):
            for c in range(6):
                total = 0.0
                for k in range(r, 6):
                    total += inverse[k, r] * Y[k, c]
                G[r, c] = total
        for r in range(6):
            a, b, c = G[r, 0], G[r, 1], G[r, 2]
            d, e, f = G[r, 3], G[r, 4], G[r, 5]
            for j in range(o + 6, size):
                out[o + r, j] = -(
                    a * out[o + 6, j]
                    + b * out[o + 7, j]
                    + c * out[o + 8, j]
                    + d * out[o + 9, j]
                    + e * out[o + 10, j]
                    + f * out[o + 11, j]
                )
        for r in range(6):
            for c in range(r + 1):
                total = out[o + r, o + c]
                for k in range(6):
                    total -= out[o + r, o + 6 + k] * G[c, k]
                out[o + r, o + c] = total
                out[o + c, o + r] = total
        for j in range(o + 6, size):
            for r in range(6):
                out[j, o + r] = out[o + r, j]


@kernel
def chain_advance(model, state, v_new, h):
    """v, w = v_new (n, 6); x += h v; q <- exp(h w) q."""
    for i in range(model.mass.size):
        if model.fixed[i]:
            continue
        for r in range(3):
            state.v[i, r] = v_new[i, r]
            state.w[i, r] = v_new[i, 3 + r]
            state.x[i, r] += h * v_new[i, r]
        rotate_by((h * v_new[i, 3], h * v_new[i, 4], h * v_new[i, 5]), state.q[i])


@kernel
def chain_substeps(model, state, h, forces, slots, work, v_new):
    """n_steps of size h, each assembled and factored anew; v_new (n, 6) is scratch.

    forces (n_steps, n_slots, 6) [N, N m, world axes] act at frames slots (n_slots,). Returns the status of
    the first failing factorisation, else 0.
    """
    for step in range(forces.shape[0]):
        chain_assemble(model, state, h, work)
        for k in range(slots.size):
            if not model.fixed[slots[k]]:
                for r in range(6):
                    work.rhs[slots[k], r] += h * forces[step, k, r]
        status = chain_factor(work)
        if status != 0:
            return status
        chain_solve(work, work.rhs, v_new)
        for i in range(v_new.shape[0]):
            for r in range(3):
                v_new[i, r] += state.v[i, r]
                v_new[i, 3 + r] += state.w[i, r]
        chain_advance(model, state, v_new, h)
    return 0


@kernel
def chain_momentum(model, state, linear, angular):
    """linear (3,) [kg m/s] and angular (3,) [kg m2/s] momentum about the origin."""
    n = model.mass.size
    linear[:] = 0.0
    angular[:] = 0.0
    for i in range(n):
        x = state.x[i]
        px, py, pz = 0.0, 0.0, 0.0
        for j in range(max(i - 1, 0), min(i + 2, n)):
            m = model.mass[i] if j == i else model.coupling[min(i, j)]
            px += m * state.v[j, 0]
            py += m * state.v[j, 1]
            pz += m * state.v[j, 2]
        body = _rotate(state.q[i], state.w[i], -1.0)
        inertia = model.inertia[i]
        spin = (
            inertia[0, 0] * body[0] + inertia[0, 1] * body[1] + inertia[0, 2] * body[2],
            inertia[1, 0] * body[0] + inertia[1, 1] * body[1] + inertia[1, 2] * body[2],
            inertia[2, 0] * body[0] + inertia[2, 1] * body[1] + inertia[2, 2] * body[2],
        )
        spin = _rotate(state.q[i], spin, 1.0)
        linear[0] += px
        linear[1] += py
        linear[2] += pz
        angular[0] += x[1] * pz - x[2] * py + spin[0]
        angular[1] += x[2] * px - x[0] * pz + spin[1]
        angular[2] += x[0] * py - x[1] * px + spin[2]


@kernel
def chain_energy(model, state):
    """Kinetic + elastic + gravity potential about the origin [J]."""
    n = model.mass.size
    energy = 0.0
    for i in range(n):
        body = _rotate(state.q[i], state.w[i], -1.0)
        for r in range(3):
            energy += 0.5 * model.mass[i] * state.v[i, r] ** 2
            energy -= model.weight[i] * model.gravity[r] * state.x[i, r]
            if i + 1 < n:
                energy += model.coupling[i] * state.v[i, r] * state.v[i + 1, r]
            for c in range(3):
                energy += 0.5 * body[r] * model.inertia[i, r, c] * body[c]
    for i in range(n - 1):
        energy += beam_energy(
            state.x[i], state.x[i + 1], state.q[i], state.q[i + 1], model.rest_first[i], model.rest_second[i],
            model.rest_length[i], model.stiffness[i],
        )  # fmt: skip
    return energy
