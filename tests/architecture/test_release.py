"""What is handed to the world says the same everywhere: version, requirements, Pythons, links."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import palpo
from palpo.app.cli.main import main

ROOT = Path(__file__).parents[2]
RELEASE = runpy.run_path(str(ROOT / "scripts" / "release.py"), run_name="release")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
NAMES_ELSEWHERE = {
    "matplotlib": "matplotlib-base",
    "qdldl": "qdldl-python",
    "PyOpenGL": "pyopengl",
}
"""Packages that conda knows by another name."""


def test_the_version_is_one(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    said = capsys.readouterr().out.split()
    assert said == ["palpo", palpo.__version__]
    assert CITATION["version"] == RECIPE["context"]["version"] == palpo.__version__


def test_asking_for_the_version_loads_nothing_else():
    code = (
        "import sys, palpo; palpo.__version__; sys.exit('numpy' in sys.modules or 'palpo.app' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_release_finds_the_version_in_each_file_once():
    for file, pattern in RELEASE["NUMBERS"].items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert "9.9.9" in RELEASE["numbered"](text, pattern, palpo.__version__, "9.9.9")
        with pytest.raises(ValueError, match="once"):
            RELEASE["numbered"](text, pattern, "0.0.0", "9.9.9")


def test_each_change_is_one_line():
    found = list(RELEASE["obstacles"]("99.0.0", CHANGELOG, palpo.__version__, "https://host.org/palpo"))
    assert found == []
    longest = max(CHANGELOG.splitlines(), key=len)
    assert len(longest) <= 150, longest


def test_what_keeps_a_release_back_is_said():
    obstacles = RELEASE["obstacles"]
    good = "# Changelog\n\n## Unreleased\n\n### Added\n\n- One.\n"
    assert list(obstacles("1.0.0", good, "0.1.0", "https://host.org/palpo")) == []
    for version, changelog, repository, word in (
        ("1.0", good, "https://host.org/palpo", "three numbers"),
        ("0.0.9", good, "https://host.org/palpo", "older"),
        ("1.0.0", good + "\n## 1.0.0 - 2026-01-01\n", "https://host.org/palpo", "already"),
        ("1.0.0", good.replace("- One.\n", ""), "https://host.org/palpo", "no entry"),
        ("1.0.0", good + "  goes on\n", "https://host.org/palpo", "one line"),
        ("1.0.0", good, "https://palpo.example/palpo", "reach"),
    ):
        (said,) = obstacles(version, changelog, "0.1.0", repository)
        assert word in said


def test_a_release_moves_what_was_unreleased_under_its_heading():
    changelog = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n"
    then = RELEASE["released"](changelog, "0.2.0", "2026-02-03")
    assert "- " not in RELEASE["unreleased"](then)
    assert then.index("## Unreleased") < then.index("## 0.2.0 - 2026-02-03") < then.index("- New.")
    assert then.replace("## 0.2.0 - 2026-02-03\n\n", "").split() == changelog.split()


def test_pythons_and_both_ends_of_numba_are_tested():
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    matrix = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == WORKFLOW["jobs"]["wheel"]["strategy"]["matrix"]["python"] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    (requirement,) = (one for one in PROJECT["dependencies"] if one.startswith("numba"))
    lowest = re.findall(r">=([\d.]+)", requirement)[0]
    highest = re.findall(r"<0\.(\d+)", requirement)[0]
    tested = {*matrix["numba"], *(more["numba"] for more in matrix["include"])}
    pinned = re.findall(r"^numba==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert tested == {lowest, *pinned}
    assert pinned[0].startswith(f"0.{int(highest) - 1}.")


def test_the_workflow_runs_the_commands_of_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = [step.get("run", "") for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    called = {word for step in steps for word in re.findall(r"\bmake ([a-z]+)", step)}
    assert called == {"lint", "test", "studies", "dist", "wheel", "site"} and called <= targets


def test_conda_asks_for_what_pip_asks_for():
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["render"], "imgui-bundle>=1.92"]
    assert "imgui-bundle>=1.92" in PROJECT["optional-dependencies"]["window"]
    there = {"python>=3.11"}
    for one in wanted:
        name, bounds = re.match(r"([\w-]+)(.*)", one).groups()
        there.add(NAMES_ELSEWHERE.get(name, name) + bounds)
    assert {one.replace(" ", "") for one in RECIPE["requirements"]["run"]} == there


def test_the_address_stands_once():
    home = PROJECT["urls"]["Repository"]
    assert CITATION["repository-code"] == home
    assert PROJECT["urls"]["Issues"].startswith(home) and PROJECT["urls"]["Changelog"].startswith(home)


def test_links_of_the_readme_hold_outside_of_the_repository():
    text = runpy.run_path(str(ROOT / "setup.py"), run_name="metadata")["description"]()
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text)
    assert len(links) > 8 and any(picture for picture, _ in links)
    for picture, link in links:
        kind = "raw" if picture else "blob"
        base = f"{PROJECT['urls']['Repository']}/{kind}/v{palpo.__version__}/"
        if not link.startswith(base):
            assert link.startswith("https://"), link
            continue
        assert (ROOT / link.removeprefix(base).partition("#")[0]).exists(), link
