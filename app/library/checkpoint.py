"""The state of a rig as named arrays: taken, kept in a file, put into another rig of the same scene.

A rig is a graph of objects that end in arrays and plain numbers. `take` walks it and names each array by the
attributes that lead to it; `put` walks another rig by the same names. What two places share, whole or as a
view, they share again afterwards. Nothing is pickled: a file holds arrays and a tree of names, and of Python
only classes of Palpo, of packages that bring a system, and sparse matrices are made from it, without running
any of their code.

What a rig is made of and no run changes is kept as the other rig has it: scenes, functions, worker threads,
clocks, pictures, and what tuples mark by `of_process`: addresses of this process, and rows that were read. An
object of another kind is an error of the program and not left out in silence.
"""

import importlib
import threading
from collections import deque
from concurrent.futures import Executor
from functools import partial
from itertools import cycle
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray
from pydantic import BaseModel

from palpo.app.cli.progress import Silent
from palpo.config.systems import brought
from palpo.physics.bodies.renewal import rest_from_work
from palpo.physics.contract.stages import Kind
from palpo.physics.exchange.durations import StepTimes
from palpo.physics.exchange.handle import Handle

KEPT = (
    FunctionType, BuiltinFunctionType, MethodType, ModuleType, type, partial, cycle, np.ufunc, Dispatcher,
    CFunc, Kind, BaseModel, Path, Executor, frozenset, type(threading.Lock()), threading.Thread, StepTimes,
    Silent,
)  # fmt: skip
"""Kinds of objects that no run changes, or that say nothing of the scene's state."""
KNOWN = ("palpo.", "scipy.sparse.")
"""Modules of the objects that are walked through, beside those of packages that bring a system."""
PLAIN = (bool, int, float, str, type(None))

Tree = Any
"""What JSON can hold: scalars as they are, everything else as a table that says what it is."""


class Checkpoint(NamedTuple):
    """State of a rig."""

    tree: Tree
    arrays: dict[str, NDArray[Any]]
    """By the attributes that lead to each. Those of a checkpoint that was `taken` are the rig's own."""


class _Absent:
    """What the other rig has not."""


ABSENT = _Absent()


def take(rig: object) -> Checkpoint:
    """The rig's state; its arrays are not copied. TypeError for what cannot be told."""
    rest_from_work()
    taker = _Taker()
    return Checkpoint(taker.told(rig, "rig"), taker.arrays)


def put(checkpoint: Checkpoint, rig: object) -> None:
    """Bring a rig that was just built from the same scene to a state; ValueError where it does not fit."""
    rest_from_work()
    _Putter(checkpoint.arrays).made(checkpoint.tree, rig, "rig")


def less(checkpoint: Checkpoint, rest: Checkpoint) -> Checkpoint:
    """The checkpoint without arrays that are as in another one, which a rig that is built has anyhow."""
    arrays = {
        name: array
        for name, array in checkpoint.arrays.items()
        if name not in rest.arrays or not _same(array, rest.arrays[name])
    }
    return Checkpoint(checkpoint.tree, arrays)


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Bit for bit."""
    return a is b or (a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes())


class _Taker:
    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[int, str] = {}
        self._alive: list[Any] = []

    def told(self, value: Any, path: str) -> Tree:
        """The tree of a value that stands at a path."""
        if isinstance(value, PLAIN) and type(value) in PLAIN:
            return value
        if isinstance(value, np.generic):
            return {"number": value.dtype.str, "value": value.item()}
        if id(value) in self._names:
            return {"same": self._names[id(value)]}
        self._names[id(value)] = path
        self._alive.append(value)
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if isinstance(value, Handle):
            return {"behind": self._behind(value.state, f"{path}.state")}
        if isinstance(value, KEPT):
            return {"kept": True}
        return self._whole(value, path)

    def _behind(self, value: Any, path: str) -> Tree:
        """The tuple of a handle: its numbers are constant, and some are addresses of this process."""
        tree = self.told(value, path)
        if "tuple" in tree:
            tree["tuple"] = [{"kept": True} if type(part) in PLAIN else part for part in tree["tuple"]]
        return tree

    def _whole(self, value: Any, path: str) -> Tree:
        """The tree of what has parts."""
        if isinstance(value, tuple):
            names = getattr(value, "_fields", range(len(value)))
            kept = getattr(value, "OF_PROCESS", ())
            parts = [
                {"kept": True} if name in kept else self.told(v, f"{path}.{name}")
                for name, v in zip(names, value, strict=True)
            ]
            return {"tuple": parts, "class": _word(type(value)) if hasattr(value, "_fields") else None}
        if isinstance(value, list | deque):
            kind = "list" if isinstance(value, list) else "deque"
            return {kind: [self.told(v, f"{path}.{i}") for i, v in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[_key(k, path), self.told(v, f"{path}.{k}")] for k, v in value.items()]}
        if isinstance(value, slice):
            return {"slice": [value.start, value.stop, value.step]}
        if _known(type(value).__module__):
            fields = {k: self.told(v, f"{path}.{k}") for k, v in vars(value).items()}
            return {"object": fields, "class": _word(type(value))}
        raise TypeError(f"{path}: a {type(value).__name__} cannot be saved as arrays and numbers")

    def _array(self, value: NDArray[Any], path: str) -> Tree:
        """The array that owns the memory, or which part of it this one is."""
        if value.dtype.hasobject:
            raise TypeError(f"{path}: an array of objects cannot be saved")
        owner = _owner(value)
        if owner is not value and id(owner) not in self._names:
            self._names[id(owner)] = f"{path}.base"
            self._alive.append(owner)
            self.arrays[f"{path}.base"] = owner
        if owner is value:
            self.arrays[path] = value
            return {"array": path}
        offset = value.ctypes.data - owner.ctypes.data
        return {
            "part": self._names[id(owner)], "offset": offset, "shape": list(value.shape),
            "strides": list(value.strides), "dtype": dtype_to_descr(value.dtype),
        }  # fmt: skip


class _Putter:
    """Follows the tree through a rig in the order in which it was made."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._values: dict[str, Any] = {}
        """By path: what came to stand there."""
        self._owners: dict[str, NDArray[Any]] = {}
        self._taken: set[int] = set()

    def made(self, tree: Tree, there: Any, path: str) -> Any:
        """What is to stand at a path where `there` stands now, which is changed in place where that goes."""
        if not isinstance(tree, dict):
            return tree
        if "number" in tree:
            return np.dtype(tree["number"]).type(tree["value"])
        if "same" in tree:
            return self._values[tree["same"]]
        value = self._made(tree, there, path)
        self._values[path] = value
        return value

    def _made(self, tree: dict[str, Any], there: Any, path: str) -> Any:
        if "array" in tree:
            return self._array(tree["array"], there, path)
        if "part" in tree:
            return self._part(tree, there)
        if "behind" in tree:
            inner = f"{path}.state"  # who meets the tuple elsewhere wants it and not its handle
            if isinstance(there, Handle):
                state = self.made(tree["behind"], there.state, inner)
                if state is not there.state and there.renewable:
                    there.renew(state)
                if state is there.state:
                    return there
            raise ValueError(f"{path}: what compiled code reads there is of another shape")
        if "kept" in tree:
            if there is ABSENT:
                raise ValueError(f"{path}: there is nothing to keep")
            return there
        if "slice" in tree:
            return slice(*tree["slice"])
        if "tuple" in tree:
            return self._tuple(tree, there, path)
        if "object" in tree:
            return self._object(tree, there, path)
        return self._container(tree, there, path)

    def _free(self, there: Any) -> bool:
        """Whether what stands there may be used in place: it is nothing else's yet."""
        if id(there) in self._taken:
            return False
        self._taken.add(id(there))
        return True

    def _array(self, name: str, there: Any, path: str) -> NDArray[Any]:
        fits = isinstance(there, np.ndarray)
        owner = self._owner(name, _owner(there) if fits else ABSENT)
        return there if fits and _laid_out_alike(there, owner) else owner

    def _owner(self, name: str, there: Any) -> NDArray[Any]:
        """The array of that name, in place of `there` where it fits."""
        if name in self._owners:
            return self._owners[name]
        free = isinstance(there, np.ndarray) and self._free(there)
        told = self._arrays.get(name)
        if told is None:  # as it was built
            if not free:
                raise ValueError(f"{name}: the rig has no such array")
            found = there
        elif (
            free and there.shape == told.shape and there.dtype == told.dtype and there.strides == told.strides
        ):
            found = there
            if there.flags.writeable:
                there[...] = told
            elif not _same(there, told):
                raise ValueError(f"{name}: cannot be written")
        else:
            found = np.array(told, order="K")
        self._owners[name] = found
        return found

    def _part(self, tree: dict[str, Any], there: Any) -> NDArray[Any]:
        owner = self._owner(tree["part"], _owner(there) if isinstance(there, np.ndarray) else ABSENT)
        part = np.ndarray(
            tuple(tree["shape"]), descr_to_dtype(tree["dtype"]), owner.ravel(order="K"), tree["offset"],
            tuple(tree["strides"]),
        )  # fmt: skip
        return there if isinstance(there, np.ndarray) and _laid_out_alike(there, part) else part

    def _tuple(self, tree: dict[str, Any], there: Any, path: str) -> Any:
        kind: Any = _class(tree["class"]) if tree["class"] else tuple
        like = type(there) is kind and len(there) == len(tree["tuple"])
        names = getattr(kind, "_fields", range(len(tree["tuple"])))
        old = there if like else [ABSENT] * len(tree["tuple"])
        parts = [
            self.made(part, before, f"{path}.{name}")
            for part, before, name in zip(tree["tuple"], old, names, strict=True)
        ]
        if like and all(a is b or (type(a) in PLAIN and a == b) for a, b in zip(parts, there, strict=True)):
            return there
        return kind(*parts) if kind is not tuple else tuple(parts)

    def _object(self, tree: dict[str, Any], there: Any, path: str) -> Any:
        kind: Any = _class(tree["class"])
        value = there if type(there) is kind and self._free(there) else kind.__new__(kind)
        self._values[path] = value
        before = dict(vars(value))
        for name, part in tree["object"].items():
            vars(value)[name] = self.made(part, before.get(name, ABSENT), f"{path}.{name}")
        if missing := before.keys() - tree["object"].keys():
            raise ValueError(f"{path}: the state does not tell {', '.join(sorted(missing))}")
        return value

    def _container(self, tree: dict[str, Any], there: Any, path: str) -> Any:
        """A list, a deque or a dictionary, in place where there is one."""
        kind = {"list": list, "deque": deque, "dict": dict}[next(iter(tree))]
        value = there if type(there) is kind and self._free(there) else kind()
        self._values[path] = value
        if isinstance(value, dict):
            old = dict(value)
            new = {k: self.made(part, old.get(k, ABSENT), f"{path}.{k}") for k, part in tree["dict"]}
            value.clear()
            value.update(new)
            return value
        parts = tree[next(iter(tree))]
        before = [*value, *[ABSENT] * max(0, len(parts) - len(value))]
        made = [self.made(part, before[i], f"{path}.{i}") for i, part in enumerate(parts)]
        value.clear()
        value.extend(made)
        return value


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array whose memory it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _laid_out_alike(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are the same elements of the same memory."""
    return (
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype)
    )  # fmt: skip


def _key(key: Any, path: str) -> Any:
    if type(key) not in PLAIN:
        raise TypeError(f"{path}: a key that is a {type(key).__name__} cannot be told")
    return key


def _known(module: str) -> bool:
    """Whether objects of a module's classes are walked through."""
    packages = {entry.module.partition(".")[0] for entry in brought().values()}
    return module.startswith(KNOWN) or module.partition(".")[0] in packages


def _word(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(word: str) -> type:
    """The class of that name, of ours or a sparse matrix; ValueError for any other."""
    module, _, name = word.partition(":")
    if _known(module):
        kind: Any = importlib.import_module(module)
        for part in name.split("."):
            kind = getattr(kind, part, None)
        if isinstance(kind, type):
            return kind
    raise ValueError(f"{word}: no class that a state may hold")
