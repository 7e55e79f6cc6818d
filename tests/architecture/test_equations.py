"""EQUATIONS.md names the file and function where each numbered equation stands; each of them exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "EQUATIONS.md"
REFERENCE = re.compile(r"`([\w./-]+\.py):([\w.]+)`")


def references(text: str) -> list[tuple[str, str]]:
    """Each `file.py:name` of a page, once."""
    return sorted(set(REFERENCE.findall(text)))


def defines(path: Path, name: str) -> bool:
    """Whether a file defines a function, class, method (`Class.method`) or constant of this name."""
    body: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        found = [node for node in body if part in _names(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


@pytest.mark.skipif(not PAGE.exists(), reason="there is no EQUATIONS.md")
def test_every_function_that_the_page_names_exists():
    named = references(PAGE.read_text("utf-8"))
    assert named, "EQUATIONS.md names no `file.py:function`"
    missing = [
        f"{file}:{name}"
        for file, name in named
        if not (ROOT / file).is_file() or not defines(ROOT / file, name)
    ]
    assert not missing, f"EQUATIONS.md names what does not exist: {', '.join(missing)}"


def test_the_check_itself_finds_functions_methods_and_constants_and_misses_others(tmp_path):
    file = tmp_path / "law.py"
    file.write_text(
        "MU = 0.3\nRHO: float = 1.0\n\nclass Cone:\n    def project(self): ...\n\ndef gap(): ...\n"
    )
    found = {
        name: defines(file, name) for name in ("MU", "RHO", "Cone", "Cone.project", "gap", "Cone.gap", "mu")
    }
    assert [name for name, there in found.items() if not there] == ["Cone.gap", "mu"]
    assert references("see `a/b.py:f` and `a/b.py:f`, `c.py:C.g` but not `b.py`") == [
        ("a/b.py", "f"),
        ("c.py", "C.g"),
    ]
