"""Cavities on a surface: every vertex in one class, borders that bound, an exact iso-line."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.gas.flood import FAR, NEAR, OUTSIDE, RING, SEALED, TOUCHING, thresholds
from palpo.physics.gas.patch import place_points, wall_area
from palpo.physics.mesh.generate import box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.sides import FixedSide
from tests.verification.cavity_detector import CavityDetector
from tests.verification.suction_shapes import wall_areas

LIMITS = thresholds(contact=1e-4, sealing=5e-4, alarm=4e-3)
OPEN, SEAL = 2e-3, 2e-4
"""Distances of vertices that let air through and that seal [m]."""


def lathe(profile, n_around):
    """Closed surface of revolution about y; profile (k, 2) radius, height, from lower to upper pole."""
    profile = np.asarray(profile, float)
    angle = 2 * np.pi * np.arange(n_around) / n_around
    rings = [np.column_stack([r * np.cos(angle), 0 * angle + y, r * np.sin(angle)]) for r, y in profile[1:-1]]
    vertices = np.concatenate([[[0, profile[0, 1], 0]], *rings, [[0, profile[-1, 1], 0]]])
    i, j = np.arange(n_around), (np.arange(n_around) + 1) % n_around
    triangles = [np.column_stack([0 * i, 1 + i, 1 + j])]
    for k in range(len(rings) - 1):
        low, high = 1 + k * n_around, 1 + (k + 1) * n_around
        triangles += [
            np.column_stack([low + i, high + i, low + j]),
            np.column_stack([low + j, high + i, high + j]),
        ]
    last = 1 + (len(rings) - 1) * n_around
    triangles.append(np.column_stack([last + i, 0 * i + len(vertices) - 1, last + j]))
    return SurfaceMesh.from_triangles(vertices, np.concatenate(triangles))


def along(points, step):
    """The polyline through points, no part longer than step."""
    points = np.asarray(points, float)
    out = [points[:1]]
    for p, q in pairwise(points):
        n = max(1, int(np.ceil(np.linalg.norm(q - p) / step)))
        out.append(p + (q - p) * np.arange(1, n + 1)[:, None] / n)
    return np.concatenate(out)


def cup(step=2e-3, n_around=24, pillar=False):
    """The small cup of the thesis, standing on y = 0; with a pillar down to there in its middle."""
    under = [(0, 5e-3), (4e-3, 5e-3)] if not pillar else [(0, 0), (2e-3, 0), (4e-3, 5e-3)]
    outline = [*under, (16e-3, 0), (20e-3, 0), (6e-3, 9e-3), (0, 9e-3)]
    return lathe(along(outline, step), n_around)


def voxels(mask, size=1e-3):
    """The boundary of the marked cells of a lattice: its genus is the number of tunnels through them."""
    padded = np.pad(mask, 1)
    quads = []
    for axis in range(3):
        u, v = (np.eye(3, dtype=int)[(axis + k) % 3] for k in (1, 2))
        for cell in np.argwhere(padded):
            for side in (0, 1):
                beyond = cell.copy()
                beyond[axis] += 2 * side - 1
                if not padded[tuple(beyond)]:
                    corner = cell + side * np.eye(3, dtype=int)[axis]
                    quad = [corner, corner + u, corner + u + v, corner + v]
                    quads.append(quad if side else quad[::-1])
    corners, index = np.unique(np.array(quads).reshape(-1, 3), axis=0, return_inverse=True)
    index = index.reshape(-1, 4)
    return SurfaceMesh.from_triangles(
        (corners - 1) * size, np.concatenate([index[:, :3], index[:, [0, 2, 3]]])
    )


def genus(mesh):
    return 1 - (len(mesh.vertices) - len(mesh.edges) + len(mesh.triangles)) // 2


def double_torus():
    """A plate of 11 by 7 by 2 cells with two square tunnels through it."""
    mask = np.ones((11, 7, 2), bool)
    mask[2:4, 2:5] = mask[7:9, 2:5] = False
    return voxels(mask)


def ball():
    return sphere_surface(0.01, 2)


def torus():
    """A plate of 9 by 9 by 2 cells with a square tunnel through it."""
    mask = np.ones((9, 9, 2), bool)
    mask[2:7, 2:7] = False
    return voxels(mask)


def closed_sides(patch):
    """The half-edges of the patch's triangles that none runs the other way, and those of its border."""
    triangles = patch.triangles[: patch.size[0].triangles].tolist()
    half = {s for t in triangles for s in zip(t, t[1:] + t[:1], strict=True)}
    assert len(half) == 3 * len(triangles)
    bounding = {(a, b) for a, b in half if (b, a) not in half}
    ordered = []
    for k in range(patch.size[0].loops):
        loop = patch.border[patch.loops[k] : patch.loops[k + 1]].tolist()
        assert len(loop) >= 2
        assert len(set(loop)) == len(loop)
        ordered += list(zip(loop, loop[1:] + loop[:1], strict=True))
    return bounding, ordered


def assert_sound(patch):
    """Borders closed, ordered and simple, and together the boundary of the patch; no entry lost."""
    assert patch.size[0].lost == 0
    bounding, ordered = closed_sides(patch)
    assert len(set(ordered)) == len(ordered) == patch.size[0].border
    assert set(ordered) == bounding
    assert len(np.unique(patch.triangles[: patch.size[0].triangles])) == patch.size[0].vertices


def euler(patch):
    triangles = patch.triangles[: patch.size[0].triangles]
    edges = np.unique(np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    return patch.size[0].vertices - len(edges) + len(triangles)


def points_of(patch, x):
    out = np.zeros((len(patch.parents), 3))
    place_points(patch, x, out)
    return out


def areas_of(patch, x):
    """Area, and area vectors at the vertices of the surface."""
    points = points_of(patch, x)
    return wall_area(patch, points), wall_areas(patch, points, len(x))


def assert_classified(mesh, detector, label):
    """Each vertex in exactly one class, connected as an independent search says."""
    cavity = detector.flood.cavity
    count = detector.flood.size[0].cavities
    assert ((cavity == RING) == (label >= SEALED)).all()
    assert np.isin(cavity, [OUTSIDE, RING, *range(count)]).all()
    free = (label < SEALED)[mesh.edges].all(axis=1)
    i, j = mesh.edges[free].T
    graph = coo_array((np.ones(len(i)), (i, j)), shape=(len(label), len(label)))
    piece = connected_components(graph, directed=False)[1]
    # the class is constant on each piece, and each cavity is one piece
    for number in range(count):
        assert len(np.unique(piece[cavity == number])) == 1
    assert not set(piece[cavity >= 0]) & set(piece[cavity == OUTSIDE])
    assert (detector.flood.footprint[cavity == OUTSIDE] == OUTSIDE).all()
    assert (detector.flood.footprint[cavity != OUTSIDE] >= 0).all()


def found(mesh, distance, **options):
    detector = CavityDetector(mesh, LIMITS, **options)
    count = detector.find(mesh.vertices, np.asarray(distance, float))
    assert_classified(mesh, detector, detector.label)
    for patch in detector.patches[:count]:
        assert_sound(patch)
    return detector


# --- labels -----------------------------------------------------------------------------------------------


def test_labels_follow_the_three_distances():
    mesh = box_surface((1.0, 1.0, 1.0))
    distance = np.array([-1e-3, 1e-4, 1.1e-4, 5e-4, 5.1e-4, 4e-3, 4.1e-3, np.inf])
    detector = CavityDetector(mesh, LIMITS)
    detector.wanted(distance)
    assert detector.label.tolist() == [TOUCHING, TOUCHING, SEALED, SEALED, NEAR, NEAR, FAR, FAR]


@pytest.mark.parametrize(
    ("values", "word"),
    [((1e-4, 5e-3, 4e-3), "sealing"), ((1e-3, 5e-4, 4e-3), "sealing"), ((-1e-4, 5e-4, 4e-3), "contact"),
     ((0.0, 0.0, 1e-3), "sealing"), ((0.0, 1e-4, np.nan), "alarm")],
)  # fmt: skip
def test_distances_out_of_order_are_refused_by_name(values, word):
    with pytest.raises(InputError, match=f"^The {word} distance[ ,]"):
        thresholds(*values)


def test_unknown_distances_are_wanted_exactly_where_the_iso_line_needs_them():
    mesh = cup()
    height = mesh.vertices[:, 1]
    # the next row of vertices is known inside, where the cup is flatter, and unknown outside
    distance = np.where(height > 0.9e-3, np.inf, height)
    detector = CavityDetector(mesh, LIMITS)
    sealed = height <= LIMITS.sealing
    beside = np.zeros(len(height), bool)
    beside[mesh.edges[sealed[mesh.edges].any(axis=1)]] = True
    wanted = beside & ~sealed & np.isinf(distance)
    assert 0 < wanted.sum() < (beside & ~sealed).sum()
    assert sorted(detector.wanted(distance)) == np.flatnonzero(wanted).tolist()
    assert len(detector.wanted(height)) == 0


# --- flood ------------------------------------------------------------------------------------------------


def test_a_cup_on_a_plane_has_one_cavity_a_disc_under_it():
    mesh = cup()
    detector = found(mesh, mesh.vertices[:, 1])
    patch = detector.patches[0]
    assert detector.flood.size[0].item() == (1, 1, 0, 0)
    assert (patch.size[0].loops, euler(patch)) == (1, 1)
    assert detector.flood.cavity[0] == 0
    assert detector.flood.cavity[-1] == OUTSIDE


def test_a_cup_with_a_pillar_in_its_middle_has_an_annular_cavity_with_two_borders():
    mesh = cup(pillar=True)
    detector = found(mesh, mesh.vertices[:, 1])
    patch = detector.patches[0]
    assert (detector.flood.size[0].cavities, patch.size[0].loops, euler(patch)) == (1, 2, 0)
    # seen from below, from outside the cup, the outer border turns counter-clockwise, the pillar's clockwise
    points, turns = points_of(patch, mesh.vertices), {}
    for k in range(2):
        x, _, z = points[patch.border[patch.loops[k] : patch.loops[k + 1]]].T
        turns[np.hypot(x, z).max()] = np.sum(x * np.roll(z, -1) - np.roll(x, -1) * z)
    assert turns[max(turns)] > 0 > turns[min(turns)]


def test_a_body_that_rests_on_another_has_a_footprint_but_no_cavity():
    mesh = box_surface((0.02, 0.02, 0.02), (6, 6, 6))
    detector = found(mesh, mesh.vertices[:, 1] - mesh.vertices[:, 1].min())
    assert detector.flood.size[["cavities", "footprints"]].tolist() == [(0, 1)]


def test_the_footprint_of_a_sealed_cup_is_a_disc_bounded_by_the_outer_border():
    mesh = cup()
    detector = found(mesh, mesh.vertices[:, 1])
    patch = detector.patches[1]
    detector.cut(detector.flood.footprint, 0, mesh.vertices[:, 1], patch)
    assert_sound(patch)
    assert (patch.size[0].loops, euler(patch)) == (1, 1)
    border = points_of(patch, mesh.vertices)[patch.border[: patch.size[0].border]]
    assert np.hypot(border[:, 0], border[:, 2]).min() > 0.016


def test_a_cup_with_one_gap_in_its_ring_has_no_cavity():
    mesh = cup()
    distance = mesh.vertices[:, 1].copy()
    x, _, z = mesh.vertices.T
    distance[(distance <= LIMITS.sealing) & (x > 0) & (np.abs(z) < 1e-6)] = OPEN
    assert found(mesh, distance).flood.size[0].cavities == 0


@pytest.mark.parametrize(("make", "tunnels"), [(ball, 0), (torus, 1), (double_torus, 2)])
def test_random_sealed_sets_on_surfaces_of_any_genus_leave_every_vertex_in_one_class(make, tunnels):
    mesh = make()
    assert genus(mesh) == tunnels
    rng = np.random.default_rng(tunnels)
    for part in np.linspace(0.2, 0.9, 15):
        distance = np.where(rng.random(len(mesh.vertices)) < part, SEAL, OPEN)
        for exact in (True, False):
            found(mesh, distance, capacity=200, exact=exact)


def ring_at(mesh, x):
    """Vertices on the lattice plane at x [mm]."""
    return np.isclose(mesh.vertices[:, 0], 1e-3 * x)


def test_a_ring_around_a_handle_encloses_nothing_and_two_enclose_the_tube_between_them():
    mesh = torus()
    handle = mesh.vertices[:, 1] < 2.5e-3
    one, two = ring_at(mesh, 3.0) & handle, (ring_at(mesh, 3.0) | ring_at(mesh, 5.0)) & handle
    assert found(mesh, np.where(one, SEAL, OPEN)).flood.size[0].cavities == 0
    detector = found(mesh, np.where(two, SEAL, OPEN))
    assert (detector.flood.cavity[ring_at(mesh, 4.0) & handle] == 0).all()
    patch = detector.patches[0]
    assert (detector.flood.size[0].cavities, patch.size[0].loops, euler(patch)) == (1, 2, 0)


def test_the_neck_of_a_double_torus_parts_off_a_wall_of_genus_one():
    mesh = double_torus()
    detector = found(mesh, np.where(ring_at(mesh, 6.0), SEAL, OPEN))
    patch = detector.patches[0]
    # 2 - 2 genus - loops
    assert (detector.flood.size[0].cavities, patch.size[0].loops, euler(patch)) == (1, 1, -1)


def test_two_bodies_in_one_surface_each_have_their_own_outside():
    one = cup()
    n = len(one.vertices)
    both = SurfaceMesh.from_triangles(
        np.concatenate([one.vertices, one.vertices + np.array([0.1, 0, 0])]),
        np.concatenate([one.triangles, one.triangles + n]),
    )
    cavity = found(both, both.vertices[:, 1]).flood.cavity
    assert {int(cavity[0]), int(cavity[n])} == {0, 1}
    assert cavity[n - 1] == cavity[-1] == OUTSIDE


def test_air_flows_around_the_rim_of_an_open_surface():
    dome = sphere_surface(0.02, 3)
    kept = dome.vertices[dome.triangles].mean(axis=1)[:, 1] > 0
    sheet = SurfaceMesh.from_triangles(dome.vertices, dome.triangles[kept]).flipped().compact()
    height = sheet.vertices[:, 1]
    rim = np.zeros(len(height), bool)
    rim[sheet.edges[sheet.edge_triangles[:, 1] < 0]] = True
    assert found(sheet, np.full(len(height), OPEN)).flood.size[0].cavities == 0
    detector = found(sheet, np.where(rim, SEAL, OPEN))
    assert (detector.flood.size[0].cavities, detector.patches[0].size[0].loops) == (1, 1)
    # half of the rim lifts off: the patch of the outside then ends at the surface's own rim
    detector = found(sheet, np.where(rim & (sheet.vertices[:, 0] > 0), SEAL, OPEN))
    assert detector.flood.size[0].cavities == 0
    detector.cut(detector.flood.cavity, OUTSIDE, np.full(len(height), OPEN), detector.patches[0])
    assert_sound(detector.patches[0])


def test_a_seed_outside_is_kept_and_one_inside_or_on_the_ring_is_refused():
    mesh = cup()
    height = mesh.vertices[:, 1]
    top, ring = len(height) - 1, int(np.flatnonzero(height == 0)[0])
    CavityDetector(mesh, LIMITS, seed=top).require_seed_outside(mesh.vertices, height)
    for seed, word in ((0, "lies inside a cavity"), (ring, "touches the other body")):
        with pytest.raises(InputError, match=f"vertex {seed}, {word}; choose"):
            CavityDetector(mesh, LIMITS, seed=seed).require_seed_outside(mesh.vertices, height)
        # and a run goes on with the outside that it finds itself
        assert found(mesh, height, seed=seed).flood.cavity[0] == 0
    wall = FixedSide(mesh)
    with pytest.raises(InputError, match="vertices run from 0"):
        Enclosure(wall, wall, LIMITS, 1e-5, seed=len(height))


def test_a_seed_decides_which_side_of_a_plug_is_outside():
    mesh = sphere_surface(0.01, 3)
    height = mesh.vertices[:, 1]
    lowest, highest = int(height.argmin()), int(height.argmax())
    band = np.where(np.abs(height - 3e-3) < 1e-3, SEAL, OPEN)
    automatic = found(mesh, band).flood.cavity
    assert (automatic[highest], automatic[lowest]) == (0, OUTSIDE)
    plug = found(mesh, band, seed=highest).flood.cavity
    assert (plug[highest], plug[lowest]) == (OUTSIDE, 0)


def test_cavities_beyond_the_capacity_are_the_smallest_and_are_counted():
    mesh = box_surface((0.02, 0.02, 0.02), (10, 10, 10))
    x, y, z = mesh.vertices.T
    under = np.isclose(y, y.min())
    large = under & (np.hypot(x - 4e-3, z) < 3e-3)
    small = under & (np.hypot(x + 6e-3, z) < 1e-3)
    distance = np.where(under & ~large & ~small, SEAL, OPEN)
    assert found(mesh, distance).flood.size[0].cavities == 2
    detector = found(mesh, distance, capacity=1)
    assert detector.flood.size[["cavities", "lost"]].tolist() == [(1, 1)]
    assert (detector.flood.cavity[large] == 0).all()
    assert (detector.flood.cavity[small] == OUTSIDE).all()


# --- border -----------------------------------------------------------------------------------------------


def distance_at(patch, distance):
    k = patch.size[0].vertices
    return np.einsum("kj,kj->k", patch.weights[:k], distance[patch.parents[:k]])


def test_the_exact_border_lies_on_the_sealing_iso_line():
    mesh = cup()
    tilted = mesh.vertices[:, 1] + 0.01 * mesh.vertices[:, 0] + 1e-4
    detector = found(mesh, tilted)
    patch = detector.patches[0]
    border = distance_at(patch, tilted)[patch.border[: patch.size[0].border]]
    # rounding of an interpolation between distances of up to 5 mm
    np.testing.assert_allclose(border, LIMITS.sealing, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("pillar", [False, True])
def test_area_vectors_at_the_nodes_sum_to_the_vector_area_of_the_borders(pillar):
    mesh = cup(pillar=pillar)
    patch = found(mesh, mesh.vertices[:, 1] + 0.01 * mesh.vertices[:, 0] + 1e-4).patches[0]
    total = areas_of(patch, mesh.vertices)[1].sum(axis=0)
    points, around = points_of(patch, mesh.vertices), np.zeros(3)
    for k in range(patch.size[0].loops):
        loop = points[patch.border[patch.loops[k] : patch.loops[k + 1]]]
        around += 0.5 * np.cross(loop, np.roll(loop, -1, axis=0)).sum(axis=0)
    np.testing.assert_allclose(total, around, rtol=0.0, atol=1e-13 * wall_area(patch, points))
    assert total[1] < 0.0


def test_an_unknown_distance_counts_as_the_alarm_distance():
    mesh = cup()
    height = mesh.vertices[:, 1]
    patches = []
    for unknown in (np.inf, LIMITS.alarm):
        distance = np.where(height > LIMITS.sealing, unknown, height)
        detector = found(mesh, distance)
        patches.append(points_of(detector.patches[0], mesh.vertices))
    np.testing.assert_array_equal(*patches)


def test_without_refinement_the_border_runs_through_the_sealed_vertices_beside_the_inner_ones():
    mesh = cup()
    detector = found(mesh, mesh.vertices[:, 1], exact=False)
    patch, cavity = detector.patches[0], detector.flood.cavity
    assert (patch.weights[: patch.size[0].vertices, 0] == 1.0).all()
    sides = cavity[mesh.edges]
    touched = mesh.edges[(sides == 0).any(axis=1) & (sides == RING).any(axis=1)]
    border = patch.parents[patch.border[: patch.size[0].border], 0]
    assert sorted(border) == sorted(set(touched[cavity[touched] == RING]))


def test_a_ring_pinched_to_a_vertex_has_simple_borders_all_the_same():
    mesh = box_surface((0.02, 0.02, 0.02), (10, 10, 10))
    x, y, z = np.round(mesh.vertices / 2e-3).T
    loops = {True: [], False: []}
    for shift in (0, 1):
        # two sealed squares that touch at one vertex, in a cavity that goes around both; the mesh's diagonals
        # meet at every other vertex, and there the border through vertices passes it twice
        right = x - shift
        reach = np.maximum(np.abs(right), np.abs(z))
        free = (y == y.min()) & ((reach == 3) | ((right * z > 0) & (reach < 3)))
        distance = np.where((y == y.min()) & ~free, SEAL, OPEN)
        for exact, counts in loops.items():
            detector = found(mesh, distance, exact=exact)
            assert detector.flood.size[0].cavities == 1
            counts.append(int(detector.patches[0].size[0].loops))
    assert loops[True] == [2, 2]
    assert sorted(loops[False]) == [2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_the_parts_on_both_sides_of_the_border_make_up_the_surface(seed):
    mesh = double_torus()
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    wave = np.sin(900.0 * mesh.vertices @ direction)
    distance = LIMITS.sealing + 3e-4 * wave
    detector = found(mesh, distance, capacity=50)
    side = (distance > LIMITS.sealing).astype(np.int64)
    total, vectors = 0.0, np.zeros_like(mesh.vertices)
    for number in (0, 1):
        patch = detector.patches[number]
        detector.cut(side, number, distance, patch)
        assert_sound(patch)
        area, part = areas_of(patch, mesh.vertices)
        total, vectors = total + area, vectors + part
        # orientation: no triangle turns against the surface, whose normals are the lattice's axes
        points = points_of(patch, mesh.vertices)
        corners = points[patch.triangles[: patch.size[0].triangles]]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        parents = patch.parents[patch.triangles[: patch.size[0].triangles]].reshape(len(normals), -1)
        owner = {frozenset(t): n for t, n in zip(mesh.triangles.tolist(), mesh.triangle_normals, strict=True)}
        for n, p in zip(normals, parents.tolist(), strict=True):
            own = next(v for k, v in owner.items() if set(p) <= k)
            assert n @ own > 0
    assert total == pytest.approx(mesh.triangle_areas.sum(), rel=1e-12)
    np.testing.assert_allclose(vectors.sum(axis=0), 0.0, atol=1e-12 * total)


def test_the_border_of_a_spherical_hollow_over_a_plane_is_a_circle_to_second_order():
    radius, above = 0.03, LIMITS.sealing
    turn = Rotation.from_rotvec([0.3, 0.5, -0.2])
    errors = []
    for subdivisions in (2, 3, 4, 5):
        hollow = sphere_surface(radius, subdivisions).flipped()
        hollow = hollow.with_vertices(turn.apply(hollow.vertices))
        height = hollow.vertices[:, 1] + 0.01
        detector = CavityDetector(hollow, LIMITS)
        detector.wanted(height)
        patch = detector.patches[0]
        detector.cut((height > above).astype(np.int64), 1, height, patch)
        assert patch.size[0].loops == 1
        border = points_of(patch, hollow.vertices)[patch.border[: patch.size[0].border]]
        circle = np.sqrt(radius**2 - (0.01 - above) ** 2)
        errors.append(np.abs(np.hypot(border[:, 0], border[:, 2]) - circle).max())
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    # the sagitta of a chord of the sphere; the largest one depends on where the cut falls
    assert orders.mean() == pytest.approx(2.0, abs=0.2)


def test_the_wall_of_a_cavity_moves_continuously_with_the_gap_only_on_the_iso_line():
    mesh = cup()
    gaps = np.linspace(2e-4, 4.8e-4, 60)
    jumps = {}
    for exact in (True, False):
        detector = CavityDetector(mesh, LIMITS, exact=exact)
        areas = []
        for gap in gaps:
            # a cup whose underside bends: ring after ring of vertices passes the sealing distance
            distance = gap + 0.05 * np.maximum(0.018 - np.hypot(*mesh.vertices[:, [0, 2]].T), 0.0)
            distance = np.where(mesh.vertices[:, 1] > 5.1e-3, OPEN, distance)
            distance[np.hypot(*mesh.vertices[:, [0, 2]].T) > 0.0185] = SEAL
            assert detector.find(mesh.vertices, distance) == 1
            areas.append(areas_of(detector.patches[0], mesh.vertices)[0])
        jumps[exact] = np.abs(np.diff(areas)).max() / (np.ptp(areas))
    # a whole row of triangles at once, against the 60th part of the way and some curvature
    assert jumps[True] < 0.1 < jumps[False]


# --- fuzz -------------------------------------------------------------------------------------------------


def test_random_poses_of_cups_on_bumpy_ground_classify_every_vertex_and_close_every_border():
    rng = np.random.default_rng(3)
    shapes = [cup(), cup(pillar=True), cup(4e-3, 9)]
    detectors = [CavityDetector(m, LIMITS, capacity=12, exact=e) for m in shapes for e in (True, False)]
    cavities = 0
    for _ in range(300):
        k = rng.integers(len(detectors))
        mesh, detector = shapes[k // 2], detectors[k]
        pose = Rotation.from_rotvec(rng.normal(size=3) * rng.choice([0.0, 0.02, 0.3, 3.0]))
        x = pose.apply(mesh.vertices) * rng.uniform(0.8, 1.2)
        bump = rng.choice([0.0, 2e-4, 1e-3]) * np.sin(x[:, 0] * rng.uniform(100, 1500)) * np.cos(
            x[:, 2] * rng.uniform(100, 1500)
        )  # fmt: skip
        height = x[:, 1] - bump
        height += rng.uniform(-2e-3, 1e-3) - height.min()
        distance = np.where(height > LIMITS.alarm, np.inf, height)
        wanted = detector.wanted(distance)
        distance[wanted] = height[wanted]
        count = detector.find(x, distance)
        cavities += count
        assert_classified(mesh, detector, detector.label)
        for patch in detector.patches[:count]:
            assert_sound(patch)
            assert patch.size[0].loops > 0
            assert np.isfinite(points_of(patch, x)).all()
        for number in range(min(detector.flood.size[0].footprints, 12)):
            detector.cut(detector.flood.footprint, number, distance, detector.patches[number])
            assert_sound(detector.patches[number])
    assert cavities > 100
