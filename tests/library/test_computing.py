"""What commands compute is a function of palpo, and says what the command says."""

import inspect
import re

import numpy as np
import pytest

import palpo
from palpo.app.cli.main import main
from palpo.app.cli.sweep import Axis, Sweep, one_run
from palpo.config.schema.material import library
from tests.verification.small_scenes import BALL_ON_BLOCK

PATH = """
[device]
path = [[0, 0.003, 0.0088, -0.002], [0.1, 0.003, 0.0068, -0.002]]
"""


def test_materials_are_those_that_the_command_lists(capsys):
    known = palpo.materials()
    assert known["liver"].material.youngs_modulus == 5000.0 and known["liver"].source
    assert main(["materials", "liver"]) == 0
    assert f"source: {known['liver'].source}" in capsys.readouterr().out
    assert set(known) == set(library())


def test_a_material_is_found_from_its_own_force_and_a_text_says_the_unit(tmp_path):
    """A rod of 20 kPa that slides between plates: stress E times strain, to the file's digits."""
    depth = np.linspace(1e-4, 3e-3, 30)
    force = 20e3 * depth / 0.03 * np.pi / 4.0 * 0.05**2
    rows = "\n".join(f"{d:.8g},{f:.8g}" for d, f in zip(depth, force, strict=True))
    (tmp_path / "force.csv").write_text(f"depth_m,force_N\n{rows}\n")
    found = palpo.identify(tmp_path / "force.csv", cylinder=("50 mm", 0.03), laws=["linear"])
    assert found[0].material.youngs_modulus == pytest.approx(20e3, rel=1e-6)
    with pytest.raises(palpo.Refusal, match="one of --ball R"):
        palpo.identify(tmp_path / "force.csv")


def test_a_sweep_of_a_scene_made_in_python_has_the_rows_of_its_runs(tmp_path):
    scene = palpo.load(BALL_ON_BLOCK + PATH)
    rows = palpo.sweep(scene, {"friction.default": [0.0, 0.4]}, tmp_path / "rows.csv")
    scene.save(tmp_path / "scene.toml")
    axes = (Axis("friction.default", ("0.0", "0.4")),)
    asked = Sweep(str(tmp_path / "scene.toml"), axes)
    for row, point in zip(rows, asked.points(), strict=True):
        alone = one_run(asked, point)
        assert {**row, "wall_s": 0} == {**alone, "wall_s": 0}
    assert (tmp_path / "rows.csv").read_text().count("\n") == 3
    with pytest.raises(palpo.Refusal, match="give the values of at least one key"):
        palpo.sweep(scene, {})


def test_convergence_is_what_the_command_prints(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ball.toml").write_text(BALL_ON_BLOCK + PATH)
    found = palpo.converge(palpo.load(tmp_path / "ball.toml"))
    assert main(["converge", "ball.toml"]) == 0
    said = capsys.readouterr().out
    for press in found.presses:
        assert f"{press.nodes:,}" in said and f"{press.force[-1]:.4g} N" in said


def test_a_connector_is_designed_from_python():
    found = palpo.snap("snap", insertion_below=1.0)
    assert found.row["insertion_N"] == found.travel.insertion.peak > 1.0
    assert found.row["latched"] and not found.row["passes"]


def test_signatures_name_nothing_private():
    seen = []
    for name in palpo.__all__:
        thing = getattr(palpo, name)
        members = dict(vars(thing)) if inspect.isclass(thing) else {name: thing}
        for member, function in members.items():
            if inspect.isfunction(function) and not member.startswith("_"):
                seen.append(member)
                told = [*function.__annotations__.values(), *inspect.signature(function).parameters]
                assert not re.search(r"(?<!\w)_[a-zA-Z]", " ".join(map(str, told))), (name, member, told)
    assert {"step", "fields", "load", "export", "converge", "sweep"} <= set(seen)


def test_a_notebook_shows_scenes_states_and_runs_with_a_picture_and_a_table():
    scene = palpo.load("probe")
    done = palpo.run(scene, lock_step=True, duration=0.3)
    for shown in (scene, scene.build().start(), done):
        page = shown._repr_html_()
        assert "<table>" in page and page.startswith("<div><b>")
        assert '<img src="data:image/' in page or "no picture: " in page
