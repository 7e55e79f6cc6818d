"""Each kind of body yields as a dense description of it says, and pushes what it yields to."""

import ctypes

import numpy as np
import pytest

from palpo.physics.contract.stages import (
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FREE,
    MOVED,
    PUSH,
    ROTATION,
    Batch,
    Body,
    Problem,
    make_batch,
    make_problem,
)
from palpo.physics.exchange.handle import Handle
from tests.engine.bodies import KINDS, MIDPOINT, STEP, Yielding, random_batch

POINTS = 7
CALL = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double
)


def ask(body: Body, stage: int, batch: Batch, problem: Problem | None = None) -> int:
    """A stage, as C calls it."""
    batch_handle, problem_handle = Handle(batch), Handle(problem or make_problem(1))
    return CALL(body.kind.unit.address)(
        stage, body.handle.address, batch_handle.address, problem_handle.address, STEP
    )


@pytest.fixture(params=KINDS)
def kind(request) -> Yielding:
    return KINDS[request.param](np.random.default_rng(3))


def rows_of(kind: Yielding, batch: Batch, blocks: int) -> np.ndarray:
    """The rows of all blocks on the body's freedoms."""
    J = np.zeros((3 * blocks, len(kind.compliance)))
    for k in range(int(batch.count[0])):
        i = 3 * batch.block[k]
        J[i : i + 3] += batch.axes[k] @ kind.rows(batch, k)
    return J


def delassus(kind: Yielding, batch: Batch, blocks: int) -> np.ndarray:
    """W of the blocks, from its lower triangle."""
    problem = make_problem(blocks)
    problem.rows[1] = 3 * blocks
    assert ask(kind.body, DELASSUS, batch, problem) == DONE
    w = problem.w.reshape(3 * blocks, 3 * blocks)
    return np.tril(w) + np.tril(w, -1).T


def test_w_is_that_of_the_dense_body(kind):
    batch = random_batch(np.random.default_rng(4), kind.body, POINTS)
    if kind.body.kind.name in ("chain", "midpoint held"):
        batch.what[2] = ROTATION
    assert ask(kind.body, BEGIN, batch) == DONE
    J = rows_of(kind, batch, POINTS)
    expected = J @ kind.compliance @ J.T
    found = delassus(kind, batch, POINTS)
    assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()


def test_a_block_with_both_sides_on_one_body_has_the_cross_terms(kind):
    batch = random_batch(np.random.default_rng(5), kind.body, POINTS)
    batch.block[:] = [0, 1, 1, 2, 2, 3, 4]
    batch.axes[[2, 4]] = -batch.axes[[1, 3]]
    assert ask(kind.body, BEGIN, batch) == DONE
    J = rows_of(kind, batch, 5)
    expected = J @ kind.compliance @ J.T
    assert np.abs(delassus(kind, batch, 5) - expected).max() <= 1e-10 * np.abs(expected).max()


def test_pushed_forces_move_the_points_as_w_says_and_clearing_takes_them_back(kind):
    batch = random_batch(np.random.default_rng(6), kind.body, POINTS)
    batch.f[:] *= 1e-3
    for stage in (BEGIN, CLEAR, FREE):
        assert ask(kind.body, stage, batch) == DONE
    free = batch.d.copy()
    assert ask(kind.body, MOVED, batch) == DONE
    # a frame that turns moves its points along an arc, of which `free` has the tangent
    arc = 1e-4 * np.abs(free).max() + 1e-12
    assert np.abs(batch.d - free).max() <= arc
    unpushed = batch.d.copy()
    assert ask(kind.body, PUSH, batch) == DONE
    assert ask(kind.body, MOVED, batch) == DONE
    J = np.vstack([kind.rows(batch, k) for k in range(POINTS)])
    expected = (J @ kind.compliance @ J.T @ batch.f.ravel()).reshape(-1, 3)
    size = np.abs(expected).max()
    assert np.abs(batch.d - unpushed - expected).max() <= 1e-3 * size + 1e-15
    if kind.body.kind.name != "surface" or kind.body.state.frame.grip[0] == 0:
        assert np.abs(batch.d - unpushed - expected).max() <= 1e-9 * size + 1e-15
    ask(kind.body, CLEAR, batch)
    ask(kind.body, MOVED, batch)
    assert np.abs(batch.d - unpushed).max() <= 1e-12 * max(size, np.abs(unpushed).max())


def test_end_makes_the_step_that_was_foreseen(kind):
    """Under the midpoint rule rows see T v+, and what moves is T vh = T (v+ + v) / 2."""
    batch = random_batch(np.random.default_rng(7), kind.body, POINTS)
    batch.f[:] *= 1e-3
    batch.wants["d"] = 1
    batch.wants["v"] = 1
    for stage in (BEGIN, CLEAR, PUSH, FREE, MOVED):
        assert ask(kind.body, stage, batch) == DONE
    foreseen = batch.d.copy()
    batch.d[:] = 0.0
    assert ask(kind.body, END, batch) == DONE
    if kind.body.kind in MIDPOINT:
        expected = 0.5 * (foreseen + STEP * batch.v)
        np.testing.assert_allclose(batch.d, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(batch.d, foreseen)


def test_pushes_of_the_last_step_stay_until_they_are_cleared(kind):
    batch = random_batch(np.random.default_rng(8), kind.body, POINTS)
    for stage in (BEGIN, CLEAR, PUSH, END, BEGIN, FREE):
        assert ask(kind.body, stage, batch) == DONE
    free = batch.d.copy()
    ask(kind.body, MOVED, batch)
    moved = np.abs(batch.d - free).max()
    assert (moved > 0.0) == (kind.body.kind.name != "fixed")
    ask(kind.body, CLEAR, batch)
    ask(kind.body, MOVED, batch)
    assert np.abs(batch.d - free).max() <= 1e-2 * moved


def test_a_state_of_another_layout_is_refused(kind):
    other = next(
        k(np.random.default_rng(0)).body
        for k in KINDS.values()
        if k(np.random.default_rng(0)).body.kind is not kind.body.kind
    )
    with pytest.raises(TypeError, match=other.kind.name):
        other.kind.bind(kind.body.state)


def test_an_empty_batch_is_no_question(kind):
    batch = make_batch(1)
    for stage in (BEGIN, FREE, DELASSUS, CLEAR, PUSH, MOVED, END):
        assert ask(kind.body, stage, batch) == DONE
