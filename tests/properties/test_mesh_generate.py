"""Generated meshes against closed forms, conformity and symmetry."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.mesh.generate import (
    beam_line,
    block,
    box_surface,
    cylinder,
    ellipsoid,
    sphere,
    sphere_surface,
)
from palpo.physics.mesh.tet import TetMesh, validate_tets
from palpo.physics.numerics.errors import InputError

lengths = st.floats(1e-3, 10.0)
few = st.integers(1, 4)
ROUNDING = 1e-12  # sums of a few hundred terms of one sign


def assert_simulable_ball_topology(mesh: TetMesh) -> None:
    """Valid, conforming, positive, and bounded by one closed surface of Euler characteristic 2."""
    validate_tets(mesh.nodes, mesh.tets, "generated")
    surface = mesh.surface()
    assert surface.closed
    assert surface.vertices is mesh.nodes
    assert len(surface.used_vertices) - len(surface.edges) + len(surface.triangles) == 2
    # The divergence theorem holds only if no inner face is left unmatched.
    assert surface.signed_volume == pytest.approx(mesh.volume, rel=ROUNDING)


def observed_order(coarse_error: float, fine_error: float) -> float:
    return math.log2(coarse_error / fine_error)


@given(size=st.tuples(lengths, lengths, lengths), divisions=st.tuples(few, few, few))
@settings(max_examples=30, deadline=None)
def test_block_has_the_volume_of_its_box_and_is_conforming(size, divisions):
    # Cells as long as their neighbours are short would be flat in the sense of the quality limit.
    size = np.clip(size, 0.05 * max(size), None)
    mesh = block(size, divisions)
    assert_simulable_ball_topology(mesh)
    assert mesh.volume == pytest.approx(np.prod(size), rel=ROUNDING)
    np.testing.assert_allclose(mesh.nodes.max(axis=0), np.asarray(size) / 2, rtol=ROUNDING)
    np.testing.assert_allclose(mesh.nodes.min(axis=0), -np.asarray(size) / 2, rtol=ROUNDING)


def test_block_of_even_divisions_favours_no_direction():
    mesh = block((1.0, 1.0, 1.0), (4, 4, 4))
    centres = np.round(mesh.nodes[mesh.tets].mean(axis=1), 9) + 0.0

    def as_set(points):
        return {tuple(point) for point in points + 0.0}

    for axes in permutations(range(3)):
        assert as_set(centres[:, axes]) == as_set(centres)
    for axis in range(3):
        mirror = np.ones(3)
        mirror[axis] = -1.0
        assert as_set(centres * mirror) == as_set(centres)


def test_graded_block_keeps_its_volume_and_the_ratio_of_its_cells():
    mesh = block((1.0, 2.0, 3.0), (4, 3, 1), grading=(8.0, 0.5, 1.0))
    assert_simulable_ball_topology(mesh)
    assert mesh.volume == pytest.approx(6.0, rel=ROUNDING)
    steps = np.diff(np.unique(np.round(mesh.nodes[:, 0], 9)))
    assert steps[-1] / steps[0] == pytest.approx(8.0, rel=1e-6)  # coordinates rounded to 1e-9 above


@given(n_around=st.integers(3, 40), n_length=few, axis=st.sampled_from("xyz"))
@settings(max_examples=30, deadline=None)
def test_cylinder_has_the_volume_of_its_inscribed_prism(n_around, n_length, axis):
    radius, length = 0.3, 0.2 * n_length
    mesh = cylinder(radius, length, n_around, n_length, axis)
    assert_simulable_ball_topology(mesh)
    prism = 0.5 * n_around * math.sin(2.0 * math.pi / n_around) * radius**2 * length
    assert mesh.volume == pytest.approx(prism, rel=ROUNDING)
    extent = np.ptp(mesh.nodes, axis=0)["xyz".index(axis)]
    assert extent == pytest.approx(length, rel=ROUNDING)


def test_cylinder_volume_converges_at_second_order():
    errors = [math.pi - cylinder(1.0, 1.0, n, 1).volume for n in (24, 48)]
    assert observed_order(*errors) == pytest.approx(2.0, abs=0.05)  # next term of the series is O(1/n^4)


def test_cylinder_of_even_layers_does_not_couple_stretch_with_twist():
    # Mirroring in the middle plane exchanges the two hands of every diagonal.
    mesh = cylinder(0.1, 0.4, 12, 4, "z")
    centres = np.round(mesh.nodes[mesh.tets].mean(axis=1), 9)
    mirrored = centres * [1.0, 1.0, -1.0]
    assert {tuple(c + 0.0) for c in centres} == {tuple(c + 0.0) for c in mirrored}


@given(
    radii=st.tuples(*[st.floats(0.5, 2.0)] * 3),
    n_radial=st.integers(1, 5),
)
@settings(max_examples=20, deadline=None)
def test_ellipsoid_is_conforming_and_its_surface_nodes_lie_on_the_ellipsoid(radii, n_radial):
    mesh = ellipsoid(radii, n_radial)
    assert_simulable_ball_topology(mesh)
    on_surface = mesh.nodes[mesh.boundary_nodes] / radii
    np.testing.assert_allclose(np.linalg.norm(on_surface, axis=1), 1.0, rtol=ROUNDING)
    assert mesh.volume < 4.0 / 3.0 * math.pi * np.prod(radii)


def test_sphere_volume_converges_at_second_order():
    errors = [4.0 / 3.0 * math.pi - sphere(1.0, n).volume for n in (4, 8)]
    assert observed_order(*errors) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    "mesh",
    [
        sphere(1.0, 2),
        sphere(1.0, 8),
        cylinder(1.0, 2.0, 12, 4),
        cylinder(1.0, 2.0, 25, 8),
        block((1, 1, 1), (3, 3, 3)),
    ],
)
def test_generated_solids_have_no_bad_elements_at_any_fineness(mesh):
    assert mesh.qualities.min() > 0.35  # a Kuhn tetrahedron has 0.62; the worst map here takes it to 0.38


def test_sphere_surface_converges_at_second_order_in_volume_and_inertia():
    coarse, fine = sphere_surface(1.0, 2), sphere_surface(1.0, 3)
    for surface in (coarse, fine):
        np.testing.assert_allclose(np.linalg.norm(surface.vertices, axis=1), 1.0, rtol=ROUNDING)
        assert len(surface.vertices) - len(surface.edges) + len(surface.triangles) == 2
    volumes = [4.0 / 3.0 * math.pi - s.signed_volume for s in (coarse, fine)]
    inertias = [8.0 / 15.0 * math.pi - s.mass_properties(1.0)[2][0, 0] for s in (coarse, fine)]
    assert observed_order(*volumes) == pytest.approx(2.0, abs=0.1)
    assert observed_order(*inertias) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("subdivisions", [0, 1, 2])
def test_sphere_surface_has_twenty_times_four_to_the_k_triangles(subdivisions):
    assert len(sphere_surface(0.01, subdivisions).triangles) == 20 * 4**subdivisions


def test_box_surfaces_use_all_their_vertices():
    for surface in (box_surface((1, 2, 3)), box_surface((1, 2, 3), (2, 3, 4))):
        np.testing.assert_array_equal(surface.used_vertices, np.arange(len(surface.vertices)))
        assert surface.closed
    assert len(box_surface((1, 2, 3)).triangles) == 12


def test_beam_line_is_straight_with_equal_segments():
    line = beam_line((0.0, 1.0, 0.0), (0.3, 1.0, 0.4), 10, 1e-3)
    np.testing.assert_allclose(line.lengths, 0.05, rtol=ROUNDING)
    np.testing.assert_array_equal(line.nodes[[0, -1]], [[0.0, 1.0, 0.0], [0.3, 1.0, 0.4]])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: block((1, -2, 3), (1, 1, 1)), "size along y is -2"),
        (lambda: block((1, 2), (1, 1, 1)), "expected three numbers"),
        (lambda: block((1, 2, 3), (1, 0, 1)), "divisions along y is 0"),
        (lambda: block((1, 2, 3), (1, 1.5, 1)), "whole number"),
        (lambda: block((1, 2, 3), (1, 1, 1), (1, 0, 1)), "grading along y is 0"),
        (lambda: block((1, 2, math.nan), (1, 1, 1)), "size along z is nan"),
        (lambda: cylinder(1, 1, 2, 1), "n_around is 2"),
        (lambda: cylinder(1, 1, 6, 1, "w"), "axis is 'w'"),
        (lambda: sphere(0.0, 2), "radii along x is 0.0"),
        (lambda: sphere_surface(1.0, -1), "subdivisions is -1"),
        (lambda: beam_line((0, 0, 0), (1, 0, 0), 0, 1.0), "n_elements is 0"),
        (lambda: beam_line((0, 0, 0), (0, 0, 0), 3, 1.0), "segment 0"),
        (lambda: beam_line((0, 0, 0), (1, 0, 0), 3, 0.0), "radius is 0.0"),
        (lambda: beam_line((0, 0, math.inf), (1, 0, 0), 3, 1.0), "finite"),
    ],
)
def test_impossible_geometry_is_refused_by_name_and_value(make, words):
    with pytest.raises(InputError, match=words.replace(".", r"\.")):
        make()
