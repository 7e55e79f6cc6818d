"""`palpo snap`: what it writes, what it reads back, and what it refuses."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from palpo.app.build import volume_mesh
from palpo.app.cli import design
from palpo.app.cli.main import main
from palpo.app.cli.progress import Silent
from palpo.app.report.design_export import export, write_stl
from palpo.config.load import load_scene
from palpo.config.words import ConfigError, Refusal
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.io import read_surface_mesh, read_tet_mesh
from palpo.physics.numerics.errors import InputError

QUICK = ("connector.mesh=coarse", "contact.spacing=0.003")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_page_with_its_pictures_and_tables_is_written(tmp_path, capsys):
    told = [item for change in QUICK for item in ("--set", change)]
    status = main(
        ["snap", "snap", *told, "--param", "connector.ramp=0.6,2.0", "--tolerance", "friction.default=30%",
         "--runs", "2", "--insertion-below", "1000", "--strain-below", "1", "--out", str(tmp_path)]
    )  # fmt: skip
    assert status == 0
    said = capsys.readouterr().out
    assert "100 % of 2 parts pass" in said and "design.html" in said
    names = {path.name for path in tmp_path.iterdir()}
    pictures = {f"{name}.png" for name in ("force", "body", "quality", "sweep", "parts")}
    assert names == pictures | {"design.html", "curve.csv", "sweep.csv", "parts.csv"}
    page = (tmp_path / "design.html").read_text()
    assert page.count("data:image/png") == 5 and "within its limits" in page
    one, other = rows_of(tmp_path / "sweep.csv")
    # the one ramp is a connector, the other is none, and says why
    assert float(one["insertion_N"]) > 0.0 and one["passes"] == "True"
    assert other["passes"] == "False" and "ramp" in other["why"]
    curve = rows_of(tmp_path / "curve.csv")
    inward = [row for row in curve if row["way"] == "in"]
    assert np.all(np.diff([float(row["travel_m"]) for row in inward]) > -1e-5)
    parts = [float(row["friction.default"]) for row in rows_of(tmp_path / "parts.csv")]
    assert len(set(parts)) == 2


def test_exported_parts_are_read_as_the_scenes_own(tmp_path):
    scene = export("snap", QUICK, tmp_path)
    own = design.scene_of("snap", QUICK)
    parts = design.connector_of(own)
    plug = read_surface_mesh(tmp_path / "plug.stl")
    # an STL file has single precision
    assert plug.signed_volume == pytest.approx(1e9 * parts.plug.signed_volume, rel=1e-5)
    for i, prong in enumerate(parts.prongs, 1):
        surface = read_surface_mesh(tmp_path / f"socket-{i}.stl")
        assert surface.signed_volume == pytest.approx(1e9 * prong.mesh.volume, rel=1e-5)
    told = load_scene(str(scene))
    assert told.connector.stroke == pytest.approx(parts.stroke, rel=1e-6)
    assert [prong.filled for prong in told.connector.prongs] == [True, True]


def test_a_surface_is_filled_by_gmsh_with_tetrahedra_of_the_size(tmp_path, monkeypatch):
    pytest.importorskip("gmsh", exc_type=ImportError)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    size = np.array([0.02, 0.01, 0.04])
    write_stl(tmp_path / "box.stl", block(tuple(size), (1, 1, 1)).surface(), 1.0)
    counts = []
    for edge in (5e-3, 2.5e-3):
        made = partial(volume_mesh.meshed, str(tmp_path / "box.stl"), edge, 3, Silent())
        mesh = made(partial(read_tet_mesh, drop_unreferenced=True))
        assert mesh.volume == pytest.approx(np.prod(size), rel=1e-5)
        assert mesh.qualities.min() > 0.05
        counts.append(len(mesh.tets))
        with monkeypatch.context() as alone:
            alone.setattr(volume_mesh, "_run", lambda *_: pytest.fail("meshed again"))
            assert len(made(partial(read_tet_mesh, drop_unreferenced=True)).tets) == len(mesh.tets)
    # halved edges: eight times as many, roughly
    assert 4.0 < counts[1] / counts[0] < 16.0


def test_without_gmsh_one_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(volume_mesh.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(volume_mesh.shutil, "which", lambda name: None)
    write_stl(tmp_path / "box.stl", block((1.0, 1.0, 1.0), (1, 1, 1)).surface(), 1.0)
    with pytest.raises(Refusal, match=r"Gmsh, which is not here: pip install 'palpo\[mesh\]'"):
        volume_mesh.meshed(str(tmp_path / "box.stl"), 0.1, 3, Silent(), Path)


def test_what_gmsh_cannot_mesh_is_refused_with_its_complaint(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        volume_mesh, "_program", lambda: ["sh", "-c", "echo 'Error   : no such thing'; exit 1"]
    )
    (tmp_path / "part.step").write_text("nothing")
    with pytest.raises(InputError, match=r"part.step: Gmsh made no mesh of it: no such thing"):
        volume_mesh.meshed(str(tmp_path / "part.step"), 0.1, 3, Silent(), Path)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("size = 0.003", "", "the key is missing"),
        ('path = "socket-1.stl"', 'path = "socket-9.stl"', "is not there"),
        ('path = "socket-1.stl"', 'path = "socket-1.off"', "has an ending that is not read here"),
    ],
)
def test_a_file_to_fill_needs_a_size_and_has_to_be_there(tmp_path, was, becomes, said):
    scene = export("snap", QUICK, tmp_path)
    text = scene.read_text()
    assert was in text
    scene.write_text(text.replace(was, becomes))
    with pytest.raises(ConfigError, match=said):
        load_scene(str(scene))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"scene": "probe"}, 'probe: system = "multirate"; this command needs a snap scene'),
        (
            {"scene": "snap", "tolerances": ("friction.default=a",), "runs": 5},
            "a positive number without unit",
        ),
        (
            {"scene": "snap", "tolerances": ("friction=1",), "runs": 5},
            "the scene has no number there to vary",
        ),
        (
            {"scene": "snap", "tolerances": ("friction.default=1%",), "runs": 1},
            "tolerances need at least two",
        ),
        ({"scene": "snap", "back": -1.0}, "pull by a positive way"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(asked, said):
    with pytest.raises(Refusal, match=said):
        design.investigate(design.DesignRequest(**asked), Silent())


def test_a_tolerance_is_about_the_generators_own_dimension_where_the_scene_gives_none():
    spec = design.scene_of("snap", ())
    told = design.tolerance_of("connector.hook=0.0001", spec)
    assert told.about == pytest.approx(3.3e-3) and told.deviation == pytest.approx(1e-4 / 3.0)


def test_scenes_are_called_by_what_tells_their_paths_apart():
    assert design.short_names(["parts/30/design.toml", "parts/35/design.toml"]) == ["30", "35"]
    assert design.short_names(["0.1", "0.2"]) == ["0.1", "0.2"]
