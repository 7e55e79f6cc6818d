"""Compiled code is what compiling now would give: no stale helper, no swapped field, no borrowed rules."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.compiler import Flags

from palpo.physics.numerics import kernels
from palpo.physics.numerics.kernel_parts import KernelFlags, PartLibrary
from palpo.physics.numerics.kernels import GENERATIONS, inlined, kernel
from palpo.physics.numerics.shipped import LEVELS, NATIVE, abilities, levels

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "physics/__init__.py",
    "physics/numerics/__init__.py",
    "physics/numerics/cache.py",
    "physics/numerics/kernels.py",
    "physics/numerics/kernel_parts.py",
    "physics/numerics/errors.py",
    "physics/numerics/numba_range.py",
    "physics/numerics/own.py",
    "physics/numerics/shipped.py",
    "physics/exchange/__init__.py",
    "physics/exchange/handle.py",
    "physics/exchange/atomics.py",
)
HELPER = """
from palpo.physics.numerics.kernels import kernel

@kernel
def factor(x):
    return {factor} * x
"""
CALLER = """
from palpo.physics.helper import factor
from palpo.physics.numerics.kernels import kernel

@kernel
def law(x):
    return factor(x) + 1.0
"""
STATE = """
from typing import NamedTuple
import numpy as np

class State(NamedTuple):
    {first}: np.ndarray
    {second}: np.ndarray
"""
READER = """
from palpo.physics.numerics.kernels import kernel

@kernel
def read(state):
    return state.mass[0]
"""


class Project:
    """A copy of what compiles, in a folder of its own, to edit and run with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder / "project", folder / "cache"
        for name in NEEDED:
            copy = self.folder / "palpo" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)
        (self.folder / "palpo/__init__.py").touch()

    def write(self, name: str, text: str) -> None:
        (self.folder / "palpo/physics" / name).write_text(text)

    def start(self, code: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=self.folder,
            env=os.environ
            | {"NUMBA_CACHE_DIR": str(self.cache), "PYTHONPATH": str(self.folder)}
            | environment,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, **environment: str) -> str:
        process = self.start(code, **environment)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return out.strip()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


LAW = """
    from palpo.physics.caller import law
    print(law(2.0), sum(law.stats.cache_hits.values()))
"""


def test_an_edited_helper_recompiles_its_callers_and_an_unchanged_one_nothing(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    assert project.run(LAW) == "7.0 0"
    assert project.run(LAW) == "7.0 1"
    project.write("helper.py", HELPER.format(factor=5.0))
    assert project.run(LAW) == "11.0 0"
    project.write("helper.py", HELPER.format(factor=3.0))
    assert project.run(LAW) == "7.0 1", "the older generation is still there"


def test_a_helper_of_a_helper_counts_also_through_a_package(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    (project.folder / "palpo/physics/room").mkdir()
    project.write("room/__init__.py", "from palpo.physics.helper import (  # there\n    factor,\n)\n")
    project.write("caller.py", CALLER.replace("palpo.physics.helper", "palpo.physics.room"))
    assert project.run(LAW) == "7.0 0"
    project.write("helper.py", HELPER.format(factor=4.0))
    assert project.run(LAW) == "9.0 0"


@pytest.mark.parametrize("wrap", ["{}", "Handle({})"], ids=["by value", "by handle"])
def test_two_fields_that_change_places_are_read_by_their_names(project, wrap):
    """The tuple's file is not imported by the kernel's: only the signature can tell."""
    state = wrap.format("State(**{'mass': np.array([1.0]), 'drag': np.array([2.0])})")
    code = f"""
    import numpy as np
    from palpo.physics.exchange.handle import Handle
    from palpo.physics.reader import read
    from palpo.physics.state import State
    print(read({state}))
    """
    project.write("reader.py", READER)
    project.write("state.py", STATE.format(first="mass", second="drag"))
    assert project.run(code) == "1.0"
    project.write("state.py", STATE.format(first="drag", second="mass"))
    assert project.run(code) == "1.0"


def test_processes_that_compile_side_by_side_lose_nothing(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    calls = ["2.0", "2", "np.float32(2)", "np.int32(2)"]
    code = """
    import numpy as np
    from palpo.physics.caller import law
    for x in ({},):
        law(x)
    print(sum(law.stats.cache_hits.values()))
    """
    started = [project.start(code.format(call)) for call in calls]
    assert all(process.wait(timeout=120) == 0 for process in started)
    assert project.run(code.format(", ".join(calls))) == str(len(calls))


def test_another_processor_finds_nothing_and_removes_nothing(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    assert project.run(LAW) == "7.0 0"
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert project.run(LAW, **other) == "7.0 0"
    assert project.run(LAW, **other) == "7.0 1"
    assert project.run(LAW) == "7.0 1"


def test_a_spoilt_file_is_a_miss_and_not_all_is_compiled_ahead(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    project.run(LAW)
    kept, mark = list(project.cache.rglob("law-*.nbc")), project.cache / "system-generation.compiled"
    mark.touch()
    assert kept
    assert project.run(LAW) == "7.0 1"
    assert mark.exists()
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    assert project.run(LAW) == "7.0 0"
    assert not mark.exists()
    assert project.run(LAW) == "7.0 1"


def test_what_python_called_first_is_linked_into_a_caller_all_the_same(project):
    """Of a whole that is loaded, only machine code is kept, which no caller can be linked with."""
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    code = """
    from palpo.physics.helper import factor
    print(factor(2.0), sum(factor.stats.cache_hits.values()))
    """
    assert project.run(code) == "6.0 0"
    assert project.run(textwrap.dedent(code) + textwrap.dedent(LAW)) == "6.0 1\n7.0 0"


SHIP = """
    from pathlib import Path
    from palpo.physics.caller import law
    from palpo.physics.numerics import shipped
    from palpo.physics.numerics.kernels import kept_wholes
    law(2.0)
    shipped.ship(shipped.FOLDER / "{level}.zip", kept_wholes())
"""
REACHED = levels(abilities())


@pytest.mark.skipif(not REACHED, reason="code is shipped for levels that this processor does not reach")
def test_what_comes_with_the_program_is_found_by_its_sources_alone_unless_damaged(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    level = REACHED[-1]
    project.run(SHIP.format(level=level), NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
    (archive,) = project.folder.rglob(f"{level}.zip")

    def afresh(**environment: str) -> str:
        shutil.rmtree(project.cache)
        return project.run(LAW, **environment)

    assert afresh() == "7.0 1"
    assert afresh(**{NATIVE: "1"}) == "7.0 0"
    project.write("helper.py", HELPER.format(factor=5.0))
    assert afresh() == "11.0 0"
    project.write("helper.py", HELPER.format(factor=3.0))
    whole = archive.read_bytes()
    for spoilt in (whole[: len(whole) // 2], whole.replace(whole[200:204], bytes(4)), b""):
        archive.write_bytes(spoilt)
        assert afresh(PYTHONWARNINGS="ignore") == "7.0 0"
    archive.write_bytes(whole)
    assert afresh() == "7.0 1"


def test_sources_are_the_same_by_whichever_way_they_are_reached(tmp_path):
    """A wheel is filled from a repository, whose folders editors reach by links."""
    (tmp_path / "palpo").symlink_to(ROOT)
    file = "app/cli/compile_ahead.py"
    assert kernels.source_digest(tmp_path / "palpo" / file) == kernels.source_digest(ROOT / file)


def test_a_processor_is_given_the_best_level_that_it_reaches():
    avx2, avx512 = (set(LEVELS[level].split()) for level in ("x86-64-v3", "x86-64-v4"))
    assert levels(avx512 | {"amx-int8"}) == ["x86-64-v4", "x86-64-v3"]
    assert levels(avx2 | {"avx512f"}) == ["x86-64-v3"]
    assert levels(avx2 - {"fma"}) == levels({"neon"}) == []


@pytest.mark.skipif(os.name == "nt", reason="folders are made unwritable in POSIX's way")
def test_where_nothing_can_be_written_everything_still_runs(project):
    project.write("helper.py", HELPER.format(factor=3.0))
    project.write("caller.py", CALLER)
    (project.folder / "file").write_text("no folder")
    assert project.run(LAW, NUMBA_CACHE_DIR=str(project.folder / "file")) == "7.0 0"


def test_only_the_newest_generations_are_kept(tmp_path):
    for age in range(GENERATIONS + 3):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    kernels._forget(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(age) for age in range(GENERATIONS)]


def test_a_kernel_keeps_its_error_model_whoever_compiles_it_first():
    @kernel
    def divided(x, y):
        return x / y

    @inlined
    def divided_inline(x, y):
        return x / y

    @njit(error_model="python", fastmath=True)
    def caller(x, y):
        return divided(x, y)

    @kernel
    def inlining(x, y):
        return divided_inline(x, y)

    assert caller(1.0, 0.0) == np.inf
    assert inlining(1.0, 0.0) == np.inf
    own = divided.inspect_llvm()
    assert not any(re.search(r"fdiv (fast|contract|reassoc)", text) for text in own.values())


def test_what_only_compiled_code_calls_is_linked_and_not_emitted_until_python_calls_it():
    @kernel
    def inner(x):
        return 2.0 * x

    @kernel
    def outer(x):
        return inner(x) + 1.0

    assert outer(2.0) == 5.0
    (made,) = inner.overloads.values()
    assert isinstance(made.library, PartLibrary)
    assert inner(2.0) == 4.0
    (made,) = inner.overloads.values()
    assert not isinstance(made.library, PartLibrary)


NOISY = """
from palpo.physics.numerics.kernels import kernel

@kernel
def root(x):
    print("the root of", x)
    if x < 0.0:
        raise ValueError("there is none of", x)
    return x**0.5

@kernel
def law(x):
    return root(x)
"""
RAISING = """
    from palpo.physics.noisy import law
    law(4.0)
    try:
        law(-1.0)
    except ValueError as error:
        print(*error.args)
"""


def test_a_part_has_its_words_just_compiled_and_from_the_cache(project):
    project.write("noisy.py", NOISY)
    said = "the root of 4.0\nthe root of -1.0\nthere is none of -1.0"
    assert project.run(RAISING) == said
    assert project.run(RAISING) == said


def test_the_program_compiles_through_these_decorators_only():
    bare = re.compile(r"@(?:numba\.|nb\.)?(?:njit|jit|cfunc|vectorize|guvectorize)\b|=\s*(?:njit|cfunc)\(")
    for package in ("app", "benchmarks", "config", "haptics", "physics", "render", "studies"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path != ROOT / "physics/numerics/kernels.py":
                assert not bare.search(path.read_text("utf-8")), path.relative_to(ROOT)


def test_rules_are_told_apart_as_numba_tells_them():
    """What is compiled for one caller serves another only if both have the same rules."""
    plain = [Flags() for _ in range(4)]
    plain[1].fastmath, plain[2].fastmath, plain[3].forceinline = {"contract"}, {"reassoc"}, True
    for one in plain:
        for other in plain:
            alike = KernelFlags(one) == KernelFlags(other)
            assert alike == (one == other) == (one is other)
            assert not alike or hash(KernelFlags(one)) == hash(KernelFlags(other).copy())
