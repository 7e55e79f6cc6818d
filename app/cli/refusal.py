"""Bad input as the user sees it: one sentence on standard error, and outputs tried before the work begins.

What is no bad input is an error of the program: it is told as one, and its trace is kept in a file."""

import os
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palpo.config.words import Refusal

BAD_INPUT, FAILED = 2, 3
"""Status of a command that was refused, and of a run or a program that failed."""


REFUSALS = ("InputError", "HapticsError", "RenderUnavailable", "Refusal")


def is_refusal(error: BaseException) -> bool:
    """Whether an error is bad input or a file that cannot be used; by name, so that nothing is imported."""
    return isinstance(error, OSError) or any(kind.__name__ in REFUSALS for kind in type(error).__mro__)


def speaks(error: BaseException) -> bool:
    """Whether an error has words for the user: bad input, or a state that cannot go on."""
    known = is_refusal(error) or type(error) in (FloatingPointError, RuntimeError)
    return known and bool(str(error).strip())


def account(error: BaseException) -> str:
    """One sentence on what went wrong; for an error of the program, that it is one, and where its trace is.

    Bad input speaks for itself, and so does a state that the physics says it cannot go on from.
    """
    words = " ".join(str(error).split())
    if speaks(error):
        return words
    named = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return f"an error of the program: {named}; {_keep_trace(error)}"


def _keep_trace(error: BaseException) -> str:
    """Write the trace to a new file; where it is, or why it is nowhere."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="palpo-error-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
    except OSError as why:
        return f"its trace cannot be written ({why.strerror or why})"
    return f"the trace is in {file.name}"


def check_folder(folder: Path, key: str) -> None:
    """Make the folder and write into it; Refusal if that cannot be done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or error
        raise Refusal(
            f"{key} {folder}: cannot be written ({why}); give a folder that you may write"
        ) from None


def check_file(path: Path, key: str) -> None:
    """Open the file for writing without changing it; Refusal if that cannot be done."""
    there = path.exists()
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError as error:
        why = error.strerror or error
        raise Refusal(f"{key} {path}: cannot be written ({why}); give a file that you may write") from None
    if not there:
        path.unlink()


def chosen_of(name: str, known: Mapping[str, Any], what: str) -> Any:
    """The entry of that name; Refusal with those that there are."""
    if name not in known:
        there = ", ".join(known) or "none in this version"
        raise Refusal(f"{name}: there is no such {what}; there are: {there}")
    return known[name]
