"""The low-rate step: a rigid ball pressed into a soft block, over many facets of a fine top layer."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.scene import build_scene
from palpo.app.report.outcome import distribution
from palpo.benchmarks.timing import Figures, bare_loop_us, beside, within
from palpo.config.load import parse_scene
from palpo.physics.exchange.port import OK, STATUS_CONTACTS
from palpo.physics.systems.high_rate import run_ticks
from palpo.physics.systems.literal import Paper
from palpo.physics.systems.lock_step import LockStep

SCENE = """
title = "Ball pressed into a block"

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.045, 0.03, 0.045], divisions = [18, 1, 18], grading = [1, 0.4, 1] }
placement = { position = [0, "-15 mm", 0] }
material = { name = "soft-tissue", youngs_modulus = "15 kPa" }
fixed = [{ box = [[-0.04, -0.0301, -0.04], [0.04, -0.0299, 0.04]] }]

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "25 mm" }
placement = { position = ["1 mm", "25.6 mm", "-0.7 mm"] }
mass = "30 g"

[friction]
default = 0.4

[tool]
body = "ball"

[tool.hold]
orientation = true
stiffness = "1 N/mm"
damping = "2 N s/m"
"""

DEPTH = 0.007
"""How far the hand goes below first touch [m]; the ball itself stays behind by what the hold gives."""

PRESS, SETTLE = 20, 20
"""Low steps of pressing, and of rest before timing."""


def low_step(steps: int = 60) -> Figures:
    """Whole low steps and their named parts, `paper` and `krylov`, under some thirty contacts."""
    kinds = {kind: _kind(kind, steps) for kind in ("paper", "krylov")}
    paper, ours = (kinds[kind]["step ms"]["p50"] for kind in ("paper", "krylov"))
    return kinds | {"krylov, step p50 ms": beside(ours, paper, "paper"), "bare loop us": bare_loop_us()}


def _kind(kind: str, steps: int) -> Figures:
    run = LockStep(build_scene(parse_scene(SCENE, "low-step", ())), kind)
    try:
        return _measure(run, steps)
    finally:
        run.close()


def _measure(run: LockStep, steps: int) -> Figures:
    port, top = run.high.port, run.high.tool.x[0].copy()
    port.position[:] = top
    for step in range(PRESS + SETTLE):
        port.position[1] = top[1] - DEPTH * min(1.0, (step + 1) / PRESS)
        run.advance(run.ratio, lambda span: _ticks(run, span))
    run.low.times.clear()
    whole, contacts, active = np.zeros(steps), np.zeros(steps, int), np.zeros(steps, int)
    for step in range(steps):
        apart = [0.0]

        def ticks(span: int, apart: list[float] = apart) -> None:
            start = time.perf_counter()
            _ticks(run, span)
            apart[0] += time.perf_counter() - start

        start = time.perf_counter()
        run.advance(run.ratio, ticks)
        whole[step] = time.perf_counter() - start - apart[0]
        contacts[step], active[step] = _contacts(run)
    whole_ms = distribution(whole, 1e3)
    return {
        "nodes": sum(member.count for member in run.scene.members),
        "tetrahedra": sum(len(member.body.mesh.tets) for member in run.scene.members),
        "steps": steps,
        "contacts that are rows": _spread(contacts),
        "active contacts at high rate": _spread(active),
        "step ms": whole_ms,
        "target p99 ms": within(whole_ms["p99"], 20.0),
        "by step ms": run.low.times.summary_ms(),
    }


def _ticks(run: LockStep, span: int) -> None:
    if run_ticks(run.handle, span) != OK:
        raise RuntimeError(f"the tick failed near tick {run.tick}")


def _contacts(run: LockStep) -> tuple[int, int]:
    """Contacts that are rows of the kind's own problem, at low rate where it has one; those under load."""
    rows = run.low.proxy.rows if isinstance(run.low, Paper) else run.high.rows
    return int(rows.count[1]), int(run.high.port.status[STATUS_CONTACTS])


def _spread(counts: NDArray[np.int_]) -> dict[str, Any]:
    return {"least": int(counts.min()), "median": int(np.median(counts))}
