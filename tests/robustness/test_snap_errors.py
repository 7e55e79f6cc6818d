"""A snap scene that cannot be used is refused in one sentence: file, key, value, what is right."""

from importlib import import_module

import pytest

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.systems.snap.connector import connector_of
from palpo.app.systems.system import check_kind
from palpo.config.load import load_scene, parse_scene
from palpo.config.words import ConfigError, Refusal
from palpo.haptics.errors import HapticsError
from palpo.physics.numerics.errors import InputError
from tests.robustness.refusals import refused

SCENE = """
system = "snap"
title = "A connector"

[connector]
kind = "two-prong"
"""

REFUSED = [
    ("connector.kind=usb", 'connector.kind = "usb": choose "two-prong", "lan", "cap", "buckle" or "files"'),
    ("connector.hooks=1 mm", 'connector.hooks = "1 mm": unknown key; did you mean "hook"?'),
    ("connector.hook=1 N", 'connector.hook = "1 N" is a force where a length is needed'),
    ("connector.mesh=finer", 'connector.mesh = "finer": did you mean "fine"?'),
    ("connector={kind='files'}", "connector.prongs: the key is missing"),
    ("damping.beta=-1e-5", "damping.beta = -1e-05 is too small"),
    ("gravity=[0, -9.81, 0]", "gravity = [0, -9.81, 0]: weight plays no part in a snap scene"),
    ("model.segments=0", "model.segments = 0 is too small; it must be at least 1"),
    ("model.orders=[6, 25, 3]", "model.orders = [6, 25, 3]: give one for each of the 2 segments"),
    ("model={orders=[6, 25], error=0.1}", "model.error = 0.1: orders and error exclude each other"),
    (
        "model={coupling_stiffness=0, coupling_damping=0}",
        "model.coupling_stiffness = 0: nothing joins the segments",
    ),
    ("contact.clusters=33", "contact.clusters = 33 is too large; it must be at most 32"),
    ("contact.restitution=1.5", "contact.restitution = 1.5 is too large"),
    ("contact.tolerance=1", "contact.tolerance = 1: unknown key"),
    ("friction.pairs=[]", "friction.pairs = []: unknown key"),
    ("distance={kind='voxels'}", 'distance.kind = "voxels": choose "exact", "grid" or "learned"'),
    ("distance={kind='exact',weights='a.npz'}", 'distance.weights = "a.npz": unknown key'),
    ("distance={kind='learned',weights='a.npz'}", 'distance.weights = "a.npz" is not there'),
    ("distance={kind='learned',weights='a.pt'}", "has an ending that is not read here; use .npz"),
    ("distance={kind='grid',spacing=0}", "distance.spacing = 0 is too small"),
    ("admittance.stiffness=0", "admittance.stiffness = 0 is too small; it must be above 0"),
    ("admittance.rail=0.5", "admittance.rail = 0.5 is too small; it must be at least 1"),
    ("misalignment.rotation=[0, 0, 0, 1]", "has a null axis"),
    ("integration.substeps=21", "integration.substeps = 21 is too large"),
    (
        "solver.name=newton",
        'solver.name = "newton": choose "anderson", "maximal-dissipation" or "gauss-seidel"',
    ),
    ("zoom={}", 'it belongs to a scene of hapco, and system = "snap" makes this one of snap'),
]


@pytest.mark.parametrize(("override", "said"), REFUSED, ids=[override for override, _ in REFUSED])
def test_a_refused_key_is_told_with_its_file_path_and_value(override, said):
    assert said in refused(SCENE, "click.toml", override)


def test_a_pair_from_files_needs_a_material_a_stiffness_and_a_contact_surface(tmp_path):
    for name in ("prong.vtu", "plug.obj"):
        (tmp_path / name).touch()
    files = (
        "connector={kind='files',stroke=0.01,plug={kind='file',path='plug.obj'},prongs=[{kind='file',"
        "path='prong.vtu',clamped=[{nodes=[0]}],contact=[{nodes=[1]}]}]}"
    )
    path = tmp_path / "pair.toml"
    with pytest.raises(ConfigError, match=r"material: the key is missing \(files have no material"):
        parse_scene(SCENE, path, [files])
    with pytest.raises(ConfigError, match=r"admittance\.stiffness: the key is missing"):
        parse_scene(SCENE, path, [files, "material=silicone"])
    ends = files.replace("{nodes=[1]}", "{end='last'}")
    with pytest.raises(ConfigError, match="only a beam has ends"):
        parse_scene(SCENE, path, [ends])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("connector.hook=1 m", "two-prong: hook is 1 m, expected"),
        ("connector.ramp=5 deg", "two-prong: ramp is 0.0872665 rad, expected"),
    ],
)
def test_dimensions_that_make_no_connector_are_refused_by_its_generator(override, said):
    with pytest.raises(InputError, match=said):
        connector_of(load_scene("snap", [override]))


def test_an_interface_of_the_multi_rate_system_is_refused():
    with pytest.raises(HapticsError, match=r"--interface krylov: .* leave it out of a snap scene"):
        check_kind(load_scene("snap"), "krylov", True)


def without_torch(name, *others):
    if name == "torch":
        raise ModuleNotFoundError("No module named 'torch'")
    return import_module(name, *others)


def test_a_plug_without_a_network_and_without_pytorch_is_told_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("palpo.app.cli.train_distance.importlib.import_module", without_torch)
    session = Session(
        Options(
            "snap",
            ("connector.hook=3.2 mm", "connector.mesh=coarse", "distance.kind=learned"),
            device="mock",
            lock_step=True,
        )
    )
    with pytest.raises(Refusal, match=r"learning a distance needs PyTorch; install palpo\[learning\]"):
        session.prepare()
