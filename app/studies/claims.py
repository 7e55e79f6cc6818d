"""What a study claims: a value, what was expected and from where, and whether it holds."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

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


def _with(value: float, unit: str) -> str:
    return f"{value:.4g}{'' if unit.startswith('%') else ' '}{unit}".strip()


def _finite(value: float) -> bool:
    return bool(np.isfinite(value))


def print_claims(title: str, claims: Sequence[Claim], console: Console) -> None:
    """The verdict as a table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("claim", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("expected", overflow="fold")
    table.add_column("holds", justify="center")
    for claim in claims:
        mark = "[green]yes[/]" if claim.holds else "[bold red]NO[/]"
        table.add_row(claim.name, _with(claim.value, claim.unit), claim.expected, mark)
    console.print(table)


def write_claims(path: Path, study: str, quick: bool, claims: Sequence[Claim]) -> None:
    """The verdict as data; a value that is not finite is written as null."""
    rows = [asdict(claim) for claim in claims]
    for row in rows:
        row["value"] = row["value"] if _finite(row["value"]) else None
    data = {"study": study, "quick": quick, "claims": rows}
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
