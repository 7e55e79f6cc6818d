"""HapCo at two rates: at rest as at one, on the way to first order in the slow period, and repeatable."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import run
from palpo.physics.engine.build import Bound
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import tick, tick_data
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.frames import patience_of
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.port import OK, WAITING
from palpo.physics.systems.hapco.detection import Detection
from palpo.physics.systems.hapco.loop import make_multirate
from palpo.physics.systems.hapco.servo import BodyPair, Hold, default_settings, make_servo
from palpo.physics.systems.hapco.two_rates import two_rate_link
from tests.verification.hapco_bench import bodies, bottom

SPEED = 1e-2
DEPTH, WAY = 1e-3, 3e-3
REST = 200
RATIOS = (20, 10, 5)
TOLERANCE = 1e-10
"""Of the solver."""
COUPLED = Hold(direct=False, gains=Gains(400.0, 2.0, 0.5, 1e-3))


def setup(mu, hold):
    """What both loops are made from; contacts within 2 mm, far more than a slow period's way."""
    settings = default_settings(mu, TOLERANCE, 100000, gains=hold.gains)
    return *bodies(), Detection(bottom(), edges=False), hold, settings


@cache
def path(speed=SPEED):
    """Down, rest, along, rest: (n, 3) [m]; and the last tick of each."""
    down, along = np.array([0.0, -DEPTH, 0.0]), np.array([WAY, 0.0, 0.2 * WAY])
    n, m = round(DEPTH / speed * 1e3), round(WAY / speed * 1e3)
    here = bodies()[0].centre
    t, s = np.linspace(0.0, 1.0, n + 1)[1:, None], np.linspace(0.0, 1.0, m + 1)[1:, None]
    parts = (
        np.tile(here, (60, 1)), here + t * down, np.tile(here + down, (REST, 1)), here + down + s * along,
        np.tile(here + down + along, (REST, 1)),
    )  # fmt: skip
    return np.concatenate(parts), np.cumsum([len(part) for part in parts]) - 1


def lead(state, step, point):
    """One tick with the hand there; force and torque."""
    state.port.position[:] = point
    assert step() == OK
    return np.concatenate([state.port.force, state.port.torque])


@cache
def servo_run(mu, hold, speed=SPEED):
    """Feedback of the one loop (n, 6)."""
    ticks, state = make_servo(BodyPair(*setup(mu, hold)))
    data = tick_data(ticks)
    return np.array([lead(state, lambda: tick(data), p) for p in path(speed)[0]])


def multirate_run(mu, hold, ratio, speed=SPEED, points=None):
    """Feedback of the two loops (n, 6), frame and age of each tick (n, 2), and the servo's side."""
    servo, m, low = make_multirate(BodyPair(*setup(mu, hold), ratio=ratio))
    data = tick_data(servo)
    lock, rows, seen = LockedLoops([low]), [], []
    points = iter(path(speed)[0] if points is None else points)

    def ticks(n):
        for _ in range(n):
            rows.append(lead(m.servo, lambda: tick(data), next(points)))
            seen.append(m.servo.port.status[["frame", "age"]][0].item())

    lock.advance(len(path(speed)[0]), ticks)
    return np.array(rows), np.array(seen), m


two_rates = cache(lambda *case: multirate_run(*case)[0])


@pytest.mark.parametrize("hold", [Hold(), COUPLED])
def test_at_rest_both_loops_give_the_same_force(hold):
    """Without friction an equilibrium has no history: the loops differ by the solver's tolerance.

    What is frozen converges with the frames: in ten of them, to some 1e-8 of the force.
    """
    one, two = servo_run(0.0, hold), two_rates(0.0, hold, 10)
    for end in (path()[1][2], path()[1][4]):
        assert np.linalg.norm(one[end, :3]) > 0.1
        np.testing.assert_allclose(two[end], one[end], atol=1e-7 * np.linalg.norm(one[end, :3]))


@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("hold", [Hold(), COUPLED])
def test_on_a_slow_path_the_loops_differ_by_first_order_in_the_low_period(mu, hold):
    """Twice the period is twice the error, from 5 to 20 ticks; at 1 cm/s and 50 Hz it is a few per cent."""
    first, last = path()[1][2], path()[1][3]
    one = servo_run(mu, hold)[first:last, :3]
    errors = [
        np.linalg.norm(two_rates(mu, hold, ratio)[first:last, :3] - one, axis=1).max() for ratio in RATIOS
    ]
    assert errors[0] < 0.05 * np.linalg.norm(one, axis=1).max()
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1.0, atol=0.15)


def test_a_frame_is_visible_one_low_period_after_its_step_begins():
    seen = multirate_run(0.0, Hold(), 20)[1]
    ticks = np.arange(len(seen))
    np.testing.assert_array_equal(seen[:, 0], 1 + ticks // 20)
    np.testing.assert_array_equal(seen[:, 1], ticks % 20)


def test_the_force_steps_at_a_frame_by_little_of_what_the_hand_has_moved():
    """Beside the step that the servo alone makes, by less than a tenth of stiffness times way in a period.

    What is frozen varies over the 6 mm between nodes, the period's way is 0.2 mm. At rest the steps die out
    with the frames.
    """
    ratio, marks = 20, path()[1]
    one, (two, seen, _) = servo_run(0.3, Hold())[:, :3], multirate_run(0.3, Hold(), ratio)
    steps = np.linalg.norm(np.diff(two[:, :3], axis=0), axis=1)
    adopted = np.flatnonzero(seen[1:, 1] == 0)
    own = np.linalg.norm(np.diff(one, axis=0), axis=1).max()
    stiffness = np.linalg.norm(one[marks[2]]) / DEPTH
    assert steps[adopted].max() < own + 0.1 * stiffness * SPEED * ratio * 1e-3
    assert steps[adopted[adopted > marks[3] + 6 * ratio]].max() < 1e-3 * own


@pytest.mark.parametrize("hold", [Hold(), COUPLED])
def test_action_is_reaction(hold):
    """The hand feels the contacts' sum and moment; and the bodies, shaped by opposite forces, touch."""
    two, _, m = multirate_run(0.3, hold, 10)
    s, picture = m.servo, m.servo.picture
    slot, n = acquire(s.picture_control)[0], int(m.servo.engine.contacts.count[0]["found"])
    forces, points = picture.contact_force[slot, :n], picture.contact_point[slot, :n]
    np.testing.assert_allclose(two[-1, :3], forces.sum(axis=0), atol=1e-15)
    moment = np.cross(points - picture.position[slot], forces).sum(axis=0)
    np.testing.assert_allclose(two[-1, 3:], moment, atol=1e-15)
    c = s.tracked.found
    apart = [
        c.frame[k, 0] @ (
            c.weights[0, k] @ s.mobile_x[c.slots[0, k]] - c.weights[1, k] @ s.fixed_x[c.slots[1, k]]
        ) for k in range(n) if s.engine.r[3 * k] > 0.0
    ]  # fmt: skip
    assert len(apart) > 1
    np.testing.assert_allclose(apart, 0.0, atol=1e-6 * DEPTH)


def test_what_sticks_holds_on_across_frames():
    """A load well below mu times the pressure stays while forty frames pass over it, and is the servo's."""
    aside = np.array([2e-5, 0.0, 0.0])
    points, marks = path()
    points = points.copy()
    points[marks[2] + 1 :] = points[marks[2]] + aside
    ticks, state = make_servo(BodyPair(*setup(0.8, Hold())))
    data = tick_data(ticks)
    one = np.array([lead(state, lambda: tick(data), p) for p in points])
    two = multirate_run(0.8, Hold(), 10, points=points)[0]
    early, late = two[marks[2] + 100], two[-1]
    assert abs(late[0] - two[marks[2], 0]) > 1e-3
    np.testing.assert_allclose(late, early, atol=1e-7)
    # the anchors were set on paths that differ by a tick
    np.testing.assert_allclose(late[:3], one[-1, :3], atol=1e-4 * late[1])


def test_a_turning_hand_feels_what_the_servo_alone_makes_of_it():
    """The contacts' arms and W turn with a frame's delay: 0.4 degrees at 50 Hz."""
    one = _turned(None)
    errors = [np.abs(_turned(ratio) - one)[40:].max() for ratio in (20, 10)]
    assert errors[1] < 0.7 * errors[0] < 0.05 * np.abs(one).max()


def _turned(ratio):
    """Feedback of a hand that presses and turns (200, 6), in the one loop or the two."""
    if ratio is None:
        ticks, state = make_servo(BodyPair(*setup(0.0, Hold())))
        data = tick_data(ticks)
        return np.array([_turn(state, lambda: tick(data), k) for k in range(200)])
    servo, m, low = make_multirate(BodyPair(*setup(0.0, Hold()), ratio=ratio))
    data = tick_data(servo)
    lock, rows = LockedLoops([low]), []
    for _ in range(200):
        lock.advance(1, lambda _: rows.append(_turn(m.servo, lambda: tick(data), len(rows))))
    return np.array(rows)


def _turn(state, step, k):
    """One tick of a hand that presses by half a millimetre and turns by 0.02 degrees a tick."""
    state.port.orientation[:] = np.roll(Rotation.from_rotvec((0.0, 3.5e-4 * k, 0.0)).as_quat(), 1)
    return lead(state, step, bodies()[0].centre - np.array([0.0, min(5e-4, 5e-6 * k), 0.0]))


def test_time_stands_still_while_a_frame_is_overdue():
    """The force stays, the frame's age goes on, and the next frame ends the wait."""
    ratio, here = 4, bodies()[0].centre
    servo, m, low = make_multirate(BodyPair(*setup(0.0, Hold()), ratio=ratio))
    data = tick_data(servo)
    low.step()
    low.publish(0)
    patience, _ = patience_of(ratio, ratio, 1e-3)
    for k in range(patience):
        force = lead(m.servo, lambda: tick(data), here - np.array([0.0, 1e-5 * k, 0.0]))
    for k in range(1, 4):
        np.testing.assert_array_equal(lead(m.servo, lambda: tick(data), here), force)
        assert m.servo.port.status["age"][0] == patience + k
        assert m.servo.port.status["flags"][0] == WAITING
    assert m.servo.port.status["contacts"][0] > 0
    assert low.step() == patience and low.known() == patience
    low.publish(patience)
    assert not lead(m.servo, lambda: tick(data), here + np.array([0.0, 1e-3, 0.0])).any()
    assert m.servo.port.status["age"][0] == 0 and low.in_force()
    assert servo.ticks["calls"] - servo.ticks["done"] == 3


def test_settings_come_with_the_frame():
    servo, m, low = make_multirate(BodyPair(*setup(0.3, Hold()), ratio=2))
    data = tick_data(servo)
    low.step()
    low.publish(0)
    low.values["friction"] = 0.7
    lead(m.servo, lambda: tick(data), bodies()[0].centre)
    assert m.servo.live["friction"] == 0.3
    low.step()
    low.publish(1)
    lead(m.servo, lambda: tick(data), bodies()[0].centre)
    assert m.servo.live["friction"] == 0.7 and m.servo.frames.in_force["frame"][0] == 2


def test_the_compiled_function_takes_this_servo_only():
    _, m, _ = make_multirate(BodyPair(*setup(0.3, Hold())))
    with pytest.raises(TypeError, match="MultirateServo is not laid out"):
        Bound.bind(two_rate_link, m._replace(fresh=m.fresh.astype(float)))


# Pressed, dragged and lifted on the coarser mesh.
QUICK = (
    'loops="multirate"',
    "safety.fade_in=0.05",
    "device.path=[[0, 0, 0.0555, 0], [0.15, 0, 0.045, 0], [0.35, 0.006, 0.045, 0], [0.5, 0.006, 0.056, 0]]",
    "bodies.punch.placement.position=[0, 0.0355, 0]",
    "bodies.punch.clamped=[{box=[[-1, 0.0554, -1], [1, 1, 1]]}]",
    "bodies.punch.contact=[{box=[[-1, -1, -1], [1, 0.0156, 1]]}]",
    "workspace.offset=[0, 0.0555, 0]",
)


@pytest.mark.parametrize("lock_step", [True, False])
def test_a_run_repeats_bit_for_bit(tmp_path, monkeypatch, lock_step):
    """In lock-step, and in threads by the schedule of its frames."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "run.h5"
    run(Options("hapco-16", QUICK, "mock", lock_step=lock_step, baseline=False, duration=0.5, record=path))
    result = replay(path).result
    assert result["force_N"]["max_norm"] > 0.1
    assert result["replay"]["equal"] and result["replay"]["ticks"] > 250
