"""What the README and the pages tell people to type, look at and open is there."""

import re
import shlex
from pathlib import Path

import pytest

from palpo.app.cli.main import _parser
from palpo.benchmarks.registry import BENCHES
from palpo.config.load import list_scenes, load_scene
from palpo.studies.registry import STUDIES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
INSTALLING = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")


def quoted(text: str) -> list[str]:
    """Commands in a table and in prose, between backquotes."""
    return re.findall(r"`(palpo [^`]*)`", text)


def own(text: str) -> list[str]:
    """Commands on lines of their own, whose remark is two blanks away."""
    lines = re.findall(r"^    (palpo .*)$", text.replace("\\\n", ""), re.MULTILINE)
    return [re.split(r"\s{2,}", re.sub(r" {2,}(?=--)", " ", line.strip()))[0] for line in lines]


TEXTS = [page.read_text(encoding="utf-8") for page in PAGES]
COMMANDS = sorted({command for text in TEXTS for command in [*quoted(text), *own(text)]})
NAMED = [c for c in COMMANDS if len(c.split()) == 2 and not c.split()[1].startswith("-")]
"""Commands that a sentence calls by their name alone."""


def test_there_is_something_to_type():
    assert len(quoted(README)) > 10 and len(COMMANDS) > 80


@pytest.mark.parametrize("command", NAMED)
def test_every_command_that_is_named_has_help(command, capsys):
    with pytest.raises(SystemExit) as ended:
        _parser().parse_args([command.split()[1], "--help"])
    assert ended.value.code == 0 and f"usage: {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", [c for c in COMMANDS if len(c.split()) > 2 and "--help" not in c])
def test_every_command_is_one_of_the_program(command):
    options = _parser().parse_args(shlex.split(command)[1:])
    words = command.split()
    # a scene in capitals stands for any, one with an ending for a file of the reader's
    if words[1] in ("run", "sweep") and options.scene.islower() and not Path(options.scene).suffix:
        load_scene(options.scene, options.overrides)
    if words[1:2] == ["study"]:
        assert options.name is None or options.name in STUDIES
    if words[1:2] == ["bench"]:
        assert options.name is None or options.name in BENCHES


def test_every_target_of_make_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    told = set(re.findall(r"(?:^    |`)make ([a-z]+)", README + INSTALLING, re.MULTILINE))
    assert {"demo", "test", "site", "dist"} <= told <= targets


def test_every_picture_and_page_that_it_points_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r'src="([^"]+)"', README)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_it_opens_with_a_picture_then_the_two_commands():
    picture, demo, test = (README.index(words) for words in (".gif", "\n    make demo\n", "    make test\n"))
    assert picture < demo < test < README.index("\n## ")


def test_the_number_of_scenes_is_right():
    assert f"all {len(list_scenes())} scenes" in README


def test_systems_that_are_explained_have_scenes():
    families = set(re.findall(r"`([a-z]+)-\*`", (ROOT / "docs" / "how_it_works.md").read_text("utf-8")))
    assert families == {"hapco", "snap", "suction"}
    assert all(any(scene.startswith(f"{family}-") for scene in list_scenes()) for family in families)


def test_what_it_says_of_system_packages_is_what_the_script_installs():
    script = (ROOT / "scripts" / "system-libs.sh").read_text()
    always, for_tests = re.findall(r'PACKAGES="([^"]*)"', script)
    # OpenGL and EGL by Mesa, and four X libraries
    kinds = {"opengl": r"lib(gl|egl)", "x": r"libx"}
    names = {kind: [p for p in always.split() if re.match(pattern, p)] for kind, pattern in kinds.items()}
    assert len(names["x"]) == 4 and "four X libraries" in INSTALLING
    assert len(names["opengl"]) + len(names["x"]) == len(always.split())
    more = for_tests.split()[1:]  # behind $PACKAGES
    assert more == ["xvfb", "xauth", "xdotool"]
    assert "Xvfb, xauth and xdotool" in INSTALLING
