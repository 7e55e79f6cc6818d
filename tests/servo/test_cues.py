"""Vibrations at contact, slip, click and loss of suction: no impulse, within the limits, and counted."""

import numpy as np
import pytest

from palpo.haptics.control import mute_servo
from palpo.haptics.cues import (
    APART,
    CLICK,
    CONTACT,
    FREQUENCY,
    KINDS,
    RELEASE,
    SHARE,
    SLIP,
    STUCK,
    burst,
    make_cues,
)
from palpo.haptics.flags import CUED, MUTED
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.passivity import make_passivity
from palpo.physics.exchange.port import FELT_BITS, SLIDES, SUCKS, TOUCHES
from tests.servo.hand import along, external, move
from tests.servo.wall import make_wall

MAX, RATE, STEP = 3.3, 500.0, 1e-3
LONG = round(APART / STEP) + 1


def limits_with(bandwidth=200.0, clicks=False, **more):
    cues = make_cues(bandwidth, MAX, RATE, clicks=clicks)
    return make_limits(MAX, RATE, fades=AT_ONCE, cues=cues, passivity=make_passivity("observe"), **more)


def wall_of(limits=None, stiffness=0.0):
    return make_wall(external(), stiffness, limits=limits or limits_with(), one_sided=False)


def feel(wall, bits, ticks, at=0.0, speed=0.0):
    """Ticks of a hand that moves evenly from x = at [m], of which the scene says this."""
    wall.port.status["felt"][0] = bits
    steps = at + speed * STEP * np.arange(1, ticks + 1)
    return move(wall.servo, along([1, 0, 0], steps), velocity=[speed, 0, 0])


def counts(wall):
    return wall.servo.cues.counts.tolist()


def contact(wall, after=60, speed=0.0, at=0.0):
    """What is sent in the ticks after a contact."""
    feel(wall, 0, LONG, at, speed)
    start = at + speed * STEP * LONG
    return feel(wall, TOUCHES, after, start, speed)


@pytest.mark.parametrize("ticks", [7, 12, 40, 101])
def test_a_burst_gives_no_impulse(ticks):
    wave = burst(3, ticks)
    assert wave.sum() == pytest.approx(0.0, abs=1e-15 * ticks) and (wave == -wave[::-1]).all()
    assert np.abs(wave).max() <= 1.0


def test_it_vibrates_no_faster_than_the_device_and_no_more_than_its_share():
    for bandwidth in (40.0, 100.0, 1000.0):
        cues = make_cues(bandwidth, MAX, 1e9)
        for kind in range(len(KINDS)):
            wave = cues.waves[kind, : cues.lasts[kind]]
            # zero crossings of a tone of f in n ticks
            turns = np.count_nonzero(np.diff(np.sign(wave)))
            assert turns / (2.0 * len(wave) * STEP) <= min(bandwidth, FREQUENCY[kind], 250.0) * 1.1
            assert 0.5 * SHARE * MAX < np.abs(wave).max() <= SHARE * MAX


@pytest.mark.parametrize("rate", [20.0, 60.0])
def test_a_vibration_takes_half_of_the_change_that_a_tick_allows(rate):
    cues = make_cues(200.0, MAX, rate)
    for kind in range(len(KINDS)):
        steps = np.abs(np.diff(cues.waves[kind, : cues.lasts[kind]], prepend=0.0, append=0.0))
        assert steps.max() == pytest.approx(0.5 * rate * STEP, rel=1e-12)


def test_a_contact_is_felt_once_and_told_by_a_flag():
    wall = wall_of()
    rows = contact(wall, 200)
    sent, cued = np.linalg.norm(rows["sent"], axis=1), rows["flags"] & CUED > 0
    lasts = int(wall.servo.limits.cues.lasts[CONTACT])
    assert counts(wall) == [1, 0, 0, 0]
    assert cued[:lasts].all() and not cued[lasts:].any() and (sent[:lasts].max() > 0.05)
    assert not sent[lasts:].any()
    assert rows["sent"].sum(axis=0) == pytest.approx(0.0, abs=1e-12)


def test_a_hand_that_moves_evenly_gets_no_work_from_it():
    speed = 0.15
    quiet, cued = (wall_of(limits_with(bandwidth), stiffness=20.0) for bandwidth in (0.0, 200.0))
    for wall in (quiet, cued):
        contact(wall, 60, speed, at=-0.009)
    assert counts(quiet) == counts(cued) == [1, 0, 0, 0]
    energy = [wall.servo.energy.joules["energy"][0] for wall in (quiet, cued)]
    assert energy[1] == pytest.approx(energy[0], abs=1e-12) and energy[0] != 0.0


def test_its_work_on_any_other_hand_stands_in_the_account():
    wall = wall_of()
    feel(wall, 0, LONG)
    wall.port.status["felt"][0] = TOUCHES
    # a hand that goes along with the vibration
    k = np.arange(60)
    path = 1e-4 * np.sin(2.0 * np.pi * 150.0 * STEP * k)
    rows = move(wall.servo, along([0, 1, 0], path))
    work = float((rows["sent"][:-1] * np.diff(along([0, 1, 0], path), axis=0)).sum())
    assert work != 0.0 and wall.servo.energy.joules["energy"][0] == pytest.approx(work, rel=1e-9)


@pytest.mark.parametrize("pressed", [0.0, 2.0, 3.2, 3.29, 10.0])
def test_the_largest_force_holds_and_no_impulse_is_left_near_it(pressed):
    limits = limits_with()
    wall = wall_of(limits, stiffness=1000.0)
    feel(wall, 0, LONG, at=-1e-3 * pressed)
    rows = feel(wall, TOUCHES, 60, at=-1e-3 * pressed)
    sent = rows["sent"]
    assert counts(wall) == [1, 0, 0, 0]
    assert np.linalg.norm(sent, axis=1).max() <= MAX * (1.0 + 1e-12)
    steps = np.linalg.norm(np.diff(sent, axis=0), axis=1)
    assert steps.max() <= RATE * STEP * (1.0 + 1e-9)
    assert sent.mean(axis=0) == pytest.approx([min(pressed, MAX), 0, 0], abs=1e-12)


def test_a_slip_is_felt_after_sticking_and_not_while_it_slides_on():
    wall = wall_of()
    feel(wall, TOUCHES, LONG)
    for _ in range(4):
        feel(wall, TOUCHES | SLIDES, LONG)
    assert counts(wall)[SLIP] == 1
    feel(wall, TOUCHES, round(STUCK / STEP) // 2)
    feel(wall, TOUCHES | SLIDES, LONG)
    assert counts(wall)[SLIP] == 1


def test_what_slides_on_after_a_moment_in_the_air_never_stuck():
    wall = wall_of()
    moment = round(0.5 * (STUCK + APART) / STEP)
    for bits, ticks in ((TOUCHES | SLIDES, LONG), (0, moment), (TOUCHES | SLIDES, LONG)):
        feel(wall, bits, ticks)
    assert counts(wall)[SLIP] == 0


def test_the_loss_of_suction_is_felt_and_its_beginning_is_not():
    wall = wall_of()
    feel(wall, TOUCHES, LONG)
    feel(wall, TOUCHES | SUCKS, LONG)
    assert counts(wall)[RELEASE] == 0
    feel(wall, TOUCHES, 5)
    assert counts(wall)[RELEASE] == 1


def fallen(clicks, to, ticks=5, over=0):
    """Clicks counted where a force of 2 N falls to a share in `ticks`."""
    wall = wall_of(limits_with(clicks=clicks), stiffness=1000.0)
    feel(wall, TOUCHES, 2 * LONG, at=-0.002)
    wall.port.status["felt"][0] = TOUCHES
    move(wall.servo, along([1, 0, 0], np.linspace(-0.002, -0.002 * to, ticks)))
    feel(wall, TOUCHES, 50, at=-0.002 * to)
    return counts(wall)[CLICK]


def test_a_click_is_a_force_that_falls_to_half_at_once_where_something_can_click():
    assert fallen(True, 0.4) == 1
    assert fallen(True, 0.6) == 0
    assert fallen(True, 0.4, ticks=200) == 0
    assert fallen(False, 0.4) == 0


def test_one_switch_leaves_it_out():
    wall = wall_of()
    mute_servo(wall.servo, True)
    rows = contact(wall)
    assert counts(wall) == [0, 0, 0, 0] and not rows["sent"].any()
    assert (rows["flags"] & MUTED > 0).all()
    mute_servo(wall.servo, False)
    assert contact(wall)["sent"].any() and counts(wall)[CONTACT] == 1


def test_without_a_bandwidth_nothing_vibrates_and_all_is_counted():
    wall = wall_of(limits_with(0.0))
    assert not contact(wall)["sent"].any() and counts(wall)[CONTACT] == 1


def test_two_contacts_within_a_moment_are_one():
    wall = wall_of()
    contact(wall, 5)
    feel(wall, 0, 10)
    feel(wall, TOUCHES, 10)
    assert counts(wall)[CONTACT] == 1


def test_each_hand_has_its_own_bits():
    wall = wall_of()
    feel(wall, 0, LONG)
    feel(wall, TOUCHES << FELT_BITS, LONG)
    assert counts(wall)[CONTACT] == 0
