"""The seal of a file that only its own user's programs may read: a keyed digest (HMAC-SHA256, RFC 2104).

A state is the memory of compiled code, which looks nothing up twice: an index in it that was tampered with is
a crash or worse, in whatever body a later version brings. So no value of a file is believed before all of it
is known to be as it was written: each file begins with the digest of what follows, by a key that lies where
only its owner can read. Whoever shares states shares the key, by PALPO_STATE_KEY.
"""

import hmac
import os
import secrets
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from palpo.config.words import Refusal
from palpo.physics.numerics.own import LENGTH, digest_of, make_key, read_key

KEY = "PALPO_STATE_KEY"
"""Environment variable that names another file for the key."""
MARK = b"palpo state, sealed\n"
"""What a sealed file begins with, before its digest."""
BODY = len(MARK) + LENGTH
"""Where what is sealed begins."""


def seal(file: IO[bytes]) -> None:
    """Write mark and digest before what a file holds from BODY on, which was written with room for them."""
    digest = digest_of(file, BODY, _key())
    file.seek(0)
    file.write(MARK + digest)


def open_sealed(file: IO[bytes], path: Path) -> None:
    """Leave a file at BODY if its seal is by this user's key; Refusal, and nothing of it read, if not."""
    head = file.read(BODY)
    if not head.startswith(MARK) or len(head) < BODY:
        raise Refusal(f"{path}: not a state that palpo saved")
    if not hmac.compare_digest(head[len(MARK) :], digest_of(file, BODY, _key())):
        raise Refusal(
            f"{path}: the state is damaged, or was saved with another key than that of {_told(key_file())}; "
            f"set {KEY} to the key file of whoever saved it, if you trust that person as you do a program"
        )
    file.seek(BODY)


def key_file() -> Path | None:
    """Where this user's key lies, which need not be there yet; None for a user without a home."""
    if told := os.environ.get(KEY):
        return Path(told)
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        else:
            base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    except RuntimeError:
        return None
    return base / "palpo" / "state.key"


def _told(path: Path | None) -> str:
    return "this process" if path is None else str(path)


def _key() -> bytes:
    """The key, made at its first use; where there is no place for it, one that ends with this process."""
    path = key_file()
    if path is None:
        return _fleeting()
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            return read_key(path)
        try:
            make_key(path)
        except OSError:
            return _fleeting()
        return read_key(path)
    except ValueError as error:
        raise Refusal(str(error)) from None


@cache
def _fleeting() -> bytes:
    return secrets.token_bytes(LENGTH)
