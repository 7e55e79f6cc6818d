"""A program of a few kernels, for tries with its cache: `python -m tests.robustness.few_kernels OUT.npz`.

One is called from Python, and linked from one that only kernels call and from an inlined one; one is called
by its address.
"""

import sys

import numpy as np
from numba import types

from palpo.physics.numerics.kernels import callback, inlined, kernel


@inlined
def square(x):
    return x * x


@kernel
def growth(x, rate):
    return rate * x * (1.0 - square(x))


@callback(types.float64(types.float64))
def at_rest(x):
    return growth(x, 0.0)


@kernel
def steps(x, rate, count):
    """count steps of x' = growth."""
    for _ in range(count):
        for i in range(x.size):
            x[i] += 0.01 * growth(x[i], rate)


if __name__ == "__main__":
    values = np.linspace(0.1, 0.9, 7)
    steps(values, 1.5, 200)
    np.savez(sys.argv[1], r=values, rest=at_rest.ctypes(0.5))
