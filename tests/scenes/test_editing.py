"""A body that is chosen in the picture gets another material, size and place, and stays the same body."""

import numpy as np
import pytest

import palpo
from palpo.app.build.parts import chosen_nodes
from palpo.app.build.shapes import soft_mesh
from palpo.app.runtime.editing import SETTLED, Editing, changes, joined
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.app.visual.held import shape_of
from palpo.app.visual.picking import picked
from palpo.app.visual.rest import rest_picture
from palpo.config.load import list_scenes, load_scene, parse_scene
from palpo.config.words import ConfigError
from palpo.physics.exchange.snapshot import Drawable, make_geometry
from palpo.physics.mesh.generate import sphere_surface
from palpo.render.camera import Camera
from palpo.render.controls import Controls
from palpo.render.requests import Request

SIZE = 800, 600
NEAR, FAR = np.array([0.0, 0.0, 0.5]), np.array([0.3, 0.2, -0.5])
BALL = sphere_surface(0.2, 4)


@pytest.fixture
def balls():
    """Two balls and a tube that goes up behind them, before a camera that looks from the front."""
    n = len(BALL.vertices)
    tube = np.array([[-0.5, -1.0, -1.0], [-0.5, 0.0, -1.0], [-0.5, 1.0, -1.0]])
    points = np.concatenate([BALL.vertices + NEAR, BALL.vertices + FAR, tube])
    shapes = [
        Drawable("near", "surface", 0, n, BALL.triangles), Drawable("far", "surface", n, n, BALL.triangles),
        Drawable("tube", "tube", 2 * n, 3, radius=0.02),
    ]  # fmt: skip
    return make_geometry(shapes, points), points


@pytest.mark.parametrize("azimuth", [0.0, 25.0, 180.0])
def test_the_foremost_ball_on_the_line_of_sight_is_chosen(azimuth, balls):
    geometry, points = balls
    camera = Camera(distance=4.0, azimuth=azimuth, elevation=10.0)
    found = set()
    for at in np.random.default_rng(1).random((400, 2)):
        # where the line of sight meets a ball, by its quadratic equation
        height = camera.height(1.0)
        across = (at[0] - 0.5) * height * SIZE[0] / SIZE[1], (0.5 - at[1]) * height
        sight = across[0] * camera.axes[0] + across[1] * camera.axes[1] - camera.axes[2]
        sight /= np.linalg.norm(sight)
        met = {}
        for name, middle in (("near", NEAR), ("far", FAR)):
            along = sight @ (middle - camera.eye)
            beside = np.linalg.norm(camera.eye + along * sight - middle)
            # facets of a ball of four subdivisions lie up to 0.3% inside it
            if abs(beside - 0.2) < 0.001:
                break
            if beside < 0.2:
                met[name] = along - np.sqrt(0.04 - beside**2)
        else:
            chosen = picked(geometry, points, camera, tuple(at), SIZE)
            found.add(chosen)
            if met:
                assert chosen == min(met, key=met.get)
            else:
                assert chosen in ("", "tube")
    assert found >= {"near", "far", ""}


def test_a_thin_tube_is_chosen_within_some_pixels_and_not_beyond(balls):
    geometry, points = balls
    camera = Camera(distance=4.0, azimuth=0.0, elevation=0.0)
    x, y = camera.project([[-0.5, 0.5, -1.0]], *SIZE)[0]
    wide = 0.02 * SIZE[1] / camera.height(5.0)
    for off, name in ((0.0, "tube"), (max(4.0, wide) - 0.5, "tube"), (max(4.0, wide) + 0.5, "")):
        assert picked(geometry, points, camera, ((x + off) / SIZE[0], y / SIZE[1]), SIZE) == name


@pytest.mark.parametrize("drives_tool", [True, False])
def test_a_click_chooses_and_a_drag_does_not(drives_tool):
    button = "right" if drives_tool else "left"
    controls = Controls(Camera(), drives_tool=drives_tool)
    controls.move(200.0, 150.0, *SIZE)
    controls.button(button, True)
    controls.move(201.0, 150.0, *SIZE)
    controls.button(button, False)
    assert controls.requests() == [Request("pick", value=(0.25, 0.25))]
    controls.button(button, True)
    controls.move(230.0, 150.0, *SIZE)
    controls.move(200.0, 150.0, *SIZE)
    controls.button(button, False)
    assert controls.requests() == []


def nodes_of(scene, name):
    return soft_mesh(load_scene(scene).body(name)).nodes


def fixed_of(spec, name):
    body = spec.body(name)
    return chosen_nodes("fixed", name, body.fixed, soft_mesh(body).nodes)


def test_a_body_that_is_moved_and_enlarged_takes_what_holds_it_along():
    spec = load_scene("probe")
    foot = np.array([0.0, 0.0, 0.0])
    told = changes(spec, "block", {"scale": 1.7, "x": 0.03, "z": -0.02}, foot)
    moved = load_scene("probe", told)
    before, after = spec.body("block").placement, moved.body("block").placement
    # the block stands on the ground and stays there
    np.testing.assert_allclose(after.position, (0.03, 1.7 * before.position[1], -0.02))
    np.testing.assert_array_equal(fixed_of(moved, "block"), fixed_of(spec, "block"))
    nodes = np.array(before.position) + (soft_mesh(spec.body("block")).nodes - before.position)
    expected = np.array(after.position) + 1.7 * (nodes - before.position)
    np.testing.assert_allclose(soft_mesh(moved.body("block")).nodes, expected, atol=1e-12)


def test_another_size_leaves_a_body_where_it_stands():
    options, editing = Options("probe"), Editing()
    editing.choose(load_scene("probe"), "block", 0.3, nodes_of("probe", "block"))
    for scale in (2.0, 0.5, 3.0):
        editing.change("scale", scale, 0.0)
        options = editing.apply(load_scene("probe", options.overrides), options)
        nodes = soft_mesh(load_scene("probe", options.overrides).body("block")).nodes
        np.testing.assert_allclose(nodes.min(axis=0), scale * np.array([-0.03, 0.0, -0.03]), atol=1e-12)
    # and moved, it stands where it was put
    editing.change("x", 0.2, 0.0)
    options = editing.apply(load_scene("probe", options.overrides), options)
    editing.change("scale", 1.0, 0.0)
    options = editing.apply(load_scene("probe", options.overrides), options)
    nodes = soft_mesh(load_scene("probe", options.overrides).body("block")).nodes
    np.testing.assert_allclose(nodes.min(axis=0), [0.17, 0.0, -0.03], atol=1e-12)


def test_changes_after_each_other_are_one_change():
    options = Options("probe")
    once = load_scene("probe", changes(load_scene("probe"), "block", {"scale": 2.0, "y": 0.04}, np.zeros(3)))
    editing, now = Editing(), 0.0
    editing.choose(load_scene("probe"), "block", 0.3, nodes_of("probe", "block"))
    for key, value in (("y", 0.01), ("scale", 0.5), ("scale", 2.0), ("y", 0.04)):
        assert editing.change(key, value, now) and not editing.due(now + 0.5 * SETTLED)
        now += SETTLED
        assert editing.due(now)
        options = editing.apply(load_scene("probe", options.overrides), options)
    twice = load_scene("probe", options.overrides)
    np.testing.assert_allclose(
        soft_mesh(twice.body("block")).nodes, soft_mesh(once.body("block")).nodes, atol=1e-12
    )
    np.testing.assert_array_equal(fixed_of(twice, "block"), fixed_of(once, "block"))
    assert len(options.overrides) == 3


@pytest.mark.parametrize("name", [name for name in list_scenes() if not name.startswith("snap")])
def test_what_the_panel_offers_of_any_body_of_any_scene_can_be_had(name):
    spec = load_scene(name)
    for body in spec.bodies:
        editing = Editing()
        editing.choose(spec, body.name, 0.1, np.zeros((1, 3)))
        (settings,) = editing.groups().values() or [()]
        other = "gelatine" if getattr(body, "material", None) and body.material.name == "steel" else "steel"
        for setting in settings:
            value = 0.9 * setting.value + 0.1 * setting.upper if setting.key != "material" else other
            editing.change(setting.key, value, 0.0)
            options = editing.apply(spec, Options(name))
            now = parse_scene(spec.origin.text, spec.origin.path, options.overrides)
            changed = next(one for one in now.bodies if one.name == body.name)
            assert changed != body
            shown = {one.key: one.value for one in editing.groups()[body.name]}
            assert shown[setting.key] == value


def test_what_is_offered_of_a_body_that_is_held_or_attached():
    for scene, body, keys in (
        ("probe", "block", ["material", "scale", "x", "y", "z"]),
        ("probe", "probe", ["scale", "x", "y", "z"]),
        ("wire", "wire", ["material", "x", "y", "z"]),
        ("wire", "cylinder", ["material", "x", "y", "z"]),
    ):
        editing = Editing()
        editing.choose(load_scene(scene), body, 0.1, np.zeros((1, 3)))
        assert [setting.key for setting in editing.groups()[body]] == keys
    assert joined(load_scene("wire"), "wire") == {"wire", "cylinder"}
    assert editing.choose(spec := load_scene("probe"), "", 0.1, np.zeros((0, 3))) == "no body is chosen"
    assert editing.groups() == {} and joined(spec, "probe") == {"probe"}


@pytest.mark.parametrize("chosen", ["wire", "cylinder"])
def test_what_is_held_and_what_is_attached_to_it_go_along_and_feel_as_before(chosen):
    """Along the ground, where every place is alike: the same run, elsewhere."""
    spec, way = load_scene("wire"), np.array([0.05, 0.0, -0.02])
    place = np.add(spec.body(chosen).placement.position, way)
    told = changes(spec, chosen, dict(zip("xyz", place.tolist(), strict=True)), np.zeros(3))
    before, after = (
        run(Options("wire", tuple(over), device="mock", lock_step=True, duration=0.3, baseline=False))
        for over in ((), told)
    )
    for key in ("final", "mean_last_half_second"):
        np.testing.assert_allclose(
            after.result["force_N"][key], before.result["force_N"][key], rtol=0, atol=1e-6
        )
    last = after.states[-1][1], before.states[-1][1]
    np.testing.assert_allclose(last[0].held_point - last[1].held_point, way, atol=1e-7)
    for name in ("wire", "cylinder"):
        span = shape_of(after.geometry, name).span
        np.testing.assert_allclose(last[0].vertices[span] - last[1].vertices[span] - way, 0.0, atol=1e-6)


def test_a_further_hand_s_body_takes_its_own_hand_along():
    spec = load_scene("two-hands")
    left = spec.body("left").placement.position
    moved = load_scene("two-hands", changes(spec, "left", {"x": left[0] - 0.02}, np.zeros(3)))
    for hand, old in zip(moved.hands, spec.hands, strict=True):
        way = (-0.02 if hand.tool.body == "left" else 0.0, 0.0, 0.0)
        np.testing.assert_allclose(np.subtract(hand.workspace.offset, old.workspace.offset), way, atol=1e-12)
        np.testing.assert_allclose(
            np.subtract(hand.device.path, old.device.path)[:, 1:], np.tile(way, (len(old.device.path), 1)),
            atol=1e-12,
        )  # fmt: skip


def test_a_change_that_cannot_be_is_refused_and_one_that_cannot_be_built_taken_back():
    spec, editing = load_scene("probe"), Editing()
    editing.choose(spec, "block", 0.1, np.zeros((1, 3)))
    editing.change("material", "jelly", 0.0)
    with pytest.raises(ConfigError, match="jelly"):
        editing.apply(spec, Options("probe"))
    assert not editing.due(10.0)
    editing.change("scale", 3.0, 0.0)
    assert editing.apply(spec, Options("probe")).overrides
    assert {one.key: one.value for one in editing.groups()["block"]}["scale"] == 3.0
    assert editing.taken_back() == Options("probe") and editing.taken_back() is None
    assert {one.key: one.value for one in editing.groups()["block"]}["scale"] == 1.0


def test_every_shape_of_a_picture_has_the_name_of_its_body():
    scene = palpo.load("probe").spec
    assert {d.name for d in rest_picture(scene)[0].drawables} == {body.name for body in scene.bodies}
