"""Products and scales that the solvers of whole problems share."""

from palpo.physics.numerics.kernels import kernel, reordering_kernel

STIFFEST = 1e-8
"""Least compliance of a contact over the mean of all: what yields less is scaled as if it yielded so much."""

REGULARISATION = 1e-10
"""Share added to |df_j|^2 in the normal equations: differences may nearly depend on each other."""


@reordering_kernel
def dot(x, y):
    """x . y over the entries of y, summed in an order of the compiler's, so that several terms go at once."""
    s = 0.0
    for i in range(y.shape[0]):
        s += x[i] * y[i]
    return s


@kernel
def mean_compliances(w, out):
    """out (n at least,) = a third of the trace of each contact's own block of W [m/N], all positive."""
    n, mean = w.shape[0] // 3, 0.0
    for k in range(n):
        i = 3 * k
        out[k] = (w[i, i] + w[i + 1, i + 1] + w[i + 2, i + 2]) / 3.0
        mean += out[k] / n
    for k in range(n):
        if out[k] > 0.0:
            out[k] = max(out[k], STIFFEST * mean)
        else:  # what nothing moves bears nothing, in any unit
            out[k] = mean if mean > 0.0 else 1.0


@kernel
def unit_cones(w, b, mu, own, scale):
    """scale (3 n,) of r that makes every cone the unit one and all contacts alike; returns that of r . u.

    r = scale x and u = unit y / scale. The tangential scale of a contact without friction is 0. own (n at
    least,): becomes `mean_compliances`.
    """
    mean_compliances(w, own)
    most = 0.0
    for i in range(b.shape[0]):
        most = max(most, abs(b[i]) / own[i // 3] ** 0.5)
    if most <= 0.0:
        most = 1.0
    for k in range(mu.shape[0]):
        i, force = 3 * k, most / own[k] ** 0.5
        scale[i] = force / mu[k] if mu[k] > 0.0 else force
        scale[i + 1] = scale[i + 2] = force if mu[k] > 0.0 else 0.0
    return most * most


@kernel
def least_squares(squares, factor, y, m):
    """y[:m] = (squares + regularisation)^-1 y[:m] by Cholesky."""
    for i in range(m):
        for j in range(i + 1):
            s = squares[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = s / factor[j, j]
            else:
                least = REGULARISATION * squares[i, i]
                factor[i, i] = (max(s, 0.0) + least) ** 0.5 if least > 0.0 else 1.0
        for k in range(i):
            y[i] -= factor[i, k] * y[k]
        y[i] /= factor[i, i]
    for i in range(m - 1, -1, -1):
        y[i] /= factor[i, i]
        for k in range(i):
            y[k] -= factor[i, k] * y[i]
