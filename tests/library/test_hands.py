"""Several hands are led in one call, each by its own way."""

from functools import cache

import numpy as np
import pytest

import palpo


@cache
def model():
    return palpo.load("two-hands").build()


def test_one_hand_alone_is_the_same_in_either_form():
    one, other = model().start(), model().start()
    to = one.hand.position + np.array([0.0, 0.0, 0.003])
    single, several = one.step(hand=to, ticks=50), other.step(hands=[to], ticks=50)
    np.testing.assert_array_equal(single.force, several.force)
    np.testing.assert_array_equal(single.further[0].held, several.further[0].held)


def test_mirrored_ways_of_two_hands_are_felt_as_mirrored_forces():
    """x to -x maps the scene to itself: a squeeze from both sides. The mesh of the cylinder is not its own
    mirror image, and the solver stops at its tolerance: forces are equal to some percent."""
    state = model().start()
    right, left = (one.pose.position for one in state.hands)
    inward = np.array([8e-3, 0.0, 0.0])
    ticks = state.step(hands=[right - inward, left + inward], ticks=800)
    (other,) = ticks.further
    np.testing.assert_array_equal(other.hand, ticks.hand * [-1.0, 1.0, 1.0])
    squeezed, opposed = ticks.force[-1], other.force[-1]
    assert squeezed[0] > 0.5
    assert opposed * [-1.0, 1.0, 1.0] == pytest.approx(squeezed, rel=0.05, abs=0.05 * squeezed[0])
    np.testing.assert_array_equal(state.hands[1].force, opposed)


def test_a_hand_that_is_not_led_stays_and_bears_its_tool():
    """Its coupling bears the tool's weight, once that hangs still: 30 g."""
    state = model().start()
    first = state.hands[0].pose.position
    aside = state.hands[1].pose.position + np.array([-5e-3, 5e-3, 0.0])
    ticks = state.step(hands=[None, aside], ticks=600)
    np.testing.assert_array_equal(state.hands[0].pose.position, first)
    for felt in (ticks, *ticks.further):
        assert felt.force[-1] == pytest.approx([0.0, -0.03 * 9.81, 0.0], abs=1e-3)


def test_the_scenes_own_hands_are_told_apart():
    ticks = model().start().step(1600)
    assert np.isfinite(ticks.further[0].force).all()
    assert ticks.hand[-1, 0] > 0.0 > ticks.further[0].hand[-1, 0]
    assert ticks.force[-1, 0] > 0.0 > ticks.further[0].force[-1, 0]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"hands": [[0, 0, 0]] * 3}, "3 are told, and this scene has 2"),
        ({"hands": [None, [0, 0]]}, r"hand 2: an array of shape \(2,\)"),
        ({"hand": [0, 0, 0], "hands": [None]}, "give hand= and orientation=, or hands="),
        ({"hands": [np.zeros((3, 3)), np.zeros((4, 3))]}, "differ in length: 3 and 4 ticks"),
    ],
)
def test_what_does_not_fit_is_refused(told, words):
    with pytest.raises(palpo.Refusal, match=words):
        model().start().step(**told)
