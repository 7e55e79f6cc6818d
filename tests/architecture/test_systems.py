"""What a system is stands in one place: nobody else asks which one a scene belongs to."""

import re
from pathlib import Path

import pytest

from palpo.app.systems.system import System, find_system
from palpo.config.systems import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
OF_ONE_SYSTEM = {
    "app/cli/converge.py", "app/cli/design.py", "app/gym/snap_plant.py",
    "app/gym/suction.py", "app/library/gripping.py",
}  # fmt: skip
"""Commands and environments of one system, which refuse scenes of others in words."""
FORK = re.compile(
    rf"isinstance\([^()]*\b(?:{'|'.join(scene.__name__ for scene in SYSTEMS.values())})\b"
    rf"|system\b\s*(?:==|!=|in)\s*[\"'(\[]"
)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_found_by_its_name_and_has_a_rig(name):
    assert isinstance(find_system(name), System)
    assert find_system(name).scene is SYSTEMS[name]
    rig = find_system(name).folder / "rig.py"
    assert rig.is_file(), "compiling ahead reads what a system's rig imports"


def test_no_other_file_forks_by_the_system_of_a_scene():
    forks = {
        path.relative_to(ROOT).as_posix()
        for room in ("app", "config", "physics", "render")
        for path in (ROOT / room).rglob("*.py")
        if FORK.search(path.read_text("utf-8"))
    }
    assert forks == OF_ONE_SYSTEM


@pytest.mark.parametrize(
    ("line", "fork"),
    [
        ("if isinstance(spec, SceneSpec):", True),
        ("isinstance(a, HapcoScene | SnapScene)", True),
        ('spec.system == "hapco"', True),
        ('if system in ("snap",):', True),
        ("isinstance(gas, PassiveGas)", False),
        ("if system not in SYSTEMS:", False),
    ],
)
def test_the_search_finds_forks(line, fork):
    assert bool(FORK.search(line)) is fork
