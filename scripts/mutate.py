"""Changes of compiled code that no test notices: `python scripts/mutate.py COUNT [--seed S] [--only PATH]`.

Each mutant is one random change in a kernel of physics/ or haptics/: a comparison, an operator, a number or a
returned value, or a statement left out. It is made in a copy of the tree, where the test files nearest to the
changed one by imports run in one process until a test fails, those first that name the function. What is left
alive is printed as a difference: a law is missing, or the change changes nothing. Neither killed nor alive is
one that ends at the time limit, for it hangs or the machine is slow, or whose test fails without it, too.
The same seed gives the same mutants: --skip goes on with a campaign that was ended.
"""

import argparse
import ast
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("app", "benchmarks", "config", "haptics", "palpo", "physics", "render", "studies")
MUTATED = ("physics", "haptics")
LIMIT, ANYWAY = "the time limit", "a test that fails anyway"
KERNELS = {"kernel", "fast_kernel", "reordering_kernel", "inlined", "fast_inlined", "callback"}
LATE = re.compile(r"tests/(realtime|studies)/|pictures|gym|window")
"""Tests that need the machine for themselves, or cover no kernel by a law."""

OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
Change = Callable[[], ast.AST]


def changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, Change]]:
    """What may be changed in a function, and into what."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.Compare(ops=[op, *_]) if type(op) in OTHERS:
                yield (
                    node,
                    lambda n=node, o=op: ast.Compare(n.left, [OTHERS[type(o)](), *n.ops[1:]], n.comparators),
                )
            case ast.BinOp(op=op) if type(op) in OTHERS:
                yield node, lambda n=node, o=op: ast.BinOp(n.left, OTHERS[type(o)](), n.right)
            case ast.BoolOp(op=op):
                yield node, lambda n=node, o=op: ast.BoolOp(OTHERS[type(o)](), n.values)
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield node, lambda n=node: n.operand
            case ast.Constant(value=bool(value)):
                yield node, lambda v=value: ast.Constant(not v)
            case ast.Constant(value=int(value) | float(value)):
                yield node, lambda v=value: ast.Constant(v + 1)
            case ast.Assign() | ast.AugAssign() | ast.Expr():
                if isinstance(node, ast.AugAssign) or not isinstance(
                    getattr(node, "targets", [None])[0], ast.Name
                ):
                    yield node, ast.Pass


def mutants(path: Path) -> list[tuple[str, ast.AST, Change]]:
    """All of a file, each with the name of its function."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        (node.name, *change)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and KERNELS & {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
        for change in changes(node)
    ]


def mutated(text: str, node: ast.AST, change: Change) -> str:
    """The file with one node replaced."""
    lines = text.encode().splitlines(keepends=True)
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    made = ast.unparse(change())
    whole = text.encode()
    put = made if isinstance(node, ast.stmt) else f"({made})"
    return (whole[:begin] + put.encode() + whole[end:]).decode()


@cache
def imports(path: Path) -> frozenset[Path]:
    """Files of this tree that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        else:
            continue
        for name in names:
            file = ROOT.joinpath(*name.removeprefix("palpo.").split(".")).with_suffix(".py")
            if file.is_file():
                found.add(file)
    return frozenset(found)


def nearest_tests(path: Path, name: str, count: int) -> list[str]:
    """Test files by how many imports lead from them to a file, fewest first; then those that name `name`."""
    distance, ring, named = {path: 0}, {path}, re.compile(rf"\b{name}\b")
    files = [f for room in (*ROOMS, "tests") for f in (ROOT / room).rglob("*.py") if not f.is_symlink()]
    files = [f for f in files if f.resolve() == f]
    while ring:
        ring = {f for f in files if f not in distance and imports(f) & ring}
        distance |= dict.fromkeys(ring, max(distance.values()) + 1)
    tests = [f for f in distance if f.name.startswith("test_") and not LATE.search(f.as_posix())]
    order = sorted(
        tests, key=lambda f: (distance[f], not named.search(f.read_text("utf-8")), f.stat().st_size)
    )
    return [str(f.relative_to(ROOT)) for f in order[:count]]


def killer(copy: Path, tests: list[str], seconds: float) -> str:
    """The first test that fails in a copy of the tree, or an empty string."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, timeout=seconds,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return LIMIT
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    return "" if done.returncode in (0, 5) else failed[1] if failed else "a crash"


@cache
def fails_anyway(copy: Path, test: str, seconds: float) -> bool:
    """Whether a test that ended a mutant fails in the tree as it is."""
    only = [] if "::" in test else ["--collect-only"]
    return killer(copy, [test.partition("[")[0], *only], seconds) != ""


def main() -> None:
    """Run so many mutants and tell the share that was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="so many at first were run already")
    parser.add_argument("--only", nargs="*", default=MUTATED, help="files or folders to mutate")
    parser.add_argument("--tests", type=int, default=4, help="test files tried for a mutant")
    parser.add_argument("--seconds", type=float, default=600.0, help="limit of each")
    options = parser.parse_args()
    places = [ROOT / name for name in options.only]
    files = [f for place in places for f in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    found = [(file, *change) for file in files for change in mutants(file)]
    drawn = random.Random(options.seed).sample(found, min(options.count, len(found)))[options.skip :]
    killed = neither = 0
    with tempfile.TemporaryDirectory(prefix="palpo-mutants-") as room:
        copy = Path(room) / "copy"
        skip = shutil.ignore_patterns("__pycache__", ".venv", ".git", "out")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=skip)
        for number, (file, name, node, change) in enumerate(drawn, options.skip):
            text, place = file.read_text("utf-8"), file.relative_to(ROOT)
            other = mutated(text, node, change)
            (copy / place).write_text(other, "utf-8")
            by = killer(copy, nearest_tests(file, name, options.tests), options.seconds)
            (copy / place).write_text(text, "utf-8")
            if by.startswith("tests/") and fails_anyway(copy, by, options.seconds):
                by = ANYWAY
            killed, neither = killed + (by not in ("", LIMIT, ANYWAY)), neither + (by in (LIMIT, ANYWAY))
            print(f"{number}: {place}:{node.lineno} {'ended by ' + by if by else 'SURVIVED'}", flush=True)
            difference = difflib.unified_diff(text.splitlines(), other.splitlines(), lineterm="", n=1)
            print("\n".join(f"    {line}" for line in list(difference)[2:]), flush=True)
    print(f"{killed} of {len(drawn)} mutants killed, {neither} neither; there are {len(found)}")


if __name__ == "__main__":
    main()
