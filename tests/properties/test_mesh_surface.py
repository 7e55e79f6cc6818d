"""Surfaces: edges, normals and mass properties against closed forms, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from palpo.physics.mesh.generate import box_surface, cylinder, ellipsoid, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable

rotations = st.tuples(*[st.floats(-3.0, 3.0)] * 3).map(Rotation.from_rotvec)
shifts = st.tuples(*[st.floats(-5.0, 5.0)] * 3).map(np.array)


def test_each_edge_is_run_forward_by_its_first_triangle_and_backward_by_its_second():
    surface = cylinder(0.1, 0.3, 9, 3).surface()
    assert len(np.unique(np.sort(surface.edges, axis=1), axis=0)) == len(surface.edges)
    for (a, b), (left, right) in zip(surface.edges, surface.edge_triangles, strict=True):
        assert (a, b) in _directed_sides(surface.triangles[left])
        assert (b, a) in _directed_sides(surface.triangles[right])


def _directed_sides(triangle):
    return set(zip(triangle, np.roll(triangle, -1), strict=True))


@given(rotation=rotations, shift=shifts)
@settings(max_examples=20, deadline=None)
def test_box_mass_properties_are_those_of_the_cuboid_in_any_pose(rotation, shift):
    a, b, c = size = np.array([0.2, 0.3, 0.5])
    box = box_surface(size)
    mass, centre, inertia = box.with_vertices(rotation.apply(box.vertices) + shift).mass_properties(700.0)
    cuboid = 700.0 * size.prod()
    principal = cuboid / 12.0 * np.diag([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    turn = rotation.as_matrix()
    # Rounding of coordinates up to 10 times the box's size.
    assert mass == pytest.approx(cuboid, rel=1e-11)
    np.testing.assert_allclose(centre, shift, atol=1e-11)
    np.testing.assert_allclose(inertia, turn @ principal @ turn.T, atol=1e-11 * cuboid)


def test_ellipsoid_mass_properties_equal_those_of_its_tetrahedra():
    mesh = ellipsoid((0.3, 0.2, 0.1), 3)
    mass, centre, inertia = mesh.surface().mass_properties(1000.0)
    corners = mesh.nodes[mesh.tets]
    sums = corners.sum(axis=1)
    second = np.einsum("m,mci,mcj->ij", mesh.volumes / 20.0, corners, corners)
    second += np.einsum("m,mi,mj->ij", mesh.volumes / 20.0, sums, sums)
    assert mass == pytest.approx(1000.0 * mesh.volume, rel=1e-12)
    np.testing.assert_allclose(centre, 0.0, atol=1e-15)
    np.testing.assert_allclose(inertia, 1000.0 * (np.trace(second) * np.eye(3) - second), atol=1e-12)


def test_area_vectors_of_a_closed_surface_sum_to_zero():
    surface = ellipsoid((0.3, 0.2, 0.1), 3).surface()
    area = surface.triangle_areas.sum()
    np.testing.assert_allclose(surface.triangle_vectors.sum(axis=0), 0.0, atol=1e-14 * area)


@pytest.mark.parametrize("divisions", [(1, 1, 1), (2, 2, 2), (3, 1, 2)])
def test_vertex_normal_of_a_cube_corner_is_its_diagonal_however_the_faces_are_cut(divisions):
    box = box_surface((1.0, 1.0, 1.0), divisions)
    corner = np.isclose(np.abs(box.vertices), 0.5).all(axis=1)
    assert corner.sum() == 8
    np.testing.assert_allclose(
        box.vertex_normals[corner], np.sign(box.vertices[corner]) / math.sqrt(3.0), atol=1e-14
    )


def test_edge_normals_of_a_cube_bisect_its_faces():
    box = box_surface((1.0, 1.0, 1.0))
    middles = box.vertices[box.edges].mean(axis=1)
    # The middle of a cube edge is (0, +-1/2, +-1/2) up to order, that of a face diagonal (0, 0, +-1/2).
    expected = middles / np.linalg.norm(middles, axis=1, keepdims=True)
    np.testing.assert_allclose(box.edge_normals, expected, atol=1e-14)


def test_vertex_normals_of_a_sphere_are_radial_to_first_order():
    errors = []
    for subdivisions in (2, 3):
        ball = sphere_surface(1.0, subdivisions)
        errors.append(np.linalg.norm(ball.vertex_normals - ball.vertices, axis=1).max())
    # Second order where the triangles around a vertex are alike, first where they change size.
    assert math.log2(errors[0] / errors[1]) > 0.9


def test_unused_vertices_have_no_normal_and_vanish_when_compacted():
    surface = cylinder(0.1, 0.3, 12, 3).surface()
    unused = np.setdiff1d(np.arange(len(surface.vertices)), surface.used_vertices)
    assert unused.size
    assert not surface.vertex_normals[unused].any()
    small = surface.compact()
    rebuilt = SurfaceMesh.from_triangles(small.vertices, small.triangles)
    np.testing.assert_array_equal(small.edges, rebuilt.edges)
    np.testing.assert_array_equal(small.edge_triangles, rebuilt.edge_triangles)
    assert small.signed_volume == pytest.approx(surface.signed_volume, rel=1e-14)


def test_a_flipped_surface_encloses_the_opposite_volume_and_keeps_its_edge_directions():
    ball = sphere_surface(1.0, 1)
    inside_out = ball.flipped()
    assert inside_out.signed_volume == pytest.approx(-ball.signed_volume, rel=1e-14)
    for (a, b), (left, _) in zip(inside_out.edges, inside_out.edge_triangles, strict=True):
        assert (a, b) in _directed_sides(inside_out.triangles[left])
    with pytest.raises(InputError, match="must face outward"):
        inside_out.require_volume("ball")


def test_an_open_surface_has_border_edges_and_no_volume():
    ball = sphere_surface(1.0, 1)
    cup = SurfaceMesh.from_triangles(ball.vertices, ball.triangles[1:])
    assert not cup.closed
    assert (cup.edge_triangles[:, 1] < 0).sum() == 3
    assert (cup.edge_triangles[:, 0] >= 0).all()
    with pytest.raises(InputError, match=r"cup\.stl: the surface is open at the edge of nodes \d+ and \d+"):
        cup.require_volume("cup.stl")
    with pytest.raises(InputError, match="open"):
        cup.mass_properties(1000.0)


def test_a_folded_sheet_encloses_no_volume():
    sheet = SurfaceMesh.from_triangles(np.eye(3), [[0, 1, 2], [2, 1, 0]])
    assert sheet.closed
    with pytest.raises(InputError, match="encloses no volume"):
        sheet.require_volume("sheet")


SQUARE = np.array(
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1], [2, 2, 0], [2, 1, 1]], dtype=float
)


@pytest.mark.parametrize(
    ("vertices", "triangles", "words"),
    [
        (SQUARE, [[0, 1, 2], [0, 2, 3], [0, 2, 4]], r"nodes 0 and 2 .* non-manifold.*\[0, 1, 2\]"),
        (SQUARE, [[0, 1, 2], [0, 3, 2]], "triangles 0 and 1 .* opposite orientation .* nodes 0 and 2"),
        (SQUARE, [[0, 1, 2], [0, 1, 1]], r"triangle 1 .* \[0, 1, 1\] is degenerate"),
        (SQUARE, [[0, 1, 2], [2, 5, 6]], "node 2 .* non-manifold"),
        (SQUARE, [[0, 1, 2], [2, 5, 7]], "triangle 1 .* nodes run from 0 to 6"),
        (SQUARE, [[0, 1, -1]], "nodes run from 0 to 6"),
        (SQUARE, [[0.0, 1.0, 2.0]], "expected integers"),
        (SQUARE, [[0, 1, 2, 3]], r"expected \(m, 3\)"),
        (SQUARE, np.zeros((0, 3), dtype=int), "m > 0"),
        (np.where(SQUARE == 2, np.nan, SQUARE), [[0, 1, 2]], "node 5 .* must be finite"),
        (SQUARE[:, :2], [[0, 1, 2]], r"expected \(n, 3\)"),
    ],
)
def test_a_broken_surface_is_refused_with_its_file_and_element(vertices, triangles, words):
    with pytest.raises(InputError, match=r"^cup\.obj: .*" + words) as caught:
        SurfaceMesh.from_triangles(vertices, triangles, "cup.obj")
    assert "\n" not in str(caught.value)
