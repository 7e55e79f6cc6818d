"""Every shipped scene in every way that it can be run: with and without a clock, recorded, changed, repeated.

What is asked here is that nothing fails and nothing differs; what a scene does is asked elsewhere.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.report.publish import publish
from palpo.app.runtime.keeping import options_again
from palpo.app.runtime.live import live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.config.load import list_scenes
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.flags import PAUSING
from palpo.haptics.recording import read_recording
from palpo.physics.contact.io import read_problem
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh

SCENES = tuple(list_scenes())
SNAP = sorted(scene for scene in SCENES if scene.startswith("snap"))
LASTS = 0.3
"""Seconds of a run: fifteen slow steps and more, of a large body three."""
WAITS = 120.0
"""Seconds after which what must come has not."""
TICKS = 60
"""Three slow periods."""
SHORT = Options("", device="mock", lock_step=True, baseline=False, duration=1e-3 * TICKS)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


def without_training(patch):
    """No scene may need PyTorch."""
    patch.setattr(
        "palpo.app.cli.train_distance.train_distance", lambda *_, **__: pytest.fail("a network is trained")
    )


def nudged(points):
    """Points (n, 3), each coordinate a unit in the last place of the largest up or down."""
    rng = np.random.default_rng(points.size)
    return points + np.spacing(np.abs(points).max()) * rng.choice((-1.0, 1.0), points.shape)


def nudge(patch, mesh, attribute):
    """Every mesh of a kind, as it is made, has its coordinates nudged."""
    make = mesh.__init__

    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        object.__setattr__(self, attribute, nudged(getattr(self, attribute)))

    patch.setattr(mesh, "__init__", made)


def assert_it_runs(scene, folder):
    done = run(replace(SHORT, scene=scene, record=folder / "run.h5"))
    assert done.status == FINISHED, done.result["exit_reason"]
    columns = read_recording(folder / "run.h5").columns
    assert len(columns["tick"]) >= TICKS
    assert all(np.isfinite(values).all() for values in columns.values())


def values_of(live):
    """Values to change a live key to: all choices, or a value near to its own and back again."""
    if live.choices:
        return [*live.choices, live.value]
    upward = live.value + 0.02 * (live.upper - live.value)
    return [upward if upward != live.value else 0.5 * (live.lower + live.upper), live.value]


def changes(session: Session) -> list[tuple[str, object]]:
    """Every live key, changed and changed back."""
    return [(live.key, value) for live in live_keys(session.spec) for value in values_of(live)]


def assert_repeated(path, wanted):
    recording = read_recording(path)
    assert recording.closed
    kept = {text.partition("=")[0] for _, text in recording.changes}
    assert {key.removesuffix(".1") if key == "gravity.1" else key for key, _ in wanted} <= kept
    steps = recording.low_steps["step"]
    loops = recording.low_steps.get("loop", np.zeros(len(steps)))
    for loop in np.unique(loops):
        own = steps[loops == loop]
        assert np.array_equal(own, np.arange(len(own)))
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]
    assert again.result["replay"]["ticks"] == len(recording.columns["tick"])


def at_every_low_step(session: Session, do: Callable[[], object]) -> None:
    """Call `do` before the changes of each slow step are taken."""
    take = session.slow.take_changes

    def hook() -> None:
        do()
        take()

    session.slow.take_changes = hook


@pytest.mark.parametrize("scene", SCENES)
def test_without_a_clock_it_is_changed_exported_reported_and_repeated(scene, tmp_path, monkeypatch):
    """With every generated coordinate a unit in the last place off, as meshes differ between processors."""
    without_training(monkeypatch)
    for mesh, attribute in (
        (TetMesh, "nodes"), (HexMesh, "nodes"), (BeamLine, "nodes"), (SurfaceMesh, "vertices"),
    ):  # fmt: skip
        nudge(monkeypatch, mesh, attribute)
    path, problem = tmp_path / "run.h5", tmp_path / "problem.h5"
    session = Session(
        Options(scene, device="mock", lock_step=True, duration=LASTS, record=path, export=problem)
    )
    session.prepare()
    asked = changes(session)
    at_once = -(-len(asked) // max(1, round(0.8 * LASTS / (session.rig.ratio * session.rig.dt))))
    waiting = list(asked)

    def change() -> None:
        for key, value in waiting[:at_once]:
            session.change(key, value)
        del waiting[:at_once]

    at_every_low_step(session, change)
    done = session.run()
    assert not waiting
    assert done.result["exit_reason"] == "finished"
    if "export" in done.result:
        assert done.status == FINISHED
        assert np.isfinite(read_problem(problem).w).all()
    else:
        # at the last tick nothing touches, and the run says so
        assert done.status == FAILED
        assert any("--export" in warning for warning in done.result["warnings"])
    assert all(np.isfinite(values).all() for values in read_recording(path).columns.values())
    page = publish(tmp_path / "report", done)
    assert page.stat().st_size > 1000
    assert_repeated(path, asked)


@pytest.mark.parametrize("scene", SCENES)
def test_in_threads_it_is_paused_stepped_changed_reset_and_repeated(scene, tmp_path):
    path = tmp_path / "run.h5"
    session = Session(Options(scene, device="mock", duration=WAITS, record=path, baseline=False))
    session.prepare()
    servo, asked = session.rig.servo, changes(session)
    due = [0]

    def step() -> None:
        stood = int(tick_count(servo))
        due.append(stood + session.step_once())

    def change() -> None:
        for key, value in asked:
            session.change(key, value)

    known = [0]

    def taken() -> bool:
        known.append(session.slow.steps)
        return session.slow._changes.empty()

    steps = [
        (lambda: tick_count(servo) > 50, lambda: session.pause(True)),
        (lambda: is_frozen(servo), step),
        (lambda: tick_count(servo) == due[-1] and is_frozen(servo), lambda: session.pause(False)),
        (lambda: tick_count(servo) > due[-1], change),
        (taken, lambda: None),
        (lambda: session.slow.steps > known[-1] + 3, session.end),
    ]
    deadline = time.monotonic() + WAITS

    def watch(_state, _fresh) -> None:
        if steps and steps[0][0]():
            steps.pop(0)[1]()
        assert time.monotonic() < deadline, f"{len(steps)} things to do are left"
        time.sleep(1e-3)

    done = session.run(watch)
    assert not steps, done.result["exit_reason"]
    assert (done.result["exit_reason"], done.status) == ("finished", FINISHED)
    assert (read_recording(path).columns["flags"] & PAUSING).any()
    assert_repeated(path, asked)
    again = Session(replace(options_again(session), duration=0.05, lock_step=True))
    again.prepare()
    assert again.run().status == FINISHED


@pytest.mark.portable
@pytest.mark.parametrize("scene", SNAP)
def test_a_snap_scene_runs_on_this_processor_without_pytorch(scene, tmp_path, monkeypatch):
    without_training(monkeypatch)
    assert_it_runs(scene, tmp_path)
