"""Cutting a linear body into segments and joining them again (002, III); run by physics.reduction.segments.

Unreduced segments are joined node by node and tend to the whole body as k_c grows. Reduced ones joined so
would lock: each basis follows only some shapes of the interface, and a large k_c admits none but those that
both follow (a beam of orders 6 and 25 kept 4% of its compliance at k_c = 1e12 N/m). Therefore the springs
act, as in mortar methods, on the gap's components in the interface shapes of the smaller of the two bases:
the same beam keeps 97%, at any k_c from 1e6 N/m on.
"""

from collections.abc import Sequence

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.passive_midpoint import require_step
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.fem.elimination import Symbolic, analyse, no_elimination
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import lower_blocks
from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import Basis, LinearModel, linear_model
from palpo.physics.reduction.segments import SegmentedModel, SparseRows

RANK = 1e-9
"""Interface shapes of a basis below this share of the largest are rounding."""

HELD = 1e-6
"""A rigid motion that opens the couplings by less than this share of the one that opens them most is free."""

DENSE = 0.25
"""Share of a matrix's entries from which on all of them, in order, cost less than those that are not zero."""

RIGID_MOTIONS = 6
"""Of a floating segment; so many interface shapes it takes to hold one."""


def cut(mesh: SolidMesh, material: Material, clamped: ArrayLike, segment_of: ArrayLike) -> list[LinearModel]:
    """One model a segment, from the segment of each element (m,) as physics.reduction.static_modes gives it.

    Raises InputError for a segment without elements or without free nodes.
    """
    cells, segment_of = mesh.cells, np.asarray(segment_of, dtype=np.int64)
    if segment_of.shape != (len(cells),) or segment_of.min() < 0:
        raise InputError(
            f"segments of elements have shape {segment_of.shape} and least {segment_of.min(initial=0)}, "
            f"expected ({len(cells)},) and 0."
        )
    models = []
    for i in range(int(segment_of.max()) + 1):
        elements = np.flatnonzero(segment_of == i)
        if not len(np.setdiff1d(cells[elements], clamped)):
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
    mesh: SolidMesh,
    models: Sequence[LinearModel],
    contact: ArrayLike,
    step: float,
    coupling_stiffness: float = 0.0,
    coupling_damping: float = 0.0,
    bases: Sequence[Basis | None] | None = None,
    settling: float = 0.0,
) -> SegmentedModel:
    """The run-time data of a body's segments; models and bases (None: not reduced) in the same order.

    contact: nodes of the mesh, all of them in segment 0, where forces may act and positions are wanted, (k,).
    step: T [s]. coupling_stiffness [N/m] and coupling_damping [N s/m] act at each coupling node.
    settling: share of `unresolved_damping` that reduced segments have [-].
    Raises InputError for segments without coupling, a contact node that is not free in segment 0, and
    couplings that leave a segment free to move rigidly.
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
    alpha = models[0].alpha
    H = _coupling_rows(models, maps, [b is not None for b in bases])
    _require_held(mesh, models, bases, H)
    starts = np.concatenate([[0], np.cumsum([m.shape[1] for m in maps])])
    n, n_0, c = int(starts[-1]), int(starts[1]), H.shape[0]
    middle = _Middle(models, bases, starts, step, settling)

    GT = middle.divide(H.T.toarray())
    S = H @ GT
    L = sl.cholesky(0.5 * (S + S.T) + np.eye(c) / s, lower=True) if c else np.zeros((0, 0))
    surface = sp.csr_array(maps[0][models[0].dofs_of(contact)])
    load = np.zeros((n, surface.shape[0]))
    load[:n_0] = surface.T.toarray()
    compliance = surface @ middle.divide(load)[:n_0]
    if c:
        pulled = surface @ GT[:n_0]
        compliance -= pulled @ sl.cho_solve((L, True), pulled.T)
    base = np.hstack([(m.base @ v).toarray() for m, v in zip(models, maps, strict=True)])
    return SegmentedModel(
        step=float(step),
        alpha=float(alpha),
        beta=middle.beta,
        coupling_stiffness=float(coupling_stiffness),
        coupling_damping=float(coupling_damping),
        M=_rows(sp.block_diag(masses)),
        K=_rows(sp.block_diag(stiffnesses)),
        segment_start=starts,
        give=middle.give,
        factored=middle.factored,
        symbolic=middle.symbolic,
        panels=middle.panels,
        H=_rows(H),
        coupling_factor=np.ascontiguousarray(L + np.tril(L, -1).T),
        surface=_rows(surface),
        surface_columns=_columns(surface),
        compliance=np.ascontiguousarray(0.5 * (compliance + compliance.T)),
        rest=np.ascontiguousarray(mesh.nodes[contact], dtype=np.float64),
        base=np.ascontiguousarray(base),
    )


def unresolved_damping(stiffness: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """What is added to beta of vibrations of a reduced segment that a step T is too long for [s], shape (n,).

        beta_i = (T / 2) y / (1 + y),   y = (w_i T / 2)^2

    stiffness: w_i^2 [1/s2]. The midpoint rule turns the sign of a vibration of w T >> 2 from step to step and
    takes nothing from it: prongs that have clicked chatter on what they slide on. With T / 2 the spring of
    such a vibration acts at the end of the step, where it is at rest (its velocity at the ends of steps still
    changes sign, about no motion); the share is small, (w T / 2)^2, of those that a step follows. It only
    takes energy, and nothing from what stands still.
    """
    y = 0.25 * step**2 * stiffness
    return 0.5 * step * y / (1.0 + y)


class _Middle:
    """Mh = 2 M / T + D + K T / 2 of all segments (4): diagonal where reduced, else by its sparse factor.

    beta, give, factored, symbolic, panels: as SegmentedModel has them.
    """

    def __init__(
        self,
        models: Sequence[LinearModel],
        bases: Sequence[Basis | None],
        starts: NDArray[np.int64],
        step: float,
        settling: float,
    ) -> None:
        of_mass, of_stiffness = 2.0 / step + models[0].alpha, models[0].beta + 0.5 * step
        self.give = np.zeros(int(starts[-1]))
        rows, columns, blocks, masses, own = [], [], [], [], [np.zeros(0, np.int64)]
        self.beta = np.full(int(starts[-1]), models[0].beta)
        nodes = 0
        for model, basis, first in zip(models, bases, starts[:-1], strict=True):
            if basis is not None:
                span = slice(first, first + basis.order)
                self.beta[span] += settling * unresolved_damping(basis.stiffness, step)
                self.give[span] = 1.0 / (of_mass + (self.beta[span] + 0.5 * step) * basis.stiffness)
                continue
            i, j, block = lower_blocks(model.K, np.arange(model.nodes.size))
            rows.append(nodes + i)
            columns.append(nodes + j)
            blocks.append(block)
            masses.append(np.where(i == j, model.M.diagonal()[3 * i], 0.0))
            own.append(np.arange(first, first + model.n_dof))
            nodes += model.nodes.size
        self.factored = np.concatenate(own).astype(np.int64)
        self.symbolic, self.panels, self.factor = no_elimination(), np.zeros(0), None
        if nodes:
            pattern = analyse(nodes, np.concatenate(rows), np.concatenate(columns))
            self.symbolic = Symbolic(*map(np.ascontiguousarray, pattern))  # as compiled code expects
            self.factor = CholeskyFactor(self.symbolic)
            self.factor.refactor(np.concatenate(blocks), np.concatenate(masses), of_stiffness, of_mass)
            self.panels = self.factor.panels

    def divide(self, b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mh^-1 b, shape (n, k)."""
        out = self.give[:, None] * b
        if self.factor is not None and b.shape[1]:
            out[self.factored] = self.factor.solve_many(np.ascontiguousarray(b[self.factored]))
        return out


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


def _coupling_rows(
    models: Sequence[LinearModel], maps: Sequence[sp.csr_array], reduced: Sequence[bool]
) -> sp.csr_array:
    """H (c, n): the copy of each shared node in the lowest segment minus each other copy."""
    owner = np.full(1 + max(m.nodes[-1] for m in models), len(models))
    for i in reversed(range(len(models))):
        owner[models[i].nodes] = i
    blocks = []
    for j, model in enumerate(models):
        for i in np.setdiff1d(owner[model.nodes], j):
            shared = model.nodes[owner[model.nodes] == i]
            traces = {k: maps[k][models[k].dofs_of(shared)] for k in (int(i), j)}
            smaller = min((k for k in traces if reduced[k]), key=lambda k: maps[k].shape[1], default=None)
            if smaller is not None:
                shapes, size, _ = np.linalg.svd(traces[smaller].toarray(), full_matrices=False)
                shapes = shapes[:, size > RANK * size[0]]
                traces = {k: sp.csr_array(shapes.T @ trace) for k, trace in traces.items()}
            rows = traces[j].shape[0]
            empty = [sp.csr_array((rows, m.shape[1])) for m in maps]
            empty[int(i)], empty[j] = traces[int(i)], -traces[j]
            blocks.append(sp.hstack(empty))
    return sp.csr_array(sp.vstack(blocks) if blocks else (0, sum(m.shape[1] for m in maps)))


def _require_held(
    mesh: SolidMesh, models: Sequence[LinearModel], bases: Sequence[Basis | None], H: sp.csr_array
) -> None:
    """Raise InputError if couplings H (c, n) let unclamped segments move rigidly, but for all as one."""
    if len(models) == 1:
        return
    motions, free = [], 0
    for model, basis in zip(models, bases, strict=True):
        floating = not model.base.nnz
        x = mesh.nodes[model.nodes] - mesh.nodes.mean(axis=0)
        turns = np.cross(np.eye(3)[:, None], x / np.linalg.norm(x, axis=1).max()).reshape(3, -1).T
        rigid = np.hstack([np.tile(np.eye(3), (len(x), 1)), turns])[:, : RIGID_MOTIONS * floating]
        motions.append(rigid if basis is None else basis.vectors.T @ (model.M @ rigid))
        free += RIGID_MOTIONS * floating
    opened = np.linalg.svd(H @ sl.block_diag(*motions), compute_uv=False)
    loose = free - np.count_nonzero(opened > HELD * opened.max(initial=0.0))
    if loose > (RIGID_MOTIONS if free == RIGID_MOTIONS * len(models) else 0):
        orders = [model.n_dof if b is None else b.order for model, b in zip(models, bases, strict=True)]
        raise InputError(
            f"segments of orders {orders} are joined so that {loose} of their rigid motions meet no coupling:"
            f" give each at least {RIGID_MOTIONS} columns and neighbours three nodes in common."
        )


def _rows(matrix: sp.sparray) -> SparseRows:
    csr = sp.csr_array(matrix)
    return SparseRows(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data.astype(np.float64))


def _columns(matrix: sp.csr_array) -> NDArray[np.float64]:
    """Its transpose, all entries in order; (0, 0) where most of them are zero."""
    if matrix.nnz < DENSE * np.prod(matrix.shape):
        return np.zeros((0, 0))
    return np.ascontiguousarray(matrix.T.toarray())
