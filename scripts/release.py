"""A release: `make release VERSION=0.2.0`.

`check VERSION` says whether one may begin, `write VERSION` puts the number and today's heading where they
belong, `dist` builds and tries what is handed out to all, `wheel` what is for machines like this one and
need not compile. Each ends with status 1 and a sentence where something does not hold.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = "CHANGELOG.md"
DIST = "dist"
UNRELEASED = "## Unreleased\n"
NUMBERS = {
    "palpo/__init__.py": '__version__ = "{}"',
    "CITATION.cff": "\nversion: {}\n",
    "packaging/conda/recipe.yaml": '\n  version: "{}"\n',
}
"""Where the version stands, and as what."""


def read(file: str) -> str:
    """A file of the project."""
    return (ROOT / file).read_text(encoding="utf-8")


def current() -> str:
    """The version that stands in the sources."""
    found = re.search(r'^__version__ = "(.*)"$', read("palpo/__init__.py"), re.MULTILINE)
    assert found is not None
    return found[1]


def unreleased(changelog: str) -> str:
    """What the changelog says under Unreleased."""
    return re.split(r"^## ", changelog.partition(UNRELEASED)[2], maxsplit=1, flags=re.MULTILINE)[0]


def obstacles(version: str, changelog: str, was: str, repository: str) -> Iterator[str]:
    """What keeps a version from being released, as sentences."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"VERSION={version} is no version; give three numbers, such as 0.2.0"
    elif tuple(map(int, version.split("."))) < tuple(map(int, was.split("."))):
        yield f"VERSION={version} is older than {was}, which stands in palpo/__init__.py"
    if f"\n## {version}" in changelog:
        yield f"{CHANGELOG} has a heading for {version} already"
    entries = unreleased(changelog)
    if not re.search(r"^- ", entries, re.MULTILINE):
        yield f"{CHANGELOG} has no entry under Unreleased"
    for line in entries.splitlines():
        if line.strip() and not line.startswith(("- ", "### ")):
            yield f"{CHANGELOG}: a change is one line; shorten what goes on with {line.strip()[:40]!r}"
    if repository.split("/")[2].endswith(".example"):
        yield f"pyproject.toml: nobody can reach {repository}; give the project's address in project.urls"


def released(changelog: str, version: str, day: str) -> str:
    """The changelog with what was unreleased under a heading of its own."""
    return changelog.replace(UNRELEASED, f"{UNRELEASED}\n## {version} - {day}\n", 1)


def numbered(text: str, pattern: str, was: str, version: str) -> str:
    """A file's text with the new version for the old one."""
    old = pattern.format(was)
    if text.count(old) != 1:
        raise ValueError(f"expected {old.strip()!r} once")
    return text.replace(old, pattern.format(version))


def run(*command: str | Path, **environment: str) -> None:
    """A command in the project's folder; CalledProcessError if it fails."""
    print("$", *(f"{name}={value}" for name, value in environment.items()), *command, flush=True)
    subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=True)


def check(version: str) -> None:
    """Whether a release may begin."""
    urls = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    found = list(obstacles(version, read(CHANGELOG), current(), urls["Repository"]))
    if subprocess.check_output(["git", "status", "--porcelain"], cwd=ROOT):
        found.append("there are changes that are not committed; commit or remove them")
    if found:
        sys.exit("\n".join(f"release: {sentence}" for sentence in found))


def write(version: str) -> None:
    """The number and the heading."""
    was = current()
    for file, pattern in NUMBERS.items():
        (ROOT / file).write_text(numbered(read(file), pattern, was, version), encoding="utf-8")
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    (ROOT / CHANGELOG).write_text(released(read(CHANGELOG), version, day), encoding="utf-8")


def build(*asked: str) -> None:
    """Build into dist/, without a warning."""
    command = [sys.executable, "-m", "build", "--outdir", DIST, *asked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = done.stdout + done.stderr
    # pip itself always says that it leaves byte-compiling to the installer
    warned = [
        line for line in said.splitlines() if "warning" in line.lower() and "byte-compiling" not in line
    ]
    if done.returncode or warned:
        sys.exit("\n".join(["release: the build does not go through without warnings", *(warned or [said])]))


def try_out(wheel: Path, *commands: tuple[str, ...]) -> None:
    """Install a wheel in an empty environment, with nothing compiled before, and run commands there."""
    with TemporaryDirectory() as empty:
        venv.create(empty, with_pip=True)
        bin = Path(empty) / ("Scripts" if sys.platform == "win32" else "bin")
        run(bin / "python", "-m", "pip", "install", "--quiet", "-c", "constraints.txt", wheel)
        caches = {"XDG_CACHE_HOME": empty, "LOCALAPPDATA": empty}
        for words in commands:
            run(bin / "palpo", *words, **caches)


def dist(_: str) -> None:
    """A source archive and the wheel built from it, both judged; the wheel runs in an empty environment."""
    for old in (ROOT / DIST).glob("palpo-*"):
        old.unlink()
    build()
    files = sorted((ROOT / DIST).glob("palpo-*"))
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    (wheel,) = (file for file in files if file.suffix == ".whl")
    try_out(wheel, ("--version",), ("scenes",), ("run", "wire", "--headless", "--duration", "0.5"))
    print("\n".join(str(file.relative_to(ROOT)) for file in files))


def wheel(_: str) -> None:
    """A wheel with compiled code of all scenes, for each level of processors that this one reaches."""
    from palpo.physics.numerics.shipped import FOLDER, abilities, levels

    reached = levels(abilities())
    if not reached or sys.platform != "linux":
        sys.exit("release: code is compiled ahead on Linux, on processors with AVX2 and FMA (x86-64-v3)")
    for old in (ROOT / DIST).glob("palpo-*-manylinux*.whl"):
        old.unlink()
    rmtree(ROOT / "build", ignore_errors=True)
    try:
        for level in reached:
            with TemporaryDirectory() as cache:
                target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
                run(sys.executable, "-m", "palpo.app.cli.main", "compile", **target)
                run(sys.executable, "-m", "palpo.app.cli.ship", FOLDER / f"{level}.zip", **target)
        build("--wheel")
    finally:
        for made_here in (FOLDER, ROOT / "build"):  # neither belongs in the next wheel
            rmtree(made_here, ignore_errors=True)
    (made,) = (ROOT / DIST).glob("palpo-*-manylinux*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", made)
    try_out(made, ("demo", "--headless"))
    print(f"{made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB, for {' and '.join(reached)}")


STEPS: dict[str, Callable[[str], None]] = {"check": check, "write": write, "dist": dist, "wheel": wheel}

if __name__ == "__main__":
    step, version = [*sys.argv[1:], ""][:2]
    STEPS[step](version)
