"""The solution of one step after another, in room that is made once (palpo.physics.suction.pressure)."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.anderson import DIVERGED
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.suction.cup_blocks import CupBlocks
from palpo.physics.suction.pressure import Gas, advance, begin, finish, make_workspace

Array = NDArray[np.float64]


class PressureSolver:
    """Contacts, friction and gas laws of up to `capacity` contacts and `cavities`.

    Written from outside between solves: stop, and accelerated, whether sweeps are extrapolated. Read after
    one: its sweeps and gas_error, the largest relative error of a gas law.
    """

    def __init__(self, capacity: int, cavities: int, stop: Stop, accelerated: bool) -> None:
        self.stop, self.accelerated = stop, accelerated
        self.sweeps, self.gas_error = 0, 0.0
        self._workspace = make_workspace(capacity, cavities)
        self._x, self._u = np.zeros(3 * capacity + cavities), np.zeros(3 * capacity + cavities)

    def solve(
        self, w: Array, b: Array, mu: Array, warm: Array, gas: Gas, blocks: CupBlocks | None
    ) -> tuple[Array, bool]:
        """Forces (3 n,) [N] from `warm` (3 n,), and False where the solution diverged.

        w (3 n + k, 3 n + k), b (3 n + k,), gas and blocks as `palpo.physics.suction.pressure.begin` has them;
        `gas` gets the pressures and the air of the step's end, which mean nothing after a divergence.
        """
        n = len(warm)
        x, u, a = self._x[: len(b)], self._u[: len(b)], self._workspace
        x[:n] = warm
        project_cones(mu, x[:n])
        bound = begin(w, b, mu, x, u, gas, self.accelerated, a, blocks)
        code = advance(w, b, mu, x, u, gas, self.stop.tolerance, bound, self.stop.max_iterations, a, blocks)
        self.gas_error = finish(w, b, mu, x, u, gas, a, blocks)
        self.sweeps = a.state["sweeps"].item()
        return x[:n].copy(), code != DIVERGED
