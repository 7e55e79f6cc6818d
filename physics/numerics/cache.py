"""Where what is expensive to compute is kept for later runs."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from palpo.physics.numerics.own import own_folder


def cache_folder(room: str) -> Path | None:
    """This program's folder for one kind of result; None where this user has no place for it.

    In the user's folder of caches; where that cannot be written or is open to others, in the temporary one.
    """
    return next((folder for base in _bases() if (folder := own_folder(base / room))), None)


def _bases() -> Iterator[Path]:
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        yield base / "palpo"
    except RuntimeError:  # a user without a home
        pass
    if sys.platform == "win32":
        yield Path(tempfile.gettempdir()) / "palpo"
    elif (own := own_folder(Path(tempfile.gettempdir()) / f"palpo-{os.getuid()}")) is not None:
        yield own
