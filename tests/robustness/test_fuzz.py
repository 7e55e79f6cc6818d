"""Whatever a file holds, the outcome is success or a sentence: seeded mutations of scenes and of input files.

Case k of a kind is the same at every count, so that a failure is repeated by its number alone. PALPO_FUZZ=20
makes twenty times as many cases, PALPO_FUZZ_SEED=7 makes others.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import meshio
import numpy as np
import pytest

import palpo
from palpo.app.build.robots import HeldRobot
from palpo.app.build.volume_mesh import fill_part
from palpo.app.cli.refusal import speaks
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import run
from palpo.config.load import list_scenes, load_scene, parse_scene
from palpo.config.schema.geometry import Robot
from palpo.config.words import ConfigError
from palpo.haptics.backends.replay import read_trajectory, spline_path
from palpo.haptics.device import make_virtual_device
from palpo.haptics.recording import read_recording
from palpo.physics.contact.io import read_problem, write_fclib
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.mesh.generate import block
from palpo.physics.mesh.io import read_solid_mesh, read_surface_mesh
from palpo.physics.mesh.labels import read_labels

DEPTH = float(os.environ.get("PALPO_FUZZ", "1"))
SEED = int(os.environ.get("PALPO_FUZZ_SEED", "20261122"))
TICKS = 20

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

NASTY = (
    "0", "-1", "1", "-0.0", "1e308", "-1e308", "1e-308", "5e-324", "nan", "inf", "1e6", "4.5e6", "true", '""',
    '"5 kPa"', '"1 mm"', '"-3 m"', '"no"', "[]", "{}", "[[]]", "[0, 0, 0]", "[[0, 0, 0, 0]]", "1000000000000",
    "99999999999999999999", "2026-01-01", '"\\u0000"', "[nan]", '{kind="x"}', "[1, [2]]",
)  # fmt: skip
"""Values that a key may be given, as TOML."""


def draws(kind: int, count: int, depth: float = DEPTH) -> Iterator[tuple[int, np.random.Generator]]:
    """(number, its generator) of each case."""
    for number in range(max(1, round(depth * count))):
        yield number, np.random.default_rng([SEED, kind, number])


@contextmanager
def told(*what: object) -> Iterator[None]:
    """Only errors with words for the user may come out; any other fails, with what led to it."""
    try:
        yield
    except Exception as error:
        if not speaks(error) or isinstance(error, OSError):
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


ROBOTS = {
    ".urdf": "<robot name='r'><link name='a'><inertial><mass value='1'/><origin xyz='0 0 0.1'/>"
    "<inertia ixx='0.1' iyy='0.1' izz='0.1' ixy='0' ixz='0' iyz='0'/></inertial><collision><geometry>"
    "<mesh filename='part.stl' scale='1 1 1'/></geometry></collision></link><link name='b'><collision>"
    "<geometry><cylinder radius='0.1' length='0.2'/></geometry></collision></link>"
    "<joint name='j' type='revolute'>"
    "<parent link='a'/><child link='b'/><origin xyz='0 0 0.2' rpy='0 1 0'/><axis xyz='0 1 0'/>"
    "<limit lower='-1' upper='1' effort='1' velocity='1'/></joint></robot>",
    ".xml": "<mujoco><compiler angle='radian'/><asset><mesh name='m' file='part.stl'/></asset><worldbody>"
    "<body name='a' pos='0 0 1'><inertial pos='0 0 0.1' mass='1' diaginertia='0.1 0.1 0.1'/>"
    "<geom type='mesh' mesh='m'/><body name='b' euler='0 1 0'><joint name='j' axis='0 1 0' range='-1 1'/>"
    "<geom type='capsule' size='0.1 0.2'/></body></body></worldbody></mujoco>",
}
"""A chain of two links in either format."""

# ---- scenes


def leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of a scene, tables and lists included."""
    if path:
        yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from leaves(value, (*path, str(i)))


def value_at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


SCENES = {name: load_scene(name)._origin for name in list_scenes()}
TABLES = {name: tomllib.loads(origin.text) for name, origin in SCENES.items()}


def override(name: str, rng: np.random.Generator) -> str:
    """One key of the scene, or one that is nearly such, given a nasty value."""
    paths = list(leaves(TABLES[name]))
    path = ".".join(paths[rng.integers(len(paths))])
    if rng.random() < 0.1:
        cut = int(rng.integers(len(path)))
        path = path[:cut] + "x." + path[cut + 1 :]
    return f"{path}={NASTY[rng.integers(len(NASTY))]}"


def edited(text: str, rng: np.random.Generator) -> str:
    """A text with a few of its lines, words or characters changed."""
    for _ in range(int(rng.integers(1, 4))):
        lines = text.splitlines() or [""]
        k = int(rng.integers(len(lines)))
        match int(rng.integers(6)):
            case 0:
                del lines[k]
            case 1:
                lines.insert(int(rng.integers(len(lines))), lines[k])
            case 2:
                value = NASTY[rng.integers(len(NASTY))]
                lines[k] = re.sub(r"-?[\d.]+(e-?\d+)?", lambda _, value=value: value, lines[k], count=1)
            case 3:
                words = lines[k].split() or [""]
                words[rng.integers(len(words))] = NASTY[rng.integers(len(NASTY))].strip('"')
                lines[k] = " ".join(words)
            case 4:
                cut = int(rng.integers(len(lines[k]) + 1))
                lines[k] = lines[k][:cut] + chr(int(rng.integers(1, 300))) + lines[k][cut + 1 :]
            case _:
                lines = lines[: k + 1]
        text = "\n".join(lines) + "\n"
    return text


def test_a_scene_is_parsed_or_refused_in_words():
    names = list(SCENES)
    parsed = 0
    for number, rng in draws(1, 700):
        name = names[rng.integers(len(names))]
        overrides = [override(name, rng) for _ in range(rng.integers(1, 3))] if rng.random() < 0.6 else []
        text = SCENES[name].text if overrides else edited(SCENES[name].text, rng)
        with told(number, name, overrides or text):
            try:
                parse_scene(text, SCENES[name].path, overrides)
                parsed += 1
            except ConfigError as error:
                assert re.match(rf"({name}\.toml|--set .*)[: ].+$", str(error)), (number, str(error))
    assert parsed


LIGHT = ("probe", "hapco-16")
COSTLY = re.compile(
    r"divisions|elements|edge|cells|around|along|max_|capacity|geometry|mesh|rates|hz|columns|orders"
)
"""Keys that make a scene large: what is drawn here must be built many times."""


def scaled(name: str, rng: np.random.Generator) -> str | None:
    """A number of the scene made up to a thousand times larger or smaller, turned round, or nothing."""
    paths = [p for p in leaves(TABLES[name]) if not COSTLY.search(".".join(p))]
    numbers = [p for p in paths if type(value_at(TABLES[name], p)) in (int, float)]
    path = numbers[rng.integers(len(numbers))]
    value = value_at(TABLES[name], path)
    made = rng.choice([0.0, -value, value * 10.0 ** rng.uniform(-3, 3), 1e6, 4.5e6])
    return f"{'.'.join(path)}={int(made) if isinstance(value, int) and rng.random() < 0.5 else float(made)!r}"


def test_a_scene_that_is_parsed_is_built_and_run_or_refused_in_words():
    ran, wanted = 0, max(1, round(6 * DEPTH))
    for number, rng in draws(2, 40):
        name = LIGHT[rng.integers(len(LIGHT))]
        overrides = tuple(scaled(name, rng) for _ in range(rng.integers(1, 4)))
        with told(number, name, overrides):
            options = Options(name, overrides, "mock", duration=1e-3 * TICKS, lock_step=True, baseline=False)
            result = run(options).result
            assert "error of the program" not in result["exit_reason"], (number, overrides, result)
            ran += 1
        if ran >= wanted:
            break
    assert ran == wanted


# ---- files


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes of a file, cut, overwritten or with a few of them changed."""
    out = bytearray(data)
    match int(rng.integers(4)):
        case 0:
            return bytes(out[: rng.integers(len(out))])
        case 1:
            first = int(rng.integers(len(out)))
            stop = min(len(out), first + int(rng.integers(1, 64)))
            out[first:stop] = bytes(stop - first)
        case 2:
            first = int(rng.integers(len(out)))
            out[first:first] = rng.bytes(int(rng.integers(1, 16)))
        case _:
            for k in rng.integers(len(out), size=rng.integers(1, 8)):
                out[k] = rng.integers(256)
    return bytes(out)


VALUES: tuple[Callable[[np.ndarray], Any], ...] = (
    lambda v: np.zeros_like(v),
    lambda v: -v,
    lambda v: v[:-1],
    lambda v: np.append(v, v),
    lambda v: np.full(v.shape, 7),
    lambda v: np.full(v.shape, np.nan),
    lambda v: np.full(v.shape, 2**31 - 1),
    lambda v: np.full(v.shape, -(2**31)),
    lambda v: v.astype(np.float32),
    lambda v: np.arange(v.size),
    lambda v: v.reshape(1, -1),
    lambda v: np.zeros(0),
    lambda v: np.array(3.0),
    lambda v: np.array(b"words"),
    lambda v: v[::-1],
)
"""What a dataset may be replaced with."""


WORDS: tuple[Any, ...] = (None, True, -1, 3, 1e300, float("nan"), "", "words", [], [[]], {}, {"x": 1})
"""What a word in a JSON object may be replaced with."""


def reworded(words: dict[str, Any], rng: np.random.Generator) -> str:
    """One of the words, at any depth, replaced or taken away; which, and by what."""
    name = list(words)[rng.integers(len(words))]
    if isinstance(words[name], dict) and words[name] and rng.random() < 0.8:
        return f"{name}.{reworded(words[name], rng)}"
    if rng.random() < 0.2:
        del words[name]
        return f"{name} gone"
    words[name] = WORDS[rng.integers(len(WORDS))]
    return f"{name} = {words[name]}"


def rewritten(path: Path, rng: np.random.Generator) -> str:
    """One dataset, group or word about the run replaced or taken away; which, and by what."""
    with h5py.File(path, "a") as file:
        if "meta" in file.attrs and rng.random() < 0.2:
            meta = json.loads(bytes(file.attrs["meta"]))
            how = reworded(whole := {"meta": meta}, rng)
            meta = whole.get("meta")
            file.attrs["meta"] = np.bytes_(json.dumps(meta).encode())
            return how
        names: list[str] = []
        file.visit(names.append)
        name = names[rng.integers(len(names))]
        held, change = file[name], int(rng.integers(len(VALUES) + 1))
        values = held[()] if isinstance(held, h5py.Dataset) else None
        del file[name]
        if values is None:
            return f"{name} gone"
        values = np.atleast_1d(values)
        if change < len(VALUES) and values.dtype.kind in "iuf" and values.size:
            file[name] = VALUES[change](values.astype(float) if rng.random() < 0.5 else values)
            return f"{name} by {change}"
        return f"{name} gone"


def spoilt(whole: Path, folder: Path, rng: np.random.Generator) -> tuple[Path, str]:
    """A copy of a file that is damaged somewhere, and how."""
    path = folder / f"spoilt{whole.suffix}"
    text = whole.suffix in (".txt", ".csv", ".obj", ".msh", ".vtk", ".vtu", ".stl", ".urdf", ".xml")
    if h5py.is_hdf5(whole) and rng.random() < 0.7:
        path.write_bytes(whole.read_bytes())
        return path, rewritten(path, rng)
    if text and rng.random() < 0.7:
        path.write_text(edited(whole.read_text("latin-1"), rng), "utf-8")
        return path, "edited"
    path.write_bytes(damaged(whole.read_bytes(), rng))
    return path, "bytes"


@pytest.fixture(scope="module", params=["lock-step", "threads", "two hands"])
def recording(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "run.h5"
    scene, threads = "two-hands" if request.param == "two hands" else "probe", request.param == "threads"
    run(Options(scene, (), "mock", duration=0.04, record=path, lock_step=not threads, baseline=False))
    return path


def test_a_recording_is_read_or_refused_in_words(recording, tmp_path):
    for number, rng in draws(3, 40):
        path, how = spoilt(recording, tmp_path, rng)
        with told(number, how):
            read_recording(path)
        with told(number, how):
            read_trajectory(path)


def test_a_recording_is_repeated_or_refused_in_words(recording, tmp_path):
    for number, rng in draws(4, 8):
        path, how = spoilt(recording, tmp_path, rng)
        with told(number, how):
            assert "error of the program" not in replay(path).result["exit_reason"], (number, how)


def test_a_state_is_restored_or_refused_in_words(tmp_path):
    """In a process of its own, whose end is a failure whatever it is, and in the memory of a run."""
    state = palpo.load("probe").build().start()
    state.step(40)
    path = state.save(tmp_path / "state.palpo")
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.robustness.mutated_states"]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    count = str(max(1, round(500 * DEPTH)))
    done = subprocess.run([*program, path, count], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused, before, after = map(int, done.stdout.split())
    assert refused > 0.9 * int(count), "or the test shows nothing"
    assert after <= 1.5 * before


@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_a_trajectory_is_followed_or_refused_in_words(tmp_path, suffix):
    whole = tmp_path / f"whole{suffix}"
    rows = [f"{0.01 * k} {0.001 * k} 0.0 0.05 1 0 0 0" for k in range(20)]
    if suffix == ".csv":
        rows = ["t,x,y,z,qw,qx,qy,qz", *(row.replace(" ", ",") for row in rows)]
    whole.write_text("\n".join(rows))
    for number, rng in draws(5, 100):
        path, how = spoilt(whole, tmp_path, rng)
        with told(number, how, path.read_bytes()):
            raw = read_trajectory(path)
            way = spline_path(raw.times, raw.positions, raw.quaternions)
            make_virtual_device(*way.rows(0, TICKS))


@pytest.mark.parametrize("suffix", [".msh", ".vtk", ".vtu", ".obj", ".stl"])
def test_a_mesh_is_read_or_refused_in_words(tmp_path, suffix):
    tets = block((0.1, 0.1, 0.1), (2, 2, 2))
    surface = tets.surface("block").compact()
    solid = suffix not in (".obj", ".stl")
    points, cells = (
        (tets.nodes, {"tetra": tets.tets}) if solid else (surface.vertices, {"triangle": surface.triangles})
    )
    whole, kind = tmp_path / f"whole{suffix}", {".msh": "gmsh22", ".vtk": "vtk", ".vtu": "vtu"}.get(suffix)
    written = {} if suffix == ".obj" else {"binary": False}
    meshio.write(whole, meshio.Mesh(points, cells), kind, **written)
    for number, rng in draws(6, 60):
        path, how = spoilt(whole, tmp_path, rng)
        for read in (read_solid_mesh, read_surface_mesh):
            with told(number, suffix, how):
                read(path)


@pytest.mark.parametrize("suffix", [".nrrd", ".nii"])
def test_a_segmented_volume_is_read_or_refused_in_words(tmp_path, suffix):
    import nibabel  # not there with the oldest Numba, where others need this file's mutations alone
    import nrrd

    values, whole = np.zeros((6, 5, 4), np.int16), tmp_path / f"whole{suffix}"
    values[1:5, 1:4, 1:3] = 3
    if suffix == ".nrrd":
        nrrd.write(str(whole), values, {"encoding": "raw", "space": "RAS", "space directions": np.eye(3)})
    else:
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), whole)
    for number, rng in draws(9, 300):
        path, how = spoilt(whole, tmp_path, rng)
        with told(number, suffix, how):
            fill_part(read_labels(path).part(3), 1e-3)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_a_robot_is_read_or_refused_in_words(tmp_path, suffix):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[urdf]'")
    whole, part = tmp_path / f"whole{suffix}", tmp_path / "part.stl"
    whole.write_text(ROBOTS[suffix].replace("><", ">\n<"))
    cube = block((0.1, 0.1, 0.1), (1, 1, 1)).surface("block").compact()
    meshio.write(part, meshio.Mesh(cube.vertices, {"triangle": cube.triangles}), binary=True)
    mesh = part.read_bytes()
    for number, rng in draws(10, 150):
        path, how = spoilt(whole, tmp_path, rng)
        part.write_bytes(damaged(mesh, rng) if rng.random() < 0.2 else mesh)
        with told(number, suffix, how):
            robot = HeldRobot(Robot(path=str(path)))
            robot.masses(), robot.surface()


def problem_files(folder: Path) -> list[Path]:
    """A local, a mixed and a global FCLIB problem, and an archive."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(12, 12))
    held = ContactProblem(half @ half.T, rng.normal(size=12), np.full(4, 0.3))
    local, mixed, whole, archive = (folder / name for name in ("l.h5", "m.h5", "g.h5", "a.npz"))
    for path in (local, mixed):
        write_fclib(path, held, "whole")
    np.savez(archive, W=held.w, q=held.b, mu=held.mu)

    def put(file: h5py.File, key: str, matrix: np.ndarray) -> None:
        i, p = np.nonzero(matrix)
        sizes = {"m": matrix.shape[0], "n": matrix.shape[1], "nz": len(i), "nzmax": len(i)}
        for name, value in sizes.items():
            file[f"{key}/{name}"] = np.array([value], np.int32)
        file[f"{key}/i"], file[f"{key}/p"], file[f"{key}/x"] = i, p, matrix[i, p]

    with h5py.File(mixed, "a") as file:
        put(file, "fclib_local/V", rng.normal(size=(12, 2)))
        put(file, "fclib_local/R", -np.eye(2))
        file["fclib_local/vectors/s"] = np.ones(2)
    with h5py.File(whole, "w") as file:
        put(file, "fclib_global/M", np.eye(6))
        put(file, "fclib_global/H", rng.normal(size=(6, 6)))
        put(file, "fclib_global/G", rng.normal(size=(6, 1)))
        file["fclib_global/spacedim"] = np.array([3], np.int32)
        for name, size in {"f": 6, "w": 6, "b": 1, "mu": 2}.items():
            file[f"fclib_global/vectors/{name}"] = rng.random(size)
    return [local, mixed, whole, archive]


def test_a_contact_problem_is_solved_or_refused_in_words(tmp_path):
    files, solver = problem_files(tmp_path), find_solver("gauss-seidel")
    for whole in files:
        assert solver.solve(read_problem(whole), Stop(1e-8, 10)).r.size
    for number, rng in draws(7, 400):
        path, how = spoilt(files[rng.integers(len(files))], tmp_path, rng)
        with told(number, path.suffix, how):
            result = solver.solve(read_problem(path), Stop(1e-8, 10))
            assert np.isfinite(result.r).all(), (number, how)
