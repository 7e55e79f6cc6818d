"""A facet is flipped over where a surface crosses itself, and nowhere else."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.flipped import Flipped, find_flipped, make_flipped
from palpo.physics.collision.proximity_contacts import POINT_TRIANGLE
from palpo.physics.collision.topology import LOW, Topology, join_shapes
from palpo.physics.mesh.generate import block, box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from tests.properties.contact_cases import surface

CELL = 0.005
PLATE = block((16 * CELL, CELL, 4 * CELL), (16, 1, 4)).surface()
WEDGE = SurfaceMesh.from_triangles(
    0.01 * np.array([[0, 0, 0], [0, 0, 4], [6, 0.4, 0], [6, 0.4, 4], [6, -0.4, 0], [6, -0.4, 4]]),
    np.array(
        [[0, 1, 3], [0, 3, 2], [0, 4, 5], [0, 5, 1], [2, 3, 5], [2, 5, 4], [0, 2, 4], [1, 5, 3]], np.int32
    ),
)
SHAPES = {
    "plate": PLATE, "ball": sphere_surface(0.02, 2), "wedge": WEDGE,
    "block": box_surface((0.04, 0.02, 0.03), (4, 2, 3)),
}  # fmt: skip


def flips(mesh: SurfaceMesh) -> tuple[Topology, Flipped]:
    topology, _ = join_shapes([surface(mesh, LOW)])
    return topology, make_flipped(topology, mesh.vertices, np.ones(1, bool))


def found(topology: Topology, flipped: Flipped, x: np.ndarray) -> np.ndarray:
    find_flipped(flipped, topology.triangles, topology.triangle_edges, x)
    return np.flatnonzero(flipped.facet)


def drawn(mesh: SurfaceMesh) -> int:
    """The node in the middle of the upper side, at 10 mm."""
    return int(np.argmin(np.linalg.norm(mesh.vertices - [0.0, 0.01, 0.0], axis=1)))


def turned(topology: Topology, x: np.ndarray) -> np.ndarray:
    """Facets of that side whose normals point down."""
    a, b, c = (x[topology.triangles[:, k]] for k in range(3))
    level = (np.abs(x[topology.triangles][:, :, 1] - 0.01) < 1e-9).all(axis=1)
    return np.flatnonzero(level & (np.cross(b - a, c - a)[:, 1] < 0.0))


@pytest.mark.parametrize("name", SHAPES)
def test_what_turns_and_stretches_flips_nothing(name: str) -> None:
    topology, flipped = flips(SHAPES[name])
    rng, x = np.random.default_rng(11), SHAPES[name].vertices
    for _ in range(50):
        stretch = np.diag(rng.uniform(0.5, 2.0, 3))
        turn = Rotation.random(random_state=rng).as_matrix()
        assert not len(found(topology, flipped, x @ stretch @ turn + rng.normal(size=3)))


@pytest.mark.parametrize("degrees", [60, 120, 178])
def test_a_fold_flips_nothing(degrees: float) -> None:
    """The plate, bent about a line between two of its rows, one cell around, its halves on each other."""
    topology, flipped = flips(PLATE)
    angle = np.radians(degrees)
    s, height = PLATE.vertices[:, 0], PLATE.vertices[:, 1]
    inner = CELL / angle
    at = np.clip(s / CELL, -0.5, 0.5) * angle
    beyond = s - np.clip(s, -0.5 * CELL, 0.5 * CELL)
    out = inner + 0.5 * CELL + height
    x = np.column_stack([
        out * np.sin(at) + beyond * np.cos(at), out * np.cos(at) - beyond * np.sin(at), PLATE.vertices[:, 2]
    ])  # fmt: skip
    assert not len(found(topology, flipped, x))


def test_a_node_that_is_drawn_across_its_neighbours_flips_what_it_turned() -> None:
    """On a flat side those facets whose outer side then points inwards, and no others."""
    mesh = box_surface((0.04, 0.02, 0.04), (8, 2, 8))
    topology, flipped = flips(mesh)
    for angle in np.radians(np.arange(7.0, 360.0, 30.0)):
        x = mesh.vertices.copy()
        x[drawn(mesh)] += 1.6 * CELL * np.array([np.cos(angle), 0.0, np.sin(angle)])
        assert len(turned(topology, x))
        np.testing.assert_array_equal(found(topology, flipped, x), turned(topology, x))


def test_nothing_touches_a_flipped_facet() -> None:
    """A ball over a side of which one node was drawn away meets all of it but what that turned over."""
    mesh, ball = box_surface((0.04, 0.02, 0.04), (8, 2, 8)), sphere_surface(0.02, 2)
    topology, _ = join_shapes([surface(mesh, LOW), surface(ball, LOW)])
    x = np.vstack([mesh.vertices, ball.vertices + np.array([0.0, 0.0301, 0.0])])
    broad = BroadPhase(topology, x, 20000, 1e-3, 0.0)

    def met() -> set[int]:
        pairs, _, _ = broad.find(x, np.zeros_like(x), 0.0, 0.0, within=0.02)
        return set(pairs.second[pairs.kind == POINT_TRIANGLE]) & set(range(len(mesh.triangles)))

    before = met()
    x[drawn(mesh), 0] += 1.6 * CELL
    assert before - met() == set(turned(topology, x))


def test_a_surface_does_not_hold_its_own_tangle_shut() -> None:
    """Two rows of nodes that changed places, one over the other: what faces itself there does not meet."""
    mesh = box_surface((0.04, 0.02, 0.04), (8, 2, 8))
    topology, _ = join_shapes([surface(mesh, LOW)])
    x = mesh.vertices.copy()
    for row, by, above in ((0.0, 5.5e-3, 2e-3), (CELL, -5.5e-3, 1e-3)):
        moved = (np.abs(x - [row, 0.01, 0.0]) < [1e-9, 1e-9, 0.6 * CELL]).all(axis=1)
        x[moved] += [by, above, 0.0]
    topology_flipped = flips(mesh)
    over = found(*topology_flipped, x)
    broad = BroadPhase(topology, mesh.vertices, 20000, 1e-3, 0.0, folding=[0])
    pairs, _, _ = broad.find(x, np.zeros_like(x), 0.0, 0.0, within=0.02)
    assert len(over)
    assert not np.isin(pairs.second, over).any()
    assert not np.isin(pairs.first, topology.triangles[over]).any()
