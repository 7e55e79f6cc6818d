"""Studies and benchmarks by name, looked up late: a start must not wait for what it does not run."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any


def registered(module: str, table: str) -> dict[str, Callable[..., Any]]:
    """The table of a registry module; empty where this installation has no such module."""
    try:
        return dict(getattr(importlib.import_module(module), table))
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return {}


def summary_of(entry: Callable[..., Any]) -> str:
    """First line of its docstring."""
    return (inspect.getdoc(entry) or "").partition("\n")[0]
