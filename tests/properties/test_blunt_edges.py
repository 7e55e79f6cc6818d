"""Edges of a rigid body that do not stand out of their faces: left out, they leave every contact as it is."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.collision.broadphase import BroadPhase, blunt_edges
from palpo.physics.collision.topology import TOOL, Topology, join_shapes
from palpo.physics.mesh.generate import box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from tests.properties.contact_cases import SKIN, capsule, contacts_of, everything, found, surface

BALL = sphere_surface(0.02, 2)
ANGLE = 0.01 * np.array([[0, 0], [3, 0], [3, 1], [1, 1], [1, 3], [0, 3]])
"""Outline of an angle iron, whose inner corner is a valley."""


def angle_iron() -> SurfaceMesh:
    n, cap = len(ANGLE), [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]]
    ends = [np.column_stack([ANGLE, np.full(n, z)]) for z in (-0.015, 0.015)]
    sides = [t for k in range(n) for t in ([k, (k + 1) % n, n + (k + 1) % n], [k, n + (k + 1) % n, n + k])]
    faces = [face[::-1] for face in cap] + [[a + n, b + n, c + n] for a, b, c in cap] + sides
    return SurfaceMesh.from_triangles(np.vstack(ends), np.array(faces, np.int32))


RIGID = {"box": box_surface((0.03, 0.02, 0.025), (2, 2, 2)), "angle iron": angle_iron()}


def scene(name: str) -> tuple[Topology, np.ndarray]:
    mesh = RIGID[name]
    topology, _ = join_shapes([surface(mesh, TOOL), surface(BALL)])
    return topology, np.vstack([mesh.vertices, BALL.vertices])


@pytest.mark.parametrize("name", RIGID)
def test_what_is_left_out_makes_no_contact_in_any_pose(name: str) -> None:
    topology, x = scene(name)
    blunt, pairs, own = blunt_edges(topology, x, [0]), everything(topology), topology.point_body == 0
    kept = ~((pairs.kind == 1) & (blunt[pairs.first] | blunt[pairs.second]))
    fewer = type(pairs)(*(part[kept] for part in pairs))
    rng, met = np.random.default_rng(4), 0
    for _ in range(60):
        there = x.copy()
        there[own] = Rotation.random(random_state=rng).apply(x[own] - x[own].mean(axis=0))
        # beside the ball, or a little in it
        away = 0.03 + 0.01 * rng.random()
        there[own] += away * Rotation.random(random_state=rng).apply([1.0, 0.0, 0.0])
        all_of_them, some = (contacts_of(topology, p, there, 2e-3) for p in (pairs, fewer))
        for field in ("identity", "gap", "frame"):
            np.testing.assert_array_equal(found(all_of_them, field), found(some, field))
        met += int(np.count_nonzero(found(some, "identity") >> 60 == 1))
    assert met > 10


def test_an_edge_is_blunt_where_its_faces_do_not_fall_away_from_it() -> None:
    """Inside flat faces and in a valley, but on no edge of the outline; nowhere on a body that may bend."""
    topology, x = scene("angle iron")
    blunt, ends = blunt_edges(topology, x, [0]), x[topology.edges]
    own = topology.point_body[topology.edges[:, 0]] == 0
    middle, along = ends.mean(axis=1), np.ptp(ends, axis=1)
    valley = np.isclose(middle[:, :2], 0.01).all(axis=1)
    # of the outline are the edges along z at a corner, and those of both ends that join two corners in turn
    upright = own & (along[:, :2].max(axis=1) == 0.0) & ~valley
    following = [{k, (k + 1) % len(ANGLE)} for k in range(len(ANGLE))]
    round_the_end = own & (along[:, 2] == 0.0)
    round_the_end &= [set((e % len(ANGLE)).tolist()) in following for e in topology.edges]
    np.testing.assert_array_equal(blunt, own & ~upright & ~round_the_end)
    assert not blunt_edges(topology, x, []).any()


def test_a_search_leaves_them_out_but_against_a_line() -> None:
    mesh = RIGID["box"]
    topology, _ = join_shapes([surface(mesh, TOOL), surface(BALL), capsule(1e-3)])
    line, beside = np.array([[-0.03, 0.0, 0.0], [-0.03, 0.01, 0.0]]), np.array([0.04, 0.0, 0.0])
    x = np.vstack([mesh.vertices, BALL.vertices + beside, line])
    blunt, body = blunt_edges(topology, x, [0]), topology.point_body[topology.edges[:, 0]]
    pairs = BroadPhase(topology, x, 100_000, 1.0, 0.0, rigid=[0]).find(x, np.zeros_like(x), 0.0, SKIN, 1.0)[0]
    edges = [(body[a], body[b], blunt[a] or blunt[b]) for k, a, b in zip(*pairs, strict=True) if k == 1]
    assert not any(left_out for one, two, left_out in edges if 2 not in (one, two))
    assert any(left_out for one, two, left_out in edges if 2 in (one, two))
    sharp = int(np.count_nonzero((body == 0) & ~blunt)) * int(np.count_nonzero(body == 1))
    assert sum(2 not in (one, two) for one, two, _ in edges) == sharp
