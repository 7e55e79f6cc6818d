"""What is refused of incisions, in words that name the key."""

from pathlib import Path
from typing import Any

import pytest

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.config.words import ConfigError
from palpo.physics.numerics.errors import InputError

SCENE = """
title = "A cut"
[[bodies]]
name = "gel"
kind = "tets"
geometry = { kind = "block", size = [0.04, 0.02, 0.04], divisions = [4, 2, 4] }
material = "soft-tissue"
fixed = [{ box = [[-0.1, -0.011, -0.1], [0.1, -0.0099, 0.1]] }]
MORE
[[bodies.incisions]]
corners = CORNERS
[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.005 }
placement = { position = [0, 0.03, 0] }
mass = 0.02
[tool]
body = "ball"
"""
CUT = "[[0.001, 0.1, -0.1], [0.001, 0, -0.1], [0.001, 0, 0.1], [0.001, 0.1, 0.1]]"


def _loaded(folder: Path, corners: str = CUT, more: str = "") -> Any:
    file = folder / "cut.toml"
    file.write_text(SCENE.replace("CORNERS", corners).replace("MORE", more))
    return load_scene(file)


@pytest.mark.parametrize(
    ("corners", "said"),
    [
        ("[[0, 0, 0], [1, 0, 0], [2, 0, 0]]", "on a line"),
        ("[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.2]]", "off the plane"),
        ("[[1, 0, 0], [0.2, 0.2, 0], [0, 1, 0], [0, 0, 0]]", "not convex"),
    ],
)
def test_an_outline_that_is_none_is_refused(tmp_path: Path, corners: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        _loaded(tmp_path, corners)
    assert "bodies.gel.incisions[0].corners" in str(error.value)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ('elements = "tet10"', "elements"),
        ('solver = "multigrid"', "solver"),
        ('mass_model = "consistent"', "mass_model"),
    ],
)
def test_what_a_cut_body_cannot_be_is_refused(tmp_path: Path, more: str, key: str) -> None:
    with pytest.raises(ConfigError, match="incisions") as error:
        _loaded(tmp_path, more=more)
    assert f"bodies.gel.{key}" in str(error.value)


def test_a_cut_beside_the_body_is_refused_with_where_that_is(tmp_path: Path) -> None:
    beside = "[[0.1, 0.1, -0.1], [0.1, -0.1, -0.1], [0.1, -0.1, 0.1], [0.1, 0.1, 0.1]]"
    with pytest.raises(InputError, match=r"incisions\.0\.corners cut nothing.*0\.02"):
        build_scene(_loaded(tmp_path, beside))
    assert build_scene(_loaded(tmp_path)).members[0].body.count > 75
