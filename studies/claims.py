"""What a study claims: a value, what was expected and from where, whether it holds; and plain figures."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table


class Skipped(Exception):
    """A study that cannot run here; the message is the reason, one sentence."""


@dataclass(frozen=True)
class Claim:
    """One line of a study's verdict. A claim that does not hold stays in the table."""

    name: str
    value: float
    unit: str
    expected: str
    """In words, with its source."""
    holds: bool


@dataclass(frozen=True)
class Reported:
    """A figure: one line that nothing is demanded of, so that it counts for nothing in the verdict."""

    name: str
    value: float
    unit: str
    about: str
    """In words: why it is of interest, or what it stands beside."""


Line = Claim | Reported


def claimed(lines: Sequence[Line]) -> list[Claim]:
    """The lines that can fail."""
    return [line for line in lines if isinstance(line, Claim)]


def reported(lines: Sequence[Line]) -> list[Reported]:
    """The lines that cannot."""
    return [line for line in lines if isinstance(line, Reported)]


def at_most(name: str, value: float, limit: float, unit: str, source: str) -> Claim:
    """value <= limit; a value that is not finite never holds."""
    return Claim(
        name,
        float(value),
        unit,
        f"<= {_with(limit, unit)} ({source})",
        _finite(value) and bool(value <= limit),
    )


def at_least(name: str, value: float, limit: float, unit: str, source: str) -> Claim:
    """value >= limit; a value that is not finite never holds."""
    return Claim(
        name,
        float(value),
        unit,
        f">= {_with(limit, unit)} ({source})",
        _finite(value) and bool(value >= limit),
    )


def close_to(name: str, value: float, wanted: float, percent: float, unit: str, source: str) -> Claim:
    """|value - wanted| <= percent of |wanted|."""
    holds = _finite(value) and bool(abs(value - wanted) <= 0.01 * percent * abs(wanted))
    return Claim(name, float(value), unit, f"{_with(wanted, unit)} within {percent:g}% ({source})", holds)


def greatest(values: Iterable[float]) -> float:
    """The greatest; unlike max, not a number as soon as one of them is not."""
    return float(np.max(list(values)))


def smallest(values: Iterable[float]) -> float:
    """The least; unlike min, not a number as soon as one of them is not."""
    return float(np.min(list(values)))


def _with(value: float, unit: str) -> str:
    return f"{value:.4g}{'' if unit.startswith('%') else ' '}{unit}".strip()


def _finite(value: float) -> bool:
    return bool(np.isfinite(value))


def print_claims(title: str, lines: Sequence[Line], console: Console) -> None:
    """The verdict as a table; a figure says so where a claim says whether it holds."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("claim", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("expected", overflow="fold")
    table.add_column("holds", justify="center")
    for line in lines:
        value = _with(line.value, line.unit)
        if isinstance(line, Reported):
            table.add_row(line.name, value, line.about, "[dim]figure[/]")
            continue
        table.add_row(line.name, value, line.expected, "[green]yes[/]" if line.holds else "[bold red]NO[/]")
    console.print(table)


def write_claims(path: Path, study: str, quick: bool, lines: Sequence[Line]) -> None:
    """The verdict as data, claims and figures apart; a value that is not finite is written as null."""
    data = {
        "study": study,
        "quick": quick,
        "claims": _plain(claimed(lines)),
        "figures": _plain(reported(lines)),
    }
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _plain(lines: Sequence[Line]) -> list[dict[str, Any]]:
    return [asdict(line) | {"value": line.value if _finite(line.value) else None} for line in lines]
