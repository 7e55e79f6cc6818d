"""Scenes, overrides and recorded changes from before all systems had one list of bodies."""

import re
import tomllib

import pytest

from palpo.app.runtime.live import changed
from palpo.config.earlier import DEFAULTS
from palpo.config.load import list_scenes, load_scene, parse_scene, recorded_scene
from palpo.config.toml import write_toml
from palpo.config.words import ConfigError

SCENES = [name for name in list_scenes() if name.startswith(("hapco-", "suction-"))]
KINDS = {"mesh": "static", "tets": "soft", "rigid": "rigid"}


def earlier(text):
    """A scene as it was written with tables of their own for the bodies of HapCo and of suction."""
    tables = tomllib.loads(text)
    tool, cups = tables.pop("tool", None), []
    for body in tables.pop("bodies"):
        kind = body.pop("kind")
        if kind == "quasistatic":
            tables["mobile" if body["name"] == tool["body"] else "fixed"] = body
        elif kind == "cup":
            held = tool is not None and body["name"] == tool["body"]
            cups.append({**body, "drive": {"kind": "hand", **tool["hold"]}} if held else body)
        else:
            tables["partner"] = {**body, "kind": KINDS[kind]}
    return write_toml({**tables, **({"cups": cups} if cups else {"hold": tool["hold"]})})


@pytest.mark.parametrize("name", SCENES)
def test_an_earlier_scene_is_the_same_scene(name):
    today = load_scene(name)
    text = earlier(today.origin.text)
    assert ("[mobile]" in text or "[partner]" in text) and "bodies" not in text
    assert parse_scene(text, today.origin.path).model_dump() == today.model_dump()


@pytest.mark.parametrize(
    ("defaults", "override", "elements"),
    [
        ({}, (), "tetrahedra"),
        ({"defaults": DEFAULTS}, (), None),
        ({}, ('bodies.cup.elements="hexahedra"',), "hexahedra"),
    ],
)
@pytest.mark.parametrize("form", [str, earlier])
def test_what_a_recording_s_scene_leaves_out_means_what_it_meant_then(form, defaults, override, elements):
    today = load_scene("suction-cube")
    told = {
        "path": str(today.origin.path),
        "text": form(today.origin.text),
        "overrides": override,
        **defaults,
    }
    assert recorded_scene(told).cups[0].elements == elements


@pytest.mark.parametrize(
    ("defaults", "elements"), [({}, "tet4"), ({"defaults": 2}, "tet4"), ({"defaults": DEFAULTS}, "auto")]
)
def test_a_soft_body_of_a_recording_is_of_what_it_was_of_then(defaults, elements):
    today = load_scene("probe")
    text = today.origin.text.replace('elements = "tet4"', "")
    told = {"path": str(today.origin.path), "text": text, "overrides": (), **defaults}
    assert recorded_scene(told).bodies[0].elements == elements


@pytest.mark.parametrize(
    ("name", "now"),
    [("probe", [2.0]), ("two-hands", [2.0, 2.0]), ("suction-cube", [2.0]), ("hapco-16", [2.0])],
)
def test_a_coupling_of_a_recording_is_damped_as_it_was_then(name, now):
    today = load_scene(name)
    lines = re.sub(r'damping = "[0-9.]+ N s/m", ', "", today.origin.text).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("damping = "))

    def dampings(**told):
        scene = recorded_scene({"path": str(today.origin.path), "text": text, "overrides": (), **told})
        return [hand.tool.hold.damping for hand in scene.hands]

    assert dampings(defaults=DEFAULTS) == now
    # a pose that is imposed has no damper
    assert dampings(defaults=3) == (now if name == "hapco-16" else [1.0] * len(now))


EARLIER_KEYS = [
    ("hapco-16", "mobile.placement.position=[0, 1, 0]", "bodies.punch.placement.position=[0, 1, 0]"),
    ("hapco-16", "fixed.material.youngs_modulus=3000", "bodies.tissue.material.youngs_modulus=3000"),
    ("hapco-16", "hold.mode=coupling", "tool.hold.mode=coupling"),
    ("hapco-16", "mobile.clamped[0]={nodes=[1]}", "bodies.punch.clamped[0]={nodes=[1]}"),
    ("suction-cube", "cups.cup.drive.stiffness=70", "tool.hold.stiffness=70"),
    ("suction-gripper", "cups.high.line.length=1", "bodies.high.line.length=1"),
    ("suction-gripper", "cups.3.line.length=1", "bodies.high.line.length=1"),
    ("suction-gripper", "partner.density=1000", "bodies.plate.density=1000"),
    (
        "suction-cube",
        "partner={kind='static',geometry={kind='plate'}}",
        "bodies.cube={kind='mesh',name='partner',geometry={kind='plate'}}",
    ),
]


@pytest.mark.parametrize(("scene", "then", "now"), EARLIER_KEYS)
@pytest.mark.parametrize("form", [earlier, str], ids=["earlier file", "today's file"])
def test_an_earlier_key_reaches_what_it_reached(form, scene, then, now):
    today = load_scene(scene, [now])
    told = parse_scene(form(today.origin.text), today.origin.path, [then])
    assert told.model_dump() == today.model_dump() != load_scene(scene).model_dump()


def test_a_change_that_an_earlier_recording_holds_replaces_one_of_today():
    spec = changed(load_scene("hapco-16"), "bodies.tissue.material.youngs_modulus=60000")
    again = changed(spec, "fixed.material.youngs_modulus=90000")
    assert again.fixed.material.youngs_modulus == 90e3
    assert again.origin.overrides == ("bodies.tissue.material.youngs_modulus=90000",)


@pytest.mark.parametrize("key", ["hold.stiffness=3", "fixed.name=a", "mobile.name=a", "partner.name=a"])
def test_a_scene_that_never_had_an_earlier_key_refuses_it(key):
    with pytest.raises(ConfigError, match="unknown key"):
        load_scene("mixed-press", [key])


def test_sweeps_at_two_rates_have_the_name_that_they_have_elsewhere():
    earlier, today = (
        load_scene("wire", [f"solver.name={name}"]) for name in ("gauss_seidel", "gauss-seidel")
    )
    assert earlier.solver == today.solver == load_scene("wire").solver
