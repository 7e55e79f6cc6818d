"""What a recording keeps: everything, or everything up to the last flush, whatever ends the program."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from palpo.app.runtime.replay import replay
from palpo.haptics import recording
from palpo.haptics.control import tick_count
from palpo.haptics.device import HandGrip, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread, servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import EARLIER, Recorder, read_recording
from palpo.haptics.row import COLUMNS, NAMES, Column
from tests.servo.wall import make_wall

ROOT = Path(__file__).parents[2]
LOW = (Column("step", "1", "number of the slow step", "i8"), Column("step_ms", "ms", "its time"))
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are those of POSIX")

# A program that records lock-step seconds for ever, and says after each flush how many rows are safe.
PROGRAM = """
import resource, sys
from palpo.haptics.device import HandGrip, make_virtual_device
from palpo.haptics.recording import Recorder
from palpo.haptics.control import tick_count
from palpo.haptics.drivers import servo_run
from tests.servo.wall import make_wall

path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
wall = make_wall(make_virtual_device([[0.0] * 3, [0.01, 0.0, 0.0]], grip=HandGrip()), 500.0)
recorder = Recorder(path, {"scene": "wall"})
while recorder.error is None and tick_count(wall.servo) < 1_000_000:
    servo_run(wall.servo, 250)
    recorder.drain(wall.servo)
    print(recorder.rows_written, flush=True)
servo_run(wall.servo, 100)
print(recorder.error, flush=True)
recorder.close()
print("served", tick_count(wall.servo), flush=True)
"""


def wall_on_a_stylus(**options):
    return make_wall(make_virtual_device([[0.0] * 3, [0.01, 0.0, 0.0]], grip=HandGrip()), 500.0, **options)


def start_program(path, limit=0):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(limit)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def assert_rows_are_those_of_the_servo(recording):
    n = len(recording.columns["tick"])
    wall = wall_on_a_stylus(ring_capacity=1 << (n - 1).bit_length())
    servo_run(wall.servo, n)
    rows = drain_rows(wall.servo)
    for k, column in enumerate(COLUMNS):
        assert (recording.columns[column.name] == rows[:, k]).all(), column.name


def test_a_recording_holds_every_row_bit_for_bit_with_units_metadata_low_steps_and_events(tmp_path):
    wall = wall_on_a_stylus()
    meta = {"scene": "wall", "config": {"rate": 1000, "text": "é" * 50_000}}
    with Recorder(tmp_path / "run.h5", meta, low_columns=LOW) as recorder:
        for step in range(8):
            servo_run(wall.servo, 250)
            recorder.append_low_step((step, 1.5 * step))
            recorder.drain(wall.servo)
        recorder.append_event(2000, "the end, naïvely " + "é" * 300)
    assert (recorder.error, recorder.rows_written) == (None, 2000)
    recording = read_recording(tmp_path / "run.h5")
    assert recording.closed and recording.meta == meta
    assert set(recording.columns) == set(NAMES)
    assert recording.units["force_x"] == "N" and recording.units["depth"] == "m"
    assert recording.columns["tick"].dtype == np.int64
    assert_rows_are_those_of_the_servo(recording)
    assert recording.low_steps["step"].tolist() == list(range(8))
    assert recording.low_steps["step_ms"].tolist() == [1.5 * step for step in range(8)]
    ((tick, text),) = recording.events
    assert tick == 2000 and text.startswith("the end, naïvely é") and len(text.encode()) <= 240


def test_a_closed_recording_opens_with_any_hdf5_reader_and_wastes_no_room(tmp_path):
    path = tmp_path / "run.h5"
    wall = wall_on_a_stylus()
    with Recorder(path, {}) as recorder:
        servo_run(wall.servo, 1000)
        recorder.drain(wall.servo)
    with h5py.File(path, "r") as file:
        assert file["servo/px"].shape == (1000,)
        assert file["servo/px"].attrs["unit"] == "m"
        assert file["servo/px"].attrs["description"]
        # one chunk of 1024 rows a column, and the indices
        assert path.stat().st_size < 2 * sum(data.id.get_storage_size() for data in file["servo"].values())


def test_the_background_drainer_loses_no_row_of_a_running_servo(tmp_path):
    wall = wall_on_a_stylus()
    recorder = Recorder(tmp_path / "run.h5", {}).start(wall.servo)
    with ServoThread(wall.servo) as servo:
        while tick_count(wall.servo) < 700 and servo.running:
            time.sleep(0.01)
    recorder.close()
    ticks = read_recording(tmp_path / "run.h5").columns["tick"]
    assert ticks.tolist() == list(range(tick_count(wall.servo)))


def test_a_recording_can_be_read_while_it_is_written(tmp_path):
    wall = wall_on_a_stylus()
    with Recorder(tmp_path / "run.h5", {"scene": "wall"}) as recorder:
        servo_run(wall.servo, 500)
        recorder.drain(wall.servo)
        reader = "import sys; from palpo.haptics.recording import read_recording as r; g = r(sys.argv[1]); "
        reader += "print(len(g.columns['tick']), g.closed)"
        command = [sys.executable, "-c", reader, str(tmp_path / "run.h5")]
        answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert answer.stdout.split() == ["500", "False"]


def test_kill_9_leaves_a_recording_complete_up_to_the_last_flush(tmp_path):
    program = start_program(tmp_path / "run.h5")
    safe = 0
    for _ in range(40):
        safe = int(program.stdout.readline())
    os.kill(program.pid, signal.SIGKILL)
    assert program.wait() == -signal.SIGKILL
    recording = read_recording(tmp_path / "run.h5")
    assert not recording.closed
    assert recording.meta == {"scene": "wall"}
    assert len(recording.columns["tick"]) >= safe == 10_000
    assert_rows_are_those_of_the_servo(recording)


def assert_it_stopped_in_order(program, path, reason):
    output, errors = program.communicate(timeout=120)
    *_, written, message, served = output.splitlines()
    assert program.returncode == 0, errors
    assert errors == ""
    assert "recording stopped" in message and reason in message and str(path) in message
    recording = read_recording(path)
    assert recording.closed
    assert len(recording.columns["tick"]) == int(written) > 0
    assert_rows_are_those_of_the_servo(recording)
    assert int(served.split()[1]) > int(written), "the servo goes on"


def test_a_file_size_limit_stops_the_recording_in_words_and_keeps_what_is_there(tmp_path):
    program = start_program(tmp_path / "run.h5", 10_000_000)
    assert_it_stopped_in_order(program, tmp_path / "run.h5", "File too large")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 12 MB."""
    if shutil.which("mount") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not allowed here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_stops_the_recording_in_words_and_keeps_what_is_there(small_disk):
    program = start_program(small_disk / "run.h5")
    assert_it_stopped_in_order(program, small_disk / "run.h5", "No space left on device")


def test_a_disk_that_is_full_from_the_start_is_refused_and_left_as_it_was(small_disk):
    (small_disk / "ballast").write_bytes(bytes(10_000_000))
    with pytest.raises(HapticsError, match="No space left on device"):
        Recorder(small_disk / "run.h5", {})
    assert not (small_disk / "run.h5").exists()


def test_a_place_that_cannot_be_written_is_refused_by_name(tmp_path):
    with pytest.raises(HapticsError, match=r"absent.*cannot be written"):
        Recorder(tmp_path / "absent" / "run.h5", {})
    with pytest.raises(HapticsError, match="cannot be written"):
        Recorder(tmp_path, {})


def test_metadata_and_low_steps_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(HapticsError, match="plain JSON"):
        Recorder(tmp_path / "run.h5", {"array": np.zeros(3)})
    with (
        Recorder(tmp_path / "run.h5", {}, low_columns=LOW) as recorder,
        pytest.raises(HapticsError, match="1 values and must have 2"),
    ):
        recorder.append_low_step((1,))


def test_what_is_no_recording_is_refused_by_name(tmp_path):
    with pytest.raises(HapticsError, match="no such recording"):
        read_recording(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("0 1 2 3")
    with pytest.raises(HapticsError, match="not a readable recording"):
        read_recording(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    with pytest.raises(HapticsError, match="not a recording of this program"):
        read_recording(tmp_path / "other.h5")


class WindowsFiles:
    """`os` as Windows has it: descriptors opened without O_BINARY read text, which 0x1A ends."""

    O_BINARY = 0x8000_0000

    def __init__(self) -> None:
        self._text: set[int] = set()

    def __getattr__(self, name):
        if name == "posix_fallocate":
            raise AttributeError(name)
        return getattr(os, name)

    def open(self, path, flags, mode):
        descriptor = os.open(path, flags & ~self.O_BINARY, mode)
        if not flags & self.O_BINARY:
            self._text.add(descriptor)
        return descriptor

    def read(self, descriptor, n):
        data = os.read(descriptor, n)
        return data.split(b"\x1a")[0].replace(b"\r\n", b"\n") if descriptor in self._text else data


def test_on_windows_a_recording_is_closed_in_order_and_wastes_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "os", WindowsFiles())
    wall, path = wall_on_a_stylus(), tmp_path / "run.h5"
    with Recorder(path, {"scene": "wall"}) as recorder:
        servo_run(wall.servo, 500)
        recorder.drain(wall.servo)
    assert recorder.error is None
    assert read_recording(path).closed and len(read_recording(path).columns["tick"]) == 500
    with h5py.File(path) as file:
        assert file.id.get_filesize() == path.stat().st_size


def test_a_recording_that_has_stopped_keeps_nothing_more_in_memory(tmp_path):
    recorder = Recorder(tmp_path / "run.h5", {"scene": "wall"}, low_columns=LOW)
    recorder.error = "the disk is full"
    for k in range(100):
        recorder.append_low_step((k, 1.0))
        recorder.append_event(k, "event")
        recorder.append_change(k, "a=1")
    assert not (recorder._low_steps or recorder._events or recorder._changes)
    recorder.close()


def test_a_recording_of_an_earlier_version_is_read_and_its_repetition_refused_in_words(tmp_path):
    path = tmp_path / "old.h5"
    wall = wall_on_a_stylus()
    servo_run(wall.servo, 50)
    with Recorder(path, {"program": "palpo"}) as recorder:
        recorder.drain(wall.servo)
    assert not read_recording(path).earlier
    with h5py.File(path, "r+", libver="latest") as file:
        file.attrs["format"] = EARLIER
    assert read_recording(path).earlier and len(read_recording(path).columns["tick"]) == 50
    with pytest.raises(HapticsError, match=r"earlier version.*--device replay:"):
        replay(path)
