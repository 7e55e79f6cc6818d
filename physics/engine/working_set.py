"""The contacts that a step solves for: those that bore in the last one or sink in now.

Of the contacts that are found most are open. A contact that is left out has no force, which is the solution
for it as long as it does not sink in under the forces of the others: the bodies' motion under them tells,
which is computed anyway. So W is gathered and solved for the set alone; contacts that sink in beyond what the
solver's tolerance allows join it, and it is solved once more, from the forces found so far.
"""

from palpo.physics.numerics.kernels import kernel

SOLVES = 3
"""Most solves of a step; what sinks in after the last is in the residual, and in the next step's set."""

NEWCOMERS = 64
"""Most contacts that join at once: of a flat face that lands all sink in, and few bear."""

PART = 0.5**0.5
"""Share of the solver's tolerance for the working set, and for what is outside: their squares add up."""


@kernel
def start_set(force, n, inside):
    """inside (n,) = whether a contact has a force (n, 3) so far."""
    for k in range(n):
        inside[k] = force[k, 0] != 0.0 or force[k, 1] != 0.0 or force[k, 2] != 0.0


@kernel
def admit(gap, n, inside):
    """What sinks in outside the set, by gap (n,), joins it: all of it, or NEWCOMERS evenly out of more."""
    sinking = 0
    for k in range(n):
        sinking += not inside[k] and gap[k] < 0.0
    share = 0
    for k in range(n):
        if inside[k] or not gap[k] < 0.0:
            continue
        share += NEWCOMERS
        if share >= sinking:
            share -= sinking
            inside[k] = True


@kernel
def members(n, inside, member):
    """member (m,) = numbers of the contacts inside; returns m."""
    m = 0
    for k in range(n):
        if inside[k]:
            member[m] = k
            m += 1
    return m


@kernel
def gather_matrix(whole, member, w):
    """w (3 m, 3 m) of the contacts member out of that of all contacts found."""
    m = w.shape[0] // 3
    for p in range(m):
        for i in range(3):
            source, out = whole[3 * member[p] + i], w[3 * p + i]
            for q in range(m):
                k = 3 * member[q]
                out[3 * q], out[3 * q + 1], out[3 * q + 2] = source[k], source[k + 1], source[k + 2]


@kernel
def sunk(w, r, first, last, gap, n, inside):
    """(|r - Proj(r - rho u)|, |r|) [N] over the contacts outside the set, of gaps (n,).

    That is their share of the natural map's residual of all n contacts; rho is that of w, and r is the force,
    of the set's rows from `first` to `last`.
    """
    trace, size, error = 0.0, 0.0, 0.0
    for i in range(first, last):
        trace += w[i, i]
        size += r[i] ** 2
    rho = (last - first) / trace if trace > 0.0 else 1.0
    for k in range(n):
        if not inside[k] and gap[k] < 0.0:
            error += (rho * gap[k]) ** 2
    return error**0.5, size**0.5
