"""How this program compiles: decorators that say all that a kernel needs, and the cache of what they made.

numba leaves three things to chance that may not be left to it:

* A kernel that does not state its error model and its fastmath takes both from whoever compiles it first.
  Here every kernel states them: divisions give inf or NaN instead of raising, and sums keep their order.
* A cached caller does not notice that a helper in another file was edited. Here a cached kernel is found by
  the content of its own file and of all project files that this one imports, directly or not, by the versions
  of Python, numba and NumPy, and by the processor.
* Two layouts of a NamedTuple whose fields have the same types count as one. Here a signature spells out the
  fields' names.

A cache hit is thus the code that compiling would give; anything else is a miss. The cache lies in the user's
cache folder (`cache_folder("kernels")`), or in NUMBA_CACHE_DIR, under the seal that `own` gives, and keeps
the newest generations of each file. Processes may fill it side by side. What it lacks may have come with the
program (`shipped`).
"""

import ast
import functools
import hashlib
import os
import pickle
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config, sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.ccallback import CFunc
from numba.core.errors import NumbaWarning
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from palpo.physics.numerics.cache import cache_folder
from palpo.physics.numerics.kernel_parts import KernelDispatcher, connect, names_alone, restored_part
from palpo.physics.numerics.own import keep, kept, own_folder
from palpo.physics.numerics.shipped import shipped

FAST = {"contract", "nsz"}
"""fastmath of `fast_kernel`: products may fuse with sums; NaN and infinity keep their meaning. Sums keep
their order: were it free, code just compiled and the same code from the cache would differ in the last bits,
and so would a replay."""

REORDERING = {"reassoc", "contract"}
"""fastmath of `reordering_kernel`."""

GENERATIONS = 6
"""Generations of a file's compiled code that are kept: the last ones used, and all that were used today."""
DAY = 86400.0

_ROOT = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w., \t]+))", re.M
)
_KERNEL = re.compile(r"^@(?:kernel|fast_kernel|reordering_kernel|inlined|callback\b.*)$", re.M)
_ALWAYS = ("physics/exchange/handle.py", "physics/exchange/atomics.py")
"""What shapes compiled code without being imported by it."""
_NEVER = frozenset(Path(__file__).resolve().with_name(name) for name in ("kernels.py", "kernel_parts.py"))
"""What is imported by all and shapes compiled code by its rules alone, which the digest has."""
_RULES: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that holds no GIL, divides without raising and keeps the order of its sums."""
    return _cached(function, fastmath=False)


def fast_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, with the liberties of FAST."""
    return _cached(function, fastmath=FAST)


def reordering_kernel(function: Callable[..., Any]) -> Any:
    """As `kernel`, but the compiler may sum in any order, so that several terms go at once."""
    return _cached(function, fastmath=REORDERING)


def inlined(function: Callable[..., Any]) -> Any:
    """As `kernel`, for a helper whose code is put in place of each call to it."""
    return _cached(function, fastmath=False, forceinline=True)


def fast_inlined(function: Callable[..., Any]) -> Any:
    """As `inlined`, with the liberties of FAST."""
    return _cached(function, fastmath=FAST, forceinline=True)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a C function of a given signature, under the rules of `kernel`."""

    def compiled(function: Callable[..., Any]) -> Any:
        result: Any = CFunc(
            function,
            sigutils.normalize_signature(signature),
            locals={},
            options={**_RULES, "nopython": True, "fastmath": False},
        )
        result._cache = KernelCache(function)
        result.compile()
        connect(result._library)
        return result

    return compiled


def layout(numba_type: Any) -> str:
    """A numba type in words that no other layout shares: a NamedTuple with its fields' names."""
    if isinstance(numba_type, types.BaseNamedTuple):
        of = numba_type.instance_class
        fields = zip(numba_type.fields, numba_type.types, strict=True)
        return f"{of.__module__}.{of.__qualname__}({', '.join(f'{n}: {layout(t)}' for n, t in fields)})"
    if isinstance(numba_type, types.BaseTuple):
        return f"({', '.join(layout(t) for t in numba_type.types)})"
    return str(numba_type)


def source_digest(file: Path) -> str:
    """Digest of a source file, of every project file it imports, directly or not, of rules and versions."""
    digest = hashlib.sha256(repr(_versions()).encode())
    for path in sorted(_sources(file), key=str):
        digest.update(_digest(path))
    return digest.hexdigest()[:20]


def compiled_share(file: Path) -> float:
    """Share of the kernels in a source file and in all that it imports that the cache holds; 0 without any.

    It stays below 1: some kernels are for callers of another kind.
    """
    have = everything = 0
    for path in _sources(file):
        if (n := len(_KERNEL.findall(_text(path)))) and (folder := _generation(path)) is not None:
            have += min(n, len({kept.name.partition(".")[0] for kept in folder.glob("*.nbc")}))
            everything += n
    return have / everything if everything else 0.0


def _sources(file: Path) -> set[Path]:
    """A source file and all project files that shape what it compiles to."""
    files = {file.resolve(), *(_ROOT / name for name in _ALWAYS)}  # not by the links that editors follow
    waiting = list(files)
    while waiting:
        for found in _imports(waiting.pop()):
            if found not in files and found not in _NEVER:
                files.add(found)
                waiting.append(found)
    return files


def machine_name() -> str:
    """The processor that kernels are compiled for, with its abilities: part of what finds them."""
    return repr(cpu_target.target_context.codegen().magic_tuple())


def _versions() -> tuple[str | None, ...]:
    """Of what decides on compiled code: bytecode's, numba's with its LLVM, and NumPy's where its layouts and
    rules of types change."""
    rules = repr((_RULES, sorted(FAST), sorted(REORDERING), "names alone"))
    numpys = np.__version__.partition(".")[0]
    return rules, sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, numpys


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _digest(path: Path) -> bytes:
    return hashlib.sha256(_text(path).encode()).digest()


@functools.cache
def _imports(path: Path) -> frozenset[Path]:
    """The project files that a source file imports, packages' own files included."""
    found: set[Path] = set()
    for match in _IMPORT.finditer(_text(path)):
        origin, names, plain = match.groups()
        if origin:
            found |= _files(origin)
            for name in re.findall(r"\w+", re.sub(r"#[^\n]*", "", names)):
                found |= _files(f"{origin}.{name}")
        else:
            for name in plain.split(","):
                found |= _files(name.split(" as ")[0].strip())
    return frozenset(found)


@functools.cache
def _files(module: str) -> frozenset[Path]:
    """The files that stand for a module of this project; none for anybody else's."""
    package, *parts = module.split(".")
    if package != "palpo" or not parts:
        return frozenset()
    path = _ROOT.joinpath(*parts)
    found = [f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()]
    return frozenset(found)


@functools.cache
def cache_home() -> Path | None:
    """The folder of compiled code; None where this user has no place for it."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return own_folder(Path(named)) if named else cache_folder("kernels")


@functools.cache
def _generation(file: Path) -> Path | None:
    """The folder for what this file, as it is now, compiles to; marked as used."""
    home = cache_home()
    if home is None:
        return None
    try:
        name = ".".join(file.relative_to(_ROOT).with_suffix("").parts)
    except ValueError:  # a file that is not of this project
        name = f"{file.stem}-{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
    folder = home / name / source_digest(file)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _forget(folder.parent)
    except OSError:
        return None
    return folder


def _forget(module: Path) -> None:
    """Remove the generations that have not been used for longest; another process may hold a young one."""
    used = {path: path.stat().st_mtime for path in module.iterdir()}
    for old in sorted(used, key=lambda path: used[path], reverse=True)[GENERATIONS:]:
        if time.time() - used[old] > DAY:
            shutil.rmtree(old, ignore_errors=True)


def _within(path: Path) -> tuple[Path, str]:
    """The folder that seals a kept file, and the file's name there."""
    home = cache_home()
    assert home is not None
    return home, str(path.relative_to(home))


def forget_marks(folder: Path) -> None:
    """Take away the marks that all of a system was compiled ahead."""
    for mark in folder.glob("*.compiled"):
        mark.unlink(missing_ok=True)


def kept_wholes() -> Iterator[tuple[str, bytes]]:
    """The wholes in the cache, as `shipped` takes them: the words that each is known by, and its content."""
    home = cache_home()
    for path in home.glob("*/*/*.nbc") if home else ():
        if (file := kept(*_within(path))) is not None:
            with file:
                known_by, _machine = pickle.load(file)
                _sources, _name, part, *_types = ast.literal_eval(known_by)
                if not part:
                    yield known_by, file.read()


class KernelCache(FunctionCache):
    """numba's cache of one function, found by content: a file for each signature and processor."""

    def __init__(self, function: Callable[..., Any], part: bool = False) -> None:
        """part: keeps what is linked into callers, as `kernel_parts` has it; else a whole."""
        self._py_func, self._part = function, part
        code = function.__code__
        self._source = Path(code.co_filename).resolve()
        self._line = code.co_firstlineno
        self._name = f"{re.sub(r'[<>]', '', function.__qualname__)}-{self._line}"
        self.enable()

    @property
    def cache_path(self) -> str:
        """Folder of the compiled code, or an empty string."""
        folder = _generation(self._source) if self._source.is_file() else None
        return str(folder or "")

    def flush(self) -> None:
        """Forget what is kept of this function."""
        for path in Path(self.cache_path).glob(f"{self._name}.*.nbc") if self.cache_path else ():
            path.unlink(missing_ok=True)

    def _known_by(self, signature: Any, codegen: Any) -> tuple[str, str]:
        """An overload in words: all that its code follows from but the processor, and the processor."""
        # the function's own bytes tell apart what one line may define several times
        _signature, machine, own = self._index_key(signature, codegen)
        arguments = ", ".join(layout(t) for t in getattr(signature, "args", signature))
        returned = str(getattr(signature, "return_type", None))
        sources = source_digest(self._source) if self._source.is_file() else None
        return repr((sources, self._name, self._part, arguments, returned, own)), repr(machine)

    def _path(self, known_by: tuple[str, str]) -> Path | None:
        """Where an overload is kept."""
        digest = hashlib.sha256(repr(known_by).encode()).hexdigest()[:20]
        return Path(self.cache_path) / f"{self._name}.{digest}.nbc" if self.cache_path else None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        known_by = self._known_by(sig, target_context.codegen())
        data = self._kept(known_by)
        if data is None and not self._part and (content := shipped(known_by[0])) is not None:
            data = pickle.loads(content)
        if data is None:
            return None
        if self._part:
            return restored_part(target_context, data)
        return CompileResultCacheImpl.rebuild(None, target_context, data)

    def _kept(self, known_by: tuple[str, str]) -> Any:
        """What the cache has of an overload, or None."""
        if (path := self._path(known_by)) is None:
            return None
        home, name = _within(path)
        if (file := kept(home, name)) is None:
            if path.exists():  # no longer all that was compiled ahead
                forget_marks(home)
            return None
        with file, suppress(pickle.UnpicklingError, ValueError, AttributeError, ImportError):
            return pickle.load(file) if pickle.load(file) == known_by else None
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(known_by := self._known_by(sig, data.codegen))
        if path is None:
            return
        if any(not lifted.can_cache for lifted in data.lifted) or data.library.has_dynamic_globals:
            warnings.warn(
                f"{self._name} cannot be cached: it holds an address of this process",
                NumbaWarning,
                stacklevel=2,
            )
            return
        made = data._reduce()
        content = dumps(known_by) + dumps(made if self._part else names_alone(made))
        keep(*_within(path), lambda file: file.write(content))


def _cached(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:
        return function
    dispatcher = KernelDispatcher(function, targetoptions={**_RULES, "nopython": True, **options})
    dispatcher.keep_in(KernelCache(function), KernelCache(function, part=True))
    return dispatcher
