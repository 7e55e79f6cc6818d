"""The packages depend on each other only as the architecture says."""

import ast
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS

ROOT = Path(__file__).resolve().parents[2]
OURS = {"palpo"}
ROOMS = ("app", "benchmarks", "config", "haptics", "physics", "render", "studies")
LIBRARIES = {
    "config": {"pydantic", "pydantic_core"},
    "physics": {"numpy", "scipy", "numba", "llvmlite", "qdldl"},
}
# Files that may read meshes and caches: file name -> libraries beyond those of its package.
EXTRA = {
    "physics/mesh/io.py": {"meshio"},
    "physics/mesh/scans.py": {"trimesh"},
    "physics/bodies/io.py": {"h5py"},
    "physics/contact/io.py": {"h5py"},
    "physics/numerics/stored.py": {"h5py"},
}


SHARED = {
    "Alternation", "Contacts", "Hold", "Interior", "Progress", "Scene", "Solver",
    "Sweeps", "Walk",
}  # fmt: skip
"""Names that two public classes still have: to become fewer, and none new."""


def test_no_two_public_classes_share_a_name():
    places = defaultdict(list)
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(file.relative_to(ROOT).as_posix())
    shared = {name: files for name, files in places.items() if len(files) > 1 and name not in SHARED}
    assert not shared


def test_every_folder_of_modules_is_a_package():
    """A wheel holds packages only: a folder that git does not know as one would be missing from it."""
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, capture_output=True)
    if known.returncode:
        pytest.skip("this is no checkout")
    files = {Path(name) for name in known.stdout.split()}
    folders = {file.parent for file in files if file.suffix == ".py" and file.parts[0] in (*ROOMS, "palpo")}
    assert len(folders) > 30
    assert sorted(folder for folder in folders if folder / "__init__.py" not in files) == []


def test_no_import_crosses_a_boundary():
    """The linter and editors look for the folders of a package inside it: links in palpo/ stand there."""
    options = {"config_filename": str(ROOT / "pyproject.toml"), "no_cache": True}
    code = f"import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(**{options!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == EXIT_STATUS_SUCCESS, done.stdout


def test_each_room_is_found_inside_the_package():
    """What an editor follows: `palpo.physics` is `palpo/physics`, a link to the folder at the top."""
    links = {path.name: path.resolve() for path in (ROOT / "palpo").iterdir() if path.is_symlink()}
    if not links:
        pytest.skip("links are not kept by this file system")
    assert links == {room: ROOT / room for room in ROOMS}


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_package_uses_only_its_own_libraries(package):
    for path in sorted((ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        allowed = LIBRARIES[package] | EXTRA.get(name, set()) | OURS | set(sys.stdlib_module_names)
        assert _imported(path) <= allowed, f"{name} imports {sorted(_imported(path) - allowed)}"


def _imported(path: Path) -> set[str]:
    """Top-level names of the modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
    return found
