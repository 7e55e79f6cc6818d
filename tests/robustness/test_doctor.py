"""What is missing is said in one sentence with what to do, and only what every run needs fails the doctor."""

import builtins
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from palpo.app.cli import doctor
from palpo.app.devices import table
from palpo.app.devices.mouse import Mouse
from palpo.app.devices.touch import TouchDevice
from palpo.app.runtime.machine import ask_realtime
from palpo.haptics.errors import HapticsError

ROOT = Path(__file__).resolve().parents[2]


def refused(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def unimportable(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    """A machine on which importing a module fails."""
    real = builtins.__import__

    def without(module: str, *rest: object) -> object:
        if module == name:
            raise error
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without)


def abilities(monkeypatch: pytest.MonkeyPatch, **answers: object) -> None:
    """Let the doctor ask only these: name = (needed, answer or error)."""

    def asked(answer: object):
        def ask():
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask

    monkeypatch.setattr(
        doctor,
        "ABILITIES",
        tuple((name, needed, asked(answer)) for name, (needed, answer) in answers.items()),
    )


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("ok", [True, False])
def test_the_status_is_1_exactly_if_something_needed_is_missing(monkeypatch, capsys, needed: bool, ok: bool):
    abilities(monkeypatch, first=(True, (True, "well")), second=(needed, (ok, "words")))
    assert doctor.print_doctor() == int(needed and not ok)
    assert "words" in capsys.readouterr().out


def test_a_question_that_fails_is_an_answer_and_the_others_are_still_asked(monkeypatch, capsys):
    abilities(monkeypatch, broken=(False, OSError("no such\nthing")), after=(True, (True, "all [bold] well")))
    assert doctor.print_doctor() == 0
    said = capsys.readouterr().out
    assert "could not be checked: no such thing" in said
    assert "all [bold] well" in said


def test_the_json_says_what_the_table_says(monkeypatch, tmp_path: Path):
    abilities(monkeypatch, clock=(True, (False, "pip install palpo[touch]")), window=(False, (True, "there")))
    assert doctor.print_doctor(tmp_path / "doctor.json") == 1
    found = json.loads((tmp_path / "doctor.json").read_text("utf-8"))
    assert found["well"] is False
    assert found["abilities"] == [
        {"name": "clock", "needed": True, "ok": False, "words": "pip install palpo[touch]"},
        {"name": "window", "needed": False, "ok": True, "words": "there"},
    ]
    assert "python" in found["machine"]


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('first')\nprint('last')", (True, "last")),
        ("", (True, "")),
        ("raise ValueError('a sentence')", (False, "a sentence")),
        ("raise KeyError", (False, "KeyError()")),
        ("print('not here')\nsys.exit(True)", (False, "not here")),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", (False, "SIGSEGV")),
    ],
)
def test_what_is_tried_in_a_process_of_its_own_ends_in_one_line(code: str, answer: tuple[bool, str]):
    ok, words = doctor._tried(code or "pass")
    assert ok is answer[0]
    assert words == answer[1] or answer[1] == "SIGSEGV" in words


def test_a_driver_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(doctor, "PATIENCE", 0.5)
    ok, words = doctor._tried("import time\ntime.sleep(60)")
    assert not ok
    assert "no answer within 0.5 s" in words


def test_probes_find_the_program_from_any_folder(monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert doctor._tried("import palpo\nprint(palpo.__file__)") == (True, str(ROOT / "palpo" / "__init__.py"))


def test_without_a_display_there_is_no_window_and_runs_are_headless(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for ask in (doctor._window, partial(doctor._tried, Mouse.question)):
        ok, words = ask()
        assert not ok
        assert "DISPLAY" in words or "glfw" in words
    assert "headless" in doctor._window()[1]


def test_refused_real_time_comes_with_the_line_to_add(monkeypatch):
    if not hasattr(os, "sched_setscheduler"):
        assert ask_realtime() == (False, "not offered by this system")
        return
    monkeypatch.setattr(os, "sched_setscheduler", refused)
    ok, words = doctor._answer(doctor._realtime)
    assert not ok
    assert "rtprio 80" in words and "limits.conf" in words


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="this system has no such scheduling")
def test_asking_for_real_time_leaves_this_thread_as_it_was():
    before = os.sched_getscheduler(0)
    ask_realtime()
    assert os.sched_getscheduler(0) == before


def test_no_folder_for_compiled_code_names_the_variable_to_set(monkeypatch):
    monkeypatch.setattr(doctor, "cache_home", lambda: None)
    ok, words = doctor._answer(doctor._cache)
    assert not ok
    assert "NUMBA_CACHE_DIR" in words


def test_an_empty_cache_is_told_and_a_written_one_is_found(tmp_path: Path):
    code = """
from palpo.app.cli import doctor
from palpo.app.devices.mouse import Mouse
from palpo.app.devices.touch import TouchDevice
print(doctor._compiled())
import palpo.haptics.drivers as drivers
folder = __import__("pathlib").Path(drivers.servo_loop.stats.cache_path)
(folder / "servo_loop-1.0123.nbc").touch()
print(doctor._compiled())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    empty, written = done.stdout.splitlines()
    assert empty.startswith("(False") and "first start" in empty
    assert written.startswith("(True")


def test_a_folder_that_takes_no_recording_says_what_to_do(monkeypatch):
    monkeypatch.setattr("h5py.File", refused)
    ok, words = doctor._recordings()
    assert not ok
    assert "HDF5_USE_FILE_LOCKING" in words


def test_a_recording_can_be_begun_here_and_leaves_nothing(monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert doctor._recordings()[0]
    assert list(tmp_path.iterdir()) == []


def test_one_core_is_too_few(monkeypatch):
    monkeypatch.setattr(doctor, "cores", lambda: 1)
    ok, words = doctor._cores()
    assert not ok and "forces will be less exact" in words


def test_without_its_driver_the_touch_is_one_sentence(monkeypatch, tmp_path: Path):
    """Neither pyOpenHaptics nor libHD is found in an empty search path."""
    (tmp_path / "pyOpenHaptics.py").write_text("raise OSError('libHD.so: no such file')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ok, words = doctor._answer(partial(doctor._tried, TouchDevice.question))
    assert not ok
    assert "libHD" in words or "pyOpenHaptics" in words
    assert "Traceback" not in words


def test_devices_say_which_can_be_used_now_and_why_the_others_cannot(monkeypatch, capsys):
    monkeypatch.setattr(Mouse, "question", "print('a pointer')")
    monkeypatch.setattr(TouchDevice, "question", "sys.exit('libHD was not found; install OpenHaptics')")
    monkeypatch.setenv("COLUMNS", "200")
    assert doctor.print_devices() == 0
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    lines = {line.split()[0]: line for line in said}
    assert " yes " in lines["mock"] and " yes " in lines["replay:FILE"] and " yes " in lines["mouse"]
    assert " no " in lines["touch:NAME"] and "install OpenHaptics" in lines["touch:NAME"]


def test_the_doctor_itself_answers_every_question_in_one_line(monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    checks = doctor.examine()
    assert [check.name for check in checks] == [name for name, _, _ in doctor.ABILITIES]
    for check in checks:
        assert check.words and "\n" not in check.words
        assert "could not be checked" not in check.words


def test_the_doctor_asks_for_every_device_of_the_table_that_has_a_label():
    names = [name for name, _, _ in doctor.ABILITIES]
    assert {kind.label for kind in table.DEVICES if kind.label} <= set(names)


def test_one_device_is_examined_step_by_step_and_its_use_decides(monkeypatch, capsys, tmp_path: Path):
    steps = (("library", "print('found in /opt')"), ("port", "raise OSError('no port')"))
    monkeypatch.setattr(TouchDevice, "steps", steps)
    monkeypatch.setattr(TouchDevice, "question", "print('ready')")
    monkeypatch.setenv("COLUMNS", "200")
    assert doctor.print_device("touch", tmp_path / "touch.json") == 0
    said = capsys.readouterr().out
    assert "found in /opt" in said and "no port" in said and "ready" in said
    found = json.loads((tmp_path / "touch.json").read_text("utf-8"))
    assert [(check["name"], check["ok"]) for check in found["abilities"]] == [
        ("library", True), ("port", False), ("use", True),
    ]  # fmt: skip
    monkeypatch.setattr(TouchDevice, "question", "sys.exit('not calibrated')")
    assert doctor.print_device("touch") == 1


def test_a_device_that_there_is_not_is_refused_by_the_doctor_as_by_a_run():
    with pytest.raises(HapticsError, match="choose one of"):
        doctor.print_device("organ")
