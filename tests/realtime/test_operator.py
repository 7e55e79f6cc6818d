"""The whole program under a virtual screen: someone touches, changes, records, pauses and quits."""

import shutil

import numpy as np
import pytest
from PIL import Image

from palpo.app.runtime.replay import replay
from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import read_recording
from palpo.render import palette
from tests.realtime.xserver import acted, display  # noqa: F401  (a fixture)

pytest.importorskip("imgui_bundle", reason="the panel's library is not installed (extra: window)")

WORDS = ("start", "pulled", "friction", "emergency")


@pytest.fixture(scope="module")
def session(display, tmp_path_factory):  # noqa: F811
    """What the person saw, and the folder with the pictures and the recording."""
    folder = tmp_path_factory.mktemp("desk")
    yield acted(display, "tests.realtime.desk_session", folder), folder
    shutil.rmtree(folder, ignore_errors=True)


def picture(folder, name):
    return np.array(Image.open(folder / f"{name}.png")).astype(int)


def near(image, colour, within=60):
    """Which pixels have about this colour (r, g, b), each 0 to 1."""
    return np.abs(image - 255 * np.array(colour)).sum(axis=2) < within


def test_the_tool_follows_the_pointer_and_the_hand_feels_what_it_pulls(session):
    seen, _ = session
    assert seen["grip"]
    assert seen["dragged_m"] > 5e-3  # 120 pixels of the picture's 800, of a scene some 25 cm high


def test_an_arrow_at_the_hand_points_where_the_force_pulls(session):
    seen, folder = session
    hand, ahead = np.array(seen["hand_and_force"])[:, :2]
    y, x = np.nonzero(near(picture(folder, "pulled"), palette.HAND_FORCE))
    away = np.stack([x, y], axis=1) - hand
    far = np.hypot(*away.T)
    arrow = away[(far > 12) & (far < 150)]  # beyond the mark of the device
    assert len(arrow) > 100
    mean, force = arrow.mean(axis=0), ahead - hand
    assert mean @ force > 0.9 * np.linalg.norm(mean) * np.linalg.norm(force)


def test_a_knob_of_the_panel_changes_what_the_servo_computes_with(session):
    before, after = session[0]["friction"]
    assert before == 0.3
    assert after > 0.5  # three tenths of a slider from 0 to 2


def test_the_change_stands_in_the_recording_with_its_low_step(session):
    seen, folder = session
    recording = read_recording(folder / seen["recording"])
    assert recording.closed
    assert recording.changes[-1][1] == f"friction.default={seen['friction'][1]!r}"
    assert recording.low_steps["step"][0] <= recording.changes[-1][0] <= recording.low_steps["step"][-1] + 1


def test_a_recording_begun_in_mid_run_is_whole_but_says_that_it_cannot_be_repeated(session):
    seen, folder = session
    ticks = read_recording(folder / seen["recording"]).columns["tick"]
    assert ticks[0] > 0
    assert np.array_equal(np.diff(ticks), np.ones(len(ticks) - 1))
    with pytest.raises(HapticsError, match=rf"begins at tick {ticks[0]}.*replay:"):
        replay(folder / seen["recording"])


def test_time_stands_still_in_a_pause_and_a_step_is_one_low_period_without_force(session):
    seen, _ = session
    assert seen["ticks_in_pause"] == 0
    assert seen["ticks_granted"] == 20  # 1000 Hz over 50 Hz
    assert seen["sent_in_pause"] == 0.0


def test_the_servo_goes_on_while_the_drawing_thread_sleeps(session):
    """What waited for that thread would make no tick; no machine steals every other one."""
    asleep, made = session[0]["milliseconds_and_ticks_asleep"]
    assert asleep > 2000.0
    assert made > 0.5 * asleep


def test_a_reset_keeps_what_was_changed(session):
    seen, _ = session
    assert seen["kept_friction"] == seen["friction"][1]


def test_the_emergency_key_takes_the_force_away_and_ends_the_run_in_words(session):
    seen, _ = session
    assert seen["sent_after_emergency"] == 0.0
    assert seen["emergency"] == ["emergency stop; the force is off, press r to reset", "warn"]


def test_a_click_on_a_card_opens_its_scene_and_behind_the_cards_no_force_is_left(session):
    seen, folder = session
    assert seen["chosen"] == "probe"
    assert seen["sent_under_cards"] == 0.0
    assert seen["outcome"][1] == 0
    cards = picture(folder, "cards")
    assert cards.shape == (800, 1280, 3)
    # nothing red to press is hidden there, and pictures are
    assert not near(cards[40:70, 940:1250], (0.83, 0.13, 0.18)).any()
    assert len(np.unique(cards.reshape(-1, 3), axis=0)) > 1000


@pytest.mark.parametrize("name", WORDS)
def test_every_picture_has_the_scene_and_the_red_button(session, name):
    image = picture(session[1], name)
    assert image.shape == (800, 1280, 3)
    button = image[40:70, 940:1250]
    assert near(button, (0.83, 0.13, 0.18), within=120).mean() > 0.5
    wire = image[:, : int(0.68 * 1280)]
    assert near(wire, (0.25, 0.40, 0.75), within=150).sum() > 500
