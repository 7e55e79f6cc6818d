"""A benchmark's figures for people: few tables, a line a case. `--json` has every figure.

What a benchmark returns is nested tables of numbers. Whatever their names, these shapes are known:

- what `beside` and `within` return is a line of the first table: ours, the other's or the limit, the ratio;
- percentiles are a line of the table of times;
- two or more tables that have most of their keys in common are cases: one table, a line a case, or a column
  a case where they are few;
- a table with `columns` has tuples of as many values under its other keys: a line each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from palpo.app.cli.summary import QUANTILES, console_for_people, number

Figures = Mapping[str, Any]

FEW = 4
"""Cases that are columns beside each other."""
MOST_COLUMNS = 6
"""Quantities in a line of a case."""
OTHER = "the other is"
WIDTH = 116
"""Letters in a line of a file."""
SHORT = 4
"""Values that are said in one cell or line."""
ALIKE = 0.5
"""Share of all their keys that cases have in common."""


def print_bench(results: Mapping[str, Figures], console: Console | None = None) -> None:
    """Every benchmark's tables, each under its name."""
    console = console or console_for_people()
    if not console.is_terminal:
        console.width = WIDTH
    for bench, figures in results.items():
        console.print(f"\n{bench}", style="bold")
        for table in tables(figures):
            console.print(table)
    console.print("All figures: --json FILE", style="dim")


def tables(figures: Figures) -> list[Table]:
    """The tables of one benchmark, what is compared first."""
    found = _Found()
    _gather(figures, (), found)
    return found.tables()


class _Found:
    """What there is to print, by its kind; a name is the way to it."""

    def __init__(self) -> None:
        self.compared: list[tuple[str, Figures]] = []
        self.times: list[tuple[str, Figures]] = []
        self.facts: list[tuple[str, str]] = []
        self.lists: list[Table] = []

    def tables(self) -> list[Table]:
        """In the order in which they are read."""
        made = []
        if self.compared:
            rows = [_compared(name, pair) for name, pair in self.compared]
            made.append(_table("", ("", "ours", "other", "ratio", OTHER), rows))
        if self.times:
            rows = [(name, *(number(values.get(q)) for q in QUANTILES)) for name, values in self.times]
            made.append(_table("", ("times", "median", "p99", "p99.9", "max"), rows))
        made += self.lists
        if self.facts:
            made.append(_table("", ("", ""), self.facts))
        return made


def _gather(figures: Figures, way: tuple[str, ...], found: _Found) -> None:
    """Sort what is in a table, and in those below it, by its kind."""
    cases = _cases(figures)
    if cases:
        _gather_cases(cases, way, found)
    for name, value in figures.items():
        here = (*way, name)
        if name in cases:
            continue
        if not isinstance(value, Mapping):
            found.facts.append((_named(here), number(value)))
        elif _is_pair(value):
            found.compared.append((_named(here), value))
        elif _is_distribution(value):
            found.times.append((_named(here), value))
        elif "columns" in value:
            rows = [(key, *map(number, row)) for key, row in value.items() if key != "columns"]
            found.lists.append(_table(_named(here), ("", *value["columns"]), rows))
        elif _is_short(value):
            found.facts.append((_head(_named(here), value), _cell(value)))
        else:
            _gather(value, here, found)


def _cases(figures: Figures) -> dict[str, Figures]:
    """Entries that are tables of the same things; none where there are fewer than two."""
    tables = {name: value for name, value in figures.items() if _is_table(value)}
    if len(tables) < 2:
        return {}
    keys = [set(value) for value in tables.values()]
    shared, all_keys = set.intersection(*keys), set.union(*keys)
    return tables if len(shared) > ALIKE * len(all_keys) else {}


def _gather_cases(cases: Mapping[str, Figures], way: tuple[str, ...], found: _Found) -> None:
    """Their comparisons as lines of the first table, the rest as a table of their own or as cases below."""
    for name, case in cases.items():
        found.compared += [(_named((*way, name, key)), pair) for key, pair in _pairs(case)]
    first = next(iter(cases.values()))
    keys = [key for key in first if all(_cell(case.get(key)) for case in cases.values())]
    if keys:
        if len(cases) <= FEW:
            rows = [(_head(key, first[key]), *(_cell(case[key]) for case in cases.values())) for key in keys]
            found.lists.append(_table(_named(way), ("", *cases), rows))
        else:
            keys = keys[:MOST_COLUMNS]
            heads = [_head(key, first[key]) for key in keys]
            rows = [(name, *(_cell(case[key]) for key in keys)) for name, case in cases.items()]
            found.lists.append(_table(_named(way), ("", *heads), rows))
        return
    for name, case in cases.items():
        rest = {key: value for key, value in case.items() if not _is_pair(value)}
        if any(_is_table(value) and not _cases(rest) for value in rest.values()):
            _gather(rest, (*way, name), found)
        elif below := _cases(rest):
            _gather_cases(below, (*way, name), found)


def _pairs(case: Figures) -> Iterator[tuple[str, Figures]]:
    return ((key, value) for key, value in case.items() if _is_pair(value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, Mapping) and {"ours", "ratio"} <= set(value)


def _is_distribution(value: Any) -> bool:
    return isinstance(value, Mapping) and {"p50", "max"} <= set(value)


def _is_short(value: Any) -> bool:
    """Whether it is a few plain values."""
    few = isinstance(value, Mapping) and len(value) <= SHORT
    return few and not any(isinstance(one, Mapping) for one in value.values())


def _is_table(value: Any) -> bool:
    known = _is_pair(value) or _is_distribution(value) or _is_short(value)
    return isinstance(value, Mapping) and not known and "columns" not in value


def _short(value: Any) -> str:
    """Three significant digits, more only of what is whole: a cell has little room."""
    if not isinstance(value, float):
        return number(value)
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def _cell(value: Any) -> str:
    """A value in one cell; empty for what does not fit, and for what the first table has."""
    if not isinstance(value, Mapping):
        return _short(value)
    if _is_distribution(value):
        return f"{_short(value['p50'])} / {_short(value.get('p99'))}"
    if _is_pair(value) or not _is_short(value):
        return ""
    return ", ".join(_short(one) for one in value.values())


def _head(name: str, value: Any) -> str:
    """What stands before or over the cells of such values."""
    if _is_distribution(value):
        return f"{name} (p50 / p99)"
    return f"{name} ({', '.join(value)})" if isinstance(value, Mapping) else name


def _compared(name: str, pair: Figures) -> tuple[str, ...]:
    """A line: name, ours, the other, their ratio, and whose the other is."""
    if "at most" in pair:
        other, whose = pair["at most"], "the limit, " + ("kept" if pair.get("met") else "EXCEEDED")
    else:
        other, whose = pair.get("other"), str(pair.get("whose", ""))
    return name.replace("target ", ""), number(pair["ours"]), number(other), number(pair["ratio"]), whose


def _named(way: tuple[str, ...]) -> str:
    return ", ".join(way)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(title=title or None, title_justify="left", show_header=any(heads), box=box.SIMPLE)
    for k, head in enumerate(heads):
        words = k == 0 or head == OTHER
        table.add_column(head, justify="left" if words else "right", no_wrap=not words)
    for row in rows:
        table.add_row(*row)
    return table
