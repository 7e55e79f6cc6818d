"""Laws of a hand that goes as poses go that somebody sends."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.haptics import guided
from palpo.haptics.guided import (
    LARGEST,
    LEAP,
    SILENCE,
    SPEED,
    TURN,
    FollowedPose,
    Guide,
    SentPose,
    pose_of,
)
from palpo.haptics.led import FAR
from palpo.haptics.workspace import quaternion_from_axis_angle, quaternion_product

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
DT = 0.01
coordinate = st.floats(-LARGEST, LARGEST)
vector = st.tuples(coordinate, coordinate, coordinate)
turn = st.tuples(vector.filter(lambda v: np.linalg.norm(v) > 1e-3), st.floats(-math.pi, math.pi)).map(
    lambda drawn: quaternion_from_axis_angle(*drawn)
)
poses = st.lists(st.builds(lambda x, q: pose_of(x, q), vector, turn), max_size=20)


def angle(p, q):
    """Of the turn from one unit quaternion to another [rad]."""
    return 2.0 * math.acos(min(1.0, abs(float(np.dot(p, q)))))


def followed(told, start=(0.0, 0.0, 0.0)):
    """Where the hand is after each pose, DT apart."""
    led, places = FollowedPose(start, UPRIGHT), []
    for pose in told:
        led.hear(pose)
        led.move(DT)
        places.append((led.position.copy(), led.orientation.copy()))
    return places


def strokes(offset=(0.0, 0.0, 0.0), about=UPRIGHT):
    """A slow stroke with a turn, by somebody whose own place and grip are others."""
    return [
        SentPose(
            offset + np.array([0.3 * k * DT, 0.1 * math.sin(k * DT), 0.0]),
            quaternion_product(quaternion_from_axis_angle([0, 1, 0], 0.5 * k * DT), about),
        )
        for k in range(40)
    ]


@given(vector, turn)
def test_it_goes_by_the_way_and_turn_of_what_leads_wherever_that_began(offset, about):
    for (x, q), pose in zip(followed(strokes(np.array(offset), about)), strokes(), strict=True):
        # the way is a difference of numbers as large as the offset
        assert x == pytest.approx(pose.position, abs=4e-16 * LARGEST)
        assert angle(q, pose.orientation) < 1e-6


@given(poses)
def test_nothing_that_is_sent_makes_it_faster_than_a_calm_hand_nor_leads_it_away(told):
    places = [(np.zeros(3), UPRIGHT), *followed(told)]
    for (x, q), (y, r) in itertools.pairwise(places):
        assert np.linalg.norm(y - x) <= SPEED * DT * (1 + 1e-9)
        assert angle(q, r) <= TURN * DT + 1e-6
        assert np.linalg.norm(r) == pytest.approx(1.0)
        assert (np.abs(y) <= FAR).all()


@given(turn, turn)
def test_what_is_sent_again_and_again_is_reached_and_kept(first, second):
    """A turn that is left by rounding alone has no axis."""
    led = FollowedPose(np.zeros(3), first)
    for q in (first, second, second):
        led.hear(SentPose(np.zeros(3), q))
        for _ in range(200):
            led.move(DT)
    assert angle(led.orientation, first) < 1e-6 or angle(led.orientation, second) < 1e-6
    assert not led.position.any()


def test_a_leap_is_a_new_beginning_and_not_a_way():
    led = FollowedPose(np.zeros(3), UPRIGHT)
    for x in (0.0, 0.9 * LEAP, 5.0, 5.0 + 0.5 * LEAP):
        led.hear(SentPose(np.array([x, 0.0, 0.0]), UPRIGHT))
        led.move(1.0)
    assert led.position == pytest.approx([1.4 * LEAP, 0.0, 0.0])
    led.hear(SentPose(np.array([5.0 + 0.5 * LEAP, 0.0, 0.0]), quaternion_from_axis_angle([0, 1, 0], 2.0)))
    led.move(1.0)
    assert angle(led.orientation, UPRIGHT) < 1e-6


def test_after_it_was_let_go_it_stays_until_the_next_way():
    led = FollowedPose(np.zeros(3), UPRIGHT)
    for x in (0.0, 0.05):
        led.hear(SentPose(np.array([x, 0.0, 0.0]), UPRIGHT))
    led.let_go()
    led.move(1.0)
    led.hear(SentPose(np.array([0.08, 0.0, 0.0]), UPRIGHT))
    led.move(1.0)
    assert not led.position.any()


@given(
    st.lists(st.floats(), min_size=3, max_size=3),
    st.lists(st.floats(), min_size=4, max_size=4),
    st.integers(),
)
def test_what_is_taken_for_a_pose_is_finite_and_unit_and_all_else_is_refused(x, q, buttons):
    try:
        pose = pose_of(x, q, buttons)
    except ValueError:
        return
    assert np.abs(pose.position).max() <= LARGEST
    assert np.linalg.norm(pose.orientation) == pytest.approx(1.0)
    assert 0 <= pose.buttons < 2**32


def test_one_leads_at_a_time_and_another_once_he_is_silent(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(guided.time, "monotonic", lambda: clock[0])
    guide, first, second = Guide("a test"), object(), object()
    here, there = (SentPose(np.full(3, x), UPRIGHT) for x in (1.0, 2.0))
    assert guide.put(here, first) and not guide.put(there, second)
    assert guide.read(0.0) is here and guide.read(0.0) is None
    clock[0] = 0.5 * SILENCE
    assert guide.put(here, first) and guide.leads
    clock[0] = 1.6 * SILENCE
    assert not guide.leads and guide.put(there, second) and not guide.put(here, first)
    assert guide.read(0.0) is there
