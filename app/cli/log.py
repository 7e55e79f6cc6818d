"""The log: what the program said and did, in a file that begins anew when it is full.

It stands in the user's folder for state, `palpo/palpo.log`, and keeps KEPT older files beside it.
"""

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG = logging.getLogger("palpo")
"""Who says something says it here, too; nobody hears it until `begin_log`."""
LOG.addHandler(logging.NullHandler())
LOG.setLevel(logging.INFO)
LOG.propagate = False
LARGEST, KEPT = 1_000_000, 3
"""Bytes of a file after which another one begins, and how many full ones are kept."""


def state_folder() -> Path:
    """The user's: below XDG_STATE_HOME or ~/.local/state; on Windows below LOCALAPPDATA."""
    home = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_STATE_HOME")
    return Path(home or Path.home() / ".local" / "state") / "palpo"


def log_file() -> Path:
    """Where the log is."""
    return state_folder() / "palpo.log"


def begin_log(arguments: Sequence[str]) -> str:
    """Log from now on, first of all how the program was called; why that cannot be, or an empty text."""
    try:
        path = log_file()
    except RuntimeError:
        return "a user without a home has no log; set XDG_STATE_HOME to a folder of yours"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=LARGEST, backupCount=KEPT, encoding="utf-8")
    except OSError as error:
        return f"{path} cannot be written ({error.strerror or error})"
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    LOG.addHandler(handler)
    LOG.info("palpo %s", shlex.join(arguments))
    return ""


def end_log() -> None:
    """Close the file."""
    for handler in [handler for handler in LOG.handlers if isinstance(handler, RotatingFileHandler)]:
        LOG.removeHandler(handler)
        handler.close()
