"""Each example is short, and does what it is for in a process of its own."""

import subprocess
import sys
from pathlib import Path

import meshio
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def ran(name, folder):
    """What an example prints."""
    script = EXAMPLES / f"{name}.py"
    assert len(script.read_text("utf-8").splitlines()) <= 40
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_python_user_sees_inside_a_body_and_hands_it_on(tmp_path):
    said = ran("python_user", tmp_path)
    assert " Pa at " in said and said.count("0.5 ") == 1
    assert meshio.read(tmp_path / "tissue.vtu").point_data["stress"].any()
    assert list((tmp_path / "vtk").glob("tissue_*.vtu"))


def test_a_robotics_engineer_has_a_gripper_that_lifts_in_mujoco(tmp_path):
    said = ran("robotics_engineer", tmp_path)
    assert "left holds" in said and "right holds" in said
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[simulators]'")
    done = subprocess.run(
        [sys.executable, "in_mujoco.py"], capture_output=True, text=True, cwd=tmp_path / "gripper"
    )
    assert done.returncode == 0, done.stderr
    assert "held by 2 cups" in done.stdout and "released, it is at 0.010 m" in done.stdout
