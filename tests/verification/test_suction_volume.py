"""Volumes of cavities against closed forms, their gradients, and the forces that follow."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from palpo.physics.gas.cavity import (
    area_of_wall,
    kept_volume,
    make_cavities,
    place_cavity,
    residual_gradient,
    residual_volume,
    signed_volume,
    volume_gradient,
)
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.pairing import ESCAPED, NONE, SEALED
from palpo.physics.gas.patch import place_points
from palpo.physics.mesh.cups import CUPS, GRIDS, cup
from tests.verification.cavity_detector import CavityDetector
from tests.verification.suction_shapes import (
    Pairer,
    block_with_tunnel,
    bowl,
    bowl_volume,
    ground,
    quarter,
    wall,
    wall_areas,
)

RADIUS, GAP, AROUND = 0.02, 5e-4, 48
ROUNDING = 1e-12  # relative: sums of about a thousand terms, each good to 1e-16 of the volume
ATMOSPHERE = 101325.0


def paired(a, b):
    """The one cavity between a wall with all of a's triangles and b: pairer, cavities, both gradients."""
    pairer = Pairer(a, b)
    cavities = pairer.pair([wall(a)], a.vertices, b.vertices)
    assert pairer.pairing.outcome[0] == SEALED
    assert cavities.count["found"][0] == 1
    gradient_a, gradient_b = np.zeros_like(a.vertices), np.zeros_like(b.vertices)
    volume_gradient(cavities, 0, gradient_a, gradient_b)
    return pairer, cavities, gradient_a, gradient_b


def waves(x, z):
    """A bumpy ground, the bumps as wide as a cup's rim is high above it."""
    return 2e-3 * np.sin(150 * x + 1) * np.cos(130 * z)


@pytest.fixture(scope="module")
def on_waves():
    a, b = bowl(quarter(RADIUS, 8, 0.003), AROUND), ground(20, waves)
    return a, b, *paired(a, b)


def test_a_half_sphere_on_a_plane_converges_at_second_order():
    errors = []
    for n in (8, 16, 32):
        _, cavities, *_ = paired(bowl(quarter(RADIUS, n), 4 * n), ground(1))
        errors.append(1 - cavities.volume[0] / (2 / 3 * np.pi * RADIUS**3))
    # faces of a sphere are cut off by the square of the edge; the next term is of fourth order
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx([2.0, 2.0], abs=0.05)


@pytest.mark.parametrize("cells", [1, 7, 30])
def test_a_bowl_on_a_plane_has_its_exact_volume_with_the_sealing_slab(cells):
    profile = [(0.0, 0.009), (0.004, 0.009), (0.016, GAP)]
    _, cavities, *_ = paired(bowl(profile, AROUND), ground(cells))
    # the slab is 13 % of it: a cavity closed border by border would be without
    assert cavities.volume[0] == pytest.approx(bowl_volume(profile, AROUND), rel=ROUNDING)


@pytest.mark.parametrize("cells", [1, 12])
def test_a_ring_that_touches_in_its_middle_encloses_what_is_between_its_two_borders(cells):
    profile = [(0.005, GAP), (0.012, 0.006), (0.02, GAP)]
    _, cavities, *_ = paired(bowl(profile, AROUND), ground(cells))
    assert cavities.volume[0] == pytest.approx(bowl_volume(profile, AROUND), rel=ROUNDING)


def test_a_wall_that_has_passed_through_the_other_body_counts_as_no_volume():
    _, cavities, *_ = paired(bowl([(0.0, -0.005), (0.015, GAP)], AROUND), ground(7))
    assert cavities.volume[0] == 0.0
    assert cavities.count["clamped"][0] == 1
    assert signed_volume(cavities, 0, cavities.points[0]) == pytest.approx(
        bowl_volume([(0.0, -0.005), (0.015, GAP)], AROUND), rel=ROUNDING
    )


def test_a_wall_without_a_border_holds_nothing():
    pairer = Pairer(closed := block_with_tunnel()[0], plane := ground(2))
    cavities = pairer.pair([wall(closed)], closed.vertices, plane.vertices)
    assert pairer.pairing.outcome[0] == ESCAPED
    assert pairer.pairing.cavity[0] == NONE
    assert cavities.count["found"][0] == 0


def test_volumes_of_random_polyhedra_are_exact_about_any_origin_and_so_are_areas():
    rng = np.random.default_rng(1)
    cavities = make_cavities(1, 40, 100)
    for _ in range(20):
        points = rng.normal(size=(40, 3)) + 3 * rng.normal(size=3)
        hull = ConvexHull(points)
        inward = np.einsum("ti,ti->t", np.cross(*_edges(points, hull.simplices)), hull.equations[:, :3]) < 0
        triangles = np.where(inward[:, None], hull.simplices, hull.simplices[:, ::-1])
        cavities.points[:] = points
        cavities.triangles[: len(triangles)] = triangles
        cavities.span[0] = [0, *[len(triangles)] * 4]
        assert area_of_wall(cavities, 0) == pytest.approx(hull.area, rel=1e-11)
        for origin in (np.zeros(3), points[0], rng.normal(size=3)):
            assert signed_volume(cavities, 0, origin) == pytest.approx(hull.volume, rel=1e-11)


def _edges(points, triangles):
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return b - a, c - a


def test_a_cavity_that_moves_as_one_keeps_its_volume(on_waves):
    a, b, pairer, cavities, *_ = on_waves
    volume = cavities.volume[0]
    points = slice(cavities.first[0], cavities.first[1])
    before = cavities.points[points].copy()
    for turn in Rotation.random(5, rng=np.random.default_rng(2)):
        x_a, x_b = turn.apply(a.vertices) + 0.05, turn.apply(b.vertices) + 0.05
        place_cavity(cavities, 0, x_a, x_b)
        # its points are on the bodies, and moved with them: weights are roots found to 1e-9
        np.testing.assert_allclose(cavities.points[points], turn.apply(before) + 0.05, rtol=0.0, atol=1e-9)
        assert signed_volume(cavities, 0, cavities.points[0]) == pytest.approx(volume, rel=ROUNDING)
        # found anew, closest points differ by rounding
        assert pairer.pair([wall(a)], x_a, x_b).volume[0] == pytest.approx(volume, rel=1e-9)
    pairer.pair([wall(a)], a.vertices, b.vertices)


def test_the_gradient_is_the_derivative_with_the_topology_frozen(on_waves):
    a, b, _, cavities, gradient_a, gradient_b = on_waves
    rng, step = np.random.default_rng(3), 1e-7
    for _ in range(5):
        way_a, way_b = rng.normal(size=a.vertices.shape), rng.normal(size=b.vertices.shape)
        volumes = []
        for side in (1, -1):
            place_cavity(cavities, 0, a.vertices + side * step * way_a, b.vertices + side * step * way_b)
            volumes.append(signed_volume(cavities, 0, a.vertices[0]))
        slope = (volumes[0] - volumes[1]) / (2 * step)
        # a cubic, whose central difference is off by step^2 over the squared size of a triangle
        assert slope == pytest.approx((gradient_a * way_a).sum() + (gradient_b * way_b).sum(), rel=1e-6)
    place_cavity(cavities, 0, a.vertices, b.vertices)


def test_pressure_leaves_the_pair_without_force_and_moment(on_waves):
    a, b, _, _, gradient_a, gradient_b = on_waves
    area = np.abs(gradient_a[:, 1]).sum()
    moment = np.cross(a.vertices, gradient_a).sum(0) + np.cross(b.vertices, gradient_b).sum(0)
    assert np.abs(gradient_a.sum(0) + gradient_b.sum(0)).max() < ROUNDING * area
    assert np.abs(moment).max() < ROUNDING * area * RADIUS


def test_what_contact_keeps_over_a_wall_is_its_height_over_the_wall_s_mouth_and_its_gradient_is_exact(
    on_waves,
):
    a, b, _, cavities, *_ = on_waves
    mouth = 0.5 * AROUND * np.sin(2 * np.pi / AROUND) * RADIUS**2
    gradient = np.zeros_like(b.vertices)
    # waves have more area than the plane that they lie on; their border, half a bump high, is bent
    assert kept_volume(cavities, 0, 1e-4, gradient) == pytest.approx(1e-4 * mouth, rel=0.02)
    rng, step, volumes = np.random.default_rng(6), 1e-7, []
    way = rng.normal(size=b.vertices.shape)
    for side in (1, -1):
        place_cavity(cavities, 0, a.vertices, b.vertices + side * step * way)
        volumes.append(kept_volume(cavities, 0, 1e-4, np.zeros_like(gradient)))
    place_cavity(cavities, 0, a.vertices, b.vertices)
    assert (volumes[0] - volumes[1]) / (2 * step) == pytest.approx(-(gradient * way).sum(), rel=1e-6)
    assert np.abs(gradient.sum(0)).max() < ROUNDING * RADIUS * 1e-4


@pytest.mark.parametrize("tilt", [0.0, 0.2])
def test_pressure_lifts_a_cup_by_its_times_the_area_of_the_rim(tilt):
    a, n = bowl(quarter(RADIUS, 8, 0.005), AROUND), AROUND
    turned = Rotation.from_rotvec([tilt, 0.0, 0.0]).apply(a.vertices)
    _, _, gradient_a, _ = paired(a.with_vertices(turned), ground(6))
    rim = 0.5 * n * np.sin(2 * np.pi / n) * RADIUS**2
    # over a plane, the ribbon is upright: it takes no part in the lift, which is that of the rim's projection
    assert gradient_a[:, 1].sum() == pytest.approx(np.cos(tilt) * rim, rel=ROUNDING)


def test_a_symmetric_cup_has_symmetric_forces():
    n = 24
    a = bowl(quarter(RADIUS, 6, GAP), n)
    _, _, gradient, _ = paired(a, ground(1))
    rings = gradient[1:].reshape(-1, n, 3)
    turned = Rotation.from_rotvec([0.0, -2 * np.pi / n, 0.0]).apply(rings.reshape(-1, 3)).reshape(rings.shape)
    # projections keep 1e-9 of the ground's triangle, 20 edges of the rim long, from its diagonal
    assert np.roll(rings, -1, axis=1) == pytest.approx(turned, abs=1e-7 * np.abs(gradient).max())


def test_the_ribbon_pushes_the_rim_along_its_radius_as_wide_as_half_the_gap():
    n = 24
    a = bowl(quarter(RADIUS, 6, GAP), n)
    _, _, share, _ = paired(a, ground(1))
    patch, points = wall(a), np.zeros((len(a.vertices), 3))
    place_points(patch, a.vertices, points)
    share += wall_areas(patch, points, len(share))
    outward = a.vertices[-n:] * [1.0, 0.0, 1.0] / RADIUS
    chord, turn = 2 * RADIUS * np.sin(np.pi / n), np.cos(np.pi / n)
    # cut along both diagonals, its quadrilaterals prefer no way around: 1e-7 as above
    assert share[-n:] == pytest.approx(0.5 * GAP * chord * turn * outward, abs=1e-7 * chord * RADIUS)
    assert np.abs(share[:-n]).max() < ROUNDING * RADIUS**2


def test_the_jumps_of_the_volume_under_a_sweep_of_the_gap_halve_with_its_step():
    surface = cup(CUPS["small"].shape, GRIDS[363]).mesh.surface("cup")
    limits = thresholds(contact=1e-4, sealing=5e-4, alarm=4e-3)
    detector, plane = CavityDetector(surface, limits), ground(5)
    pairer = Pairer(surface, plane)

    def volume(drop):
        x = surface.vertices - [0.0, drop, 0.0]
        assert detector.find(x, x[:, 1]) == 1
        return pairer.pair(detector.patches[:1], x, plane.vertices).volume[0]

    jumps = []
    for n in (16, 32, 64):
        volumes = [volume(drop) for drop in np.linspace(0.0, 2e-3, n + 1)]
        jumps.append(np.abs(np.diff(volumes)).max())
    # the slope varies over a step, most where the border crosses a row of vertices
    assert np.divide(jumps[:-1], jumps[1:]) == pytest.approx([2.0, 2.0], rel=0.1)


def test_a_flattened_wall_keeps_gap_and_roughness_and_its_gradient_is_exact():
    roughness, floor = 2e-5, ground(1)
    rng = np.random.default_rng(5)
    a = bowl([(0.0, 2e-4), (0.007, 1e-4), (0.015, 3e-4)], 12)
    patch, n = wall(a), len(a.vertices)

    def residual(x_a, height):
        points = np.zeros((patch.parents.shape[0], 3))
        place_points(patch, x_a, points)
        return residual_volume(patch, points, points[:, 1] - height, roughness), points

    polygon = 0.5 * 12 * np.sin(2 * np.pi / 12) * 0.015**2
    flat = a.vertices * [1.0, 0.0, 1.0]
    assert residual(flat, 0.0)[0] == pytest.approx(polygon * roughness, rel=ROUNDING)
    assert residual(flat, -3e-4)[0] == pytest.approx(polygon * (roughness + 3e-4), rel=ROUNDING)

    _, points = residual(a.vertices, 0.0)
    up = np.tile([0.0, 1.0, 0.0], (patch.size[0].vertices, 1))
    foot = np.tile(floor.triangles[0].astype(np.int64), (len(up), 1))
    weights = rng.dirichlet(np.ones(3), len(up))
    gradient_a, gradient_b = np.zeros((n, 3)), np.zeros_like(floor.vertices)
    residual_gradient(patch, points, points[:, 1], up, roughness, foot, weights, gradient_a, gradient_b)
    way, step = rng.normal(size=(n, 3)), 1e-7
    there, back = (residual(a.vertices + side * step * way, 0.0)[0] for side in (1, -1))
    assert (there - back) / (2 * step) == pytest.approx((gradient_a * way).sum(), rel=1e-6)
    rise = (residual(a.vertices, step)[0] - residual(a.vertices, -step)[0]) / (2 * step)
    assert rise == pytest.approx(gradient_b[:, 1].sum(), rel=1e-6)
    assert np.abs(gradient_a.sum(0) + gradient_b.sum(0)).max() < ROUNDING * polygon
