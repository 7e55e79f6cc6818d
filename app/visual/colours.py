"""The range of values that colours stand for."""

import numpy as np
from numpy.typing import NDArray

SMALLEST_STRAIN = 1e-3
"""A colour bar never ends below this strain, so that rounding is not shown as if it were one."""

COLOURED = 0.98
"""Share of the values that a colour bar tells apart."""


def colour_range(upper: float, values: NDArray[np.float64], smallest: float = SMALLEST_STRAIN) -> float:
    """Upper end of a colour bar: 1, 2 or 5 times a power of ten that holds `COLOURED` of the `values`, and
    `smallest` in any case.

    The rest are the peaks under single loads, which grow with the mesh. An `upper` that still does and is not
    far too large stays, so that the colours do not flicker.
    """
    finite = np.sort(values[np.isfinite(values)])
    largest = max(float(finite[int(COLOURED * (len(finite) - 1))]) if len(finite) else 0.0, smallest)
    if 0.3 * upper <= largest <= upper:
        return upper
    power = 10.0 ** np.floor(np.log10(largest))
    return float(power * min(k for k in (1, 2, 5, 10) if largest <= k * power * (1 + 1e-9)))
