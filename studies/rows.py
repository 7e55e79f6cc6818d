"""Rows of a table: figures by the names of their columns."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def pick(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def mean(rows: Sequence[Row], key: str) -> float:
    """Mean of a column."""
    return float(np.mean([row[key] for row in rows]))
