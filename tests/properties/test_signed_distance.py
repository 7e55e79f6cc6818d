"""Signed distance of solids: analytic shapes, an independent judge, and what is refused."""

import numpy as np
import pytest
import trimesh

from palpo.physics.collision import distance_field
from palpo.physics.collision.distance_field import (
    evaluate,
    exact_field,
    grid_field,
    make_scratch,
    signed_distance,
)
from palpo.physics.mesh.generate import box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

SIZE = np.array([0.3, 0.2, 0.4])
RING, TUBE = 0.3, 0.1


def torus():
    mesh = trimesh.creation.torus(RING, TUBE, major_sections=48, minor_sections=24)
    return SurfaceMesh.from_triangles(mesh.vertices, mesh.faces, "torus")


def points_about(surface, n=2000, by=0.5):
    lower, upper = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
    room = by * (upper - lower)
    return np.random.default_rng(n).uniform(lower - room, upper + room, (n, 3))


def box_distance(p):
    """Of the box about the origin, and where its gradient is one vector: its value there."""
    q = np.abs(p) - 0.5 * SIZE
    outside = np.maximum(q, 0.0)
    d = np.linalg.norm(outside, axis=1) + np.minimum(q.max(axis=1), 0.0)
    inner = np.where(q == q.max(axis=1, keepdims=True), np.sign(p), 0.0)
    outer = np.sign(p) * outside / np.maximum(np.linalg.norm(outside, axis=1), 1e-300)[:, None]
    return d, np.where((q.max(axis=1) > 0.0)[:, None], outer, inner)


def winding(surface, p):
    """Winding number by solid angles (van Oosterom and Strackee 1983), of each point."""
    a, b, c = (surface.vertices[surface.triangles[:, k]][None] - p[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
    volume = np.einsum("nmi,nmi->nm", a, np.cross(b, c))
    dots = (a * b).sum(axis=2) * lc + (b * c).sum(axis=2) * la + (c * a).sum(axis=2) * lb + la * lb * lc
    return np.arctan2(volume, dots).sum(axis=1) / (2.0 * np.pi)


def test_distance_and_normal_of_a_box_are_exact_at_faces_edges_and_corners():
    box = box_surface(SIZE, (3, 2, 2))
    p = points_about(box)
    d, n = signed_distance(exact_field(box), p)
    expected, gradient = box_distance(p)
    np.testing.assert_allclose(d, expected, atol=1e-14)
    np.testing.assert_allclose(n, gradient, atol=1e-9)


@pytest.mark.parametrize(
    "make", [torus, lambda: sphere_surface(0.2, 2), lambda: bent(box_surface(SIZE, (6, 2, 6)))]
)
def test_the_distance_is_to_the_nearest_triangle_and_its_sign_that_of_the_winding_number(make):
    surface = make()
    p = points_about(surface, 300, 0.2)
    d, n = signed_distance(exact_field(surface), p)
    corners = surface.vertices[surface.triangles]
    m = len(corners)
    closest = trimesh.triangles.closest_point(np.tile(corners, (len(p), 1, 1)), np.repeat(p, m, axis=0))
    nearest = np.linalg.norm(closest.reshape(-1, m, 3) - p[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(np.abs(d), nearest, atol=1e-12)
    np.testing.assert_array_equal(d < 0.0, winding(surface, p) > 0.5)
    # the normal points along the shortest way from the surface: p - d n lies on it
    foot, _ = signed_distance(exact_field(surface), p - d[:, None] * n)
    np.testing.assert_allclose(foot, 0.0, atol=1e-12)


def bent(surface):
    """Folded about z so far that concave edges, thin parts and a narrow gap appear."""
    x, y, z = surface.vertices.T
    angle = 14.0 * x
    radius = 0.12 + y * 0.4
    return surface.with_vertices(np.stack([radius * np.sin(angle), radius * np.cos(angle), z], axis=1))


def test_distance_of_a_sphere_converges_at_second_order():
    errors = []
    for subdivisions in (2, 3, 4):
        ball = sphere_surface(0.2, subdivisions)
        p = points_about(ball)
        d, _ = signed_distance(exact_field(ball), p)
        errors.append(np.abs(d - (np.linalg.norm(p, axis=1) - 0.2)).max())
    # the sagitta of a triangle falls by four each time its edges are halved
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.15)


def test_the_gradient_is_the_normal_and_has_length_one():
    surface = torus()
    field = exact_field(surface)
    p = points_about(surface, 500)
    d, n = signed_distance(field, p)
    h = 1e-6
    steps = h * np.eye(3)
    ahead, behind = (
        np.stack([signed_distance(field, p + s * e)[0] for e in steps], axis=1) for s in (1.0, -1.0)
    )
    gradient = (ahead - behind) / (2.0 * h)
    # near the medial axis and the borders of features a difference straddles two branches
    smooth = np.abs(ahead - d[:, None] - (d[:, None] - behind)).max(axis=1) < 1e-3 * h
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, atol=1e-12)
    # central differences of a distance of curvature below 1e3 / m
    np.testing.assert_allclose(gradient[smooth], n[smooth], atol=2e-3)


def test_on_the_surface_the_distance_is_zero_and_the_normal_still_points_out():
    box = box_surface(SIZE, (2, 2, 2))
    d, n = signed_distance(exact_field(box), box.vertices)
    np.testing.assert_allclose(d, 0.0, atol=1e-15)
    np.testing.assert_allclose(n, box.vertex_normals, atol=1e-14)


def test_grid_distance_of_a_smooth_shape_has_order_two_and_its_normal_order_one():
    ball, band = sphere_surface(1.0, 4), 0.3
    exact = exact_field(ball)
    direction = np.random.default_rng(0).standard_normal((1000, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    p = direction * np.random.default_rng(1).uniform(0.8, 1.2, (1000, 1))
    d, _ = signed_distance(exact, p)
    off, turned = [], []
    for spacing in (0.2, 0.1):
        d_grid, n_grid = signed_distance(grid_field(ball, band, spacing), p)
        off.append(np.abs(d_grid - d).max())
        turned.append(np.sqrt(((n_grid - direction) ** 2).mean()))
    # interpolation of curvature 1 along two directions: h^2 / 8 each, and half as much again below r = 1
    assert off[0] < 0.2**2 / 4.0 * 1.5
    assert np.log2(off[0] / off[1]) == pytest.approx(2.0, abs=0.3)
    assert np.log2(turned[0] / turned[1]) == pytest.approx(1.0, abs=0.2)


def test_grid_distance_is_exact_beside_a_flat_face_and_continuous_across_its_cells():
    box = box_surface(SIZE)
    field = grid_field(box, 0.05, 0.01)
    rng = np.random.default_rng(0)
    above = np.stack(
        [rng.uniform(-0.1, 0.1, 200), rng.uniform(0.07, 0.14, 200), rng.uniform(-0.1, 0.1, 200)], axis=1
    )
    d, n = signed_distance(field, above)
    np.testing.assert_allclose(d, above[:, 1] - 0.1, atol=1e-14)
    np.testing.assert_allclose(n, np.tile([0.0, 1.0, 0.0], (200, 1)), atol=1e-12)
    knot = field.grid.lower + field.grid.spacing * rng.integers(1, 20, (200, 3))
    knot = knot + np.array([0.0, 0.003, 0.004])
    before, after = (signed_distance(field, knot + np.array([e, 0.0, 0.0]))[0] for e in (-1e-12, 1e-12))
    np.testing.assert_allclose(before, after, atol=1e-11)


@pytest.mark.parametrize("cells", [3, 20, 71])
def test_lists_hold_the_nearest_triangle_of_every_point_however_coarse_the_cells(cells, monkeypatch):
    """Concave edges, thin parts and a narrow gap: a triangle left out of a list would show."""
    monkeypatch.setattr(distance_field, "LIST_CELLS", cells)
    surface, band = bent(box_surface(SIZE, (6, 2, 6))), 0.05
    rng = np.random.default_rng(cells)
    on = surface.vertices[surface.triangles][rng.integers(0, len(surface.triangles), 4000)]
    p = np.einsum("nk,nki->ni", rng.dirichlet([1.0, 1.0, 1.0], 4000), on) + rng.normal(
        0.0, band / 3, (4000, 3)
    )
    listed, searched = (exact_field(surface, reach).exact for reach in (band, np.inf))
    count = np.diff(listed.lists.start)
    assert count[count > 0].min() > 0 and count.max() <= len(surface.triangles)
    d, n = (signed_distance(exact_field(surface)._replace(exact=e), p) for e in (listed, searched))
    np.testing.assert_allclose(d[0], n[0], atol=4.0 * np.finfo(float).eps, rtol=0.0)


def test_beyond_the_band_the_distance_is_a_lower_bound_above_it_and_within_it_unchanged():
    surface, band = torus(), 0.05
    p = points_about(surface, 5000)
    d, n = signed_distance(exact_field(surface), p)
    bound, near = signed_distance(exact_field(surface, band), p)
    skipped = ~near.any(axis=1)
    assert (bound[skipped] > band).all()
    assert (bound[skipped] <= d[skipped] + 1e-15).all()
    # the lists meet triangles in another order than the tree: of two that share the closest point another
    # may come first, whose own corners round the same point in another way
    np.testing.assert_allclose(bound[~skipped], d[~skipped], atol=4.0 * np.finfo(float).eps, rtol=0.0)
    turned = np.linalg.norm(near[~skipped] - n[~skipped], axis=1)
    assert (turned * np.abs(d[~skipped]) <= 4.0 * np.finfo(float).eps).all()
    # of the points beyond the band it must save most, or it would be of no use
    assert skipped.sum() > 0.8 * (d > band).sum()


def test_threads_blocks_and_order_change_no_bit():
    surface = torus()
    p = points_about(surface, 9001)
    for field in (exact_field(surface, 0.1), grid_field(surface, 0.1, 0.02)):
        d, n = signed_distance(field, p, threads=1)
        for other in (
            signed_distance(field, p, threads=3),
            tuple(a[::-1] for a in signed_distance(field, p[::-1])),
        ):
            np.testing.assert_array_equal(d, other[0])
            np.testing.assert_array_equal(n, other[1])


def test_only_the_first_points_are_evaluated():
    d, n = np.full(5, 7.0), np.full((5, 3), 7.0)
    evaluate(exact_field(box_surface(SIZE)), np.zeros((5, 3)), 2, d, n, make_scratch())
    np.testing.assert_allclose(d, [-0.1, -0.1, 7.0, 7.0, 7.0])
    assert (n[2:] == 7.0).all()


def two_boxes(shift):
    one, other = box_surface(SIZE), box_surface(SIZE)
    vertices = np.concatenate([one.vertices, other.vertices + shift])
    return SurfaceMesh.from_triangles(
        vertices, np.concatenate([one.triangles, other.triangles + len(one.vertices)]), "two boxes"
    )


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        (SurfaceMesh.from_triangles(box_surface(SIZE).vertices, box_surface(SIZE).triangles[1:]),
         r"is open at the edge of nodes \d+ and \d+"),
        (box_surface(SIZE).flipped(), "must face outward"),
        (two_boxes([0.1, 0.07, 0.03]), r"crosses itself where the edge of nodes \d+ and \d+ .* triangle \d+"),
        (two_boxes([0.15, 0.0, 0.0]), "crosses itself"),
    ],
)  # fmt: skip
def test_what_is_no_solid_is_refused(surface, words):
    with pytest.raises(InputError, match=r"^peg: .*" + words) as caught:
        exact_field(surface, source="peg")
    assert "\n" not in str(caught.value)


def test_parts_that_are_apart_or_folded_tightly_do_not_cross():
    exact_field(two_boxes([0.31, 0.0, 0.0]))
    exact_field(bent(box_surface(SIZE, (6, 2, 6))))


def test_a_band_and_a_spacing_without_length_are_refused():
    box = box_surface(SIZE)
    with pytest.raises(InputError, match=r"peg: the band around the solid is 0.0 m"):
        exact_field(box, 0.0, "peg")
    with pytest.raises(InputError, match="spacing is -1 m"):
        grid_field(box, 0.1, -1)
    with pytest.raises(InputError, match=r"spacing of 1e-05 m .* samples"):
        grid_field(box, 0.1, 1e-5)
