"""The animation of a run, and the pictures that the README opens with."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from palpo.app.cli.progress import Silent
from palpo.app.report import gallery
from palpo.app.report.album import Film
from palpo.app.report.animation import LAST, animated
from palpo.config.load import list_scenes
from palpo.physics.exchange.snapshot import SceneState
from palpo.render.offscreen import EglContext, RenderUnavailable

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def state(time):
    return SceneState(np.zeros((0, 3)), time=time)


def test_a_film_keeps_every_state_that_is_a_period_after_the_last():
    film = Film(0.1, 50)
    for tick in range(200):
        film.look(state(0.02 * tick))
    np.testing.assert_allclose(np.diff([one.time for one in film.states]), 0.1, atol=1e-12)
    assert len(film.states) == 40


@pytest.mark.parametrize("seconds", [30, 300, 3000])
def test_a_film_of_any_length_is_of_an_even_pace_and_within_its_room(seconds):
    film = Film(0.1, 50)
    for tick in range(10 * seconds):
        film.look(state(0.1 * tick))
    times = [one.time for one in film.states]
    assert 25 <= len(times) <= 50
    np.testing.assert_allclose(np.diff(times), film.period, atol=1e-9)
    assert times[0] == 0.0
    assert times[-1] > 0.9 * seconds


def frames(n=6, side=64):
    """A dark bar that goes over a pale ground, a pixel of red in its middle."""
    images = np.full((n, side, side, 3), (220, 228, 236), np.uint8)
    for k, image in enumerate(images):
        image[:, 8 * k : 8 * k + 4] = (40, 60, 90)
        image[side // 2, 8 * k + 2] = (200, 36, 63)
    return list(images)


def test_an_animation_shows_its_frames_at_their_times():
    shown, times = frames(), np.array([0.0, 0.1, 0.2, 0.5, 0.6, 0.7])
    with Image.open(io.BytesIO(animated(shown, times))) as film:
        assert film.n_frames == len(shown)
        assert film.info["loop"] == 0  # for ever
        for k, frame in enumerate(shown):
            film.seek(k)
            # few colours: the palette has them all
            np.testing.assert_array_equal(np.array(film.convert("RGB")), frame)
            waits = np.append(np.diff(times), LAST)[k]
            assert film.info["duration"] == pytest.approx(1e3 * waits, abs=10)  # hundredths of a second


def test_a_thin_mark_keeps_its_colour_before_a_ground_of_many():
    across, down = np.meshgrid(np.linspace(180, 240, 256), np.linspace(0, 15, 256))
    frame = np.stack([across, across + down, 240 + 0 * down], axis=2).astype(np.uint8)
    frame[100:130, 100:102] = (23, 105, 201)  # one pixel in a thousand
    with Image.open(io.BytesIO(animated([frame, frame], [0.0, 0.1]))) as film:
        shown = np.array(film.convert("RGB")).astype(int)
    np.testing.assert_allclose(shown[100:130, 100:102], frame[100:130, 100:102].astype(int), atol=8)


def test_no_frames_are_no_animation():
    assert animated([], []) == b""


@pytest.mark.parametrize("shot", gallery.SHOTS, ids=lambda shot: shot.name)
def test_the_pictures_of_the_readme_are_there_and_show_something(shot):
    path = PICTURES / shot.file
    assert shot.scene in list_scenes()
    assert path.stat().st_size <= 1.5e6
    with Image.open(path) as picture:
        assert picture.size == (gallery.MOVING if shot.moment is None else gallery.STILL)
        assert getattr(picture, "n_frames", 1) == 1 if shot.moment else picture.n_frames > 50
        pixels = np.array(picture.convert("RGB")).astype(int)
    # a body, neither sky nor pale ground nor its shadow: coloured, on more than a hundredth of the picture
    assert (np.ptp(pixels, axis=2) > 45).mean() > 0.01


def test_all_pictures_together_are_small():
    drawn = {path.name for path in PICTURES.iterdir() if path.suffix != ".svg"}
    # what palpo.app.report.design_example draws is of its own page, and so is what others draw
    apart = {name for name in drawn if name.startswith("design-")} | {
        "suction-mass.png",
        "page.png",
        "beside-mujoco.png",
    }
    assert drawn - apart == {shot.file for shot in gallery.SHOTS}
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) <= 3e6


def test_a_picture_made_again_is_the_same(tmp_path):
    try:
        EglContext().close()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    shots = [replace(shot, moment=0.3) for shot in gallery.SHOTS if shot.scene == "hapco-block"]
    first, second = (gallery.make(tmp_path / name, shots, Silent()) for name in "ab")
    assert [path.name for path in first] == [path.name for path in second] == ["hapco-block-moving.png"]
    assert first[0].read_bytes() == second[0].read_bytes()
    # a moment later the punch has gone down
    later = gallery.make(tmp_path / "c", [replace(shots[0], moment=0.9)], Silent())
    assert later[0].read_bytes() != first[0].read_bytes()
