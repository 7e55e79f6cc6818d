"""The step of a snap connector, off line: books that close, forces that balance, a click that latches."""

from functools import lru_cache

import numpy as np
import pytest

from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.collision.nearest import make_descent, signed_nearest, target
from palpo.physics.collision.surface_points import surface_points
from palpo.physics.exchange.port import NOT_FINITE, OK
from palpo.physics.exchange.snap_frame import GAUSS_SEIDEL
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.click import click
from palpo.physics.systems.snap.connectors.registry import generate
from palpo.physics.systems.snap.insertion import Insertion, Series
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import Numerics
from palpo.physics.systems.snap.step import step

REDUCED, SPEED = (6, 25), 0.1
PRESSED = 6.5e-3
"""Travel on the wedge, well before the click [m]."""
PAPER = 48.0
"""Largest force of the paper's experiment [N] (002, V-C); its connector's dimensions are not given."""


@lru_cache
def connector():
    return generate("two-prong")


@lru_cache
def field():
    return exact_field(connector().plug, connector().interference + 2e-3)


def model(**numerics) -> SnapModel:
    return SnapModel(connector(), Numerics(**({"orders": REDUCED} | numerics)), field())


def inserted(made: SnapModel, rest: float = 0.02, **way) -> Series:
    return Insertion(made, **({"speed": SPEED} | way)).run(rest=rest)


@lru_cache
def usual() -> tuple[SnapModel, Series, Series]:
    """An insertion of a reduced connector, and half a millimetre of the target's way back."""
    made = model(orders=None, segments=1, static=0.01)
    push = Insertion(made, SPEED)
    return made, push.run(rest=0.1), push.run(connector().stroke - 1e-3, rest=0.02)


def along(series: Series) -> np.ndarray:
    """Force on the floor along the push."""
    return series.floor @ connector().push


@pytest.mark.parametrize("orders", [REDUCED, None])
@pytest.mark.parametrize("stiffness", [1e2, 1e7, 1e12])
def test_the_energy_of_the_whole_scene_balances_without_damping(stiffness, orders):
    """Of segments, couplings, plug and hold against the works of contacts and hand, at any k_c.

    The coupling in compliance form keeps 2e-11 of the energy (EQUATIONS.md, 3). The plug is held askew, so
    that it turns.
    """
    made = model(
        orders=orders, alpha=0.0, beta=0.0, settling=0.0, coupling_stiffness=stiffness, coupling_damping=0.0
    )
    s = inserted(made, offset=(1e-4, 0.0, 0.0), tilt=(0.01, 0.02, 0.02))
    largest = s.energy.sum(axis=1).max()
    assert np.ptp(s.balance) <= 1e-10 * largest
    # it is no balance of nothing, and only the hold's damper takes
    assert largest > 5e-3 and s.work[-1, 1] < -1e-3 and s.work[-1, 3] > 1e-2
    # bounded: nothing is fed in but by the hand, and where penetrations are pushed out
    assert (s.energy.sum(axis=1) <= s.work[:, 3] + np.maximum(s.work[:, 0], 0.0) + 1e-9 * largest).all()


def test_with_restitution_one_contacts_do_no_work_but_the_gaps():
    """W_normal = -sum f_n g / 2, as far as f_n u_n = 0, which is solved to 1e-10 where the sweeps suffice."""
    s = inserted(model(tolerance=1e-10, sweeps=20000))
    assert s.residual.max() < 1e-8
    assert s.work[-1, 0] == pytest.approx(s.work[-1, 2], abs=1e-6 * s.energy.sum(axis=1).max())


@pytest.mark.parametrize("segments", [1, 2])
def test_force_on_the_floor_is_contact_less_inertia_and_drag(segments):
    """Newton for the free nodes, whose drag alpha M vh acts against the ground: exact if unreduced."""
    made = model(orders=None, segments=segments, alpha=50.0)
    push, direction = Insertion(made, SPEED), np.arange(3)
    T, largest = made.numerics.step, 0.0
    for k in range(95):
        before = [prong.state.v.copy() for prong in made.prongs]
        step(made.handle, push.origin + SPEED * T * (k + 1) * connector().push, push.axes)
        expected = -made.state.plug.wrench[:3]
        for prong, v in zip(made.prongs, before, strict=True):
            # lumped masses: M is its diagonal
            middle, change = 0.5 * (prong.state.v + v), (prong.state.v - v) / T
            inertia = prong.model.M.value * (change + 50.0 * middle)
            expected = expected - [inertia[direction[i] :: 3].sum() for i in range(3)]
        np.testing.assert_allclose(made.state.floor, expected, atol=1e-9 * max(largest, 1.0))
        largest = max(largest, abs(made.state.floor[1]))
    assert largest > 30.0


def test_the_plug_gains_the_momentum_that_contacts_and_hold_give():
    made = model()
    push, m, largest = Insertion(made, SPEED), made.state.plug.motion, 0.0
    for k in range(120):
        before = m.velocity.copy()
        step(made.handle, push.origin + SPEED * 1e-3 * (k + 1) * connector().push, push.axes)
        gained = made.state.plug.model.mass @ (m.velocity - before) / made.numerics.step
        scale = np.abs(gained[:3]).max() + np.abs(made.state.plug.hand[:3]).max()
        np.testing.assert_allclose(
            gained[:3], (made.state.plug.wrench - made.state.plug.hand)[:3], atol=1e-10 * scale
        )
        largest = max(largest, scale)
    assert largest > 0.5 * PAPER


def test_mirrored_prongs_push_alike():
    """Up to the click, where rounding decides which prong closes first. The solver's tolerance is 1e-10."""
    made = model(tolerance=1e-10, sweeps=20000)
    push = Insertion(made, SPEED)
    left, right = (prong.floor for prong in made.prongs)
    for _ in range(8):
        push.run(push.target + 0.8e-3)
        assert right[0] == pytest.approx(-left[0], rel=1e-4)
        assert right[1] == pytest.approx(left[1], rel=1e-4)
    assert left[1] < -10.0


def test_an_insertion_clicks_and_the_plug_stays_in():
    """A rise over the wedge, a fall within milliseconds, no force at rest; and a pull that the hooks hold."""
    made, there, back = usual()
    felt = click(there.time, along(there), there.travel, connector().interference)
    assert 0.5 * PAPER < felt.peak < 1.7 * PAPER and felt.drop > 0.8 * felt.peak and felt.latched
    # it falls once the wedge has passed the noses, before the stroke is over
    assert 0.5 * connector().stroke < felt.travel < connector().stroke
    assert np.abs(along(there)[-10:]).max() < 0.05 * felt.peak
    # the target is led back by 1 mm: the plug by the play of 0.3 mm and what the hooks yield
    assert there.travel[-1] - back.travel[-1] < 0.6e-3
    assert -back.wrench[-1] @ np.append(connector().push, np.zeros(3)) == pytest.approx(
        made.state.plug.model.stiffness[0, 0] * (back.travel[-1] - connector().stroke + 1e-3) * -1.0, rel=0.05
    )


def test_a_plug_that_is_led_back_before_the_click_comes_out_freely():
    push = Insertion(model(), SPEED)
    there, back = push.run(5e-3), push.run(0.0, rest=0.03)
    joined = [np.concatenate([a, b]) for a, b in zip(there, back, strict=True)]
    force = np.concatenate([along(there), along(back)])
    felt = click(joined[0], force, joined[1], connector().interference)
    assert not felt.latched and abs(back.travel[-1]) < 1e-5 and not back.wrench[-1].any()


def test_the_reduced_model_feels_as_the_whole_one_does():
    """Until the click, within 5% of the peak (the paper: 10% against a sensor)."""
    whole = along(inserted(model(orders=None, segments=1)))
    peak, n = whole.max(), int(0.9 * whole.argmax())
    for numerics in ({"orders": None}, {}, {"solver": GAUSS_SEIDEL}, {"clusters": 0, "spacing": 2e-3}):
        other = along(inserted(model(**numerics)))
        assert np.sqrt(np.mean((other[:n] - whole[:n]) ** 2)) < 0.05 * peak
    # joined by stiff springs, unreduced segments are the whole body: 1e-3 of a node's compliance
    segments = along(inserted(model(orders=None)))
    assert np.abs(segments[:n] - whole[:n]).max() < 5e-3 * peak


def test_no_candidate_that_is_not_asked_is_near():
    """The bound by the last answer and the way since leaves out no point within the margin."""
    made = model()
    push, c = Insertion(made, SPEED), made.state.search.candidates
    skipped = known = 0
    for _ in range(20):
        push.run(push.target + 0.6e-3)
        near = c.near[: made.probes[-1].state.near[1]]
        left = np.setdiff1d(np.arange(c.gap.size), near)
        skipped += left.size
        solid = made.state.search.solid
        place = np.concatenate(
            [np.einsum("na,nai->ni", p.points.weights, p.nodes.x[p.points.nodes])
             for p in (probe.state for probe in made.probes)]
        )  # fmt: skip
        local = (place - solid.pose.x[0]) @ solid.axes
        assert signed_distance(field(), local[left])[0].min() > made.numerics.margin
        if near.size:  # they are where they are, and their distance is that of this place
            known += near.size
            np.testing.assert_allclose(c.local[near], local[near], atol=1e-15)
            assert np.array_equal(signed_distance(field(), c.local[near])[0], c.told[near])
    assert skipped > 10 * c.gap.size and known > c.gap.size


def in_the_plugs_frame(made):
    """Contact nodes of each prong, and its last candidates: points of the plug's edges (E, 3) [m]."""
    solid = made.state.search.solid
    for part, probe in zip(made.connector.prongs, (p.state for p in made.probes), strict=True):
        triangles = np.searchsorted(part.contact, part.contact_triangles)
        yield probe, (probe.nodes.x - solid.pose.x[0]) @ solid.axes, triangles


def sunk(made) -> tuple[list[int], list[float]]:
    """Points of the plug's edges whose nearest place is on a prong, and how far out they are [m]."""
    which, gaps = [], []
    for probe, x, triangles in in_the_plugs_frame(made):
        weights, way, descent = np.zeros(3), np.zeros(3), make_descent()
        surface, x = target(SurfaceMesh.patch(x, triangles)), np.ascontiguousarray(x)
        for j, p in enumerate(probe.edges.place):
            gap, t = signed_nearest(surface, x, tuple(p), -1, 1e-3, weights, way, descent)
            if t >= 0 and not (probe.edges.border[t] & (weights == 0.0)).any():
                which.append(probe.first + len(probe.ways) + j)
                gaps.append(gap)
    return which, gaps


def test_no_edge_of_the_plug_that_is_not_asked_is_near_a_facet():
    """The bound by the last answer and the way of all nodes since leaves out no point within the margin."""
    made = model(edges=True)
    push, c, seen = Insertion(made, SPEED), made.state.search.candidates, 0
    for _ in range(20):
        push.run(push.target + 0.6e-3)
        near = set(c.near[: made.probes[-1].state.near[1]].tolist())
        for k, gap in zip(*sunk(made), strict=True):
            if k in near:
                assert c.told[k] == pytest.approx(gap, abs=1e-12)
                seen += 1
            elif c.normal[k].any():  # else it cannot be touched there
                assert gap > made.numerics.margin
    assert seen > 0


def test_detection_is_repeated_in_the_click_and_prongs_do_not_leap_through_the_plug():
    made = model()
    push, rounds, deepest = Insertion(made, SPEED), [], 0.0
    for _ in range(120):
        s = push.run(push.target + SPEED * 1e-3)
        rounds.append(made.state.engine.count[0]["rounds"])
        deepest = max(deepest, s.depth[-1])
    # on the wedge, but for the first touch, the last step's forces foretell the next's
    assert np.count_nonzero(np.array(rounds[:80]) > 1) <= 2 and max(rounds) > 1
    # what a step of the target makes, not the millimetres that a free prong would leap
    assert deepest < 0.5e-3


def test_a_step_that_failed_leaves_nothing_of_its_search_to_the_next():
    made = model()
    push, plug = Insertion(made, SPEED), made.state.plug
    push.run(PRESSED)
    inverse, moved = plug.model.inverse.copy(), plug.motion.position + 2e-4 * connector().push
    plug.model.inverse[:] = np.nan
    assert step(made.handle, moved, push.axes) == NOT_FINITE
    plug.model.inverse[:] = inverse
    made.place(moved, push.axes)
    assert step(made.handle, moved, push.axes) == OK
    assert np.array_equal(made.state.search.solid.pose.x[0], moved)


def test_a_misaligned_plug_is_pushed_back_and_turned():
    s = inserted(model(orders=None, segments=1, static=0.01), offset=(3e-4, 0.0, 0.0), tilt=(0.0, 0.0, 0.02))
    k = int(along(s).argmax())
    # the hold feels both, against its own offset and tilt
    assert abs(s.hand[k, 0]) > 1.0 and abs(s.hand[k, 5]) > 1e-3
    assert np.abs(s.orientation[k] - s.orientation[0]).max() > 1e-5


def test_candidates_cover_the_surface_evenly_and_once():
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    triangles = np.array([[0, 1, 2], [1, 3, 2]])
    nodes, weights = surface_points(x, triangles, 0.25)
    points = np.einsum("na,nai->ni", weights, x[nodes])
    assert np.allclose(weights.sum(axis=1), 1.0) and weights.min() >= 0.0
    gaps = np.linalg.norm(points[:, None] - points, axis=2) + 9.0 * np.eye(len(points))
    assert gaps.min() > 0.1 and gaps.min(axis=1).max() <= 0.25 + 1e-12
    with pytest.raises(InputError, match="spacing of contact points is 0"):
        surface_points(x, triangles, 0.0)
    with pytest.raises(InputError, match="would be more than"):
        surface_points(x, triangles, 1e-4)


def test_orders_chosen_by_a_tolerance_hold_the_contact_segment():
    """Three columns would meet a rough tolerance of the inside, and let the contact segment drift away."""
    made = model(orders=None, error=0.3)
    assert min(order for orders in made.orders for order in orders) == 6
    s = Insertion(made, SPEED).run(PRESSED)
    assert -s.wrench[-1, :3] @ connector().push > 10.0 and along(s)[-1] > 10.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"segments": 0}, "segments is 0, expected at least 1"),
        ({"clusters": 33}, "clusters is 33, expected 0 to 32"),
        ({"restitution": 1.5}, "restitution is 1.5, expected 0 to 1"),
        ({"segments": 3, "orders": (6, 25)}, r"orders is \(6, 25\), expected one for each of the 3"),
        ({"orders": (6, 25), "error": 0.1}, "error is 0.1, expected absent where orders are given"),
        ({"friction": -0.1}, "friction is -0.1, expected zero or positive"),
    ],
)
def test_numerics_that_make_no_sense_are_refused_in_words(wrong, words):
    with pytest.raises(InputError, match=words):
        Numerics(**wrong)


def test_a_click_is_a_quick_fall():
    t, x = np.arange(100) * 1e-3, np.arange(100) * 1e-4
    ramp = np.where(t < 0.05, 40.0 * t / 0.05, 1.0)
    felt = click(t, ramp, x)
    assert (felt.peak, felt.drop, felt.release) == pytest.approx((39.2, 38.2, 0.05)) and felt.latched
    assert click(t, 40.0 * np.exp(-t), x).drop == 0.0 and not click(t, np.zeros(100), x).latched
    assert not click(t, ramp, np.where(t < 0.06, x, 0.0)).latched
    with pytest.raises(InputError, match="as many forces and travels as times"):
        click(t, ramp[1:], x)
