"""Where an interior point begins that has a force to begin from, so that it need not come from afar.

A rough force, such as a few sweeps leave, lies on the cones' boundary, from which no step leads inwards. So
it and its displacement y = u + |u_t| n, both in the unit cones, are lifted into them by a share of what such
forces and displacements are: then the products of contacts that bear and of those that do not are alike,
which is what being near the central path means (Mehrotra's starting point is of this kind: SIAM J. Optim.
1992; Yildirim & Wright, Warm-start strategies in interior-point methods, SIAM J. Optim. 2002).
"""

from palpo.physics.contact.laws import project_cone
from palpo.physics.contact.solvers import interior_point
from palpo.physics.contact.solvers.operator import times
from palpo.physics.numerics.kernels import kernel

LIFT, LEAST_LIFT, MOST_LIFT = 1.0, 0.01, 0.1
"""The share is LIFT times the force's relative residual, within these: the rougher the force, the farther it
has to be from the boundary to be led anywhere."""

BEARS = 1e-3
"""Force over the largest from which a contact counts as one that bears."""


@kernel
def begin_near(w, b, mu, r, residual, ridge, lags, a):
    """As `interior_point.begin`, from the force r (N,) in the cones, of that relative residual."""
    interior_point.begin(w, b, mu, ridge, lags, a)
    n, unit = mu.shape[0], a.state[0].unit
    share = min(MOST_LIFT, max(LEAST_LIFT, LIFT * residual))
    most, free = 0.0, 0.0
    times(w, r, a.offset)
    for k in range(n):
        i, asked = 3 * k, 0.0
        for c in range(i, i + 3):
            s = a.scale[c]
            a.x[c] = r[c] / s if s > 0.0 else 0.0
            a.y[c] = (b[c] + a.offset[c]) * s / unit
            asked = max(asked, abs(b[c]) * s / unit)
        most = max(most, a.x[i])
        free += asked / n
        a.y[i] += (a.y[i + 1] ** 2 + a.y[i + 2] ** 2) ** 0.5
        project_cone(a.y[i : i + 3], 1.0, a.y[i : i + 3])
    if not (most > 0.0 and free > 0.0):  # nothing to begin from
        interior_point.begin(w, b, mu, ridge, lags, a)
        return
    bears, force = 0, 0.0
    for k in range(n):
        if a.x[3 * k] > BEARS * most:
            bears += 1
            force += a.x[3 * k]
    for k in range(n):
        a.x[3 * k] += share * force / bears
        a.y[3 * k] += share * free
