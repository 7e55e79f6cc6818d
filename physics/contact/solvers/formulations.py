"""Two approximate laws of one contact, for comparison: stick first and slip first.

001, N. Talbi's thesis, section 2.4.2. Both are exact where their guess holds (every contact stuck; every
contact sliding along its free offset) and only there: neither follows a contact from one status to the other.
"""

from palpo.physics.contact.laws import scale_to_disc
from palpo.physics.contact.solvers.newton import solve3
from palpo.physics.numerics.kernels import inlined


@inlined
def stick_first(block, free, mu, r):
    """r (3,) = the force that would block the contact, W_aa lambda = -x_ab, cut to the cone (2.23, 2.24)."""
    if not solve3(block, free, r):
        r[0] = free[0] / block[0, 0]
        r[1] = 0.0
        r[2] = 0.0
    r[0] = max(0.0, -r[0])
    scale = -scale_to_disc(r[1], r[2], mu * r[0])
    r[1] *= scale
    r[2] *= scale


@inlined
def slip_first(block, free, mu, r):
    """r (3,): blocked along the normal alone, then friction against the tangential offset (2.25, 2.26)."""
    r[0] = max(0.0, -free[0] / block[0, 0])
    x1 = free[1] + block[1, 0] * r[0]
    x2 = free[2] + block[2, 0] * r[0]
    length = (x1 * x1 + x2 * x2) ** 0.5
    scale = -mu * r[0] / length if length > 0.0 else 0.0
    r[1] = scale * x1
    r[2] = scale * x2
