"""Runs of suction scenes: their outcomes, what the hand feels, what may be changed, and that all repeats."""

from dataclasses import replace

import numpy as np
import pytest

import palpo
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.live import changed, live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.config.load import list_scenes, load_scene
from palpo.config.words import ConfigError
from palpo.haptics.drivers import servo_run
from palpo.haptics.flags import STOPPING
from palpo.haptics.recording import read_recording
from palpo.physics.exchange.snapshot import PRESSURE
from palpo.physics.systems.suction.drives import FASTEST
from tests.scenes.runs import force

# The coarsest cup shows the same outcomes as the reference one, of other sizes.
COARSE = ("bodies.cup.geometry.resolution=76",)
CUBE = Options("suction-cube", COARSE, device="mock", lock_step=True, baseline=False)
# Pressed and lifted within a second.
QUICK = (
    *COARSE,
    "safety.fade_in=0.05",
    "device.path=[[0, 0, 0.0254, 0], [0.4, 0, 0.0164, 0], [0.5, 0, 0.0164, 0], [0.9, 0, 0.0354, 0]]",
)


@pytest.fixture(scope="module")
def lifted(tmp_path_factory):
    """(outcome, columns, path, vertices of the cup) of the cube pressed and lifted by hand."""
    path = tmp_path_factory.mktemp("cube") / "run.h5"
    session = Session(replace(CUBE, overrides=QUICK, record=path))
    session.prepare()
    done = session.run()
    return done, read_recording(path).columns, path, session.visual.geometry.drawables[0].n_vertices


def test_every_suction_scene_is_shipped_with_a_path_as_long_as_its_motion():
    names = [name for name in list_scenes() if name.startswith("suction-")]
    assert len(names) >= 14
    for name in names:
        scene = load_scene(name)
        ends = [cup.drive.path[-1][0] for cup in scene.cups if cup.drive and cup.drive.kind == "scripted"]
        assert scene.device.path[-1][0] >= max(ends, default=0.5)


def test_a_cup_on_a_plane_sticks_and_then_releases():
    """Table 4.1 of the thesis, first row."""
    done = run(Options("suction-plane", COARSE, device="mock", lock_step=True, baseline=False))
    found = done.result["system"]
    assert done.status == FINISHED
    assert 1.0 < found["gripped_at_s"] < found["released_at_s"] < 5.5
    # it pulls ten times the cup's weight, by suction
    assert found["hold_max_N"] > 10 * 0.03 * 9.81
    assert found["lowest_gauge_pressure_kPa"] < -2.0 and found["cavities_max"] == 1


def test_the_hand_feels_the_weight_of_what_it_lifts(lifted):
    done, c, *_ = lifted
    assert done.status == FINISHED and done.result["system"]["lifted_at_end"]
    running = (c["flags"].astype(int) & STOPPING) == 0
    held = force(c)[running][-20:].mean(axis=0)
    # the coupling's springs settle within milliseconds; the hand moves on by some more
    np.testing.assert_allclose(held, [0.0, -0.13 * 9.81, 0.0], atol=0.1)
    assert np.linalg.norm(force(c, "sent"), axis=1).max() <= 3.3
    assert force(c)[running][:, 1].max() > 0.3  # pressed


def test_the_picture_shows_the_cavity_in_the_colour_of_its_pressure(lifted):
    state = lifted[0].states[-1][1]
    assert state.scalar_kind == PRESSURE
    seen = state.patch_scalar
    # the weight of cube and nothing else hangs on the cavity, at most on all that the rim encloses
    assert len(seen) > 10 and seen.max() < -1e-3 * 0.1 * 9.81 / (np.pi * 0.02**2)
    assert state.scalar_range[0] <= seen.min()


def test_the_picture_of_a_cavity_ends_with_it_and_not_at_the_cells_of_the_cube(lifted):
    state = lifted[0].states[-1][1]
    corners = state.patch.reshape(-1, 3)
    cup = state.vertices[: lifted[3]]
    reach = np.linalg.norm(corners[:, [0, 2]], axis=1)
    assert reach.max() <= np.linalg.norm(cup[:, [0, 2]], axis=1).max()
    assert corners[:, 1].min() >= cup[:, 1].min() - 5e-4  # the sealing distance below the rim


def test_a_hand_leads_all_cups_of_a_gripper_beside_their_path_and_no_quicker_than_they_may():
    """One frame: what the device moves is added to the path of each cup, at `FASTEST` at most."""
    coarse = tuple(f"bodies.{i}.geometry.resolution=76" for i in range(4))
    still = "bodies.left.drive.path=[[0, 0, 0, 0], [1.0, 0, 0, 0]]"
    places = {}
    for way in (0.0, 0.012):
        led = f"device.path=[[0, 0, 0, 0], [0.1, 0, 0, 0], [0.11, {way}, 0, 0], [0.4, {way}, 0, 0]]"
        session = Session(
            Options("suction-gripper", (*coarse, still, led), device="mock", lock_step=True, baseline=False)
        )
        session.prepare()
        rig = session.rig
        seen = []
        for _ in range(40):
            rig.lock.advance(rig.ratio, lambda n, rig=rig: servo_run(rig.servo, n))
            seen.append([cup.body.handle.position.copy() for cup in rig.built.suction.cups])
        places[way] = np.array(seen)
        h = rig.ratio * session.spec.rates.dt
    moved = places[0.012] - places[0.0]
    # all alike, along the device's way, and all of it
    np.testing.assert_allclose(moved, moved[:, :1] * np.ones((1, 4, 1)), atol=1e-12)
    device = rig.servo.port.position
    assert device[0] > 0.01
    np.testing.assert_allclose(moved[-1], [device] * 4, atol=1e-12)
    speed = np.linalg.norm(np.diff(moved[:, 0], axis=0), axis=1) / h
    assert speed.max() == pytest.approx(FASTEST, rel=1e-6)


def test_a_recording_in_lock_step_is_repeated_to_the_bit(lifted):
    assert replay(lifted[2]).result["replay"]["equal"]


def test_a_run_in_threads_is_repeated_to_the_bit(tmp_path):
    path = tmp_path / "run.h5"
    done = run(replace(CUBE, overrides=QUICK, lock_step=False, duration=0.6, record=path))
    assert done.status == FINISHED
    assert replay(path).result["replay"]["equal"]


def test_a_live_change_of_friction_leaves_the_rest_and_unknown_keys_are_refused():
    spec = load_scene("suction-cube")
    keys = {live.key for live in live_keys(spec)}
    assert {"friction.default", "gas.seal.rms", "tool.hold.stiffness"} <= keys
    given = load_scene("suction-sphere", ['gas={kind="airtight"}'])
    assert {"gas.max_pressure", "gas.leak"} <= {live.key for live in live_keys(given)}
    assert changed(spec, "friction.default=0.1").friction.default == 0.1
    with pytest.raises(ConfigError, match="cannot be changed while the scene runs"):
        changed(spec, "contact.sealing=0.001")


def hanging(rms):
    """Height [m] of the cube 1.5 s after the smooth surface it was lifted by has become that rough [m]."""
    scene = palpo.load("suction-cube", {"bodies.cup.geometry.resolution": 76, "gas.seal.rms": 1e-6})
    state = scene.build().start()
    for height, ticks in ((0.0164, 1000), (0.0164, 200), (0.0354, 600)):
        state.step(hand=[0.0, height, 0.0], ticks=ticks)
    state.rig.change(changed(scene.spec, f"gas.seal.rms={rms}"))
    state.step(ticks=1500, hand=[0.0, height, 0.0])
    risen = float(state.positions["cube"][:, 1].min()) + 0.115
    state.close()
    return risen


def test_a_cube_that_hangs_falls_when_its_surface_becomes_rough():
    assert hanging(1e-6) > 5e-3 > hanging(5e-5)
