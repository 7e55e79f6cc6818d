"""A scene led along a path in lock-step, with what the slow-rate loop did beside what the servo did."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import load_scene
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.haptics.path import waypoint_path
from palpo.physics.systems.multirate.lock_step import LockStep

Floats = NDArray[np.float64]
Watch = Callable[["SceneDrive"], None]


def scene_path(spec: BaseScene, speed: float = 1.0) -> Floats:
    """The scene's own target path (n, 3) [m] at the servo's rate, `speed` times as fast."""
    rows = [(t / speed, *x) for t, *x in spec.device.path]
    kind = "smooth" if spec.device.smooth else "linear"
    return waypoint_path(rows, kind, rate_hz=spec.rates.servo_hz)[0]  # type: ignore[arg-type]


def legs(*rows: tuple[float, float, float, float], smooth: bool = True) -> Floats:
    """Target path (n, 3) [m] through rows (duration [s] since the row before, x, y, z) at 1 kHz."""
    times = np.cumsum([row[0] for row in rows])
    return waypoint_path(
        np.column_stack([times, [row[1:] for row in rows]]), "smooth" if smooth else "linear"
    )[0]


@dataclass
class SceneDrive:
    """One scene under one interface kind. `go` may be called again; the trace grows."""

    name: str
    overrides: Sequence[str] = ()
    kind: str = "krylov"
    latency: str = "period"
    durations: Sequence[float] = (1.0,)
    """Slow periods that each slow step takes, in turn."""
    spec: SceneSpec = field(init=False)
    others: list[Floats] = field(init=False)
    """Paths of the hands after the first, which are the scene's own."""
    lock: LockStep = field(init=False)
    trace: dict[str, NDArray[Any]] = field(init=False, default_factory=dict)
    stopped: bool = field(init=False, default=False)
    """The servo met a number that is not finite, or a slow step broke down."""
    seconds: float = field(init=False, default=0.0)
    """Wall time of the ticks."""

    def __post_init__(self) -> None:
        self.spec = load_scene(self.name, self.overrides)
        self.others = [scene_path(hand) for hand in self.spec.hands[1:]]
        self.lock = LockStep(build_scene(self.spec), self.kind, self.latency, self.durations)

    def __enter__(self) -> "SceneDrive":
        return self

    def __exit__(self, *_: object) -> None:
        self.lock.close()

    @property
    def dt(self) -> float:
        """Servo period [s]."""
        return self.lock.scene.numbers.dt

    @property
    def ticks(self) -> int:
        """Ticks done."""
        return self.lock.tick

    def go(self, positions: Floats, watch: Watch | None = None) -> dict[str, NDArray[Any]]:
        """Lead the target along positions (n, 3) [m]; `watch` is called after each slow period.

        Returns the whole trace so far (see `LockStep.run`); it ends early where the run broke down.
        """
        if self.lock.tick == 0:
            self.lock.high.port.position[:] = positions[0]
        period = self.lock.scene.numbers.ratio if watch is not None else len(positions)
        start, begun = time.perf_counter(), self.lock.tick
        for first in range(0, len(positions), period):
            part = positions[first : first + period]
            ticks = begun + first + np.arange(len(part))
            others = [way[np.minimum(ticks, len(way) - 1)] for way in self.others]
            got = self.lock.run(part, others=others)
            known = self.trace or {name: values[:0] for name, values in got.items()}
            self.trace = {name: np.concatenate([known[name], got[name]]) for name in got}
            self.stopped = len(next(iter(got.values()))) < len(part)
            if self.stopped:
                break
            if watch is not None:
                watch(self)
        self.seconds += time.perf_counter() - start
        return self.trace


def drive(
    name: str, positions: Floats | None = None, overrides: Sequence[str] = (), kind: str = "krylov",
    watch: Watch | None = None,
) -> SceneDrive:  # fmt: skip
    """A whole run along positions, or along the scene's own path; its loops are closed."""
    with SceneDrive(name, overrides, kind) as run:
        run.go(scene_path(run.spec) if positions is None else positions, watch)
    return run


class Ledger:
    """Impulse that the tool's constraints gave the slow-rate bodies, as the slow loop booked it, by period.

    krylov: the servo's logged forces as they were integrated. paper and extrapolated: the forces of L6 over
    the slow period, without those of rows that touch slow-rate bodies only. Where a scene has attachments the
    tool acts on the slow-rate bodies through them, so that only the attached points are counted.
    """

    def __init__(self, run: SceneDrive) -> None:
        self.impulse = np.zeros(3)
        """Running sum [N s]."""
        low, scene = run.lock.low, run.lock.scene
        self._counted = np.zeros(len(scene.rest), bool)
        for member in scene.members:
            # moments on rotations are no impulse
            points = np.flatnonzero(member.body.turns(np.arange(member.count)) == 0)
            self._counted[member.first + points] = True
        if len(low.attached):
            self._counted &= np.isin(np.arange(len(scene.rest)), low.attached)
        low.booked = self._book

    def _book(self, points: NDArray[np.int32], impulse: Floats) -> None:
        self.impulse += impulse[self._counted[points]].sum(axis=0)
