"""Shapes to draw: normals, tubes, marks and the frame that they come from. No OpenGL here."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.visual.solids import capsule_surface
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
from palpo.render.embedding import Embedding
from palpo.render.ground import plane_of
from palpo.render.normals import cross, face_normals, lengths
from palpo.render.overlays import LONGEST_ARROW, Overlays, force_scale, place_marks, round_number
from palpo.render.smooth_surface import SmoothSurface
from palpo.render.solids import BALL, CONE, ROD, Solids, unit_shapes
from palpo.render.surfaces import FINEST, fine_levels, shadow_matrix
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
    drawn = surface.drawn(CUBE)
    assert len(drawn.points) == 24  # each corner once for each of its three faces
    expected = face_normals(CUBE, CUBE_FACES)
    for corner in surface.triangles.T:
        np.testing.assert_allclose(drawn.normals[corner], expected, atol=1e-7)
    assert volume(drawn.points, surface.triangles) == pytest.approx(1.0)


def test_faces_bent_less_than_the_crease_share_their_normals():
    surface = SmoothSurface(CUBE, CUBE_FACES, crease=100.0)
    assert len(surface.drawn(CUBE).points) == 8


def test_normals_follow_the_deformed_mesh():
    surface = SmoothSurface(CUBE, CUBE_FACES)
    turned = CUBE[:, [2, 0, 1]]
    expected = surface.drawn(CUBE).normals[:, [2, 0, 1]]
    np.testing.assert_allclose(surface.drawn(turned).normals, expected, atol=1e-7)


def test_normals_of_a_round_mesh_are_radial_to_the_order_of_the_mesh():
    points, faces = round_mesh(20)
    drawn = SmoothSurface(points, faces).drawn(points)
    step = 2 * np.pi / 20  # angle between meridians
    assert np.einsum("ij,ij->i", drawn.points, drawn.normals).min() > np.cos(0.5 * step)


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
    drawn = SmoothSurface(points, np.array(faces, np.int32)).drawn(points)
    inner = (drawn.points[:, 0] > 0) & (drawn.points[:, 0] < along - 1)
    outward = np.abs(np.einsum("ij,ij->i", drawn.points[inner, 1:], drawn.normals[inner, 1:]))
    np.testing.assert_allclose(outward, 1.0, atol=1e-6)


def test_a_collapsed_face_gives_no_number_that_is_not_finite():
    flat = CUBE.copy()
    flat[1] = flat[0]
    surface = SmoothSurface(CUBE, CUBE_FACES, levels=1)
    drawn = surface.drawn(flat)
    assert all(np.isfinite(part).all() for part in (*drawn, surface.hollows(drawn)))


def round_mesh(around):
    """A ball of radius 1 of so many meridians, and its triangles."""
    return capsule_surface(1.0, 0.0, around, around // 4)


def sheet(n, height):
    """A plate of n x n cells over the unit square at `height` of (x, z), and its triangles."""
    x, z = (part.ravel() for part in np.meshgrid(*[np.linspace(0.0, 1.0, n + 1)] * 2, indexing="ij"))
    a = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    b, c, d = a + 1, a + n + 1, a + n + 2
    faces = np.vstack([np.c_[a, b, d], np.c_[a, d, c]]).astype(np.int32)
    return np.c_[x, height(x, z), z], faces


@pytest.mark.parametrize("levels", [1, 2])
def test_a_fine_surface_passes_through_the_vertices_and_moves_as_they_do_in_any_affine_motion(levels):
    vertices, triangles = round_mesh(12)
    fine = Embedding(vertices, triangles, levels)
    points = fine.place @ vertices
    away = np.linalg.norm(points[:, None] - vertices, axis=2)
    np.testing.assert_allclose(away.min(axis=0), 0.0, atol=1e-12)
    assert len(fine.triangles) == 4**levels * len(triangles)
    matrix, shift = np.random.default_rng(5).normal(size=(2, 3, 3))
    np.testing.assert_allclose(
        fine.place @ (vertices @ matrix + shift[0]), points @ matrix + shift[0], atol=1e-12
    )


def test_a_fine_surface_of_flat_faces_is_flat_and_keeps_corners_and_edges():
    fine = Embedding(CUBE, CUBE_FACES, 2)
    points = fine.place @ CUBE
    on_face = np.minimum(points, 1.0 - points)
    np.testing.assert_allclose(on_face.min(axis=1), 0.0, atol=1e-12)
    assert on_face.min() > -1e-12
    assert volume(points, fine.triangles) == pytest.approx(1.0)


def test_points_of_a_fine_surface_on_a_ball_come_nearer_to_it_by_the_order_of_their_curves():
    worst = []
    for around in (12, 24, 48):
        vertices, triangles = round_mesh(around)
        points = Embedding(vertices, triangles, 1).place @ vertices
        between = np.abs(points[:, 1]) < 0.7  # not at the poles, where a mesh of meridians is no even one
        worst.append(np.abs(np.linalg.norm(points[between], axis=1) - 1.0).max())
        sagitta = 1.0 - np.cos(np.pi / around)
        assert worst[-1] < 0.5 * sagitta
    # straight edges are off by the square of their length, curves with slopes of the second order by its cube
    assert worst[0] / worst[1] > 2**3
    assert worst[1] / worst[2] > 2**3


def test_long_edges_are_halved_more_often_than_short_ones_and_no_scene_has_too_many_triangles():
    coarse, fine = round_mesh(12), round_mesh(48)
    for n in (1, 2, 12):
        points, drawables = [np.zeros((0, 3))], []
        for k, (mesh, size) in enumerate([(coarse, 1.0), (fine, 0.1)] * n):
            drawables.append(Drawable(f"{k}", "surface", sum(map(len, points)), len(mesh[0]), mesh[1]))
            points.append(size * mesh[0])
        geometry = make_geometry(drawables, np.vstack(points))
        levels = fine_levels(geometry)
        assert all(levels[::2]) or n > 1
        assert min(levels[::2]) >= max(levels[1::2])
        plain = sum(len(d.triangles) for d in drawables)
        drawn = sum(4**level * len(d.triangles) for level, d in zip(levels, drawables, strict=True))
        assert drawn <= max(FINEST, plain)


def test_both_sides_of_a_crease_have_the_same_points_also_where_it_is_bent():
    around = 16
    angle = 2 * np.pi * np.arange(around) / around
    rims = [np.c_[np.cos(angle), np.full(around, y), np.sin(angle)] for y in (0.0, 0.4)]
    vertices = np.vstack([*rims, [[0.0, 0.4, 0.0]]])
    k, after = np.arange(around), (np.arange(around) + 1) % around
    side = [np.c_[k, k + around, after + around], np.c_[k, after + around, after]]
    top = np.c_[k + around, np.full(around, 2 * around), after + around]
    fine = Embedding(vertices, np.vstack([*side, top]).astype(np.int32), 1)
    points = fine.place @ vertices
    rim = np.abs(points[:, 1] - 0.4) < 1e-9
    rim &= np.linalg.norm(points[:, [0, 2]], axis=1) > 0.99
    # every point of the rim is there for the side and for the top
    assert np.bincount(fine.vertex[rim])[np.unique(fine.vertex[rim])].tolist() == [2] * (2 * around)
    for number in np.unique(fine.vertex[rim]):
        np.testing.assert_allclose(np.ptp(points[fine.vertex == number], axis=0), 0.0, atol=1e-12)
    radius, step = np.unique(np.linalg.norm(points[rim][:, [0, 2]], axis=1).round(12)), 2 * np.pi / around
    # a facet's middle, moved out by slopes that are the sines of a parabola through three corners
    middle = np.cos(step / 2) + np.sin(step) * np.sin(step / 2) / 4
    np.testing.assert_allclose(radius, [middle, 1.0], atol=1e-9)


def test_a_hollow_has_the_mean_curvature_of_its_bowl_and_a_flat_sheet_none():
    bend = 0.8
    for n in (10, 20):
        bowl, faces = sheet(n, lambda x, z: 0.5 * bend * ((x - 0.5) ** 2 + (z - 0.5) ** 2))
        surface = SmoothSurface(bowl, faces)
        drawn = surface.drawn(bowl)
        inner = (np.abs(bowl[:, [0, 2]] - 0.5) < 0.15).all(axis=1)
        # up to the square of the slope there
        np.testing.assert_allclose(surface.hollows(drawn)[inner], bend, rtol=0.05)
        flat, _ = sheet(n, lambda x, z: 0.0 * x)
        np.testing.assert_allclose(surface.hollows(surface.drawn(flat)), 0.0, atol=1e-12)


def test_the_outline_of_a_ball_lies_where_its_surface_turns_from_the_eye_and_a_cube_has_its_edges():
    vertices, triangles = round_mesh(24)
    surface = SmoothSurface(vertices, triangles)
    drawn, eye = surface.drawn(vertices), np.array([0.0, 0.0, 3.0])
    ends = drawn.points[surface.outline.edges(drawn, eye)]
    # the horizon of a ball, within a facet
    assert np.abs(ends[:, :, 2] - 1.0 / 3.0).max() < np.sin(2 * np.pi / 24)
    cube = SmoothSurface(CUBE, CUBE_FACES)
    seen = cube.drawn(CUBE)
    lines = seen.points[cube.outline.edges(seen, np.array([3.0, 3.0, 3.0]))]
    # nine of twelve edges belong to a face that is seen, and no diagonal is an edge
    assert len(lines) == 9
    np.testing.assert_allclose(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1), 1.0)


def test_a_straight_tube_is_a_capsule():
    length, radius = 2.0, 0.1
    nodes = np.array([[0, 0, 0], [0.7, 0, 0], [length, 0, 0]])
    tube = Tube(3, radius)
    points, normals, _ = tube.drawn(nodes)
    on_axis = np.c_[np.clip(points[:, 0], 0, length), np.zeros((len(points), 2))]
    np.testing.assert_allclose(np.linalg.norm(points - on_axis, axis=1), radius, rtol=1e-5)
    np.testing.assert_allclose((points - on_axis) / radius, normals, atol=1e-5)
    polygon = np.sin(2 * np.pi / SIDES) / (2 * np.pi / SIDES)  # area of the inscribed polygon over the disc's
    cylinder, ball = polygon * np.pi * radius**2 * length, 4 / 3 * np.pi * radius**3
    # Five rings make the round ends at most a tenth smaller than the half balls they stand for.
    assert cylinder + 0.9 * ball < volume(points, tube.triangles) < cylinder + ball


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
    # An inscribed polygon of 12 sides has 4.5 % less area than its circle; the ball loses that twice.
    assert 0.955**2 * exact < volume(rows[:, :3].astype(float), triangles) <= exact * (1 + 1e-6)


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


def test_products_and_lengths_of_rows_are_numpy_s():
    a, b = np.random.default_rng(3).normal(size=(2, 50, 3))
    np.testing.assert_allclose(cross(a, b), np.cross(a, b), rtol=0, atol=1e-15)
    np.testing.assert_allclose(lengths(a), np.linalg.norm(a, axis=1), rtol=1e-15)
    assert cross(a[:0], b[:0]).shape == (0, 3) and lengths(a[:0]).shape == (0,)


def test_marks_that_come_after_their_rows_were_asked_for_are_in_them():
    late, at_once = Solids(), Solids()
    for k, marks in enumerate((late, at_once)):
        for x in (0.0, 1.0):
            marks.arrows([[x, 0, 0]], [[0, 1, 0]], 0.1, palette.FORCE)
            marks.balls([[x, 0, 0]], 0.1, palette.HELD)
            if k == 0:
                marks.rows(BALL), marks.rows(ROD)
    for shape in (BALL, ROD, CONE):
        np.testing.assert_array_equal(late.rows(shape), at_once.rows(shape))
        assert len(late.rows(shape)) == 2
