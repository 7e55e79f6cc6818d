"""Motions of a hand: each is as fast as it says, as deep as it says, and without a jump."""

from pathlib import Path

import numpy as np
import pytest

from palpo.studies.hand_motions import LEAD_IN, MOTIONS, SPOTS, hand_motion


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hand that reaches down by 5 cm and back within 2 s, at 100 Hz."""
    t = np.arange(201) / 100.0
    reach = np.sin(0.5 * np.pi * t) ** 2
    table = np.column_stack([t, 0.02 * reach, 0.1 - 0.05 * reach, 0.01 * reach])
    path = tmp_path_factory.mktemp("hand") / "reach.txt"
    np.savetxt(path, table)
    return path


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("speed", [0.02, 0.5])
@pytest.mark.parametrize("scene", SPOTS)
@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_is_as_fast_and_as_deep_as_it_says(
    name: str, scene: str, speed: float, seed: int, recording: Path
) -> None:
    spot = SPOTS[scene]
    hand = hand_motion(name, spot, speed, seed, recording=recording)
    # a recording may be cut before its fastest moment; the others reach theirs between two ticks
    least = 0.5 if name == "recorded" else 0.98
    assert least * speed < hand.speed < 1.001 * speed
    assert np.allclose(hand.path[0], spot.begin, atol=1e-9) or hand.since == 0
    # no jump: between two ticks the hand goes no further than it says
    steps = np.linalg.norm(np.diff(hand.path, axis=0), axis=1)
    assert steps.max() < 1.01e-3 * max(speed, LEAD_IN)
    # it begins at rest: the first tick of it is of the second order, if it is not over in some twenty
    assert steps[hand.since] < 0.25e-3 * speed
    if name != "shake":
        below = spot.touch[1] - hand.path[hand.since :, 1].min()
        assert 0.7 * spot.depth - 1e-6 < below < 1.3 * spot.depth + 1e-6


def test_a_path_at_twice_the_rate_is_the_same_path() -> None:
    once, twice = (hand_motion("stroke", SPOTS["probe"], 0.2, 3, finer) for finer in (1, 2))
    n = min(len(once.path), len(twice.path[::2]))
    assert np.allclose(once.path[:n], twice.path[::2][:n], atol=1e-12)
    assert once.since == twice.since
