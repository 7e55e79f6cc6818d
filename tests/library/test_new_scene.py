"""`palpo new`: three questions, or options, from a part's file to a scene that is felt."""

import io
import sys
from pathlib import Path

import nrrd
import numpy as np
import pytest
import trimesh

import palpo
from palpo.app.build.shapes import soft_mesh
from palpo.app.cli.main import main

SIDES = {".stl": (80.0, 20.0, 24.0), ".nrrd": (60.0, 50.0, 40.0)}


@pytest.fixture(params=SIDES)
def part(request, tmp_path, monkeypatch):
    """A bar as a surface, or an ellipsoid of label 5 in voxels of 2 mm, in millimetres."""
    monkeypatch.chdir(tmp_path)
    path, sides = tmp_path / f"part{request.param}", SIDES[request.param]
    if request.param == ".stl":
        trimesh.creation.box(sides).export(path)
    else:
        index = np.stack(np.meshgrid(*3 * [np.arange(34) - 16.5], indexing="ij"), axis=-1)
        inside = ((2.0 * index / (0.5 * np.array(sides))) ** 2).sum(axis=-1) < 1.0
        nrrd.write(str(path), 5 * inside.astype(np.uint8), {"spacings": [2.0] * 3, "units": ["mm"] * 3})
    return path


def answering(monkeypatch, *lines):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def box_of(scene):
    points = soft_mesh(scene.spec.body("part")).nodes
    return np.array([points.min(axis=0), points.max(axis=0)])


def test_three_answers_make_a_scene_that_is_felt(part, monkeypatch, capsys):
    second = "mm" if part.suffix == ".stl" else "5"
    answering(monkeypatch, "silicone", second, "bottom")
    assert main(["new", part.name]) == 0
    said = capsys.readouterr().out
    assert said.count("?") == 3 and "palpo run part.toml" in said
    scene = palpo.load("part.toml")
    low, high = box_of(scene)
    long = SIDES[part.suffix]
    tall = long[1] if part.suffix == ".stl" else long[2]
    # it stands on the ground, with its own height [mm], to within what a lattice cuts off
    assert low[1] == pytest.approx(0.0, abs=1e-6)
    assert 1e3 * high[1] == pytest.approx(tall, abs=0.05 * tall)
    state = scene.build().start()
    state.step(500)
    assert not state.force.any()
    state.step(1500)
    assert state.force[1] > 0.1
    # what it stands on stays where it was
    rest = soft_mesh(scene.spec.body("part")).nodes
    low = rest[:, 1] < 0.1e-3 * tall - 1e-6
    assert low.sum() > 5
    np.testing.assert_array_equal(state.positions["part"][low], rest[low])


def test_options_answer_and_nothing_is_asked(part, monkeypatch, capsys):
    answering(monkeypatch)
    told = ["--unit", "cm"] if part.suffix == ".stl" else ["--label", "5"]
    assert main(["new", part.name, "--material", "liver", "--held", "nothing", *told, "--out", "a.toml"]) == 0
    assert "?" not in capsys.readouterr().out
    scene = palpo.load("a.toml")
    assert {body.name for body in scene.spec.bodies} == {"part", "floor", "probe"}
    side = SIDES[part.suffix][0] * (1e-2 if part.suffix == ".stl" else 1e-3)
    assert np.ptp(box_of(scene)[:, 0]) == pytest.approx(side, rel=0.05)
    assert Path("a.toml").read_text().count(str(part.parent)) == 0


def test_a_rigid_part_is_asked_two_questions(part, monkeypatch):
    answering(monkeypatch, "rigid", "mm" if part.suffix == ".stl" else "5")
    assert main(["new", part.name]) == 0
    assert palpo.load("part.toml").spec.body("part").kind == "mesh"


def test_nothing_is_written_over(part, monkeypatch, capsys):
    Path("part.toml").write_text("mine")
    answering(monkeypatch, "", "", "")
    assert main(["new", part.name]) == 2
    assert "part.toml: is there already; choose another name by --out" in capsys.readouterr().err
    assert Path("part.toml").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == [part.name, "part.toml"]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["part.step"], "part.step: has an ending that is not read here"),
        (["no.stl", "--material", "silicone"], "no.stl"),
        (["part.stl", "--material", "jelly"], "jelly: there is no such material"),
        (["part.stl", "--material", "liver"], "--unit: nobody answers here; give this option"),
        (["part.stl", "--material", "liver", "--unit", "mm"], "--held: nobody answers"),
        (["part.stl", "--material", "liver", "--label", "1"], "only a segmented volume has parts"),
        (
            ["part.stl", "--material", "liver", "--unit", "mm", "--held", "ends", "--size", "0.05"],
            "smaller size",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(told, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trimesh.creation.box((80.0, 20.0, 24.0)).export("part.stl")
    answering(monkeypatch)
    assert main(["new", *told]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.glob("*.toml"))
