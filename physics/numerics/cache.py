"""Where what is expensive to compute is kept for later runs."""

import os
import sys
from pathlib import Path


def cache_folder(room: str) -> Path | None:
    """This program's folder for one kind of result, not made yet; None where there is no place for it."""
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return None
    return base / "palpo" / room
