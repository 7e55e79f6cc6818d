"""Scenes, overrides and recorded changes from before all systems had one list of bodies."""

import tomllib

import pytest

from palpo.app.runtime.live import changed
from palpo.config.load import list_scenes, load_scene, parse_scene
from palpo.config.toml import write_toml

HAPCO = [name for name in list_scenes() if name.startswith("hapco-")]


def earlier(text):
    """A HapCo scene as it was written with a table for each of its bodies."""
    tables = tomllib.loads(text)
    tool = tables.pop("tool")
    for body in tables.pop("bodies"):
        del body["kind"]
        tables["mobile" if body["name"] == tool["body"] else "fixed"] = body
    return write_toml({**tables, "hold": tool["hold"]})


@pytest.mark.parametrize("name", HAPCO)
def test_an_earlier_scene_is_the_same_scene(name):
    today = load_scene(name)
    text = earlier(today.origin.text)
    assert "[mobile]" in text and "bodies" not in text
    assert parse_scene(text, today.origin.path).model_dump() == today.model_dump()


EARLIER_KEYS = [
    ("mobile.placement.position=[0, 1, 0]", "bodies.punch.placement.position=[0, 1, 0]"),
    ("fixed.material.youngs_modulus=3000", "bodies.tissue.material.youngs_modulus=3000"),
    ("hold.mode=coupling", "tool.hold.mode=coupling"),
    (
        "mobile.clamped[0].box=[[-1, 0, -1], [1, 1, 1]]",
        "bodies.punch.clamped[0].box=[[-1, 0, -1], [1, 1, 1]]",
    ),
]


@pytest.mark.parametrize(("then", "now"), EARLIER_KEYS)
@pytest.mark.parametrize("form", [earlier, str], ids=["earlier file", "today's file"])
def test_an_earlier_key_reaches_what_it_reached(form, then, now):
    today = load_scene("hapco-16", [now])
    told = parse_scene(form(today.origin.text), today.origin.path, [then])
    assert told.model_dump() == today.model_dump() != load_scene("hapco-16").model_dump()


def test_a_change_that_an_earlier_recording_holds_replaces_one_of_today():
    spec = changed(load_scene("hapco-16"), "bodies.tissue.material.youngs_modulus=60000")
    again = changed(spec, "fixed.material.youngs_modulus=90000")
    assert again.fixed.material.youngs_modulus == 90e3
    assert again.origin.overrides == ("bodies.tissue.material.youngs_modulus=90000",)
