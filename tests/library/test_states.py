"""States of a scene: what is copied, or saved and restored elsewhere, goes on bit for bit as the original."""

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import palpo
from palpo.physics.bodies import held_factor

SCENES = (
    "wire", "needle", "beams", "mixed-press", "mixed-cup", "hapco-soft", "hapco-many", "snap", "suction-cube",
    "suction-toy",
)  # fmt: skip
"""One of each way to compute: soft, clamped and jointed bodies at two rates, a tool without inertia, air,
one loop and two, segments, a held cup, and one on a spring, which is the last and which no hand moves."""
ODD = 0.137
"""Ticks are cut at times that are no multiples of a slow period [s]."""


@cache
def built(name):
    return palpo.load(name).build()


@pytest.fixture(params=SCENES)
def model(request):
    return built(request.param)


def ticks(model, seconds):
    return round(seconds / model.dt)


def pressed(model):
    """The deepest point of the scene's own path, and 1 mm aside [m]."""
    deepest = min(model.scene.spec.device.path, key=lambda row: row[2])
    return deepest[1:] + np.array([1e-3, 0.0, 0.0])


def everything(state):
    contacts = state.contacts
    return [
        *state.positions.values(), *state.tool, *state.hand, state.force, state.torque, contacts.points,
        contacts.forces,
    ]  # fmt: skip


def assert_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def lead_in(state, model):
    state.step(hand=pressed(model), ticks=ticks(model, 2 * ODD))


def follow(state, model):
    state.step(ticks(model, 2 * ODD))


def test_a_soft_body_that_no_tool_touches_is_where_it_is_at_that_tick():
    """Falling freely by backward Euler, g t (t + dt) / 2, its slow loop between two of its steps or not."""
    material = palpo.SoftMaterial(youngs_modulus=30e3, poisson_ratio=0.3, density=1000, alpha=0)
    block = palpo.Block(size=(0.04, 0.04, 0.04), divisions=(2, 2, 2))
    scene = palpo.Scene(
        title="a block that falls",
        bodies=[
            palpo.Soft(
                name="block",
                geometry=block,
                material=material,
                placement=palpo.Placement(position=(0.2, 0.5, 0)),
            ),
            palpo.Rigid(name="ball", rate="high", mass=0.03, geometry=palpo.Sphere(radius=0.008)),
        ],
        tool=palpo.Tool(body="ball", hold=palpo.HoldSpec(stiffness=500.0)),
    )
    model = scene.build()
    state, start, fallen = model.start(), model.rest["block"][:, 1].mean(), []
    for _ in range(90):
        state.step()
        fallen.append(start - state.positions["block"][:, 1].mean())
    state.close()
    t = model.dt * np.arange(1, 91)
    np.testing.assert_allclose(fallen, 0.5 * 9.81 * t * (t + model.dt), atol=1e-6)


def test_a_state_of_a_body_whose_compliance_was_just_computed_can_be_copied(monkeypatch, tmp_path):
    """The next build finds it in the cache: its arrays must lie in memory as the computed ones do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    state = palpo.load("hapco-16").build().start()
    copy = state.copy()
    for one in (state, copy):
        one.step(50)
    assert np.array_equal(state.force, copy.force)


@pytest.mark.parametrize("begin", [follow, lead_in])
def test_a_copy_goes_on_as_its_original(model, begin):
    state = model.start()
    begin(state, model)
    copy = state.copy()
    assert_equal(everything(state), everything(copy))
    hand = None if begin is follow else model.held
    n = ticks(model, ODD)
    one = state.step(n, hand)
    undisturbed = state.copy()
    other = copy.step(n, hand)
    assert_equal(one, other)
    assert_equal(everything(state), everything(copy))
    copy.step(n, hand)  # what a copy does later its original does not notice
    assert_equal(everything(state), everything(undisturbed))


def test_a_copy_taken_while_a_factor_is_being_made_goes_on_as_its_original(monkeypatch):
    """A large body's is made beside its steps: neither knows when the other's thread is done."""
    monkeypatch.setattr(held_factor, "LARGE", 0)
    monkeypatch.setattr(held_factor, "STEP_WORK", 10_000_000)
    model = palpo.load("suction-cube").build()
    state, met = model.start(), 0
    body = state.rig.built.suction.cups[0].body
    assert body._orders.delay > 2, "or the test shows nothing"
    for _ in range(50):
        state.step(ticks(model, 0.02), hand=pressed(model))
        if body._renewal is not None and body._renewal.steps > 1:
            copy, met = state.copy(), met + 1
            one, other = (each.step(ticks(model, 0.1), hand=pressed(model)) for each in (state, copy))
            assert_equal(one, other)
            assert_equal(everything(state), everything(copy))
            break
    assert met, "or the test shows nothing"


@pytest.mark.parametrize("name", SCENES[:-1])
def test_branches_of_a_state_part_where_their_hands_do(name):
    model = built(name)
    state = model.start()
    lead_in(state, model)
    branch, n = state.copy(), ticks(model, ODD)
    still, moved = state.step(n, state.hand.position), branch.step(n, model.held)
    assert not np.array_equal(still.hand, moved.hand)
    assert not np.array_equal(still.held, moved.held) or not np.array_equal(still.force, moved.force)


def digest(arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


ELSEWHERE = """
import sys
{first}
import palpo
from tests.library.test_states import digest, everything
for path in sys.argv[2:]:
    state = palpo.restore(path)
    done = state.step(int(sys.argv[1]))
    print(state.model.scene.name, digest([*done[:-1], *everything(state)]))
"""


@pytest.mark.parametrize(("first", "scenes"), [("", SCENES), ("import numpy", SCENES[:1])])
def test_saved_states_go_on_in_another_process_whenever_that_imports_numpy(tmp_path, first, scenes):
    expected, paths = [], []
    for name in scenes:
        state = built(name).start()
        follow(state, state.model)
        paths.append(state.save(tmp_path / f"{name}.palpo"))
        done = state.step(150)
        expected += [name, digest([*done[:-1], *everything(state)])]
    free = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    root = str(Path(__file__).parents[2])
    free["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    told = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(first=first), "150", *paths],
        env=free, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == expected


def test_a_state_is_restored_to_its_own_scene_only(tmp_path):
    scene = palpo.load("beams")
    path = scene.build().start().save(tmp_path / "state.palpo")
    with pytest.raises(palpo.Refusal, match="belongs to beams"):
        scene.with_({"friction.default": 0.123}).build().restore(path)
    path.write_bytes(b"no archive")
    with pytest.raises(palpo.Refusal, match="not a state"):
        palpo.restore(path)


@pytest.mark.parametrize("interface", ["paper", "extrapolated", "monolithic"])
def test_states_of_all_interfaces_can_be_copied(interface):
    model = palpo.load(
        "wire", {"bodies.cylinder.geometry.around": 9, "bodies.cylinder.geometry.along": 4}
    ).build(interface)
    state = model.start()
    state.step(45)
    copy = state.copy()
    assert_equal(state.step(33), copy.step(33))
    assert_equal(everything(state), everything(copy))
