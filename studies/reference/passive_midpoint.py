"""Passive midpoint integration of linear bodies, and of a corotational one (002, II-B; EQUATIONS.md, 3).

    M (v+ - v) / T + D vh + K xh = f,   vh = (v+ + v) / 2 = (x+ - x) / T,   xh = (x+ + x) / 2          (3)
    Mh vh = f + 2 M v / T - K x,   Mh = 2 M / T + D + K T / 2                                          (4)

The work T f^T vh of each step is exactly the energy gained plus what D dissipates (6), at any stiffness and
step. In the frequency domain the step is the Cayley transform s = 2 (z - 1) / (T (z + 1)): xh responds to f
as the continuous body does at (2 / T) tan(w T / 2), so that peaks of the response are neither lost nor added.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import SuperLU, splu

from palpo.physics.bodies.passive_midpoint import require_step
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.errors import InputError


class LinearBody:
    """One linear body M x'' + D x' + K x = f under the passive midpoint rule (002, equations 3 to 6).

    M, D, K: symmetric, sparse or dense, shape (n, n) [kg, N s/m, N/m]; M positive definite, D and K
    semidefinite. step: T [s]. State: x [m] and v [m/s], shape (n,), zero at first.
    Raises InputError unless the shapes agree and the step is positive.
    """

    def __init__(
        self, M: sp.sparray | NDArray, D: sp.sparray | NDArray, K: sp.sparray | NDArray, step: float
    ) -> None:
        require_step(step)
        self.M, self.D, self.K = (sp.csr_array(a) for a in (M, D, K))
        n = self.M.shape[0]
        if not self.M.shape == self.D.shape == self.K.shape == (n, n):
            raise InputError(
                f"M, D and K have shapes {self.M.shape}, {self.D.shape} and {self.K.shape}, "
                "expected one square shape."
            )
        self.step_size = step
        self._factor = _factor(2.0 / step * self.M + self.D + 0.5 * step * self.K)
        self.x, self.v = np.zeros(n), np.zeros(n)

    def free_velocity(self) -> NDArray:
        """vh without a force, v_f of (4) [m/s], shape (n,)."""
        return self._factor.solve(2.0 / self.step_size * (self.M @ self.v) - self.K @ self.x)

    def velocity_of(self, f: NDArray) -> NDArray:
        """What a force f [N] adds to vh, Mh^-1 f [m/s]; shape (n,) or (n, k)."""
        return self._factor.solve(f)

    def advance(self, vh: NDArray) -> None:
        """x+ = x + T vh, v+ = 2 vh - v."""
        self.x = self.x + self.step_size * vh
        self.v = 2.0 * vh - self.v

    def step(self, f: NDArray | float = 0.0) -> NDArray:
        """One step under f [N], shape (n,); returns vh [m/s], so that the work done is T f^T vh."""
        vh = self.free_velocity() + self.velocity_of(np.broadcast_to(f, self.x.shape))
        self.advance(vh)
        return vh

    def energy(self) -> float:
        """E of (6), kinetic + elastic [J]."""
        return float(0.5 * self.v @ (self.M @ self.v) + 0.5 * self.x @ (self.K @ self.x))


class CorotationalMidpoint:
    """A corotational body under the same rule, linearised once a step about the present configuration.

    The internal force at the middle is f_int(x) - K T vh / 2 with the warped stiffness R K0 R^T and
    D = alpha M + beta K. The rule is no longer passive: the error of the linearisation may feed energy in,
    and a stiff body may diverge (002, V-A). body: moved by `step`; its gravity acts. step: T [s].
    """

    def __init__(self, body: SoftBody, step: float) -> None:
        require_step(step)
        self.body, self.step_size = body, step

    def step(self, f: NDArray | float = 0.0) -> NDArray:
        """One step under f [N], shape (n_dof,), besides weight; returns vh [m/s].

        Raises FloatingPointError once the state is not finite.
        """
        body, T = self.body, self.step_size
        alpha, beta = body.material.alpha, body.material.beta
        body.linearise()
        force = body.undamped_force()
        if not np.isfinite(force).all():
            raise FloatingPointError(f"body {body.name!r} has diverged: its internal forces are not finite.")
        factor = _factor((2.0 / T + alpha) * body.M + (0.5 * T + beta) * body.K)
        vh = factor.solve(force + f + 2.0 / T * (body.M @ body.v))
        body.advance(2.0 * vh - body.v, 0.0)
        body.x[body.free] += T * vh.reshape(-1, 3)
        return vh


def _factor(Mh: sp.sparray) -> SuperLU:
    """Sparse factor of a symmetric positive definite matrix, which needs no pivoting."""
    symmetric = {"SymmetricMode": True}
    return splu(sp.csc_matrix(Mh), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)
