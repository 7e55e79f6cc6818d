"""A recorded run in other programs' files is where it was: VTK, USD, glTF, each read by its own library."""

import json

import meshio
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import palpo
from palpo.app.cli.main import main
from palpo.app.report.album import Film
from palpo.app.report.export import moving_shapes, rigid_motion
from palpo.app.runtime.replay import replay

FPS = 20.0


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The path of a recording, its shapes and the times of its moments."""
    path = tmp_path_factory.mktemp("run") / "run.h5"
    palpo.run("probe", lock_step=True, duration=1.3, record=path)
    done = replay(path, film=Film(1.0 / FPS, 1000))
    return path, done, moving_shapes(done.geometry, done.film), [state.time for state in done.film]


def test_vtk_has_each_body_at_each_moment(run, tmp_path):
    path, done, _, times = run
    assert palpo.export(path, vtk=tmp_path / "vtk", fps=FPS) == [tmp_path / "vtk"]
    series = json.loads((tmp_path / "vtk" / "block.vtu.series").read_text())["files"]
    assert [one["time"] for one in series] == times
    block = next(d for d in done.geometry.drawables if d.name == "block")
    last = meshio.read(tmp_path / "vtk" / series[-1]["name"])
    np.testing.assert_array_equal(last.points, done.film[-1].vertices[block.span])
    moved = done.film[-1].vertices[block.span] - done.geometry.rest[block.span]
    np.testing.assert_array_equal(last.point_data["displacement"], moved)
    touched = json.loads((tmp_path / "vtk" / "contacts.vtu.series").read_text())["files"]
    pressed = [state for state in done.film if len(state.contact_force)]
    assert [one["time"] for one in touched] == [state.time for state in pressed]
    force = meshio.read(tmp_path / "vtk" / touched[-1]["name"]).point_data["force"]
    np.testing.assert_array_equal(force, pressed[-1].contact_force)


def test_usd_has_points_at_each_moment_in_metres_with_y_up(run, tmp_path):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    path, _, shapes, times = run
    assert main(["export", str(path), "--usd", str(tmp_path / "run.usdc"), "--fps", "20"]) == 0
    stage = Usd.Stage.Open(str(tmp_path / "run.usdc"))
    assert UsdGeom.GetStageUpAxis(stage) == "Y" and UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    meshes = [UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)]
    assert len(meshes) == len(shapes)
    for mesh, shape in zip(meshes, shapes, strict=True):
        np.testing.assert_array_equal(
            np.reshape(mesh.GetFaceVertexIndicesAttr().Get(), (-1, 3)), shape.triangles
        )
        points = np.array(mesh.GetPointsAttr().Get(FPS * times[-1]))
        np.testing.assert_allclose(points, shape.places[-1], atol=1e-7)  # of single precision


def test_gltf_moves_by_its_own_rules_to_where_the_run_was(run, tmp_path):
    """node matrix times (POSITION + sum of weights times targets), as a viewer does it."""
    lib = pytest.importorskip("pygltflib", reason="pygltflib is not installed")
    path, _, shapes, times = run
    palpo.export(path, gltf=tmp_path / "run.glb", fps=FPS)
    file = lib.GLTF2().load(str(tmp_path / "run.glb"))

    def read(index):
        accessor = file.accessors[index]
        view = file.bufferViews[accessor.bufferView]
        kind = np.uint32 if accessor.componentType == lib.UNSIGNED_INT else np.float32
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[accessor.type]
        raw = file.binary_blob()[view.byteOffset : view.byteOffset + view.byteLength]
        return np.frombuffer(raw, kind).reshape(-1, width).astype(float)

    (animation,) = file.animations
    k = len(times) // 2
    kinds = set()
    for number, (node, shape) in enumerate(zip(file.nodes, shapes, strict=True)):
        (part,) = file.meshes[node.mesh].primitives
        place, turn, middle = (
            read(part.attributes.POSITION),
            Rotation.identity(),
            np.array(node.translation or 0),
        )
        for channel in animation.channels:
            if channel.target.node != number:
                continue
            kinds.add(channel.target.path)
            sampler = animation.samplers[channel.sampler]
            np.testing.assert_allclose(read(sampler.input)[:, 0], times, atol=1e-6)
            values = read(sampler.output)
            if channel.target.path == "weights":
                weights = values.reshape(len(times), -1)[k]
                place = place + sum(
                    w * read(t["POSITION"]) for w, t in zip(weights, part.targets, strict=True)
                )
            elif channel.target.path == "rotation":
                turn = Rotation.from_quat(values[k])
            else:
                middle = values[k]
        there = shape.places[k] if len(shape.places) > 1 else shape.places[0]
        np.testing.assert_allclose(turn.apply(place) + middle, there, atol=1e-6)
    assert kinds == {"weights", "rotation", "translation"}  # the block yields, the ball moves


def test_a_shape_that_only_moves_is_told_from_one_that_yields():
    rng = np.random.default_rng(1)
    first = rng.normal(size=(30, 3))
    turn = Rotation.from_rotvec([2.0, -1.0, 0.5])
    there = turn.apply(first) + np.array([1.0, 2.0, 3.0])
    middles, turns = rigid_motion([first, there])
    moved = Rotation.from_quat(turns[1]).apply(first - first.mean(axis=0)) + middles[1]
    np.testing.assert_allclose(moved, there, atol=1e-12)
    assert rigid_motion([first, 1.001 * first]) is None
    assert rigid_motion([first, -first]) is None  # a mirror image is no motion


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([], "say what to write"),
        (["--usd", "run.stl"], "run.stl: name a file that ends in .usda"),
        (["--gltf", "run.obj"], "ends in .glb or .gltf"),
        (["--vtk", "x", "--fps", "0"], "--fps 0: give 1 to"),
    ],
)
def test_what_cannot_be_written_is_refused(run, told, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(run[0]), *told]) == 2
    assert words in capsys.readouterr().err
