"""A body's next factor, made beside its steps: begun in one of them and taken a fixed number of steps later.

The step that takes it waits where it has not ended, so that what a body does never depends on when a thread
is done: steps in lock-step, in real time and of a recording agree to the bit. What it is made from is copied
when it begins. `rest_from_work` ends all that is under way; states are copied and put back only then.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.coupling import Coupled
from palpo.physics.bodies.held_factor import HeldFactor, Matrix

Floats = NDArray[np.float64]

_pool: list[ThreadPoolExecutor] = []
_under_way: "WeakKeyDictionary[FactorRenewal, Future[None]]" = WeakKeyDictionary()


class TurnedShape(NamedTuple):
    """That of a body in which a factor is made: rotations of the elements (m, 4), of the handle (3, 3)."""

    quats: Floats
    rotation: Floats
    coupled: Coupled


class FactorRenewal:
    """A factor of a matrix, and scale A^-1 of as many nodes as a step is likely to ask for.

    factor: which is made; nobody else uses it until `take`. steps: after how many more it is taken, counted
    by the body. shape: in which the matrix is that of the body.
    """

    def __init__(
        self, factor: HeldFactor, matrix: Matrix, scale: float, steps: int, shape: TurnedShape
    ) -> None:
        self.factor, self.steps, self.shape = factor, steps, shape
        self._matrix, self._scale, self._made = matrix, scale, False
        if not _pool:
            _pool.append(ThreadPoolExecutor(max_workers=1, thread_name_prefix="palpo-renewal"))
        _under_way[self] = _pool[0].submit(self._make)

    def _make(self) -> None:
        self.factor.refactor(*self._matrix)
        self.factor.expect(self._scale)

    def take(self) -> HeldFactor:
        """The factor, awaited. FloatingPointError as CholeskyFactor.refactor."""
        work = _under_way.pop(self, None)
        if work is not None:
            work.result()
        elif not self._made:
            self._make()
        return self.factor

    def rest(self) -> None:
        """End what is under way; what it raised `take` will meet again."""
        work = _under_way.pop(self, None)
        if work is not None:
            with suppress(FloatingPointError):
                work.result()
                self._made = True


def rest_from_work() -> None:
    """Wait for all that is under way."""
    for renewal in list(_under_way):
        renewal.rest()
