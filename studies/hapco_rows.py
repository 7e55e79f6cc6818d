"""Rows of the thesis's solver study in words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from palpo.studies.hapco_thesis import cell
from palpo.studies.rows import Row

Data = Mapping[str, Sequence[Row]]
AGREE = 0.01
"""Per cent by which the forces of two solvers at a residual of 1e-8 may differ: 1e-8 times the condition of
the softest pair, some 1e3, and room for ten times that."""


def names_of(rows: Sequence[Row]) -> str:
    """Which solves they are."""
    return "; ".join(f"{r['symbol']} {r['pair']} {r['path']} {r['mu']:g}" for r in rows) or "none"


def median_of(values: Iterable[float]) -> float:
    """NaN without values."""
    known = list(values)
    return float(np.median(known)) if known else float("nan")


def printed_cell(row: Row) -> Any:
    """What the thesis's table has in its place."""
    return cell(row["pair"], row["path"], row["symbol"], row["mu"])


def places_of(rows: Sequence[Row]) -> str:
    """The paths of failures, with how many steps."""
    counts: dict[str, int] = {}
    for row in rows:
        place = f"{row['pair']} {row['path']} mu {row['mu']:g}"
        counts[place] = counts.get(place, 0) + 1
    return f" ({'; '.join(f'{place}: {n}' for place, n in counts.items())})" if counts else ""
