"""Borders projected on another surface, filled there and paired: areas, tunnels, rims, random poses."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.collision.closest import point_triangle
from palpo.physics.collision.nearest import ANYWHERE, make_descent, nearest, triangle_tree
from palpo.physics.gas.cavity import volume_gradient
from palpo.physics.gas.pairing import AT_RIM, ESCAPED, NONE, SEALED
from palpo.physics.gas.patch import clip_ears, place_points
from palpo.physics.mesh.generate import sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from tests.verification.suction_shapes import (
    Pairer,
    block_with_tunnel,
    bowl,
    bowl_volume,
    ground,
    quarter,
    wall,
)

GAP = 5e-4
ROUNDING = 1e-12


def joined(*surfaces):
    """Several sheets as one body."""
    shift = np.cumsum([0, *(len(s.vertices) for s in surfaces)])
    return SurfaceMesh.from_triangles(
        np.concatenate([s.vertices for s in surfaces]),
        np.concatenate([s.triangles + k for s, k in zip(surfaces, shift, strict=False)]),
    )


def walls(*surfaces):
    """The patch of each sheet, numbered as in the joined body."""
    patches, shift = [wall(s) for s in surfaces], 0
    for patch, surface in zip(patches, surfaces, strict=True):
        patch.parents[:] += shift
        shift += len(surface.vertices)
    return patches


def lid(outline):
    """A fan over a star-shaped outline (n, 2) in x, z, GAP above y = 0, facing down."""
    n = len(outline)
    points = np.column_stack([outline[:, 0], np.full(n, GAP), outline[:, 1]])
    i = np.arange(n)
    fan = np.column_stack([0 * i, 1 + i, 1 + (i + 1) % n])
    return SurfaceMesh.from_triangles(np.concatenate([[[0.0, 2 * GAP, 0.0]], points]), fan)


def turning(outline):
    """Signed area of an outline (n, 2)."""
    x, z = outline.T
    return 0.5 * np.sum(x * np.roll(z, -1) - np.roll(x, -1) * z)


def star(n=60, spikes=7):
    angle = 2 * np.pi * np.arange(n) / n
    radius = 0.012 * (1 + 0.6 * np.cos(spikes * angle))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def square(side=0.015):
    """Its sides run along the edges of a regular grid, its corners are among that grid's vertices."""
    return side * np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])


def grid(n, size=0.06):
    """The ground with its vertices unshaken."""
    surface = ground(n, size=size)
    step = 2 * size / n
    return surface.with_vertices(
        step * np.round((surface.vertices + size) / step) * [1, 0, 1] - [size, 0, size]
    )


def tiles(pairer):
    """Horizontal areas (t,), upward positive, of the patch on the ground."""
    patch = pairer.pairing.patch
    points = np.zeros((patch.parents.shape[0], 3))
    place_points(patch, pairer.x, points)
    a, b, c = (points[patch.triangles[: patch.size[0].triangles, k]] for k in range(3))
    return 0.5 * np.cross(b - a, c - a)[:, 1]


def paired(b, *surfaces):
    pairer = Pairer(joined(*surfaces), b)
    pairer.x = b.vertices
    cavities = pairer.pair(walls(*surfaces), joined(*surfaces).vertices, b.vertices)
    return pairer, cavities


@pytest.mark.parametrize("outline", [star(), square()], ids=["star", "square"])
@pytest.mark.parametrize("b", [grid(1), grid(8), ground(11), ground(40)], ids=["2", "128", "242", "3200"])
def test_the_patch_of_a_plane_tiles_the_projected_outline_without_overlap(outline, b):
    pairer, cavities = paired(b, lid(outline))
    assert pairer.pairing.outcome[0] == SEALED
    assert cavities.count["lost"][0] == pairer.pairing.size[0].forced == pairer.pairing.size[0].detours == 0
    areas = tiles(pairer)
    # points keep 1e-9 of a triangle's size from its edges
    assert areas.min() > -1e-9 * 0.06**2
    assert areas.sum() == pytest.approx(turning(outline), rel=1e-7)


def test_a_ring_within_one_triangle_is_tiled_around_its_hole():
    profile = [(0.005, GAP), (0.012, 0.006), (0.015, GAP)]
    b = SurfaceMesh.from_triangles([[-0.1, 0, -0.1], [0, 0, 0.2], [0.1, 0, -0.1]], [[0, 1, 2]])
    pairer, cavities = paired(b, bowl(profile, 48))
    areas = tiles(pairer)
    assert pairer.pairing.size[0].forced == 0
    assert areas.min() > 0.0
    assert areas.sum() == pytest.approx(24 * np.sin(2 * np.pi / 48) * (0.015**2 - 0.005**2), rel=ROUNDING)
    assert cavities.volume[0] == pytest.approx(bowl_volume(profile, 48), rel=ROUNDING)


@pytest.mark.parametrize("turn", np.arange(8) * np.pi / 4)
def test_a_hole_beside_the_middle_of_a_star_within_one_triangle_is_tiled_around_without_overlap(turn):
    """The cut from the hole to the outline is where they are closest: others run through spikes' gaps."""
    outline, n = star(), 60
    i, angle = np.arange(n), 2 * np.pi * np.arange(n) / n
    aside = np.array([np.cos(turn), np.sin(turn)])
    hole = 0.002 * (np.column_stack([np.cos(angle), np.sin(angle)]) + aside)
    rings = [np.insert(ring, 1, GAP, axis=1) for ring in (hole, outline)]
    j = (i + 1) % n
    strip = np.concatenate([np.column_stack([i, n + i, n + j]), np.column_stack([i, n + j, j])])
    lid_with_hole = SurfaceMesh.from_triangles(np.concatenate(rings), strip)
    b = SurfaceMesh.from_triangles([[-0.1, 0, -0.1], [0, 0, 0.2], [0.1, 0, -0.1]], [[0, 1, 2]])
    pairer, _ = paired(b, lid_with_hole)
    areas = tiles(pairer)
    assert pairer.pairing.outcome[0] == SEALED and pairer.pairing.size[0].forced == 0
    assert areas.min() > 0.0
    assert areas.sum() == pytest.approx(turning(outline) - turning(hole), rel=ROUNDING)


def test_a_border_over_the_edge_of_an_open_surface_is_no_cavity():
    b = ground(6)
    for x, outcome in ((0.0, SEALED), (0.055, AT_RIM), (0.2, AT_RIM)):
        pairer, cavities = paired(b, bowl(quarter(0.01, 4, GAP), 24, centre=(x, 0.0)))
        assert pairer.pairing.outcome[0] == outcome
        assert cavities.count["found"][0] == (outcome == SEALED)


def test_a_hole_in_the_surface_lets_the_air_out_wherever_the_cup_covers_it():
    b, radius = ground(20), 0.015
    a = bowl(quarter(radius, 4, GAP), 24)
    centres = b.vertices[b.triangles].mean(axis=1)
    for x, outcome in ((0.0, AT_RIM), (radius, AT_RIM), (0.04, SEALED)):
        hole = np.argmin(np.linalg.norm(centres - [x, 0.0, 0.0], axis=1))
        pairer, _ = paired(SurfaceMesh.from_triangles(b.vertices, np.delete(b.triangles, hole, axis=0)), a)
        assert pairer.pairing.outcome[0] == outcome


def test_a_cup_over_one_mouth_of_a_tunnel_holds_no_air_and_over_both_holds_the_tunnel_too():
    block, mouths, tunnel = block_with_tunnel()
    pairer, cavities = paired(block, bowl(quarter(0.005, 4, GAP), 24, centre=(mouths[0], 0.0)))
    assert pairer.pairing.outcome[0] == ESCAPED
    assert cavities.count["found"][0] == 0

    profile = quarter(0.016, 6, GAP)
    pairer, cavities = paired(block, bowl(profile, 48))
    assert pairer.pairing.outcome[0] == SEALED
    assert cavities.volume[0] == pytest.approx(bowl_volume(profile, 48) + tunnel, rel=1e-8)


def test_two_cups_over_the_mouths_of_a_tunnel_hold_one_cavity_while_others_have_their_own():
    block, mouths, tunnel = block_with_tunnel()
    profile = quarter(0.005, 4, GAP)
    volume = bowl_volume(profile, 24)
    left, right = (bowl(profile, 24, centre=(x, 0.0)) for x in mouths)
    aside = bowl(profile, 24, centre=(0.0, 0.012))

    pairer, cavities = paired(block, left, aside, right)
    assert pairer.pairing.cavity[:3].tolist() == [1, 0, 1]
    assert (pairer.pairing.outcome[:3] == SEALED).all()
    assert cavities.volume[:2] == pytest.approx([volume, 2 * volume + tunnel], rel=1e-8)

    pairer, cavities = paired(block, left, aside)
    assert pairer.pairing.outcome[:2].tolist() == [ESCAPED, SEALED]
    assert pairer.pairing.cavity[:2].tolist() == [NONE, 0]


def test_a_cup_on_a_ball_has_the_dome_less_the_cap_however_the_ball_is_turned():
    ball, radius, rim = sphere_surface(0.03, 3), 0.03, 0.01
    below = np.sqrt(radius**2 - rim**2)
    a = bowl(quarter(rim, 6, below + GAP), 48)
    pairer = Pairer(a, ball)
    cap = np.pi * (radius - below) ** 2 * (2 * radius + below) / 3
    for turn in Rotation.random(5, rng=np.random.default_rng(0)):
        cavities = pairer.pair([wall(a)], a.vertices, turn.apply(ball.vertices))
        assert cavities.count["found"][0] == 1
        # facets of 4.5 mm lie up to 0.1 mm below the sphere: a few percent of the dome over the cap
        assert cavities.volume[0] == pytest.approx(bowl_volume(quarter(rim, 6, GAP), 48) - cap, rel=0.03)


@pytest.mark.parametrize(("cells", "height", "bumps"), [(4, 4e-3, 60), (16, 4e-3, 150), (40, 8e-3, 300)])
def test_random_poses_over_bumpy_ground_are_closed_or_counted(cells, height, bumps):
    rng = np.random.default_rng(cells)
    waves, phases = rng.normal(size=(6, 2)) * bumps, rng.uniform(0, 2 * np.pi, 6)
    b = ground(
        cells, lambda x, z: height / 3 * np.sin(np.column_stack([x, z]) @ waves.T + phases).sum(axis=1)
    )
    a = bowl(quarter(0.015, 5), 32)
    pairer, patch = Pairer(a, b), wall(a)
    gradient_a, gradient_b = np.zeros_like(a.vertices), np.zeros_like(b.vertices)
    outcomes, detours = [], 0
    for _ in range(120):
        turn = Rotation.from_rotvec(rng.normal(size=3) * [0.4, 2.0, 0.4])
        x = turn.apply(a.vertices) + rng.uniform(-0.05, 0.05, 3) * [1.0, 0.1, 1.0]
        cavities = pairer.pair([patch], x, b.vertices)
        again = cavities.volume[: cavities.count["found"][0]].copy()
        assert (
            pairer.pair([patch], x, b.vertices).volume[: cavities.count["found"][0]].tolist()
            == again.tolist()
        )
        outcomes.append(pairer.pairing.outcome[0])
        detours += pairer.pairing.size[0].detours
        assert cavities.count["found"][0] == (outcomes[-1] == SEALED)
        assert cavities.count["lost"][0] == 0
        assert cavities.count["clamped"][0] == (again == 0.0).sum()
        if outcomes[-1] == SEALED:
            # a surface without a gap, whatever its border does: no resultant, no moment
            volume_gradient(cavities, 0, gradient_a, gradient_b)
            area = np.abs(gradient_a).sum()
            moment = np.cross(x, gradient_a).sum(0) + np.cross(b.vertices, gradient_b).sum(0)
            assert np.abs(gradient_a.sum(0) + gradient_b.sum(0)).max() < ROUNDING * area
            assert np.abs(moment).max() < ROUNDING * area * 0.1
    assert set(outcomes) == {SEALED, AT_RIM}
    # the plane misses the next point only where bumps are steeper than the border is long
    assert (detours > 0) == (bumps == 300)


def test_walls_beyond_the_capacity_are_counted():
    sheets = [bowl(quarter(0.005, 4, GAP), 24, centre=(x, 0.0)) for x in (-0.02, 0.0, 0.02)]
    b, a = ground(6), joined(*sheets)
    pairer = Pairer(a, b, walls=2)
    assert pairer.pair(walls(*sheets), a.vertices, b.vertices).count["found"][0] == 2
    assert pairer.pairing.size[0].walls == 2
    assert pairer.pairing.size[0].lost == 1


def test_the_nearest_point_is_the_nearest_of_all_triangles():
    rng = np.random.default_rng(4)
    b = ground(9, lambda x, z: 0.01 * np.sin(100 * x) * np.cos(90 * z))
    boxes, descent = triangle_tree(b.vertices, b.triangles), make_descent()
    weights, trial = np.zeros(3), np.zeros(3)
    for p in rng.uniform(-0.07, 0.07, (40, 3)):
        best = min(np.linalg.norm(p - _foot(p, b.vertices[t], trial)) for t in b.triangles)
        for hint in (-1, int(rng.integers(len(b.triangles)))):
            t, _, offset = nearest(boxes, b.vertices, tuple(p), hint, ANYWHERE, weights, descent)
            assert np.linalg.norm(offset) == pytest.approx(best, rel=ROUNDING)
            assert np.linalg.norm(p - weights @ b.vertices[b.triangles[t]]) == pytest.approx(
                best, rel=ROUNDING
            )


def _foot(p, corners, weights):
    point_triangle(p, *corners, weights)
    return weights @ corners


def test_ears_keep_the_area_and_the_centroid_of_any_polygon_and_tile_a_simple_one():
    rng = np.random.default_rng(6)
    links, triangles = np.zeros((40, 2), np.int64), np.zeros((40, 3), np.int64)
    for simple in (True, False):
        for _ in range(30):
            n = int(rng.integers(3, 30))
            angle = np.sort(rng.uniform(0, 2 * np.pi, n)) if simple else rng.uniform(0, 2 * np.pi, n)
            uv = rng.uniform(0.2, 1.0, n)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
            if simple and np.diff(angle, append=angle[0] + 2 * np.pi).max() > 3.0:
                continue
            forced = clip_ears(uv, np.arange(n), n, links, triangles, 0)
            corners = uv[triangles[: n - 2]]
            areas = 0.5 * np.linalg.det(corners[:, 1:] - corners[:, :1])
            following = np.roll(uv, -1, axis=0)
            turns = uv[:, 0] * following[:, 1] - uv[:, 1] * following[:, 0]
            moment = (turns[:, None] * (uv + following)).sum(0) / 6
            assert areas.sum() == pytest.approx(0.5 * turns.sum(), abs=ROUNDING)
            assert areas @ corners.mean(axis=1) == pytest.approx(moment, abs=ROUNDING)
            if simple:
                assert forced == 0
                assert areas.min() > 0.0
