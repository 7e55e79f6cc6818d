"""From motion to force, in ticks: twin runs in lock-step that differ in one change, compared bit for bit."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.systems.multirate.build import build_scene
from palpo.benchmarks.timing import Figures, microseconds
from palpo.config.load import load_scene
from palpo.config.schema.solver import Interface
from palpo.config.schema.tool import Tool
from palpo.haptics.device import make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.recording import read_recording
from palpo.haptics.row import NAMES
from palpo.haptics.servo import make_servo
from palpo.physics.engine.servo import servo_tick, tick_data
from palpo.physics.systems.multirate.lock_step import LockStep

SCENE = "probe"
KINDS: tuple[str, ...] = get_args(Interface.model_fields["kind"].annotation)
FEEDBACKS: tuple[str, ...] = get_args(Tool.model_fields["feedback"].annotation)
ABOVE, PRESSED = np.array([-0.010, 0.045, 0.0]), np.array([-0.010, 0.036, 0.0])
"""Where the held point of the scene's ball starts, and where it is pressed 4.5 mm into the block [m]."""

PRESS, CHANGE, END = 120, 240, 280
"""Ticks: the press lasts until the first, the change comes with or after the second, the run ends."""
PHASES = (0, 1, 7, 19)
"""Ticks after a slow step begins at which the device moves."""
HEAVIER = 1.001
"""Factor of gravity, which the slow loop reads. The bodies' motion is the servo's own: no news."""

POSITION = slice(NAMES.index("px"), NAMES.index("px") + 3)
SENT = slice(NAMES.index("sent_x"), NAMES.index("sent_x") + 3)
OUTPUT = slice(NAMES.index("force_x"), NAMES.index("sum_z") + 1)
"""All that a tick computes: a penetration is pushed out at a set speed, whatever its depth, so that the force
alone may be blind to a change for some ticks."""

Rows = NDArray[np.float64]
Before = Callable[[LockStep], None]


def latency(seconds: float = 4.0) -> Figures:
    """Ticks from a device's step to its force, and from a soft body's change to the tick that knows it."""
    return {
        "device to force, ticks": {kind: _device_to_force(kind) for kind in KINDS},
        "soft body to servo, ticks": {kind: _through_low_loop(kind) for kind in KINDS},
        "slow period, ticks": load_scene(SCENE).rates.ratio,
        "threads": {kind: _threads(kind, seconds) for kind in KINDS},
    }


def _device_to_force(kind: str) -> Figures:
    """Ticks between the row whose position has moved by a count and the first whose force differs."""
    figures = {}
    for feedback in FEEDBACKS:
        for name, end in (("in contact", PRESSED), ("free", ABOVE)):
            if name == "free" and feedback == "constraints":
                continue  # in free space no constraint acts: that force is zero whatever moves
            plain = _run(kind, feedback, _path(end))
            waits = []
            for phase in PHASES:
                path = _path(end)
                path[CHANGE + phase :, 1] -= TOUCH.resolution
                moved = _run(kind, feedback, path)
                waits.append(_first(plain, moved, SENT) - _first(plain, moved, POSITION))
            figures[f"{name}, {feedback}"] = {"least": min(waits), "most": max(waits)}
    return figures


def _through_low_loop(kind: str) -> int:
    """Ticks from the slow step that begins with all bodies heavier to the first tick that differs."""

    def load(run: LockStep) -> None:
        if run.tick == CHANGE:
            run.scene.numbers.gravity[:] *= HEAVIER

    path = _path(PRESSED)
    plain, loaded = _run(kind, FEEDBACKS[0], path), _run(kind, FEEDBACKS[0], path, load)
    return _first(plain, loaded, OUTPUT) - CHANGE


def _path(end: NDArray[np.float64]) -> Rows:
    """Positions (END, 3) [m] from above the block to `end`, where the stylus stays."""
    share = np.minimum(np.arange(END) / PRESS, 1.0)[:, None]
    return ABOVE + share * (end - ABOVE)


def _first(one: Rows, other: Rows, columns: slice) -> int:
    """The first row at which two runs differ; RuntimeError if they never do."""
    differ = np.flatnonzero((one[:, columns] != other[:, columns]).any(axis=1))
    if len(differ) == 0:
        raise RuntimeError("a change that must be felt was not")
    return int(differ[0])


def _run(kind: str, feedback: str, path: Rows, before: Before | None = None) -> Rows:
    """The servo's rows of a stylus led along path without a hand; `before` precedes each slow step."""
    lock = LockStep(build_scene(load_scene(SCENE, [f"tool.feedback={feedback}"])), kind)
    data = tick_data(lock.servo)
    # neither a clamp nor a limit of the rate may hide or spread a change
    limits = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, hand_speed=np.inf)
    stylus = make_virtual_device(path)
    servo = make_servo(servo_tick.address, data.address, lock.high.port, stylus, limits, ring_capacity=512)
    if before is not None:
        lock.starting = partial(before, lock)
    try:
        lock.advance(len(path), lambda n: servo_run(servo, n))
    finally:
        lock.close()
    return drain_rows(servo)


def _threads(kind: str, seconds: float) -> Figures:
    """Age of what a frame knows when the servo adopts it; the servo's time from reading to sending."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.h5"
        options = Options(SCENE, device="mock", duration=seconds, record=file, interface=kind, baseline=False)
        session = Session(options)
        session.prepare()
        session.run()
        record = read_recording(file)
    frames, adopted = np.unique(record.columns["frame"], return_index=True)
    steps = record.low_steps
    first = dict(zip(frames.tolist(), record.columns["tick"][adopted].tolist(), strict=True))
    ages = np.array(
        [
            first[frame] - begun
            for frame, begun in zip(steps["frame"].tolist(), steps["begin_tick"].tolist(), strict=True)
            if frame in first and begun > 0
        ]
    )
    step_us = microseconds((1e3 * record.columns["step_us"]).astype(np.int64))
    return {
        "frames": len(ages),
        "slow step's begin to its frame, ticks": {
            name: float(np.percentile(ages, q)) for name, q in (("p50", 50), ("p99", 99), ("max", 100))
        },
        "device read to force sent us": step_us,
    }
