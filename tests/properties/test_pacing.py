"""Rates that follow the machine: steps of given times lead down in order, back up, and not to and fro."""

from collections.abc import Callable, Iterator
from itertools import count, pairwise

import numpy as np
import pytest

from palpo.app.runtime.pacing import LONGEST_HOLD, Pacer, rungs_of
from palpo.physics.exchange.budget import Budget

DT = 1e-3
WISH = 20
RUNGS = rungs_of(WISH, 1.0 / DT, ("columns", "contacts"))
Cost = Callable[[float, Budget], float]


def walk(cost: Cost, seconds: float, pacer: Pacer | None = None) -> tuple[Pacer, list[tuple[float, Budget]]]:
    """A loop whose steps take cost(time, rung) [s]; the pacer, and each rung with the time of its choice."""
    pacer = pacer or Pacer(RUNGS, DT)
    now, seen = 0.0, [(0.0, pacer.rung)]
    while now < seconds:
        took = cost(now, pacer.rung)
        now += max(took, pacer.period)
        if pacer.note(took):
            seen.append((now, pacer.rung))
    return pacer, seen


def noisy(seed: int, spread: float) -> Iterator[float]:
    draw = np.random.default_rng(seed)
    while True:
        yield float(draw.lognormal(0.0, spread))


def test_rungs_lower_rate_then_columns_then_contacts() -> None:
    """Each rung takes less of one thing, and a later thing only when the one before is at its least."""
    rates = [1.0 / (rung.period * DT) for rung in RUNGS]
    lowest = min(rates)
    assert lowest == 10.0
    for above, below in pairwise(RUNGS):
        less = [
            above.period < below.period,
            above.columns > below.columns,
            above.contacts > below.contacts,
        ]
        assert sum(less) == 1
    kinds = [(r.period < 100, r.columns == 1.0, r.contacts == 1.0) for r in RUNGS]
    assert kinds == sorted(kinds, reverse=True)


@pytest.mark.parametrize("period", [5, 20, 60, 100, 200])
def test_wish_is_the_first_rung_and_is_never_exceeded(period: int) -> None:
    """Rates between the wish and 10 Hz; a wish below 10 Hz stays."""
    rungs = rungs_of(period, 1000.0)
    periods = [rung.period for rung in rungs]
    assert periods[0] == period and max(periods) == max(period, 100)
    assert periods == sorted(periods)


def test_without_columns_and_contacts_only_rates_and_pictures_change() -> None:
    """A system whose slow loop has neither is asked for neither."""
    assert all(r.columns == r.contacts == 1.0 for r in rungs_of(WISH, 1000.0))


@pytest.mark.parametrize("took", [0.012, 0.0165, 0.0248, 0.031, 0.06, 0.085])
def test_settles_where_steps_of_one_length_fit(took: float) -> None:
    """Three misses and one change at most, in two minutes; no shorter period would leave room."""
    pacer, seen = walk(lambda _t, _r: took, 120.0)
    assert len(seen) <= 2 and pacer.misses <= 3
    assert took <= pacer.period
    # a rate that it is lowered to leaves a tenth
    assert len(seen) == 1 or 1.1 * took <= pacer.period
    shorter = [r for r in RUNGS if r.period * DT < pacer.period]
    assert all(r.period * DT < 1.3 * took for r in shorter)


def test_follows_a_load_that_comes_and_goes() -> None:
    """Down within three steps of the load, back to the wish within seconds of its end."""
    pacer, seen = walk(lambda t, _r: 0.045 if 5.0 < t < 15.0 else 0.012, 40.0)
    assert len(seen) == 3 and pacer.rung == RUNGS[0] and pacer.misses <= 3
    (_, first), (down, low), (up, last) = seen
    assert first == last == RUNGS[0] and low == Budget(50)
    assert down < 5.2 and 15.0 < up < 18.0


def test_what_no_rate_can_keep_takes_columns_then_contacts_and_gives_them_back() -> None:
    """The order down is that of the rungs, and columns come back one rung at a time before the rate rises."""

    def heavy(t: float, rung: Budget) -> float:
        if t > 60.0:
            return 0.012
        return 0.06 + 0.05 * rung.columns**2 + 0.05 * rung.contacts

    pacer, seen = walk(heavy, 180.0)
    places = [RUNGS.index(rung) for _, rung in seen]
    bottom = places.index(max(places))
    assert places[: bottom + 1] == sorted(places[: bottom + 1])
    assert seen[bottom][1].contacts < 1.0
    back = [RUNGS.index(rung) for t, rung in seen if t > 60.0]
    assert back == sorted(back, reverse=True) and pacer.rung == RUNGS[0]
    tenth = next(i for i, r in enumerate(RUNGS) if r.period == 100)
    assert set(range(tenth, max(places))) <= set(back)


def test_a_rung_that_cannot_be_kept_is_tried_ever_more_rarely() -> None:
    """Steps that only fit the rate below: the times between two attempts double up to the longest."""
    _, seen = walk(lambda _t, r: 0.024 if r.period == WISH else 0.014, 600.0)
    ups = [
        t
        for (t, rung), (_, before) in zip(seen[1:], seen, strict=False)
        if RUNGS.index(rung) < RUNGS.index(before)
    ]
    gaps = np.diff(ups)
    assert (gaps[1:] >= 1.9 * gaps[:-1])[: int(np.log2(LONGEST_HOLD / 4.0))].all()
    assert LONGEST_HOLD <= gaps[-1] < 1.1 * LONGEST_HOLD


@pytest.mark.parametrize("seed", range(4))
def test_noise_makes_no_swing_and_few_misses(seed: int) -> None:
    """Lognormal times about 0.7 of the period: seldom a change, and 2% of the steps late at most."""
    noise = noisy(seed, 0.2)
    pacer, seen = walk(lambda _t, _r: 0.014 * next(noise), 300.0)
    steps = sum(
        (end - start) / (rung.period * DT)
        for (start, rung), end in zip(seen, [*(t for t, _ in seen[1:]), 300.0], strict=True)
    )
    assert len(seen) <= 10 and pacer.misses <= 0.02 * steps


@pytest.mark.parametrize(("every", "most"), [(20, 1), (60, 0)])
def test_a_slow_step_now_and_then_costs_a_rung_at_most(every: int, most: int) -> None:
    """Steps of three periods, alone among short ones: no rate of theirs is taken; too often, a rung is."""
    made = count()
    pacer, _ = walk(lambda _t, _r: 0.061 if next(made) % every == every - 1 else 0.012, 4.0)
    assert RUNGS.index(pacer.rung) <= most


def test_goes_down_before_most_steps_are_late() -> None:
    """A load that grows by a tenth a second: with steps 5% apart the period is never missed."""
    noise = noisy(3, 0.02)
    pacer, seen = walk(lambda t, _r: min(0.1, 0.012 * 1.1**t) * next(noise), 20.0)
    assert pacer.misses == 0 and len(seen) > 3


def test_one_long_stop_changes_nothing() -> None:
    """Anything may stop a machine once: a step of a second among short ones is a miss and no more."""
    pacer, seen = walk(lambda t, _r: 1.0 if 9.99 < t < 10.02 else 0.012, 30.0)
    assert len(seen) == 1 and pacer.misses == 1


def test_starts_on_the_rate_that_the_measured_step_needs() -> None:
    """One slow sample among them is not believed; one rung alone is kept whatever it takes, and misses
    count."""
    pacer = Pacer(RUNGS, DT)
    pacer.begin([0.031, 0.5, 0.03, 0.03])
    assert pacer.rung == Budget(50)
    assert pacer.words() == "slow loop at 20 of 50 Hz: a step takes 31 ms here"
    pacer.begin([0.013, 0.012])
    assert pacer.rung == RUNGS[0], "it leaves more room than a rate that is kept"
    pacer.begin([0.017, 0.016])
    assert pacer.rung.period > WISH
    fixed, seen = walk(lambda _t, _r: 0.031, 10.0, Pacer(RUNGS[:1], DT))
    assert len(seen) == 1 and fixed.misses == pytest.approx(10.0 / 0.031, abs=1)


@pytest.mark.parametrize(("every", "too_many"), [(14, True), (20, False)])
def test_four_slow_steps_are_too_many_among_fifty_and_not_among_sixty(every: int, too_many: bool) -> None:
    """One step in so many keeps its period, but without a tenth of room."""
    pacer = Pacer(RUNGS, DT)
    assert any(pacer.note(0.019 if k % every == 0 else 0.012) for k in range(200)) == too_many
    assert pacer.misses == 0


def test_it_goes_to_the_rate_that_all_but_the_three_slowest_steps_keep() -> None:
    """Three stops of a tenth of a second, each alone, and a step without room: one rate lower."""
    pacer = Pacer(RUNGS, DT)
    steps = np.full(43, 0.012)
    steps[[0, 14, 28, 42]] = 0.1, 0.1, 0.1, 0.019
    assert [pacer.note(took) for took in steps] == [*[False] * 42, True]
    assert pacer.rung == RUNGS[1]


def test_two_late_steps_in_a_row_are_too_many_and_two_apart_are_not() -> None:
    """A step that takes its period exactly is not late."""
    for steps, changes in (((0.03, 0.03), 1), ((0.03, 0.012, 0.03), 0), ((0.03, 0.02, 0.03), 0)):
        pacer = Pacer(RUNGS, DT)
        assert sum(pacer.note(took) for took in steps) == changes
        assert pacer.misses == 2 and pacer.changes == changes


def test_it_goes_up_by_the_last_two_dozen_steps_whatever_those_before_them_took() -> None:
    """At 10 Hz, where two dozen steps are longer than the least time on a rung."""
    pacer = Pacer(RUNGS, DT)
    pacer.begin([0.06, 0.06])
    assert pacer.period == pytest.approx(0.1)
    assert not any(pacer.note(0.085) for _ in range(40))
    assert [pacer.note(0.012) for _ in range(24)] == [*[False] * 22, True, False]


def test_the_time_on_a_rung_is_that_which_its_steps_took() -> None:
    """A stop of a second and a half and 24 short steps of 32 ms are more than two seconds."""
    pacer = Pacer(RUNGS, DT)
    pacer.begin([0.019, 0.019])
    assert pacer.period == pytest.approx(0.032)
    assert not pacer.note(1.5)
    assert sum(pacer.note(0.012) for _ in range(24)) == 1


def test_columns_come_back_only_where_their_square_leaves_room() -> None:
    """Steps that grow with the square of the columns, heavier by 1.6 for ten seconds: half of them remain.

    Three quarters would fit, but without the room that a higher rung must leave; before, they did not fit.
    """
    pacer, seen = walk(lambda t, r: (0.256 if t < 10.0 else 0.16) * r.columns**2, 300.0)
    assert pacer.rung == Budget(100, columns=0.5)
    places = [RUNGS.index(rung) for _, rung in seen]
    assert places == sorted(places)
    assert all(t < 10.0 for t, _ in seen)


def test_failures_are_forgotten_after_a_long_time_on_one_rung() -> None:
    """Rungs that are lost again and again, a load that stays for longer than the longest hold, and so on."""

    def cost(t: float, rung: Budget) -> float:
        return 0.024 if 100.0 < t < 200.0 or rung.period == WISH else 0.014

    _, seen = walk(cost, 260.0)
    ups = np.array([t for (t, r), (_, before) in zip(seen[1:], seen, strict=False)
                    if RUNGS.index(r) < RUNGS.index(before)])  # fmt: skip
    assert np.diff(ups[ups < 100.0])[-1] > 16.0
    assert np.diff(ups[ups > 200.0])[0] < 8.0


def test_what_was_kept_for_long_was_no_failure() -> None:
    """A rung that was gained and kept for longer than the longest hold is tried again as soon as at first."""
    pacer = Pacer(RUNGS, DT)
    pacer.begin([0.031, 0.031])
    _, seen = walk(lambda t, _r: 0.045 if 100.0 < t < 100.2 else 0.012, 110.0, pacer)
    (_, low), (up, wish), (down, _), (again, last) = seen
    assert low != wish == last == RUNGS[0]
    assert up < 3.0 and again - down < 3.0


def test_the_words_say_what_is_less_than_wished_and_nothing_else() -> None:
    """Times below 10 ms in two digits, others in whole milliseconds."""
    said = {}
    for k, rung in enumerate((RUNGS[0], Budget(100, 0.5, 0.5))):
        pacer = Pacer([RUNGS[0], rung] if k else RUNGS, DT)
        pacer.begin([0.00712, 0.00712] if k == 0 else [0.112, 0.112])
        said[k] = pacer.words()
    assert said[0] == "slow loop at 50 Hz: a step takes 7.1 ms here"
    assert said[1] == (
        "slow loop at 10 of 50 Hz, 50% of the columns, 50% of the contacts: a step takes 112 ms here"
    )
