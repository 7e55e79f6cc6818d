"""The slow step of large soft bodies: multigrid in place of factors, beside factors.

A ball stands pressed into a liver and strokes it, both rates in one thread, without a clock. Times are those
of the processor, of all threads together.
"""

import time

import numpy as np

from palpo.app.report.outcome import distribution
from palpo.benchmarks.timing import Figures, bare_loop_us, beside
from palpo.studies.runs import SceneDrive, legs

SPACINGS = {"9 mm": 20, "7 mm": 10, "5.75 mm": 6}
"""Edges of the lattice's cubes, and slow steps that are timed."""

PATH = ((0.0, -0.035, 0.0722, 0.0), (0.5, -0.035, 0.0635, 0.0), (4.0, 0.005, 0.0635, 0.0))
SETTLE = 0.9
"""Seconds of the path before timing."""


def large_body(small: bool = False) -> Figures:
    """Slow steps of livers of three meshes, with multigrid and with factors; `small` takes the coarsest."""
    chosen = dict(list(SPACINGS.items())[:1]) if small else SPACINGS
    figures: Figures = {}
    for spacing, steps in chosen.items():
        cases = {solver: _case(spacing, solver, steps) for solver in ("multigrid", "direct")}
        ours, other = (case["slow step, processor ms"]["p50"] for case in cases.values())
        figures |= {f"{spacing}, {solver}": case for solver, case in cases.items()}
        figures[f"{spacing}, slow step, processor ms"] = beside(ours, other, "factors")
    return figures | {"bare loop us": bare_loop_us()}


def _case(spacing: str, solver: str, steps: int) -> Figures:
    changes = [f"bodies.liver.geometry.spacing={spacing}", f'bodies.liver.solver="{solver}"']
    with SceneDrive("organ", changes) as run:
        path, period, low = legs(*PATH), run.lock.ratio, run.lock.low
        first = period * (round(SETTLE / run.dt) // period)
        run.go(path[:first])
        spent: list[float] = []
        make, publish = low.step, low.publish

        def step() -> int:
            start = time.process_time()
            calls = make()
            spent.append(time.process_time() - start)
            return calls

        def published(tick: int, frame_tick: int | None = None) -> None:
            start = time.process_time()
            publish(tick, frame_tick)
            if spent:
                spent[-1] += time.process_time() - start

        low.step, low.publish = step, published  # type: ignore[method-assign]
        run.go(path[first : first + (steps + 1) * period])
        body = run.lock.scene.members[0].body
        return {
            "tetrahedra": len(body.mesh.tets),
            "nodes": len(body.x),
            "steps": steps,
            "slow step, processor ms": distribution(np.array(spent[:steps]), 1e3),
        }
