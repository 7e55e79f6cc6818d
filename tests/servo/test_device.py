"""Laws of the virtual device: mechanics of the held stylus, and what its encoder can see."""

import numpy as np
import pytest
from scipy.linalg import expm

from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import (
    MAILBOX,
    HandGrip,
    device_read,
    device_write,
    make_virtual_device,
    send_target,
)
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.row import NAMES
from palpo.physics.exchange.port import make_port
from tests.servo.swing import oscillation_path
from tests.servo.wall import make_wall

T = 1e-3
MASS = 0.045
REST = [[0.0, 0.0, 0.0]]


def run(device, n, force=(0.0, 0.0, 0.0)):
    """Reported positions and velocities (n, 3) under a constant force."""
    port, sent = make_port(), np.array(force)
    positions, velocities = np.empty((n, 3)), np.empty((n, 3))
    for k in range(n):
        device_read(device, k, port)
        positions[k], velocities[k] = port.position, port.velocity
        device_write(device, sent)
    return positions, velocities


def stylus(**options):
    """A held stylus with nothing on it but what the test asks for."""
    return make_virtual_device(REST, mass=MASS, **({"grip": HandGrip(0.0, 0.0)} | options))


def test_a_free_stylus_falls_under_a_constant_force_as_f_t_squared_over_2m():
    positions, _ = run(stylus(), 200, (0.1, 0.0, -0.2))
    t = np.arange(200) * T
    # the second-order step is exact for a constant force
    assert positions[:, 0] == pytest.approx(0.1 / (2 * MASS) * t**2, rel=1e-10)
    assert positions[:, 2] == pytest.approx(-0.2 / (2 * MASS) * t**2, rel=1e-10)


def test_dry_friction_stops_a_stylus_after_m_v_squared_over_2f_and_it_sticks_there():
    device = stylus(friction=0.26)
    device.velocity[0] = 0.5
    positions, _ = run(device, 400)
    # the velocity is exact but in the substep of h = 0.25 ms in which it ends: 1/2 (F h / m v)^2 = 4e-6
    assert positions[-1, 0] == pytest.approx(MASS * 0.5**2 / (2 * 0.26), rel=1e-5)
    assert not device.velocity.any() and (positions[-1] == positions[-50]).all()


def test_a_stylus_sticks_to_the_last_bit_below_its_friction_and_slides_by_the_rest_above_it():
    held, _ = run(stylus(friction=0.26), 1000, (0.15, -0.21, 0.0))
    assert not held.any(), "0.258 N do not move it, however long they pull"
    positions, _ = run(stylus(friction=0.26), 200, (0.36, 0.0, 0.0))
    t = np.arange(200) * T
    assert positions[:, 0] == pytest.approx((0.36 - 0.26) / (2 * MASS) * t**2, rel=1e-10)


def test_in_a_hand_that_goes_steadily_friction_holds_the_stylus_back_by_f_over_k():
    path = np.outer(np.arange(4000) * T * 0.02, [1.0, 0.0, 0.0])
    positions, _ = run(make_virtual_device(path, grip=HandGrip(), friction=0.26, mass=MASS), 3000)
    # after 3 s the hand's swing, of time constant 2 m / c = 22 ms, is gone
    assert path[2999, 0] - positions[2999, 0] == pytest.approx(0.26 / 400.0, rel=1e-6)


@pytest.mark.parametrize("delay", [0.0, 0.5e-3, 1e-3, 2e-3, 3.25e-3])
def test_a_force_moves_the_stylus_once_the_delay_is_over(delay):
    positions, _ = run(stylus(delay=delay), 200, (0.1, 0.0, 0.0))
    late = np.maximum(np.arange(200) * T - delay, 0.0)
    assert positions[:, 0] == pytest.approx(0.1 / (2 * MASS) * late**2, rel=1e-10, abs=1e-18)


@pytest.mark.parametrize("delay", [-1e-3, 0.06, np.nan])
def test_a_delay_that_cannot_be_is_refused(delay):
    with pytest.raises(HapticsError, match="delay"):
        stylus(delay=delay)


def test_viscous_friction_decays_the_speed_exponentially():
    device = stylus(viscosity=0.9)
    device.velocity[1] = 0.3
    run(device, 50)
    assert device.velocity[1] == pytest.approx(0.3 * np.exp(-0.9 * 50 * T / MASS), rel=1e-10)


def test_a_hand_yields_to_a_static_force_by_f_over_k():
    positions, _ = run(stylus(grip=HandGrip()), 2000, (2.0, 0.0, 0.0))
    assert positions[-1] == pytest.approx([2.0 / 400.0, 0.0, 0.0], rel=1e-6)


def test_an_undamped_hand_oscillates_at_its_frequency_and_keeps_its_energy():
    device = stylus(grip=HandGrip(damping=0.0))
    device.position[0] = 0.01
    positions, _ = run(device, 4000)
    # the splitting is symplectic: the amplitude's error is bounded by (w h)^2 / 8 = 7e-5 for ever
    assert np.abs(positions[-500:, 0]).max() == pytest.approx(0.01, rel=2e-3)
    crossings = np.flatnonzero(np.diff(np.signbit(positions[:, 0])))
    period = 2.0 * (crossings[-1] - crossings[0]) / (len(crossings) - 1) * T
    # a crossing is known to one tick, over 59 half periods
    assert period == pytest.approx(2 * np.pi * np.sqrt(MASS / 400.0), rel=1e-3)


def test_the_reported_position_is_the_nearest_step_of_the_encoder():
    path, _ = oscillation_path((0.0, 0.0, 0.0), (0.01, 0.02, -0.01), 2.0, 0.5)
    positions, _ = run(make_virtual_device(path, resolution=TOUCH.resolution), len(path))
    steps = positions / TOUCH.resolution
    assert steps == pytest.approx(np.round(steps), abs=1e-9)
    assert np.abs(positions - path).max() <= 0.5 * TOUCH.resolution + 1e-12


def test_a_replay_reports_the_path_exactly_whatever_it_is_sent():
    path, _ = oscillation_path((0.0, 0.1, 0.0), (0.01, 0.02, -0.01), 2.0, 0.5)
    positions, velocities = run(make_virtual_device(path), len(path) + 10, (3.0, 3.0, 3.0))
    assert (positions[: len(path)] == path).all()
    assert (positions[len(path) :] == path[-1]).all(), "the last row is held"
    assert velocities[1 : len(path)] == pytest.approx(np.diff(path, axis=0) / T)


def test_the_reported_velocity_of_a_steady_motion_is_its_speed_and_its_ripple_is_filtered():
    speed = 0.05
    path = np.zeros((2000, 3))
    path[:, 0] = speed * np.arange(2000) * T
    device = make_virtual_device(path, resolution=TOUCH.resolution, velocity_cutoff_hz=30.0)
    _, velocities = run(device, 2000)
    settled = velocities[500:, 0]
    # a bare difference would ripple by resolution / T; the low-pass leaves its gain's share of that
    ripple = device.velocity_gain * TOUCH.resolution / T
    assert settled.mean() == pytest.approx(speed, rel=1e-2)
    assert np.abs(settled - speed).max() <= ripple


def test_the_reported_angular_velocity_is_that_of_a_steady_turn():
    angle = 3.0 * np.arange(200) * T
    turns = np.stack([np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle], axis=1)
    turns[100:] *= -1.0  # q and -q are one orientation
    device, port = make_virtual_device(np.zeros((200, 3)), turns), make_port()
    for k in range(200):
        device_read(device, k, port)
        if k > 0:
            assert port.angular_velocity == pytest.approx([0.0, 3.0, 0.0], abs=1e-9)


def test_a_target_sent_by_mail_is_reached_without_a_step():
    device = make_virtual_device(REST, source=MAILBOX)
    send_target(device, (0.01, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), 3)
    positions, _ = run(device, 300)
    assert positions[-1, 0] == pytest.approx(0.01, rel=1e-5)
    # first-order smoothing moves by at most T over its time constant of the distance
    assert np.abs(np.diff(positions[:, 0])).max() <= 0.01 * T / 0.02
    assert device.measured_orientation.tolist() == [0.0, 1.0, 0.0, 0.0]


def amplitude_growth(device, stiffness, n=40_000):
    """Ratio of the swing about a two-sided sampled wall in the last 1000 ticks to that in the first 1000."""
    device.position[0] = 1e-3
    wall = make_wall(device, stiffness, one_sided=False, ring_capacity=65536)
    servo_run(wall.servo, n)
    x = drain_rows(wall.servo)[:, NAMES.index("px")]
    return np.abs(x[-1000:]).max() / np.abs(x[:1000]).max()


def largest_passive_stiffness(viscosity, hand_stiffness, hand_damping):
    """Stiffness at which the exact sample-and-hold loop of mass, damper, hand and wall becomes unstable.

    x' = A x + B f with f = -K x(t_k) held over a tick: the closed loop's eigenvalues reach the unit circle.
    """
    a = np.array(
        [[0.0, 1.0, 0.0], [-hand_stiffness / MASS, -(viscosity + hand_damping) / MASS, 1 / MASS], [0.0] * 3]
    )
    held = expm(a * T)
    low, high = 0.0, 1e5
    for _ in range(60):
        k = 0.5 * (low + high)
        loop = held[:2, :2] - k * np.outer(held[:2, 2], [1.0, 0.0])
        low, high = (k, high) if np.abs(np.linalg.eigvals(loop)).max() < 1.0 else (low, k)
    return low


def test_the_sampled_wall_is_stable_up_to_twice_the_damping_over_the_period():
    """Colgate and Schenkel (1997): a wall of stiffness K sampled at T is passive if b > K T / 2."""
    b = 1.0
    # the bound holds for a small b T / m = 0.022 up to a sixth of it; the splitting adds less than 1e-4
    assert largest_passive_stiffness(b, 0.0, 0.0) == pytest.approx(2 * b / T, rel=b * T / MASS)
    assert amplitude_growth(stylus(viscosity=b), 0.99 * 2 * b / T) < 0.5
    assert amplitude_growth(stylus(viscosity=b), 1.01 * 2 * b / T) > 2.0


@pytest.mark.parametrize(("stiffness", "damping"), [(400.0, 1.0), (400.0, 4.0), (2000.0, 2.0)])
def test_a_hand_on_the_stylus_moves_the_limit_to_that_of_the_exact_sampled_loop(stiffness, damping):
    limit = largest_passive_stiffness(0.0, stiffness, damping)
    grip = HandGrip(stiffness, damping)
    # 1% covers the splitting's error (w h)^2 / 12 with w^2 = K / m and four substeps a tick
    assert amplitude_growth(stylus(grip=grip), 0.99 * limit) < 0.5
    assert amplitude_growth(stylus(grip=grip), 1.01 * limit) > 2.0


def swing_against_one_sided_wall(stiffness, damping=1.0):
    """Swings of the stylus in the first and the last 1000 ticks, pressed 5 mm into a one-sided wall."""
    grip = HandGrip(damping=damping)
    device = make_virtual_device([[0.005, 0.0, 0.0]], grip=grip, mass=MASS)
    device.position[0] = 0.005 * 400.0 / (400.0 + stiffness) + 1e-7
    wall = make_wall(device, stiffness, ring_capacity=65536)
    servo_run(wall.servo, 20_000)
    x = drain_rows(wall.servo)[:, NAMES.index("px")]
    return np.ptp(x[:1000]), np.ptp(x[-2000:-1000]), np.ptp(x[-1000:])


def test_pressing_a_wall_beyond_the_limit_grows_into_a_limit_cycle_and_below_it_comes_to_rest():
    limit = largest_passive_stiffness(0.0, 400.0, 1.0)
    first, _, last = swing_against_one_sided_wall(0.8 * limit)
    assert last < 1e-3 * first
    first, before, last = swing_against_one_sided_wall(1.5 * limit)
    assert last > 1e-4, "a tenth of a micrometre of disturbance has grown to what a hand feels"
    assert last == pytest.approx(before, rel=0.05), "leaving the wall bounds the growth"


def test_a_mock_touch_pressed_on_a_wall_rests_where_hand_and_wall_balance():
    device = make_mock(TOUCH, [[0.01, 0.0, 0.0]])
    device.position[:] = 0.0
    wall = make_wall(device, 300.0)
    servo_run(wall.servo, 5000)
    rows = drain_rows(wall.servo)
    balance = 0.01 * 400.0 / (400.0 + 300.0)
    # half an encoder step, as much again in the force's balance, and what friction holds against both springs
    stuck = TOUCH.friction / (400.0 + 300.0)
    assert rows[-1, NAMES.index("px")] == pytest.approx(balance, abs=TOUCH.resolution + stuck)


@pytest.mark.parametrize(
    ("positions", "orientations", "message"),
    [
        (np.zeros((0, 3)), None, "n >= 1"),
        (np.zeros((4, 2)), None, "shape"),
        (np.full((4, 3), np.nan), None, "finite"),
        (np.zeros((4, 3)), np.zeros((4, 4)), "zero quaternion"),
        (np.zeros((4, 3)), np.ones((3, 4)), "4 rows"),
    ],
)
def test_a_broken_target_table_is_refused_in_one_sentence(positions, orientations, message):
    with pytest.raises(HapticsError, match=message):
        make_virtual_device(positions, orientations)
