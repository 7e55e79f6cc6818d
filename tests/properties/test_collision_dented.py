"""Contacts with dented surfaces: an exact signed distance judges the sign and the normal of every one.

The surfaces are closed, with ridges, valleys, summits and pits at random; what meets them lies anywhere near,
outside and inside. The judge is the winding number and the distance to all triangles, by enumeration.
"""

import numpy as np
import pytest
import trimesh

from palpo.physics.collision.proximity_contacts import EDGE_EDGE, POINT_PLANE, POINT_TRIANGLE, Pairs
from palpo.physics.collision.topology import LOW, STATIC, TOOL, CollisionShape, Topology, join_shapes
from palpo.physics.mesh.generate import block, box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.winding_numbers import winding_numbers
from tests.properties.contact_cases import (
    NO_EDGES,
    NO_TRIANGLES,
    SKIN,
    ball,
    chain,
    contacts_of,
    distances,
    everything,
    found,
    surface,
)

REACH = 1.5e-3
THICK = 1e-3
"""Radius of balls and wires [m]."""
LITTLE = 1e-6
"""Step from a surface that tells its outside [m]: far above rounding, far below an edge."""


def dented(seed: int, role: int = LOW) -> tuple[CollisionShape, SurfaceMesh]:
    """A slab of 60 x 24 x 60 mm, edges of 7 mm, all points moved by up to 2 mm along each axis."""
    slab = block((0.06, 0.024, 0.06), (9, 3, 9)).surface().compact()
    moved = np.random.default_rng(seed).uniform(-2e-3, 2e-3, slab.vertices.shape)
    return surface(slab, role), slab.with_vertices(slab.vertices + moved)


def about_the_top(rng: np.random.Generator, count: int, spread: float = 0.022) -> np.ndarray:
    """Places about the upper side of the slab, outside and inside (count, 3) [m]."""
    return rng.uniform([-spread, 0.008, -spread], [spread, 0.017, spread], (count, 3))


def solid(kind: str, rng: np.random.Generator) -> SurfaceMesh:
    """A rough stone or a box of some 20 mm, turned and placed at random on the slab."""
    if kind == "stone":
        mesh = sphere_surface(0.012, 1)
        mesh = mesh.with_vertices(mesh.vertices * rng.uniform(0.88, 1.12, (len(mesh.vertices), 1)))
    else:
        mesh = box_surface((0.016, 0.016, 0.016), (2, 2, 2))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    place = about_the_top(rng, 1, 0.015) + np.array([0.0, 0.011, 0.0])
    return mesh.with_vertices(mesh.vertices @ turn.T + place)


def meeting(kind: str, seed: int) -> tuple[Topology, np.ndarray, tuple[SurfaceMesh | None, SurfaceMesh]]:
    """What touches, where its points are, and which of both are solid."""
    rng = np.random.default_rng(1000 + seed)
    shape, slab = dented(seed)
    if kind in ("ball", "wire"):
        other = ball(THICK) if kind == "ball" else chain(4, THICK)
        first, places = None, about_the_top(rng, other.n_points)
    else:
        first = solid(kind, rng)
        other, places = surface(first, TOOL), first.vertices
    return join_shapes([other, shape])[0], np.vstack([places, slab.vertices]), (first, slab)


def signed_distance(mesh: SurfaceMesh, points: np.ndarray) -> np.ndarray:
    """Exact distance of points (n, 3) from a closed mesh, negative inside [m]."""
    reference = trimesh.Trimesh(mesh.vertices, mesh.triangles, process=False)
    distance = trimesh.proximity.closest_point_naive(reference, points)[1]
    return np.where(winding_numbers(points, mesh) > 0.5, -distance, distance)


def outside(mesh: SurfaceMesh, points: np.ndarray) -> np.ndarray:
    return winding_numbers(points, mesh) < 0.5


def samples(wire: np.ndarray) -> np.ndarray:
    """Places all along a line through three points (n, 3) [m]."""
    share = np.linspace(0.0, 1.0, 200)[:, None]
    return np.vstack([wire[0] + share * (wire[1] - wire[0]), wire[1] + share * (wire[2] - wire[1])])


def touching(topology: Topology, contacts, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points p of body 1 and q of body 2 that touch, on axes and surfaces (n, 3); their distance (n,) [m]."""
    points, weights = found(contacts, "slots"), found(contacts, "weights")
    both = (weights[..., None] * x[np.maximum(points, 0)]).sum(axis=2)
    thickness = topology.body_radius[found(contacts, "body")].sum(axis=1)
    return both[:, 0], both[:, 1], found(contacts, "gap") + SKIN + thickness


@pytest.mark.parametrize("kind", ["ball", "wire", "stone", "box"])
def test_every_contact_has_the_sign_and_the_outward_normal_of_the_exact_distance(kind):
    """Negative inside and positive outside, and its normal leads out of body 2 and into body 1."""
    seen = {"inside": 0, "outside": 0}
    kinds = set()
    for seed in range(12 if kind in ("stone", "box") else 25):
        topology, x, (first, slab) = meeting(kind, seed)
        contacts = contacts_of(topology, everything(topology), x, REACH)
        if not contacts.count[0]["found"]:
            continue
        p, q, distance = touching(topology, contacts, x)
        normal = found(contacts, "frame")[:, 0]
        edges = found(contacts, "identity") >> 60 == EDGE_EDGE
        both = found(contacts, "body")
        np.testing.assert_allclose(distance[:, None] * normal, p - q, atol=1e-12)
        for body, mesh in enumerate((first, slab)):
            if mesh is None:
                continue
            # a vertex or a line's point that touches this body, and two edges wherever they cross
            here = (both[:, 1] == body) | edges
            sense = np.where(both[here, 1] == body, 1.0, -1.0)[:, None]
            mine, other = (np.where(sense > 0, s, t) for s, t in ((q[here], p[here]), (p[here], q[here])))
            assert outside(mesh, mine + LITTLE * sense * normal[here]).all(), (kind, seed)
            assert (outside(mesh, other) == (distance[here] > 0.0)).all(), (kind, seed)
        seen["inside"] += int((distance < 0.0).sum())
        seen["outside"] += int((distance > 0.0).sum())
        kinds |= set((found(contacts, "identity") >> 60).tolist())
    assert min(seen.values()) > 5
    assert kinds == ({POINT_TRIANGLE} if kind == "ball" else {POINT_TRIANGLE, EDGE_EDGE})


def test_a_wire_outside_meets_a_dented_surface_at_their_exact_distance():
    """What is no contact is never the nearest: a valley's edges and the bottoms of pits lose nothing."""
    near = 0
    for seed in range(15):
        rng = np.random.default_rng(2000 + seed)
        shape, slab = dented(seed)
        topology, _ = join_shapes([chain(3, THICK), shape])
        wire = about_the_top(rng, 3)
        wire[:, 1] += 4e-4 - min(0.0, signed_distance(slab, samples(wire)).min())
        along = samples(wire)
        # a distance changes by no more than the way between two places
        if signed_distance(slab, along).min() < np.linalg.norm(np.diff(along, axis=0), axis=1).max():
            continue
        x, pairs = np.vstack([wire, slab.vertices]), everything(topology)
        least = distances(topology, pairs, x).min()
        if least > THICK + REACH:
            continue
        distance = touching(topology, contacts_of(topology, pairs, x, REACH), x)[2]
        assert distance.min() == pytest.approx(least, abs=1e-12), seed
        near += 1
    assert near > 5


def test_the_points_of_a_dented_body_meet_a_plane_at_their_height():
    _, slab = dented(0)
    ground = CollisionShape(
        0, NO_TRIANGLES, NO_EDGES, 0.0, STATIC, np.array([0.0, -0.0125, 0.0, 0.0, 1.0, 0.0])
    )
    topology, _ = join_shapes([surface(slab), ground])
    n = len(slab.vertices)
    pairs = Pairs(*(np.array(a, np.int32) for a in (np.full(n, POINT_PLANE), np.arange(n), np.zeros(n))))
    contacts = contacts_of(topology, pairs, slab.vertices, REACH)
    height = slab.vertices[:, 1] + 0.0125
    np.testing.assert_allclose(found(contacts, "gap") + SKIN, height[height <= SKIN + REACH], atol=1e-15)
    np.testing.assert_array_equal(
        found(contacts, "frame")[:, 0], [[0.0, 1.0, 0.0]] * contacts.count[0]["found"]
    )


def test_a_ball_in_one_body_and_beside_another_is_pushed_out_of_the_one_and_off_the_other():
    """The nearer of the two, outside of which it is, has no say about the farther, inside of which it is."""
    near, far = (box_surface((0.02, 0.02, 0.02), (2, 2, 2)) for _ in range(2))
    right = near.vertices + np.array([0.0101, 0.0, 0.0])
    left = far.vertices - np.array([0.0095, 0.0, 0.0])
    topology, _ = join_shapes([ball(0.0), surface(near), surface(far)])
    x = np.vstack([[[0.0, 0.001, 0.002]], right, left])
    of = topology.point_body[topology.triangles[:, 0]]
    triangles = np.flatnonzero(of > 0).astype(np.int32)
    pairs = Pairs(np.full(len(of), POINT_TRIANGLE, np.int32), np.zeros(len(of), np.int32), triangles)
    contacts = contacts_of(topology, pairs, x)
    assert found(contacts, "body").tolist() == [[0, 1], [0, 2]]
    np.testing.assert_allclose(found(contacts, "gap") + SKIN, [1e-4, -5e-4], atol=1e-15)
    np.testing.assert_allclose(found(contacts, "frame")[:, 0], [[-1, 0, 0], [1, 0, 0]], atol=1e-12)


def test_a_ball_over_a_thin_sheet_meets_its_front_and_not_its_back():
    sheet = block((0.06, 0.001, 0.06), (6, 1, 6)).surface().compact()
    topology, _ = join_shapes([ball(5e-3), surface(sheet)])
    for across, along in ((0.0, 0.0), (0.004, 0.001), (0.0, 0.005), (0.01, 0.01)):
        x = np.vstack([[[across, 0.0005 + 5e-3 + SKIN - 1e-4, along]], sheet.vertices])
        contacts = contacts_of(topology, everything(topology), x)
        assert contacts.count[0]["found"] == 1
        assert found(contacts, "gap")[0] == pytest.approx(-1e-4, abs=1e-12)
