"""How often a slow loop makes frames: as its steps let it where a hand is quick, at its rate where not."""

import numpy as np
import pytest

from palpo.studies.hand_motions import SPOTS
from palpo.studies.runs import SceneDrive, legs

TAKES = 0.25
"""Periods that a slow step takes."""


def _drive(takes: float, *rows: tuple[float, float, float, float]) -> tuple[int, int, np.ndarray]:
    """Frames in the last row's time, its ticks, and the force of all."""
    x, y, z = SPOTS["probe"].begin
    path = legs((0.0, x, y, z), *rows)
    last = round(1000 * rows[-1][0])
    with SceneDrive("probe", durations=(takes,)) as run:
        run.go(path[:-last])
        before = run.lock.low.frame_id
        run.go(path[-last:])
        return run.lock.low.frame_id - before, last, run.trace["force"]


X, Y, Z = SPOTS["probe"].touch
PRESSED = (0.1, X, Y - 0.003, Z), (0.1, X, Y - 0.003, Z)
QUICK, STILL = (0.1, X + 0.02, Y - 0.003, Z), (0.1, X, Y - 0.003, Z)
PERIOD = 20


@pytest.mark.parametrize(("last", "least", "most"), [(QUICK, 1.5, 1.0 / TAKES), (STILL, 0.9, 1.2)])
def test_a_quick_hand_gets_more_frames_and_one_that_stands_gets_its_rate(
    last: tuple[float, float, float, float], least: float, most: float
) -> None:
    frames, ticks, _ = _drive(TAKES, *PRESSED, last)
    # the first and the last frame may fall on either side of the span's ends
    assert least * ticks / PERIOD <= frames <= most * ticks / PERIOD + 1


def test_steps_of_a_whole_period_leave_no_room_for_more() -> None:
    frames, ticks, _ = _drive(1.0, *PRESSED, QUICK)
    assert frames <= ticks / PERIOD + 1


def test_the_rate_follows_from_the_motion_alone() -> None:
    once, again = (_drive(TAKES, *PRESSED, QUICK) for _ in range(2))
    assert once[0] == again[0]
    assert np.array_equal(once[2], again[2])


@pytest.mark.parametrize("speed", [0.1, 0.2])
def test_points_that_bear_while_a_frame_serves_an_even_stroke_have_their_own_freedoms(
    speed: float,
) -> None:
    """In the middle of its service, though the ball goes on by up to 4 mm a frame, of a dent of 13 mm."""
    way, start, judged = 0.04, (X - 0.01, Y - 0.003, Z), 0
    path = legs((0.0, *SPOTS["probe"].begin), (0.2, *start), (0.1, *start))
    stroke = legs((0.0, *start), (way / speed, start[0] + way, *start[1:]), smooth=False)
    with SceneDrive("probe") as run:
        run.go(path)
        low = run.lock.low
        first, served, log = low.scene.members[0].first, low.frame_id, low.link.log
        for tick in range(len(stroke)):
            run.go(stroke[tick : tick + 1])
            made = len(path) + tick + 1
            # the first two are of a hand that stood or set out
            if low.frame_id > served + 1 and made - low.frame_tick == PERIOD // 2:
                row = (made - 1) & (len(log.tick) - 1)
                bears = log.point[row, : log.used[row]] - first
                judged += 1
                assert len(bears) and set(bears) <= set(low.reductions[0].points.free), made
    assert judged >= 2
