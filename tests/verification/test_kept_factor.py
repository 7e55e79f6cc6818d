"""A step with the factor of an earlier shape: what it changes of the motion, and what it leaves."""

from time import sleep

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies import held_factor, renewed_beside
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.bodies.renewal import FactorRenewal, rest_from_work
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.systems.suction.renewals import early

pytestmark = pytest.mark.portable

H = 1e-2
SOFT = Material(2e4, 0.42, 1100.0, 0.2, 1e-3)
NEVER = 4.0
"""A turn [rad] past which no element is."""


CELLS = pytest.mark.parametrize("cells", [generate.block, generate.hex_block], ids=["tets", "hexes"])


def bar(cells, angle: float = 0.0, turn: float = NEVER) -> HeldBody:
    """A bar on a handle at its end, twisted about its length: its free end by that angle [rad]."""
    mesh = cells((0.06, 0.02, 0.03), (6, 2, 3))
    along = mesh.nodes[:, 0] - mesh.nodes[:, 0].min()
    body = HeldBody("bar", mesh, SOFT, np.flatnonzero(along < 1e-9), np.flatnonzero(along > 0.05), turn=turn)
    assert body.handle is not None
    body.handle.drive(body.handle.position)
    body.free_motion(H)
    turned = Rotation.from_rotvec(angle * along[:, None] / along.max() * [1.0, 0.0, 0.0])
    body.x = turned.apply(mesh.nodes)
    return body


def moving(body: HeldBody, seed: int = 0) -> np.ndarray:
    """Velocities (n, 3) [m/s] that the body and its handle get, the handle driven on with its own."""
    handle = body.handle
    assert handle is not None
    rng = np.random.default_rng(seed)
    handle.velocity = 0.05 * rng.standard_normal(6)
    body.v = 0.05 * rng.standard_normal(body.n_dof)
    axis = handle.velocity[3:]
    turn = Rotation.from_rotvec(H * axis).as_quat()
    handle.drive(handle.position + H * handle.velocity[:3], [turn[3], *turn[:3]])
    v = body.node_velocities()
    v[body.fixed] = handle.velocity[:3] + np.cross(axis, body.x[body.fixed] - handle.position)
    return v


@CELLS
def test_the_change_of_stiffness_is_that_of_the_assembled_matrices(cells):
    body = bar(cells, 0.4)
    then, before = body._quats.copy(), body.K.toarray()
    body.linearise()
    v = np.zeros_like(body.x)
    v[body.free] = np.random.default_rng(0).standard_normal((body.free.size, 3))
    out = np.zeros_like(v)
    body._elements.add_turned(v, body._quats, then, 2.0, out)
    change = 2.0 * (body.K.toarray() - before) @ v[body.free].ravel()
    assert np.abs(change).max() > 1.0, "or the test shows nothing"
    np.testing.assert_allclose(out[body.free].ravel(), change, atol=1e-12 * np.abs(change).max())


@CELLS
@pytest.mark.parametrize("angle", [0.1, 0.6])
def test_a_motion_that_loads_keep_up_is_the_same_with_any_earlier_factor(cells, angle):
    """The implicit terms of an earlier shape miss only a change of velocity."""
    fresh, kept = bar(cells, angle, turn=0.0), bar(cells, angle)
    wanted = moving(fresh)
    moving(kept)
    # A v = M v_0 + h f is linear in the load
    lacking = (wanted - fresh.free_motion(H))[fresh.free].ravel()
    m = fresh.material
    a = (1.0 + m.alpha * H) * fresh.M + H * (m.beta + H) * fresh.K
    fresh.load[fresh.free] = (a @ lacking / H).reshape(-1, 3)
    kept.load[:] = fresh.load
    scale = np.abs(wanted).max()
    assert np.abs(lacking).max() > 0.1 * scale, "or the test shows nothing"
    # the twist of the handle is that of the factor's shape: its levers do not change with the bar's
    np.testing.assert_allclose(fresh.free_motion(H), wanted, atol=1e-10 * scale)
    np.testing.assert_allclose(kept.free_motion(H), wanted, atol=1e-10 * scale)


@CELLS
def test_what_an_earlier_factor_changes_of_a_change_of_velocity_goes_with_the_turn(cells):
    """From rest: halved with the turn, to the square of it."""
    errors = []
    for angle in (0.08, 0.04):
        motions = []
        for turn in (0.0, NEVER):
            body = bar(cells, angle, turn)
            assert body.handle is not None
            body.handle.drive(body.handle.position)
            body.load[:] = 0.01 * np.random.default_rng(1).standard_normal(body.load.shape)
            motions.append(body.free_motion(H))
        errors.append(np.abs(motions[1] - motions[0]).max() / np.abs(motions[0]).max())
    assert errors[0] < 0.08
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.25)


def test_a_steady_motion_keeps_its_factor_further_and_what_swings_or_starts_does_not():
    """Twisted on at a constant speed, its handle held, and then with the handle free."""
    body = bar(generate.block, turn=0.02)
    assert body.handle is not None
    along = body.mesh.nodes[:, 0] - body.mesh.nodes[:, 0].min()

    def kept(driven: bool) -> bool:
        """Whether a step that turns the end by 0.01 rad more goes on with the factor it has."""
        handle = body.handle
        assert handle is not None
        if driven:
            handle.drive(handle.position)
        else:
            handle.release()
        before = body._factored_at[H].copy()
        body.free_motion(H)
        same = bool((before == body._factored_at[H]).all())
        angles = 0.01 * along[:, None] / along.max()
        v = np.cross([1.0, 0.0, 0.0], body.mesh.nodes) * angles / H
        v[body.fixed] = 0.0
        body.finish(v, H)
        return same

    starts = [kept(True) for _ in range(3)]
    assert starts[:2] == [True, True]
    steady = [kept(True) for _ in range(12)]
    freely = [kept(False) for _ in range(12)]
    assert sum(freely) < sum(steady) < 12


@CELLS
@pytest.mark.parametrize("free", [False, True], ids=["driven", "free handle"])
def test_the_factor_of_a_large_body_is_exact_however_far_all_of_it_turns(cells, free, monkeypatch):
    """Elements, nodes and handle turn by one rotation, with which the kept matrix turns."""
    monkeypatch.setattr(held_factor, "LARGE", 0)
    turn = Rotation.from_rotvec([0.7, -0.4, 1.1])
    found = []
    for kept in (NEVER, 0.0):
        body = bar(cells, 0.1, turn=kept)
        handle = body.handle
        assert handle is not None and body.large
        body.keep_factors(())
        body.free_motion(H)
        at = np.roll(turn.as_quat(), 1)
        body.x = turn.apply(body.x - handle.position) + handle.position
        handle.orientation = at
        handle.velocity = np.array([0.01, 0.0, 0.02, 0.3, 0.1, -0.2])
        body.v = 0.05 * np.random.default_rng(2).standard_normal(body.n_dof)
        if free:
            handle.release()
        else:
            later = Rotation.from_rotvec(0.01 * np.ones(3)) * turn
            handle.drive(handle.position + 1e-4, np.roll(later.as_quat(), 1))
        body.load[:] = 0.01 * np.random.default_rng(1).standard_normal(body.load.shape)
        motion = body.free_motion(H)
        found.append((
            motion, body.respond(body.load, H), body.compliance(4, H), body.holding_wrench(motion, H)
        ))  # fmt: skip
        assert (body.age > 0) == (kept > 0.0), "or one of them has the other's factor"
    size = np.abs(found[1][3]).max() + 1.0
    for one, other in zip(found[0][:3], found[1][:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=2e-5 * np.abs(other).max())
    np.testing.assert_allclose(found[0][3], found[1][3], rtol=0.0, atol=2e-5 * size)


@CELLS
def test_a_product_with_the_stiffness_is_that_of_the_assembled_matrix(cells):
    body = bar(cells, 0.4)
    body.linearise()
    v, out = np.zeros_like(body.x), np.zeros_like(body.x)
    v[body.free] = np.random.default_rng(0).standard_normal((body.free.size, 3))
    body._elements.add_stiff(v, body._quats, -2.0, out)
    wanted = -2.0 * (body.K @ v[body.free].ravel())
    np.testing.assert_allclose(out[body.free].ravel(), wanted, atol=1e-12 * np.abs(wanted).max())


def test_of_a_body_that_bends_elements_turn_against_their_nodes_by_as_much_as_they_are_long(monkeypatch):
    """Bent to an arc of one radian, by half of what one turns against the next."""
    monkeypatch.setattr(held_factor, "LARGE", 0)
    found = []
    for n in (8, 16):
        mesh = generate.hex_block((0.08, 0.01, 0.01), (n, 1, 1))
        body = HeldBody("bar", mesh, SOFT, np.arange(4), turn=NEVER)
        assert body.handle is not None
        body.handle.drive(body.handle.position)
        body.free_motion(H)
        x, radius = mesh.nodes - mesh.nodes.min(axis=0), 0.08
        angle = x[:, 0] / radius
        body.x = np.column_stack([
            (radius - x[:, 1]) * np.sin(angle), radius - (radius - x[:, 1]) * np.cos(angle), x[:, 2]
        ])  # fmt: skip
        found.append(body.turned(H))
    assert found[0] == pytest.approx(0.5 / 8, rel=0.05)
    assert found[1] == pytest.approx(0.5 / 16, rel=0.05)


def late(monkeypatch, turn: float = 0.02, delay: int = 4) -> HeldBody:
    """The bar as a large body without weight, its factors taken so many steps after they were begun."""
    monkeypatch.setattr(held_factor, "LARGE", 0)
    body = bar(generate.hex_block, turn=turn)
    body.keep_factors(())
    body._orders.delay = delay
    body.gravity[:] = 0.0
    return body


def twisted_on(body: HeldBody, steps: int, after=lambda: None, step: float = 0.02) -> np.ndarray:
    """Positions (steps, n, 3) [m] while loads twist the bar and the handle turns by `step` [rad]."""
    handle, found = body.handle, []
    assert handle is not None
    across = body.mesh.nodes[body.last] - body.mesh.nodes[body.last].mean(axis=0)
    body.load[body.last] = 3.0 * np.cross([1.0, 0.0, 0.0], across)
    for k in range(steps):
        half = 0.5 * step * (k + 1)
        handle.drive(handle.position, [np.cos(half), 0.0, np.sin(half), 0.0])
        motion = body.free_motion(H)
        body.compliance(4, H)
        missing = body.refine(motion, np.zeros_like(body.x), H)
        body.finish(motion if missing is None else motion + missing, H)
        after()
        found.append(body.x.copy())
    return np.array(found)


def test_a_step_with_a_late_factor_is_that_with_a_new_one_to_its_tolerance(monkeypatch):
    """Twisted by half a radian since, thrown about, and pushed: with what it adds, and not without."""
    found = []
    for turn in (1e-3, 0.0):
        body = late(monkeypatch, turn)
        monkeypatch.setattr(renewed_beside, "LATEST", 1e6 if turn else 0.0)
        assert body.handle is not None
        body.handle.drive(body.handle.position)
        body.free_motion(H)
        along = body.mesh.nodes[:, 0] - body.mesh.nodes[:, 0].min()
        body.x = Rotation.from_rotvec(0.5 * along[:, None] / along.max() * [1.0, 0.0, 0.0]).apply(
            body.mesh.nodes
        )
        moving(body)
        push = 0.02 * np.random.default_rng(5).standard_normal(body.x.shape)
        motion = body.free_motion(H) + body.respond(push, H)
        missing = body.refine(motion, push, H)
        assert (missing is not None) == body.late == (turn > 0.0)
        whole = motion if missing is None else motion + missing
        found.append((motion, whole, body.holding_wrench(whole, H)))
    (rough, fine, wrench), (_, wanted, held) = found
    change = np.abs(wanted).max()
    assert np.abs(rough - wanted).max() > 0.03 * change, "or the test shows nothing"
    # MISSED is of the matrix's norm, in which soft motions weigh less
    assert np.abs(fine - wanted).max() < 0.003 * change
    np.testing.assert_allclose(wrench, held, atol=0.01 * np.abs(held).max())


def test_a_motion_does_not_depend_on_when_a_factor_beside_it_is_done(monkeypatch):
    """At once, or so late that the step has to wait, with all that the body forgets meanwhile."""
    at_once, later = late(monkeypatch), late(monkeypatch)
    wanted = twisted_on(at_once, 30, rest_from_work)
    make, made = FactorRenewal._make, []
    monkeypatch.setattr(
        FactorRenewal, "_make", lambda renewal: (sleep(0.03), made.append(1), make(renewal))[2]
    )
    found = twisted_on(later, 30, lambda: later._blocks.fill(np.nan))
    assert len(made) > 3, "or the test shows nothing"
    np.testing.assert_array_equal(found, wanted)


def test_a_factor_that_is_twenty_steps_late_moves_a_body_as_one_of_each_step(monkeypatch):
    """Where the step alone, by what its factor misses, is not even stable."""
    monkeypatch.setattr(renewed_beside, "LATEST", 1e6)
    exact = twisted_on(late(monkeypatch, turn=0.0, delay=1), 40, step=0.0)
    found = twisted_on(late(monkeypatch, delay=22), 40, step=0.0)
    went = np.abs(exact[-1] - exact[0]).max()
    assert np.abs(found - exact).max() < 0.01 * went


def test_a_body_that_turns_on_past_what_contacts_bear_awaits_its_factor(monkeypatch):
    body = late(monkeypatch, turn=1e-3, delay=1000)
    ages = []
    twisted_on(body, 20, lambda: ages.append((body.age, body.wear)))
    assert max(wear for _, wear in ages) <= renewed_beside.LATEST
    assert (np.diff([age for age, _ in ages]) < 0).any()


def test_what_a_factor_beside_the_steps_meets_is_raised_in_the_step_that_takes_it(monkeypatch):
    body = late(monkeypatch, delay=3)

    def lose(renewal: FactorRenewal) -> None:
        raise FloatingPointError("the system matrix lost its positive pivot")

    monkeypatch.setattr(FactorRenewal, "_make", lose)
    with pytest.raises(FloatingPointError, match="positive pivot"):
        twisted_on(body, 60)


def test_a_body_at_rest_has_one_factor_made_beside_its_steps_and_no_more(monkeypatch):
    """The first has no compliance; to turn again as little as rounding is no reason for another."""
    body, begun = late(monkeypatch), []
    make = FactorRenewal._make
    monkeypatch.setattr(FactorRenewal, "_make", lambda renewal: begun.append(1) or make(renewal))
    for _ in range(30):
        assert body.handle is not None
        body.handle.drive(body.handle.position)
        body.finish(body.free_motion(H), H)
        for k in early(np.array([body.wear]), np.array([body.age])):
            body.renews = k == 0
    assert len(begun) == 1
