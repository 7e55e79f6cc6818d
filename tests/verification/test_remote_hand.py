"""A hand at the far end of a channel: no energy comes out that was not paid in, whatever is late or lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.app.devices.device import to_device
from palpo.app.devices.mock import scripted_path
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.runtime.slow_loop import SlowLoop, lock_step_run
from palpo.app.systems.system import check_kind, make_rig
from palpo.config.load import load_scene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import EXTERNAL, device_read, device_write, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.remote import (
    BRAKE,
    FOLLOWING,
    FULL,
    MAGIC,
    PAID,
    RHO,
    WORDS,
    hand_tick,
    hear,
    make_end,
    scene_tick,
    tell,
)
from palpo.physics.exchange.port import make_port
from tests.servo.wall import make_wall

DT = 1e-3
ROUNDING = 1e-12
"""Sums of some thousand energies of a few millijoules [J]."""
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


class Line:
    """One direction of a network: each message is late by `delay` ticks and some more, or lost."""

    def __init__(self, delay, loss, rng):
        self.delay, self.loss, self.rng, self.flying = delay, loss, rng, []

    def send(self, tick, message):
        if self.rng.random() >= self.loss:
            late = self.delay + int(self.rng.integers(0, 1 + self.delay // 5))
            self.flying.append((tick + late, message.copy()))

    def arrived(self, tick):
        due = [message for when, message in self.flying if when <= tick]
        self.flying = [(when, message) for when, message in self.flying if when > tick]
        return due


class Remote:
    """A hand on a path, a channel, and the servo at its other end, tick by tick without a clock."""

    def __init__(self, servo, positions, delay, loss, controlled=True, seed=1):
        rng = np.random.default_rng(seed)
        self.servo, self.tick = servo, 0
        self.there, self.back = Line(delay, loss, rng), Line(delay, loss, rng)
        self.hand, self.scene = make_end(controlled), make_end(controlled)
        self.device = make_mock(TOUCH, positions)._replace(resolution=0.0)
        self.port, self.force, self.message = make_port(), np.zeros(3), np.zeros(WORDS)
        self.felt, self.given, self.account = [], [], []

    def make(self, n):
        for _ in range(n):
            self.once()

    def once(self):
        device_read(self.device, self.tick, self.port)
        for message in self.back.arrived(self.tick):
            assert hear(self.hand, message)
        hand_tick(self.hand, self.port.position, self.force, DT, self.force)
        device_write(self.device, self.force)
        tell(self.hand, self.port.position, UPRIGHT, 0, self.message)
        self.there.send(self.tick, self.message)
        for message in self.there.arrived(self.tick):
            assert hear(self.scene, message)
        own = self.servo.device_port
        if self.scene.words["newest"][0]:
            scene_tick(self.scene, self.servo.sent, DT, own.position, own.velocity)
        else:
            own.position[:] = self.device.positions[0]
        servo_run(self.servo, 1)
        if self.scene.words["placed"][0]:
            tell(self.scene, self.servo.sent, UPRIGHT, 0, self.message)
            self.back.send(self.tick, self.message)
        self.felt.append(self.force.copy())
        self.given.append(self.servo.sent.copy())
        ends = self.hand, self.scene
        self.account.append([end.joules[name][0] for end in ends for name in ("paid", "given")])
        self.tick += 1

    def energies(self):
        """Paid in and given out at the hand's end, then at the scene's, each (n,) [J]."""
        return np.array(self.account).T


def assert_passive(remote):
    paid_h, given_h, paid_s, given_s = remote.energies()
    assert (given_h + given_s <= paid_h + paid_s + ROUNDING).all()
    # each end by itself, of what the other has paid and could have told
    assert (given_h <= RHO * paid_h + paid_s + ROUNDING).all()
    assert (given_s <= (1.0 - RHO) * paid_h + ROUNDING).all()


def pressing(ticks=3000):
    """In and out of a wall at x = 0, to 8 mm and at 1 Hz, with a quick tap at the end."""
    t = np.arange(ticks) * DT
    x = np.where(t < 2.0, -0.008 * np.cos(2 * np.pi * t), -0.008 * np.cos(2 * np.pi * 4.0 * (t - 2.0)))
    return np.column_stack([x, 0.0 * x, 0.0 * x])


def on_a_wall(delay, loss, controlled=True, stiffness=300.0, seed=1, ticks=3000):
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    wall = make_wall(
        external, stiffness, limits=make_limits(3.3, max_rate=5000.0, fades=AT_ONCE, hand_speed=np.inf)
    )
    remote = Remote(wall.servo, pressing(ticks), delay, loss, controlled, seed)
    remote.make(ticks)
    remote.wall = wall
    return remote


@pytest.mark.parametrize("delay", [0, 10, 50, 100, 200])
@pytest.mark.parametrize("loss", [0.0, 0.05, 0.5])
def test_in_contact_with_a_wall_no_more_comes_out_than_went_in(delay, loss):
    remote = on_a_wall(delay, loss)
    assert np.abs(remote.given).max() > 0.2, "the wall was touched"
    assert np.abs(remote.felt).max() > 0.05, "and felt"
    assert_passive(remote)


def test_the_same_channel_without_its_control_makes_energy():
    """Which is why it is there: the reference that the law above is held against."""
    remote = on_a_wall(50, 0.05, controlled=False)
    paid_h, given_h, paid_s, given_s = remote.energies()
    assert (given_h + given_s - paid_h - paid_s).max() > 1e-3


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 200), st.floats(0.0, 0.9), st.integers(0, 1000), st.floats(50.0, 2000.0))
def test_no_delay_loss_or_stiffness_makes_energy(delay, loss, seed, stiffness):
    assert_passive(on_a_wall(delay, loss, seed=seed, stiffness=stiffness, ticks=1200))


def test_without_delay_the_wall_is_felt_nearly_as_it_is():
    remote = on_a_wall(0, 0.0)
    felt, given = np.array(remote.felt)[:2000, 0], np.array(remote.given)[:2000, 0]
    # a tick later, and the share that stays at the hand's end lets its partner go less deep: sqrt(1 - RHO)
    assert np.abs(felt).max() >= 0.9 * np.sqrt(1.0 - RHO) * np.abs(given).max()


def test_in_free_air_the_scene_s_hand_follows_late_and_without_error():
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    wall = make_wall(external, 0.0, limits=make_limits(3.3, hand_speed=np.inf))
    t, speed, delay = np.arange(1000) * DT, 0.05, 40
    remote = Remote(wall.servo, np.column_stack([speed * t, 0 * t, 0 * t]), delay, 0.0)
    remote.there.rng = type("Even", (), {"random": lambda s: 1.0, "integers": lambda s, a, b: 0})()
    remote.make(1000)
    behind = remote.port.position[0] - remote.scene.position[0]
    # a first-order follower, stepped exactly, lags its ramp by tau - T / 2 and the delay, within a tick
    assert behind == pytest.approx(speed * (delay * DT + FOLLOWING), abs=1.5 * speed * DT)
    _, given_h, paid_s, given_s = remote.energies()
    assert not given_h.any() and not paid_s.any() and not given_s.any()


def test_a_hand_is_braked_until_its_channel_is_full_and_then_no_more():
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    wall = make_wall(external, 0.0, limits=make_limits(3.3, hand_speed=np.inf))
    t = np.arange(6000) * DT
    x = 0.02 * np.sin(2 * np.pi * 1.5 * t)
    remote = Remote(wall.servo, np.column_stack([x, 0 * t, 0 * t]), 30, 0.05)
    remote.make(6000)
    paid, given, _, _ = remote.energies()
    felt = np.linalg.norm(remote.felt, axis=1)
    assert given[-1] == 0.0 and (1.0 - RHO) * paid[-1] == pytest.approx(FULL, rel=0.02)
    assert 0.5 < felt[:500].max() <= BRAKE * np.abs(np.diff(x)).max() / DT
    # what is missing falls by a factor in each swing
    assert felt[5000:].max() < 0.05 * felt[:500].max()


@pytest.mark.parametrize("scene", ["probe", "hapco-block"])
def test_in_contact_with_a_scene_at_50_ms_and_5_percent_loss_the_channel_stays_passive(scene):
    spec = load_scene(scene)
    kind, workspace = check_kind(spec, None, True), workspace_of(spec)
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL, dt=spec.rates.dt)
    rig = make_rig(spec, kind, lambda held: external, workspace, limits_of(spec), threads=False)
    path = to_device(scripted_path(spec), workspace)
    ticks = min(path.ticks, 4000)
    remote = Remote(rig.servo, path.rows(0, ticks)[0], 50, 0.05)
    try:
        lock_step_run(rig, SlowLoop(rig, ()), ticks, remote.make, lambda: None)
    finally:
        rig.low.close()
    assert remote.tick >= 1000
    assert np.linalg.norm(remote.given, axis=1).max() > 0.2, "the scene was touched"
    assert np.linalg.norm(remote.felt, axis=1).max() > 0.1, "and felt at the other end"
    assert_passive(remote)


# ---- messages


def test_an_old_or_doubled_message_moves_nothing_and_its_energy_counts_once():
    one, other, message = make_end(), make_end(), np.zeros(WORDS)
    one.joules["paid"][0] = 2.0
    tell(one, np.array([1.0, 2.0, 3.0]), UPRIGHT, 0, message)
    old = message.copy()
    one.joules["paid"][0] = 5.0
    tell(one, np.array([4.0, 5.0, 6.0]), UPRIGHT, 3, message)
    for heard in (message, old, message, old):
        assert hear(other, heard)
        assert other.vector.tolist() == [4.0, 5.0, 6.0] and other.joules["heard"][0] == 5.0
    assert other.joules["given"][0] == 0.0


@pytest.mark.parametrize(("place", "value"), [(MAGIC, 1.0), (PAID, np.nan), (4, np.inf), (8, -np.inf)])
def test_what_is_no_message_is_not_heard(place, value):
    end, message = make_end(), np.zeros(WORDS)
    tell(make_end(), np.ones(3), UPRIGHT, 0, message)
    message[place] = value
    assert not hear(end, message)
    assert not end.vector.any() and end.joules["heard"][0] == 0.0 and end.words["newest"][0] == 0
