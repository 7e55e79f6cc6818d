"""How far a step looks for contacts: as far as bodies come in it, which changes no force."""

import numpy as np
import pytest

from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import (
    BALL_ON_BLOCK,
    BOX_ON_PLANE,
    SOFT_BOX,
    lock_step,
    proceed,
    resting,
    small_scene,
)

START = (0.003, 0.0088, -0.002)
CRAWL = 0.05
"""Least bound of a soft body's speed [m/s]."""


def pressed(depth: float, ticks: int) -> np.ndarray:
    """The hand goes down by that [m] in 0.1 s and along, and stays."""
    way = np.tile(np.array(START), (ticks, 1))
    share = np.minimum(1.0, np.arange(ticks) / 100.0)
    way[:, 1] -= depth * share
    way[:, 0] += 0.004 * share
    return way


def runs(text: str) -> list[LockStep]:
    """The same scene as it is, and with contacts always looked for as far as ever.

    Everything is at the servo's rate: what a slow loop sends depends on which points had rows.
    """
    changes = "solver.tolerance=1e-12", "solver.sweeps_high=500"
    made = [LockStep(small_scene(text, *changes), "monolithic") for _ in range(2)]
    for search in made[1].side.searches:
        search.bounds[0] = search.bounds[1]
    return made


@pytest.mark.parametrize("case", ["pressed", "flung", "dropped"])
def test_the_forces_are_those_of_all_contacts_far_and_near(case: str) -> None:
    """To the solver's tolerance in the rows that bear; those that do not bear do not act."""
    box = SOFT_BOX.replace("0.0105", "0.05")
    text = BOX_ON_PLANE.format(box=box) if case == "dropped" else BALL_ON_BLOCK
    some, all_of_them = runs(text)
    if case == "dropped":
        way = resting((0.0, 0.5, 0.0), 200)
    else:
        way = pressed(0.004, 300)
    if case == "flung":  # the hand lets go of what it presses, faster than any speed so far
        way[200:] = way[0] + [0.0, 0.01, 0.0]
        way[201:, 1] -= 0.2e-3 * np.arange(99)
    one, two = some.run(way), all_of_them.run(way)
    peak = max(np.abs(two["force"]).max(), 1e-3)
    np.testing.assert_allclose(one["force"], two["force"], atol=1e-6 * peak)
    np.testing.assert_allclose(one["tool"], two["tool"], atol=1e-9)
    bodies = [run.low.members[0].body.x for run in (some, all_of_them)]
    np.testing.assert_allclose(*bodies, atol=1e-9)
    assert one["rows"].sum() < two["rows"].sum() or case == "dropped"  # all of its corners land at once
    for run in (some, all_of_them):
        run.close()


def test_the_odometer_counts_ways_and_not_forces() -> None:
    """A ball at rest that a stiff hold presses: without contact it would leave at a metre a second."""
    run = LockStep(small_scene(BALL_ON_BLOCK))
    run.run(pressed(0.004, 300))
    before, force = float(run.high.search.odometer[0]), run.high.port.force.copy()
    run.run(np.tile(run.high.port.position, (100, 1)))
    assert np.linalg.norm(force) > 0.3
    # the crawl that a soft body is given at least, and what still settles
    assert 0.1 * CRAWL <= run.high.search.odometer[0] - before < 0.1 * 2.0 * CRAWL
    run.close()


def test_forces_that_fling_a_body_have_contacts_looked_for_once_more() -> None:
    """A quick ball meets a wall in the step in which it gets there, not in the next one."""
    run = LockStep(small_scene(BALL_ON_BLOCK))
    way = np.tile(np.array(START), (60, 1))
    way[20:, 1] -= np.minimum(0.01, 2e-3 * np.arange(1, 41))
    looked = []
    for k in range(len(way)):
        run.run(way[k : k + 1])
        looked.append(int(run.high.engine.count["rounds"][0]))
    assert max(looked) == 2 and looked[:20] == [1] * 20
    run.close()


def test_the_papers_proxy_looks_at_every_pair_whatever_it_saw_before():
    """It is set to where the servo is in each slow step, by a way that its odometer knows nothing of."""
    run = lock_step(BALL_ON_BLOCK, kind="paper")
    way = pressed(0.002, 200)
    proceed(run, way)
    search = run.low.proxy.search
    for _ in range(3):
        search.work.due[:] = np.inf
        search.found.count[0]["found"] = 0
        proceed(run, resting(way[-1], 20))
        assert search.found.count[0]["found"] > 0
    run.close()


def test_contacts_that_a_frame_froze_or_that_were_looked_for_as_far_as_can_be_are_looked_for_once() -> None:
    """No second look would find others: neither at the servo nor at the proxy, which looks at every pair."""
    run = lock_step(BALL_ON_BLOCK, kind="paper")
    way = np.tile(np.array(START), (60, 1))
    way[20:, 1] -= np.minimum(0.01, 2e-3 * np.arange(1, 41))
    touched = 0
    for k in range(len(way)):
        proceed(run, way[k : k + 1])
        for engine in (run.high.engine, run.low.proxy.engine):
            assert engine.count["rounds"][0] <= 1
            touched += int(engine.contacts.count["found"][0])
    assert touched > 0
    run.close()
