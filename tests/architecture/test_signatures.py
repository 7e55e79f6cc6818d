"""What a function takes can be read at a glance: what belongs together is handed over together."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("app", "benchmarks", "config", "haptics", "palpo", "physics", "render", "studies", "tests")
MOST = 12


def arguments(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    """How many a function takes, `self` and collecting ones too."""
    a = function.args
    named = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
    return named + (a.vararg is not None) + (a.kwarg is not None)


def crowded(source: str) -> list[str]:
    """Names of the functions in a source text that take more than MOST arguments."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [getattr(node, "name", "lambda") for node in functions if arguments(node) > MOST]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_takes_more_arguments_than_a_reader_can_hold(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    found = [
        f"{path.relative_to(ROOT)}: {name}" for path in files for name in crowded(path.read_text("utf-8"))
    ]
    assert not found, f"more than {MOST} arguments: {', '.join(found)}"


def test_the_count_takes_in_keywords_methods_and_functions_within_functions():
    few, many = (", ".join(f"a{i}" for i in range(n)) for n in (MOST, MOST + 1))
    assert crowded(f"def f({few}): ...\ndef g({many}): ...") == ["g"]
    assert crowded(f"class A:\n    def f(self, {few}): ...") == ["f"]
    assert crowded(f"def f(b, *, {few}):\n    return lambda {many}: 0") == ["f", "lambda"]
