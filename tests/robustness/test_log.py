"""The log: how the program was called, what it said and how it ended, in files of a bounded size."""

from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from palpo.app.cli import log
from palpo.app.cli.main import main
from palpo.app.cli.progress import Progress


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path / "palpo"
    log.end_log()


def test_a_command_its_words_and_its_end_stand_in_the_log(state, capsys):
    assert main(["scenes"]) == 0
    assert main(["run", "nonsense", "--headless"]) == 2
    text = (state / "palpo.log").read_text("utf-8")
    assert "palpo scenes" in text and "status 0" in text
    assert "palpo run nonsense --headless" in text and "ERROR nonsense" in text
    # a refusal is told whole on the screen; its trace is nobody's business
    assert "Traceback" not in text


def test_an_error_of_the_program_leaves_its_trace(state, monkeypatch, capsys):
    def broken():
        raise ZeroDivisionError("of this test")

    monkeypatch.setattr("palpo.config.load.list_scenes", broken)
    assert main(["scenes"]) == 3
    text = (state / "palpo.log").read_text("utf-8")
    assert "Traceback" in text and "ZeroDivisionError: of this test" in text


def test_the_files_are_few_and_never_larger_than_they_may_be(state, monkeypatch):
    monkeypatch.setattr(log, "LARGEST", 2000)
    assert not log.begin_log(["run", "probe"])
    for k in range(400):
        Progress().say(f"line {k} of many")
    files = sorted(state.iterdir())
    assert len(files) == 1 + log.KEPT and all(file.stat().st_size <= 2000 for file in files)
    assert "line 399" in (state / "palpo.log").read_text("utf-8")


def test_a_folder_that_cannot_be_written_costs_the_log_and_nothing_else(tmp_path, monkeypatch, capsys):
    (tmp_path / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "cannot be written" in log.begin_log([])
    assert main(["scenes"]) == 0


def test_whoever_uses_the_library_finds_no_file(state):
    Progress().say("in a script")
    assert not state.exists()
    assert not any(isinstance(h, RotatingFileHandler) for h in log.LOG.handlers)


def test_a_user_without_a_home_has_no_log_and_is_told_how_to_have_one(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert "set XDG_STATE_HOME" in log.begin_log([])
