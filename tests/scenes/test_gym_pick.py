"""The Gymnasium environment of a gripper in MuJoCo: its interface, its seeds, what pushing and place do."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install 'palpo[simulators]'")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import palpo.app.gym  # noqa: E402, F401
from palpo.app.cli.refusal import Refusal  # noqa: E402
from tests.scenes.episodes import episode  # noqa: E402

MIDDLE = {"position": (0.0, 0.0), "sight": (0.0, 0.0)}
DOWN, UP = (np.array([0.0, 0.0, z, 1.0], np.float32) for z in (-0.5, 0.5))
OPEN = np.array([0.0, 0.0, 0.5, -1.0], np.float32)


@pytest.fixture(scope="module")
def env():
    made = gymnasium.make("palpo/Pick-v1", errors={"noise": 0.0})
    yield made
    made.close()


def led(env, actions, **options):
    env.reset(seed=1, options=options)
    total, done = 0.0, False
    for action in actions:
        if done:
            break
        _, reward, done, _, told = env.step(action)
        total += reward
    return total, done, told


def test_it_keeps_to_gymnasiums_interface(env):
    check_env(env.unwrapped, skip_render_check=True)


def test_the_same_seed_is_the_same_episode_and_another_is_another(env):
    actions = np.random.default_rng(3).uniform(-1.0, 1.0, (20, 4)).astype(np.float32)
    one, two, third = (episode(env, actions, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(one[0], two[0]) and one[1] == two[1]
    assert not np.array_equal(one[0], third[0])


def test_a_load_that_was_pushed_on_is_lifted_and_one_that_was_not_stays(env):
    """7 mm down, 1 mm more than the cup's push asks; then up. 5.5 mm are half of that push."""
    down, up = [DOWN] * 7, [UP] * 80
    total, done, told = led(env, down + up, **MIDDLE)
    assert done and told["held"] == 1.0 and told["height_m"] >= 0.05
    assert total == pytest.approx(1.1, abs=0.02)
    total, done, told = led(env, down[:5] + up, **MIDDLE)
    assert not done and told["held"] == 0.0 and told["height_m"] < 1e-3 and total < 0.01


def test_a_load_that_hangs_aside_peels_off_and_an_open_valve_drops_it(env):
    """15 mm aside of its middle the weight's moment is what a rim of 16 mm bears at a tenth of it."""
    _, _, aside = led(env, [DOWN] * 7 + [UP] * 80, position=(0.03, 0.0), sight=(0.0, 0.0))
    assert aside["held"] == 0.0
    total, done, told = led(env, [DOWN] * 7 + [UP] * 40 + [OPEN] * 20, **MIDDLE)
    assert told["held"] == 0.0 and (not done or total < 0.5)


def test_what_it_cannot_be_made_of_is_refused():
    with pytest.raises(Refusal, match="mass is -1"):
        gymnasium.make("palpo/Pick-v1", errors={"mass": -1})
    with pytest.raises(Refusal, match="cup 'huge' is unknown"):
        gymnasium.make("palpo/Pick-v1", cup="huge")
