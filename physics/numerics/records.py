"""Records of named counts, which compiled code and Python read by the same names."""

import numpy as np


def counters(*names: str) -> np.dtype[np.void]:
    """The dtype of a record of int64 counts: of an array a (1,), `a[0].name` is one of them."""
    return np.dtype((np.record, [(name, np.int64) for name in names]))
