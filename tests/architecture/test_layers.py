"""The packages depend on each other only as the architecture says."""

import ast
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parents[2]
OURS = {"app", "config", "haptics", "physics", "render"}
LIBRARIES = {
    "config": {"pydantic", "pydantic_core"},
    "physics": {"numpy", "scipy", "numba", "llvmlite", "qdldl"},
}
# Files that may read meshes and caches: file name -> libraries beyond those of its package.
EXTRA = {
    "physics/mesh/io.py": {"meshio"},
    "physics/bodies/io.py": {"h5py"},
    "physics/contact/io.py": {"h5py"},
}


def test_no_import_crosses_a_boundary(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


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
