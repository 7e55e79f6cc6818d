"""No coupling is felt stiffer than its device's maker says that it renders."""

import tomllib

import numpy as np
import pytest

from palpo.app.runtime.live import softened
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.config.load import load_scene, parse_scene
from palpo.config.toml import write_toml
from palpo.haptics.device_spec import DEVICES, PHANTOM_DESKTOP, TOUCH


def felt(spec):
    return spec.workspace.felt * spec.tool.hold.stiffness


@pytest.mark.parametrize(
    "asked",
    [
        ["tool.hold.stiffness=5000"],
        ["tool.hold.stiffness=500", "workspace.force_scale=4"],
        ["tool.hold.stiffness=200", "workspace.scale=3"],
    ],
)
def test_what_is_felt_is_the_maker_s_largest_and_a_sentence_says_so(asked):
    spec, changes, said = softened(load_scene("probe", asked), [TOUCH])
    assert felt(spec) == pytest.approx(TOUCH.max_stiffness, rel=1e-12)
    assert len(changes) == len(said) == 1
    assert said[0].startswith("tool.hold.stiffness is ") and said[0].endswith(
        "a Touch renders at most 1020 N/m"
    )
    again = softened(spec, [TOUCH])
    assert again[0] is spec and not again[1], "what it made is soft enough"


def test_a_coupling_below_it_is_left_alone_and_a_stiffer_device_allows_more():
    spec = load_scene("probe", ["tool.hold.stiffness=1300"])
    assert softened(spec, [PHANTOM_DESKTOP]) == (spec, [], [])
    assert softened(spec, [TOUCH])[1]


@pytest.mark.parametrize("form", ["tools", "tool and tools"])
def test_each_hand_s_device_has_its_own_say(form):
    asked = ["tools.0.hold.stiffness=1300", "tools.1.hold.stiffness=1200"]
    origin = load_scene("two-hands").origin
    tables = tomllib.loads(origin.text)
    if form != "tools":
        asked = ["tool.hold.stiffness=1300", "tools.0.hold.stiffness=1200"]
        first, *tables["tools"] = tables["tools"]
        tables |= {"device": first.pop("device"), "workspace": first.pop("workspace"), "tool": first}
    scene = parse_scene(write_toml(tables), origin.path, asked)
    soft, changes, _ = softened(scene, [PHANTOM_DESKTOP, TOUCH])
    assert [hand.tool.hold.stiffness for hand in soft.hands] == [1300.0, 1020.0]
    assert changes == [asked[1].replace("1200", "1020.0")]


@pytest.mark.parametrize(
    "name", ["snap", "snap-cap", "snap-buckle", "snap-lan", "mixed-snap", "beams", "mixed-cup"]
)
def test_no_shipped_scene_is_softened_on_its_own_device(name):
    spec = load_scene(name)
    assert not softened(spec, [DEVICES[hand.device.model] for hand in spec.hands])[1]


def test_a_run_is_made_and_told_with_what_its_device_renders(tmp_path):
    options = Options(
        "needle", device="mock", lock_step=True, duration=0.01, overrides=("tool.hold.stiffness=9e3",)
    )
    session = Session(options)
    session.prepare()
    session.run()
    assert session.spec.tool.hold.stiffness == TOUCH.max_stiffness
    assert np.isclose(float(session.rig.scene.hold.gains[0]["stiffness"]), TOUCH.max_stiffness)
    assert any("renders at most" in words for words in session.notes)
    assert "tool.hold.stiffness=1020.0" in session.meta()["scene"]["overrides"]
