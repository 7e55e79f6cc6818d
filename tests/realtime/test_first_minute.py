"""A newcomer under a virtual screen: from the cards to a film of the click that they felt."""

import shutil

import numpy as np
import pytest
from PIL import Image, ImageSequence

from palpo.app.cli.main import main
from palpo.app.devices.mouse import Mouse
from palpo.config.load import load_scene
from palpo.render import palette
from tests.realtime.xserver import acted, display  # noqa: F401  (a fixture)

pytest.importorskip("imgui_bundle", reason="the panel's library is not installed (extra: window)")

SCENE = slice(0, 900)
"""Columns of the picture beside the panel."""


@pytest.fixture(scope="module")
def minute(display, tmp_path_factory):  # noqa: F811
    """What was seen, and the folder with the pictures and the recording."""
    folder = tmp_path_factory.mktemp("minute")
    yield acted(display, "tests.realtime.first_minute", folder), folder
    shutil.rmtree(folder, ignore_errors=True)


def like(folder, name, colour, within=40):
    """Which pixels of the scene have about this colour."""
    image = np.array(Image.open(folder / f"{name}.png")).astype(int)
    assert image.shape == (800, 1280, 3)
    return (np.abs(image[:, SCENE] - 255 * np.array(colour)) < within).all(axis=2)


def test_the_cards_are_pictures_and_stand_over_everything(minute):
    image = np.array(Image.open(minute[1] / "cards.png"))
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 1000


def test_words_and_a_ring_say_what_it_is_and_how_to_take_the_tool_until_it_was_taken(minute):
    seen, folder = minute
    assert seen["hinted"] and seen["taken"]
    spec, device = load_scene("snap"), Mouse.taking
    assert seen["told"][0] == spec.title
    told = " ".join(seen["told"][1:])
    assert told.startswith(spec.description)
    assert all(words in told for words in device)
    # the colour bar in the legend below has such a colour too, and so has a bent socket
    words, after = (like(folder, name, palette.HINT)[:550] for name in ("hint", "clicked"))
    assert words.sum() > 500
    assert (words & after).sum() < 0.05 * words.sum()


def test_the_plug_went_in_and_its_click_was_felt(minute):
    seen, folder = minute
    assert seen["system"]["latched"]
    # the force in the hand grows with the push, and drops at the click
    felt = np.array(seen["felt"])
    peak = int(np.argmax(felt))
    assert felt[peak] > 0.5
    assert felt[peak:].min() < 0.5 * felt[peak]
    blue = load_scene("snap").plug_colour
    rows = [np.nonzero(like(folder, name, blue, 30))[0] for name in ("hint", "clicked")]
    assert min(map(len, rows)) > 1000


def test_what_was_recorded_is_filmed_and_the_plug_goes_down_in_the_film(minute):
    seen, folder = minute
    out = folder / "click.gif"
    # quickly: pictures for people are slower than the person on a machine that draws with its processor
    asked = ["film", str(folder / seen["recording"]), "--out", str(out), "--fps", "5", "--speed", "5"]
    assert main([*asked, "--size", "320x240"]) == 0
    with Image.open(out) as film:
        pictures = [np.array(p.convert("RGB")).astype(int) for p in ImageSequence.Iterator(film)]
    assert len(pictures) > 3
    blue = 255 * np.array(load_scene("snap").plug_colour)

    def height(picture):
        """Of the plug: more blue than all else."""
        plug = (picture[..., 2] > picture[..., 0] + 60) & (np.abs(picture - blue).sum(axis=2) < 150)
        return np.nonzero(plug)[0].mean()

    assert height(pictures[-1]) > height(pictures[0]) + 5
