"""Contacts of bodies under passive midpoint integration, as the problem u = W r + b that every solver takes.

002, section IV (27) and (28), as EQUATIONS.md, section 3, corrects them. Contact forces act on the velocity
in the middle of the step, vh = C r + vh_free; the laws ask for velocities of its end, v+ = 2 vh - v:

    u_n = g + T (v+_n + eps v_n) = 2 T vh_n + g - T (1 - eps) v_n,    0 <= u_n  perp  r_n >= 0
    u_t = T v+_t                 = 2 T vh_t - T v_t,                  sliding opposite to r_t

so that normal and tangential rows share one symmetric W = 2 T C [m/N]. With vh_t in place of v+_t a sliding
block would flip its velocity for ever. g < 0 parts a penetration at |g| / T, which is work: f_n T vh_n.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import ContactProblem
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel


@kernel
def assemble(c, middle, now, gap, step, restitution, w, b):
    """w = 2 T C and b over the rows of the n contacts of `gap`; w may be c itself.

    c, w (rows, rows) [m/(N s)], [m/N]; middle = vh_free, now = v (rows,) [m/s]; b (rows,) [m]; gap (n,) [m];
    step T [s]. Rows beyond 3 n are left alone.
    """
    for i in range(3 * gap.shape[0]):
        for j in range(3 * gap.shape[0]):
            w[i, j] = 2.0 * step * c[i, j]
        b[i] = step * (2.0 * middle[i] - now[i])
    for k in range(gap.shape[0]):
        b[3 * k] += gap[k] + step * restitution * now[3 * k]


def contact_problem(
    c: NDArray[np.float64],
    middle: NDArray[np.float64],
    now: NDArray[np.float64],
    gap: NDArray[np.float64],
    mu: NDArray[np.float64],
    step: float,
    restitution: float = 0.0,
    warm: NDArray[np.float64] | None = None,
) -> ContactProblem:
    """The problem of one step T of n contacts.

    c: Delassus operator of the velocity in the middle of the step [m/(N s)], shape (3 n, 3 n)
    middle, now: relative velocity of body 1 to body 2 at the contacts in the middle of the step without
        contact force, and at its start [m/s], shape (3 n,), rows (n, t1, t2)
    gap: [m], shape (n,), negative where the bodies penetrate
    mu: friction coefficients, shape (n,); step: T [s]; restitution: eps in [0, 1]
    warm: force to start from [N], shape (3 n,)

    Raises InputError for shapes that do not agree, a step that is not positive, a restitution outside of
    [0, 1], and as `ContactProblem`.
    """
    n = len(gap)
    if c.shape != (3 * n, 3 * n) or middle.shape != (3 * n,) or now.shape != (3 * n,):
        raise InputError(
            f"{n} gaps need C of shape {(3 * n, 3 * n)} and velocities of shape {(3 * n,)}; "
            f"got {c.shape}, {middle.shape} and {now.shape}"
        )
    if not step > 0.0:
        raise InputError(f"step = {step}: a time step must be positive")
    if not 0.0 <= restitution <= 1.0:
        raise InputError(f"restitution = {restitution}: it must be between 0 and 1")
    w, b = np.empty((3 * n, 3 * n)), np.empty(3 * n)
    assemble(c, middle, now, gap, step, restitution, w, b)
    return ContactProblem(w, b, mu, warm)
