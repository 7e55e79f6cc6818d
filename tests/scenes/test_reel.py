"""A recorded run that is looked at again: any moment of it in any order, and its tool as a ghost."""

from types import SimpleNamespace

import numpy as np
import pytest

from palpo.app.cli.main import main
from palpo.app.runtime.options import Options
from palpo.app.runtime.reel import PERIOD, Reel, reel_of
from palpo.app.runtime.session import Session
from palpo.config.words import Refusal
from palpo.haptics.recording import read_recording
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render import palette
from palpo.render.camera import Camera
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import Offscreen
from palpo.render.overlays import Overlays


def kept(times, tool="", **done):
    states = [SceneState(np.full((1, 3), t), time=t) for t in times]
    return Reel(SimpleNamespace(**done), states, np.array(times), tool)


def test_a_moment_shows_the_newest_state_that_there_was_by_then():
    reel = kept([0.0, 0.02, 0.04, 0.061])
    assert [reel.at(t).time for t in (-1.0, 0.0, 0.019, 0.02, 0.03, 0.0399999, 0.06, 0.061, 9.0)] == [
        0.0, 0.0, 0.0, 0.02, 0.02, 0.02, 0.04, 0.061, 0.061
    ]  # fmt: skip


def test_what_can_be_turned_to_forward_can_be_turned_to_backward():
    reel = kept(np.linspace(0.0, 1.0, 51))
    forward = [reel.at(t).time for t in np.linspace(-0.1, 1.1, 97)]
    assert [reel.at(t).time for t in np.linspace(1.1, -0.1, 97)] == forward[::-1]
    assert forward == sorted(forward)


@pytest.mark.parametrize("n", [1, 7, 400])
def test_the_curve_of_a_timeline_loses_no_peak(n):
    t = np.arange(300) * 1e-3
    sent = np.zeros((300, 3))
    sent[137] = [3.0, 4.0, 0.0]  # a click of one tick
    reel = kept([0.0], series={"time_s": t, "force_sent_N": sent})
    seconds, force = reel.force(n)
    assert len(seconds) == len(force) == min(n, 300)
    assert force.max() == 5.0
    assert abs(seconds[np.argmax(force)] - 0.137) <= 0.3 / min(n, 300) + 1e-12


def test_a_ghost_of_a_scene_without_a_held_tool_is_refused():
    geometry = make_geometry([Drawable("wall", "tube", 0, 2, radius=0.1)], np.eye(3)[:2])
    reel = kept([0.0], geometry=geometry, result={"scene": "x"})
    with pytest.raises(Refusal, match="holds nothing"):
        reel.ghost()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("reel") / "run.h5"
    session = Session(Options("probe", device="mock", lock_step=True, duration=1.2, record=path))
    session.prepare()
    assert not session.run().status
    return path


def test_the_ghost_is_the_tool_where_the_recorded_rows_have_it(recording):
    reel = reel_of(recording)
    ghost = reel.ghost()
    assert [d.name for d in ghost.geometry.drawables] == ["probe"]
    assert np.diff(reel.times) == pytest.approx(PERIOD, abs=1.5e-3)
    rows = read_recording(recording).columns
    held = np.c_[rows["held_x"], rows["held_y"], rows["held_z"]]

    def told(seconds):
        """Of the row that the picture was taken after."""
        return held[round(reel.at(seconds).time / 1e-3) - 1]

    for before, after in ((0.3, 1.0), (1.0, 0.8), (0.8, 1.15)):
        # a ball that turns by nothing: all of it moves as the held point does
        moved = (ghost.at(after) - ghost.at(before)).mean(axis=0)
        way = told(after) - told(before)
        assert np.abs(way).max() > 1e-5
        np.testing.assert_allclose(moved, way, atol=1e-3 * np.abs(way).max())


def test_the_ghost_is_drawn_where_it_is_told_to_be_and_only_if_it_is_wanted():
    ball = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float) * 0.1
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    body = make_geometry([Drawable("body", "surface", 0, 4, faces)], ball)
    camera = Camera((0.0, 0.05, 0.0), 1.2, 0.0, 0.0)
    try:
        photographer = Offscreen(body, SceneState(ball), 400, 300)
    except RenderUnavailable as none:
        pytest.skip(str(none))
    with photographer:
        photographer._view.haunt(body)

        def tinted(place, shown=True):
            photographer._view.ghost_at(ball + place)
            overlays = Overlays(labels=False, grid=False, axes=False, ghost=shown)
            return photographer.picture(SceneState(ball), camera, overlays).astype(int)

        for x in (-0.25, 0.2):
            place = np.array([x, 0.0, 0.0])
            changed = np.abs(tinted(place) - tinted(place, False)).sum(axis=2) > 20
            rows, columns = np.nonzero(changed)
            pixels = camera.project(ball + place, 400, 300)
            low, high = pixels.min(axis=0), pixels.max(axis=0)
            assert [columns.min(), rows.min()] == pytest.approx(low, abs=2)
            assert [columns.max(), rows.max()] == pytest.approx(high, abs=2)
            # towards its colour: more red and blue than green
            more = tinted(place)[changed].mean(axis=0)
            assert np.argmin(more) == np.argmin(palette.GHOST) == 1


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["replay", "x.h5", "--ghost", "y.h5"], "y.h5"),
        (["replay", "x.h5", "--window", "--scene", "probe"], "probe"),
        (["run", "probe", "--headless", "--ghost", "y.h5"], "y.h5"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(capsys, command, named):
    assert main(command) == 2
    assert named in capsys.readouterr().err
