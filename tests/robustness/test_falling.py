"""A body that nothing holds up is named before it falls, and no other is."""

from dataclasses import replace

import pytest

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import list_scenes, load_scene, parse_scene

BALL = 'kind = "rigid"\ngeometry = { kind = "sphere", radius = 0.01 }\nmass = 0.1\n'
PLATE = 'kind = "mesh"\ngeometry = { kind = "box", size = [0.1, 0.02, 0.1] }\n'
MULTIRATE = [name for name in list_scenes() if load_scene(name).system == "multirate"]


def scene(*bodies, more="", gravity=(0.0, -9.81, 0.0)):
    """A tool far away, and bodies by name, kind and place."""
    tool = f'[[bodies]]\nname = "hand"\nrate = "high"\n{BALL}placement = {{ position = [5.0, 5.0, 5.0] }}\n'
    rest = "".join(
        f'[[bodies]]\nname = "{name}"\n{kind}placement = {{ position = {list(place)} }}\n'
        for name, kind, place in bodies
    )
    text = f'title = "Balls"\ngravity = {list(gravity)}\n{tool}{rest}{more}[tool]\nbody = "hand"\n'
    return parse_scene(text, "scene.toml")


def named(spec):
    return build_scene(spec).falling


ABOVE, ON_TOP, BESIDE = (0.0, 0.1, 0.0), (0.0, 0.2, 0.0), (0.3, 0.1, 0.0)
UNDER = ("plate", PLATE, (0.0, 0.0, 0.0))


def test_what_lies_above_something_or_above_what_does_is_not_named():
    assert named(scene(UNDER, ("one", BALL, ABOVE), ("two", BALL, ON_TOP))) == []


def test_what_lies_above_nothing_is_named_and_what_lies_on_that():
    spec = scene(UNDER, ("one", BALL, BESIDE), ("two", BALL, (0.3, 0.2, 0.0)), ("three", BALL, ABOVE))
    assert named(spec) == ["one", "two"]
    assert named(scene(("plate", PLATE, ON_TOP), ("one", BALL, ABOVE))) == ["one"]


@pytest.mark.parametrize("gravity", [(0.0, 9.81, 0.0), (-9.81, 0.0, 0.0), (0.0, 0.0, 0.0)])
def test_under_is_where_gravity_points(gravity):
    spec = scene(UNDER, ("one", BALL, ABOVE), gravity=gravity)
    assert named(spec) == ([] if not any(gravity) else ["one"])


def test_an_attachment_to_what_is_held_holds():
    frame = '[[attachments]]\nkind = "frame"\na = { body = "one", at = [0.3, 0.1, 0.0] }\n'
    assert named(scene(("one", BALL, BESIDE), ("two", BALL, ABOVE), more=frame)) == ["two"]


def test_every_body_is_above_a_plane():
    spec = scene(("one", BALL, BESIDE))
    bodies = (*spec.bodies, load_scene("wire").body("ground"))
    assert named(spec.model_copy(update={"bodies": bodies})) == []


@pytest.mark.parametrize("name", MULTIRATE)
def test_no_shipped_scene_has_one(name):
    assert named(load_scene(name)) == []


def test_it_is_said_at_the_start_and_in_the_result():
    options = Options("probe", ("bodies.block.fixed=[]",), device="mock", lock_step=True, baseline=False)
    session = Session(replace(options, duration=5e-3))
    session.prepare()
    assert any("bodies.block: nothing holds it" in told for told in session.run().result["warnings"])
