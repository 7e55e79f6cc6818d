"""Machine code that comes with the program, so that a first start need not compile.

A wheel has it for levels of processors: a ZIP file for each, in the folder `shipped` beside this file. An
entry is what one kernel compiled to, found as in the cache by all that it was compiled from; code of other
sources, of another Python or numba, is thus not found, and compiled as ever. What a kernel that is compiled
here needs of others is not in it: `palpo compile` makes all for the very processor.

Whoever can write that folder can write the program, so it is believed as the program is, but for damage: an
entry has the digest of what it holds (SHA-256).
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from zipfile import ZIP_LZMA, BadZipFile, ZipFile

from llvmlite import binding

from palpo.physics.numerics.own import tell

FOLDER = Path(__file__).with_name("shipped")
NATIVE = "PALPO_COMPILES_AHEAD"
"""Variable of the environment of a process that compiles for its own processor, whatever is shipped."""
LEVELS: Mapping[str, str] = {
    "x86-64-v4": "avx2 bmi bmi2 f16c fma lzcnt movbe avx512f avx512bw avx512cd avx512dq avx512vl",
    "x86-64-v3": "avx2 bmi bmi2 f16c fma lzcnt movbe",
}
"""Levels of processors, the best first, with the abilities of each beyond SSE 4.2, as LLVM names them.
Source: x86-64 psABI, table 3.1."""


def abilities() -> set[str]:
    """What this processor can do, in LLVM's names."""
    return {name for name, has in binding.get_host_cpu_features().items() if has}


def levels(has: set[str]) -> list[str]:
    """The levels that a processor of these abilities reaches, the best first."""
    return [level for level, asked in LEVELS.items() if has.issuperset(asked.split())]


def shipped(text: str) -> bytes | None:
    """What came with the program under this text; None where nothing did."""
    archive = _archive()
    if archive is None:
        return None
    try:
        entry = archive.read(_name(text))
    except KeyError:
        return None
    except Exception:  # damage makes zipfile and lzma raise whatever they meet
        entry = b""
    digest, content = entry[:32], entry[32:]
    if hashlib.sha256(content).digest() != digest:
        tell(FOLDER)
        return None
    return content


def ship(file: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    """Write what `shipped` finds: content by text."""
    file.parent.mkdir(exist_ok=True)
    with ZipFile(file, "w", ZIP_LZMA) as archive:
        for text, content in sorted(entries):
            archive.writestr(_name(text), hashlib.sha256(content).digest() + content)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def _archive() -> ZipFile | None:
    """The file of the best level that came with the program, open."""
    if NATIVE in os.environ or "NUMBA_CPU_NAME" in os.environ:
        return None
    for level in levels(abilities()):
        file = FOLDER / f"{level}.zip"
        try:
            if file.exists():
                return ZipFile(file)
        except (OSError, BadZipFile):
            tell(FOLDER)
    return None
