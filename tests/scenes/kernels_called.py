"""Which kernels Python calls beyond those that are compiled ahead for a system:
`python -m tests.scenes.kernels_called scenes|first|whole SYSTEM [SCENE ...]`.

scenes: those of its scenes, which are run, changed while they run, looked at, recorded and gone back to, and
of which one is repeated; first: the same, beyond what is compiled for the system's first scene; whole: all to
the end of their own ways, and repeated. Printed as JSON, each with what called it first. A process asks for
each kernel once, so those that are left are new to one that did what compiling ahead does. Python calls
wholes, and what these are made of is compiled with them: so it is no matter what a cache holds, and what is
left would be compiled from a fresh one.
"""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import palpo.app  # noqa: F401
from palpo.app.cli import compile_ahead
from palpo.app.report.draw import camera_of, near_points
from palpo.app.runtime.keeping import go_back, keep
from palpo.app.runtime.live import Live, live_keys
from palpo.app.runtime.options import Options
from palpo.app.runtime.readings import Readings
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.app.systems.rehearsal import hurried
from palpo.app.systems.system import find_system
from palpo.app.visual.held import held_name, shape_of, swept
from palpo.app.visual.nearness import Nearness
from palpo.config.load import list_scenes, load_scene
from palpo.haptics.drivers import servo_run
from palpo.physics.exchange.snapshot import SceneState
from palpo.physics.numerics.kernel_parts import KernelDispatcher
from palpo.physics.numerics.kernels import layout
from palpo.physics.numerics.shipped import NATIVE

SHORT = 0.4
"""Least seconds of a scene that is run in short."""
EACH = 2
"""Slow steps between two looks."""
IN_THREADS = ("wire", "hapco-soft", "snap", "suction-toy")
"""A scene of each system that is also repeated, and run in threads."""


class Called(dict[str, str]):
    """Kernels that Python has called in this process, each with what called it first."""

    what = "import"

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Notes each within it."""
        plain = KernelDispatcher.compile

        def compile_and_note(dispatcher: Any, signature: Any) -> Any:
            arguments = ", ".join(map(layout, getattr(signature, "args", signature)))
            code = dispatcher.py_func.__code__
            name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
            self.setdefault(f"{name}:{code.co_firstlineno}({arguments})", f"{self.what} at {_caller()}")
            return plain(dispatcher, signature)

        KernelDispatcher.compile = compile_and_note
        try:
            yield
        finally:
            KernelDispatcher.compile = plain


def _caller() -> str:
    """The line of ours that called a kernel."""
    ours = [f for f in traceback.extract_stack() if "/physics/" in f.filename or "/app/" in f.filename]
    outside = [f for f in ours if Path(f.filename).name != "kernel_parts.py"]
    return f"{Path(outside[-1].filename).name}:{outside[-1].lineno}" if outside else "?"


def call_ahead(system: str, scene: str) -> None:
    """What compiling ahead calls in its processes, for a system or one of its scenes."""
    os.environ[NATIVE] = "1"
    for lane in compile_ahead.LANES.values():
        lane(system, scene)


def call_in_scene(scene: str, folder: Path, called: Called, whole: bool) -> None:
    """Run a scene, look at it, change what can be changed, record it, keep its state and go back.

    whole: along its own way, and repeated; else in SHORT, as quickly as that is, or as long as changes take.
    """
    recording, spec = folder / f"{scene}.h5", load_scene(scene)
    seconds = max(SHORT, (len(rounds(spec)) + 2) / spec.rates.low_hz)
    options = Options(
        scene, () if whole else hurried(scene, seconds), device="mock", baseline=False, lock_step=True
    )
    called.what = f"{scene}, prepared"
    session = Session(replace(options, record=recording))
    session.prepare()
    called.what = f"{scene}, run"
    onlooker = Onlooker(session)
    session.run(onlooker.look)
    if onlooker.changes:
        raise RuntimeError(f"{scene}: the run is too short for {onlooker.changes}")
    if whole or scene in IN_THREADS:
        called.what = f"{scene}, repeated"
        replay(recording)
    recording.unlink()
    called.what = f"{scene}, kept"
    _keep_and_go_back(options)
    if scene in IN_THREADS:
        called.what = f"{scene}, in threads"
        run(replace(options, lock_step=False, baseline=True, window=True, duration=SHORT))


class Onlooker:
    """Who looks at a run as the window does, and changes all live keys in each slow step.

    changes: that are still to be made.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._readings, geometry = session, Readings(session), session.visual.geometry
        held = shape_of(geometry, held_name(session.spec))
        self._geometry, self._nearness = geometry, None if held is None else Nearness(geometry, held)
        rest = SceneState(session.visual.vertices.copy())
        camera_of(geometry, [rest], session.spec.view, 1.5, swept(session.spec, geometry))
        self.changes = rounds(session.spec)
        self._looks = 0

    def look(self, state: SceneState, _fresh: bool) -> None:
        """A picture, changes, and every EACH what the panel reads."""
        self._looks += 1
        self._session.visual.strain = self._looks % 2 == 0
        near_points(self._geometry, state)
        if self._nearness is not None:
            self._nearness.look(state)
        if self._looks % EACH == 0:
            self._readings.look()
            self._readings.groups(state)
        for change in self.changes.pop(0) if self.changes else ():
            self._session.change(*change)


def rounds(spec: Any) -> list[list[tuple[str, object]]]:
    """Changes of all live keys of a scene, each to its next value, until all are as they were."""
    ways = [_there_and_back(live) for live in live_keys(spec)]
    return [[way[k] for way in ways if k < len(way)] for k in range(max(map(len, ways)))]


def _there_and_back(live: Live) -> list[tuple[str, object]]:
    """Each choice or a value on the way to the least, then what it was."""
    if live.choices:
        return [(live.key, choice) for choice in (*live.choices, live.value)]
    assert isinstance(live.value, float | int)
    between = 0.5 * (live.lower + live.value)
    least = round(between) if isinstance(live.value, int) else between
    return [(live.key, least), (live.key, live.value)]


def _keep_and_go_back(options: Options) -> None:
    """Keep a state in a pause, and begin another run with it."""
    first, again = Session(options), Session(options)
    for session in (first, again):
        session.prepare()
    first.pause(True)
    fade = round(first.spec.safety.fade_out * first.spec.rates.servo_hz) + 2
    first.rig.lock.advance(fade, lambda n: servo_run(first.rig.servo, n))
    kept = keep(first, options)
    assert kept is not None
    go_back(again, kept)
    again.rig.lock.advance(again.rig.ratio, lambda n: servo_run(again.rig.servo, n))
    for session in (first, again):
        session.rig.low.close()


def main(what: str, system: str, *scenes: str) -> None:
    """Print the kernels that scenes call beyond those compiled ahead."""
    ahead, called = Called(), Called()
    with ahead.noted():
        call_ahead(system, find_system(system).first if what == "first" else "")
    assert ahead, "nothing is compiled ahead"
    with called.noted(), tempfile.TemporaryDirectory() as folder:
        for scene in scenes or [name for name in list_scenes() if load_scene(name).system == system]:
            print(scene, file=sys.stderr, flush=True)
            call_in_scene(scene, Path(folder), called, what == "whole")
    print(json.dumps({name: by for name, by in called.items() if name not in ahead}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
