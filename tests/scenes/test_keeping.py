"""What is kept of a run: a state that is gone back to goes on as it would have, and its scene as a file."""

from pathlib import Path

import numpy as np
import pytest

from palpo.app.runtime.comparison import CLOCKED
from palpo.app.runtime.keeping import go_back, keep, scene_text
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.config.load import load_scene, parse_scene
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.row import NAMES

SCENES = ("wire", "three-rates", "hapco-soft", "snap", "suction-cube")
"""One of each way of a slow loop, and one with several."""
STILL = ("rates.adapt=false",)


def prepared(scene):
    session = Session(Options(scene, STILL, device="mock", baseline=False, window=True))
    session.prepare()
    return session


def drive(session, ticks):
    """As threads do, but one after the other; the servo's rows."""
    rows, servo = [], session.rig.servo
    for _ in range(0, ticks, session.rig.ratio):
        for loop in session.slow.loops:
            if loop.low.in_force():
                loop.step()
        servo_run(servo, session.rig.ratio)
        rows.append(drain_rows(servo))
    return np.vstack(rows)


def freeze(session):
    session.pause(True)
    fade = session.spec.safety.fade_out * session.spec.rates.servo_hz
    for _ in range(int(fade) + 2):
        servo_run(session.rig.servo, 1)
    assert is_frozen(session.rig.servo)


@pytest.mark.parametrize("scene", SCENES)
def test_what_goes_on_from_a_kept_state_is_what_went_on_there(scene):
    first = prepared(scene)
    rows = np.array(first.spec.device.path, float)
    waits = rows[np.flatnonzero((rows[1:, 1:] != rows[:-1, 1:]).any(axis=1))[0], 0]
    drive(first, round((waits + 0.2) * first.spec.rates.servo_hz))
    assert keep(first, first.options) is None  # it moves
    freeze(first)
    kept = keep(first, first.options)
    tick = tick_count(first.rig.servo)
    assert kept.seconds == pytest.approx(tick * first.rig.dt)
    first.pause(False)
    went = drive(first, 200)
    # the first one has moved on meanwhile, and must not have taken what was kept along
    second = prepared(scene)
    go_back(second, kept)
    assert second.paused and is_frozen(second.rig.servo)
    assert tick_count(second.rig.servo) == tick
    second.pause(False)
    again = drive(second, 200)
    assert len(went) == len(again) >= 200
    for name, was, now in zip(NAMES, went.T, again.T, strict=True):
        if name not in CLOCKED:
            np.testing.assert_array_equal(now, was, err_msg=name)
    moved = went[:, [NAMES.index(f"held_{axis}") for axis in "xyz"]]
    assert np.ptp(moved, axis=0).max() > 1e-5
    for session in (first, second):
        for loop in session.slow.loops:
            loop.low.close()


@pytest.mark.parametrize("real", [True, False])
def test_a_real_device_stays_where_the_hand_is_and_a_simulated_one_goes_back(monkeypatch, real):
    first, second = prepared("wire"), prepared("wire")
    drive(first, 300)
    freeze(first)
    kept = keep(first, first.options)
    drive(second, 900)
    monkeypatch.setattr(second.choice, "hardware", real, raising=False)
    servo = second.rig.servo
    parts = [part for part in (*servo.device, *servo.pose) if isinstance(part, np.ndarray)]
    before = [part.tobytes() for part in parts]
    go_back(second, kept)
    stays = all(was == now.tobytes() for was, now in zip(before, parts, strict=True))
    assert stays == real
    assert tick_count(servo) < 900
    for session in (first, second):
        for loop in session.slow.loops:
            loop.low.close()


@pytest.mark.parametrize("scene", SCENES)
def test_a_saved_scene_is_the_one_with_its_present_values(scene, tmp_path):
    spec = load_scene(scene, ("friction.default=0.123",))
    path = tmp_path / "mine.toml"
    path.write_text(scene_text(spec), "utf-8")
    assert load_scene(path).model_dump(exclude={"origin"}) == spec.model_dump(exclude={"origin"})


def test_the_meshes_of_a_saved_scene_are_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "body.msh").touch()  # read when the scene is built
    text = load_scene("hapco-liver").origin.text
    told = parse_scene(
        text,
        tmp_path / "here" / "scene.toml",
        ('bodies.organ.geometry={kind="file", path="body.msh", scale=0.02}',),
    )
    monkeypatch.chdir(tmp_path)
    again = parse_scene(scene_text(told), Path("elsewhere") / "scene.toml")
    assert Path(again.fixed.geometry.path).samefile(tmp_path / "here" / "body.msh")


def test_a_network_of_a_saved_scene_is_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "plug.npz").touch()  # read when the scene is built
    text = load_scene("snap").origin.text
    told = parse_scene(
        text, tmp_path / "here" / "scene.toml", ('distance={kind="learned", weights="plug.npz"}',)
    )
    monkeypatch.chdir(tmp_path)
    again = parse_scene(scene_text(told), Path("elsewhere") / "scene.toml")
    assert Path(again.distance.weights).samefile(tmp_path / "here" / "plug.npz")
