"""Closed surfaces of any file are mended where that is safe, and filled with good tetrahedra."""

import json

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

import palpo
from palpo.app.build.volume_mesh import fill
from palpo.app.cli.main import main
from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.mesh.io import read_mended_surface, read_solid_mesh
from palpo.physics.mesh.mending import mended
from palpo.physics.mesh.stuffing import stuffed
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import validate_tets
from palpo.physics.numerics.errors import InputError

BOX = trimesh.creation.box((0.06, 0.02, 0.05))
TURNED = [np.eye(3), Rotation.from_rotvec((0.3, -0.5, 0.8)).as_matrix()]


def surface_of(shape, turned=TURNED[0]):
    return SurfaceMesh.from_triangles(np.asarray(shape.vertices) @ turned.T, shape.faces)


@pytest.mark.parametrize("turned", TURNED, ids=["along the lattice", "askew"])
def test_nodes_on_sharp_edges_give_back_most_of_the_volume_that_a_lattice_cuts_off(turned):
    surface = surface_of(BOX, turned)
    corners = np.array([surface.vertices.min(axis=0), surface.vertices.max(axis=0)])
    field = exact_field(surface)
    for size in (8e-3, 4e-3):
        cut = stuffed(lambda points: -signed_distance(field, points)[0], corners, size)
        mesh = fill(surface, size, "box")
        validate_tets(mesh.nodes, mesh.tets, "box")
        assert 0.0 <= BOX.volume - mesh.volume + 1e-9 * BOX.volume < 0.4 * (BOX.volume - cut.volume)
        assert mesh.qualities.min() >= 0.15
        distance = signed_distance(field, mesh.nodes[mesh.boundary_nodes])[0]
        np.testing.assert_allclose(distance, 0.0, atol=1e-9 * size)


def test_a_smooth_body_loses_volume_as_the_square_of_the_size():
    ball = trimesh.creation.icosphere(4, 0.02)
    lost = [1.0 - fill(surface_of(ball), size, "ball").volume / ball.volume for size in (4e-3, 2e-3)]
    assert np.log2(lost[0] / lost[1]) == pytest.approx(2.0, abs=0.3)


def test_a_hollow_stays_empty():
    shapes = trimesh.creation.icosphere(3, 0.02), trimesh.creation.icosphere(3, 0.012)
    vertices = np.concatenate([shape.vertices for shape in shapes])
    # both shells face outward, as drawing programs write them
    triangles = np.concatenate([shapes[0].faces, len(shapes[0].vertices) + shapes[1].faces])
    surface, said = mended(vertices, triangles, "shells")
    assert said == ["1 shell turned inside out"]
    mesh = fill(surface, 3e-3, "shells")
    assert mesh.volume == pytest.approx(shapes[0].volume - shapes[1].volume, rel=0.05)
    middles = mesh.nodes[mesh.tets].mean(axis=1)
    assert np.linalg.norm(middles, axis=1).min() > 0.011


def damaged(rng):
    """Vertices and triangles of the box, cut finely, with what goes wrong in drawing programs."""
    fine = BOX.subdivide().subdivide()
    corners = np.asarray(fine.vertices)[fine.faces]
    turn = rng.random(len(corners)) < 0.2
    corners[turn] = corners[turn][:, ::-1]
    corners = np.concatenate([corners, corners[:3], np.repeat(corners[:1, :1], 3, axis=1)])
    corners = np.delete(corners, 40, axis=0)
    return corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3)


@pytest.mark.parametrize("seed", range(5))
def test_a_soup_of_triangles_becomes_the_solid_that_it_was(seed):
    vertices, triangles = damaged(np.random.default_rng(seed))
    surface, said = mended(vertices, triangles, "soup")
    assert surface.closed
    assert surface.signed_volume == pytest.approx(BOX.volume, rel=1e-12)
    for words in (
        "merged",
        "without area",
        "written twice",
        "turned as the neighbours",
        "1 flat hole closed",
    ):
        assert any(words in told for told in said), words


def moebius_strip(n):
    """Vertices and triangles of a strip of n quadrilaterals that is joined with half a turn."""
    angle = 2.0 * np.pi * np.arange(n) / n
    middle = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    across = 0.2 * (np.cos(angle / 2)[:, None] * middle + np.sin(angle / 2)[:, None] * [0.0, 0.0, 1.0])
    vertices = np.stack([middle + across, middle - across], axis=1).reshape(-1, 3)
    a, b = 2 * np.arange(n), 2 * np.arange(n) + 1
    c, d = np.append(a[1:], 1), np.append(b[1:], 0)
    return vertices, np.concatenate([np.stack([a, b, c], axis=1), np.stack([b, d, c], axis=1)])


def test_what_cannot_be_mended_safely_is_refused_in_words():
    ball = trimesh.creation.icosphere(2, 0.02)
    bowl = ball.faces[ball.triangles_center[:, 1] * ball.triangles_center[:, 0] < 1e-5]
    surface, _ = mended(np.asarray(ball.vertices), bowl, "bowl")
    with pytest.raises(InputError, match="bowl: the surface is open at the edge"):
        surface.require_volume("bowl")
    with pytest.raises(InputError, match="strip: the surface has one side only"):
        mended(*moebius_strip(24), "strip")
    with pytest.raises(InputError, match=r"sheet: tetrahedra of edge 0\.005, .* leave out .* a smaller size"):
        fill(surface_of(trimesh.creation.box((0.05, 0.05, 5e-4))), 5e-3, "sheet")


@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "glb"])
def test_a_part_of_any_kind_of_file_is_felt_as_a_soft_body(tmp_path, ending):
    """Of the whole part, clamped below, as of a block of the same size and nearly the same cells."""
    path = tmp_path / f"box.{ending}"
    BOX.export(path)
    scene = palpo.load("probe")
    block = {"kind": "block", "size": [0.06, 0.02, 0.05], "divisions": [12, 4, 10]}
    forces = []
    for geometry in (block, {"kind": "file", "path": str(path), "size": 5e-3}):
        changed = scene.with_({"bodies.block.geometry": geometry, "bodies.block.placement.position.1": 0.01})
        state = changed.build().start()
        forces.append(state.step(400, hand=np.array([0.0, 0.026, 0.0])).force[-1, 1])
    assert forces[0] > 0.1
    assert forces[1] == pytest.approx(forces[0], rel=0.1)


def test_a_gltf_file_names_no_other_file_and_announces_no_more_than_it_holds(tmp_path):
    for name, data in BOX.export(file_type="gltf").items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="in another file"):
        read_mended_surface(tmp_path / "model.gltf")
    for spoilt, words in (
        ({"accessors": [{"count": 10**12}]}, "more values than"),
        ({"nodes": [{"children": [1]}, {"children": [1]}]}, "stands in two places"),
        ([], "no table"),
    ):
        path = tmp_path / "spoilt.gltf"
        path.write_text(json.dumps(spoilt))
        with pytest.raises(InputError, match=words):
            read_mended_surface(path)


def test_palpo_mesh_tells_what_a_file_is_and_writes_it_filled(tmp_path, capsys):
    BOX.export(tmp_path / "box.stl")
    out = tmp_path / "box.vtu"
    assert main(["mesh", str(tmp_path / "box.stl"), "--size", "0.008", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "12 triangles around 0.06 x 0.02 x 0.05 m" in told
    assert read_solid_mesh(out).volume == pytest.approx(BOX.volume, rel=0.02)
    assert main(["mesh", str(tmp_path / "box.stl"), "--size", "nan"]) == 2
    assert "give a length in metres above 0" in capsys.readouterr().err
