"""Studies and benchmarks, found by entry points: installed beside the program, on which they stand."""

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

GROUP = "palpo.registries"


def registry(name: str) -> Any:
    """The module that lists the "studies" or the "benchmarks"; None where this installation has none."""
    for entry in entry_points(group=GROUP, name=name):
        return entry.load()
    return None


def summary_of(entry: Callable[..., Any]) -> str:
    """First line of its docstring."""
    return (inspect.getdoc(entry) or "").partition("\n")[0]
