"""Pictures drawn without a display: what has to be seen in them, not their pixels."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.visual.solids import capsule_surface
from palpo.physics.exchange.snapshot import (
    BILATERAL,
    OPEN,
    SLIP,
    STICK,
    STRAIN,
    Drawable,
    SceneState,
    make_geometry,
    plane_corners,
)
from palpo.render import gl, palette
from palpo.render.camera import Camera
from palpo.render.framebuffer import Framebuffer
from palpo.render.offscreen import EglContext, Offscreen, RenderUnavailable, open_context, render_picture
from palpo.render.overlays import Overlays
from palpo.render.scene_view import SceneView

WIDTH, HEIGHT = 480, 360
BARE = Overlays(
    **dict.fromkeys(
        ("grid", "shadow", "contacts", "forces", "device", "fixed", "attachments", "axes", "labels"), False
    )
)
FRONT = Camera((0.0, 0.0, 0.0), 1.0, 0.0, 0.0)


@pytest.fixture(scope="module", autouse=True)
def graphics():
    try:
        EglContext().close()
    except RenderUnavailable as why:
        pytest.skip(str(why))


def ball_scene(radius=0.1, extra=(), **state):
    """A ball at the origin, with more drawables of their own vertices behind it."""
    vertices, triangles = capsule_surface(radius, 0.0)
    drawables = [Drawable("ball", "surface", 0, len(vertices), triangles, colour=(0.8, 0.5, 0.4))]
    for drawable, points in extra:
        drawables.append(replace(drawable, first_vertex=len(vertices), n_vertices=len(points)))
        vertices = np.vstack([vertices, points])
    return make_geometry(drawables, vertices), SceneState(vertices, **state)


def picture(scene, camera=FRONT, overlays=BARE):
    return render_picture(*scene, camera, WIDTH, HEIGHT, overlays).astype(int)


def background(camera=FRONT):
    """The same view of a scene whose only body is a speck far behind."""
    return picture(ball_scene(1e-6), camera)


def seen(image, other):
    return np.abs(image - other).max(axis=2) > 8


def pixels_like(image, colour, tolerance=60):
    """Pixels near a colour in its direction from grey, so that light and shade do not matter."""
    rgb = image / 255.0
    hue = rgb - rgb.mean(axis=2, keepdims=True)
    wanted = np.array(colour) - np.mean(colour)
    along = hue @ wanted / np.linalg.norm(wanted)
    across = np.linalg.norm(hue - along[..., None] * wanted / np.linalg.norm(wanted), axis=2)
    return (along > 0.15) & (across < along * np.tan(np.radians(tolerance / 4)))


def test_a_ball_covers_the_disc_that_perspective_gives_it():
    covered = seen(picture(ball_scene(0.1)), background())
    pixels = HEIGHT / (2 * np.tan(np.radians(FRONT.field_of_view) / 2))
    radius = pixels * np.tan(np.arcsin(0.1 / FRONT.distance))
    rows, columns = np.nonzero(covered)
    assert (columns.mean(), rows.mean()) == pytest.approx(((WIDTH - 1) / 2, (HEIGHT - 1) / 2), abs=0.5)
    # A silhouette of 24 sides has 1.1 % less area, and edge pixels count whole (one in a radius of 67).
    assert covered.sum() == pytest.approx(np.pi * radius**2, rel=0.03)


def test_a_body_moves_in_the_picture_with_its_vertices():
    geometry, state = ball_scene(0.05)
    moved = replace(state, vertices=state.vertices + np.array([0.1, 0.05, 0.0]))
    with Offscreen(geometry, state, WIDTH, HEIGHT) as photographer:
        first, second = (photographer.picture(s, FRONT, BARE).astype(int) for s in (state, moved))
    rows, columns = np.nonzero(seen(second, background()))
    expected = FRONT.project([[0.1, 0.05, 0.0]], WIDTH, HEIGHT)[0]
    assert (columns.mean(), rows.mean()) == pytest.approx(expected, abs=1.5)
    assert seen(first, second).any()


def test_light_comes_from_above_whichever_way_the_faces_are_wound():
    geometry, state = ball_scene(0.1)
    inside_out = make_geometry(
        [replace(geometry.drawables[0], triangles=geometry.drawables[0].triangles[:, ::-1])], state.vertices
    )
    up, down = (HEIGHT // 2 - 50, WIDTH // 2), (HEIGHT // 2 + 50, WIDTH // 2)
    for g in (geometry, inside_out):
        image = picture((g, state))
        assert image[up].sum() > image[down].sum() + 60


def test_edges_are_drawn_on_request():
    scene = ball_scene(0.1)
    plain, edged = picture(scene), picture(scene, overlays=replace(BARE, wireframe=True))
    assert edged[seen(plain, background())].mean() < plain[seen(plain, background())].mean() - 5


def test_a_beam_is_as_thick_as_its_radius():
    nodes = np.linspace([-0.2, 0.0, 0.0], [0.2, 0.0, 0.0], 5)
    radius = 0.03
    scene = make_geometry([Drawable("wire", "tube", 0, 5, radius=radius)], nodes), SceneState(nodes)
    column = seen(picture(scene), background())[:, WIDTH // 2]
    pixels = HEIGHT / (2 * np.tan(np.radians(FRONT.field_of_view) / 2))
    # The two pixels at the edges count whole, however little of them is covered.
    assert column.sum() == pytest.approx(2 * radius * pixels / FRONT.distance, abs=2)


@pytest.mark.parametrize("contact", [OPEN, STICK, SLIP, BILATERAL])
def test_a_contact_point_shows_the_colour_of_its_state(contact):
    point = np.array([[0.02, 0.03, 0.105]])
    scene = ball_scene(contact_point=point, contact_force=np.zeros((1, 3)), contact_state=np.array([contact]))
    image = picture(scene, overlays=replace(BARE, contacts=True))
    x, y = FRONT.project(point, WIDTH, HEIGHT)[0].astype(int)
    shown = image[y, x] / 255.0
    distances = {k: np.linalg.norm(shown - np.array(c)) for k, c in palette.CONTACT.items()}
    assert min(distances, key=distances.get) == contact


def sheet_scene(height, look="soft", n=24):
    """A sheet over x and z from -0.1 to 0.1 at height(x, z), seen from above."""
    at = np.linspace(-0.1, 0.1, n + 1)
    x, z = (part.ravel() for part in np.meshgrid(at, at, indexing="ij"))
    a = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    b, c, d = a + 1, a + n + 1, a + n + 2
    faces = np.vstack([np.c_[a, b, d], np.c_[a, d, c]]).astype(np.int32)
    flat = np.c_[x, np.zeros(len(x)), z]
    drawable = Drawable("sheet", "surface", 0, len(x), faces, colour=(0.8, 0.5, 0.4), look=look)
    bent = flat + np.c_[np.zeros(len(x)), height(x, z), np.zeros(len(x))]
    return make_geometry([drawable], flat), SceneState(bent)


ABOVE = Camera((0.0, 0.0, 0.0), 0.6, 0.0, 89.0)


def middle(image, size=8):
    """Mean of the colours in the middle of a picture."""
    y, x = HEIGHT // 2, WIDTH // 2
    return image[y - size : y + size, x - size : x + size].mean()


def bowl(x, z):
    return -0.01 * np.exp(-(x**2 + z**2) / (2 * 0.02**2))


def test_a_dent_is_darker_where_it_is_deepest_and_a_bump_is_not():
    # there the surface is level, so that the lights alone show nothing
    flat, dent, bump = (
        middle(picture(sheet_scene(lambda x, z, k=k: k * bowl(x, z)), ABOVE)) for k in (0.0, 1.0, -1.0)
    )
    assert dent < flat - 15
    assert bump >= flat


def test_a_surface_is_darker_around_a_contact_and_nowhere_else():
    geometry, state = sheet_scene(lambda x, z: 0.0 * x)
    touched = replace(
        state, contact_point=np.zeros((1, 3)), contact_force=np.zeros((1, 3)), contact_state=np.array([STICK])
    )
    change = picture((geometry, touched), ABOVE) - picture((geometry, state), ABOVE)
    assert middle(change) < -10
    darker = change.min(axis=2) < -1
    x = ABOVE.project([[0.03, 0.0, 0.0]], WIDTH, HEIGHT)[0, 0]
    rows, columns = np.nonzero(darker)
    reach = np.hypot(columns - WIDTH / 2, rows - HEIGHT / 2).max()
    assert reach < x - WIDTH / 2 + 2


def test_what_never_moves_is_dark_beside_a_contact_no_longer_than_it_lasts():
    geometry, state = sheet_scene(lambda x, z: 0.0 * x)
    geometry = make_geometry([replace(geometry.drawables[0], static=True)], geometry.rest)
    touched = replace(
        state, contact_point=np.zeros((1, 3)), contact_force=np.zeros((1, 3)), contact_state=np.array([STICK])
    )
    with Offscreen(geometry, state, WIDTH, HEIGHT) as photographer:
        before, during, after = (
            photographer.picture(s, ABOVE, BARE).astype(int) for s in (state, touched, state)
        )
    assert middle(during) < middle(before) - 10
    np.testing.assert_array_equal(after, before)


def test_specks_go_with_the_surface_and_stretch_as_it_does():
    geometry, state = sheet_scene(lambda x, z: 0.0 * x)

    def specks(vertices):
        image = picture((geometry, SceneState(vertices)), ABOVE).sum(axis=2)
        u, v = np.meshgrid(np.linspace(-0.05, 0.05, 60), np.linspace(-0.05, 0.05, 60))
        points = np.c_[u.ravel(), np.zeros(u.size), v.ravel()]
        return image, points

    def at(image, points):
        columns, rows = ABOVE.project(points, WIDTH, HEIGHT).astype(int).T
        values = image[rows, columns].astype(float)
        # without the lights' own shades, which change slowly and stay in the picture
        u, v = columns / WIDTH, rows / HEIGHT
        slow = np.stack([u**i * v**j for i in range(4) for j in range(4 - i)], axis=1)
        return values - slow @ np.linalg.lstsq(slow, values, rcond=None)[0]

    def alike(one, other):
        return one @ other / np.sqrt((one @ one) * (other @ other))

    still, points = specks(state.vertices)
    rest = at(still, points)
    for matrix, shift in ((np.eye(3), [0.013, 0.0, 0.007]), (np.diag([1.3, 1.0, 0.9]), [0.0, 0.0, 0.0])):
        moved, _ = specks(state.vertices @ matrix + shift)
        # one material point has one colour, wherever it has gone; one place in the picture has not
        assert alike(rest, at(moved, points @ matrix + shift)) > 0.8
        assert alike(rest, at(moved, points)) < 0.5


def edge_tones(samples, smooth):
    """How many pixels in a row across two edges of a square sheet lie well between both colours."""
    geometry, state = sheet_scene(lambda x, z: 0.0 * x, "hard", n=2)
    turned = state.vertices @ np.array([[0.92, 0.0, 0.39], [0.0, 1.0, 0.0], [-0.39, 0.0, 0.92]])
    context = open_context()
    frame, view = Framebuffer(WIDTH, HEIGHT, samples), SceneView(geometry, state, smooth=smooth)
    frame.bind()
    view.draw(SceneState(turned), ABOVE, WIDTH, HEIGHT, BARE)
    image = frame.read().astype(float).sum(axis=2)
    for kept in (view, frame):
        kept.delete()
    context.close()
    body, behind = image[HEIGHT // 2, WIDTH // 2], background(ABOVE)[HEIGHT // 2, 5].sum()
    share = (image - body) / (behind - body)
    # rows that only its slanted sides cross; its own shades differ by less than a fifth of the way
    rows = share[HEIGHT // 2 - 30 : HEIGHT // 2 + 30]
    return ((rows > 0.2) & (rows < 0.8)).sum(axis=1).mean()


def test_a_body_ends_in_tones_between_two_colours_also_where_a_pixel_has_one_sample():
    assert edge_tones(0, smooth=False) == 0.0
    assert edge_tones(0, smooth=True) > 1.0
    assert edge_tones(4, smooth=False) > 1.0


def test_light_goes_through_clear_rubber():
    geometry, state = ball_scene(0.05)
    points = np.vstack([state.vertices, 0.4 * state.vertices - np.array([0.0, 0.0, 0.2])])
    aside = points + np.array([0.3, 0.0, 0.0]) * (np.arange(len(points)) >= len(state.vertices))[:, None]
    hidden = {}
    for look in ("hard", "clear"):
        ball = replace(geometry.drawables[0], look=look)
        behind = replace(ball, look="hard", first_vertex=len(state.vertices), colour=(0.0, 0.0, 0.0))
        scene = make_geometry([ball, behind], points)
        without, with_it = (
            picture((scene, SceneState(at)))[HEIGHT // 2, WIDTH // 2] for at in (aside, points)
        )
        hidden[look] = without.sum() - with_it.sum()
    assert hidden["hard"] == 0
    assert hidden["clear"] > 60


def coloured_ball(values, **extra):
    geometry, state = ball_scene(0.1, **extra)
    scalar = np.broadcast_to(np.asarray(values, float), len(state.vertices)).copy()
    coloured = {"scalar": scalar, "scalar_kind": STRAIN, "scalar_range": np.array([0.0, 0.2])}
    return geometry, replace(state, **coloured)


def test_a_patch_has_its_colour_before_a_body_and_shows_faintly_through_it():
    def shown(depth):
        patch = np.array([[[-0.05, -0.05, depth], [0.05, -0.05, depth], [0.0, 0.07, depth]]])
        geometry, state = coloured_ball(np.nan, patch=patch, patch_scalar=np.array([0.2]))
        return picture((geometry, state))[HEIGHT // 2, WIDTH // 2] / 255.0

    bare, colour = picture(ball_scene(0.1))[HEIGHT // 2, WIDTH // 2] / 255.0, palette.COLOUR_MAP[-1]
    before, behind = shown(0.11), shown(-0.11)
    # light takes or gives a sixth of a colour that is mostly unlit
    assert np.linalg.norm(before - colour) < 0.17
    assert 0.2 < np.linalg.norm(behind - bare) / np.linalg.norm(before - bare) < 0.8


@pytest.mark.parametrize("share", [-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 3.0])
def test_a_value_has_its_colour_on_the_map_and_the_end_colours_beyond_its_range(share):
    image = picture(coloured_ball(0.2 * share), overlays=replace(BARE, strain=True))
    shown = image[HEIGHT // 2, WIDTH // 2] / 255.0
    at = np.clip(share, 0.0, 1.0) * (len(palette.COLOUR_MAP) - 1)
    # light takes or gives a sixth of a colour that is mostly unlit
    assert np.linalg.norm(shown - palette.COLOUR_MAP[round(at)]) < 0.17
    nearest = np.argmin(np.linalg.norm(palette.COLOUR_MAP - shown, axis=1))
    assert nearest == pytest.approx(at, abs=4)


def test_colours_change_along_a_body_as_its_values_do():
    geometry, state = coloured_ball(0.0)
    x = state.vertices[:, 0]
    state.scalar[:] = 0.2 * (x - x.min()) / np.ptp(x)
    row = picture((geometry, state), overlays=replace(BARE, strain=True))[HEIGHT // 2]
    columns = WIDTH // 2 + np.arange(-50, 51, 10)
    nearest = [np.argmin(np.linalg.norm(palette.COLOUR_MAP - row[c] / 255.0, axis=1)) for c in columns]
    assert nearest == sorted(nearest)
    assert nearest[-1] - nearest[0] > 15


def test_a_body_without_values_keeps_its_own_colour():
    plain = picture(ball_scene(0.1))
    for scene, options in (
        (coloured_ball(np.nan), replace(BARE, strain=True)),
        (coloured_ball(0.1), BARE),
        (ball_scene(0.1), replace(BARE, strain=True)),
    ):
        np.testing.assert_array_equal(picture(scene, overlays=options), plain)


def test_the_shape_at_rest_is_a_veil_where_the_bodies_were_and_nowhere_else():
    nodes = np.linspace([-0.15, 0.12, 0.0], [0.15, 0.12, 0.0], 4)
    geometry, state = ball_scene(0.05, [(Drawable("wire", "tube", 0, 0, radius=0.01), nodes)])
    moved = (geometry, replace(state, vertices=state.vertices + np.array([0.0, -0.25, 0.0])))
    options = replace(BARE, rest=True)
    veil = seen(picture(moved, overlays=options), picture(moved))
    x, y = FRONT.project([[0.0, 0.0, 0.0], [0.05, 0.12, 0.0]], WIDTH, HEIGHT).astype(int).T
    assert veil[y, x].all()
    was = seen(picture((geometry, state)), background())
    # lines have a width, so edges reach a pixel beyond the faces
    grown = was | np.roll(was, 1, 0) | np.roll(was, -1, 0) | np.roll(was, 1, 1) | np.roll(was, -1, 1)
    assert veil[was].mean() > 0.95
    assert not veil[~grown].any()


def test_a_body_hides_what_of_its_rest_shape_lies_behind_it():
    geometry, state = ball_scene(0.05)
    before = (geometry, replace(state, vertices=state.vertices + np.array([0.0, 0.0, 0.2])))
    np.testing.assert_array_equal(picture(before, overlays=replace(BARE, rest=True)), picture(before))


def test_a_contact_inside_a_body_shows_through():
    scene = ball_scene(
        contact_point=np.zeros((1, 3)), contact_force=np.zeros((1, 3)), contact_state=np.array([STICK])
    )
    middle = (HEIGHT // 2, WIDTH // 2)
    hidden, shown = picture(scene)[middle], picture(scene, overlays=replace(BARE, contacts=True))[middle]
    assert hidden[0] > hidden[1]  # the body is reddish
    assert shown[1] > shown[0] + 10  # the mark is green


@pytest.mark.parametrize("direction", [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0.6, 0.8, 0]])
def test_a_force_arrow_points_along_its_force_and_is_as_long_as_its_scale_says(direction):
    point, force, scale = np.array([[0.0, 0.0, 0.12]]), 2.0 * np.array([direction], float), 0.06
    scene = ball_scene(contact_point=point, contact_force=force, contact_state=np.array([STICK]))
    image = picture(scene, overlays=replace(BARE, forces=True, force_scale=scale))
    rows, columns = np.nonzero(pixels_like(image, palette.FORCE, 30))
    tail, tip = FRONT.project(np.vstack([point, point + scale * force]), WIDTH, HEIGHT)
    along = np.c_[columns, rows] - tail
    unit = (tip - tail) / np.linalg.norm(tip - tail)
    assert along.mean(axis=0) @ unit > 0.3 * np.linalg.norm(tip - tail)
    assert abs(along.mean(axis=0) @ [unit[1], -unit[0]]) < 1.5
    assert (along @ unit).max() == pytest.approx(
        np.linalg.norm(tip - tail), abs=4
    )  # the tip is thinner than a pixel


def test_device_hold_and_the_line_between_them_are_seen():
    scene = ball_scene(device_point=np.array([-0.1, 0.14, 0.0]), held_point=np.array([0.1, 0.14, 0.0]))
    image = picture(scene, overlays=replace(BARE, device=True))
    blue = pixels_like(image, palette.DEVICE)
    (x0, y), (x1, _) = FRONT.project([scene[1].device_point, scene[1].held_point], WIDTH, HEIGHT).astype(int)
    assert blue[y, x0]
    between = blue[y - 2 : y + 3, x0:x1].any(axis=0)
    assert 0.3 < between.mean() < 0.9  # dashed
    assert image[y, x1].sum() < 330  # the held point is dark


def test_a_plane_carries_the_body_and_its_shadow():
    corners = plane_corners([0, -0.1, 0], [0, 1, 0], 0.8)
    scene = ball_scene(0.1, [(Drawable("floor", "plane", 0, 0, static=True), corners)])
    camera = replace(FRONT, elevation=30.0)
    without, floor = picture(scene, camera), picture(scene, camera, replace(BARE, grid=True))
    shaded = picture(scene, camera, replace(BARE, grid=True, shadow=True))
    assert seen(without, floor).mean() > 0.05
    darker = (floor - shaded).sum(axis=2) > 20
    assert darker.sum() > 200
    columns = np.nonzero(darker)[1]
    assert columns.mean() > WIDTH / 2  # the light comes from the left, so the shadow falls to the right


def test_a_plane_seen_from_below_does_not_hide_the_body():
    corners = plane_corners([0, -0.1, 0], [0, 1, 0], 0.8)
    scene = ball_scene(0.1, [(Drawable("floor", "plane", 0, 0, static=True), corners)])
    camera = replace(FRONT, elevation=-40.0)
    image = picture(scene, camera, replace(BARE, grid=True))
    assert seen(image, picture(ball_scene(1e-6), camera))[HEIGHT // 2, WIDTH // 2]
    assert pixels_like(image, (0.8, 0.5, 0.4))[HEIGHT // 2, WIDTH // 2]


def test_clamped_vertices_are_marked():
    geometry, state = ball_scene(0.1)
    lowest = np.array([np.argmin(state.vertices[:, 1])], np.int32)
    geometry = make_geometry([replace(geometry.drawables[0], fixed=lowest)], state.vertices)
    marked = seen(picture((geometry, state), overlays=replace(BARE, fixed=True)), picture((geometry, state)))
    rows, columns = np.nonzero(marked)
    x, y = FRONT.project(state.vertices[lowest], WIDTH, HEIGHT)[0]
    assert (columns.mean(), rows.mean()) == pytest.approx((x, y), abs=3)


def test_the_legend_stands_in_its_corner_and_leaves_the_rest_alone():
    scene = ball_scene(
        contact_point=np.zeros((1, 3)), contact_force=np.ones((1, 3)), contact_state=np.array([SLIP])
    )
    options = replace(BARE, contacts=True, forces=True)
    changed = seen(picture(scene, overlays=replace(options, labels=True)), picture(scene, overlays=options))
    assert changed[: HEIGHT // 10, : WIDTH // 3].any()  # the time
    assert changed[3 * HEIGHT // 4 :, : WIDTH // 2].any()
    assert not changed[:, WIDTH // 2 :].any()


def test_a_frame_that_went_wrong_is_still_a_picture():
    geometry, state = ball_scene(contact_point=np.full((1, 3), np.nan), contact_force=np.full((1, 3), np.nan))
    state.contact_state = np.array([STICK])
    state.vertices = np.full_like(state.vertices, np.nan)
    assert render_picture(geometry, state, width=WIDTH, height=HEIGHT).shape == (HEIGHT, WIDTH, 3)


def test_a_scene_without_bodies_is_still_a_picture():
    corners = plane_corners([0, 0, 0], [0, 1, 0], 0.5)
    geometry = make_geometry([Drawable("floor", "plane", 0, 4)], corners)
    assert render_picture(geometry, SceneState(corners), width=64, height=48).std() > 0


def test_an_impossible_size_is_refused():
    with pytest.raises(ValueError, match="0 x 10"):
        render_picture(*ball_scene(), width=0, height=10)


def test_a_process_that_has_a_window_is_told_why_it_cannot_draw_offscreen(monkeypatch):
    monkeypatch.setattr(gl, "_platform", "")
    monkeypatch.setattr(gl, "bound", lambda: "x11")
    with pytest.raises(RenderUnavailable, match="already bound to x11"):
        gl.load("egl")


def test_a_needle_inside_a_body_is_seen_dimly_and_another_tube_is_not():
    line = np.linspace([-0.05, 0.0, 0.0], [0.05, 0.0, 0.0], 5)
    tube = Drawable("tube", "tube", 0, 0, radius=0.01, colour=(0.1, 0.2, 0.9))
    alone, hidden, shown = (
        picture(ball_scene(0.1, extra))
        for extra in ([], [(tube, line)], [(replace(tube, pierces=True), line)])
    )
    np.testing.assert_array_equal(hidden, alone)
    changed = np.argwhere((shown != alone).any(axis=2))
    assert len(changed) > 100
    # as long and as thick as the tube is, by the ball's own size in the picture
    tall, wide = np.ptp(changed, axis=0) + 1
    assert wide / tall == pytest.approx(0.12 / 0.02, rel=0.2)
    # half through: redder than the needle, bluer than the ball
    middle = shown[HEIGHT // 2, WIDTH // 2], alone[HEIGHT // 2, WIDTH // 2]
    assert middle[0][2] > middle[1][2]
    assert middle[0][0] > 0.4 * middle[1][0]
