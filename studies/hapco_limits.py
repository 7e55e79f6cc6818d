"""The largest factor on rho that a method bears, between the factors that a study tries anyway."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from palpo.studies.rows import Row

WIDTH = 0.01
"""Share by which the least factor with a failure may lie above the largest below it without one."""


def scanned(
    factors: Iterable[float], rows_at: Callable[[float], Sequence[Row]], width: float = WIDTH
) -> Iterator[Row]:
    """Rows at each of the factors, then of a bisection between the last without failure and the next.

    rows_at: rows of a factor, whose `met` says whether each solve met its stop. Bisection ends where both
    sides are within `width`; there is none where no factor fails, or the first one does.
    """
    most, least = 0.0, math.inf

    def tried(factor: float) -> Sequence[Row]:
        nonlocal most, least
        rows = rows_at(factor)
        if not all(row["met"] for row in rows):
            least = min(least, factor)
        elif factor < least:
            most = max(most, factor)
        return rows

    for factor in sorted(factors):
        yield from tried(factor)
    while most > 0.0 and least < math.inf and least > (1.0 + width) * most:
        yield from tried(0.5 * (most + least))


def largest(rows: Iterable[Row]) -> tuple[float, list[Row]]:
    """The largest factor below which no row failed, and the rows of the next one, if there is one."""
    by_factor: dict[float, list[Row]] = {}
    for row in rows:
        by_factor.setdefault(row["factor"], []).append(row)
    most = 0.0
    for factor in sorted(by_factor):
        if not all(row["met"] for row in by_factor[factor]):
            return most, by_factor[factor]
        most = factor
    return most, []
