"""The Gymnasium environments of a snap connection: interface, seeds, and what can be done in them."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

import palpo.app.gym  # noqa: E402, F401
from palpo.app.cli.refusal import Refusal  # noqa: E402
from palpo.app.gym.snap_plant import NONE  # noqa: E402
from tests.scenes.episodes import episode  # noqa: E402

COARSE = ("connector.mesh=coarse", "contact.spacing=0.002")
FEW = {"variants": 2}
PUSH = np.array([0.0, -1.0, 0.0, 0.0, 0.0, 0.0], np.float32)
ALIGNED = {"position": (0.0, 0.0, 0.0), "tilt": (0.0, 0.0, 0.0)}
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def env(own_cache):
    made = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors=FEW)
    yield made
    made.close()


@pytest.fixture(scope="module")
def exact(own_cache):
    """The scene as it is, without noise."""
    made = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors=NONE)
    yield made
    made.close()


def test_it_keeps_to_gymnasiums_interface(env, recwarn):
    check_env(env.unwrapped, skip_render_check=True)
    assert not [str(w.message) for w in recwarn if "gymnasium" in str(w.filename)]


def test_the_same_seed_is_the_same_episode_and_another_is_another(env):
    actions = np.random.default_rng(3).uniform(-1.0, 1.0, (40, 6)).astype(np.float32)
    actions[:, 1] = -1.0
    other = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors=FEW)
    one, two, third = (
        episode(env, actions, seed=7),
        episode(other, actions, seed=7),
        episode(env, actions, seed=8),
    )
    assert np.array_equal(one[0], two[0]) and one[1] == two[1]
    assert not np.array_equal(one[0][: len(third[0])], third[0][: len(one[0])])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batch_is_bit_for_bit_what_single_environments_are(mode):
    n, told = 3, {"overrides": COARSE, "errors": FEW}
    single = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.make("palpo/Snap-v1", max_episode_steps=55, **told)] * n, autoreset_mode=mode
    )
    kind = {"num_envs": n, "vectorization_mode": "vector_entry_point", "max_episode_steps": 55}
    batch = gymnasium.make_vec("palpo/Snap-v1", **kind, threads=2, autoreset_mode=mode, **told)
    seen, seen_single = batch.reset(seed=11)[0], single.reset(seed=11)[0]
    assert np.array_equal(seen, seen_single)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(130):
        # pushed most of the time, so that episodes latch, break and run out of steps, and rigs change hands
        actions = (PUSH + 0.3 * rng.uniform(-1.0, 1.0, (n, 6))).astype(np.float32)
        ours, theirs = batch.step(actions), single.step(actions)
        for one, other in zip(ours[:4], theirs[:4], strict=True):
            assert np.array_equal(one, other)
        assert ours[4].keys() == theirs[4].keys()
        assert np.array_equal(ours[4]["travel_m"], theirs[4]["travel_m"])
        ends += int((ours[2] | ours[3]).sum())
    assert ends > n
    batch.close()


def test_an_aligned_plug_is_pushed_home_and_the_click_is_in_the_observation(exact):
    seen, rewards, terminated, truncated, info = episode(exact, 60 * [PUSH])
    assert info["latched"] and terminated and not truncated
    # the whole stroke and the latch, less some force
    assert 1.3 < sum(rewards) < 1.98
    push = seen[:, 13]
    assert 0.7 < push.max() < 2.0 and push[push.argmax() :].min() < 0.2 * push.max()


def test_errors_are_drawn_within_their_bounds(env):
    drawn = [env.reset(seed=seed)[1] for seed in range(20)]
    position, tilt = (np.array([info[key] for info in drawn]) for key in ("position", "tilt"))
    assert not position[:, 1].any() and 3e-3 < np.abs(position).max() <= 6e-3
    assert 0.07 < np.abs(tilt).max() <= 0.15
    nominal = env.unwrapped.plant.nominal
    friction = np.array([info["friction"] for info in drawn]) / nominal.friction
    assert 0.7 <= friction.min() < 0.9 and 1.1 < friction.max() <= 1.3
    modulus = {info["modulus"] for info in drawn}
    assert len(modulus) == FEW["variants"] == len({info["variant"] for info in drawn})
    assert all(0.85 <= m / nominal.material.youngs_modulus <= 1.15 for m in modulus)
    assert {round(1e3 * info["delay"]) for info in drawn} <= set(range(11))


def test_who_corrects_the_error_is_better_off_than_who_pushes_blindly(exact):
    off = {"position": (4e-3, 0.0, 0.0), "tilt": (0.0, 0.0, 0.1)}
    blind = sum(episode(exact, 60 * [PUSH], options=off)[1])
    back = np.array([-0.8, 0.0, 0.0, 0.0, 0.0, -1.0], np.float32)
    led = sum(
        episode(exact, [*(10 * [back]), *(10 * [back * [0, 0, 0, 0, 0, 1]]), *(60 * [PUSH])], options=off)[1]
    )
    assert led > 1.3 > blind + 0.1


def test_what_is_measured_comes_as_late_as_was_drawn_and_no_later(env):
    """Without noise, a delay of one step shows what no delay showed the step before."""
    late = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors={"noise": 0.0, "variants": 1})
    own = {**ALIGNED, "friction": 0.163, "variant": 0}
    now, then = (
        episode(late, 30 * [PUSH], seed=0, options={**own, "delay": delay})[0] for delay in (0.0, 10e-3)
    )
    assert np.array_equal(now[:, :6], then[:, :6]), "the target is known at once"
    assert np.array_equal(now[1:-1, 6:], then[2:, 6:])
    assert np.abs(now[2:, 6:] - then[2:, 6:]).max() > 0.1


def test_noise_has_the_deviation_that_was_asked_for():
    noisy = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors={**vars(NONE), "noise": 0.05})
    rest = np.zeros(6, np.float32)
    seen = episode(noisy, 200 * [rest], seed=1)[0][:, 6:]
    assert seen.std() == pytest.approx(0.05, rel=0.05)  # 2400 draws: 1.5 % is one deviation of it


def test_the_target_stays_in_its_box_whatever_is_asked_of_it(exact):
    wild = np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0], np.float32)
    seen = episode(exact, 80 * [wild])[0]
    stroke = exact.unwrapped.plant.nominal.stroke
    np.testing.assert_allclose(stroke * seen[-1, :3], [10e-3, 4e-3, -10e-3], rtol=1e-5)
    np.testing.assert_allclose(seen[-1, 3:6], [1.0, -1.0, 1.0], rtol=1e-5)


def test_another_scene_takes_its_own_place_and_one_of_another_system_is_refused():
    lan = gymnasium.make("palpo.app.gym:palpo/Snap-v1", scene="snap-lan", overrides=(), errors=NONE)
    assert episode(lan, 120 * [PUSH])[4]["latched"]
    with pytest.raises(Refusal, match='probe: system = "multirate"; this environment needs a snap scene'):
        gymnasium.make("palpo/Snap-v1", scene="probe", overrides=())


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ({"noize": 0.1}, "there is no 'noize'"),
        ({"tilt": -0.1}, "tilt is -0.1; it must be zero or positive"),
        ({"friction": 1.0}, "friction is 1.0; it must be zero or positive and below 1"),
        ({"variants": 0}, "variants is 0; give a whole number"),
    ],
)
def test_errors_that_cannot_be_are_refused_by_name(errors, said):
    with pytest.raises(Refusal, match=said):
        gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors=errors)


def test_an_option_that_there_is_not_is_refused(env):
    with pytest.raises(Refusal, match="there is no 'tild'; there are position, tilt"):
        env.reset(options={"tild": (0.0, 0.0, 0.1)})
    with pytest.raises(Refusal, match=r"delays up to 0\.01 s"):
        env.reset(options={"delay": 1.0})


def test_a_picture_shows_the_socket_and_the_plug():
    from palpo.render.gl import RenderUnavailable

    env = gymnasium.make("palpo/Snap-v1", overrides=COARSE, errors=NONE, render_mode="rgb_array")
    episode(env, 15 * [PUSH])
    nodes = env.unwrapped.plant.nominal.prongs[0].mesh.nodes
    try:
        picture = env.render()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    finally:
        rest = env.unwrapped._artist._visual.geometry.rest
        env.close()
    assert picture.shape == (480, 640, 3) and picture.std() > 10.0
    assert np.array_equal(rest[: len(nodes)], nodes)
