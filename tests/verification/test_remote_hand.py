"""A hand at the far end of a channel: no energy comes out that was not paid in, whatever is late or lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.app.devices.device import to_device
from palpo.app.devices.mock import scripted_path
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.runtime.slow_thread import SlowThread, lock_step_run
from palpo.app.systems.system import check_kind, make_rig
from palpo.benchmarks.remote import DEPTH, DT, UPRIGHT, RemoteRun, in_and_out, on_a_wall
from palpo.config.load import load_scene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import EXTERNAL, HandGrip, device_read, device_write, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.remote import (
    BRAKE,
    BUTTONS,
    FOLLOWING,
    FULL,
    JUMP,
    LEAVING,
    PASSED,
    RESERVE,
    ROUND,
    SPEED,
    TURN,
    USED,
    VECTOR,
    WORDS,
    hand_tick,
    hear,
    make_end,
    scene_tick,
    tell,
)
from palpo.haptics.velocity import estimate_velocity, make_velocity_window
from palpo.physics.exchange.port import make_port
from tests.servo.wall import make_wall

ROUNDING = 1e-12
"""Sums of some thousand energies of a few millijoules [J], and of forces [N]."""


def assert_passive(run):
    paid_h, given_h, paid_s, given_s, work = run.energies
    # the hand's end by itself, by its encoder, and by where the stylus really was
    assert (given_h <= paid_h + ROUNDING).all()
    assert (work <= ROUNDING).all()
    # the scene's end by what it was passed, and both together
    assert (given_s <= paid_h + paid_s + ROUNDING).all()
    assert (given_h + given_s <= paid_h + paid_s + ROUNDING).all()
    assert np.linalg.norm(np.diff(run.felt, axis=0), axis=1).max() <= JUMP * DT + ROUNDING


def against_a_wall(stiffness, positions, delay, loss, **options):
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    limits = make_limits(3.3, max_rate=5000.0, fades=AT_ONCE, hand_speed=np.inf)
    wall = make_wall(external, stiffness, limits=limits)
    hand = options.pop("hand", None) or make_mock(TOUCH, positions)
    run = RemoteRun(wall.servo, hand, delay, loss, **options)
    run.wall = wall
    run.make(len(positions))
    return run


def along_x(x):
    return np.column_stack([x, 0.0 * x, 0.0 * x])


@pytest.mark.parametrize("delay", [0, 5, 50, 200])
@pytest.mark.parametrize("loss", [0.0, 0.05, 0.2])
def test_in_contact_with_a_wall_no_more_comes_out_than_went_in(delay, loss):
    run = on_a_wall(delay, loss)
    assert np.abs(run.commanded).max() > 0.2, "the wall was touched"
    assert np.abs(run.felt).max() > 0.05, "and felt"
    assert_passive(run)


def test_the_same_channel_without_its_control_makes_energy():
    """Which is why it is there: the reference that the law above is held against."""
    run = against_a_wall(300.0, in_and_out(6000), 50, 0.05, controlled=False)
    paid_h, given_h, paid_s, given_s, work = run.energies
    assert (given_h + given_s - paid_h - paid_s).max() > 1e-3 and work.max() > 1e-3
    # and the network's gaps are jumps of its force
    assert np.abs(np.diff(run.felt, axis=0)).max() > JUMP * DT


@settings(deadline=None, max_examples=25)
@given(
    st.integers(0, 200), st.floats(0.0, 0.9), st.integers(0, 1000), st.floats(50.0, 2000.0),
    st.floats(0.0, 1000.0), st.floats(0.0, 6.0), st.floats(0.0, 0.3),
)  # fmt: skip
def test_no_delay_loss_wall_grip_or_friction_makes_energy(delay, loss, seed, wall, grip, damping, friction):
    path = in_and_out(6000)[3000:4500]
    hand = make_mock(TOUCH, path, grip=HandGrip(grip, damping))._replace(friction=friction)
    assert_passive(against_a_wall(wall, path, delay, loss, seed=seed, hand=hand))


def test_without_delay_the_wall_is_felt_as_it_is_once_the_hand_has_paid_ahead():
    run = on_a_wall(0, 0.0)
    felt, had = run.felt[2000:4000, 0], run.commanded[2000:4000, 0]
    assert np.abs(felt).max() == pytest.approx(np.abs(had).max(), rel=0.01)
    # what differs is the brake, which makes up for what is not there yet, and is as strong both ways
    speed = 2 * np.pi * DEPTH
    assert np.abs(felt - had).max() < BRAKE * speed
    assert felt.mean() == pytest.approx(had.mean(), rel=0.03)


def test_in_free_air_the_scene_s_hand_follows_late_and_without_error():
    speed, delay = 0.05, 40
    path = along_x(speed * np.arange(1000) * DT)
    hand = make_virtual_device(path)
    run = against_a_wall(0.0, path, delay, 0.0, hand=hand, jitter=0)
    behind = run.port.position[0] - run.scene.position[0]
    # a first-order follower, stepped exactly, lags its ramp by tau - T / 2 and the delay, within a tick
    assert behind == pytest.approx(speed * (delay * DT + FOLLOWING), abs=1.5 * speed * DT)
    _, given_h, paid_s, given_s, _ = run.energies
    assert not given_h.any() and not paid_s.any() and not given_s.any()
    assert run.hand.words["short"][0] == run.scene.words["short"][0] == 0, "no force is held back"


def test_ticks_on_which_the_force_is_held_back_are_counted_and_no_others():
    """Of a hand that has paid nothing in all, of one that has paid ahead none."""
    wanted, ticks = np.array([1.0, 0.0, 0.0]), 50
    for paid, short in ((0.0, ticks), (1.0, 0)):
        end, force = make_end(TOUCH.max_force, TOUCH.resolution, DT), np.zeros(3)
        end.joules["paid"][0] = end.joules["passed"][0] = end.joules["granted"][0] = paid
        end.joules["way"][0] = 1.0
        end.vector[:] = wanted
        for _ in range(ticks):
            hand_tick(end, np.zeros(3), force, DT, force)
        assert end.words["short"][0] == short
        assert (force[0] == wanted[0]) == (short == 0)


def test_a_hand_is_braked_until_both_ends_have_their_energy_and_then_no_more():
    x = 0.02 * np.sin(2 * np.pi * 1.5 * np.arange(8000) * DT)
    run = against_a_wall(0.0, along_x(x), 30, 0.05)
    paid, given, _, _, _ = run.energies
    felt = np.linalg.norm(run.felt, axis=1)
    assert given[-1] < 0.01 * paid[-1], "the brake takes"
    assert FULL < paid[-1] - given[-1] < 1.1 * (FULL + RESERVE)
    assert run.hand.joules["passed"][0] == pytest.approx(FULL, rel=0.02)
    assert 0.5 < felt[:500].max() <= 1.2 * BRAKE * np.abs(np.diff(x)).max() / DT
    # what is missing falls by a factor in each swing
    assert felt[7000:].max() < 0.05 * felt[:500].max()


def test_a_hand_at_rest_between_two_counts_feels_no_brake():
    run = against_a_wall(0.0, along_x(np.zeros(3)), 5, 0.0)
    counts = 0.5 * TOUCH.resolution * (1.0 + np.sign(np.sin(np.arange(2000) ** 1.3)))
    for x in counts:
        run.hand.words["newest"][0] = 1
        hand_tick(run.hand, np.array([x, 0.0, 0.0]), run.force, DT, run.force)
        assert not run.force.any()


@pytest.mark.parametrize("scene", ["probe", "hapco-block"])
def test_in_contact_with_a_scene_at_50_ms_and_5_percent_loss_the_channel_stays_passive(scene):
    spec = load_scene(scene)
    kind, workspace = check_kind(spec, None, True), workspace_of(spec)
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL, dt=spec.rates.dt)
    rig = make_rig(spec, kind, lambda held: external, workspace, limits_of(spec), threads=False)
    path = to_device(scripted_path(spec), workspace)
    ticks = min(path.ticks, 4000)
    run = RemoteRun(rig.servo, make_mock(TOUCH, path.rows(0, ticks)[0]), 50, 0.05)
    try:
        lock_step_run(rig, SlowThread(rig, ()), ticks, run.make, lambda: None)
    finally:
        rig.low.close()
    assert run.tick >= 1000
    assert np.linalg.norm(run.commanded, axis=1).max() > 0.2, "the scene was touched"
    assert np.linalg.norm(run.felt, axis=1).max() > 0.1, "and felt at the other end"
    assert_passive(run)


# ---- whoever lies at the other end


def lying(force, passed, used, ticks=3000):
    """(work on the hand, by its encoder, of each tick; forces) under a peer that claims and asks for this."""
    t = np.arange(ticks) * DT
    hand = make_mock(TOUCH, along_x(0.02 * np.sin(2 * np.pi * t)))
    end, message = make_end(TOUCH.max_force, hand.resolution), np.zeros(WORDS)
    port, sent, works, forces = make_port(), np.zeros(3), [], []
    for tick in range(ticks):
        tell(make_end(1.0), force(tick), UPRIGHT, 0, 0.0, message)
        message[PASSED], message[USED] = passed, used
        assert hear(end, tick + 1, message)
        device_read(hand, tick, port)
        hand_tick(end, port.position, sent, DT, sent)
        before = hand.position.copy()
        device_write(hand, sent)
        works.append(sent @ (hand.position - before))
        forces.append(sent.copy())
    return np.array(works), np.array(forces), end


@pytest.mark.parametrize("passed", [0.0, 1e300])
@pytest.mark.parametrize("used", [-1e300, 0.0, 1e300])
@pytest.mark.parametrize("kind", ["steady", "huge", "shaking"])
def test_no_claim_of_the_other_end_gives_the_hand_more_than_it_has_paid(passed, used, kind):
    forces = {
        "steady": lambda k: np.array([3.3, 0.0, 0.0]),
        "huge": lambda k: np.array([-1e3, 1e3, 1e3]),
        "shaking": lambda k: np.array([3.3 * (-1) ** (k // 40), 0.0, 0.0]),
    }
    works, sent, _ = lying(forces[kind], passed, used)
    assert np.cumsum(works).max() <= ROUNDING
    assert np.linalg.norm(sent, axis=1).max() <= TOUCH.max_force + ROUNDING
    assert np.linalg.norm(np.diff(sent, axis=0), axis=1).max() <= JUMP * DT + ROUNDING


def test_a_scene_is_moved_by_no_more_than_the_hand_s_force_could_have_done_on_its_way():
    scene, message = make_end(3.3), np.zeros(WORDS)
    position, velocity, sent, work = np.zeros(3), np.zeros(3), np.array([-3.3, 0.0, 0.0]), 0.0
    for tick in range(1000):
        tell(make_end(1.0), np.array([1.0 if tick else 0.0, 0.0, 0.0]), UPRIGHT, 0, 0.0, message)
        message[PASSED] = 1e300
        assert hear(scene, tick + 1, message)
        scene_tick(scene, sent, DT, position, velocity)
        work -= sent @ velocity * DT
    # a metre in a tick: as far as a hand goes in that tick
    assert 0.0 < work <= ROUND * 3.3 * 2 * SPEED * DT + ROUNDING


# ---- the velocity


@pytest.mark.parametrize("speed", [0.02, 0.05, 0.3])
def test_the_velocity_of_an_even_motion_is_right_to_a_count_over_the_window(speed):
    window, velocity, error = make_velocity_window(TOUCH.resolution, DT), np.zeros(3), []
    for k in range(1, 400):
        x = np.round(speed * k * DT / TOUCH.resolution) * TOUCH.resolution
        estimate_velocity(window, np.array([x, -x, 0.0]), velocity)
        assert velocity[1] == -velocity[0] and velocity[2] == 0.0
        error.append(abs(velocity[0] - speed))
    # each end of a slope of 15 ticks is wrong by half a count at most
    assert max(error[20:]) <= TOUCH.resolution / (15 * DT) + 1e-9
    assert TOUCH.resolution / DT > 10 * max(error[20:]), "as a difference of two counts is not"


def test_the_velocity_of_exact_positions_is_their_difference_and_turns_at_once():
    window, velocity = make_velocity_window(0.0, DT), np.zeros(3)
    x = np.concatenate([np.linspace(0.0, 0.05, 200), np.linspace(0.05, 0.0, 100)])
    for k, here in enumerate(x):
        estimate_velocity(window, np.array([here, 0.0, 0.0]), velocity)
        if k:
            assert velocity[0] == pytest.approx((here - x[k - 1]) / DT, rel=1e-4)


# ---- messages


def test_an_old_or_doubled_message_is_not_heard():
    one, other, message = make_end(1.0), make_end(1.0), np.zeros(WORDS)
    one.joules["passed"][0] = 2.0
    first = tell(one, np.array([1.0, 2.0, 3.0]), UPRIGHT, 0, 0.0, message), message.copy()
    one.joules["passed"][0] = 5.0
    second = tell(one, np.array([4.0, 5.0, 6.0]), UPRIGHT, 3, 0.0, message), message.copy()
    assert hear(other, *second)
    for again in (second, first, second, first):
        assert not hear(other, *again)
    assert other.vector.tolist() == [4.0, 5.0, 6.0] and other.joules["granted"][0] == 5.0
    assert other.joules["given"][0] == 0.0 and other.words["pressed"][0] == 3


def test_the_hand_s_end_counts_the_ticks_of_silence_from_the_first_message_on():
    end, message, zero = make_end(1.0), np.zeros(WORDS), np.zeros(3)
    other, quiet = make_end(1.0), []
    for ticks in (3, 4, 2):
        for _ in range(ticks):
            hand_tick(end, zero, zero, DT, np.zeros(3))
            quiet.append(int(end.words["quiet"][0]))
        assert hear(end, tell(other, zero, UPRIGHT, 0, 0.0, message), message)
    assert quiet == [0, 0, 0, 1, 2, 3, 4, 1, 2]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (PASSED, np.nan), (USED, np.inf), (VECTOR + 1, -np.inf), (VECTOR, 1e4), (VECTOR + 2, -1e4),
        (TURN, 0.0), (TURN + 1, 2.0), (BUTTONS, -1.0), (BUTTONS, 0.5), (BUTTONS, 1e19), (LEAVING, 2.0),
    ],
)  # fmt: skip
def test_what_is_no_message_is_not_heard(place, value):
    end, message = make_end(1.0), np.zeros(WORDS)
    tell(make_end(1.0), np.ones(3), UPRIGHT, 0, 0.0, message)
    message[place] = value
    assert not hear(end, 1, message)
    assert not end.vector.any() and end.joules["granted"][0] == 0.0 and end.words["newest"][0] == 0
