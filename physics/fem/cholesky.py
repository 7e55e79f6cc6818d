"""Supernodal sparse Cholesky factor of a node-wise matrix whose pattern never changes.

The symbolic part (minimum degree order, elimination tree, supernodes) is done once per body. The numeric
part is right-looking over dense column-major panels, so that its inner loops run over contiguous memory; it
holds no interpreter lock, which lets the factors of two step sizes be built in two threads at once.
Source: Davis, Direct Methods for Sparse Linear Systems (SIAM 2006), chapters 4 and 7; amalgamation of
supernodes after Ashcraft & Grimes, The influence of relaxed supernode partitions (TOMS 1989).
"""

from typing import NamedTuple, NoReturn

import numpy as np
import qdldl
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.errors import InputError
from palpo.physics.kernels import fast_kernel, kernel

CHUNK = 32
"""Right-hand sides solved together: a row of them is four cache lines."""
STRIDE = 3 * 2**15 + 8
"""Rows of scratch lie this far apart: a constant, so that the compiler sees them apart and vectorises. It
bounds the height of a panel [freedoms] and takes no memory that is not touched."""


class Symbolic(NamedTuple):
    """Pattern of the factor; positions are the nodes in elimination order, freedoms 3 a node.

    order (n,): node at each position.  column (s+1,): first position of each supernode.
    row_ptr (s+1,), rows: positions below the supernode's own.  panel (s+1,): offset of its panel.
    seg_ptr (s+1,), seg_target, seg_begin, seg_end: runs of its rows that are columns of one later supernode;
    rel_ptr, rel: place in the target's panel of each row from seg_begin on.
    block_offset, block_ld, block_mirrored (n_blocks,): where a block of the matrix goes.
    """

    order: NDArray
    column: NDArray
    row_ptr: NDArray
    rows: NDArray
    panel: NDArray
    seg_ptr: NDArray
    seg_target: NDArray
    seg_begin: NDArray
    seg_end: NDArray
    rel_ptr: NDArray
    rel: NDArray
    block_offset: NDArray
    block_ld: NDArray
    block_mirrored: NDArray


def _minimum_degree(n: int, rows: NDArray, cols: NDArray) -> NDArray:
    graph = sp.coo_matrix((np.full(rows.size, -1.0), (rows, cols)), shape=(n, n))
    graph = graph + graph.T + 2.0 * n * sp.eye(n)
    return np.asarray(qdldl.Solver(sp.csc_matrix(graph)).factors()[2])


def _elimination(n: int, rows: NDArray, cols: NDArray, order: NDArray) -> tuple[NDArray, list[NDArray]]:
    """Parents and below-diagonal rows of each column of the factor for the given order."""
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    high, low = np.maximum(place[rows], place[cols]), np.minimum(place[rows], place[cols])
    off = high != low
    by_column = np.argsort(low[off], kind="stable")
    high, low = high[off][by_column], low[off][by_column]
    start = np.searchsorted(low, np.arange(n + 1))
    parent = np.full(n, -1)
    children: list[list[int]] = [[] for _ in range(n)]
    below: list[NDArray] = []
    for j in range(n):
        merged = np.unique(np.concatenate([high[start[j] : start[j + 1]], *(below[c] for c in children[j])]))
        below.append(merged[merged > j])
        if below[j].size:
            parent[j] = below[j][0]
            children[parent[j]].append(j)
    return parent, below


def _postorder(parent: NDArray) -> NDArray:
    """Columns so that each subtree is contiguous and the child with the longest column comes last."""
    n = parent.size
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for j in range(n):
        children[parent[j]].append(j)
    out: list[int] = []
    stack = [(r, False) for r in reversed(children[n])]
    while stack:
        node, done = stack.pop()
        if done:
            out.append(node)
        else:
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(children[node]))
    return np.array(out)


def _supernodes(parent: NDArray, below: list[NDArray]) -> list[tuple[int, int]]:
    """Ranges [first, last) of columns stored as one dense panel, merged where few zeros are added."""
    merged: list[list[int]] = []
    zeros: list[int] = []
    for j in range(parent.size):
        first, last, fill = j, j + 1, 0
        while merged and parent[merged[-1][1] - 1] == first:
            width, child = last - first, merged[-1][1] - merged[-1][0]
            tail = below[last - 1].size
            grown = child * (width + tail - below[first - 1].size) + fill + zeros[-1]
            size = (width + child) * (width + child + 1) // 2 + (width + child) * tail
            # a narrow panel wastes more in loop overhead than in zeros
            allowed = 0.35 if width + child <= 6 else 0.15 if width + child <= 16 else 0.05
            if grown > allowed * size:
                break
            first, fill = merged[-1][0], grown
            merged.pop()
            zeros.pop()
        merged.append([first, last])
        zeros.append(fill)
    return [(a, b) for a, b in merged]


def analyse(n: int, rows: NDArray, cols: NDArray, last: NDArray | None = None) -> Symbolic:
    """Symbolic factorisation for lower blocks (rows, cols) over n nodes of 3 freedoms.

    last (c,): distinct nodes that end the elimination, in this order: the end of the last panel is then the
    dense factor of their Schur complement.
    """
    if last is None:
        last = np.zeros(0, dtype=np.int64)
    # as a clique the last nodes stay together, at the root, in any postorder
    a, b = np.tril_indices(last.size, -1)
    high, low = np.concatenate([rows, last[a]]), np.concatenate([cols, last[b]])
    order = _minimum_degree(n, high, low)
    order = np.concatenate([order[~np.isin(order, last)], last])
    parent, below = _elimination(n, high, low, order)
    order = order[_postorder(parent)]
    parent, below = _elimination(n, high, low, order)
    ranges = _supernodes(parent, below)

    column = np.array([a for a, _ in ranges] + [n])
    owner = np.repeat(np.arange(len(ranges)), np.diff(column))
    tails = [below[b - 1] for _, b in ranges]
    row_ptr = np.concatenate([[0], np.cumsum([t.size for t in tails])])
    heights = np.diff(column) + np.diff(row_ptr)
    panel = np.concatenate([[0], np.cumsum(9 * np.diff(column) * heights)])

    segments: list[tuple[int, int, int]] = []
    seg_ptr, rel_ptr, rel = [0], [0], [np.zeros(0, dtype=np.int64)]
    for tail in tails:
        targets, begins = np.unique(owner[tail], return_index=True)
        for t, begin, end in zip(targets, begins, np.append(begins, tail.size)[1:], strict=True):
            segments.append((t, begin, end))
            member = tail[begin:]
            inside = np.searchsorted(tails[t], member) + column[t + 1] - column[t]
            rel.append(np.where(member < column[t + 1], member - column[t], inside))
            rel_ptr.append(rel_ptr[-1] + member.size)
        seg_ptr.append(len(segments))
    seg = np.array(segments, dtype=np.int32).reshape(-1, 3)

    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    high, low = np.maximum(place[rows], place[cols]), np.minimum(place[rows], place[cols])
    s = owner[low]
    inside = np.empty(rows.size, dtype=np.int64)
    for k in range(rows.size):
        t = s[k]
        own = high[k] < column[t + 1]
        inside[k] = (
            high[k] - column[t] if own else column[t + 1] - column[t] + np.searchsorted(tails[t], high[k])
        )
    ld = 3 * heights[s]
    offset = panel[s] + 3 * (low - column[s]) * ld + 3 * inside

    def i32(a: object) -> NDArray:
        return np.asarray(a, dtype=np.int32)

    return Symbolic(
        i32(order), i32(column), i32(row_ptr), i32(np.concatenate([*tails, np.zeros(0)])),
        panel.astype(np.int64), i32(seg_ptr), i32(seg[:, 0]), i32(seg[:, 1]), i32(seg[:, 2]), i32(rel_ptr),
        i32(np.concatenate(rel)), offset.astype(np.int64), i32(ld), place[rows] < place[cols],
    )  # fmt: skip


@kernel
def scatter(symbolic, stiffness, mass, stiffness_weight, mass_weight, panels):
    """panels = lower part of stiffness_weight K + mass_weight M, K as blocks (b, 9) and M as weights (b,)."""
    panels[:] = 0.0
    for k in range(mass.size):
        o, ld = symbolic.block_offset[k], symbolic.block_ld[k]
        m = mass_weight * mass[k]
        for i in range(3):
            for j in range(3):
                value = stiffness_weight * stiffness[k, 3 * i + j] + (m if i == j else 0.0)
                if symbolic.block_mirrored[k]:
                    panels[o + i * ld + j] = value
                else:
                    panels[o + j * ld + i] = value


@fast_kernel
def _products(panels, source, ld, count, out, length):
    """out[c STRIDE + r] = sum_k P[k, r] P[k, c], c < 3, r < length, k < count, a multiple of 3.

    P[k] is the column at source + k ld. Three by three columns at a time, so that an entry loaded serves
    three times.
    """
    out[:length] = 0.0
    out[STRIDE : STRIDE + length] = 0.0
    out[2 * STRIDE : 2 * STRIDE + length] = 0.0
    for k in range(0, count, 3):
        a = source + k * ld
        b, c = a + ld, a + 2 * ld
        a0, a1, a2 = panels[a], panels[a + 1], panels[a + 2]
        b0, b1, b2 = panels[b], panels[b + 1], panels[b + 2]
        c0, c1, c2 = panels[c], panels[c + 1], panels[c + 2]
        for r in range(length):
            x, y, z = panels[a + r], panels[b + r], panels[c + r]
            out[r] += a0 * x + b0 * y + c0 * z
            out[STRIDE + r] += a1 * x + b1 * y + c1 * z
            out[2 * STRIDE + r] += a2 * x + b2 * y + c2 * z


@fast_kernel
def _factor_node(panels, diagonal, ld, length):
    """Cholesky of three columns of a panel from their diagonal down; False if a pivot is not positive."""
    for c in range(3):
        column = diagonal + c * ld
        for k in range(c):
            other = diagonal + k * ld
            w = panels[other + c]
            for r in range(c, length):
                panels[column + r] -= w * panels[other + r]
        pivot = panels[column + c]
        if not pivot > 0.0:
            return False
        scale = 1.0 / np.sqrt(pivot)
        for r in range(c, length):
            panels[column + r] *= scale
    return True


@fast_kernel
def factorise(symbolic, panels, temp, count):
    """Turn the first `count` panels of a matrix into those of its Cholesky factor, in place.

    The later ones become those of the Schur complement. temp (3 STRIDE,): scratch. Returns 0, or 1 + the
    position of the first node whose pivot is not positive. Entries above the diagonal of a panel are never
    read and hold anything.
    """
    column, row_ptr, panel, rel = symbolic.column, symbolic.row_ptr, symbolic.panel, symbolic.rel
    for s in range(count):
        width = 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        base = panel[s]
        for c in range(0, width, 3):
            diagonal = base + c * ld + c
            if c > 0:
                _products(panels, base + c, ld, c, temp, ld - c)
                for i in range(3):
                    for r in range(ld - c):
                        panels[diagonal + i * ld + r] -= temp[i * STRIDE + r]
            if not _factor_node(panels, diagonal, ld, ld - c):
                return 1 + column[s] + c // 3
        for g in range(symbolic.seg_ptr[s], symbolic.seg_ptr[s + 1]):
            t, begin, end = symbolic.seg_target[g], symbolic.seg_begin[g], symbolic.seg_end[g]
            t_ld = 3 * (column[t + 1] - column[t] + row_ptr[t + 1] - row_ptr[t])
            for node in range(begin, end):
                first = width + 3 * node
                place = symbolic.rel_ptr[g] + node - begin
                _products(panels, base + first, ld, width, temp, ld - first)
                target = panel[t] + 3 * rel[place] * t_ld
                for k in range((ld - first) // 3):
                    row = target + 3 * rel[place + k]
                    for c in range(3):
                        for i in range(3):
                            panels[row + c * t_ld + i] -= temp[c * STRIDE + 3 * k + i]
    return 0


@fast_kernel
def solve_one(symbolic, panels, b, out, y, t):
    """out = A^-1 b for one right-hand side (3 n,); y (3 n,), t (tallest panel,): scratch; out may be b."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    n = symbolic.order.size
    for p in range(n):
        node = symbolic.order[p]
        for i in range(3):
            y[3 * p + i] = b[3 * node + i]
    for s in range(column.size - 1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        for r in range(width):
            t[r] = y[own + r]
        for r in range(width, ld):
            t[r] = 0.0
        for c in range(0, width, 3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p = t[c] / panels[c0 + c]
            q = (t[c + 1] - p * panels[c0 + c + 1]) / panels[c1 + c + 1]
            w = (t[c + 2] - p * panels[c0 + c + 2] - q * panels[c1 + c + 2]) / panels[c2 + c + 2]
            t[c], t[c + 1], t[c + 2] = p, q, w
            for r in range(c + 3, ld):
                t[r] -= p * panels[c0 + r] + q * panels[c1 + r] + w * panels[c2 + r]
        for r in range(width):
            y[own + r] = t[r]
        for k in range(row_ptr[s + 1] - row_ptr[s]):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                y[row + i] += t[width + 3 * k + i]
    for s in range(column.size - 2, -1, -1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        for r in range(width):
            t[r] = y[own + r]
        for k in range(row_ptr[s + 1] - row_ptr[s]):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                t[width + 3 * k + i] = y[row + i]
        for c in range(width - 3, -1, -3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p, q, w = t[c], t[c + 1], t[c + 2]
            for r in range(c + 3, ld):
                p -= panels[c0 + r] * t[r]
                q -= panels[c1 + r] * t[r]
                w -= panels[c2 + r] * t[r]
            w /= panels[c2 + c + 2]
            q = (q - w * panels[c1 + c + 2]) / panels[c1 + c + 1]
            p = (p - q * panels[c0 + c + 1] - w * panels[c0 + c + 2]) / panels[c0 + c]
            t[c], t[c + 1], t[c + 2] = p, q, w
        for r in range(width):
            y[own + r] = t[r]
    for p in range(n):
        node = symbolic.order[p]
        for i in range(3):
            out[3 * node + i] = y[3 * p + i]


@fast_kernel
def _subtract(panels, p, ld, s, t):
    """t -= P s on three rows of a chunk each, P (3, 3) column-major at p."""
    w0, w1, w2 = panels[p], panels[p + 1], panels[p + 2]
    w3, w4, w5 = panels[p + ld], panels[p + ld + 1], panels[p + ld + 2]
    w6, w7, w8 = panels[p + 2 * ld], panels[p + 2 * ld + 1], panels[p + 2 * ld + 2]
    for k in range(CHUNK):
        x, y, z = s[k], s[CHUNK + k], s[2 * CHUNK + k]
        t[k] -= w0 * x + w3 * y + w6 * z
        t[CHUNK + k] -= w1 * x + w4 * y + w7 * z
        t[2 * CHUNK + k] -= w2 * x + w5 * y + w8 * z


@fast_kernel
def _subtract_transposed(panels, p, ld, s, t):
    """t -= P^T s, as `_subtract`."""
    w0, w1, w2 = panels[p], panels[p + 1], panels[p + 2]
    w3, w4, w5 = panels[p + ld], panels[p + ld + 1], panels[p + ld + 2]
    w6, w7, w8 = panels[p + 2 * ld], panels[p + 2 * ld + 1], panels[p + 2 * ld + 2]
    for k in range(CHUNK):
        x, y, z = s[k], s[CHUNK + k], s[2 * CHUNK + k]
        t[k] -= w0 * x + w1 * y + w2 * z
        t[CHUNK + k] -= w3 * x + w4 * y + w5 * z
        t[2 * CHUNK + k] -= w6 * x + w7 * y + w8 * z


@fast_kernel
def _solve_node(panels, p, ld, t, transposed):
    """t = L^-1 t, or L^-T t, of the lower triangle L (3, 3) at p."""
    d0, d1, d2 = 1.0 / panels[p], 1.0 / panels[p + ld + 1], 1.0 / panels[p + 2 * ld + 2]
    l10, l20, l21 = panels[p + 1], panels[p + 2], panels[p + ld + 2]
    if transposed:
        for k in range(CHUNK):
            z = t[2 * CHUNK + k] * d2
            y = (t[CHUNK + k] - l21 * z) * d1
            t[2 * CHUNK + k] = z
            t[CHUNK + k] = y
            t[k] = (t[k] - l10 * y - l20 * z) * d0
    else:
        for k in range(CHUNK):
            x = t[k] * d0
            y = (t[CHUNK + k] - l10 * x) * d1
            t[k] = x
            t[CHUNK + k] = y
            t[2 * CHUNK + k] = (t[2 * CHUNK + k] - l20 * x - l21 * y) * d2


@fast_kernel
def _forward(symbolic, panels, y, active, parents):
    """y = L^-1 y, a node's three rows of a chunk in a row: slices of a constant length run vectorised."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    node = 3 * CHUNK
    for s in range(column.size - 1):
        if not active[s]:
            continue
        active[parents[s]] = True
        first, last = column[s], column[s + 1]
        ld = 3 * (last - first + row_ptr[s + 1] - row_ptr[s])
        for c in range(first, last):
            diagonal = panel[s] + 3 * (c - first) * (ld + 1)
            source = y[node * c : node * (c + 1)]
            _solve_node(panels, diagonal, ld, source, False)
            for r in range(c + 1, last):
                target = y[node * r : node * (r + 1)]
                _subtract(panels, diagonal + 3 * (r - c), ld, source, target)
            below = diagonal + 3 * (last - c)
            for q in range(row_ptr[s + 1] - row_ptr[s]):
                r = rows[row_ptr[s] + q]
                _subtract(panels, below + 3 * q, ld, source, y[node * r : node * (r + 1)])


@fast_kernel
def _backward(symbolic, panels, y):
    """y = L^-T y, as `_forward`."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    node = 3 * CHUNK
    for s in range(column.size - 2, -1, -1):
        first, last = column[s], column[s + 1]
        ld = 3 * (last - first + row_ptr[s + 1] - row_ptr[s])
        for c in range(last - 1, first - 1, -1):
            diagonal = panel[s] + 3 * (c - first) * (ld + 1)
            target = y[node * c : node * (c + 1)]
            below = diagonal + 3 * (last - c)
            for q in range(row_ptr[s + 1] - row_ptr[s]):
                r = rows[row_ptr[s] + q]
                _subtract_transposed(panels, below + 3 * q, ld, y[node * r : node * (r + 1)], target)
            for r in range(c + 1, last):
                source = y[node * r : node * (r + 1)]
                _subtract_transposed(panels, diagonal + 3 * (r - c), ld, source, target)
            _solve_node(panels, diagonal, ld, target, True)


@kernel
def solve_many(symbolic, panels, b, out, whole):
    """Many right-hand sides at once, b and out (3 n, k) with rows contiguous; out may be b.

    whole: out = A^-1 b; else out = L^-1 P b, in elimination order, whose products give b^T A^-1 b.
    Subtrees without a non-zero row of b are skipped on the way down.
    """
    n, n_super, total = symbolic.order.size, symbolic.column.size - 1, b.shape[1]
    y = np.empty(3 * n * CHUNK)
    active = np.empty(n_super + 1, dtype=np.bool_)
    parents = np.full(n_super, n_super)
    for s in range(n_super):
        if symbolic.seg_ptr[s + 1] > symbolic.seg_ptr[s]:
            parents[s] = symbolic.seg_target[symbolic.seg_ptr[s]]
    for begin in range(0, total, CHUNK):
        width = min(CHUNK, total - begin)
        active[:] = False
        s = 0
        for p in range(n):
            while p >= symbolic.column[s + 1]:
                s += 1
            for i in range(3):
                source, place = 3 * symbolic.order[p] + i, (3 * p + i) * CHUNK
                for k in range(width):
                    y[place + k] = b[source, begin + k]
                    if b[source, begin + k] != 0.0:
                        active[s] = True
                for k in range(width, CHUNK):
                    y[place + k] = 0.0
        _forward(symbolic, panels, y, active, parents)
        if whole:
            _backward(symbolic, panels, y)
        for p in range(n):
            for i in range(3):
                target = 3 * symbolic.order[p] + i if whole else 3 * p + i
                for k in range(width):
                    out[target, begin + k] = y[(3 * p + i) * CHUNK + k]


class CholeskyFactor:
    """A_h = L L^T of one body at one step size; refreshed in place by `refactor`.

    Solves may run in several threads at once, but not during a `refactor` of the same factor.
    Raises InputError for a mesh whose elimination needs a denser front than STRIDE.
    """

    def __init__(self, symbolic: Symbolic) -> None:
        self.symbolic = symbolic
        self.panels = np.empty(int(symbolic.panel[-1]))
        heights = np.diff(symbolic.column) + np.diff(symbolic.row_ptr)
        self.height = 3 * int(heights.max())
        if self.height > STRIDE:
            raise InputError(f"a front of {self.height} freedoms exceeds {STRIDE}; the mesh must be coarser.")
        self.n = 3 * symbolic.order.size

    def refactor(
        self, stiffness: NDArray, mass: NDArray, stiffness_weight: float, mass_weight: float
    ) -> None:
        """Factorise stiffness_weight K + mass_weight M, K lower blocks (b, 9) and M weights (b,).

        Raises FloatingPointError if the matrix is not positive definite, as after a non-finite state.
        """
        scatter(self.symbolic, stiffness, mass, stiffness_weight, mass_weight, self.panels)
        self._factorise()

    def _factorise(self) -> None:
        self._eliminate(self.symbolic.column.size - 1)

    def _eliminate(self, count: int) -> None:
        """Factorise the first `count` panels."""
        status = factorise(self.symbolic, self.panels, np.empty(3 * STRIDE), count)
        if status:
            self._refuse_pivot(status - 1)

    def _refuse_pivot(self, position: int) -> NoReturn:
        node = self.symbolic.order[position]
        raise FloatingPointError(f"the system matrix lost its positive pivot at free node {node}.")

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n,)."""
        out = np.empty(self.n)
        solve_one(self.symbolic, self.panels, b, out, np.empty(self.n), np.empty(self.height))
        return out

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n, k), C-contiguous; written to out (which may be b) and returned."""
        out = np.empty_like(b) if out is None else out
        solve_many(self.symbolic, self.panels, b, out, True)
        return out

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y = L^-1 P b for b (n, k), so that b^T A_h^-1 b = Y^T Y at half the cost of a full solve."""
        out = np.empty_like(b) if out is None else out
        solve_many(self.symbolic, self.panels, b, out, False)
        return out
