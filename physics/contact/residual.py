"""The one residual that judges every contact solver: the natural map of the frictional problem.

    e = || r - Proj_K( r - rho (u + mu |u_t| n) ) || / || r ||,    u = W r + b,  rho = 1 / mean(diag W)

It vanishes exactly at solutions (De Saxce & Feng 1998; Acary & Brogliato 2008, ch. 13).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from physics.contact.laws import project_cone


@njit(nogil=True, cache=True)
def natural_map_norm(w, mu, r, u, first, n_contacts, scratch):
    """(|| r - Proj_K(r - rho (u + mu |u_t| n)) ||, || r ||) of the contacts in the rows from `first` on [N].

    u = W r + b over those rows; mu (n_contacts,); scratch: (2, 3) at least.
    """
    mean = 0.0
    for i in range(first, first + 3 * n_contacts):
        mean += w[i, i]
    if n_contacts == 0 or mean <= 0.0:
        return 0.0, 0.0
    rho = 3 * n_contacts / mean
    error, size = 0.0, 0.0
    star, image = scratch[0], scratch[1]
    for k in range(n_contacts):
        i = first + 3 * k
        slip = (u[i + 1] * u[i + 1] + u[i + 2] * u[i + 2]) ** 0.5
        star[0] = r[i] - rho * (u[i] + mu[k] * slip)
        star[1] = r[i + 1] - rho * u[i + 1]
        star[2] = r[i + 2] - rho * u[i + 2]
        project_cone(star, mu[k], image)
        for c in range(3):
            error += (r[i + c] - image[c]) ** 2
            size += r[i + c] ** 2
    return error**0.5, size**0.5


def natural_map_residual(
    w: NDArray[np.float64], b: NDArray[np.float64], mu: NDArray[np.float64], r: NDArray[np.float64]
) -> float:
    """Relative natural-map residual of the force r, shape (3 n,); absolute [N] where r is zero."""
    error, size = natural_map_norm(w, mu, r, w @ r + b, 0, len(mu), np.zeros((2, 3)))
    return float(error / size if size > 0.0 else error)
