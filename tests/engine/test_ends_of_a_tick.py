"""What a tick takes in and gives out at its ends: numbers that are none never leave it as a force."""

from typing import NamedTuple

import numpy as np

from palpo.physics.compliance.chain import fastest
from palpo.physics.engine.servo import _smallest, tick
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import NOT_FINITE, OK
from palpo.physics.reduction.replay import MOST_LED, _solve, make_led


def test_a_hand_whose_force_is_no_number_fails_the_tick():
    """Friction of a stylus that moves at no speed at all."""
    servo = _smallest()
    assert tick(Handle(servo)) == OK
    servo.port.velocity[0] = np.nan
    assert tick(Handle(servo)) == NOT_FINITE


def test_what_leads_the_slots_of_a_body_knows_nothing_of_another_body():
    """C is a block a body, its lower triangle alone is written; elsewhere is what old frames left."""
    led, rng, slots = make_led(), np.random.default_rng(1), (2, 3, 1)
    led.factor[:] = np.nan
    off, at = rng.standard_normal((sum(slots), 3)), 0
    expected = np.zeros_like(off)
    for count in slots:
        rows = slice(3 * at, 3 * (at + count))
        root = np.tril(rng.standard_normal((3 * count, 3 * count))) + 4.0 * np.eye(3 * count)
        led.factor[rows, rows] = np.where(np.tril(np.ones_like(root)) > 0, root, np.nan)
        led.first[at : at + count] = at
        expected[at : at + count] = np.linalg.solve(root @ root.T, off[at : at + count].ravel()).reshape(
            -1, 3
        )
        at += count
    assert at <= MOST_LED
    led.count[0], led.force[:at] = at, off
    _solve(led)
    np.testing.assert_allclose(led.force[:at], expected, rtol=1e-12)


class Moving(NamedTuple):
    """Velocities of a chain's frames."""

    v: np.ndarray
    w: np.ndarray


class Pushed(NamedTuple):
    """What the speed of a chain's points is read from."""

    now: Moving
    change: np.ndarray
    gave: np.ndarray
    reach: np.ndarray


def test_no_point_of_a_chain_is_faster_than_it_says_and_one_is_as_fast():
    """|v + w x r| over all r as long as the reach, before a step and after it."""
    rng, n = np.random.default_rng(4), 6
    for seldom in (0.0, 1.0):
        now = Moving(rng.standard_normal((n, 3)), seldom * rng.standard_normal((n, 3)))
        reach = rng.uniform(0.0, 1.0, n)
        chain = Pushed(now, rng.standard_normal((n, 6)), rng.standard_normal((n, 6)), reach)
        for pushed in (False, True):
            twist = np.hstack(now) + pushed * (chain.change + chain.gave)
            v, w = (np.linalg.norm(part, axis=1) for part in (twist[:, :3], twist[:, 3:]))
            np.testing.assert_allclose(fastest(chain, pushed), (v + reach * w).max(), rtol=1e-14)
