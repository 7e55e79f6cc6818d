"""Segments of a linear body, joined by springs and dampers that are eliminated (002, III; EQUATIONS.md, 3).

    M_i x_i'' + D_i x_i' + K_i x_i = H_i^T lambda_i + f_i                                              (10)
    Mh_i vh_i = b_i + H_i^T lambda_i + f_i,   b_i = 2 M_i v_i / T - K_i x_i                            (11)
    lambda = -d_c ve - k_c xe,   ve = H vh,   xeh = xe + T ve / 2,   H = (H_1, -H_2, ...)          (12, 13)

A node of several segments has a copy in each; H takes the differences between the copy in the lowest segment
and the others. In compliance form, with s = d_c + k_c T / 2,

    S lambda = -(H Mh^-1 (b + f) + (k_c / s) xe),   S = 1 / s + H Mh^-1 H^T

which keeps the energy where the Schur complement in velocities loses it as k_c grows, and f, which acts on
segment 0 only, moves everything by vh = A f + v_f (14). xe is a state of its own:
ve = -(lambda + k_c xe) / s has no cancellation. Reduced segments x_i = V_i z_i take the same steps in z
(15-18), where V^T M V = 1 and V^T K V is diagonal, and with them Mh: a division. Of segments that are not
reduced Mh has a sparse Cholesky factor.

A tick: `free`, contact, `apply`, `advance`; the same kernels for full, segmented and reduced bodies, whose
constants `palpo.physics.reduction.joining.join` computes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import view_flat
from palpo.physics.fem.elimination import Symbolic, no_elimination
from palpo.physics.fem.substitution import solve_one
from palpo.physics.numerics.kernels import fast_kernel, kernel


class SparseRows(NamedTuple):
    """A sparse matrix, row by row."""

    start: NDArray[np.int64]  # (m + 1,)
    column: NDArray[np.int64]  # (entries,)
    value: NDArray[np.float64]  # (entries,)


class SegmentedModel(NamedTuple):
    """Constants of a joined body over its n coordinates: nodal displacements, or z, segment by segment.

    n_0 are the contact segment's, c the coupling's rows, k the contact nodes.
    """

    step: float  # T [s]
    alpha: float  # Rayleigh damping [1/s]
    beta: NDArray[np.float64]  # (n,) [s], of reduced segments each vibration's own
    coupling_stiffness: float  # k_c [N/m]
    coupling_damping: float  # d_c [N s/m]
    M: SparseRows  # (n, n)
    K: SparseRows  # (n, n)
    segment_start: NDArray[np.int64]  # (segments + 1,) first coordinate of each segment
    give: NDArray[np.float64]  # (n,) 1 / Mh of the coordinates of reduced segments, 0 of the others
    factored: NDArray[np.int64]  # (m,) the others
    symbolic: Symbolic  # pattern of the Cholesky factor of their Mh
    panels: NDArray[np.float64]  # and its numbers
    H: SparseRows  # (c, n)
    coupling_factor: NDArray[np.float64]  # (c, c) L and its mirror image, S = L L^T
    surface: SparseRows  # (3 k, n_0) displacement of the contact nodes
    surface_columns: NDArray[np.float64]  # (n_0, 3 k) its transpose where it is dense, else (0, 0)
    compliance: NDArray[np.float64]  # (3 k, 3 k) A at the contact nodes [m/(N s)]
    rest: NDArray[np.float64]  # (k, 3) contact nodes at rest [m]
    base: NDArray[np.float64]  # (3, n) force on the clamped nodes per displacement [N/m]


class SegmentedState(NamedTuple):
    """Motion of a joined body."""

    x: NDArray[np.float64]  # (n,)
    v: NDArray[np.float64]  # (n,)
    xe: NDArray[np.float64]  # (c,) what the couplings are stretched [m]


class SegmentedWork(NamedTuple):
    """One step in the making."""

    b: NDArray[np.float64]  # (n,)
    vh: NDArray[np.float64]  # (n,) velocity at the middle: v_f after `free`, vh after `apply`
    coupling: NDArray[np.float64]  # (c,) lambda [N], likewise
    moved: NDArray[np.float64]  # (n,) what forces add to vh
    pulled: NDArray[np.float64]  # (c,) and to lambda
    right: NDArray[np.float64]  # (m,) of the sparse factor
    between: NDArray[np.float64]  # (m,)
    panel: NDArray[np.float64]  # (tallest panel,)


def empty_model() -> SegmentedModel:
    """A body of nothing: the least that kernels can be laid out for."""

    def none(n: int = 0) -> NDArray[np.int64]:
        return np.zeros(n, np.int64)

    rows, empty, square = SparseRows(none(1), none(), np.zeros(0)), np.zeros(0), np.zeros((0, 0))
    return SegmentedModel(
        1.0, 0.0, empty, 0.0, 0.0, rows, rows, none(2), empty, none(), no_elimination(), empty, rows, square,
        rows, square, square, np.zeros((0, 3)), np.zeros((3, 0)),
    )  # fmt: skip


def make_state(model: SegmentedModel) -> SegmentedState:
    """At rest."""
    n, c = int(model.segment_start[-1]), len(model.coupling_factor)
    return SegmentedState(np.zeros(n), np.zeros(n), np.zeros(c))


def make_work(model: SegmentedModel) -> SegmentedWork:
    """Scratch for `free`, `apply` and `advance`."""
    n, c, m = int(model.segment_start[-1]), len(model.coupling_factor), model.factored.size
    heights = np.diff(model.symbolic.column) + np.diff(model.symbolic.row_ptr)
    return SegmentedWork(
        np.zeros(n), np.zeros(n), np.zeros(c), np.zeros(n), np.zeros(c), np.zeros(m), np.zeros(m),
        np.zeros(3 * int(heights.max(initial=0))),
    )  # fmt: skip


@fast_kernel
def _combine(a, x, y):
    """y = a^T x for the (count, length) matrix in the flat array a.

    Column by column and four at a time: vectorised without another order of summation, at the speed of BLAS.
    """
    length, i, p = y.size, 0, 0
    y[:] = 0.0
    while i + 4 <= x.size:
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        a0, a1, a2 = a[p : p + length], a[p + length : p + 2 * length], a[p + 2 * length : p + 3 * length]
        a3 = a[p + 3 * length : p + 4 * length]
        for j in range(length):
            y[j] += a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
        i += 4
        p += 4 * length
    while i < x.size:
        x0, a0 = x[i], a[p : p + length]
        for j in range(length):
            y[j] += a0[j] * x0
        i += 1
        p += length


@fast_kernel
def _solve_cholesky(factor, r):
    """r <- (L L^T)^-1 r. An explicit inverse costs as much and leaves a hundred times the residual, which is
    energy lost in the coupling."""
    for j in range(r.size):
        r[j] /= factor[j, j]
        for i in range(j + 1, r.size):
            r[i] -= factor[j, i] * r[j]
    for j in range(r.size - 1, -1, -1):
        r[j] /= factor[j, j]
        for i in range(j):
            r[i] -= factor[j, i] * r[j]


@kernel
def _row_dot(rows, i, x):
    total = 0.0
    for p in range(rows.start[i], rows.start[i + 1]):
        total += rows.value[p] * x[rows.column[p]]
    return total


@kernel
def _divide(model, work, b, out):
    """out = Mh^-1 b (n,)."""
    give, factored = model.give, model.factored
    for i in range(give.size):
        out[i] = give[i] * b[i]
    for k in range(factored.size):
        work.right[k] = b[factored[k]]
    if factored.size > 0:
        solve_one(model.symbolic, model.panels, work.right, work.right, work.between, work.panel)
    for k in range(factored.size):
        out[factored[k]] = work.right[k]


@kernel
def _respond(model, work, b, vh, coupling):
    """vh = Mh^-1 (b + H^T lambda) with lambda = S^-1 (coupling - H Mh^-1 b) in its place; b is spent."""
    H = model.H
    _divide(model, work, b, vh)
    if coupling.size == 0:
        return
    for k in range(coupling.size):
        coupling[k] -= _row_dot(H, k, vh)
    _solve_cholesky(model.coupling_factor, coupling)
    for k in range(coupling.size):
        for p in range(H.start[k], H.start[k + 1]):
            b[H.column[p]] += H.value[p] * coupling[k]
    _divide(model, work, b, vh)


@kernel
def free(model, state, work):
    """v_f of (14) into work.vh, and lambda without contact into work.coupling."""
    T, b, coupling = model.step, work.b, work.coupling
    for i in range(b.size):
        b[i] = 2.0 / T * _row_dot(model.M, i, state.v) - _row_dot(model.K, i, state.x)
    if coupling.size > 0:
        stretch = model.coupling_stiffness / (model.coupling_damping + 0.5 * T * model.coupling_stiffness)
        for k in range(coupling.size):
            coupling[k] = -stretch * state.xe[k]
    _respond(model, work, b, work.vh, coupling)


@kernel
def add_point_force(nodes, weights, force, forces):
    """Share a force (3,) [N] on a barycentric point out to the contact nodes, forces (k, 3) [N]."""
    for a in range(3):
        for i in range(3):
            forces[nodes[a], i] += weights[a] * force[i]


@kernel
def apply(model, work, forces):
    """Add to work.vh what forces (k, 3) [N] on the contact nodes do: A f of (14); and to lambda."""
    load, surface, any_force = work.b, model.surface, False
    load[:] = 0.0
    for a in range(forces.shape[0]):
        for i in range(3):
            f, row = forces[a, i], 3 * a + i
            if f != 0.0:
                any_force = True
                for p in range(surface.start[row], surface.start[row + 1]):
                    load[surface.column[p]] += surface.value[p] * f
    if not any_force:
        return
    work.pulled[:] = 0.0
    _respond(model, work, load, work.moved, work.pulled)
    for i in range(work.vh.size):
        work.vh[i] += work.moved[i]
    for k in range(work.coupling.size):
        work.coupling[k] += work.pulled[k]


@kernel
def advance(model, state, work):
    """End the step: x+ = x + T vh, v+ = 2 vh - v, and likewise what couplings are stretched."""
    T = model.step
    s = model.coupling_damping + 0.5 * T * model.coupling_stiffness
    for k in range(work.coupling.size):
        state.xe[k] -= T * (work.coupling[k] + model.coupling_stiffness * state.xe[k]) / s
    for i in range(work.vh.size):
        state.x[i] += T * work.vh[i]
        state.v[i] = 2.0 * work.vh[i] - state.v[i]


@kernel
def surface_values(model, field, out):
    """A field at the contact nodes, out (k, 3), from coordinates (n,), such as x, v or vh."""
    columns = model.surface_columns
    if columns.size > 0:
        _combine(view_flat(columns), field[: columns.shape[0]], view_flat(out))
        return
    for a in range(out.shape[0]):
        for i in range(3):
            out[a, i] = _row_dot(model.surface, 3 * a + i, field)


@kernel
def point_value(model, field, nodes, weights, out):
    """A field at a barycentric point, out (3,): nodes (3,) counted within the contact nodes, weights (3,)."""
    for i in range(3):
        out[i] = 0.0
        for a in range(3):
            out[i] += weights[a] * _row_dot(model.surface, 3 * nodes[a] + i, field)


@kernel
def point_compliance(model, nodes_a, weights_a, nodes_b, weights_b, out):
    """vh at point a per force at point b [m/(N s)], out (3, 3), world axes: block of J_s A J_s^T (24)."""
    for i in range(3):
        for j in range(3):
            total = 0.0
            for a in range(3):
                for b in range(3):
                    total += (
                        weights_a[a] * weights_b[b] * model.compliance[3 * nodes_a[a] + i, 3 * nodes_b[b] + j]
                    )
            out[i, j] = total


@kernel
def energies(model, state, out):
    """Kinetic and elastic energy of each segment [J], out (segments + 1, 2); last, of the coupling.

    Returns their sum: E of proposition 1, with the 1/2 that (22) leaves out.
    """
    out[:] = 0.0
    segments = model.segment_start.size - 1
    for s in range(segments):
        for i in range(model.segment_start[s], model.segment_start[s + 1]):
            out[s, 0] += 0.5 * state.v[i] * _row_dot(model.M, i, state.v)
            out[s, 1] += 0.5 * state.x[i] * _row_dot(model.K, i, state.x)
    for k in range(state.xe.size):
        out[segments, 1] += 0.5 * model.coupling_stiffness * state.xe[k] ** 2
    return out.sum()


@kernel
def dissipated(model, state, work):
    """Energy that D and d_c take in the present step [J]; to be asked before `advance`."""
    T, vh = model.step, work.vh
    s = model.coupling_damping + 0.5 * T * model.coupling_stiffness
    power = 0.0
    for i in range(vh.size):
        if model.alpha > 0.0 or model.beta[i] > 0.0:
            power += vh[i] * (
                model.alpha * _row_dot(model.M, i, vh) + model.beta[i] * _row_dot(model.K, i, vh)
            )
    for k in range(state.xe.size):
        ve = (work.coupling[k] + model.coupling_stiffness * state.xe[k]) / s
        power += model.coupling_damping * ve * ve
    return T * power


@kernel
def floor_force(model, state, work, out):
    """Force of the body on its clamped nodes in the present step [N], out (3,); before `advance`.

    -(M_ca a + D_ca vh + K_ca xh) summed over those nodes, for (29); M_ca is zero, the mass being lumped.
    """
    for i in range(3):
        out[i] = 0.0
        for j in range(work.vh.size):
            out[i] -= model.base[i, j] * (state.x[j] + (0.5 * model.step + model.beta[j]) * work.vh[j])
