"""The servo's tick under many contacts: a soft cylinder at rest on its plane, a wire on top of it."""

import numpy as np

from palpo.app.systems.multirate.build import build_scene
from palpo.benchmarks.timing import (
    BARE,
    STAGES,
    Figures,
    bare_loop_us,
    beside,
    microseconds,
    time_stages,
    time_ticks,
    well_timed,
    within,
)
from palpo.config.load import load_scene
from palpo.physics.engine.servo import run_ticks
from palpo.physics.systems.multirate.lock_step import LockStep

SETTLE = 600


def servo(ticks: int = 8000, staged: int = 2000) -> Figures:
    """Ticks of scene `wire` at rest, timed one by one; slow steps in between are not timed."""
    run = LockStep(build_scene(load_scene("wire")), "krylov")
    try:
        return _measure(run, ticks, staged)
    finally:
        run.close()


def _measure(run: LockStep, ticks: int, staged: int) -> Figures:
    run.high.port.position[:] = run.high.held.tool.x[run.high.held.hold.frame[0]]
    run.advance(SETTLE, lambda span: run_ticks(run.handle, span))
    status = run.high.port.status[0]
    seen: list[tuple[int, int, int]] = []
    replayed: list[int] = []
    whole, stages = np.zeros(ticks, np.int64), np.zeros((staged, len(STAGES)), np.int64)
    done = [0, 0]

    def timed(span: int) -> None:
        well_timed(time_ticks, run.handle, whole[done[0] : done[0] + span])
        done[0] += span
        seen.append((status["contacts"], status["rows"], status["sweeps"]))

    def profiled(span: int) -> None:
        well_timed(time_stages, run.handle, stages[done[1] : done[1] + 1])
        replayed.append(status["replayed"])
        well_timed(time_stages, run.handle, stages[done[1] + 1 : done[1] + span])
        done[1] += span

    run.advance(ticks, timed)
    run.advance(staged, profiled)
    contacts, rows, sweeps = np.array(seen).T
    first = np.zeros(ticks, bool)
    first[:: run.ratio] = True
    tick_us, bare = microseconds(whole), bare_loop_us()
    return {
        "ticks": ticks,
        "active contacts": {"least": int(contacts.min()), "median": int(np.median(contacts))},
        "rows": int(np.median(rows)),
        "sweeps": {"median": int(np.median(sweeps)), "most": int(sweeps.max())},
        "replayed ticks a frame": int(np.median(replayed)),
        "tick us": tick_us,
        "ticks that take a frame us": microseconds(whole[first]),
        "other ticks us": microseconds(whole[~first]),
        "target p50 us": within(tick_us["p50"], 100.0),
        "target p99 us": within(tick_us["p99"], 300.0),
        "step us": {name: microseconds(stages[:, k]) for k, name in enumerate(STAGES)},
        "bare loop us": bare,
        "tick p50 us": beside(tick_us["p50"], bare["p50"], BARE),
    }
