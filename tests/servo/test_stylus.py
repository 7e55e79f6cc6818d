"""Laws of how a tool sits on the device that turns it: neutral orientation, mount, left and right hand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.systems.system import check_kind, make_rig
from palpo.config.earlier import DEFAULTS
from palpo.config.load import load_scene, recorded_scene
from palpo.haptics.control import take_orientation
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.flags import TAKEN
from palpo.haptics.row import NAMES
from palpo.haptics.workspace import force_to_device, make_workspace, mirror_mount, pose_to_scene
from tests.servo.hand import UPRIGHT, external, move
from tests.servo.wall import make_wall

ORIGIN = [[0.0, 0.0, 0.0]]
HELD = ("needle", "hapco-block", "snap", "suction-cube")
"""A scene of each system in which a hand turns what it holds."""
FELT = [NAMES.index(f"{what}_{axis}") for what in ("force", "torque", "sent_torque") for axis in "xyz"]
ROUNDING = 1e-15


def turns(n, seed=0):
    """Orientations (n, 4), (w, x, y, z)."""
    return Rotation.random(n, rng=np.random.default_rng(seed)).as_quat(scalar_first=True)


def rotation(quaternion):
    return Rotation.from_quat(quaternion, scalar_first=True)


def map_of(k, **options):
    """A map with a rotation and a mount of its own."""
    placed, sits = turns(2, seed=k)
    return make_workspace(1.3, (0.1, 0.2, 0.3), placed, mount=sits, **options)


@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_a_turn_of_the_pen_turns_the_tool_by_the_same_turn_in_the_scenes_axes(left, takes):
    """q_scene' q_scene^-1 = q_R Q q_R^-1 of a turn Q, wherever the pen was, and however the tool sits."""
    for k, (start, turn) in enumerate(zip(turns(20, 1), turns(20, 2), strict=True)):
        servo = make_wall(external(), 300.0, workspace=map_of(k, left=left, takes=takes)).servo
        placed = rotation(servo.workspace.quaternion)
        after = (rotation(turn) * rotation(start)).as_quat(scalar_first=True)
        before, now = (move(servo, ORIGIN, orientation=q)["q"][0] for q in (start, after))
        seen = (rotation(now) * rotation(before).inv()) * (placed * rotation(turn) * placed.inv()).inv()
        assert seen.magnitude() < 20 * ROUNDING


def test_the_pens_first_orientation_is_the_tools_own_whatever_it_is():
    for k, first in enumerate(turns(20, 3)):
        place = make_workspace(rotation=turns(1, k)[0], takes=True)
        servo = make_wall(external(), 300.0, workspace=place, start_at=(0, 0, 0)).servo
        rows = move(servo, ORIGIN * 50, orientation=first)
        assert (rows["q"][0] == UPRIGHT).all()
        assert np.abs(rows["q"] - UPRIGHT).max() < 10 * ROUNDING and (rows["w"] == 0.0).all()


@pytest.mark.parametrize("takes", [False, True])
def test_a_tool_on_a_mount_starts_at_rest_and_goes_over_to_where_the_mount_has_it(takes):
    """By exp(-t / 0.3 s): after 8 s less than 1e-11 of a turn is left, below which none is."""
    place, first = map_of(7, takes=takes), turns(1, 4)[0]
    servo = make_wall(external(), 300.0, workspace=place, start_at=(0, 0, 0)).servo
    rows = move(servo, ORIGIN * 8000, orientation=first)
    sits = rotation(place.mount)
    there = sits if takes else rotation(place.quaternion) * rotation(first) * sits
    assert (rows["q"][0] == UPRIGHT).all() and (rows["w"][0] == 0.0).all()
    assert (rotation(rows["q"][-1]) * there.inv()).magnitude() < 20 * ROUNDING


def test_to_take_an_orientation_moves_nothing_at_once_and_brings_the_tool_back_to_rest():
    servo = make_wall(external(), 300.0, workspace=map_of(8)._replace(mount=np.array(UPRIGHT))).servo
    then, now = turns(2, 5)
    before = move(servo, ORIGIN, orientation=then)
    move(servo, ORIGIN * 10, orientation=now)
    last = move(servo, ORIGIN, orientation=now)["q"][0]
    take_orientation(servo)
    rows = move(servo, ORIGIN * 8000, orientation=now)
    assert (rows["q"][0] == last).all() and (before["q"][0] != last).any()
    assert np.flatnonzero(rows["flags"] & TAKEN).tolist() == [0]
    assert rotation(rows["q"][-1]).magnitude() < 20 * ROUNDING


def test_a_left_hand_holds_the_tool_as_the_mirror_shows_it_and_the_mirrors_image_is_the_tool_again():
    mirror = np.diag([-1.0, 1.0, 1.0])
    for sits in turns(20, 6):
        right, left = make_workspace(mount=sits), make_workspace(mount=sits, left=True)
        seen = mirror @ rotation(right.mount).as_matrix() @ mirror
        np.testing.assert_allclose(rotation(left.mount).as_matrix(), seen, atol=4 * ROUNDING)
        mirror_mount(left)
        assert left.mount.tobytes() == right.mount.tobytes() and left.left == right.left


def test_the_live_hand_is_mirrored_once_and_nothing_jumps():
    wall = make_wall(external(), 300.0, workspace=map_of(9))
    held = move(wall.servo, ORIGIN * 2, orientation=UPRIGHT)["q"][-1]
    wall.port.live["left"] = 1.0
    rows = move(wall.servo, ORIGIN * 8000, orientation=UPRIGHT)
    there = rotation(wall.servo.workspace.quaternion) * rotation(map_of(9, left=True).mount)
    assert (rows["q"][0] == held).all()
    assert (rotation(rows["q"][-1]) * there.inv()).magnitude() < 20 * ROUNDING


def test_no_mount_makes_or_takes_power():
    """f . v + t . w at the device is g / s times that in the scene's turning part, by any mount."""
    rng = np.random.default_rng(10)
    for k in range(20):
        place = map_of(k, left=k % 2 == 1)
        servo = make_wall(external(), 300.0, workspace=place).servo
        device, scene = servo.device_port, servo.port
        for own in (device.velocity, device.angular_velocity):
            own[:] = rng.normal(size=3)
        device.orientation[:] = turns(1, k)[0]
        scene.force[:], scene.torque[:] = rng.normal(size=3), rng.normal(size=3)
        _exchange(place, device, scene)
        in_hand = device.force @ device.velocity + device.torque @ device.angular_velocity
        in_scene = scene.force @ scene.velocity + scene.torque @ scene.angular_velocity
        assert in_hand == pytest.approx(in_scene, abs=100 * ROUNDING)


def _exchange(place, device, scene):
    pose_to_scene(place, device, scene)
    force_to_device(place, place.force_scale, scene, device)


def held_at(name, orientation, ticks=20):
    """What the first ticks of a scene make a hand feel that holds its pen still so; (n, 9) [N], [N m]."""
    spec = load_scene(name)
    device = external()
    rig = make_rig(
        spec, check_kind(spec, None, True), lambda held: device, workspace_of(spec), limits_of(spec),
        threads=False, rebased=True,
    )  # fmt: skip
    rig.servo.device_port.orientation[:] = orientation
    rig.lock.advance(ticks, lambda n: servo_run(rig.servo, n))
    rows = drain_rows(rig.servo)
    rig.low.close()
    return rows[:, FELT], rig.turn.copy()


@pytest.mark.parametrize("name", HELD)
def test_a_pen_that_is_held_still_feels_the_same_at_any_orientation_as_upright(name):
    """Upright a scene at rest turns nobody's hand; so no torque comes of how the pen happens to be held."""
    upright, turn = held_at(name, UPRIGHT)
    askew, turned = held_at(name, turns(1, 11)[0])
    scale = max(1.0, np.abs(upright).max())
    # the taken orientation is the first one's inverse to rounding; couplings of 1e3 N m/rad make 1e-12 of it
    np.testing.assert_allclose(askew, upright, atol=1e-9 * scale)
    np.testing.assert_allclose(turned, turn, atol=1e-12)


def test_what_an_earlier_recording_leaves_out_is_as_it_was():
    for name in ("needle", "snap", "two-hands"):
        origin = load_scene(name).origin
        told = {"path": str(origin.path), "text": origin.text, "overrides": []}
        then, now = (recorded_scene({**told, "defaults": d}) for d in (DEFAULTS - 1, DEFAULTS))
        assert {hand.workspace.neutral for hand in then.hands} == {"upright"}
        assert {hand.workspace.neutral for hand in now.hands} == {"first"}
        if name == "snap":
            assert now.admittance.orientation and not then.admittance.orientation
