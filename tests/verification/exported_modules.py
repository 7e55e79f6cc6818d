"""What was exported for other simulators, as its user has it."""

import runpy
import sys
from pathlib import Path
from typing import Any


def module_of(folder: Path, name: str, beside: str) -> dict[str, Any]:
    """The names of a module of the folder, which imports `beside` from there, and nothing of Palpo's own."""
    sys.path.insert(0, str(folder))
    try:
        return runpy.run_path(str(folder / f"{name}.py"))
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(beside, None)
