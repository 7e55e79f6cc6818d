"""`palpo converge`: a scene's press on three meshes, and what they approach."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from palpo.app.cli.converge import between, extrapolated, finer_mesh
from palpo.app.cli.main import main
from palpo.config.load import load_scene
from palpo.config.words import Refusal
from tests.verification.small_scenes import BALL_ON_BLOCK

PATH = """
[device]
path = [[0, 0.003, 0.0088, -0.002], [0.15, 0.003, 0.0058, -0.002], [0.25, 0.003, 0.0058, -0.002]]
"""


@pytest.mark.parametrize("order", [0.7, 1.0, 2.0, 3.3])
@pytest.mark.parametrize("sizes", [(1.0, 0.66, 0.5), (1.0, 0.7, 0.4)])
def test_forces_that_err_by_a_power_of_the_size_are_extrapolated_exactly(order, sizes):
    exact = np.array([0.3, 1.0])
    forces = [exact * (1.0 + 0.2 * size**order) for size in sizes]
    found = extrapolated(sizes, forces)
    assert found.order == pytest.approx(order, rel=1e-6)
    assert found.force == pytest.approx(exact, rel=1e-6)
    assert found.errors == pytest.approx([0.2 * size**order for size in sizes], rel=1e-5)
    # the size whose error is 5%
    assert 0.2 * found.needed(sizes) ** order == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize("forces", [(1.0, 1.1, 1.05), (1.0, 1.0, 1.2), (1.0, 1.1, 1.5), (1.0, 1.0, 1.0)])
def test_forces_that_approach_nothing_are_not_extrapolated(forces):
    """Then all that they differ by is told, and no order."""
    found = extrapolated((1.0, 0.66, 0.5), [np.array([one]) for one in forces])
    assert math.isnan(found.order) and found.force[0] == forces[-1]
    assert found.errors == pytest.approx(((max(forces) - min(forces)) / forces[-1],) * 3)


def test_the_press_of_a_scene_is_told_on_three_meshes(tmp_path, capsys):
    """Linear tetrahedra at 0.45 lock: each mesh is softer than the one before, and the first errs most."""
    file, picture = tmp_path / "scene.toml", tmp_path / "forces.png"
    file.write_text(BALL_ON_BLOCK + PATH)
    told = "bodies.block.material.poisson_ratio=0.45", "bodies.block.geometry.divisions=[4, 2, 4]"
    sets = [word for one in (*told, 'bodies.block.elements="tet4"') for word in ("--set", one)]
    assert main(["converge", str(file), *sets, "--out", str(picture)]) == 0
    said = capsys.readouterr().out
    assert picture.stat().st_size > 1000
    rows = [line.split("│") for line in said.splitlines() if line.startswith("│")]
    nodes, forces = [int(row[2]) for row in rows], [float(row[4].split()[0]) for row in rows]
    assert nodes == [75, 7 * 4 * 7, 9 * 5 * 9]
    assert forces[0] > forces[1] > forces[2] > 0.1
    assert "5% is kept by" in said or "the forces approach no limit" in said


def test_a_mesh_is_made_finer_by_what_its_shape_is_cut_by():
    """And in between by whole numbers of cells: a third of one would make another shape of cell."""
    for name, key in (("probe", "divisions=[20, 5, 20]"), ("wire", "along=15"), ("organ", "spacing=")):
        (body,) = (body for body in load_scene(name).bodies if body.kind == "tets")
        told = finer_mesh(body, between([body]))
        assert any(key in one for one in told)
        parsed = load_scene(name, told)
        assert parsed.body(body.name).geometry != body.geometry
    filled = SimpleNamespace(name="part", geometry=SimpleNamespace(kind="file", size=3e-3))
    assert finer_mesh(filled, 1.5) == ["bodies.part.geometry.size=0.002"]
    drawn = SimpleNamespace(name="lump", geometry=SimpleNamespace(kind="file", size=None))
    with pytest.raises(Refusal, match=r'bodies.lump.geometry.kind = "file": it does not say how it is cut'):
        finer_mesh(drawn, 2.0)


@pytest.mark.parametrize(
    ("scene", "options", "said"),
    [
        ("suction-arm", (), "soft bodies of two rates are needed here"),
        ("beams", (), "it has no soft body"),
        ("probe", ("--duration", "-1"), "--duration -1: give seconds above 0"),
        ("probe", ("--duration", "0.2"), "its path presses nothing"),
        ("prob", (), 'did you mean "probe"'),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(scene, options, said, tmp_path, capsys):
    assert main(["converge", scene, *options, "--out", str(tmp_path / "x.png")]) == 2
    assert said in capsys.readouterr().err


def test_a_run_that_takes_too_long_is_refused_before_it_begins(tmp_path, capsys):
    file = tmp_path / "scene.toml"
    file.write_text(BALL_ON_BLOCK + PATH)
    assert main(["converge", str(file), "--time-cap", "0.001", "--out", str(tmp_path / "x.png")]) == 2
    assert "allow more by --time-cap" in capsys.readouterr().err
