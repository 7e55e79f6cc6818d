"""A knob that turns the view: as if it held the scene, at its own pace, until it is lost."""

import queue

import numpy as np
import pytest

from palpo.app.runtime.knob import ORBIT, PAN, ViewKnob, open_knob
from palpo.haptics.backends import spacemouse
from palpo.haptics.errors import HapticsError
from palpo.haptics.rate import Deflection, speed_of
from palpo.render.camera import Camera
from palpo.render.controls import Controls

SIZE = 800, 600


class Source:
    """A device that reports what a test puts there."""

    title = "SpaceMouse of this test"

    def __init__(self):
        self.reports, self.closed, self.gone = queue.Queue(), False, False

    def read(self, patience):
        if self.gone:
            raise OSError("read error")
        try:
            return self.reports.get(timeout=0.01)
        except queue.Empty:
            return None

    def close(self):
        self.closed = True


@pytest.fixture
def source():
    return Source()


def seen(knob, **deflection):
    """Where the centre of a scene is in the picture before and after a tenth of a second, and the scale."""
    controls = Controls(Camera().fit([[-1, -1, -1], [1, 1, 1]], 4 / 3))
    points = np.array([[0.0, 0, 0], [0.1, 0, 0]])
    knob._deflection = Deflection(**deflection)
    before = controls.camera.project(points, *SIZE)
    knob.turn(controls, 0.1)
    after = controls.camera.project(points, *SIZE)
    return before, after, controls


@pytest.mark.parametrize(
    ("along", "way"), [((1, 0, 0), (1, 0)), ((-1, 0, 0), (-1, 0)), ((0, 1, 0), (0, -1)), ((0, -1, 0), (0, 1))]
)
def test_the_scene_goes_where_it_is_pushed_as_far_as_the_time_allows(source, along, way):
    knob = ViewKnob(source)
    before, after, _ = seen(knob, along=along)
    knob.close()
    moved = (after - before)[0]
    assert moved == pytest.approx(0.1 * PAN * SIZE[1] * np.array(way), abs=0.5)


def test_it_comes_nearer_when_it_is_pulled(source):
    knob = ViewKnob(source)
    before, after, _ = seen(knob, along=(0, 0, 1))
    knob.close()
    assert np.linalg.norm(after[1] - after[0]) > 1.05 * np.linalg.norm(before[1] - before[0])


def test_it_turns_as_the_knob_is_twisted(source):
    """About the vertical, counterclockwise from above: what is at the right in front goes away."""
    knob = ViewKnob(source)
    _, _, controls = seen(knob, about=(0, 1, 0))
    knob.close()
    eye = Camera().fit([[-1, -1, -1], [1, 1, 1]], 4 / 3)
    turned, was = (np.arctan2(*(c.eye - c.target)[[0, 2]]) for c in (controls.camera, eye))
    assert np.degrees(was - turned) == pytest.approx(0.1 * ORBIT, rel=1e-6)


def test_within_the_dead_zone_and_once_it_is_silent_the_view_stands(source):
    knob = ViewKnob(source)
    before, after, _ = seen(knob, along=(0.05, 0, 0))
    assert (before == after).all() and not speed_of([0.05], 1.0).any()
    source.reports.put(Deflection((1.0, 0, 0)))
    for _ in range(400):
        if not source.reports.qsize() and not any(knob._deflection.along):
            break
        knob._over.wait(0.01)
    assert not any(knob._deflection.along)
    knob.close()
    assert source.closed


def test_one_that_is_unplugged_is_told_and_moves_nothing(source):
    knob = ViewKnob(source)
    source.gone = True
    knob._reading.join(5.0)
    assert "was lost; the view is the pointer's (read error)" in knob.lost
    before, after, _ = seen(knob)
    assert (before == after).all()


def test_what_turns_no_view_is_refused_in_words(monkeypatch):
    with pytest.raises(HapticsError, match="--camera mouse: choose spacemouse or gamepad"):
        open_knob("mouse")
    monkeypatch.setattr(spacemouse, "found", lambda name=None: [])
    with pytest.raises(HapticsError, match="no SpaceMouse"):
        open_knob("spacemouse")
