"""Uzawa's prediction and correction of one contact (001, N. Talbi's thesis, 2.8.2; 004, 3.3).

    r* = r - rho (x + mu |x_t| n)  or  r - rho x,    r = Proj(r*),    x = W_aa r + x_ab   (2.73, 2.74)

Once a visit it is the *global* method, which converges through the sweeps alone; repeated to a stop of its
own it is the *local* one.
"""

from palpo.physics.contact.laws import augment, correct
from palpo.physics.numerics.kernels import inlined

ONCE, DISPLACEMENT, PENETRATION = 0, 1, 2
"""When a visit ends: after one step (global); at |dr| / rho <= eps L (3.6); at x_n >= -eps L (3.7)."""


@inlined
def uzawa_contact(local, block, free, mu, rho_n, rho_t, r, x, star, image):
    """Force r, shape (3,), of the contact x = block r + free after one visit as `local` says.

    local: formulation, rule, limit = eps L [m] and most steps, as palpo.physics.contact.solvers.relaxation
    has them. In (3.6) each component of dr is divided by its own rho.
    """
    for _ in range(local.steps):
        for c in range(3):
            x[c] = block[c, 0] * r[0] + block[c, 1] * r[1] + block[c, 2] * r[2] + free[c]
        augment(local.formulation, r, x, mu, rho_n, rho_t, star)
        correct(local.formulation, star, mu, rho_n, rho_t, image)
        d_n, d_1, d_2 = (image[0] - r[0]) / rho_n, (image[1] - r[1]) / rho_t, (image[2] - r[2]) / rho_t
        for c in range(3):
            r[c] = image[c]
        if local.rule == ONCE:
            break
        if local.rule == DISPLACEMENT:
            if d_n * d_n + d_1 * d_1 + d_2 * d_2 <= local.limit * local.limit:
                break
        elif block[0, 0] * r[0] + block[0, 1] * r[1] + block[0, 2] * r[2] + free[0] >= -local.limit:
            break
