"""The Gymnasium environment of a suction cup: its interface, its seeds, and what pressing and waiting do."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import palpo.app.gym  # noqa: E402, F401
from palpo.app.cli.refusal import Refusal  # noqa: E402
from palpo.studies.suction_led import led  # noqa: E402
from tests.scenes.episodes import episode  # noqa: E402

SCENE = {"errors": {"variants": 1, "noise": 0.0}}
DOWN, UP, STAY = (np.array([0.0, y, 0.0], np.float32) for y in (-1.0, 1.0, 0.0))
MIDDLE = {"position": (0.0, 0.0), "sight": (0.0, 0.0), "delay": 0.0}


@pytest.fixture(scope="module")
def env():
    made = gymnasium.make("palpo/Suction-v1", **SCENE)
    yield made
    made.close()


def test_it_keeps_to_gymnasiums_interface(env, recwarn):
    check_env(env.unwrapped, skip_render_check=True)
    assert not [str(w.message) for w in recwarn if "gymnasium" in str(w.filename)]


def test_the_same_seed_is_the_same_episode_and_another_is_another(env):
    actions = np.random.default_rng(3).uniform(-1.0, 1.0, (30, 3)).astype(np.float32)
    one, two, third = (episode(env, actions, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(one[0], two[0]) and one[1] == two[1]
    assert not np.array_equal(one[0], third[0])


def test_a_cup_that_was_pressed_lifts_the_cube_and_holds_it_and_one_that_stayed_above_does_not(env):
    pressed, missed = (
        episode(env, [*(n * [DOWN]), *(10 * [STAY]), *(70 * [UP]), *(260 * [STAY])], options=MIDDLE)
        for n in (22, 6)
    )
    assert pressed[4]["held"] and pressed[2] and sum(pressed[1]) > 0.0
    assert not missed[4]["held"] and sum(missed[1]) < sum(pressed[1]) - 0.5
    # the weight of the cube hangs on the gripper
    assert pressed[0][-1, 7] < missed[0][-1, 7]


def test_a_cube_that_falls_ends_the_episode_and_was_worth_the_time_that_it_hung(env):
    told = episode(env, [*(22 * [DOWN]), *(60 * [UP]), *(10 * [STAY]), *(90 * [DOWN])], options=MIDDLE)
    assert told[2] and not told[3] and not told[4]["held"] and told[4]["height_m"] < 5e-3
    # lifted all of the way, and held for a share of the time
    assert 1.0 < sum(told[1]) < 1.9


def test_sight_tells_where_the_middle_is_with_an_error_of_its_own(env):
    own = {"position": (7e-3, -4e-3), "sight": (1e-3, -0.5e-3), "delay": 0.0}
    aside = np.array([1.0, 0.0, -1.0], np.float32)
    seen = episode(env, 10 * [aside], options=own)[0]
    np.testing.assert_allclose(1e-2 * seen[0, 9:], [-6e-3, 3.5e-3], rtol=1e-5)
    # ten steps of 10 ms at 0.05 m/s
    np.testing.assert_allclose(1e-2 * seen[-1, 9:], [-11e-3, 8.5e-3], rtol=1e-5)


def test_who_goes_by_sight_holds_what_who_presses_where_it_stands_lets_fall():
    cup = led()
    own = {"position": (12e-3, -8e-3), "sight": (1e-3, 1e-3), "delay": 0.0, "variant": 0}
    held = []
    for gain in (0.0, 1.0):
        seen, told, over = cup.reset(seed=0, options=own)[0], {}, False
        while not over:
            # sight in 10 mm; an action stands for 50 ms at 0.05 m/s
            seen, _, ended, cut, told = cup.step(np.clip(4.0 * gain * seen[9:11], -1.0, 1.0))
            over = ended or cut
        held.append(told["held"])
    cup.close()
    assert held == [False, True]


def test_environments_in_processes_are_bit_for_bit_what_one_is(env):
    batch = gymnasium.make_vec("palpo/Suction-v1", num_envs=2, vectorization_mode="async", **SCENE)
    try:
        seen = [batch.reset(seed=3)[0][1]]
        seen += [batch.step(np.tile(DOWN, (2, 1)))[0][1] for _ in range(20)]
    finally:
        batch.close()
    assert np.array_equal(seen, episode(env, 20 * [DOWN], seed=4)[0])


def test_what_is_measured_comes_as_late_as_was_drawn(env):
    now, then = (episode(env, 25 * [DOWN], seed=0, options={**MIDDLE, "delay": d})[0] for d in (0.0, 0.02))
    assert np.array_equal(now[:, :3], then[:, :3]), "the target is known at once"
    assert np.array_equal(now[:-2, 3:9], then[2:, 3:9])
    assert np.abs(now[2:, 3:9] - then[2:, 3:9]).max() > 0.1


def test_a_scene_without_a_cup_in_the_hand_is_refused():
    with pytest.raises(
        Refusal, match="this environment needs a suction scene with one cup that a hand drives"
    ):
        gymnasium.make("palpo/Suction-v1", scene="snap")
    with pytest.raises(Refusal, match="there is no 'lead'"):
        gymnasium.make("palpo/Suction-v1", errors={"lead": 0.1})


def test_a_picture_shows_cup_and_cube():
    from palpo.render.gl import RenderUnavailable

    env = gymnasium.make("palpo/Suction-v1", render_mode="rgb_array", **SCENE)
    episode(env, 3 * [DOWN])
    try:
        picture = env.render()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    finally:
        env.close()
    assert picture.shape == (480, 640, 3) and picture.std() > 10.0
