"""Bodies under the passive midpoint rule: their points, their motion, and the energy of what they touch."""

import numpy as np
import pytest

from palpo.physics.bodies.admittance import plug_energy
from palpo.physics.contract.stages import (
    AIM,
    BEGIN,
    CLEAR,
    DONE,
    END,
    FEEL,
    FREE,
    MOVED,
    NOT_OFFERED,
    PLACE,
    PUSH,
    ROTATION,
    SHAPE,
)
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.dissipating import maximal_dissipation_unit
from palpo.physics.reduction.joining import cut
from palpo.physics.reduction.segments import energies
from palpo.studies.reference.passive_midpoint import LinearBody
from tests.engine.bodies import (
    BLOCK,
    CLAMPED,
    CONTACT,
    DAMPED,
    KINDS,
    STEP,
    Listed,
    Yielding,
    admitted,
    listed,
    matrix,
    random_batch,
    segments,
)
from tests.engine.test_kinds import ask
from tests.engine.test_steps import contacts_of, run

POINTS = 5


def stages(kind: Yielding, batch, *names: int) -> np.ndarray:
    """Some stages; d of the batch's points, in one piece."""
    for stage in names:
        assert ask(kind.body, stage, batch) == DONE
    return batch.d[: batch.count[0]].ravel().copy()


def rows(kind: Yielding, batch) -> np.ndarray:
    """J of all points in world axes."""
    return np.vstack([kind.rows(batch, k) for k in range(POINTS)])


def test_segments_see_t_v_and_move_by_t_vh_of_the_dense_midpoint_step():
    """The error is that of the factors of Mh, good to 1e-13 of its inverse's largest entry."""
    kind = segments(np.random.default_rng(1))
    batch, state = random_batch(np.random.default_rng(2), kind.body, POINTS), kind.body.state.state
    batch.wants["v"] = batch.wants["d"] = 1
    (part,) = cut(BLOCK, DAMPED, CLAMPED, np.zeros(len(BLOCK.tets), np.int64))
    dense = LinearBody(part.M, DAMPED.alpha * part.M + DAMPED.beta * part.K, part.K, STEP)
    dense.x, dense.v = state.x.copy(), state.v.copy()
    J = np.zeros((3 * POINTS, part.n_dof))
    J[:, part.dofs_of(CONTACT)] = rows(kind, batch)
    before, near = dense.v, 1e-9 * STEP * np.abs(dense.v).max()
    free = stages(kind, batch, CLEAR, BEGIN, FREE)
    np.testing.assert_allclose(batch.v.ravel(), J @ before, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(free, STEP * J @ (2.0 * dense.free_velocity() - before), atol=near)
    pushed, moved = stages(kind, batch, PUSH, MOVED), stages(kind, batch, END)
    vh = dense.step(J.T @ batch.f.ravel())
    np.testing.assert_allclose(pushed, STEP * J @ (2.0 * vh - before), atol=near)
    np.testing.assert_allclose(moved, STEP * J @ vh, atol=near)
    np.testing.assert_allclose(state.x, dense.x, atol=near)
    assert np.abs(pushed - free).max() > 1e-2 * np.abs(free).max()


def test_an_admitted_body_does_likewise_and_its_hold_pulls_at_the_hand():
    kind = admitted(np.random.default_rng(3))
    batch, (model, motion, *_) = random_batch(np.random.default_rng(4), kind.body, POINTS), kind.body.state
    batch.what[2] = ROTATION
    batch.wants["v"] = batch.wants["d"] = 1
    batch.hand.position[:], batch.hand.orientation[:] = motion.target_position, motion.target_orientation
    J, before, error = rows(kind, batch), motion.velocity.copy(), motion.error.copy()
    b = 2.0 / STEP * model.mass @ before - model.stiffness @ error

    def middle(wrench):
        return kind.compliance @ (b + wrench) / (2.0 * STEP)

    free = stages(kind, batch, AIM, CLEAR, BEGIN, FREE)
    np.testing.assert_allclose(batch.v.ravel(), J @ before, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(free, STEP * J @ (2.0 * middle(0.0) - before), rtol=1e-9, atol=1e-15)
    pushed, moved = stages(kind, batch, PUSH, MOVED), stages(kind, batch, END, FEEL)
    V = middle(J.T @ batch.f.ravel())
    np.testing.assert_allclose(pushed, STEP * J @ (2.0 * V - before), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(moved, STEP * J @ V, rtol=1e-9, atol=1e-15)
    felt = np.r_[batch.hand.force, batch.hand.torque]
    # the target rests: damping and spring in the middle of the step
    pull = model.damping @ V + model.stiffness @ (error + 0.5 * STEP * V)
    np.testing.assert_allclose(felt, pull, rtol=1e-9)


def test_segments_have_their_points_on_the_contact_nodes():
    kind = segments(np.random.default_rng(5))
    batch, nodes = random_batch(np.random.default_rng(6), kind.body, POINTS), BLOCK.nodes[CONTACT]
    assert ask(kind.body, SHAPE, kind.body.whole) == DONE and ask(kind.body, PLACE, batch) == DONE
    (part,) = cut(BLOCK, DAMPED, CLAMPED, np.zeros(len(BLOCK.tets), np.int64))
    moved = kind.body.state.state.x[part.dofs_of(CONTACT)].reshape(-1, 3)
    np.testing.assert_allclose(kind.body.whole.x, nodes + moved, atol=1e-15)
    np.testing.assert_allclose(
        batch.x, np.einsum("kc,kci->ki", batch.weights, (nodes + moved)[batch.slots]), atol=1e-15
    )
    assert ask(kind.body, FEEL, batch) == NOT_OFFERED


def test_an_admitted_body_is_where_its_motion_has_it():
    kind = admitted(np.random.default_rng(7))
    batch = random_batch(np.random.default_rng(8), kind.body, POINTS)
    assert ask(kind.body, PLACE, batch) == DONE
    assert np.array_equal(batch.x[0], kind.body.state.motion.position)
    assert np.array_equal(batch.q[0], kind.body.state.motion.orientation)


def energy(kind: Yielding, turn: np.ndarray) -> float:
    """Of a body [J], what its own dampings took included; turn: axes of a rigid one."""
    s = kind.body.state
    if kind.body.kind.name == "midpoint modal":
        return energies(s.model, s.state, np.zeros_like(s.energy)) + s.lost[0]
    if kind.body.kind.name == "midpoint held":
        return plug_energy(s.model, s.motion) + s.motion.work["damping"][0] - s.motion.work["target"][0]
    w = turn.T @ s.now.w[0]
    return float(0.5 * s.model.mass[0] * s.now.v[0] @ s.now.v[0] + 0.5 * w @ s.model.inertia[0] @ w)


@pytest.mark.parametrize("restitution", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    "pair",
    [("segments", "admitted"), ("segments", "rigid"), ("admitted", "rigid")],
    ids=" and ".join,
)
def test_contacts_do_the_work_that_restitution_and_gaps_say_and_no_other(pair, restitution):
    """sum f_n (T (1 - eps) v_n - g) / 2 without friction, midpoint bodies or Euler's: none at eps = 1, g = 0.

    A tumbling body would lose energy in a backward Euler step by itself: the rigid one neither turns nor
    falls.
    """
    met = 0
    for seed in range(4):
        rng, n = np.random.default_rng(seed), 6
        kinds = [KINDS[name](rng) for name in pair]
        for kind in kinds:
            if kind.body.kind.name == "chain":
                kind.body.state.now.w[:] = kind.body.state.model.gravity[:] = 0.0
        sides = tuple(random_batch(rng, kind.body, n) for kind in kinds)
        contacts = contacts_of(rng, sides, n)
        contacts.mu[:], contacts.restitution[:] = 0.0, restitution
        contacts.gap[:] = 0.0 if seed % 2 else contacts.gap
        built = make_engine(
            [kind.body for kind in kinds], [maximal_dissipation_unit], n, STEP,
            [Bound.bind(listed, Listed(contacts))],
        )  # fmt: skip
        e = built.engine
        e.solver.settings["tolerance"], e.solver.settings["sweeps"] = 1e-13, 20000
        turns = [matrix(k.body.state.now.q[0]) if k.body.kind.name == "chain" else np.eye(3) for k in kinds]
        before = [energy(kind, turn) for kind, turn in zip(kinds, turns, strict=True)]
        speed = 0.0
        for sign, kind, side in zip((1.0, -1.0), kinds, sides, strict=True):
            side.wants["v"] = 1
            ask(kind.body, BEGIN, side), ask(kind.body, FREE, side)
            speed = speed + sign * np.einsum("ki,ki->k", contacts.frame[:, 0], side.v)
        assert run(built) == DONE
        after = [energy(kind, turn) for kind, turn in zip(kinds, turns, strict=True)]
        f = e.r[: 3 * n : 3]
        if not (f > 0.0).any():
            continue
        met += 1
        expected = 0.5 * f @ (STEP * (1.0 - restitution) * speed - contacts.gap)
        scale = max(abs(a - b) for a, b in zip(after, before, strict=True))
        assert sum(after) - sum(before) == pytest.approx(expected, abs=1e-8 * scale + 1e-13 * sum(before))
        if restitution == 1.0 and seed % 2:
            assert expected == 0.0 and scale > 1e-5 * max(before)
    assert met >= 3
