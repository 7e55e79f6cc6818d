"""The Gymnasium environment of a snap connection: its interface, its seeds, and what can be done in it."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import palpo.app.gym  # noqa: E402, F401
from palpo.app.cli.refusal import Refusal  # noqa: E402

COARSE = ("connector.mesh=coarse",)
PUSH = np.array([0.0, -1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
ALIGNED = {"position": (0.0, 0.0, 0.0), "tilt": (0.0, 0.0, 0.0)}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def env(own_cache):
    made = gymnasium.make("palpo.snap-v0", overrides=COARSE)
    yield made
    made.close()


def episode(env, actions, **reset):
    """Observations, rewards and the last answer of an episode."""
    seen, rewards = [env.reset(**reset)[0]], []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.array(seen), rewards, terminated, truncated, info


def test_it_keeps_to_gymnasiums_interface(env, recwarn):
    check_env(env.unwrapped, skip_render_check=True)
    assert not [str(w.message) for w in recwarn if "gymnasium" in str(w.filename)]


def test_the_same_seed_is_the_same_episode_and_another_is_another(env):
    actions = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 6)).astype(np.float32)
    actions[:, 1] = -1.0
    other = gymnasium.make("palpo.snap-v0", overrides=COARSE)
    one, two, third = (
        episode(env, actions, seed=7),
        episode(other, actions, seed=7),
        episode(env, actions, seed=8),
    )
    assert np.array_equal(one[0], two[0]) and one[1] == two[1]
    assert not np.array_equal(one[0][: len(third[0])], third[0][: len(one[0])])


def test_an_aligned_plug_is_pushed_home_and_the_click_is_in_the_observation(env):
    seen, rewards, terminated, truncated, info = episode(env, 60 * [PUSH], options=ALIGNED)
    assert info["latched"] and terminated and not truncated
    # the whole stroke and the latch, less some force
    assert 1.3 < sum(rewards) < 1.98
    push = seen[:, 13]
    assert 0.7 < push.max() < 2.0 and push[push.argmax() :].min() < 0.2 * push.max()


def test_pose_error_is_drawn_within_its_bounds_and_costs_who_does_not_correct_it(env):
    drawn = [env.reset(seed=seed)[1] for seed in range(20)]
    position, tilt = (np.array([info[key] for info in drawn]) for key in ("position", "tilt"))
    assert not position[:, 1].any() and 3e-3 < np.abs(position).max() <= 6e-3
    assert 0.07 < np.abs(tilt).max() <= 0.15
    off = {"position": (4e-3, 0.0, 0.0), "tilt": (0.0, 0.0, 0.1)}
    blind = sum(episode(env, 60 * [PUSH], options=off)[1])
    back = np.array([-0.8, 0.0, 0.0, 0.0, 0.0, -1.0], np.float32)
    led = sum(
        episode(env, [*(10 * [back]), *(10 * [back * [0, 0, 0, 0, 0, 1]]), *(60 * [PUSH])], options=off)[1]
    )
    assert led > 1.3 > blind + 0.1


def test_the_target_stays_in_its_box_whatever_is_asked_of_it(env):
    wild = np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0], np.float32)
    seen = episode(env, 80 * [wild], options=ALIGNED)[0]
    stroke = env.unwrapped.model.connector.stroke
    np.testing.assert_allclose(stroke * seen[-1, :3], [10e-3, 4e-3, -10e-3], rtol=1e-5)
    np.testing.assert_allclose(seen[-1, 3:6], [1.0, -1.0, 1.0], rtol=1e-5)


def test_another_scene_takes_its_own_place_and_one_of_another_system_is_refused():
    lan = gymnasium.make("palpo.app.gym:palpo.snap-v0", scene="snap-lan")
    assert episode(lan, 120 * [PUSH], options=ALIGNED)[4]["latched"]
    with pytest.raises(Refusal, match='probe: system = "multirate"; this environment needs a snap scene'):
        gymnasium.make("palpo.snap-v0", scene="probe")


def test_a_picture_shows_the_socket_and_the_plug():
    from palpo.render.gl import RenderUnavailable

    env = gymnasium.make("palpo.snap-v0", overrides=COARSE, render_mode="rgb_array")
    episode(env, 15 * [PUSH], options=ALIGNED)
    nodes = env.unwrapped.model.connector.prongs[0].mesh.nodes
    try:
        picture = env.render()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    finally:
        env.close()
    assert picture.shape == (480, 640, 3) and picture.std() > 10.0
    rest = env.unwrapped._visual.geometry.rest
    assert np.array_equal(rest[: len(nodes)], nodes)
