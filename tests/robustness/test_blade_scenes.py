"""What is refused of blades, in words that name the key."""

from pathlib import Path
from typing import Any

import pytest

from palpo.config.load import load_scene
from palpo.config.words import ConfigError


def _loaded(*changes: str) -> Any:
    return load_scene("cut", list(changes))


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ("blades.0.edge=[[0, 0, 0], [0, 0, 0]]", "blades[0].edge", "one point"),
        ("blades.0.edge.0.0=1e308", "blades[0].edge", "longer than"),
        ("blades.0.depth=1e9", "blades[0].depth", "longer than"),
        ("blades.0.towards=[0, 1, -1]", "blades[0].towards", "along the edge"),
        ("blades.0.spacing=0.001", "blades[0].spacing", "at most 64"),
        ("blades.0.depth=0", "blades[0].depth", ""),
        ("blades.0.toughness=0", "blades[0].toughness", ""),
        ("blades.0.puncture=-1", "blades[0].puncture", ""),
        ('blades.0.body="gel"', "blades[0].body", "rigid"),
        ('blades.0.tissue="scalpel"', "blades[0].tissue", "soft one"),
        ('blades.0.tissue="liver"', "blades[0].tissue", "no such body"),
        ('bodies.gel.elements="tet10"', "bodies.gel.elements", "linear tetrahedra"),
        ('bodies.gel.solver="multigrid"', "bodies.gel.solver", "factors"),
        ('bodies.gel.material.law="neo-hookean"', "bodies.gel.material.law", "linear"),
        ("bodies.gel.fixed=[]", "bodies.gel.fixed", "never move"),
        ('interface.kind="monolithic"', "interface.kind", "krylov"),
        ('solver.name="anderson"', "solver.name", "gauss-seidel"),
    ],
)
def test_what_is_no_blade_is_refused(change: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said or None) as error:
        _loaded(change)
    assert key in str(error.value)


def test_a_body_has_one_blade(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "config/scenes/cut.toml").read_text()
    start, end = text.index("[[blades]]"), text.index("[friction]")
    file = tmp_path / "two.toml"
    file.write_text(text[:end] + text[start:end] + text[end:])
    with pytest.raises(ConfigError, match="another blade") as error:
        load_scene(file)
    assert "blades[1].tissue" in str(error.value)
