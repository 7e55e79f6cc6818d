"""A recorded run for other programs: a VTK series, USD or glTF with its motion, metres and y up in all."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import check_file, check_folder
from palpo.app.report.album import Film
from palpo.config.words import Refusal
from palpo.physics.exchange.snapshot import Drawable, SceneGeometry, SceneState
from palpo.physics.mesh.io import meshio_of
from palpo.render.tubes import Tube

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

FPS = 25.0
"""Moments a second of the scene, unless told."""
RIGID = 1e-5
"""Share of a shape's size by which it may change and still be written as one that only moves in glTF."""
INSTALL = "pip install 'palpo[viewer]'"


class Moving(NamedTuple):
    """A shape of the scene as triangles, at all moments."""

    name: str
    colour: tuple[float, float, float]
    triangles: Indices
    places: list[Floats]
    """Vertices at each moment (n, 3) [m]; one entry for a shape that never moves."""


def export(
    recording: Path,
    vtk: Path | None = None,
    usd: Path | None = None,
    gltf: Path | None = None,
    fps: float = FPS,
    progress: Progress | None = None,
) -> list[Path]:
    """Repeat a recorded run and write what it looked like; the paths of what was written.

    vtk: a folder for a series of .vtu files. usd: a file, .usda, .usdc or .usd. gltf: a file, .glb or .gltf.
    fps: moments a second of the scene. Raises Refusal for what cannot be written, HapticsError for a
    recording that cannot be repeated.
    """
    if vtk is None and usd is None and gltf is None:
        raise Refusal("export: say what to write: --vtk DIR, --usd FILE or --gltf FILE")
    if not 1.0 <= fps <= 1000.0:
        raise Refusal(f"--fps {fps:g}: give 1 to 1000 moments a second")
    if vtk is not None:
        check_folder(vtk, "--vtk")
    for option, file, endings in (
        ("--usd", usd, (".usda", ".usdc", ".usd")), ("--gltf", gltf, (".glb", ".gltf")),
    ):  # fmt: skip
        if file is not None and file.suffix.lower() not in endings:
            raise Refusal(f"{option} {file}: name a file that ends in {' or '.join(endings)}")
        if file is not None:
            check_file(file, option)
    needs = {"pxr": ("--usd", usd), "pygltflib": ("--gltf", gltf)}
    for module, (option, file) in needs.items():
        if file is not None:
            _needed(module, option)
    progress = progress or Progress()
    from palpo.app.runtime.replay import replay

    done = replay(recording, progress=progress, film=Film(1.0 / fps, sys.maxsize))
    states = [state for state in done.film if np.isfinite(state.vertices).all()]
    if not states:
        raise Refusal(f"{recording}: too short to be exported at {fps:g} moments a second")
    shapes, written = moving_shapes(done.geometry, states), []
    with progress.stage(f"writing {len(states)} moments"):
        if vtk is not None:
            written.append(write_vtk(vtk, done.geometry, states))
        times = [state.time for state in states]
        if usd is not None:
            written.append(write_usd(usd, shapes, times, fps))
        if gltf is not None:
            written.append(write_gltf(gltf, shapes, times))
    return written


def moving_shapes(geometry: SceneGeometry, states: Sequence[SceneState]) -> list[Moving]:
    """The shapes as triangles of the vertices that they use; beams as tubes, planes as two triangles."""
    found = []
    for shape in geometry.drawables:
        shown = states[:1] if shape.static else states
        places = [state.vertices[shape.span] for state in shown]
        if shape.kind == "tube":
            tube = Tube(shape.n_vertices, shape.radius)
            triangles = tube.triangles
            places = [tube.drawn(nodes).points for nodes in places]
        elif shape.kind == "plane":
            triangles = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
        else:
            used, numbers = np.unique(shape.triangles, return_inverse=True)
            triangles = numbers.reshape(-1, 3).astype(np.int32)
            places = [place[used] for place in places]
        if len(triangles):
            found.append(Moving(shape.name, shape.colour, triangles, places))
    return found


def write_vtk(folder: Path, geometry: SceneGeometry, states: Sequence[SceneState]) -> Path:
    """A .vtu file of each body and one of the contacts, where there are some, at each moment, and a .series
    file of each for ParaView; the folder."""
    series: dict[str, list[dict[str, Any]]] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for k, state in enumerate(states):
        for shape in geometry.drawables:
            if not (shape.static and k):
                file = folder / f"{_file_name(shape.name)}_{k:05d}.vtu"
                _vtk_shape(shape, geometry, state).write(file)
                series.setdefault(shape.name, []).append({"name": file.name, "time": state.time})
        if len(state.contact_point):
            file = folder / f"contacts_{k:05d}.vtu"
            _vtk_contacts(state).write(file)
            series.setdefault("contacts", []).append({"name": file.name, "time": state.time})
    for name, files in series.items():
        told = {"file-series-version": "1.0", "files": files}
        (folder / f"{_file_name(name)}.vtu.series").write_text(json.dumps(told), "utf-8")
    return folder


def _vtk_contacts(state: SceneState) -> Any:
    """Points with their forces on body 1 [N]."""
    import meshio

    places = np.arange(len(state.contact_point))[:, None]
    data = {"force": np.array(state.contact_force)}
    return meshio.Mesh(np.array(state.contact_point), [("vertex", places)], point_data=data)


def _vtk_shape(shape: Drawable, geometry: SceneGeometry, state: SceneState) -> Any:
    """A shape as a meshio mesh: its own vertices, how far they have come, and what it is coloured by."""
    points = state.vertices[shape.span]
    data = {"displacement": points - geometry.rest[shape.span]}
    if len(state.scalar):
        data["scalar"] = state.scalar[shape.span]
    if shape.kind == "tube":
        import meshio

        k = np.arange(shape.n_vertices - 1)
        return meshio.Mesh(points, [("line", np.stack([k, k + 1], axis=1))], point_data=data)
    plane = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
    return meshio_of(None, points, plane if shape.kind == "plane" else shape.triangles, data)


def write_usd(path: Path, shapes: Sequence[Moving], times: Sequence[float], fps: float) -> Path:
    """A stage with a mesh for each shape, whose points have a sample at each moment; its path."""
    from pxr import Gf, Sdf, Usd, UsdGeom, Vt

    path.unlink(missing_ok=True)
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(fps)
    stage.SetStartTimeCode(fps * times[0])
    stage.SetEndTimeCode(fps * times[-1])
    root = UsdGeom.Xform.Define(stage, "/scene")
    stage.SetDefaultPrim(root.GetPrim())
    for number, shape in enumerate(shapes):
        mesh = UsdGeom.Mesh.Define(stage, Sdf.Path(f"/scene/{_prim_name(shape.name, number)}"))
        mesh.GetPrim().SetDisplayName(shape.name)
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(shape.triangles)))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(shape.triangles.ravel()))
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateDisplayColorAttr([Gf.Vec3f(*shape.colour)])
        points, extent = mesh.CreatePointsAttr(), mesh.CreateExtentAttr()
        moves = len(shape.places) > 1
        for time, place in zip(times if moves else [None], shape.places, strict=True):
            at = Usd.TimeCode.Default() if time is None else Usd.TimeCode(fps * time)
            values = np.ascontiguousarray(place, np.float32)
            points.Set(Vt.Vec3fArray.FromNumpy(values), at)
            extent.Set(Vt.Vec3fArray.FromNumpy(np.stack([values.min(axis=0), values.max(axis=0)])), at)
    stage.GetRootLayer().Save()
    return path


def write_gltf(path: Path, shapes: Sequence[Moving], times: Sequence[float]) -> Path:
    """A scene whose one animation moves rigid shapes by their nodes, others by a target for each moment."""
    lib = _needed("pygltflib", "--gltf")
    out, blob = lib.GLTF2(), bytearray()
    out.asset = lib.Asset(version="2.0", generator="palpo")
    animation = lib.Animation(name="run")

    def put(values: NDArray[Any], kind: str, target: int | None = None, bounds: bool = False) -> int:
        """An accessor of these numbers; its index."""
        values = np.ascontiguousarray(values)
        blob.extend(b"\0" * (-len(blob) % 4))
        view = lib.BufferView(buffer=0, byteOffset=len(blob), byteLength=values.nbytes, target=target)
        blob.extend(values.tobytes())
        out.bufferViews.append(view)
        index = lib.UNSIGNED_INT if values.dtype == np.uint32 else lib.FLOAT
        told = lib.Accessor(
            bufferView=len(out.bufferViews) - 1, componentType=index, count=len(values), type=kind
        )
        if bounds:
            told.min, told.max = (
                [float(v) for v in np.atleast_1d(f(values, axis=0))] for f in (np.min, np.max)
            )
        out.accessors.append(told)
        return len(out.accessors) - 1

    when = put(np.array(times, np.float32), lib.SCALAR, bounds=True)

    def animate(node: int, part: str, values: NDArray[Any], kind: str) -> None:
        animation.samplers.append(lib.AnimationSampler(input=when, output=put(values, kind)))
        target = lib.AnimationChannelTarget(node=node, path=part)
        animation.channels.append(lib.AnimationChannel(sampler=len(animation.samplers) - 1, target=target))

    for shape in shapes:
        first, moves = shape.places[0], rigid_motion(shape.places)
        base = first if moves is None else first - first.mean(axis=0)
        colour = [*(float(c) ** 2.2 for c in shape.colour), 1.0]  # glTF's factors are linear
        look = lib.PbrMetallicRoughness(baseColorFactor=colour, metallicFactor=0.0, roughnessFactor=0.7)
        out.materials.append(lib.Material(name=shape.name, pbrMetallicRoughness=look, doubleSided=True))
        corners = lib.Attributes(POSITION=put(base.astype(np.float32), lib.VEC3, lib.ARRAY_BUFFER, True))
        index = put(shape.triangles.ravel().astype(np.uint32), lib.SCALAR, lib.ELEMENT_ARRAY_BUFFER)
        part = lib.Primitive(attributes=corners, indices=index, material=len(out.materials) - 1)
        mesh, node = lib.Mesh(name=shape.name, primitives=[part]), lib.Node(name=shape.name)
        node.mesh, number = len(out.meshes), len(out.nodes)
        if moves is not None:
            node.translation = moves[0][0].tolist()
            if len(shape.places) > 1:
                animate(number, "translation", moves[0].astype(np.float32), lib.VEC3)
                animate(number, "rotation", moves[1].astype(np.float32), lib.VEC4)
        else:
            later = [(place - base).astype(np.float32) for place in shape.places[1:]]
            part.targets = [{"POSITION": put(one, lib.VEC3, lib.ARRAY_BUFFER, True)} for one in later]
            mesh.weights = [0.0] * len(later)
            weights = np.eye(len(shape.places), dtype=np.float32)[:, 1:]
            animate(number, "weights", weights.reshape(-1), lib.SCALAR)
        out.meshes.append(mesh)
        out.nodes.append(node)
    out.scenes, out.scene = [lib.Scene(nodes=list(range(len(out.nodes))))], 0
    if animation.channels:
        out.animations.append(animation)
    out.buffers.append(lib.Buffer(byteLength=len(blob)))
    out.set_binary_blob(bytes(blob))
    if path.suffix.lower() == ".gltf":
        out.convert_buffers(lib.BufferFormat.DATAURI)
    out.save(str(path))
    return path


def rigid_motion(places: Sequence[Floats]) -> tuple[Floats, Floats] | None:
    """Middles (k, 3) [m] and orientations (k, 4), x y z w, of vertices that only move; None where they yield.

    By least squares: Kabsch, A solution for the best rotation to relate two sets of vectors (1976).
    """
    first = places[0] - places[0].mean(axis=0)
    size = float(np.abs(first).max())
    middles, turns = [], []
    for place in places:
        middle = place.mean(axis=0)
        u, _, vh = np.linalg.svd((place - middle).T @ first)
        turn = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vh))]) @ vh
        if np.abs(first @ turn.T - (place - middle)).max() > RIGID * size:
            return None
        middles.append(middle)
        turns.append(Rotation.from_matrix(turn).as_quat())
    for before, after in pairwise(turns):
        after *= np.sign(before @ after) or 1.0  # the short way round
    return np.array(middles), np.array(turns)


def _needed(module: str, option: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Refusal(f"{option} needs {module}: {INSTALL}") from None


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)


def _prim_name(name: str, number: int) -> str:
    """Letters, digits and underscores, and of no other shape."""
    return f"{''.join(c if c.isascii() and c.isalnum() else '_' for c in name)}_{number}"
