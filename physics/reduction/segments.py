"""Segments of a linear body, joined by springs and dampers that are eliminated (002, III; EQUATIONS.md, 3).

    M_i x_i'' + D_i x_i' + K_i x_i = H_i^T lambda_i + f_i                                              (10)
    Mh_i vh_i = b_i + H_i^T lambda_i + f_i,   b_i = 2 M_i v_i / T - K_i x_i                            (11)
    lambda = -d_c ve - k_c xe,   ve = H vh,   xeh = xe + T ve / 2,   H = (H_1, -H_2, ...)          (12, 13)

A node of several segments has a copy in each; H takes the differences between the copy in the lowest segment
and the others. In compliance form, with s = d_c + k_c T / 2,

    S lambda = -(H Mh^-1 (b + f) + (k_c / s) xe),   S = 1 / s + H Mh^-1 H^T

which keeps the energy where the Schur complement in velocities loses it as k_c grows, and f, which acts on
segment 0 only, moves everything by a constant matrix: vh = A f + v_f (14). xe is a state of its own:
ve = -(lambda + k_c xe) / s has no cancellation. Reduced segments x_i = V_i z_i take the same steps in z
(15-18), where V^T M V = 1 and V^T K V is diagonal. If H then has more rows than columns, the rows are turned
so that those beyond the rank vanish, which changes nothing.

A tick: `free`, contact, `apply`, `advance`. One kernel for full, segmented and reduced bodies alike.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numba import njit
from numpy.typing import ArrayLike, NDArray

from physics.dynamics.passive_midpoint import midpoint_inverse, require_step
from physics.errors import InputError
from physics.fem.cholesky import FAST
from physics.fem.material import Material
from physics.mesh.tet import TetMesh
from physics.reduction.linear_model import Basis, LinearModel, linear_model

RANK = 1e-12
"""Singular values of H below this share of the largest are rounding."""


class Rows(NamedTuple):
    """A sparse matrix, row by row."""

    start: NDArray[np.int64]  # (m + 1,)
    column: NDArray[np.int64]  # (entries,)
    value: NDArray[np.float64]  # (entries,)


class SegmentedModel(NamedTuple):
    """Constants of a joined body over its n coordinates: nodal displacements, or z, segment by segment.

    n_0 are the contact segment's, c the coupling's rows, k the contact nodes.
    """

    step: float  # T [s]
    alpha: float  # Rayleigh damping [1/s], [s]
    beta: float
    coupling_stiffness: float  # k_c [N/m]
    coupling_damping: float  # d_c [N s/m]
    M: Rows  # (n, n)
    K: Rows  # (n, n)
    segment_start: NDArray[np.int64]  # (segments + 1,) first coordinate of each segment
    inverse: NDArray[np.float64]  # Mh_i^-1, one after the other, each row by row
    inverse_start: NDArray[np.int64]  # (segments + 1,)
    H: Rows  # (c, n)
    row_start: NDArray[np.int64]  # (segments + 1,)
    row: NDArray[np.int64]  # rows of H that concern each segment
    gather: NDArray[np.float64]  # Mh_i^-1 H_i^T over those rows, one after the other
    gather_start: NDArray[np.int64]  # (segments + 1,)
    coupling_factor: NDArray[np.float64]  # (c, c) L and its mirror image, S = L L^T
    response: NDArray[np.float64]  # (n_0, n) rows of A: vh per load on a coordinate of segment 0
    coupling_response: NDArray[np.float64]  # (n_0, c) lambda per load on a coordinate of segment 0
    surface: Rows  # (3 k, n_0) displacement of the contact nodes
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
    local: NDArray[np.float64]  # (c,) what one segment adds to the rows that concern it
    load: NDArray[np.float64]  # (n_0,) contact forces on the coordinates of segment 0


def cut(mesh: TetMesh, material: Material, clamped: ArrayLike, segment_of: ArrayLike) -> list[LinearModel]:
    """One model a segment, from the segment of each element (m,) as physics.reduction.partition gives it.

    Raises InputError for a segment without elements or without free nodes.
    """
    segment_of = np.asarray(segment_of, dtype=np.int64)
    if segment_of.shape != (len(mesh.tets),) or segment_of.min() < 0:
        raise InputError(
            f"segments of elements have shape {segment_of.shape} and least {segment_of.min(initial=0)}, "
            f"expected ({len(mesh.tets)},) and 0."
        )
    models = []
    for i in range(int(segment_of.max()) + 1):
        elements = np.flatnonzero(segment_of == i)
        if not len(np.setdiff1d(mesh.tets[elements], clamped)):
            raise InputError(
                f"segment {i} has no free node ({elements.size} elements): leave its number out of the "
                "partition, or give it elements away from the clamped nodes."
            )
        models.append(linear_model(mesh, material, clamped, elements))
    return models


def coupling_nodes(models: Sequence[LinearModel]) -> list[NDArray[np.int64]]:
    """Nodes that each segment shares with others, ascending."""
    nodes, count = np.unique(np.concatenate([m.nodes for m in models]), return_counts=True)
    return [np.intersect1d(m.nodes, nodes[count > 1]) for m in models]


def join(
    mesh: TetMesh,
    models: Sequence[LinearModel],
    contact: ArrayLike,
    step: float,
    coupling_stiffness: float = 0.0,
    coupling_damping: float = 0.0,
    bases: Sequence[Basis | None] | None = None,
) -> SegmentedModel:
    """The run-time data of a body's segments; models and bases (None: not reduced) in the same order.

    contact: nodes of the mesh, all of them in segment 0, where forces may act and positions are wanted, (k,).
    step: T [s]. coupling_stiffness [N/m] and coupling_damping [N s/m] act at each coupling node.
    Raises InputError for segments without coupling, and a contact node that is not free in segment 0.
    """
    require_step(step)
    contact = np.asarray(contact, dtype=np.int64)
    stray = np.setdiff1d(contact, models[0].nodes)
    if stray.size:
        raise InputError(
            f"contact node {stray[0]} is not a free node of segment 0, the contact segment: "
            "partition so that segment 0 holds every contact node, and clamp none."
        )
    bases = [None] * len(models) if bases is None else list(bases)
    if len(bases) != len(models):
        raise InputError(f"{len(bases)} bases are given for {len(models)} segments.")
    s = coupling_damping + 0.5 * step * coupling_stiffness
    if len(models) > 1 and not (s > 0.0 and coupling_damping >= 0.0 and coupling_stiffness >= 0.0):
        raise InputError(
            f"{len(models)} segments are joined by k_c = {coupling_stiffness:g} N/m and "
            f"d_c = {coupling_damping:g} N s/m, of which none may be negative nor both zero."
        )
    maps, masses, stiffnesses = [], [], []
    for m, basis in zip(models, bases, strict=True):
        maps.append(sp.eye_array(m.n_dof, format="csr") if basis is None else sp.csr_array(basis.vectors))
        masses.append(m.M if basis is None else sp.eye_array(basis.order))
        stiffnesses.append(m.K if basis is None else sp.diags_array(basis.stiffness))
    alpha, beta = models[0].alpha, models[0].beta
    H = _coupling_rows(models, maps)
    starts = np.concatenate([[0], np.cumsum([m.shape[1] for m in maps])])
    n, n_0, c = int(starts[-1]), int(starts[1]), H.shape[0]

    inverses = [
        midpoint_inverse(M, alpha * M + beta * K, K, step) for M, K in zip(masses, stiffnesses, strict=True)
    ]
    rows, gathers = [], []
    GT = np.zeros((n, c))
    for i, inverse in enumerate(inverses):
        span = slice(starts[i], starts[i + 1])
        h = H[:, span]
        rows.append(np.unique(h.nonzero()[0]))
        GT[span] = (h @ inverse).T
        gathers.append(GT[span][:, rows[i]])
    S = H @ GT
    L = sl.cholesky(0.5 * (S + S.T) + np.eye(c) / s, lower=True) if c else np.zeros((0, 0))
    lambda_response = -sl.cho_solve((L, True), GT[:n_0].T).T
    response = lambda_response @ GT.T
    response[:, :n_0] += inverses[0]
    surface = sp.csr_array(maps[0][models[0].dofs_of(contact)])
    compliance = surface @ (surface @ response[:, :n_0]).T  # response is symmetric there
    base = np.hstack([(m.base @ v).toarray() for m, v in zip(models, maps, strict=True)])
    return SegmentedModel(
        step=float(step),
        alpha=float(alpha),
        beta=float(beta),
        coupling_stiffness=float(coupling_stiffness),
        coupling_damping=float(coupling_damping),
        M=_rows(sp.block_diag(masses)),
        K=_rows(sp.block_diag(stiffnesses)),
        segment_start=starts,
        inverse=_flat(inverses),
        inverse_start=_starts(inverses),
        H=_rows(H),
        row_start=_starts(rows),
        row=np.concatenate(rows),
        gather=_flat(gathers),
        gather_start=_starts(gathers),
        coupling_factor=L + np.tril(L, -1).T,
        response=np.ascontiguousarray(response),
        coupling_response=np.ascontiguousarray(lambda_response),
        surface=_rows(surface),
        compliance=np.ascontiguousarray(0.5 * (compliance + compliance.T)),
        rest=np.ascontiguousarray(mesh.nodes[contact], dtype=np.float64),
        base=np.ascontiguousarray(base),
    )


def make_state(model: SegmentedModel) -> SegmentedState:
    """At rest."""
    n, c = int(model.segment_start[-1]), len(model.coupling_factor)
    return SegmentedState(np.zeros(n), np.zeros(n), np.zeros(c))


def make_work(model: SegmentedModel) -> SegmentedWork:
    """Scratch for `free`, `apply` and `advance`."""
    n, c = int(model.segment_start[-1]), len(model.coupling_factor)
    return SegmentedWork(
        np.zeros(n), np.zeros(n), np.zeros(c), np.zeros(c), np.zeros(model.response.shape[0])
    )


def nodal_map(models: Sequence[LinearModel], bases: Sequence[Basis | None], n_nodes: int) -> sp.csr_array:
    """Matrix (3 n_nodes, n) from coordinates to displacements of each node's copy in the lowest segment."""
    taken = np.zeros(n_nodes, dtype=bool)
    blocks = []
    for model, basis in zip(models, bases, strict=True):
        own = np.repeat(~taken[model.nodes], 3).astype(np.float64)
        taken[model.nodes] = True
        dofs = (3 * model.nodes[:, None] + np.arange(3)).ravel()
        place = sp.csr_array((own, (dofs, np.arange(dofs.size))), shape=(3 * n_nodes, dofs.size))
        blocks.append(place if basis is None else sp.csr_array(place @ basis.vectors))
    return sp.csr_array(sp.hstack(blocks))


def coordinates_of(
    models: Sequence[LinearModel], bases: Sequence[Basis | None], field: NDArray
) -> NDArray[np.float64]:
    """Coordinates (n,) of a nodal field (n_nodes, 3); of reduced segments, those nearest in the mass norm."""
    parts = []
    for model, basis in zip(models, bases, strict=True):
        x = field[model.nodes].ravel()
        parts.append(x if basis is None else basis.vectors.T @ (model.M @ x))
    return np.concatenate(parts)


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_product(a, start, count, length, x, x_start, y, y_start):
    """y[y_start:] += a^T x[x_start:] for the (count, length) matrix at `start` of the flat array a.

    Column by column and four at a time: vectorised without another order of summation, at the speed of BLAS.
    """
    i = 0
    while i + 4 <= count:
        p = start + i * length
        x0, x1, x2, x3 = x[x_start + i], x[x_start + i + 1], x[x_start + i + 2], x[x_start + i + 3]
        for j in range(length):
            y[y_start + j] += (
                a[p + j] * x0
                + a[p + length + j] * x1
                + a[p + 2 * length + j] * x2
                + a[p + 3 * length + j] * x3
            )
        i += 4
    while i < count:
        p, x0 = start + i * length, x[x_start + i]
        for j in range(length):
            y[y_start + j] += a[p + j] * x0
        i += 1


@njit(nogil=True, cache=True, fastmath=FAST)
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


@njit(nogil=True, cache=True)
def _row_dot(rows, i, x):
    total = 0.0
    for p in range(rows.start[i], rows.start[i + 1]):
        total += rows.value[p] * x[rows.column[p]]
    return total


@njit(nogil=True, cache=True)
def free(model, state, work):
    """v_f of (14) into work.vh, and lambda without contact into work.coupling."""
    T = model.step
    x, v, b, vh, coupling = state.x, state.v, work.b, work.vh, work.coupling
    c = coupling.size
    for i in range(b.size):
        b[i] = 2.0 / T * _row_dot(model.M, i, v) - _row_dot(model.K, i, x)
        vh[i] = 0.0
    if c > 0:
        stretch = model.coupling_stiffness / (model.coupling_damping + 0.5 * T * model.coupling_stiffness)
        for k in range(c):
            coupling[k] = -stretch * state.xe[k]
        for s in range(model.segment_start.size - 1):
            first, rows = model.segment_start[s], model.row_start[s + 1] - model.row_start[s]
            for k in range(rows):
                work.local[k] = 0.0
            _add_product(
                model.gather, model.gather_start[s], model.segment_start[s + 1] - first, rows, b, first,
                work.local, 0,
            )  # fmt: skip
            for k in range(rows):
                coupling[model.row[model.row_start[s] + k]] -= work.local[k]
        _solve_cholesky(model.coupling_factor, coupling)
        for k in range(c):
            for p in range(model.H.start[k], model.H.start[k + 1]):
                b[model.H.column[p]] += model.H.value[p] * coupling[k]
    for s in range(model.segment_start.size - 1):
        first = model.segment_start[s]
        size = model.segment_start[s + 1] - first
        _add_product(model.inverse, model.inverse_start[s], size, size, b, first, vh, first)


@njit(nogil=True, cache=True)
def apply(model, work, nodes, weights, forces, count):
    """Add to work.vh what `count` contact forces do: A f of (14); and to lambda.

    nodes (m, 3): contact nodes, counted within them, of the triangle that each force acts on; weights (m, 3):
    barycentric; forces (m, 3) [N], world axes.
    """
    load = work.load
    load[:] = 0.0
    for j in range(count):
        for a in range(3):
            for i in range(3):
                row, f = 3 * nodes[j, a] + i, weights[j, a] * forces[j, i]
                for p in range(model.surface.start[row], model.surface.start[row + 1]):
                    load[model.surface.column[p]] += model.surface.value[p] * f
    n, c = work.vh.size, work.coupling.size
    response, coupling_response = model.response.ravel(), model.coupling_response.ravel()
    for d in range(load.size):
        if load[d] != 0.0:
            _add_product(response, d * n, 1, n, load, d, work.vh, 0)
            _add_product(coupling_response, d * c, 1, c, load, d, work.coupling, 0)


@njit(nogil=True, cache=True)
def advance(model, state, work):
    """End the step: x+ = x + T vh, v+ = 2 vh - v, and likewise what couplings are stretched."""
    T = model.step
    s = model.coupling_damping + 0.5 * T * model.coupling_stiffness
    for k in range(work.coupling.size):
        state.xe[k] -= T * (work.coupling[k] + model.coupling_stiffness * state.xe[k]) / s
    for i in range(work.vh.size):
        state.x[i] += T * work.vh[i]
        state.v[i] = 2.0 * work.vh[i] - state.v[i]


@njit(nogil=True, cache=True)
def surface_values(model, field, out):
    """A field at the contact nodes, out (k, 3), from coordinates (n,), such as x, v or vh."""
    for a in range(out.shape[0]):
        for i in range(3):
            out[a, i] = _row_dot(model.surface, 3 * a + i, field)


@njit(nogil=True, cache=True)
def point_value(model, field, nodes, weights, out):
    """A field at a barycentric point, out (3,): nodes (3,) counted within the contact nodes, weights (3,)."""
    for i in range(3):
        out[i] = 0.0
        for a in range(3):
            out[i] += weights[a] * _row_dot(model.surface, 3 * nodes[a] + i, field)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def dissipated(model, state, work):
    """Energy that D and d_c take in the present step [J]; to be asked before `advance`."""
    T, vh = model.step, work.vh
    s = model.coupling_damping + 0.5 * T * model.coupling_stiffness
    power = 0.0
    if model.alpha > 0.0 or model.beta > 0.0:
        for i in range(vh.size):
            power += vh[i] * (model.alpha * _row_dot(model.M, i, vh) + model.beta * _row_dot(model.K, i, vh))
    for k in range(state.xe.size):
        ve = (work.coupling[k] + model.coupling_stiffness * state.xe[k]) / s
        power += model.coupling_damping * ve * ve
    return T * power


@njit(nogil=True, cache=True)
def floor_force(model, state, work, out):
    """Force of the body on its clamped nodes in the present step [N], out (3,); before `advance`.

    -(M_ca a + D_ca vh + K_ca xh) summed over those nodes, for (29); M_ca is zero, the mass being lumped.
    """
    for i in range(3):
        out[i] = 0.0
        for j in range(work.vh.size):
            out[i] -= model.base[i, j] * (state.x[j] + (0.5 * model.step + model.beta) * work.vh[j])


def _coupling_rows(models: Sequence[LinearModel], maps: Sequence[sp.csr_array]) -> sp.csr_array:
    """H (c, n): first copy minus each other copy of every shared node; of full rank if c exceeded n."""
    copies = np.concatenate([m.nodes for m in models])
    _, first, node = np.unique(copies, return_index=True, return_inverse=True)
    other = np.flatnonzero(first[node] != np.arange(copies.size))
    axes = np.arange(3)
    plus, minus = (3 * a[:, None] + axes for a in (first[node[other]], other))
    c = plus.size
    row = np.tile(np.arange(c), 2)
    column = np.concatenate([plus.ravel(), minus.ravel()])
    H = sp.csr_array((np.repeat([1.0, -1.0], c), (row, column)), shape=(c, 3 * copies.size))
    H = sp.csr_array(H @ sp.block_diag(maps, format="csr"))
    if c <= H.shape[1]:
        return H
    _, size, right = np.linalg.svd(H.toarray(), full_matrices=False)
    rank = int(np.count_nonzero(size > RANK * size[0]))
    return sp.csr_array(size[:rank, None] * right[:rank])


def _rows(matrix: sp.sparray) -> Rows:
    csr = sp.csr_array(matrix)
    return Rows(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data.astype(np.float64))


def _flat(blocks: Sequence[NDArray]) -> NDArray[np.float64]:
    return np.concatenate([b.ravel() for b in blocks])


def _starts(blocks: Sequence[NDArray]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([b.size for b in blocks])])
