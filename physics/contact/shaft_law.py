"""The law of a needle's shaft in the channel that its tip has cut.

Tissue lies all around a shaft: across it nothing moves, in either sense, and along it the channel's walls
rub with a force that does not hang on what presses, for they are stretched over it. A block has the rows
(a, t1, t2), along the shaft and across it:

    u_t = 0,   r_a = Proj_[least, most](r_a - rho u_a),   u = W r + b

A tip that cuts is the same with least = 0: it pushes, up to what cutting takes, and never pulls (Duriez,
Guebert, Marchal, Cotin & Grisoni 2009; EQUATIONS.md, 1, "A needle in tissue").
"""

from palpo.physics.contact.laws import SLIP, STICK, mean_stiffness
from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def solve_shaft(w, b, least, most, r):
    """Force r, shape (3,), of a point of a shaft in its channel: u = w r + b with w (3, 3) positive definite.

    Rows (a, t1, t2) along the shaft and across it. Across nothing moves, u_t = 0; along it the force is one
    of `least` to `most` [N], and nothing slides while it is between them. Exact. Returns STICK or SLIP.
    """
    det = w[1, 1] * w[2, 2] - w[1, 2] * w[2, 1]
    y1, y2 = (w[2, 2] * w[1, 0] - w[1, 2] * w[2, 0]) / det, (w[1, 1] * w[2, 0] - w[2, 1] * w[1, 0]) / det
    own = w[0, 0] - w[0, 1] * y1 - w[0, 2] * y2
    along = (y1 * b[1] + y2 * b[2] - b[0]) / own
    r[0] = min(max(along, least), most)
    c1, c2 = b[1] + w[1, 0] * r[0], b[2] + w[2, 0] * r[0]
    r[1], r[2] = (w[1, 2] * c2 - w[2, 2] * c1) / det, (w[2, 1] * c1 - w[1, 1] * c2) / det
    return STICK if r[0] == along else SLIP


@kernel
def shaft_map_norm(w, limits, r, u, first, n):
    """(|| r - Proj(r - rho u) ||, || r ||) [N] of n points of shafts, in the rows from `first` on.

    limits (n, 2): least and most force along the shaft [N]. rho is that of these rows.
    """
    rho, error, size = mean_stiffness(w, first, n), 0.0, 0.0
    for k in range(n):
        i = first + 3 * k
        along = min(max(r[i] - rho * u[i], limits[k, 0]), limits[k, 1])
        error += (r[i] - along) ** 2 + (rho * u[i + 1]) ** 2 + (rho * u[i + 2]) ** 2
        size += r[i] ** 2 + r[i + 1] ** 2 + r[i + 2] ** 2
    return error**0.5, size**0.5
