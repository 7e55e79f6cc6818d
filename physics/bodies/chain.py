"""Chains of six-freedom frames: beams of Timoshenko elements and, as a chain of one, rigid bodies.

One kernel family serves the 1 kHz tool and the low-rate bodies. A step is
    chain_assemble, the caller's holds, chain_factor, chain_solve (and contact), chain_advance
and solves EQUATIONS.md, section 1: A_h dv = h (f_ext + f_int - C v - h K v), A_h = M + h C + h^2 K. A_h is
block tridiagonal, hence O(n). Freedoms of frame i are (velocity, angular velocity) in world axes.

The gyroscopic torque is implicit, frame by frame (physics/bodies/rigid.py), and enters as the impulse that
carries w to the spin of the free body; A_h stays symmetric and any spin is stable at any h.
A_h also holds what a taut beam needs of the string's stiffness at this h (physics/fem/beam.py).
"""

from palpo.physics.bodies.chain_factor import chain_factor, chain_solve
from palpo.physics.bodies.rigid import free_spin
from palpo.physics.fem.beam import add_beam, beam_energy
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import rotate_by


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
