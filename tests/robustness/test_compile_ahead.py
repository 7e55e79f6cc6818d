"""Compiling ahead: processes fill the cache, once for these sources, and a failure costs nothing."""

import os
import subprocess
import sys

import pytest

from palpo.app.cli import compile_ahead as ahead
from palpo.app.cli.main import BAD_INPUT, main
from palpo.app.cli.progress import Silent
from palpo.app.systems.system import find_system
from palpo.config.load import load_scene
from palpo.physics.numerics.own import Spoilt, keep, kept, tell

SNAP = load_scene("snap")


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "cache_home", lambda: tmp_path)
    return tmp_path


class Started(list):
    """Stands in for subprocess.Popen: notes what is asked for and runs a line of Python instead."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self._line, self._popen = line, subprocess.Popen

    def __call__(self, command, **options):
        self.append(command[-3:])
        return self._popen([sys.executable, "-c", self._line], **options)


def test_every_lane_of_a_system_is_compiled_once_for_these_sources(home, monkeypatch):
    started = Started("")
    monkeypatch.setattr(ahead.subprocess, "Popen", started)
    ahead.compile_ahead(SNAP, Silent())
    ahead.compile_ahead(SNAP, Silent())
    assert started == [["snap", lane, ""] for lane in ahead.LANES]


def test_a_first_scene_waits_for_what_it_calls_and_another_one_for_all(home, monkeypatch):
    started = Started("")
    monkeypatch.setattr(ahead.subprocess, "Popen", started)
    first, lanes = find_system("multirate").first, len(ahead.LANES)
    asked = (first, (), first), (first, ("friction.default=0.2",), ""), ("probe", (), "")
    for name, changes, share in asked:
        spec = load_scene(name, changes)
        ahead.compile_ahead(spec, Silent())
        ahead.compile_ahead(spec, Silent())
        assert {scene for _, _, scene in started[-lanes:]} == {share}
    assert len(started) == 2 * lanes  # a changed scene and another one wait for the same
    (home / next(home.glob(f"multirate-{first}-*")).name).unlink()
    ahead.compile_ahead(load_scene(first), Silent())
    assert len(started) == 2 * lanes  # in all there is the first


def test_two_copies_in_turns_are_compiled_once_each_and_an_old_mark_goes(home, monkeypatch):
    started = Started("")
    monkeypatch.setattr(ahead.subprocess, "Popen", started)
    old = home / "snap-old.compiled"
    old.touch()
    os.utime(old, (0, 0))
    for generation in "abab":
        monkeypatch.setattr(ahead, "generation_of", lambda system, name=generation: name)
        ahead.compile_ahead(SNAP, Silent())
    assert len([*home.iterdir()]) == 2
    assert not old.exists()
    assert len(started) == 2 * len(ahead.LANES)


def test_what_came_with_the_program_is_compiled_only_where_that_is_asked_for(home, monkeypatch):
    started = Started("")
    monkeypatch.setattr(ahead.subprocess, "Popen", started)
    monkeypatch.setattr(ahead, "shipped", {ahead.generation_of("snap"): b""}.get)
    ahead.compile_ahead(SNAP, Silent())
    assert started == []
    ahead.compile_ahead(load_scene("hapco-soft"), Silent())
    ahead.fill_cache("snap", Silent())
    assert [system for system, *_ in started] == [s for s in ("hapco", "snap") for _ in ahead.LANES]


def test_a_process_that_fails_leaves_the_work_to_the_run(home, monkeypatch):
    monkeypatch.setattr(ahead.subprocess, "Popen", Started("raise SystemExit(1)"))
    ahead.compile_ahead(SNAP, Silent())
    assert not list(home.iterdir())


def test_damage_that_a_process_has_mended_is_told_once_and_all_is_compiled(home, monkeypatch):
    monkeypatch.setattr(ahead.subprocess, "Popen", Started(f"raise SystemExit({ahead.MENDED})"))
    with pytest.warns(Spoilt, match=f"{home} holds files that are damaged") as told:
        ahead.compile_ahead(SNAP, Silent())
        kept(home, "another")  # there is none: no damage
        tell(home)
    assert len(told) == 1
    assert len(list(home.glob("snap-*.compiled"))) == 1


@pytest.mark.parametrize("damaged", [False, True])
def test_a_process_ends_with_another_status_where_it_met_damage(damaged, tmp_path):
    assert keep(tmp_path, "file", lambda file: file.write(b"content"))
    if damaged:
        (tmp_path / "file").write_bytes((tmp_path / "file").read_bytes()[:-1])
    code = f"""
import sys
from pathlib import Path
from palpo.app.cli import compile_ahead as ahead
from palpo.physics.numerics.own import kept
ahead.LANES = {{"one": lambda system, scene: kept(Path({str(tmp_path)!r}), "file")}}
sys.exit(ahead.compile_lane("snap", "one", ""))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == (ahead.MENDED if damaged else 0), done.stderr


def test_an_interrupted_wait_leaves_no_process_behind(home, monkeypatch):
    processes = []
    popen = subprocess.Popen

    def endless(command, **options):
        processes.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return processes[-1]

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(ahead.subprocess, "Popen", endless)
    monkeypatch.setattr(ahead.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ahead.compile_ahead(SNAP, Silent())
    assert len(processes) == len(ahead.LANES)
    assert all(process.poll() is not None for process in processes)


def test_without_a_place_for_a_cache_nothing_is_started(monkeypatch):
    monkeypatch.setattr(ahead, "cache_home", lambda: None)
    monkeypatch.setattr(ahead.subprocess, "Popen", lambda *a, **k: pytest.fail("a process was started"))
    ahead.compile_ahead(SNAP, Silent())


def test_a_scene_that_is_run_to_compile_ahead_starts_no_process(home, monkeypatch):
    monkeypatch.setattr(ahead.subprocess, "Popen", lambda *a, **k: pytest.fail("a process was started"))
    monkeypatch.setenv(ahead.NATIVE, "1")
    ahead.compile_ahead(SNAP, Silent())
    assert not list(home.iterdir())


def test_an_unknown_system_is_named(capsys):
    assert main(["compile", "sofa"]) == BAD_INPUT
    assert "sofa: there is no such system" in capsys.readouterr().err
