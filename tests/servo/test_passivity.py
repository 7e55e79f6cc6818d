"""Laws of the port's energy: observed is what the hand received, and the controller spends the excess."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import cfunc, typeof, types
from numpy.typing import NDArray

from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import HandGrip, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import PASSIVATED
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.passivity import make_passivity
from palpo.haptics.servo import make_servo
from palpo.haptics.summary import servo_summary
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from tests.servo.hand import columns, external, move
from tests.servo.swing import oscillation_path
from tests.servo.wall import make_wall

T = 1e-3
MASS = 0.045


class Late(NamedTuple):
    """Stiffness [N/m], where the hand was at the last tick [m], and torque [N m]; and the port."""

    port: Port
    numbers: NDArray[np.float64]  # (3,)


_CONTENT = typeof(Late(make_port(), np.zeros(3)))


@cfunc(types.int32(HandleType(_CONTENT)), cache=True)
def delayed_wall(wall):
    """A spring that answers one tick late, which makes it active, and a constant torque about z."""
    port, numbers = wall.port, wall.numbers
    stiffness, last, torque = numbers[0], numbers[1], numbers[2]
    port.force[0] = -stiffness * max(last, 0.0)
    port.torque[2] = torque
    numbers[1] = port.position[0]
    return np.int32(end_tick(port, OK, 0))


class Delayed:
    """The delayed wall under a servo; the memory outlives it."""

    def __init__(self, device, stiffness, mode, torque=0.0, damping=5.0, **limits):
        self.data = Handle(Late(make_port(), np.array([stiffness, 0.0, torque])))
        params = make_limits(
            **({"max_force": 1e9, "max_rate": 1e15, "fades": AT_ONCE, "hand_speed": np.inf} | limits),
            passivity=make_passivity(mode, damping),
        )
        self.servo = make_servo(
            delayed_wall.address, self.data.address, self.data.state.port, device, params, ring_capacity=32768
        )

    def run(self, n):
        servo_run(self.servo, n)
        return columns(self.servo)

    @property
    def energy(self):
        return servo_summary(self.servo)["passivity"]


def stylus(x=0.0, hand_stiffness=0.0, hand_damping=0.0, **options):
    """A bare stylus, or one in a hand that holds it at the wall's face, 5 mm inside."""
    device = make_virtual_device(
        [[0.005 if hand_stiffness else 0.0, 0.0, 0.0]],
        grip=HandGrip(hand_stiffness, hand_damping), mass=MASS, **options,
    )  # fmt: skip
    device.position[0] = x
    return device


def test_the_observed_energy_is_the_kinetic_energy_that_a_free_stylus_has_gained():
    # a filtered velocity lags, which the account must not hear of
    device = stylus(velocity_cutoff_hz=30.0)
    device.velocity[0] = 0.3
    wall = Delayed(device, 2000.0, "observe")
    kinetic = []
    for _ in range(300):
        kinetic.append(0.5 * MASS * device.velocity @ device.velocity)
        servo_run(wall.servo, 1)
    observed = columns(wall.servo)["energy_J"]
    assert observed.max() > 1e-4, "this wall throws the stylus back faster than it came"
    # the stylus moves exactly under a constant force, so that no integration error enters
    assert observed == pytest.approx(np.array(kinetic) - kinetic[0], abs=1e-15)


def test_in_a_hand_it_is_what_the_stylus_and_the_hands_spring_hold_and_its_damper_has_spent():
    k, c = 400.0, 4.0
    device = stylus(0.0, k, c)
    wall = Delayed(device, 300.0, "observe")
    held, spent = [], 0.0
    for _ in range(300):
        x, v = device.position[0] - 0.005, device.velocity[0]
        held.append(0.5 * MASS * v**2 + 0.5 * k * x**2 + spent)
        servo_run(wall.servo, 1)
        # the trapezoid over a tick of c v^2, which decays in m / c = 11 ms: error (T c / m)^2 / 12 = 0.07 %
        spent += 0.5 * T * c * (v**2 + device.velocity[0] ** 2)
    observed = columns(wall.servo)["energy_J"]
    assert observed == pytest.approx(np.array(held) - held[0], abs=2e-3 * max(held))


def test_observing_changes_no_force():
    path, _ = oscillation_path((0.0, 0.0, 0.0), (0.01, 0.0, 0.0), 3.0, 0.5)
    rows = [Delayed(make_mock(TOUCH, path), 800.0, mode).run(1000) for mode in ("off", "observe")]
    assert (rows[0]["sent"] == rows[1]["sent"]).all()
    assert (rows[0]["energy_J"] == 0.0).all() and np.abs(rows[1]["energy_J"]).max() > 0.0


def pressed(stiffness, mode, damping=5.0, n=20_000):
    """A light hand that presses a stylus 5 mm into the delayed wall."""
    wall = Delayed(stylus(5e-4, 400.0, 1.0), stiffness, mode, damping=damping)
    rows = wall.run(n)
    return wall, rows


# One tick late and held for another, the wall is 1.5 T behind: a hand of c = 1 N s/m keeps it at rest up to
# K = c / (1.5 T) = 670 N/m.
@pytest.mark.parametrize("stiffness", [1500.0, 2500.0])
def test_the_controller_brings_to_rest_an_active_wall_that_chatters_without_it(stiffness):
    free, chatter = pressed(stiffness, "observe")
    assert np.ptp(chatter["px"][-1000:]) > 1e-3
    assert free.energy["energy_J"] > 1.0, "the hand is given energy without end"
    held, rest = pressed(stiffness, "control")
    assert np.ptp(rest["px"][-1000:]) < 0.05 * np.ptp(chatter["px"][-1000:])
    # what a tick can deliver before it is seen: the largest force over the largest motion
    step = np.abs(np.diff(rest["px"])).max()
    tolerance = np.abs(rest["sent_x"]).max() * step
    assert rest["energy_J"].max() < 3 * tolerance
    assert rest["energy_J"][-1] <= tolerance
    assert held.energy["dissipated_J"] > 0.0
    assert held.energy["active_ticks"] == np.count_nonzero(rest["flags"] & PASSIVATED) > 0


def test_what_the_controller_dissipates_is_what_it_takes_off_the_scenes_own_delivery():
    wall, rows = pressed(1500.0, "control", n=5000)
    delivered = np.sum(rows["force_x"][:-1] * np.diff(rows["px"]))
    spent = np.sum((rows["force_x"] - rows["sent_x"])[:-1] * np.diff(rows["px"]))
    energy = wall.energy
    assert energy["energy_J"] == pytest.approx(delivered - energy["dissipated_J"], rel=1e-9)
    assert energy["dissipated_J"] == pytest.approx(spent, rel=1e-9)
    assert energy["highest_J"] == pytest.approx(rows["energy_J"].max())


@pytest.mark.parametrize("largest", [2.0, 50.0])
def test_the_controller_spends_an_excess_in_one_tick_if_its_largest_damping_allows(largest):
    _, rows = pressed(1500.0, "control", damping=largest, n=5000)
    taken, energy = rows["force_x"] - rows["sent_x"], rows["energy_J"]
    speed = np.diff(rows["px"], prepend=rows["px"][0]) / T
    moving = np.abs(speed) > 1e-6
    damping = np.minimum(np.maximum(energy, 0.0)[moving] / (speed[moving] ** 2 * T), largest)
    # taken is a difference of forces of 2 N, known to 1e-15 of them
    assert taken[moving] == pytest.approx(damping * speed[moving], rel=1e-6, abs=1e-14)
    assert (damping == 0.0).any() and (damping == largest).any()
    assert ((damping > 0.0) & (damping < largest)).any()


def test_a_soft_wall_touched_by_a_firm_hand_is_left_as_it_is():
    path, _ = oscillation_path((-0.005, 0.0, 0.0), (0.01, 0.0, 0.0), 1.0, 0.5)
    forces = []
    for mode in ("off", "control"):
        limits = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, passivity=make_passivity(mode))
        wall = make_wall(make_mock(TOUCH, path), 200.0, limits=limits)
        servo_run(wall.servo, 500)
        forces.append(columns(wall.servo)["sent_x"])
    # a sampled spring leaks at most what a brake of K T / 2 = 0.1 N s/m at the hand's 0.05 m/s takes away
    assert np.abs(forces[0]).max() > 0.5
    assert np.abs(forces[0] - forces[1]).max() < 0.3


def test_the_work_of_a_torque_that_no_motor_renders_is_torque_times_angle():
    wall = Delayed(external(), 0.0, "observe", torque=0.02)
    move(wall.servo, [[0.0, 0.0, 0.0]] * 101, spin=(5.0, 0.0, -3.0))
    summary = servo_summary(wall.servo)
    assert summary["torque"]["peak_Nm"] == 0.02
    # a hundred ticks after the first one, against the torque
    assert summary["torque"]["unrendered_J"] == pytest.approx(-0.02 * 3.0 * 100 * T)
    assert summary["passivity"]["energy_J"] == 0.0


def test_an_unknown_mode_and_a_damping_that_is_not_positive_are_refused():
    with pytest.raises(HapticsError, match="passivity"):
        make_passivity("maybe")
    with pytest.raises(HapticsError, match="passivity_damping"):
        make_passivity("control", 0.0)
