"""Shapes to draw: normals, tubes, marks and the frame that they come from. No OpenGL here."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.physics.exchange import buffer
from palpo.physics.exchange.snapshot import (
    NO_SCALAR,
    OVERFLOW,
    SLIP,
    STICK,
    STRAIN,
    Drawable,
    SceneState,
    make_geometry,
    make_snapshot,
    plane_corners,
    view,
    write,
)
from palpo.physics.numerics.errors import InputError
from palpo.render import palette
from palpo.render.ground import plane_of
from palpo.render.normals import SmoothSurface, face_normals
from palpo.render.overlays import LONGEST_ARROW, Overlays, force_scale, place_marks, round_number
from palpo.render.solids import BALL, CONE, ROD, Solids, unit_shapes
from palpo.render.surfaces import shadow_matrix
from palpo.render.tubes import SIDES, Tube, curve_matrix, transport_frames

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
CUBE_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ],
    np.int32,
)  # fmt: skip


def volume(points, triangles):
    """Enclosed volume, positive when the faces are wound counter-clockwise from outside."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def two_bodies():
    """A cube and a rod of three nodes, with the hand on the rod's end."""
    nodes = np.array([[0.5, 1.0, 0.5], [0.5, 1.5, 0.5], [0.5, 2.0, 0.5]])
    vertices = np.vstack([CUBE, nodes])
    drawables = (
        Drawable("cube", "surface", 0, 8, CUBE_FACES, fixed=np.array([0, 1], np.int32)),
        Drawable("rod", "tube", 8, 3, radius=0.05),
    )
    state = SceneState(
        vertices,
        tick=7,
        time=0.14,
        contact_point=np.array([[0.5, 1.0, 0.5], [0.4, 1.0, 0.5]]),
        contact_force=np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]),
        contact_state=np.array([STICK, SLIP]),
        held_point=nodes[2],
    )
    return make_geometry(drawables, vertices), state


def test_a_cube_keeps_its_sharp_edges():
    surface = SmoothSurface(CUBE, CUBE_FACES)
    rows = surface.rows(CUBE)
    assert len(rows) == 24  # each corner once for each of its three faces
    expected = face_normals(CUBE, CUBE_FACES)
    for corner in surface.triangles.T:
        np.testing.assert_allclose(rows[corner, 3:], expected, atol=1e-7)
    assert volume(rows[:, :3], surface.triangles) == pytest.approx(1.0)


def test_faces_bent_less_than_the_crease_share_their_normals():
    surface = SmoothSurface(CUBE, CUBE_FACES, crease=100.0)
    assert len(surface.rows(CUBE)) == 8


def test_normals_follow_the_deformed_mesh():
    surface = SmoothSurface(CUBE, CUBE_FACES)
    turned = CUBE[:, [2, 0, 1]]
    np.testing.assert_allclose(surface.rows(turned)[:, 3:], surface.rows(CUBE)[:, [5, 3, 4]], atol=1e-7)


def test_normals_of_a_round_mesh_are_radial_to_the_order_of_the_mesh():
    rows, triangles = unit_shapes()[BALL]
    points, inverse = np.unique(rows[:, :3].round(6), axis=0, return_inverse=True)
    faces = inverse.ravel()[triangles].astype(np.int32)
    faces = faces[[len(set(f)) == 3 for f in faces]]
    drawn = SmoothSurface(points.astype(float), faces).rows(points.astype(float))
    step = 2 * np.pi / 20  # angle between meridians
    assert np.einsum("ij,ij->i", drawn[:, :3], drawn[:, 3:]).min() > np.cos(0.5 * step)


def test_normals_of_a_cylinder_are_radial_however_its_faces_are_cut():
    around, along = 19, 6
    angle = 2 * np.pi * np.arange(around) / around
    ring = np.stack([np.zeros(around), np.cos(angle), np.sin(angle)], axis=1)
    points = np.concatenate([ring + np.array([x, 0, 0]) for x in range(along)])
    faces = []
    for row, k in np.ndindex(along - 1, around):
        a, b = around * row + k, around * row + (k + 1) % around
        c, d = a + around, b + around
        # the two faces that meet in one corner of a cell are on another side in every second row
        faces += [(a, b, c), (b, d, c)] if row % 2 else [(a, b, d), (a, d, c)]
    rows = SmoothSurface(points, np.array(faces, np.int32)).rows(points)
    inner = (rows[:, 0] > 0) & (rows[:, 0] < along - 1)
    outward = np.abs(np.einsum("ij,ij->i", rows[inner, 1:3], rows[inner, 4:6]))
    np.testing.assert_allclose(outward, 1.0, atol=1e-6)


def test_a_collapsed_face_gives_no_number_that_is_not_finite():
    flat = CUBE.copy()
    flat[1] = flat[0]
    assert np.isfinite(SmoothSurface(CUBE, CUBE_FACES).rows(flat)).all()


def test_a_straight_tube_is_a_capsule():
    length, radius = 2.0, 0.1
    nodes = np.array([[0, 0, 0], [0.7, 0, 0], [length, 0, 0]])
    tube = Tube(3, radius)
    rows = tube.rows(nodes).astype(float)
    on_axis = np.c_[np.clip(rows[:, 0], 0, length), np.zeros((len(rows), 2))]
    np.testing.assert_allclose(np.linalg.norm(rows[:, :3] - on_axis, axis=1), radius, rtol=1e-5)
    np.testing.assert_allclose((rows[:, :3] - on_axis) / radius, rows[:, 3:], atol=1e-5)
    polygon = np.sin(2 * np.pi / SIDES) / (2 * np.pi / SIDES)  # area of the inscribed polygon over the disc's
    cylinder, ball = polygon * np.pi * radius**2 * length, 4 / 3 * np.pi * radius**3
    # Five rings make the round ends at most a tenth smaller than the half balls they stand for.
    assert cylinder + 0.9 * ball < volume(rows[:, :3], tube.triangles) < cylinder + ball


def test_the_drawn_curve_passes_through_the_nodes_and_keeps_a_line_straight():
    nodes = np.random.default_rng(3).normal(size=(6, 3))
    np.testing.assert_allclose((curve_matrix(6, 4) @ nodes)[::4], nodes, atol=1e-12)
    line = np.linspace(0, 1, 6)[:, None] * [1.0, 2.0, -1.0]
    np.testing.assert_allclose(
        curve_matrix(6, 4) @ line, np.linspace(0, 1, 21)[:, None] * [1, 2, -1], atol=1e-12
    )


def test_transported_frames_of_a_plane_curve_do_not_twist_about_it():
    angle = np.linspace(0, 4, 60)
    tangent, u, v = transport_frames(np.c_[np.cos(angle), np.sin(angle), 0 * angle])
    axes = np.stack([tangent, u, v], axis=1)
    np.testing.assert_allclose(
        axes @ axes.transpose(0, 2, 1), np.broadcast_to(np.eye(3), axes.shape), atol=1e-12
    )
    # In a plane curve parallel transport keeps the component along the plane's normal.
    np.testing.assert_allclose(u[:, 2], u[0, 2], atol=1e-12)


@pytest.mark.parametrize("shape", list(unit_shapes()))
def test_marks_are_closed_and_wound_outward(shape):
    rows, triangles = unit_shapes()[shape]
    exact = {"ball": 4 / 3 * np.pi, "rod": np.pi, "cone": np.pi / 3, "cube": 8.0}[shape]
    # An inscribed polygon of 12 sides has 4.5 % less area than its circle, of 20 sides 1.6 %; the ball loses
    # that twice.
    assert 0.95 * exact < volume(rows[:, :3].astype(float), triangles) <= exact * (1 + 1e-6)


def test_an_arrow_runs_from_the_point_along_the_force_to_its_tip():
    marks = Solids()
    start, vector = np.array([0.1, 0.2, 0.3]), np.array([0.3, -0.1, 0.2])
    marks.arrows(start, vector, 0.01, palette.FORCE)
    rod, cone = marks.rows(ROD)[0], marks.rows(CONE)[0]
    np.testing.assert_allclose(rod[:3], start, atol=1e-7)
    np.testing.assert_allclose(cone[:3] + cone[9:12], start + vector, atol=1e-7)
    for mark in (rod, cone):
        x, y, z = mark[3:6], mark[6:9], mark[9:12]
        np.testing.assert_allclose(np.cross(z, vector), 0, atol=1e-7)
        assert np.cross(x, y) @ z > 0  # right-handed, or its faces would be drawn from inside


def test_what_is_not_there_has_no_mark():
    geometry, state = two_bodies()  # no device, no hand's force, no attachment
    marks = place_marks(geometry, state, Overlays(), 0.1)
    assert len(marks.rows(BALL)) == 3  # two contacts and the held point
    assert len(marks.rows(CONE)) == 1  # the second contact carries no force


def test_contact_points_have_the_colour_of_their_state():
    geometry, state = two_bodies()
    balls = place_marks(geometry, state, Overlays(device=False), 0.1).rows(BALL)
    np.testing.assert_allclose(balls[:, 12:], [palette.CONTACT[STICK], palette.CONTACT[SLIP]], atol=1e-7)


def test_the_largest_force_fits_its_share_of_the_scene():
    geometry, state = two_bodies()
    longest = 2.0 * force_scale(geometry, state) / geometry.length
    assert LONGEST_ARROW / 2.5 <= longest <= LONGEST_ARROW  # 1-2-5 steps are at most a factor 2.5 apart


@pytest.mark.parametrize(("x", "expected"), [(1.0, 1.0), (4.99, 2.0), (0.05, 0.05), (730.0, 500.0)])
def test_scales_are_round_numbers(x, expected):
    assert round_number(x) == pytest.approx(expected)


def test_a_shadow_lies_in_the_plane_along_the_light():
    light = np.array([-0.4, 0.8, 0.3])
    plane = plane_of(plane_corners([0.1, -0.2, 0.3], [0.2, 1.0, -0.1], 0.5))
    points = np.random.default_rng(5).normal(size=(20, 3))
    shadow = points @ shadow_matrix(plane, light)[:3, :3].T + shadow_matrix(plane, light)[:3, 3]
    np.testing.assert_allclose(shadow @ plane[:3], plane[3], atol=1e-12)
    np.testing.assert_allclose(np.cross(points - shadow, light), 0, atol=1e-12)


def test_a_frame_comes_through_the_triple_buffer_as_it_was_written():
    _, state = two_bodies()
    snapshot, control = make_snapshot(11, 4, 1, 3), buffer.make_control()
    state.attachment_point = np.array([[1.0, 2.0, 3.0]])
    state.scalar, state.scalar_kind = np.arange(11.0), STRAIN
    state.scalar_range, state.published_ns = np.array([0.0, 10.0]), 123
    state.patch, state.patch_scalar = np.arange(18.0).reshape(2, 3, 3), np.array([3.0, 4.0])
    write(snapshot, buffer.writer_slot(control), state)
    buffer.publish(control)
    slot, fresh = buffer.acquire(control)
    read = view(snapshot, slot)
    assert fresh
    for name, value in vars(state).items():
        np.testing.assert_array_equal(getattr(read, name), value, err_msg=name)


def test_a_frame_without_scalar_has_none_in_a_slot_that_had_one():
    _, state = two_bodies()
    snapshot = make_snapshot(11, 4)
    write(snapshot, 0, replace(state, scalar=np.ones(11), scalar_kind=STRAIN))
    write(snapshot, 0, state)
    assert view(snapshot, 0).scalar_kind == NO_SCALAR
    assert view(snapshot, 0).scalar.size == 0


def test_the_colour_map_grows_lighter_by_even_steps():
    """Read in grey it still tells the order of the values: CIE lightness from the relative luminance."""
    rgb = palette.COLOUR_MAP
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lightness = 116.0 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16.0
    steps = np.diff(lightness[1:])  # the darkest one is below the law's cube root
    assert steps.min() > 0.5 * steps.mean()
    assert steps.max() < 1.5 * steps.mean()


def test_a_copied_frame_outlives_its_slot():
    _, state = two_bodies()
    snapshot = make_snapshot(11, 4)
    write(snapshot, 0, state)
    kept = view(snapshot, 0).copy()
    snapshot.vertices[0] = 0.0
    np.testing.assert_array_equal(kept.vertices, state.vertices)


def test_contacts_and_patches_beyond_the_capacity_are_left_out_and_counted():
    _, state = two_bodies()
    snapshot = make_snapshot(11, 1, n_patches=1)
    write(snapshot, 2, replace(state, patch=np.ones((3, 3, 3)), patch_scalar=np.ones(3)))
    read = view(snapshot, 2)
    assert len(read.contact_point) == len(read.patch) == len(read.patch_scalar) == 1
    assert read.counters[OVERFLOW] == 1 + 2


def test_the_scene_box_holds_the_bodies_but_not_the_planes():
    plate = plane_corners([0, 0, 0], [0, 1, 0], 50.0)
    geometry = make_geometry(
        (Drawable("cube", "surface", 0, 8, CUBE_FACES), Drawable("floor", "plane", 8, 4)),
        np.vstack([CUBE, plate]),
    )
    np.testing.assert_allclose([geometry.lower, geometry.upper], [[0, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize(
    ("drawable", "words"),
    [
        (Drawable("a", "surface", 4, 8), "outside the scene"),
        (Drawable("a", "surface", 0, 4, CUBE_FACES), "names vertex 7"),
        (Drawable("a", "surface", 0, 8, fixed=np.array([9], np.int32)), "fixed vertex names vertex 9"),
        (Drawable("a", "tube", 0, 8), "positive radius"),
        (Drawable("a", "plane", 0, 8), "4 corners"),
    ],
)
def test_a_shape_that_does_not_fit_its_scene_is_refused_by_name(drawable, words):
    with pytest.raises(InputError, match=f"'a'.*{words}"):
        make_geometry((drawable,), CUBE)
