"""A ball that meets the facets of a soft body by their areas."""

import numpy as np
import pytest
from scipy.sparse.linalg import splu

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.proximity_contacts import EDGE_FACET, Pairs
from palpo.physics.collision.round_facets import POINTS, parts_of_facets, weight_on
from palpo.physics.collision.topology import LONGEST, LOW, CollisionShape, join_shapes
from palpo.physics.fem.facet_yield import mean_longest_edge
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.studies.reference.indentation import without_pull
from tests.properties.contact_cases import NO_EDGES, SKIN, ball, contact_points, contacts_of, found

SIZE, CELLS = (0.06, 0.02, 0.05), (6, 2, 5)
TOUCHED = SIZE[0] * SIZE[2]
HUGE = 1e5
"""Radius [m] of a ball that is flat: it stands off by 5 nm at the block's rim."""


def jittered(seed: int = 1):
    """A block whose nodes stand irregularly, the top's within their plane, and its highest coordinate."""
    mesh, rng = block(SIZE, CELLS), np.random.default_rng(seed)
    x = mesh.nodes.copy()
    inside = np.abs(x) < 0.5 * np.array(SIZE) - 1e-9
    x += np.where(inside, rng.uniform(-1.5e-3, 1.5e-3, x.shape), 0.0)
    return mesh.with_nodes(x), float(x[:, 1].max())


def soft(mesh, poisson=0.0):
    low = np.flatnonzero(mesh.nodes[:, 1] < mesh.nodes[:, 1].min() + 1e-9)
    return SoftBody("block", mesh, Material(1e4, poisson, 1e3), low, (0.0, 0.0, 0.0))


def met(mesh, body, radius, centre, nodes=None):
    """Contacts of a ball with all facets of a body, its nodes there, and the points of both."""
    triangles = mesh.surface().triangles
    shape = CollisionShape(
        len(mesh.nodes), triangles, NO_EDGES, 0.0, LOW, facet_yield=body.facet_yield(triangles),
        facet=mean_longest_edge(mesh.nodes, triangles),
    )  # fmt: skip
    topology, _ = join_shapes([ball(radius), shape])
    m = len(triangles)
    pairs = Pairs(np.full(m, EDGE_FACET, np.int32), np.zeros(m, np.int32), np.arange(m, dtype=np.int32))
    x = np.vstack([[centre], mesh.nodes if nodes is None else nodes])
    return topology, contacts_of(topology, pairs, x), x


def areas(topology, contacts):
    """What each contact stands for [m2], where its facet is pressed evenly."""
    facet = (found(contacts, "identity") & (2**30 - 1)) - len(topology.point_body) - len(topology.edges)
    return topology.facet_yield[facet] / found(contacts, "give")


@pytest.mark.parametrize("parts", [1, 4])
def test_weights_of_points_are_exact_up_to_the_second_order(parts):
    """Integrals of products of barycentric coordinates over a triangle of area 1: (1 + [a = b]) / 12."""
    w = np.array([[weight_on(parts, q, i) for i in range(3)] for q in range(POINTS * parts)])
    np.testing.assert_allclose(w.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(w.mean(axis=0), 1.0 / 3.0, rtol=1e-15)
    np.testing.assert_allclose(w.T @ w / len(w), (1.0 + np.eye(3)) / 12.0, rtol=1e-14)


def test_areas_sum_to_what_is_touched():
    mesh, top = jittered()
    topology, contacts, _ = met(mesh, soft(mesh), HUGE, [0.0, top + HUGE - 1e-4, 0.0])
    assert contacts.count[0]["found"] == 2 * CELLS[0] * CELLS[2]
    # across a facet the ball is off flat by some 1e-4 of the depth, of which the square is left
    assert areas(topology, contacts).sum() == pytest.approx(TOUCHED, rel=1e-7)


def test_both_sides_meet_in_one_point_of_the_facet_wherever_the_ball_is():
    mesh, top = jittered()
    _, contacts, x = met(mesh, soft(mesh), 0.02, [0.003, top + 0.0185, -0.004])
    assert contacts.count[0]["found"] > 6
    one, two = contact_points(contacts, x, 0), contact_points(contacts, x, 1)
    np.testing.assert_allclose(one, two, atol=1e-15)
    # along the normal, so that without friction a ball is not turned
    np.testing.assert_allclose(np.cross(two - x[0], found(contacts, "frame")[:, 0]), 0.0, atol=1e-15)


def facet_points(mesh, x, centre, radius):
    """Of the facets' points before the ball: facets, weights, normals, gaps, areas; and which they are."""
    facets = mesh.surface().triangles
    parts = parts_of_facets(radius, mean_longest_edge(mesh.nodes, facets))
    each = [[weight_on(parts, q, i) for i in range(3)] for q in range(POINTS * parts)]
    shares, facets = np.tile(each, (len(facets), 1)), np.repeat(facets, len(each), axis=0)
    corners = x[facets]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    away = centre - np.einsum("kc,kci->ki", shares, corners)
    distance = np.linalg.norm(away, axis=1)
    gap = np.where((away * outward).sum(axis=1) > 0.0, distance - radius, np.inf)
    near = gap < 1e-3
    area = 0.5 * np.linalg.norm(outward, axis=1)
    part = area[near] / len(each)
    return facets[near], shares[near], (away / distance[:, None])[near], gap[near], part, near


@pytest.mark.parametrize("radius", [0.02, 0.012], ids=["whole facets", "quarters"])
def test_a_facets_contact_bears_the_sum_of_what_its_points_would(radius):
    """On a body that does not move: force f l = -g of each point, by Newton's third law on the ball."""
    mesh, top = jittered()
    body, centre = soft(mesh), np.array([0.003, top + radius - 0.0015, -0.004])
    topology, contacts, _ = met(mesh, body, radius, centre)
    _, _, normals, gaps, area, near = facet_points(mesh, mesh.nodes, centre, radius)
    give = np.repeat(topology.facet_yield, len(near) // len(topology.facet_yield))[near] / area
    expected = (np.maximum(-gaps, 0.0) / give) @ normals
    force = (
        np.maximum(-found(contacts, "gap"), 0.0) / found(contacts, "give") @ found(contacts, "frame")[:, 0]
    )
    # normals are weighted by distances from the centre, which differ by less than the depth's share
    np.testing.assert_allclose(force, expected, atol=0.5 * (0.0015 / radius) ** 2 * np.linalg.norm(expected))


@pytest.mark.parametrize("radius", [0.02, 0.012], ids=["whole facets", "quarters"])
def test_at_rest_a_contact_a_facet_bears_what_one_a_point_does_and_comes_there_by_itself(radius):
    """A ball pressed in by 3 mm: shares that follow the depths of the last step settle, at the same force."""
    mesh, top = jittered()
    body, centre = soft(mesh, 0.45), np.array([0.003, top + radius - 0.003, -0.004])
    answer, free = splu(body.tangent().tocsc()), body.free

    def rest(contacts_at):
        """Forces on the ball, step by step (rounds, 3)."""
        u, forces = np.zeros((len(mesh.nodes), 3)), []
        for _ in range(16):
            nodes, shares, normals, gaps, give = contacts_at(mesh.nodes + u)
            rows = np.zeros((len(gaps), body.n_dof))
            for row, three, share, n in zip(rows, nodes, shares, normals, strict=True):
                for node, s in zip(three, share, strict=True):
                    row[body.dofs_of([node])[0]] += s * n
            yielding = rows @ answer.solve(np.ascontiguousarray(rows.T))
            yielding = 0.5 * (yielding + yielding.T) + np.diag(give)
            force = without_pull(yielding, gaps + rows @ u[free].ravel())
            u[free] = -answer.solve(rows.T @ force).reshape(-1, 3)
            forces.append(force @ normals)
        return np.array(forces)

    def by_facet(x):
        _, contacts, _ = met(mesh, body, radius, centre, x)
        sides = found(contacts, "slots")[:, 1] - 1, found(contacts, "weights")[:, 1]
        return *sides, found(contacts, "frame")[:, 0], found(contacts, "gap"), found(contacts, "give")

    def by_point(x):
        nodes, shares, normals, gaps, area, near = facet_points(mesh, x, centre, radius)
        facets = mesh.surface().triangles
        give = np.repeat(body.facet_yield(facets), len(near) // len(facets))[near]
        return nodes, shares, normals, gaps, give / area

    one, three = rest(by_facet), rest(by_point)
    change = np.linalg.norm(np.diff(one, axis=0), axis=1) / one[-1, 1]
    assert change[-1] < 1e-6 and (change[4:] < 0.5 * change[3:-1]).all()
    # what is left out is how a facet's own normals differ, by its size over the radius
    assert one[-1, 1] == pytest.approx(three[-1, 1], rel=0.01)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_flat_face_presses_evenly_wherever_nodes_stand(seed):
    """The patch test: the contact of a facet gives each node what an even pressure gives it."""
    mesh, top = jittered(seed)
    body, depth = soft(mesh), 1e-3
    topology, contacts, _ = met(mesh, body, HUGE, [0.0, top + HUGE - depth, 0.0])
    slots, weights = found(contacts, "slots")[:, 1] - 1, found(contacts, "weights")[:, 1]
    rows = np.zeros((len(slots), body.n_dof))
    for row, nodes, share in zip(rows, slots, weights, strict=True):
        row[body.dofs_of(nodes)[:, 1]] = share
    w = rows @ splu(body.tangent().tocsc()).solve(np.ascontiguousarray(rows.T))
    w += np.diag(found(contacts, "give"))
    area = areas(topology, contacts)
    pressure = np.linalg.solve(w, np.full(len(slots), depth)) / area
    give = (found(contacts, "give") * area).mean()
    # layers in series: the block's height over E, and what facets give; the facets' cells differ in size
    expected = depth / (SIZE[1] / 1e4 + give)
    assert pressure.std() < 0.1 * expected and pressure.mean() == pytest.approx(expected, rel=0.02)
    # with one yield for all of them it is even to the last digit
    w += np.diag(give / area - found(contacts, "give"))
    even = np.linalg.solve(w, np.full(len(slots), depth)) / area
    np.testing.assert_allclose(even, depth / (SIZE[1] / 1e4 + give), rtol=1e-5)


def test_a_ball_whose_centre_has_gone_in_is_pushed_out_by_one_contact():
    mesh, top = jittered()
    _, contacts, _ = met(mesh, soft(mesh), 0.02, [0.003, top - 0.001, -0.004])
    assert contacts.count[0]["found"] == 1
    assert found(contacts, "give")[0] == 0.0
    assert found(contacts, "frame")[0, 0, 1] == pytest.approx(1.0, abs=1e-9)
    assert found(contacts, "gap")[0] == pytest.approx(-0.021, abs=1e-12)


def test_facets_are_met_by_area_by_balls_that_are_not_much_smaller_and_the_contact_distance_is_not_kept():
    mesh, top = jittered()
    body = soft(mesh)
    longest = mean_longest_edge(mesh.nodes, mesh.surface().triangles)
    for radius, by_area in ((1.01 * longest / LONGEST, True), (0.99 * longest / LONGEST, False)):
        topology, _, x = met(mesh, body, radius, [0.001, top + radius + 1e-4, 0.002])
        pairs, _, gaps = BroadPhase(topology, x, 1000, 1e-3, 0.0).find(x, 0.0 * x, 0.0, SKIN)
        assert ((pairs.kind == EDGE_FACET) == by_area).all() and len(gaps) > 0
        assert gaps.min() == pytest.approx(1e-4 if by_area else 1e-4 - SKIN, abs=1e-12)
