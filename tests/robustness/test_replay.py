"""Trajectories: what is read, what is refused and in which words, and a resampling without steps."""

import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from palpo.haptics.backends.mock import make_mock
from palpo.haptics.backends.replay import make_recorded, place, read_trajectory, recorded_start, resample
from palpo.haptics.control import tick_count
from palpo.haptics.device import make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread, servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import AT_EDGE, CLUTCHED, EMERGENCY, FLAG_NAMES, NEAR_LIMIT, STARTING_PUSHED
from palpo.haptics.guard import make_guard
from palpo.haptics.limits import Fades, make_limits
from palpo.haptics.passivity import make_passivity
from palpo.haptics.path import waypoint_path
from palpo.haptics.recording import Recorder, read_recording
from palpo.haptics.row import NAMES
from palpo.haptics.servo import start_servo_at
from palpo.haptics.workspace import make_workspace, quaternion_from_axis_angle
from tests.servo.hand import external, move
from tests.servo.wall import make_wall

REAL = sorted((Path(__file__).parents[3] / "shared" / "data").glob("touch_reach_*.txt"))
ROWS = np.array([[0.0, 1.0, 2.0, 3.0], [0.01, 1.5, 2.0, 3.0], [0.03, 2.0, 2.0, 2.0]])


def write(path, text):
    path.write_text(text)
    return path


def test_whitespace_columns_and_a_csv_with_a_header_in_any_order_read_the_same(tmp_path):
    plain = write(tmp_path / "a.txt", "# a comment\n" + "\n".join("  ".join(map(str, row)) for row in ROWS))
    lines = ["z, t, x, y, note"] + [f"{z},{t},{x},{y},0" for t, x, y, z in ROWS]
    header = write(tmp_path / "b.csv", "\n".join(lines))
    for path in (plain, header):
        trajectory = read_trajectory(path)
        assert trajectory.times.tolist() == ROWS[:, 0].tolist()
        assert trajectory.positions.tolist() == ROWS[:, 1:].tolist()
        assert trajectory.quaternions is None


def test_millimetres_are_a_thousandth_and_columns_can_be_named_by_index(tmp_path):
    path = write(tmp_path / "a.txt", "\n".join(f"9 {x} {y} {z} {t}" for t, x, y, z in ROWS))
    trajectory = read_trajectory(path, "mm", columns={"t": 4, "x": 1, "y": 2, "z": 3})
    assert trajectory.times.tolist() == ROWS[:, 0].tolist()
    assert trajectory.positions == pytest.approx(1e-3 * ROWS[:, 1:])


def test_orientations_are_read_by_header_and_normalised(tmp_path):
    path = write(tmp_path / "a.csv", "t,x,y,z,qw,qx,qy,qz\n0,0,0,0,2,0,0,0\n1,0,0,0,0,0,3,0\n")
    assert read_trajectory(path).quaternions.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_a_recording_of_ours_replays_the_very_poses_it_holds(tmp_path):
    path, turns = waypoint_path(
        [[0.0, 0.0, 0.0, 0.0], [0.3, 0.01, 0.02, 0.0]], turns=[[0, 1, 0, 0.0], [0, 1, 0, 0.5]]
    )
    wall = make_wall(make_virtual_device(path, turns), 500.0)
    with Recorder(tmp_path / "run.h5", {}) as recorder:
        servo_run(wall.servo, len(path))
        recorder.drain(wall.servo)
    trajectory = read_trajectory(tmp_path / "run.h5")
    assert trajectory.positions.tobytes() == path.tobytes()
    again = resample(*trajectory[:2], quaternions=trajectory.quaternions)
    # the spline passes through its samples to rounding
    assert again.positions == pytest.approx(path, abs=1e-15)
    assert again.quaternions == pytest.approx(turns, abs=1e-12)


def test_the_recorded_inputs_of_a_threaded_run_give_its_forces_again_bit_for_bit(tmp_path):
    path, turns = waypoint_path([[0.0] * 4, [0.3, 0.01, 0.02, 0.0]], turns=[[0, 1, 0, 0.0], [0, 1, 0, 0.5]])
    wall = make_wall(make_mock(TOUCH, path, turns), 300.0)
    recorder = Recorder(tmp_path / "run.h5", {}).start(wall.servo)
    with ServoThread(wall.servo) as servo:
        while tick_count(wall.servo) < 400 and servo.running:
            time.sleep(0.01)
    recorder.close()
    recording = read_recording(tmp_path / "run.h5")
    again = make_wall(make_recorded(recording), 300.0)
    servo_run(again.servo, len(recording.columns["tick"]))
    rows = drain_rows(again.servo)
    repeated = NAMES[: NAMES.index("sent_x")]  # what was sent includes the fade at the end of the run
    assert np.abs(recording.columns["force_x"]).max() > 0.5
    for name in repeated:
        assert (rows[:, NAMES.index(name)] == recording.columns[name]).all(), name


def test_a_run_with_a_turned_and_scaled_map_a_clutch_and_an_emergency_is_repeated_in_every_column(tmp_path):
    """The device's own inputs pass through the same map, clutch and guards; the scene's would not."""
    map_ = make_workspace(
        1.7, (0.1, 0.2, 0.3), quaternion_from_axis_angle((1, 2, 3), 0.7), clutch_buttons=2,
        mount=quaternion_from_axis_angle((3, -1, 2), 1.1), left=True, takes=True,
    )  # fmt: skip
    held = quaternion_from_axis_angle((1, 1, -2), 0.9)
    guard = make_guard(*TOUCH.reach, margin=0.01, edge_stiffness=200.0, saturation_damping=2.0)
    limits = make_limits(
        TOUCH.max_force,
        fades=Fades(0.1),
        emergency_buttons=3,
        hand_speed=np.inf,
        guard=guard,
        passivity=make_passivity("control"),
    )
    options = {"workspace": map_, "limits": limits, "start_at": (0.002, 0.0, 0.0)}
    wall = make_wall(external(), 2000.0, **options)
    rng = np.random.default_rng(5)
    with Recorder(tmp_path / "run.h5", {}) as recorder:
        for buttons, stroke in ((0, -0.02), (0, 0.03), (2, -0.06), (0, 0.02), (0, 0.5), (3, 0.0)):
            target = wall.servo.device_port.position + stroke * map_.rotation[0]
            for share in np.linspace(0.0, 1.0, 80):
                here = (1.0 - share) * wall.servo.device_port.position + share * target
                move(wall.servo, [here], buttons, held, rng.normal(size=3), rng.normal(size=3), keep=True)
        recorder.drain(wall.servo)
    recording = read_recording(tmp_path / "run.h5")
    flags = recording.columns["flags"]
    for flag in (CLUTCHED, EMERGENCY, AT_EDGE, NEAR_LIMIT, STARTING_PUSHED):
        assert (flags & flag).any(), FLAG_NAMES[flag]
    point, turn = recorded_start(recording)
    again = make_wall(make_recorded(recording), 2000.0, **{**options, "start_at": None})
    start_servo_at(again.servo, point, turn)
    servo_run(again.servo, len(flags))
    rows = drain_rows(again.servo)
    for name in NAMES:
        assert (rows[:, NAMES.index(name)] == recording.columns[name]).all(), name


def test_in_another_scene_the_recorded_hand_moves_as_it_did_in_its_own(tmp_path):
    path, turns = waypoint_path([[0.0] * 4, [0.1, 0.01, 0.02, 0.0]], turns=[[0, 1, 0, 0.0], [0, 1, 0, 0.5]])
    wall = make_wall(make_virtual_device(path, turns), 300.0, workspace=make_workspace(3.0, (1.0, 0.0, 0.0)))
    with Recorder(tmp_path / "run.h5", {}) as recorder:
        servo_run(wall.servo, len(path))
        recorder.drain(wall.servo)
    recording = read_recording(tmp_path / "run.h5")
    other = make_workspace(0.5, (0.0, 2.0, 0.0), quaternion_from_axis_angle((0, 1, 1), 1.0))
    again = make_wall(make_recorded(recording, other), 300.0, workspace=other)
    servo_run(again.servo, len(path))
    rows = drain_rows(again.servo)
    for name in NAMES[NAMES.index("px") : NAMES.index("device_px")]:
        # there and back through two maps
        assert rows[:, NAMES.index(name)] == pytest.approx(recording.columns[name], abs=1e-12), name


def test_a_recording_without_the_devices_own_columns_is_refused(tmp_path):
    wall = make_wall(make_virtual_device([[0.0, 0.0, 0.0]]), 300.0)
    with Recorder(tmp_path / "run.h5", {}) as recorder:
        servo_run(wall.servo, 3)
        recorder.drain(wall.servo)
    recording = read_recording(tmp_path / "run.h5")
    del recording.columns["device_py"]
    with pytest.raises(HapticsError, match="device_py"):
        make_recorded(recording)
    with h5py.File(tmp_path / "run.h5", "a") as file:
        del file["servo/qy"]
    with pytest.raises(HapticsError, match="lacks column qy"):
        read_trajectory(tmp_path / "run.h5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("0 1 2\n1 1 2\n", "3 columns and must have at least 4"),
        ("0 1 2 3\n", "at least 2"),
        ("0 1 2 3\n1 1 nan 3\n", "row 1 is not finite"),
        ("0 1 2 3\n1 inf 2 3\n", "row 1 is not finite"),
        ("0 1 2 3\n1 1 2 3\n1 1 2 3\n", "time at row 2, 1.0 s, must be later"),
        ("0 1 2 3\n1e-9 1 -1e308 3\n", "from row 0, .* faster than a number can say"),
        ("0 1 2 3\n1 1 2\n", "line 2 has 3 columns and must have 4"),
        ("0 1 2 3\n1 1 two 3\n", "line 2 must hold numbers"),
        ("t,x,y\n0,1,2\n1,1,2\n", "at least 4"),
        ("t,x,y,w\n0,1,2,3\n1,1,2,3\n", "lacks column z"),
        ("t,x,y,z,qw\n0,1,2,3,1\n1,1,2,3,1\n", "needs all of qw, qx, qy, qz"),
        ("t,x,y,z,qw,qx,qy,qz\n0,1,2,3,1,0,0,0\n1,1,2,3,0,0,0,0\n", "quaternion at row 1"),
    ],
)
def test_a_broken_trajectory_is_refused_in_one_sentence_that_names_file_and_row(tmp_path, text, message):
    path = write(tmp_path / "bad.txt", text)
    with pytest.raises(HapticsError, match=message) as refusal:
        read_trajectory(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_unknown_unit_a_missing_file_and_bytes_that_are_no_text_are_refused(tmp_path):
    with pytest.raises(HapticsError, match='unit "cm" must be "m" or "mm"'):
        read_trajectory(tmp_path / "a.txt", "cm")
    with pytest.raises(HapticsError, match="no such file"):
        read_trajectory(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(HapticsError, match="neither an HDF5 recording nor a text table"):
        read_trajectory(tmp_path / "b.txt")
    path = write(tmp_path / "c.txt", "0 1 2 3\n1 1 2 3\n")
    with pytest.raises(HapticsError, match="column x"):
        read_trajectory(path, columns={"t": 0, "x": 7, "y": 2, "z": 3})


def test_a_5_hz_sine_sampled_at_100_hz_with_jitter_is_reproduced_without_stairs():
    rng = np.random.default_rng(3)
    t = np.arange(200) / 100.0 + rng.uniform(-2e-3, 2e-3, 200)
    w = 2 * np.pi * 5.0
    trajectory = resample(t, np.column_stack([np.sin(w * t)] * 3))
    exact = np.sin(w * (trajectory.times + t[0]))
    inner = slice(50, -50)  # the end conditions cost the outermost intervals an order
    # cubic spline: (5/384) (w h)^4 with h up to 14 ms, the widest gap that the jitter leaves
    bound = 5 / 384 * (w * 0.014) ** 4
    assert np.abs(trajectory.positions[:, 0] - exact)[inner].max() <= bound < 5e-4
    # a stair's second difference is a whole step, 0.3; the sine's is w^2 dt^2, and the spline's error in it
    # is (w h)^2 / 12 of it
    second = np.abs(np.diff(trajectory.positions[inner, 0], 2)).max()
    assert second <= (w * 1e-3) ** 2 * (1 + (w * 0.014) ** 2 / 12 + 0.02)


def test_resampling_starts_at_zero_keeps_the_first_sample_and_never_leaves_the_samples():
    trajectory = resample(ROWS[:, 0] + 7.0, ROWS[:, 1:])
    assert trajectory.times[[0, -1]] == pytest.approx([0.0, 0.03])
    assert trajectory.positions[0] == pytest.approx(ROWS[0, 1:])
    assert trajectory.positions[-1] == pytest.approx(ROWS[-1, 1:])


def test_a_low_pass_removes_encoder_noise_and_leaves_the_hand_in_place():
    rng = np.random.default_rng(4)
    t = np.arange(300) / 100.0
    hand = 0.05 * np.sin(2 * np.pi * t)
    noisy = np.column_stack([np.round((hand + rng.normal(0, 2e-5, 300)) / 5.5e-5) * 5.5e-5] * 3)
    exact = 0.05 * np.sin(2 * np.pi * np.arange(2991) / 1000.0)
    inner = slice(200, -200)
    raw = resample(t, noisy).positions[inner, 0] - exact[inner]
    filtered = resample(t, noisy, cutoff_hz=15.0).positions[inner, 0] - exact[inner]
    # zero phase: white noise up to 50 Hz keeps the square root of 15 / 50 of its deviation
    assert filtered.std() < 0.7 * raw.std()
    assert np.abs(filtered).max() < 1e-4
    with pytest.raises(HapticsError, match="cutoff_hz"):
        resample(t, noisy, cutoff_hz=500.0)


def test_turns_are_resampled_along_the_short_way_whatever_the_signs():
    t = np.arange(50) / 100.0
    angle = 2.0 * t
    q = np.stack([np.cos(angle / 2), 0 * t, np.sin(angle / 2), 0 * t], axis=1)
    q[1::2] *= -1.0
    turned = resample(t, np.zeros((50, 3)), quaternions=q)
    fine = 2.0 * turned.times
    # (5/384) (w h)^4 for w = 1 rad/s of half the angle
    assert np.abs(turned.quaternions[:, 2]) == pytest.approx(np.sin(fine / 2), abs=1e-8)


def test_a_path_is_placed_by_its_first_sample_or_its_centre():
    points = np.array([[1.0, 0.0, 0.0], [3.0, 2.0, 0.0], [2.0, 1.0, 4.0]])
    assert place(points, 0.5, start_at=(0.1, 0.2, 0.3))[0] == pytest.approx([0.1, 0.2, 0.3])
    placed = place(points, 0.5, centre_at=(0.0, 1.0, 0.0), offset=(0.1, 0.0, 0.0))
    assert 0.5 * (placed.min(axis=0) + placed.max(axis=0)) == pytest.approx([0.1, 1.0, 0.0])
    turned = place(points, 2.0, rotation=quaternion_from_axis_angle((0, 0, 1), np.pi / 2), start_at=(0, 0, 0))
    assert turned[1] == pytest.approx([-4.0, 4.0, 0.0])
    with pytest.raises(HapticsError, match="not by both"):
        place(points, start_at=(0, 0, 0), centre_at=(0, 0, 0))
    with pytest.raises(HapticsError, match="scale"):
        place(points, -1.0)


@pytest.mark.skipif(not REAL, reason="the recordings of a real hand are not shipped with the program")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_real_hand_is_replayed_without_steps(path):
    trajectory = read_trajectory(path, "m")
    smooth = resample(*trajectory[:2])
    assert np.isfinite(smooth.positions).all()
    samples = np.interp(smooth.times, trajectory.times - trajectory.times[0], trajectory.positions[:, 0])
    # the spline and the polyline through the same samples differ by less than a sample's own step
    step = np.abs(np.diff(trajectory.positions, axis=0)).max()
    assert np.abs(smooth.positions[:, 0] - samples).max() <= step
    # without stairs: the fastest tick moves a tenth of the largest step of ten ticks, not all of it
    gap = np.diff(trajectory.times).max() * 1000.0
    assert np.abs(np.diff(smooth.positions, axis=0)).max() <= 2.0 * step / min(gap, 10.0)
    device = make_virtual_device(place(smooth.positions, start_at=(0.0, 0.1, 0.0)))
    assert device.positions[0] == pytest.approx([0.0, 0.1, 0.0])
