"""A step of bodies of any two kinds solves the problem of both at once, and keeps the laws of mechanics."""

import ctypes
from itertools import combinations_with_replacement

import numpy as np
import pytest

from palpo.physics.bodies.chain_models import rest_state, rigid_model
from palpo.physics.compliance.chain import CHAIN, make_chain
from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.compliance.hold import make_hold
from palpo.physics.compliance.surface_state import COUPLED
from palpo.physics.contact.laws import OPEN, natural_map_residual
from palpo.physics.contract.contacts import Contacts, append, make_contacts
from palpo.physics.contract.stages import DONE, NOT_FINITE, ROTATION, Batch, Body, make_hand
from palpo.physics.engine.build import Bound, Built, make_engine
from palpo.physics.engine.joints import Joint
from palpo.physics.engine.relaxing import anderson_unit
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.errors import InputError
from tests.engine.bodies import KINDS, STEP, Listed, held_surface, listed, on_plane, random_batch, turned
from tests.engine.whole_step import engine_step

CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
CORNERS = np.array([[x, y, z] for x in (-0.01, 0.01) for y in (-0.01, 0.01) for z in (-0.01, 0.01)])


def run(built: Built, steps: int = 1) -> int:
    """So many steps, or to the first that fails."""
    handle = Handle(built.engine)
    for _ in range(steps):
        code = CALL(engine_step.address)(handle.address)
        if code != DONE:
            return code
    return DONE


def contacts_of(rng: np.random.Generator, sides: tuple[Batch, Batch], n: int) -> Contacts:
    """n contacts of bodies 0 and 1 at the points of two batches, some apart and some deep."""
    out = make_contacts(n)
    frames = np.linalg.qr(rng.standard_normal((n, 3, 3)))[0]
    for k in range(n):
        append(out, k, 0, 1)
        out.frame[k], out.gap[k], out.mu[k] = frames[k], rng.uniform(-5e-4, 2e-4), 0.6
        for side in range(2):
            out.slots[k, side], out.weights[k, side] = sides[side].slots[k], sides[side].weights[k]
            out.arm[k, side] = sides[side].arm[k]
    return out


@pytest.mark.parametrize("method", [0, 1], ids=["anderson", "gauss-seidel"])
@pytest.mark.parametrize("pair", list(combinations_with_replacement(KINDS, 2)), ids=" and ".join)
def test_forces_solve_the_problem_of_both_bodies_at_once(pair, method):
    # against six freedoms, six contacts may point so that no force parts them
    rng, n = np.random.default_rng(11), 3 if "admitted" in pair else 6
    kinds = [KINDS[name](rng) for name in pair]
    sides = tuple(random_batch(rng, kind.body, n) for kind in kinds)
    contacts = contacts_of(rng, sides, n)
    built = make_engine(
        [kind.body for kind in kinds], [anderson_unit, gauss_seidel_unit], n, STEP,
        [Bound.bind(listed, Listed(contacts))],
    )  # fmt: skip
    e = built.engine
    e.solver.settings["method"], e.solver.settings["tolerance"] = method, 1e-11
    e.solver.settings["sweeps"] = 20000
    J = [
        sign * np.vstack([contacts.frame[k] @ kind.rows(side, k) for k in range(n)])
        for sign, kind, side in zip((1.0, -1.0), kinds, sides, strict=True)
    ]
    w = sum(j @ kind.compliance @ j.T for j, kind in zip(J, kinds, strict=True))
    assert run(built) == DONE
    mu, r = contacts.mu, e.r[: 3 * n]
    if pair == ("fixed", "fixed"):
        assert not r.any(), "no force can part what does not yield"
        return
    assert (r[::3] > 0.0).any()
    assert natural_map_residual(w, e.b[: 3 * n], mu, r) <= 1e-7
    apart = np.abs(e.u[: 3 * n] - w @ r - e.b[: 3 * n]).reshape(n, 3).max(axis=1)
    assert apart[e.inside].max() <= 1e-9 * np.abs(e.b).max()
    # what is outside of the set has been moved, a frame that turns on its arc
    assert apart.max() <= 1e-3 * np.abs(e.b).max()


@pytest.mark.parametrize("method", [0, 1], ids=["anderson", "gauss-seidel"])
def test_a_contact_that_no_force_can_part_takes_nothing_from_others(method):
    """Two fixed bodies, one deep in the other: what presses on the first of them is borne all the same."""
    forces = []
    for deep in (False, True):
        rng, n = np.random.default_rng(11), 4
        kinds = [KINDS[name](rng) for name in ("rigid", "fixed", "fixed")]
        sides = tuple(random_batch(rng, kind.body, n) for kind in kinds[:2])
        given = contacts_of(rng, sides, n)
        contacts = make_contacts(n + 1)
        for k in range(n + deep):
            append(contacts, k, 0 if k < n else 1, 1 if k < n else 2)
            same = min(k, n - 1)
            contacts.frame[k], contacts.gap[k], contacts.mu[k] = given.frame[same], given.gap[same], 0.6
            contacts.slots[k], contacts.weights[k], contacts.arm[k] = (
                given.slots[same], given.weights[same], given.arm[same],
            )  # fmt: skip
        contacts.gap[n] = -5e-4
        built = make_engine(
            [kind.body for kind in kinds], [anderson_unit, gauss_seidel_unit], n + 1, STEP,
            [Bound.bind(listed, Listed(contacts))],
        )  # fmt: skip
        built.engine.solver.settings["method"] = method
        built.engine.solver.settings["tolerance"], built.engine.solver.settings["sweeps"] = 1e-11, 20000
        assert run(built) == DONE
        forces.append(built.engine.r[: 3 * n].copy())
        assert not built.engine.r[3 * n : 3 * (n + deep)].any()
    assert forces[0].any()
    np.testing.assert_allclose(forces[1], forces[0], atol=1e-8 * np.abs(forces[0]).max())


@pytest.mark.parametrize(
    "pair", [("rigid", "beam"), ("beam", "rigid"), ("rigid", "surface")], ids=" and ".join
)
def test_b_is_the_gap_after_each_has_moved_alone(pair):
    rng, n = np.random.default_rng(12), 5
    free = [make_engine([KINDS[name](np.random.default_rng(i)).body], [anderson_unit], 1, STEP)
            for i, name in enumerate(pair)]  # fmt: skip
    kinds = [KINDS[name](np.random.default_rng(i)) for i, name in enumerate(pair)]
    sides = tuple(random_batch(rng, kind.body, n) for kind in kinds)
    for side in sides:
        side.arm[:] = 0.0
    contacts = contacts_of(rng, sides, n)
    built = make_engine(
        [kind.body for kind in kinds], [anderson_unit], n, STEP, [Bound.bind(listed, Listed(contacts))]
    )
    assert run(built) == DONE
    away = np.zeros((n, 3))
    for sign, one, side in zip((1.0, -1.0), free, sides, strict=True):
        x = one.bodies[0].whole.x
        before = places(one.bodies[0], side)
        assert run(one) == DONE
        away += sign * (np.einsum("kc,kci->ki", side.weights, x[side.slots]) - before)
    expected = np.einsum("kdi,ki->kd", contacts.frame, away)
    expected[:, 0] += contacts.gap
    # points ride on an arc, whose tangent the rows have
    np.testing.assert_allclose(built.engine.b.reshape(-1, 3), expected, atol=2e-3 * np.abs(away).max())


def places(body: Body, side: Batch) -> np.ndarray:
    """Where the batch's points are now [m]."""
    from palpo.physics.contract.stages import PLACE
    from tests.engine.test_kinds import ask

    assert ask(body, PLACE, side) == DONE
    return side.x.copy()


def block(capacity: int = 64, **state) -> Body:
    """A rigid cube of 20 mm and 10 g; state: x, v, w, gravity, hold."""
    model = rigid_model(0.01, 0.01 * 0.02**2 / 6.0 * np.eye(3), state.get("gravity", (0.0, 0.0, 0.0)))
    now = rest_state([state.get("x", np.zeros(3))], [state.get("q", [1.0, 0.0, 0.0, 0.0])])
    now.v[:], now.w[:] = state.get("v", 0.0), state.get("w", 0.0)
    return CHAIN.bind(make_chain(model, now, [0] * 8, CORNERS, capacity, state.get("hold")))


def test_action_equals_reaction_linear_and_angular():
    rng = np.random.default_rng(13)
    one = block(v=[0.3, 0.0, 0.1], w=rng.standard_normal(3))
    two = block(x=[0.021, 0.002, 0.001], q=turned(rng), v=[-0.2, 0.1, 0.0], w=rng.standard_normal(3))
    sides = tuple(random_batch(rng, body, 4) for body in (one, two))
    at = [places(body, side) for body, side in zip((one, two), sides, strict=True)]
    sides[0].arm[:], sides[1].arm[:] = 0.5 * (at[1] - at[0]), 0.5 * (at[0] - at[1])
    contacts = contacts_of(rng, sides, 4)
    contacts.gap[:] = -1e-4

    def momenta() -> np.ndarray:
        total = np.zeros(6)
        for body in (one, two):
            x, v, w = (getattr(body.state.now, name)[0] for name in ("x", "v", "w"))
            total[:3] += 0.01 * v
            total[3:] += 0.01 * np.cross(x, v) + 0.01 * 0.02**2 / 6.0 * w
        return total

    before, speed = momenta(), one.state.now.v.copy()
    built = make_engine([one, two], [anderson_unit], 4, STEP, [Bound.bind(listed, Listed(contacts))])
    assert run(built) == DONE
    assert np.abs(one.state.now.v - speed).max() > 1e-2
    np.testing.assert_allclose(momenta(), before, atol=1e-12 * np.abs(before).max())


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_block_on_a_slope_holds_without_creeping_or_slides_as_coulomb_says(mu):
    slope, normal = 0.5, np.array([-np.sin(0.5), np.cos(0.5), 0.0])
    q = np.array([np.cos(slope / 2), 0.0, 0.0, np.sin(slope / 2)])
    body = block(x=0.01 * normal, q=q, gravity=(0.0, -9.81, 0.0))
    built = on_plane(body, mu, normal)
    start, steps = body.state.now.x[0].copy(), 400
    assert run(built, steps) == DONE
    way = np.linalg.norm(body.state.now.x[0] - start)
    down = 9.81 * (np.sin(slope) - mu * np.cos(slope))
    if down < 0.0:
        assert way <= 1e-9, "it creeps"
    else:  # backward Euler: the n-th step moves by n a h^2
        assert way == pytest.approx(down * STEP**2 * steps * (steps + 1) / 2, rel=1e-6)


def crept(remembers: bool) -> tuple[float, float]:
    """How far a block that sticks on a slope has gone after 200 and 1000 steps of coarse solutions [m]."""
    normal = np.array([-np.sin(0.5), np.cos(0.5), 0.0])
    body = block(x=0.01 * normal, q=[np.cos(0.25), 0.0, 0.0, np.sin(0.25)], gravity=(0.0, -9.81, 0.0))
    built = on_plane(body, 0.8, normal)
    built.engine.solver.settings["tolerance"] = 1e-3
    start, way = body.state.now.x[0].copy(), []
    for _ in range(1000):
        if not remembers:
            built.engine.memory.offset[:] = 0.0
        assert run(built) == DONE
        way.append(float(np.linalg.norm(body.state.now.x[0] - start)))
    return way[199], way[999]


def test_what_a_solver_leaves_undone_is_made_good_by_the_anchor():
    """What each step lacks does not add up; without the anchor it does, in proportion to the steps."""
    early, late = crept(True)
    assert late <= 1.5 * early
    early, late = crept(False)
    assert late > 3.0 * early


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_restitution_gives_back_its_share_of_the_speed(restitution):
    body = block(x=[0.0, 0.01, 0.0], v=[0.0, -0.4, 0.0])
    assert run(on_plane(body, 0.0, (0.0, 1.0, 0.0), restitution)) == DONE
    np.testing.assert_allclose(body.state.now.v[0], [0.0, restitution * 0.4, 0.0], atol=1e-9)


def test_at_rest_the_hand_feels_its_coupling_pressed_against_the_ground():
    stiffness, depth, weight = 500.0, 2e-3, 0.01 * 9.81
    hold, hand = make_hold(0, False, True, Gains(stiffness, 2.0, 0.5, 2e-3)), make_hand()
    body = block(x=[0.0, 0.01, 0.0], gravity=(0.0, -9.81, 0.0), hold=hold)
    hand.position[:] = 0.0, 0.01 - depth, 0.0
    built = on_plane(body, 0.5, (0.0, 1.0, 0.0), hand=hand)
    assert run(built, 600) == DONE
    np.testing.assert_allclose(hand.force, [0.0, stiffness * depth, 0.0], atol=1e-6)
    np.testing.assert_allclose(hand.held, [0.0, 0.01, 0.0], atol=1e-9)
    assert built.engine.r[:24:3].sum() == pytest.approx(stiffness * depth + weight, rel=1e-6)


@pytest.mark.parametrize("what", [0, ROTATION], ids=["point", "rotation"])
def test_what_a_joint_holds_together_stays_together(what):
    one = block(v=[0.3, 0.0, 0.0], w=[0.0, 2.0, 1.0])
    two = block(x=[0.02, 0.0, 0.0], w=[1.0, 0.0, -3.0])
    joint = Joint((0, 1), ([7], [3]), what=what)
    built = make_engine([one, two], [anderson_unit], 1, STEP, joints=[joint])
    momentum = 0.01 * (one.state.now.v + two.state.now.v)
    # a rotation by a finite step is no vector: of second order in it
    tolerance = 1e-5 if what == ROTATION else 1e-4
    assert run(built, 200) == DONE
    if what == ROTATION:
        np.testing.assert_allclose(one.state.now.q, two.state.now.q, atol=tolerance)
    else:
        np.testing.assert_allclose(one.whole.x[7], two.whole.x[3], atol=tolerance)
    np.testing.assert_allclose(0.01 * (one.state.now.v + two.state.now.v), momentum, atol=1e-12)


def test_what_the_working_set_leaves_out_does_not_sink_in():
    hand, kind = make_hand(), held_surface(np.random.default_rng(14))
    frame = kind.body.state.frame
    hand.orientation[:] = frame.now.orientation
    built = on_plane(kind.body, 0.3, (0.0, 1.0, 0.0), hand=hand)
    e, left_out = built.engine, 0
    e.solver.settings["tolerance"] = 1e-7
    low = kind.body.whole.x
    hand.position[:] = frame.now.position
    assert run(built) == DONE
    hand.position[1] -= low[:, 1].min() - 1e-4
    for _ in range(40):
        hand.position[1] -= 1e-4
        assert run(built) == DONE
        n = int(e.contacts.count[0]["found"])
        outside = ~e.inside[:n]
        left_out += int(outside.sum())
        assert (e.u[: 3 * n : 3][outside] >= -1e-7).all()
        assert (e.contacts.status[:n][outside] == OPEN).all()
        assert low[:, 1].min() >= -1e-6, "the bodies as they stand"
    assert left_out > 0 and hand.force[1] > 0.1
    assert kind.body.state.frame.grip[0] == COUPLED
    np.testing.assert_allclose(hand.force, e.contacts.force[:n].sum(axis=0), rtol=1e-9)


def test_a_body_at_no_place_ends_the_step_before_any_body_has_moved():
    body = block(x=[0.0, 0.0099, 0.0], v=[0.0, -0.4, 0.0])
    built = on_plane(body, 0.5, (0.0, 1.0, 0.0))
    built.bodies[1].state.x[0, 1] = np.nan
    before = body.state.now.x.copy()
    assert run(built) == NOT_FINITE
    assert built.engine.count["failed"] == 2
    np.testing.assert_array_equal(body.state.now.x, before)


def test_contacts_without_room_are_dropped_and_counted_and_leave_the_others_as_they_are():
    body = block(x=[0.0, 0.0099, 0.0])
    built = on_plane(body, 0.5, (0.0, 1.0, 0.0))
    small = make_engine([body, built.bodies[1]], [anderson_unit], 3, STEP, built.detectors)
    assert run(small) == DONE
    assert small.engine.count["lost"] == 5
    whole = on_plane(block(x=[0.0, 0.0099, 0.0]), 0.5, (0.0, 1.0, 0.0))
    assert run(whole) == DONE
    for name in ("identity", "body", "slots", "weights", "arm", "frame", "gap", "mu"):
        kept, found = (getattr(built.engine.contacts, name)[:3] for built in (small, whole))
        np.testing.assert_array_equal(kept, found, err_msg=name)


def test_a_full_list_keeps_the_contacts_that_it_has():
    """There is no number for one more: whoever filled in that contact would write over another."""
    contacts = make_contacts(2)
    assert [append(contacts, 10 + k, k, 3) for k in range(4)] == [0, 1, -1, -1]
    assert contacts.count["found"] == contacts.count["lost"] == 2
    np.testing.assert_array_equal(contacts.identity, [10, 11])
    np.testing.assert_array_equal(contacts.body, [[0, 3], [1, 3]])


def test_an_engine_that_cannot_be_is_refused_in_words():
    body, ground = block(capacity=4), FIXED.bind(make_fixed(np.zeros((1, 3))))
    with pytest.raises(InputError, match="room for 4"):
        make_engine([body, ground], [anderson_unit], 5, STEP)
    with pytest.raises(InputError, match="bodies \\(0, 2\\)"):
        make_engine([body, ground], [anderson_unit], 1, STEP, joints=[Joint((0, 2), ([0], [0]))])
    with pytest.raises(InputError, match="step"):
        make_engine([body], [anderson_unit], 1, 0.0)
