"""Folders, keys and files that are this user's alone, so that what was kept may be believed.

What is read back is compiled code, or numbers that compiled code does not look at twice. So it is read only
from a folder that is this user's and that nobody else may write, and from a file that is all as it was
written: each begins with a keyed digest of what follows (HMAC-SHA256, RFC 2104), by a key that only its owner
can read. Anything else counts as not there. On Windows a user's folders are that user's by themselves.
"""

import hmac
import os
import secrets
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

KEY = "key"
"""Name of the key among the files of a folder."""
LENGTH = 32
"""Bytes of a key, and of a digest."""
BLOCK = 1 << 20


class Spoilt(UserWarning):
    """Kept files were changed since they were written; what they held is made anew."""


def is_own(held: os.stat_result, hidden: bool = False) -> bool:
    """Whether a file or folder is this user's, and nobody else may write it; nor read it, if hidden."""
    if sys.platform == "win32":
        return True
    return held.st_uid == os.getuid() and not held.st_mode & (0o077 if hidden else 0o022)


def own_folder(folder: Path) -> Path | None:
    """The folder, made where there is none, if it is this user's alone to write; else None.

    What is this user's and was open to others is closed: each file in it is looked at by itself.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = folder.stat()
        if not is_own(held) and held.st_uid == os.getuid():
            folder.chmod(held.st_mode & 0o755)
        if not is_own(folder.stat()):
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def keep(folder: Path, name: str, fill: Callable[[IO[bytes]], object]) -> bool:
    """Have a file written under the folder's seal, seen only when it is whole; False where it cannot be."""
    path = folder / name
    try:
        key = _key_of(folder)
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except (OSError, ValueError):
        return False
    try:
        with os.fdopen(handle, "wb+") as file:
            file.write(bytes(LENGTH))
            fill(file)
            digest = digest_of(file, LENGTH, key)
            file.seek(0)
            file.write(digest)
        Path(beside).replace(path)
    except OSError:  # a full disk, a folder that was removed
        return False
    finally:
        Path(beside).unlink(missing_ok=True)
    return True


def kept(folder: Path, name: str) -> IO[bytes] | None:
    """What `keep` wrote there, open where it begins; None if there is none, or if it is not as written.

    The first in a folder that is not as it was written is told by a warning, `Spoilt`.
    """
    try:
        file = (folder / name).open("rb")
    except OSError:
        return None
    with suppress(OSError, ValueError):
        head = file.read(LENGTH)
        if is_own(os.fstat(file.fileno())) and hmac.compare_digest(
            head, digest_of(file, LENGTH, _key_of(folder))
        ):
            file.seek(LENGTH)
            return file
    file.close()
    tell(folder)
    return None


def digest_of(file: IO[bytes], begin: int, key: bytes) -> bytes:
    """The keyed digest of what a file holds from `begin` on."""
    file.seek(begin)
    digest = hmac.new(key, digestmod="sha256")
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.digest()


@cache
def tell(folder: Path) -> None:
    """Say that files of a folder are not as they were written: once in a process."""
    told = f"{folder} holds files that are damaged or were written by others; what they held is made anew"
    warnings.warn(told, Spoilt, stacklevel=3)


def has_told() -> bool:
    """Whether this process has met such files."""
    return tell.cache_info().currsize > 0


@cache
def _key_of(folder: Path) -> bytes:
    """The key that files of a folder are sealed by; one that is no key gives way to a new one."""
    path = folder / KEY
    try:
        return read_key(path)
    except FileNotFoundError:
        make_key(path)
    except ValueError:
        path.unlink()
        make_key(path)
    return read_key(path)


def make_key(path: Path) -> None:
    """A new key, whole from the first moment that it is seen; another process may be first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
        with suppress(FileExistsError):
            os.link(half, path)
    finally:
        half.unlink()


def read_key(path: Path) -> bytes:
    """The key in a file that is this user's alone; ValueError for any other."""
    with path.open("rb") as file:
        held, key = os.fstat(file.fileno()), file.read(LENGTH + 1)
    if not is_own(held, hidden=True):
        raise ValueError(f"{path}: the key must be yours, and no others' to read: chmod 600 {path}")
    if len(key) != LENGTH:
        raise ValueError(f"{path}: a key has {LENGTH} bytes; delete the file for a new key")
    return key
