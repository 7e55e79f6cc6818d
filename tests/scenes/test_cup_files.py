"""A cup of one's own from a CAD program's file: meshed, held, and it seals."""

import numpy as np
import pytest

from palpo.app.build import volume_mesh
from palpo.app.report.design_export import write_stl
from palpo.app.systems.suction.build import build
from palpo.config.load import parse_scene
from palpo.config.words import ConfigError
from palpo.physics.mesh.cups import CUPS, GRIDS, cup

SCENE = """
system = "suction"
title = "A cup from a file"

[[bodies]]
name = "cup"
kind = "cup"
material = {{ name = "silicone", youngs_modulus = "250 kPa" }}
drive = {{ kind = "scripted", path = [[0, 0, 0, 0], [0.3, 0, "-2 mm", 0]] }}
placement = {{ position = [0, "1 mm", 0] }}

[bodies.geometry]
kind = "file"
path = "{path}"
scale = 0.001
size = "3.5 mm"
held = [{{ box = [[-1, "{above} mm", -1], [1, 1, 1]] }}]

[[bodies]]
name = "plane"
kind = "mesh"
geometry = {{ kind = "plate" }}
"""


def test_a_cup_in_an_stl_file_is_filled_held_by_its_stem_and_shuts_air_in(tmp_path, monkeypatch):
    pytest.importorskip("gmsh", exc_type=ImportError)
    monkeypatch.setattr(volume_mesh, "cache_folder", lambda name: tmp_path)
    solid = cup(CUPS["small"].shape, GRIDS[203]).mesh
    path = tmp_path / "cup.stl"
    write_stl(path, solid.surface("cup").compact(), 1e3)
    # placed 1 mm up, the upper 2 mm of the stem
    above = 1e3 * solid.nodes[:, 1].max() - 1.0
    built = build(parse_scene(SCENE.format(path=path, above=above), str(tmp_path / "scene.toml")))
    mesh = built.soft[0].mesh
    # chords of 3.5 mm of circles of 5 to 20 mm: a part of (3.5 / 5)^2 / 8 at most
    assert mesh.volume == pytest.approx(solid.volume, rel=0.06)
    suction = built.suction
    for _ in range(30):
        for drive in built.drives:
            drive.prepare(suction.time + suction.h)
        suction.step()
    assert suction.cavity_count == 1
    # 1.1 mm of push squeeze the cavity of 15.9 mm radius, which a finer or coarser mesh has, too
    assert np.pi * 15.9e-3**2 * 2e-3 < suction.volume[0] < np.pi * 15.9e-3**2 * 12e-3
    suction.close()


def test_the_size_of_a_filling_is_asked_for_and_refused_where_there_is_none_to_fill(tmp_path):
    (tmp_path / "cup.stl").write_text("solid nothing")
    text = SCENE.format(path="cup.stl", above=20).replace('size = "3.5 mm"\n', "")
    with pytest.raises(ConfigError, match=r"geometry\.size: the key is missing \(the edge of the tetrahedra"):
        parse_scene(text, str(tmp_path / "scene.toml"))
    (tmp_path / "cup.msh").write_text("nothing")
    with pytest.raises(ConfigError, match=r"geometry\.size = .*this file has tetrahedra of its own"):
        parse_scene(SCENE.format(path="cup.msh", above=20), str(tmp_path / "scene.toml"))
