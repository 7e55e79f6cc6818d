"""What is used of numba beyond its documentation stands in one place; versions without it are refused."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from palpo.physics.numerics import numba_range
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.numba_range import BELOW, NAMES, OLDEST, require_numba

ROOT = Path(__file__).resolve().parents[2]
INNER = ("numba.core", "numba.np")
SAID = r"numba [\d.rc]+ does not fit .* pip install 'numba>=0\.63\.1,<0\.69'"
ROOMS = ("app", "benchmarks", "config", "haptics", "physics", "render", "studies")


def imported() -> set[str]:
    """Names from numba's inner modules that any file of the program imports."""
    found = set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(INNER):
                found |= {f"{node.module}.{name.name}" for name in node.names}
            elif isinstance(node, ast.Import):
                found |= {n.name for n in node.names if n.name.startswith("numba.")}
    return found


def test_each_inner_name_of_numba_is_listed_and_there():
    assert imported() == set(NAMES)
    for name in NAMES:
        module, _, last = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            assert hasattr(importlib.import_module(module), last), name


def test_the_range_is_that_which_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (declared,) = (one for one in project["dependencies"] if one.startswith("numba"))
    oldest, below = ".".join(map(str, OLDEST)), ".".join(map(str, BELOW[:2]))
    assert declared == f"numba>={oldest},<{below}"


@pytest.mark.parametrize("version", ["0.61.2", "0.63.0", "0.69.0", "0.69.0rc1", "1.0.0"])
def test_a_version_outside_is_refused_in_a_sentence(version, monkeypatch):
    monkeypatch.setattr(numba_range, "version", lambda name: version)
    with pytest.raises(InputError, match=SAID):
        require_numba()


@pytest.mark.parametrize("version", ["0.63.1", "0.68.9"])
def test_a_version_within_is_taken(version, monkeypatch):
    monkeypatch.setattr(numba_range, "version", lambda name: version)
    require_numba()


def test_the_command_says_so():
    code = """
import importlib.metadata, sys
found = importlib.metadata.version
importlib.metadata.version = lambda name: "0.62.0" if name == "numba" else found(name)
from palpo.app.cli.main import main
sys.exit(main(["run", "probe"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert said[-1].startswith("palpo: numba 0.62.0 does not fit this program")
    assert "Traceback" not in done.stderr
