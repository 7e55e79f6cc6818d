"""Each example is short, and does what it is for in a process of its own."""

import subprocess
import sys
from pathlib import Path

import meshio
import nibabel
import numpy as np
import pytest
import trimesh

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


def test_a_part_designer_has_a_connector_from_stl_files(tmp_path):
    told = [sys.executable, "-m", "palpo.app.cli.main", "snap", "snap", "--export", str(tmp_path)]
    subprocess.run(told, check=True, capture_output=True)
    said = ran("part_designer", tmp_path)
    peak = float(said.split()[2])
    # the generator's own mesh of the same parts: four-node tetrahedra are the stiffer the coarser they are
    assert palpo.snap("snap").row["insertion_N"] == pytest.approx(peak, rel=0.1)
    assert "latched: True" in said and "%: good" in said
    assert (tmp_path / "joint" / "connector.xml").is_file()
    assert palpo.load(tmp_path / "connector.toml").title == "My connector"


GRIPPER = """<robot name="gripper">
<link name="palm"><inertial><mass value="0.4"/>
<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 0.02"/><geometry><box size="0.1 0.05 0.04"/></geometry></collision></link>
{fingers}</robot>"""
FINGER = """<link name="{name}"><inertial><mass value="0.05"/><origin xyz="0 0 0.04"/>
<inertia ixx="3e-5" iyy="3e-5" izz="3e-6" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="finger.stl" scale="0.001 0.001 0.001"/></geometry></collision></link>
<joint name="{name}_slide" type="prismatic"><parent link="palm"/><child link="{name}"/>
<origin xyz="0 0 0.05"/><axis xyz="{side} 0 0"/>
<limit lower="0.01" upper="0.04" effort="1" velocity="1"/></joint>"""


def test_a_robotics_engineer_presses_with_a_finger_of_a_urdf_file(tmp_path):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[urdf]'")
    fingers = [FINGER.format(name=name, side=side) for name, side in (("left", -1), ("right", 1))]
    (tmp_path / "gripper.urdf").write_text(GRIPPER.format(fingers="".join(fingers)))
    trimesh.creation.capsule(height=60.0, radius=8.0).export(tmp_path / "finger.stl")
    forces = [float(line.split()[3]) for line in ran("robot_in_a_scene", tmp_path).splitlines()]
    assert len(forces) == 4 and forces[0] == 0.0 and np.all(np.diff(forces) > 0.05)


def test_a_robotics_engineer_has_a_gripper_that_lifts_in_mujoco(tmp_path):
    said = ran("robotics_engineer", tmp_path)
    assert "left holds" in said and "right holds" in said
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[simulators]'")
    done = subprocess.run(
        [sys.executable, "in_mujoco.py"], capture_output=True, text=True, cwd=tmp_path / "gripper"
    )
    assert done.returncode == 0, done.stderr
    assert "held by 2 cups" in done.stdout and "released, it is at 0.010 m" in done.stdout
