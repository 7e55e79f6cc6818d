"""A system in a package of its own is a folder and a line: its scenes load, run, repeat and are copied."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import palpo
from palpo.app.cli.main import main
from palpo.app.systems.system import find_system
from palpo.config import systems
from palpo.config.load import json_schema, load_scene
from palpo.config.words import ConfigError

FOLDER = Path(__file__).parent
LINE = 'spring_wall = "spring_wall:SYSTEM"'.replace('"', "")
STIFFNESS, HEIGHT = 300.0, 0.01
SCENE = f"""
title = "A spring floor"

[wall]
stiffness = {STIFFNESS}
height = {HEIGHT}

[device]
path = [[0, 0, 0.02, 0], [0.4, 0, 0.004, 0], [0.6, 0.01, 0.004, 0], [0.8, 0, 0.02, 0]]
"""


def forget():
    systems.brought.cache_clear()
    systems.all_systems.cache_clear()


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A scene file, where the package is installed as pip would: its metadata holds the line."""
    told = tmp_path / "site" / "spring_wall-1.0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: spring_wall\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(f"[{systems.GROUP}]\n{LINE}\n")
    (tmp_path / "site" / "spring_wall").symlink_to(FOLDER / "spring_wall", target_is_directory=True)
    path = str(tmp_path / "site")
    monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")])))
    forget()
    file = tmp_path / "floor.toml"
    file.write_text(SCENE)
    yield file
    forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == "spring_wall"]:
        del sys.modules[name]


def pushed(points):
    """The law of the floor [N], of points (n, 3) [m]."""
    return STIFFNESS * np.maximum(0.0, HEIGHT - points[:, 1])


def test_its_scenes_are_told_by_their_keys_and_refused_in_one_sentence(scene):
    assert load_scene(scene).system == "spring_wall"
    assert "spring_wall" in [one["properties"]["system"]["const"] for one in told_schemas()]
    for override, said in (
        ("wall.stifness=1", 'wall.stifness = 1: unknown key; did you mean "stiffness"?'),
        ("wall.stiffness=-1", "wall.stiffness = -1 is too small; it must be above 0"),
        (
            "gas={}",
            "gas: unknown key; it belongs to a scene of suction, and `wall` makes this one of spring_wall",
        ),
    ):
        with pytest.raises(ConfigError) as refusal:
            load_scene(scene, [override])
        assert str(refusal.value) == f"floor.toml: {said}"
    with pytest.raises(ConfigError, match="wall: unknown key; it belongs to a scene of spring_wall, and"):
        load_scene("wire", ["wall={}"])


def told_schemas():
    schema = json_schema()
    return [schema["$defs"][one["$ref"].rpartition("/")[2]] for one in schema["anyOf"]]


def test_without_the_line_its_keys_are_unknown(scene, tmp_path):
    (tmp_path / "site/spring_wall-1.0.dist-info/entry_points.txt").write_text("")
    forget()
    with pytest.raises(ConfigError, match="wall: unknown key"):
        load_scene(scene)


def test_a_package_that_cannot_be_loaded_is_left_out_with_a_warning(scene, tmp_path):
    (tmp_path / "site/spring_wall-1.0.dist-info/entry_points.txt").write_text(
        f"[{systems.GROUP}]\nspring_wall = spring_wall:NOTHING\n"
    )
    forget()
    with pytest.warns(UserWarning, match="the system spring_wall .* is left out: .*NOTHING"):
        assert load_scene("wire").system == "multirate"


def test_its_force_is_its_law_and_a_state_that_was_saved_goes_on_bit_for_bit(scene, tmp_path):
    state = palpo.load(scene).build().start()
    state.step(hand=[0.0, 0.008, 0.0], ticks=100)
    state.save(tmp_path / "floor.palpo")
    ticks = state.step(hand=[0.0, 0.006, 0.0], ticks=200)
    # the servo reads the hand of the tick before
    np.testing.assert_allclose(ticks.force[1:, 1], pushed(ticks.hand[:-1]), rtol=0, atol=0.02)
    assert ticks.force[-1, 1] == pytest.approx(STIFFNESS * (HEIGHT - 0.006), rel=0.02)
    again = palpo.restore(tmp_path / "floor.palpo").step(hand=[0.0, 0.006, 0.0], ticks=200)
    np.testing.assert_array_equal(again.force, ticks.force)


def test_a_run_in_threads_is_repeated_bit_for_bit(scene, tmp_path):
    record = tmp_path / "run.h5"
    assert main(["run", str(scene), "--headless", "--record", str(record)]) == 0
    assert main(["replay", str(record)]) == 0
    assert palpo.replay(record).result["replay"]["same"]


def test_what_may_be_changed_is_what_the_system_says(scene):
    keys = [live.key for live in find_system("spring_wall").live_keys(load_scene(scene))]
    assert keys[0] == "wall.stiffness"
