"""The Gymnasium environment of a needle: its interface, its seeds, its baseline, and what a blind push
does."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import palpo.app.gym  # noqa: E402, F401
from palpo.app.cli.refusal import Refusal  # noqa: E402
from palpo.app.gym.biopsy import BiopsyEnv, straight_in  # noqa: E402


@pytest.fixture(scope="module")
def env():
    made = gymnasium.make("palpo/Biopsy-v1")
    yield made
    made.close()


def played(env, act, seed, **options):
    seen, told = env.reset(seed=seed, options=options)
    rewards, done, cut = [], False, False
    while not (done or cut):
        seen, reward, done, cut, told = env.step(act(seen))
        rewards.append(reward)
    return np.array(rewards), told


def test_it_keeps_to_gymnasiums_interface(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_the_same_seed_and_actions_give_the_same_episode(env):
    one, other = (played(env, straight_in, 5)[0] for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(5))
def test_the_baseline_reaches_the_target(env, seed):
    rewards, told = played(env, straight_in, seed)
    assert told["reached"]
    assert told["distance_m"] < 2e-3
    assert told["depth_m"] > 0.0
    assert rewards.sum() > 1.0


def test_who_does_not_aim_passes_the_target_by(env):
    _, told = played(
        env,
        lambda seen: np.array([1.0 if seen[9] < 3.0 else 0.0, 0.0, 0.0], np.float32),
        0,
        target=(8e-3, 0.0),
    )
    assert not told["reached"]
    assert told["depth_m"] > 0.02


def test_what_cannot_be_is_said(env):
    with pytest.raises(Refusal, match="a table `needles`"):
        BiopsyEnv("probe")
    with pytest.raises(Refusal, match="pace is 1"):
        BiopsyEnv(errors={"pace": 1.0})
    with pytest.raises(Refusal, match="there is no 'organ'"):
        env.reset(options={"organ": 1})
    with pytest.raises(Refusal, match="is not inside the body"):
        env.reset(options={"target": (0.5, 0.0)})
