"""Contacts: exact distances, flat plates without seams, convex features, nothing missed."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.pair_gaps import gaps_at
from palpo.physics.collision.proximity import find_contacts, group_pairs
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    POINT_PLANE,
    POINT_TRIANGLE,
    Pairs,
    make_proximity_work,
)
from palpo.physics.collision.topology import LOW, STATIC, TOOL, CollisionShape, join_shapes
from palpo.physics.contract.contacts import make_contacts
from palpo.physics.mesh.generate import block, box_surface, ellipsoid, sphere_surface
from palpo.physics.mesh.winding_numbers import winding_numbers
from palpo.physics.systems.multirate.candidates import (
    SOME_DAY,
    by_turns,
    expected_arrival,
    gained,
    points_by,
)
from tests.properties.contact_cases import (
    NO_EDGES,
    NO_TRIANGLES,
    SKIN,
    ball,
    capsule,
    chain,
    contact_points,
    contacts_of,
    distances,
    everything,
    found,
    surface,
)

CLOSED = {
    "box": box_surface((0.06, 0.04, 0.05), (3, 2, 3)),
    "sphere": sphere_surface(0.03, 2),
    "ellipsoid": ellipsoid((0.04, 0.02, 0.03), 3).surface().compact(),
}


@pytest.mark.parametrize("name", CLOSED)
def test_the_nearest_contact_with_a_closed_mesh_is_its_exact_signed_distance(name):
    mesh = CLOSED[name]
    topology, _ = join_shapes([ball(0.0), surface(mesh)])
    pairs = everything(topology)
    reference = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.06, 0.06, (150, 3))
    near, distance, _ = trimesh.proximity.closest_point_naive(reference, points)
    inside = winding_numbers(points, mesh) > 0.5
    assert inside.any()
    for p, d, within, at in zip(points, distance, inside, near, strict=True):
        x = np.vstack([p, mesh.vertices])
        contacts = contacts_of(topology, pairs, x, reach=1.0)
        gap = found(contacts, "gap").min() + SKIN
        assert gap == pytest.approx(-d if within else d, abs=1e-9)
        k = int(np.argmin(found(contacts, "gap")))
        normal = found(contacts, "frame")[k, 0]
        # the normal leads from the mesh to the point outside, and from the point to the mesh inside
        np.testing.assert_allclose(normal, (p - at) / (-d if within else d), atol=1e-6)
        if within:
            assert contacts.count[0]["found"] == 1


@pytest.mark.parametrize("depth", [1e-4, 1e-6, 1e-8])
def test_a_point_that_is_hardly_inside_a_closed_mesh_is_inside(depth):
    """Over a face, an edge and a corner of a box: near zero a share of the distance tells nothing."""
    mesh = CLOSED["box"]
    topology, _ = join_shapes([ball(0.0), surface(mesh)])
    pairs = everything(topology)
    for place in ((0.004, 0.02, 0.003), (0.004, 0.02, 0.025), (0.03, 0.02, 0.025)):
        on = np.array(place)
        within = on - depth * (np.abs(on) == np.abs(mesh.vertices).max(axis=0)) * np.sign(on)
        contacts = contacts_of(topology, pairs, np.vstack([within, mesh.vertices]))
        gap = found(contacts, "gap").min() + SKIN
        assert gap == pytest.approx(-depth, rel=1e-3, abs=1e-15), place


@pytest.mark.parametrize("seed", range(2))
def test_a_pair_that_was_looked_at_rests_until_the_odometer_has_used_up_its_gap(seed):
    """Of edges as of points: exactly by its gap later, or a pair would be looked at in every tick."""
    topology, x, _ = moving_scene(np.random.default_rng(seed))
    pairs, odometer = everything(topology), 0.7
    work = make_proximity_work(len(pairs.kind))
    group_pairs(topology, pairs, len(pairs.kind), work)
    find_contacts(topology, pairs, x, odometer, 1e-3, SKIN, np.full((2, 2), 0.3), work, make_contacts(512))
    thick = topology.body_radius[0] + topology.body_radius[1] + SKIN
    gaps = distances(topology, pairs, x) - thick
    assert (gaps > 1e-3).any() and len(set(pairs.kind)) == 2
    np.testing.assert_allclose(work.due[gaps > 1e-3], odometer + gaps[gaps > 1e-3], rtol=0, atol=1e-12)


PLATE = block((0.1, 0.02, 0.1), (7, 1, 7)).surface().compact()


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.floats(-0.04, 0.04), st.integers(-3, 3).map(lambda i: i * 0.1 / 7 + 0.1 / 14)),
    st.one_of(st.floats(-0.04, 0.04), st.integers(-3, 3).map(lambda i: i * 0.1 / 7 + 0.1 / 14)),
    st.floats(-4e-4, 9e-4),
)
def test_a_ball_anywhere_on_a_flat_triangulated_plate_meets_one_contact_straight_up(across, along, gap):
    """Over faces, over inner edges and over vertices alike: no seam is ever felt."""
    radius = 0.005
    topology, _ = join_shapes([ball(radius), surface(PLATE)])
    x = np.vstack([[across, 0.01 + radius + SKIN + gap, along], PLATE.vertices])
    contacts = contacts_of(topology, everything(topology), x)
    assert contacts.count[0]["found"] == 1
    np.testing.assert_allclose(found(contacts, "frame")[0, 0], [0.0, 1.0, 0.0], atol=1e-12)
    assert found(contacts, "gap")[0] == pytest.approx(gap, abs=1e-12)


def test_a_contact_keeps_its_points_in_place_and_a_right_handed_frame():
    radius = 0.005
    topology, _ = join_shapes([ball(radius), surface(PLATE)])
    x = np.vstack([[0.012, 0.01 + radius + SKIN + 2e-4, -0.007], PLATE.vertices])
    contacts = contacts_of(topology, everything(topology), x)
    frame = found(contacts, "frame")[0]
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(frame) == pytest.approx(1.0)
    np.testing.assert_allclose(contact_points(contacts, x, 1)[0], [0.012, 0.01, -0.007], atol=1e-14)
    np.testing.assert_allclose(
        contact_points(contacts, x, 0)[0], [0.012, 0.01 + SKIN + 2e-4, -0.007], atol=1e-14
    )


@pytest.mark.parametrize(
    ("place", "n"),
    [((1, 1, 0), 1), ((1, 1, 1), 1), ((0, 1, 1), 1), ((0, 1, 0), 1)],
    ids=["edge", "corner", "other edge", "face"],
)
def test_a_ball_over_a_convex_edge_or_corner_meets_it_once_along_the_line_between_them(place, n):
    """The nearest point of a box is its edge, corner or face, whichever the ball stands over."""
    mesh, radius = box_surface((0.04, 0.04, 0.04), (2, 2, 2)), 0.006
    direction = np.array(place, float) / np.linalg.norm(place)
    centre = (
        0.02 * np.array(place)
        + (radius + SKIN + 3e-4) * direction
        + np.array([0.003, 0, 0.003]) * (np.array(place) == 0)
    )
    topology, _ = join_shapes([ball(radius), surface(mesh)])
    contacts = contacts_of(topology, everything(topology), np.vstack([centre, mesh.vertices]))
    assert contacts.count[0]["found"] == n
    np.testing.assert_allclose(found(contacts, "frame")[0, 0], direction, atol=1e-12)
    assert found(contacts, "gap")[0] == pytest.approx(3e-4, abs=1e-12)


def test_a_capsule_across_the_ridge_of_a_roof_rests_on_the_ridge():
    """A rod over a convex edge: one edge-edge contact at their crossing, normal across both."""
    mesh, radius = box_surface((0.04, 0.04, 0.04), (3, 3, 3)), 0.003
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2.0)]]) / np.sqrt(2.0)
    roof = mesh.with_vertices(mesh.vertices @ turn.T)
    top = 0.04 / np.sqrt(2.0)
    topology, _ = join_shapes([capsule(radius), surface(roof)])
    y = top + radius + SKIN + 2e-4
    x = np.vstack([[[-0.02, y, 0.003], [0.02, y, 0.003]], roof.vertices])
    contacts = contacts_of(topology, everything(topology), x)
    assert contacts.count[0]["found"] == 1
    np.testing.assert_allclose(found(contacts, "frame")[0, 0], [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(contact_points(contacts, x, 1)[0], [0.0, top, 0.003], atol=1e-12)


def test_a_capsule_lying_on_a_flat_plate_is_borne_at_its_two_ends_only():
    radius = 0.003
    topology, _ = join_shapes([capsule(radius), surface(PLATE)])
    y = 0.01 + radius + SKIN + 1e-4
    x = np.vstack([[[-0.021, y, 0.002], [0.023, y, 0.009]], PLATE.vertices])
    contacts = contacts_of(topology, everything(topology), x)
    assert contacts.count[0]["found"] == 2
    np.testing.assert_allclose(found(contacts, "frame")[:, 0], [[0, 1, 0]] * 2, atol=1e-12)


def test_two_crossed_rods_meet_once():
    topology, _ = join_shapes([chain(5, 0.002), chain(4, 0.001, LOW)])
    along, height = np.linspace(-0.05, 0.05, 5), 0.003 + SKIN + 2e-4
    first = np.stack([along, np.full(5, height), np.zeros(5)], axis=1)
    second = np.stack([np.full(4, 0.004), np.zeros(4), np.linspace(-0.04, 0.05, 4)], axis=1)
    contacts = contacts_of(topology, everything(topology), np.vstack([first, second]))
    assert contacts.count[0]["found"] == 1
    np.testing.assert_allclose(found(contacts, "frame")[0, 0], [0, 1, 0], atol=1e-12)
    assert found(contacts, "gap")[0] == pytest.approx(2e-4, abs=1e-12)


def test_a_ball_over_the_joint_of_a_bent_rod_meets_it_once():
    topology, _ = join_shapes([ball(0.004), chain(3, 0.002, LOW)])
    rod = np.array([[-0.03, -0.01, 0.0], [0.0, 0.0, 0.0], [0.03, -0.01, 0.0]])
    x = np.vstack([[0.0, 0.006 + SKIN + 1e-4, 0.0], rod])
    contacts = contacts_of(topology, everything(topology), x)
    assert contacts.count[0]["found"] == 1
    np.testing.assert_allclose(found(contacts, "frame")[0, 0], [0, 1, 0], atol=1e-12)


def test_identities_are_equal_for_equal_features_and_differ_for_others():
    topology, _ = join_shapes([surface(box_surface((0.02, 0.02, 0.02)), TOOL), surface(PLATE)])
    cube = box_surface((0.02, 0.02, 0.02)).vertices
    pairs = everything(topology)

    def names(dx):
        x = np.vstack([cube + np.array([dx + 0.001, 0.02 + SKIN + 1e-4, 0.002]), PLATE.vertices])
        return found(contacts_of(topology, pairs, x), "identity").tolist()

    first, moved = names(0.0), names(1e-5)
    assert len(first) == len(set(first))
    assert sorted(first) == sorted(moved)


def moving_scene(rng):
    """A coarse ball and a box in random poses and motions, some rotating."""
    a, b = sphere_surface(0.02, 1), box_surface((0.05, 0.03, 0.04), (2, 1, 2))
    topology, _ = join_shapes([surface(a, TOOL), surface(b, LOW)])
    centre = rng.normal(size=3)
    centre *= rng.uniform(0.03, 0.07) / np.linalg.norm(centre)
    x = np.vstack([a.vertices + centre, b.vertices])
    spin, drift = rng.normal(size=(2, 3)) * [[10.0], [1.0]]
    u = np.vstack(
        [drift + np.cross(spin, a.vertices), np.tile(0.2 * rng.normal(size=3), (len(b.vertices), 1))]
    )
    return topology, x, u


@pytest.mark.parametrize("seed", range(8))
def test_the_broad_phase_keeps_every_pair_that_comes_near_within_the_horizon(seed):
    """Uniform motion over the horizon, sampled: who gets within the alarm distance is a candidate."""
    rng = np.random.default_rng(seed)
    topology, x, u = moving_scene(rng)
    horizon, alarm = 0.04, 3e-3
    broad = BroadPhase(topology, x, 60_000, alarm, 0.0)
    pairs, arrival, gaps = broad.find(x, u, horizon, SKIN)
    assert broad.dropped == 0
    # the alarm distance lets in pairs that touch later still, by the time that it takes to close it
    assert (distances(topology, pairs, x) <= SKIN + alarm + horizon * relative_speed(u) + 1e-12).all()
    np.testing.assert_allclose(gaps, distances(topology, pairs, x) - SKIN, atol=1e-15)
    touching = gaps <= 0.0
    assert (arrival[touching] <= 0.0).all() and (arrival[~touching] > 0.0).all()
    kept = set(zip(*(a.tolist() for a in pairs), strict=True))
    assert len(kept) == len(pairs.kind)
    every = everything(topology)
    nearest = np.min([distances(topology, every, x + t * u) for t in np.linspace(0, horizon, 5)], axis=0)
    wanted = np.flatnonzero(nearest <= SKIN + alarm)
    assert not [k for k in wanted if (every.kind[k], every.first[k], every.second[k]) not in kept]


def relative_speed(u) -> float:
    """Bound on the relative speed of any two points."""
    return 2.0 * float(np.linalg.norm(u, axis=1).max())


def test_a_full_broad_phase_drops_those_that_touch_last_and_counts_them():
    topology, x, u = moving_scene(np.random.default_rng(1))
    all_pairs, arrival, _ = BroadPhase(topology, x, 60_000, 0.1, 0.0).find(x, u, 0.04, SKIN)
    few = BroadPhase(topology, x, 50, 0.1, 0.0)
    kept, soonest, _ = few.find(x, u, 0.04, SKIN)
    assert len(kept.kind) == 50
    assert few.dropped == len(all_pairs.kind) - 50
    assert soonest.max() <= np.sort(arrival)[49] + 1e-15


@pytest.mark.parametrize("room", [60_000, 40])
def test_candidates_within_a_distance_are_all_pairs_up_to_the_gap_that_is_said(room):
    topology, x, u = moving_scene(np.random.default_rng(4))
    every = everything(topology)
    gap = distances(topology, every, x) - SKIN
    within = 0.02
    inside = int((gap <= within).sum())
    assert 40 < inside < len(gap)
    broad = BroadPhase(topology, x, room, 3e-3, 20.0)
    pairs, _, gaps = broad.find(x, u, 0.04, SKIN, within)
    assert len(pairs.kind) == min(room, inside)
    assert broad.complete == pytest.approx(within if room > inside else np.sort(gap)[room], abs=1e-15)
    assert gaps.max() <= broad.complete + 1e-15


def test_the_candidates_are_those_of_looking_at_every_pair_once_joined_ones_are_left_out():
    """Two rods and a box; a point of the first rod is joined to the box."""
    box = box_surface((0.05, 0.03, 0.04), (2, 1, 2))
    topology, first = join_shapes([chain(6, 0.002), surface(box), chain(4, 0.001, LOW)])
    rng = np.random.default_rng(7)
    x = np.vstack([0.05 * rng.normal(size=(6, 3)), box.vertices, 0.05 * rng.normal(size=(4, 3))])
    joined, within = (int(first[0]) + 5, 1), 0.03
    pairs, _, gaps = BroadPhase(topology, x, 10_000, 3e-3, 20.0, joints=[joined]).find(
        x, 0.0 * x, 0.04, SKIN, within
    )
    kept = set(zip(*(part.tolist() for part in pairs), strict=True))
    wanted, left_out = set(), 0
    for a, b in ((0, 1), (0, 2), (1, 2)):
        for pair, gap in every_pair(topology, x, a, b).items():
            kind, one, _ = pair
            touches = one == joined[0] if kind == POINT_TRIANGLE else joined[0] in topology.edges[one]
            held = {a, b} == {0, 1} and touches
            left_out += held and gap <= within
            if gap <= within and not held:
                wanted.add(pair)
    assert left_out and kept == wanted
    assert len(kept) == len(gaps)


def every_pair(topology, x, a, b):
    """All pairs of two bodies and their gaps, by enumeration; a point stands for each end of a rod."""
    body = topology.point_body
    edges = [np.flatnonzero(body[topology.edges[:, 0]] == k) for k in (a, b)]
    triangles = [np.flatnonzero(body[topology.triangles[:, 0]] == k) for k in (a, b)]
    points = [np.flatnonzero(body == k) for k in (a, b)]
    rows = [(POINT_TRIANGLE, p, t) for p in points[0] for t in triangles[1]]
    rows += [(POINT_TRIANGLE, p, t) for p in points[1] for t in triangles[0]]
    swap = len(triangles[0]) and not len(triangles[1])
    rows += [(EDGE_EDGE, *((f, e) if swap else (e, f))) for e in edges[0] for f in edges[1]]
    pairs = Pairs(*(np.array(column, np.int32) for column in zip(*rows, strict=True)))
    gaps = distances(topology, pairs, x) - topology.body_radius[[a, b]].sum() - SKIN
    return {tuple(int(i) for i in row): gap for row, gap in zip(rows, gaps, strict=True)}


def test_what_a_search_looks_at_does_not_grow_with_its_distance_once_the_room_is_full():
    """A ball over a fine plate: boxes beyond the last candidate that has room are passed over."""
    plate = block((0.3, 0.02, 0.3), (40, 1, 40)).surface().compact()
    topology, _ = join_shapes([ball(0.01), surface(plate)])
    x = np.vstack([[0.004, 0.0225, -0.003], plate.vertices])
    looked_at = []
    for within in (0.5, 5.0, 50.0):
        broad = BroadPhase(topology, x, 100, 3e-3, 20.0)
        pairs, _, _ = broad.find(x, 0.0 * x, 0.04, SKIN, within)
        assert len(pairs.kind) == 100 and broad.complete < 0.06
        looked_at.append(broad.looked_at)
    assert looked_at[0] == looked_at[1] == looked_at[2]
    # the next one knows how far it will get
    broad.find(x, 0.0 * x, 0.04, SKIN, within)
    assert broad.looked_at < looked_at[0]
    assert looked_at[0] < len(plate.triangles) // 4


def test_a_point_is_expected_where_its_own_motion_and_gravity_bring_it():
    """Down an incline: gap = v t + g t^2 / 2 along the normal; away from it only the gravity is left."""
    mesh, normal = sphere_surface(0.02, 1), np.array([0.6, 0.8, 0.0])
    slope = CollisionShape(0, NO_TRIANGLES, NO_EDGES, 0.0, STATIC, np.append(np.zeros(3), normal)[None])
    topology, _ = join_shapes([surface(mesh), slope])
    x = mesh.vertices + 0.1 * normal
    pairs, earliest, gaps = BroadPhase(topology, x, 1000, 1.0, 20.0).find(x, 0.0 * x, 1.0, SKIN)
    gravity = np.array([0.0, -9.81, 0.0])
    for speed in (-0.3, 0.0, 0.7):
        u = np.tile(-speed * normal, (len(x), 1))
        time = expected_arrival(topology, pairs, x, u, gaps, gravity, earliest)
        np.testing.assert_allclose(speed * time + 0.5 * 9.81 * 0.8 * time**2, gaps, atol=1e-15)
    away = expected_arrival(topology, pairs, x, np.tile(normal, (len(x), 1)), gaps, 0.0 * gravity, earliest)
    np.testing.assert_allclose(away, SOME_DAY + earliest)


def test_gaps_elsewhere_are_those_that_a_search_there_finds():
    """Of all four kinds: two surfaces, a ball on a half space, and a capsule that meets facets by area."""
    kinds, rng = set(), np.random.default_rng(2)
    incline = CollisionShape(0, NO_TRIANGLES, NO_EDGES, 0.0, STATIC, np.array([[0, 0, 0, 0.6, 0.8, 0.0]]))
    fine = surface(PLATE)._replace(facet_yield=np.ones(len(PLATE.triangles)), facet=0.004)
    for shapes, points in (
        ((surface(CLOSED["box"], TOOL), surface(CLOSED["box"])), [CLOSED["box"].vertices] * 2),
        ((ball(0.004), incline), [np.zeros((1, 3))]),
        ((capsule(0.008), fine), [[[-0.01, 0.0, 0.0], [0.01, 0.0, 0.0]], PLATE.vertices]),
    ):
        topology, _ = join_shapes(list(shapes))
        x = np.vstack(points)
        x[: len(points[0])] += [0.003, 0.05, -0.002]
        broad = BroadPhase(topology, x, 60_000, 3e-3, 20.0)
        pairs, _, _ = broad.find(x, 0.0 * x, 0.0, SKIN, 1.0)
        moved = x + 0.01 * rng.uniform(-1.0, 1.0, 3) * (topology.point_body == 0)[:, None]
        again, _, gaps = broad.find(moved, 0.0 * x, 0.0, SKIN, 1.0)
        there = dict(zip(zip(*again, strict=True), gaps, strict=True))
        found_there = [there[pair] for pair in zip(*pairs, strict=True)]
        np.testing.assert_allclose(gaps_at(topology, pairs, moved, SKIN), found_there, rtol=0, atol=1e-15)
        kinds |= set(pairs.kind.tolist())
    assert kinds == {POINT_TRIANGLE, EDGE_EDGE, POINT_PLANE, EDGE_FACET}


@pytest.mark.parametrize("name", CLOSED)
def test_the_least_gap_of_a_point_that_a_closed_mesh_has_swept_over_is_its_signed_distance(name):
    mesh = CLOSED[name]
    topology, _ = join_shapes([ball(0.0), surface(mesh)])
    pairs = everything(topology)
    reference = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    for p in np.random.default_rng(1).uniform(-0.06, 0.06, (60, 3)):
        _, (distance,), _ = trimesh.proximity.closest_point_naive(reference, p[None])
        inside = winding_numbers(p[None], mesh)[0] > 0.5
        gaps = gaps_at(topology, pairs, np.vstack([p, mesh.vertices]), SKIN)[pairs.kind == POINT_TRIANGLE]
        assert gaps.min() + SKIN == pytest.approx(-distance if inside else distance, abs=1e-9)


def test_what_tools_gained_is_their_acceleration_but_for_what_no_hand_can_do():
    before, now = np.zeros((4, 3)), np.zeros((4, 3))
    now[:2], now[2] = [0.0, 0.3, 0.0], [9.0, 0.0, 0.0]
    gain = gained([(0, 2), (2, 3)], before, now, 0.02, 20.0)
    np.testing.assert_allclose(gain, [[0, 15, 0], [0, 15, 0], [20, 0, 0], [0, 0, 0]])
    assert not gained([(0, 4)], before, now, 0.0, 20.0).any()


def test_points_that_may_touch_come_by_rank_and_those_that_only_tell_the_side_long_after():
    topology, _, _ = moving_scene(np.random.default_rng(3))
    topology = topology._replace(body_role=np.full_like(topology.body_role, LOW))
    pairs = everything(topology)
    chosen = np.flatnonzero(np.array(pairs.kind) == EDGE_EDGE)[::1500]
    pairs, rank = Pairs(*(np.array(column)[chosen] for column in pairs)), np.linspace(0.9, 0.1, chosen.size)
    edges = np.concatenate([pairs.first, pairs.second])
    touch = set(topology.edges[edges].ravel().tolist())
    beside = set(topology.edge_opposite[edges].ravel().tolist()) - {-1} - touch
    points = points_by(topology, pairs, rank).tolist()
    assert beside and len(points) == len(set(points))
    assert set(points[: len(touch)]) == touch and set(points[len(touch) :]) == beside
    assert set(points_by(topology, pairs, rank, SOME_DAY).tolist()) == touch
    assert set(points[:4]) == set(topology.edges[[pairs.first[-1], pairs.second[-1]]].ravel().tolist())


def test_points_by_turns_keep_their_order_and_nobody_waits_for_more_than_the_turns_before():
    rng = np.random.default_rng(0)
    orders = [rng.permutation(30)[:n].astype(np.int32) for n in (20, 12, 25)]
    turns = by_turns(orders).tolist()
    assert sorted(turns) == sorted(set().union(*(order.tolist() for order in orders)))
    for order in orders:
        for k, point in enumerate(order.tolist()):
            assert turns.index(point) < 3 * (k + 1)


@pytest.mark.parametrize("room", [60, 400])
def test_a_search_that_was_full_finds_what_a_new_one_does(room):
    """However far it got the last time: as bodies come near, go apart, and would be looked for farther."""
    topology, x, u = moving_scene(np.random.default_rng(6))
    again, tool = BroadPhase(topology, x, room, 3e-3, 20.0), topology.point_body == 0
    full = 0
    for k in range(12):
        there = x.copy()
        there[tool] += [0.0, 0.05 * (k // 2 % 2), 0.0]
        within = (0.1, 0.1, 0.02)[k % 3]
        new = BroadPhase(topology, x, room, 3e-3, 20.0)
        one, two = again.find(there, u, 0.0, SKIN, within), new.find(there, u, 0.0, SKIN, within)
        for mine, other in zip((*one[0], *one[1:]), (*two[0], *two[1:]), strict=True):
            np.testing.assert_array_equal(mine, other)
        assert again.complete == new.complete
        full += again.complete < within
    assert 0 < full < 12


def test_two_bodies_named_as_ignored_never_meet():
    topology, x, u = moving_scene(np.random.default_rng(2))
    pairs, _, _ = BroadPhase(topology, x, 1000, 1.0, 0.0, frozenset({(0, 1)})).find(x, u, 0.04, SKIN)
    assert not len(pairs.kind)


def test_static_bodies_do_not_meet_each_other():
    topology, _ = join_shapes([surface(PLATE, STATIC), surface(PLATE, STATIC)])
    x = np.vstack([PLATE.vertices, PLATE.vertices])
    pairs, _, _ = BroadPhase(topology, x, 1000, 1.0, 0.0).find(x, np.zeros_like(x), 0.04, SKIN)
    assert not len(pairs.kind)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_left_aside_by_the_odometer_are_never_missed(seed):
    """A wandering tool: contacts with culling equal contacts with every pair looked at in every tick."""
    rng = np.random.default_rng(seed)
    topology, x, _ = moving_scene(rng)
    pairs = everything(topology)
    tool = topology.point_body == 0
    culled, all_of_them = make_proximity_work(len(pairs.kind)), make_proximity_work(len(pairs.kind))
    odometer, mu = 0.0, np.full((2, 2), 0.3)
    for work in (culled, all_of_them):
        group_pairs(topology, pairs, len(pairs.kind), work)
    start = x[tool] - x[tool].mean(axis=0)
    ticks = np.arange(250)
    centre = 0.034 * np.stack(
        [np.sin(0.05 * ticks), np.cos(0.031 * ticks), np.sin(0.017 * ticks + seed)], axis=1
    )
    met = 0
    for k in ticks[1:]:
        step = centre[k] - centre[k - 1]
        odometer += np.linalg.norm(step)
        x[tool] = start + centre[k]
        one, two = make_contacts(512), make_contacts(512)
        # how far a step looks may change from one to the next
        reach = 1e-3 * rng.random()
        find_contacts(topology, pairs, x, odometer, reach, SKIN, mu, culled, one)
        all_of_them.due[:] = all_of_them.soonest[:] = -np.inf
        find_contacts(topology, pairs, x, odometer, reach, SKIN, mu, all_of_them, two)
        assert found(one, "identity").tolist() == found(two, "identity").tolist()
        assert found(one, "gap").tolist() == found(two, "gap").tolist()
        met += int(one.count[0]["found"])
    assert met > 0
