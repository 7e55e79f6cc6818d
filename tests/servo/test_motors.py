"""Laws of a device's motors: a thermal budget, the device's own allowance, and torques of their own."""

import math

import numpy as np
import pytest

from palpo.app.runtime.meta import RecordedRun
from palpo.haptics.control import hold_servo, is_frozen, tick_count
from palpo.haptics.device import EXTERNAL, RECORDED, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.flags import NON_FINITE
from palpo.haptics.guard import HOT, Motors
from palpo.haptics.limiter import felt_torque, limit_force, make_limit_state, slew_live
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.workspace import force_to_device, make_workspace
from palpo.physics.exchange.port import OK, make_port
from tests.servo.hand import move
from tests.servo.wall import make_wall

MOST, LASTING, TAU, DT = 3.3, 0.88, 1.0, 1e-3
WINDINGS = Motors(continuous_force=LASTING, thermal_time=TAU)
SENT = [NAMES.index(f"sent_{axis}") for axis in "xyz"]


def warm(commands, allowances=None, **options):
    """Forces sent (n,) along x and the state, for commanded forces [N]."""
    params = make_limits(MOST, max_rate=1e9, fades=AT_ONCE, dt=DT, **options)
    state, port, out = make_limit_state(params), make_port(), np.zeros(3)
    port.status["code"][0] = OK
    sent = np.empty(len(commands))
    for k, command in enumerate(commands):
        port.force[0] = command
        slew_live(state, params, 1.0, port, 1.0 if allowances is None else allowances[k])
        limit_force(state, params, port, out)
        sent[k] = out[0]
    return sent, state


def test_the_full_force_lasts_as_long_as_the_windings_take_to_be_hot_then_falls_to_the_lasting_one():
    sent, state = warm([10.0] * 8000, motors=WINDINGS)
    # h_n = (F / F_c)^2 (1 - (1 - dt / tau)^n) of the step that is taken, first above HOT
    cold = math.log(1.0 - HOT * (LASTING / MOST) ** 2) / math.log(1.0 - DT / TAU)
    assert int(np.argmax(sent < MOST)) == math.floor(cold) + 1
    assert (np.diff(sent) <= 0.0).all() and (sent >= LASTING).all()
    # the balance is approached at the rate 1 / tau at least, from a distance below 1
    assert sent[-1] == pytest.approx(LASTING, rel=math.exp(-7.0))
    assert state.windings["heat"][0] <= 1.0
    assert state.counts["warm"][0] == (sent < MOST).sum()


def test_the_lasting_force_is_given_for_ever():
    sent, state = warm([LASTING] * 6000, motors=WINDINGS)
    assert (sent == LASTING).all() and state.windings["heat"][0] < 1.0


def test_windings_that_rest_cool_at_their_time_constant():
    _, state = warm([10.0] * 3000 + [0.0] * 1000, motors=WINDINGS)
    _, hot = warm([10.0] * 3000, motors=WINDINGS)
    assert state.windings["heat"][0] == pytest.approx(
        hot.windings["heat"][0] * (1.0 - DT / TAU) ** 1000, rel=1e-12
    )


def test_without_a_lasting_force_there_is_no_budget():
    sent, state = warm([MOST] * 2000)
    assert (sent == MOST).all() and state.windings["heat"][0] == 0.0


def test_what_the_device_allows_is_gone_over_to_evenly_and_back():
    sent, _ = warm([10.0] * 600, [1.0] * 100 + [0.25] * 250 + [1.0] * 250)
    assert sent[99] == MOST and sent[349] == pytest.approx(0.25 * MOST) and sent[-1] == pytest.approx(MOST)
    # 0.1 s from end to end
    assert np.abs(np.diff(sent)).max() <= MOST / 100 * (1.0 + 1e-9)


@pytest.mark.parametrize("bad", [-1.0, 2.0])
def test_an_allowance_out_of_range_is_held_within_it(bad):
    sent, _ = warm([10.0] * 300, [bad] * 300)
    assert sent[-1] == pytest.approx(MOST if bad > 1.0 else 0.0)


# ---- torques


def turn(torques, **options):
    """Torques sent (n, 3) and the last flags."""
    params = make_limits(MOST, fades=AT_ONCE, dt=DT, **options)
    state, port, out, turned = make_limit_state(params), make_port(), np.zeros(3), np.zeros(3)
    port.status["code"][0] = OK
    sent, flags = np.empty((len(torques), 3)), 0
    for k, torque in enumerate(torques):
        port.torque[:] = torque
        flags = limit_force(state, params, port, out)
        felt_torque(state, turned)
        sent[k] = turned
    return sent, flags


def test_a_torque_within_bounds_is_sent_as_it_is_and_a_larger_one_keeps_its_direction():
    sent, _ = turn([[0.01, -0.02, 0.02], [3.0, 0.0, 4.0]], motors=Motors(0.05, 1e9))
    assert sent == pytest.approx(np.array([[0.01, -0.02, 0.02], [0.03, 0.0, 0.04]]), abs=1e-15)


def test_a_torque_changes_no_faster_than_its_rate():
    sent, _ = turn([[0.05, 0.0, 0.0]] * 20, motors=Motors(0.1, 5.0))
    assert np.diff(sent[:10, 0]) == pytest.approx(5.0 * DT) and sent[-1, 0] == pytest.approx(0.05)


def test_a_device_without_torques_gets_none_and_is_stopped_by_none():
    sent, flags = turn([[1.0, 1.0, 1.0], [np.nan, 0.0, 0.0]])
    assert not sent.any() and not flags & NON_FINITE
    sent, flags = turn([[0.01, 0.0, 0.0], [np.nan, 0.0, 0.0]], motors=Motors(0.05, 1e9))
    assert flags & NON_FINITE and np.isfinite(sent).all()


@pytest.mark.parametrize("force_scale", [None, 0.3])
def test_force_and_torque_are_scaled_alike_so_that_a_lever_stays_a_lever(force_scale):
    """The power of a twist, f . v + t . w, is scaled by one number, force scale over scale."""
    workspace = make_workspace(4.0, rotation=[0.5, 0.5, 0.5, 0.5], force_scale=force_scale)
    port, own = make_port(), make_port()
    port.force[:], port.torque[:] = [1.0, 2.0, 3.0], [-0.3, 0.1, 0.2]
    velocity, spin = np.array([0.2, -0.1, 0.4]), np.array([1.0, 2.0, -1.0])
    force_to_device(workspace, workspace.force_scale, port, own)
    scene = port.force @ (4.0 * workspace.rotation @ velocity) + port.torque @ (workspace.rotation @ spin)
    hand = own.force @ velocity + own.torque @ spin
    assert hand == pytest.approx(scene * workspace.force_scale / 4.0, rel=1e-12)


def test_the_torque_that_is_sent_is_no_longer_booked_as_lacking():
    for most, share in ((0.0, 1.0), (0.05, 0.0)):
        limits = make_limits(1e9, fades=AT_ONCE, motors=Motors(most, 1e9))
        wall = make_wall(make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL), 100.0, limits=limits)
        wall.port.torque[:] = [0.0, 0.02, 0.0]
        rows = move(wall.servo, np.zeros((100, 3)), spin=(0.0, 3.0, 0.0))
        assert wall.servo.energy.joules["torque_work"][0] == pytest.approx(
            share * 0.02 * 3.0 * 99 * DT, abs=1e-15
        )
        assert rows["sent_torque_y"] == pytest.approx(0.02 * (1.0 - share))


# ---- held by its device


def test_a_servo_that_its_device_holds_fades_freezes_and_goes_on_without_a_jump():
    limits = make_limits(MOST, fades=AT_ONCE, hand_speed=np.inf)
    wall = make_wall(make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL), 300.0, limits=limits)
    before = move(wall.servo, np.tile([5e-3, 0.0, 0.0], (100, 1)))
    hold_servo(wall.servo, True)
    fading = move(wall.servo, np.tile([5e-3, 0.0, 0.0], (200, 1)))
    assert is_frozen(wall.servo) and tick_count(wall.servo) == 150
    assert fading["sent_x"] == pytest.approx(-1.5 * (1.0 - np.arange(1, 51) / 50))
    hold_servo(wall.servo, False)
    # the device has found another origin meanwhile: the scene's hand is where it was
    after = move(wall.servo, np.tile([0.2, 0.0, 0.0], (400, 1)))
    assert after["px"] == pytest.approx(5e-3, abs=1e-15)
    assert np.abs(np.diff(after["sent_x"])).max() <= 1.5 / 250 * (1.0 + 1e-9)
    assert after["sent_x"][-1] == pytest.approx(before["sent_x"][-1], abs=1e-12)


def test_a_recorded_allowance_is_repeated_tick_for_tick():
    allowed = np.linspace(1.0, 0.2, 300)
    limits = make_limits(MOST, max_rate=1e9, fades=AT_ONCE)
    sent = []
    for again in (False, True):
        device = make_virtual_device(
            np.tile([0.02, 0.0, 0.0], (300, 1)), source=RECORDED if again else EXTERNAL
        )._replace(allowances=allowed, velocities=np.zeros((300, 6)))
        wall = make_wall(device, 300.0, limits=limits)
        wall.servo.device_port.position[0] = 0.02
        for k in range(300):
            if not again:
                device.allowance[0] = allowed[k]
            servo_run(wall.servo, 1)
        sent.append(drain_rows(wall.servo))
    assert (sent[0][:, SENT] == sent[1][:, SENT]).all()
    assert (sent[0][:, NAMES.index("allowance")] == allowed).all()


def test_a_recording_s_device_is_read_whatever_figures_its_version_kept():
    stored = {"name": "Touch", "max_force": 3.3, "max_stiffness": 1.0, "resolution": 1e-5, "buttons": 2}
    stored |= {"workspace": [0.1, 0.1, 0.1], "mass": 0.05, "friction": 0.1, "torques": False}
    scene = {"name": "wall", "path": "wall.toml", "text": "", "overrides": []}
    meta = {"driver": "lock-step", "scene": scene, "interface": "none"}
    spec = RecordedRun.model_validate(meta | {"device_spec": stored}).device_spec
    assert spec.max_force == 3.3 and spec.max_torque == 0.0
