"""A recording as a film: pictures at an even pace of the very run that was recorded; refusals in words."""

import sys

import numpy as np
import pytest
from PIL import Image

from palpo.app.cli.main import main
from palpo.app.report.album import Film
from palpo.app.report.film import film
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session
from palpo.config.words import Refusal
from palpo.haptics.recording import read_recording
from palpo.physics.exchange.snapshot import SceneState
from palpo.render.gl import RenderUnavailable

LASTS, FPS = 0.4, 30.0
ODD_RATE = "rates.low_hz=20"
"""Slower than the film: pictures must not wait for it."""


MOVING = "device.path=[[0.0, -0.01, 0.045, 0.0], [0.4, 0.01, 0.031, 0.0]]"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "run.h5"
    session = Session(
        # a hand that moves from the start: a GIF leaves out pictures that are alike
        Options("probe", (ODD_RATE, MOVING), device="mock", lock_step=True, duration=LASTS, record=path)
    )
    session.prepare()
    assert not session.run().status
    return path


@pytest.mark.parametrize("speed", [1.0, 0.25])
def test_its_pictures_are_of_the_recorded_run_at_an_even_pace(recording, speed):
    period = speed / FPS
    taken = Film(period, sys.maxsize)
    done = replay(recording, film=taken)
    assert done.result["replay"]["equal"], done.result["exit_reason"]
    rows = read_recording(recording).columns
    dt = rows["time_s"][1] - rows["time_s"][0]
    times = np.array([state.time for state in taken.states])
    # each beat of the film has its picture, at most a tick after it
    beats = np.arange(len(times)) * period
    assert len(times) == 1 + int((rows["time_s"][-1] + dt) / period + 1e-6)
    assert (times >= beats - 1e-9).all()
    assert (times <= beats + dt + 1e-9).all()
    # it begins with the scene at rest, before anything moved
    np.testing.assert_allclose(taken.states[0].vertices, done.geometry.rest, atol=1e-12)
    held = np.c_[rows["held_x"], rows["held_y"], rows["held_z"]]
    for state in taken.states[1:]:
        tick = round(state.time / dt)
        near = held[max(0, tick - 1) : tick + 1]
        assert np.abs(near - state.held_point).max(axis=1).min() <= 1e-12


def test_a_film_that_has_too_many_states_keeps_every_second_and_its_pace():
    taken = Film(0.1, 8)
    for k in range(100):
        taken.look(SceneState(np.zeros((1, 3)), time=0.03 * k))
    times = np.array([state.time for state in taken.states])
    assert len(times) <= 8
    gaps = np.diff(times)
    # even up to the 0.03 s at which it is shown states
    assert (np.abs(gaps - taken.period) <= 0.03 + 1e-9).all()


@pytest.mark.parametrize(("name", "ask"), [("film.gif", {}), ("film.mp4", {"size": (320, 180)})])
def test_the_file_plays_as_long_as_the_run_at_its_speed(recording, tmp_path, name, ask):
    out = tmp_path / name
    try:
        assert film(recording, out, speed=0.5, **ask) == out
    except RenderUnavailable as why:
        pytest.skip(str(why))
    if out.suffix == ".gif":
        with Image.open(out) as picture:
            frames = picture.n_frames
            assert picture.size == (640, 360)
        seconds = frames / 15.0
    else:
        encoder = pytest.importorskip("imageio_ffmpeg")
        frames, seconds = encoder.count_frames_and_secs(str(out))
        assert next(encoder.read_frames(str(out)))["size"] == (320, 180)
    lasted = read_recording(recording).columns["time_s"][-1] / 0.5
    assert seconds == pytest.approx(lasted, abs=2.0 / 15.0)
    assert frames == pytest.approx(seconds * (15 if out.suffix == ".gif" else 30), abs=1)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"out": "film.avi"}, r"film.avi: a film is written to a file that ends in .mp4 or .gif"),
        ({"fps": 0.0}, r"--fps 0: give 1 to 100"),
        ({"speed": -1.0}, r"--speed -1: give seconds"),
        ({"size": (321, 180)}, r"--size 321x180: an MP4 wants even"),
        ({"size": (10, 10)}, r"--size 10x10: give 64 to 7680"),
        ({"speed": 900.0}, r"too short for a film"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(recording, tmp_path, ask, words):
    out = tmp_path / ask.pop("out", "film.mp4")
    with pytest.raises(Refusal, match=words):
        film(recording, out, **ask)
    assert not out.exists()


@pytest.mark.parametrize("name", ["film.gif", "film.mp4"])
def test_a_film_that_fails_half_way_leaves_the_one_that_was_there(recording, tmp_path, monkeypatch, name):
    out = tmp_path / name
    out.write_bytes(b"the film before")

    def broken(*_):
        yield np.zeros((180, 320, 3), np.uint8)
        raise RenderUnavailable("the driver is gone")

    monkeypatch.setattr("palpo.app.report.film.drawn", broken)
    with pytest.raises(RenderUnavailable, match="the driver is gone"):
        film(recording, out, size=(320, 180))
    assert out.read_bytes() == b"the film before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_size_that_is_none_is_refused_with_an_example(capsys):
    with pytest.raises(SystemExit) as end:
        main(["film", "run.h5", "--size", "large"])
    assert end.value.code == 2
    assert "--size: large: give width and height in pixels, such as 1280x720" in capsys.readouterr().err


def test_without_the_encoder_an_mp4_says_how_to_get_it_and_a_gif_needs_none(recording, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(Refusal, match=r"imageio_ffmpeg: pip install 'palpo\[film\]'.*\.gif does not"):
        film(recording, tmp_path / "film.mp4")
