"""What the window shows somebody who has just opened a scene: what is held, its way, how to take it."""

import numpy as np
import pytest

from palpo.app.devices.table import DEVICES
from palpo.app.report.draw import camera_of
from palpo.app.runtime.first_steps import TAKEN, Taking
from palpo.app.runtime.live import FEW, changed, few_keys, live_keys
from palpo.app.systems.system import system_of
from palpo.app.visual.held import held_name, shape_of, swept
from palpo.app.visual.rest import rest_picture
from palpo.config.load import list_scenes, load_scene

ASPECT = 905 / 800
"""Of the picture beside the panel."""


@pytest.mark.parametrize("scene", ["wire", "suction-cube", "snap", "hapco-block", "needle", "beams"])
def test_the_first_view_holds_the_tool_all_along_the_scenes_own_path(scene):
    spec = load_scene(scene)
    geometry, rest = rest_picture(spec)
    camera = camera_of(geometry, [rest], spec.view, ASPECT, swept(spec, geometry))
    tool = geometry.rest[shape_of(geometry, held_name(spec)).span]
    path = np.array([row[1:] for row in spec.device.path])
    for place in path - path[0]:
        pixels = camera.project(tool + place, round(1000 * ASPECT), 1000) / [1000 * ASPECT, 1000]
        assert (pixels > 0).all() and (pixels < 1).all()


def test_without_its_path_the_cup_of_the_cube_would_leave_the_first_view():
    spec = load_scene("suction-cube")
    geometry, rest = rest_picture(spec)
    camera = camera_of(geometry, [rest], spec.view, ASPECT)
    cup = geometry.rest[shape_of(geometry, "cup").span]
    lift = np.array(spec.device.path[-1][1:]) - spec.device.path[0][1:]
    assert camera.project(cup + lift, 1000, 1000)[:, 1].min() < 0


def test_a_scene_whose_cup_moves_by_itself_has_nothing_to_take():
    assert held_name(load_scene("suction-bunny")) == ""


@pytest.mark.parametrize("scene", ["suction-gripper", "suction-bellows"])
def test_the_valve_of_a_pump_is_open_by_hand_or_by_its_table(scene):
    spec = load_scene(scene, ["gas.manifold.vent.table=[[0, false], [2.3, true]]"])
    key = system_of(spec).valve_key(spec)
    assert key in [live.key for live in live_keys(spec)]
    by_hand = changed(spec, f"{key}=open").gas.manifold.vent
    vent, opens = spec.gas.manifold.vent, spec.gas.manifold.vent.table[-1][0]
    for time, table in ((0.5 * opens, False), (opens, True), (2 * opens, True)):
        assert vent.lets_in(time) is table
        assert by_hand.lets_in(time)
    assert system_of(load_scene("wire")).valve_key(load_scene("wire")) == ""


@pytest.mark.parametrize("scene", list_scenes())
def test_few_controls_come_before_all_others_and_are_some_that_the_scene_has(scene):
    spec = load_scene(scene)
    keys = live_keys(spec)
    few = few_keys(spec, keys)
    assert 0 < len(few) <= FEW
    assert set(few) <= {live.key for live in keys}
    # who holds nothing needs no scale for what is felt
    assert held_name(spec) or "workspace.force_scale" not in few


@pytest.mark.parametrize("device", [device for device in DEVICES if device.live])
def test_every_device_that_a_person_moves_says_how_it_takes_the_tool(device):
    assert len(device.taking) > 1


def test_the_tool_is_taken_once_the_hand_has_led_it_a_share_of_the_scene():
    taking, way = Taking(2.0, grips=False), np.array([0.6, 0.8, 0.0]) * 2.0 * TAKEN
    start = np.array([0.3, -0.1, 0.5])
    for share, done in ((0.0, False), (0.9, False), (0.1, False), (1.01, True), (0.0, True)):
        taking.look(start + share * way, False)
        assert taking.done == done


def test_a_pointer_takes_nothing_unless_it_grips_and_counts_from_where_it_gripped():
    taking, far = Taking(1.0, grips=True), np.array([1.0, 0.0, 0.0])
    taking.look(np.zeros(3), False)
    taking.look(far, False)
    assert not taking.done
    taking.look(far, True)
    assert not taking.done
    taking.look(far * (1 - 2 * TAKEN), True)
    assert taking.done


def test_a_pointer_that_lets_go_begins_anew():
    taking, far = Taking(1.0, grips=True), np.array([1.0, 0.0, 0.0])
    for place, grip in ((np.zeros(3), True), (far, False), (far, True)):
        taking.look(place, grip)
        assert not taking.done


def test_the_way_of_a_hand_counts_whose_place_is_written_over():
    taking, place = Taking(1.0, grips=False), np.zeros(3)
    taking.look(place, False)
    place[0] = 1.0
    taking.look(place, False)
    assert taking.done


def test_a_device_that_tells_no_place_takes_nothing():
    taking = Taking(1.0, grips=False)
    for x in (np.nan, 1.0, np.nan):
        taking.look(np.array([x, 0.0, 0.0]), False)
    assert not taking.done
