"""The factor of a body whose contacts are among chosen nodes, and the compliance of those.

Nodes that may come into contact end a factor (palpo.physics.fem.trailing), those likeliest to touch last of
all: a step inverts only as much of its end as touches. The dense end costs even while nothing touches it, so
the factor ends with only a part of them until more do.

Of a large body the same matrix is factored twice. What its steps solve with has an order of its own, without
a dense end, and single precision: at 4,747 nodes 19 MB where one that ends with 592 nodes has 90. The other
is made when a compliance is asked for. Both serve the matrix turned node by node (palpo.physics.fem.single).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern
from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import Symbolic, analyse
from palpo.physics.fem.single import SingleFactor
from palpo.physics.fem.trailing import TrailingFactor

BATCH = 16
"""Contact nodes are inverted in steps of so many: their number may waver without a new inverse."""

LEVELS = (1 / 3, 4 / 9, 5 / 9, 2 / 3, 1.0)
"""Parts of the nodes that may touch with which a factor may end, in whole batches: the fewer, the less it
fills."""

USUAL = 4 / 9
"""The part by which a body is told large."""

LARGEST = (0.48, 0.6, 1.0)
"""Those of a large body. The first is a little more than a rim's: the cup of 4,747 nodes has 576 of 1,233."""

STEP_WORK = 700_000_000
"""Products for which a step of a large body leaves time on another core: in 16 ms."""

LARGE = 2_000_000
"""Entries of a factor, 16 MB, from which on solves have one of their own: it no longer stays in a cache."""


class Matrix(NamedTuple):
    """stiffness_weight K + mass_weight M, K in lower blocks (b, 9) and M in weights (b,)."""

    stiffness: NDArray[np.float64]
    mass: NDArray[np.float64]
    stiffness_weight: float
    mass_weight: float


@lru_cache(maxsize=64)
def _analysed(n: int, rows: bytes, cols: bytes, kind: str, last: bytes | None, joined: bool) -> Symbolic:
    """`analyse` of what the arrays' bytes are; who has it only reads it."""
    ending = None if last is None else np.frombuffer(last, np.int64)
    return analyse(n, np.frombuffer(rows, kind), np.frombuffer(cols, kind), ending, joined)


class Orders:
    """The patterns of a body's factors: free nodes in that pattern, of which `last` (k,) may touch.

    ending: of factors that end with as many of these nodes as `sizes` says, ascending. open: of one that ends
    with none in particular. delay: how many steps after it was begun a large body's factor is taken.
    """

    def __init__(self, pattern: BlockPattern, last: NDArray[np.int32]) -> None:
        self._last = last
        self._graph = int((pattern.slots >= 0).sum()), pattern.rows, pattern.cols
        slots = pattern.slots[last].astype(np.int64)
        self.entries = int(self._levels(slots, (USUAL,), True)[1][0].panel[-1])
        self.large = self.entries > LARGE
        """Whether solves have a factor of their own."""
        self.open = self._pattern() if self.large else None
        levels = LARGEST if self.large else LEVELS
        self.sizes, self.ending = self._levels(slots, levels, not self.large)
        self.delay = 0 if self.open is None else -(-self._work(self.open) // STEP_WORK)

    def _work(self, order: Symbolic) -> int:
        """Products of both factors of a matrix, and of the inverse where one ends."""
        work = (3 * self.sizes[0]) ** 3 * 2 // 3
        for each in (order, self.ending[0]):
            width = 3 * np.diff(each.column).astype(np.int64)
            below = 3 * np.diff(each.row_ptr)
            work += int((width * (below * (below + width) + width * width // 3)).sum())
        return work

    def _levels(
        self, slots: NDArray[np.int64], parts: tuple[float, ...], joined: bool
    ) -> tuple[list[int], list[Symbolic]]:
        """How many of the nodes that may touch end a factor, and the patterns."""
        sizes = sorted({min(slots.size, BATCH * int(np.ceil(part * slots.size / BATCH))) for part in parts})
        return sizes, [self._pattern(slots[slots.size - size :], joined) for size in sizes]

    def _pattern(self, last: NDArray[np.int64] | None = None, joined: bool = True) -> Symbolic:
        """As `analyse`, found once for all bodies of one mesh."""
        n, rows, cols = self._graph
        ending = None if last is None else last.tobytes()
        return _analysed(n, rows.tobytes(), cols.tobytes(), rows.dtype.str, ending, joined)

    def level_of(self, count: int) -> int:
        """The least level that ends with `count` nodes, or with all of them."""
        return int(np.searchsorted(self.sizes, min(count, self._last.size)))


class HeldFactor:
    """A^-1 of one body at one step size: solves, and the compliance of the nodes at the end of its order.

    It stands for a CholeskyFactor. Raises InputError as that one. single: solve in single precision, which a
    large body's does anyway.
    """

    def __init__(self, orders: Orders, single: bool = False) -> None:
        self._orders, self._large, self._single = orders, orders.large, single
        self._endings: dict[int, CholeskyFactor] = {}
        self._singles: dict[int, SingleFactor] = {}
        self._level = -1
        self._needed = self._before = 0
        """Most nodes whose compliance was asked for since the matrix was factored, and before that."""
        self._matrix: Matrix | None = None
        self._solver: CholeskyFactor | SingleFactor
        self._solver = self._ending(0) if orders.open is None else SingleFactor(orders.open)

    def _ending(self, level: int) -> CholeskyFactor:
        if level not in self._endings:
            symbolic, size = self._orders.ending[level], self._orders.sizes[level]
            self._endings[level] = TrailingFactor(symbolic, size) if size else CholeskyFactor(symbolic)
        return self._endings[level]

    def refactor(
        self, stiffness: NDArray, mass: NDArray, stiffness_weight: float, mass_weight: float
    ) -> None:
        """Factorise stiffness_weight K + mass_weight M; see CholeskyFactor."""
        if self._large:  # an ending may be made when the body has turned on
            stiffness = stiffness.copy()
        self._matrix = Matrix(stiffness, mass, stiffness_weight, mass_weight)
        # a step asks more than once, and not for as many each time
        expected = max(self._needed, self._before)
        self._needed, self._before = 0, self._needed
        self._level = -1
        if self._large:
            self._solver.refactor(*self._matrix)
        else:
            self._end_with(self._orders.level_of(expected))

    def _end_with(self, level: int) -> CholeskyFactor:
        """The present matrix in the order of that level."""
        assert self._matrix is not None
        factor = self._ending(level)
        factor.refactor(*self._matrix)
        self._level = level
        if not self._large:
            # the same matrix once more, in another order: what was solved with it stays valid
            self._solver = self._in_single(level) if self._single else factor
        return factor

    def _in_single(self, level: int) -> SingleFactor:
        factor = self._endings[level]
        if level not in self._singles:
            self._singles[level] = SingleFactor(factor.symbolic, factor)
        self._singles[level].take()
        return self._singles[level]

    def solve(self, b: NDArray) -> NDArray[np.float64]:
        """A^-1 b, shape (n,)."""
        return self._solver.solve(b)

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray[np.float64]:
        """A^-1 (push + momentum), each (n,)."""
        return self.solve(push + momentum)

    def solve_few(self, b: NDArray) -> NDArray[np.float64]:
        """A^-1 b of each line of b, shape (k, n)."""
        return self._solver.solve_few(b)

    def solve_many(self, b: NDArray) -> NDArray[np.float64]:
        """A^-1 b for b (n, k), C-contiguous."""
        return self._solver.solve_many(b)

    @property
    def ready(self) -> bool:
        """Whether some compliance was found since the matrix was factored."""
        return self._level >= 0

    def expect(self, scale: float) -> None:
        """Find as much compliance as a step is likely to ask for."""
        if self._orders.sizes[0]:
            self.compliance(scale, self._orders.sizes[0])

    @property
    def turns(self) -> NDArray[np.float64] | None:
        """Rotations (n, 3, 3) of the nodes with which a large body's solves turn the matrix."""
        return self._solver.turns if isinstance(self._solver, SingleFactor) else None

    def compliance(self, scale: float, count: int) -> NDArray[np.float64]:
        """scale A^-1, not turned, of at least `count` nodes, those at the end of the order: (3 c, 3 c)."""
        self._needed = max(self._needed, count)
        sizes = self._orders.sizes
        if self._level < 0 or count > sizes[self._level]:
            self._end_with(self._orders.level_of(max(count, self._before)))
        ending, size = self._endings[self._level], sizes[self._level]
        assert isinstance(ending, TrailingFactor)
        c = min(size, -(-max(count, min(self._before, size)) // BATCH) * BATCH)
        return ending.compliance(scale, c)
