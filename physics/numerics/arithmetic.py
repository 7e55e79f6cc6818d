"""Which last bits this process computes.

Matrix products, elementary functions and compiled loops are summed in another order, and with other
instructions, on another kind of processor or by other versions of the libraries: results agree to rounding,
not to the bit. What promises equal bits, or is found by them, asks here first.
"""

import math
import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import version

import llvmlite.binding
import numba
import numpy as np
import scipy.linalg

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "qdldl")
"""Those that compute."""
SIZE = 192
"""Rows of a product that is tried: enough for its blocks, remainders and threads."""
STEP = "on the engine"
"""How the program's own steps sum, in a word: another one whenever a change of them moves last bits, so that
what was recorded before is compared as what was recorded on another machine is."""
SMALL = 40
"""Rows of what is factorised, so that it takes no time worth mention."""


@cache
def arithmetic() -> dict[str, str]:
    """Name to value of all that decides last bits; processes for which it is equal compute equal bits.

    `rounding` is a digest of what the libraries make of fixed numbers: NumPy and OpenBLAS choose their code
    by the processor, its features, their environment and the number of threads, and do not tell it all.
    """
    compiled = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = numba.config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{compiled} {sha256(features.encode()).hexdigest()[:8]}",
        "rounding": _rounding(),
        "step": STEP,
    } | {name: version(name) for name in LIBRARIES}


def _rounding() -> str:
    """Digest of products, solutions, sums and elementary functions of fixed numbers."""
    a = np.random.default_rng(0).random((SIZE, SIZE))
    square, small = a @ a.T, a[:SMALL, :SMALL]
    few = a[0, :96].tolist()
    results = (
        square, a @ a[0], a[:, :3] @ a[:3, :3], np.linalg.norm(a, axis=1), a.sum(axis=0), a.sum(),
        np.einsum("ij,jk->ik", small, small), np.linalg.inv(small),
        scipy.linalg.cholesky(small @ small.T + np.eye(SMALL)),
        np.exp(a), np.sin(a), np.log(a), np.sqrt(a), np.arctan2(a, a.T), np.power(a, 1.7),
        [f(x) for f in (math.exp, math.sin, math.cos, math.log) for x in few],
    )  # fmt: skip
    digest = sha256()
    for result in results:
        digest.update(np.ascontiguousarray(result).tobytes())
    return digest.hexdigest()[:16]
