"""Bad input as the user sees it: one sentence on standard error, and outputs tried before the work begins."""

import os
import tempfile
from pathlib import Path


class Refusal(ValueError):
    """A command that cannot be carried out, told in one sentence."""


REFUSALS = ("ConfigError", "InputError", "HapticsError", "RenderUnavailable", "Refusal")


def is_refusal(error: BaseException) -> bool:
    """Whether an error is bad input or a file that cannot be used; by name, so that nothing is imported."""
    return isinstance(error, OSError) or any(kind.__name__ in REFUSALS for kind in type(error).__mro__)


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
