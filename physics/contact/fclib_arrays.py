"""The vectors and sparse matrices of a file of contact problems, checked: FCLIB's storages are in `io`."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError

ROWS = 10_000_000
"""Most rows and columns of a matrix in a file."""


def numbers(file: Any, key: str) -> NDArray[np.float64]:
    """The array of a key, as float64, finite; InputError for another."""
    if key not in file:
        raise InputError(f"{key} is missing")
    values = file[key][()]
    if not np.issubdtype(np.asarray(values).dtype, np.number) or np.iscomplexobj(values):
        raise InputError(f"{key} does not hold real numbers")
    values = np.asarray(values, np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{key} holds NaN or infinity")
    return values


def vector(file: Any, key: str, size: int) -> NDArray[np.float64]:
    """The same of shape (size,)."""
    values = numbers(file, key)
    if values.shape != (size,):
        raise InputError(f"{key} has shape {values.shape}, expected {(size,)}")
    return values


def matrix(file: Any, key: str, rows: int | None = None) -> sp.csc_array:
    """A sparse matrix in any of FCLIB's storages, with as many rows as asked."""
    for part in ("m", "n", "nz", "p", "i", "x"):
        if f"{key}/{part}" not in file:
            raise InputError(f"{key}/{part} is missing")
    m, n, nz = (int(file[f"{key}/{part}"][0]) for part in ("m", "n", "nz"))
    p, i = (np.asarray(file[f"{key}/{part}"][()]) for part in ("p", "i"))
    x = numbers(file, f"{key}/x")
    if not 0 <= min(m, n) <= max(m, n) <= ROWS:
        raise InputError(f"{key} has {m} rows and {n} columns; 0 to {ROWS} can be read")
    if rows is not None and m != rows:
        raise InputError(f"{key} has {m} rows, expected {rows}")
    if nz >= 0:
        if min(len(p), len(i), len(x)) < nz:
            raise InputError(f"{key} has {nz} triplets but p, i, x of {len(p)}, {len(i)}, {len(x)}")
        _require_indices(f"{key}/i", i[:nz], m)
        _require_indices(f"{key}/p", p[:nz], n)
        return sp.coo_array((x[:nz], (i[:nz], p[:nz])), (m, n)).tocsc()
    if nz not in (-1, -2):
        raise InputError(f"{key}/nz is {nz}; expected -1 (columns), -2 (rows) or a number of triplets")
    lines, across = (n, m) if nz == -1 else (m, n)
    if p.shape != (lines + 1,) or p[0] != 0 or (np.diff(p) < 0).any() or p[-1] > min(len(i), len(x)):
        raise InputError(f"{key}/p must rise from 0 to at most {min(len(i), len(x))} in {lines + 1} steps")
    entries = int(p[-1])
    _require_indices(f"{key}/i", i[:entries], across)
    kind = sp.csc_array if nz == -1 else sp.csr_array
    return sp.csc_array(kind((x[:entries], i[:entries], p), (m, n)))


def _require_indices(key: str, indices: NDArray[Any], size: int) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise InputError(f"{key} runs from {indices.min()} to {indices.max()}, expected 0 to {size - 1}")
