"""Factors of several bodies are made anew one after another, none too late and none without need."""

import numpy as np
import pytest

from palpo.physics.systems.suction.renewals import SPREAD, early


def made(rates, steps, spread=True):
    """How many of the bodies, turning by these rates a step, make a factor in each step; the most turned."""
    turned, age = np.zeros((2, len(rates)))
    counts, worst = [], 0.0
    renews = np.zeros(len(rates), bool)
    for _ in range(steps):
        turned, age = turned + rates, age + 1
        now = renews | (turned > 1.0)
        worst = max(worst, float(turned.max()))
        turned[now], age[now] = 0.0, 0
        counts.append(int(now.sum()))
        renews[:] = False
        if spread:
            renews[early(turned, age)] = True
    return np.array(counts), worst


@pytest.mark.parametrize("n", [2, 4, 16, 21])
@pytest.mark.parametrize("period", [10, 12, 21])
def test_bodies_that_turn_alike_make_their_factors_one_after_another(n, period):
    rates = np.full(n, 1.0 / (period - 0.5))
    counts, worst = made(rates, 200)
    room = -(-n // SPREAD)
    assert made(rates, 200, spread=False)[0].max() == n, "or there is nothing to spread"
    assert counts.max() <= room
    assert worst <= 1.0 + rates[0]
    # waiting for a turn costs renewals in the first period alone
    assert counts.sum() <= (200 // period + 1) * n


def test_a_body_alone_and_bodies_at_rest_keep_their_factors_as_long_as_they_may():
    assert made(np.array([0.083]), 200)[0].sum() == made(np.array([0.083]), 200, spread=False)[0].sum()
    assert made(np.zeros(16), 50)[0].sum() == 0


def test_what_turns_too_far_within_a_step_renews_at_once():
    """Nothing that has to is put off: all of sixteen that turn by twice what they may."""
    counts, _ = made(np.full(16, 2.0), 5)
    assert (counts == 16).all()


def test_one_that_is_due_takes_no_other_with_it():
    turned = np.array([0.95, 0.3, 0.2, *np.zeros(13)])
    assert early(turned, np.full(16, 10)).tolist() == [0]
