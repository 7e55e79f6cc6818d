"""Each example is short, and does what it is for in a process of its own."""

import subprocess
import sys
from pathlib import Path

import meshio
import nibabel
import numpy as np
import pytest

import palpo

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


def test_a_surgeons_developer_feels_parts_of_a_scan(tmp_path):
    # an organ 48 mm across over a bone, in voxels of 1.5 x 1.5 x 2 mm
    x, y, z = np.meshgrid(*(np.arange(n) - 0.5 * (n - 1) for n in (48, 48, 36)), indexing="ij")
    x, y, z = 1.5 * x, 1.5 * y, 2.0 * z
    labels = ((x / 24) ** 2 + (y / 24) ** 2 + (z / 22) ** 2 < 1).astype(np.uint8)
    labels[(np.hypot(y, z + 28) < 5) & (np.abs(x) < 30)] = 2
    affine = np.diag([1.5, 1.5, 2.0, 1.0])
    affine[:3, 3] = x[0, 0, 0], y[0, 0, 0], z[0, 0, 0]
    nibabel.save(nibabel.Nifti1Image(labels, affine), tmp_path / "scan.nii.gz")
    forces = [float(line.split()[2]) for line in ran("surgeons_developer", tmp_path).splitlines()]
    # the probe's rim comes down on the top at 22 mm from 24 mm, and goes on to 14 mm
    assert forces[0] == 0.0 and forces[3] > 0.1
    assert palpo.load(tmp_path / "scan.toml").spec.body("bone").geometry.label == 2


def test_a_robotics_engineer_has_a_gripper_that_lifts_in_mujoco(tmp_path):
    said = ran("robotics_engineer", tmp_path)
    assert "left holds" in said and "right holds" in said
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[simulators]'")
    done = subprocess.run(
        [sys.executable, "in_mujoco.py"], capture_output=True, text=True, cwd=tmp_path / "gripper"
    )
    assert done.returncode == 0, done.stderr
    assert "held by 2 cups" in done.stdout and "released, it is at 0.010 m" in done.stdout
