"""The slow-rate step: a rigid ball pressed into a soft block, over many facets of a fine top layer.

Where MuJoCo is installed, the ball is then dragged to and fro: a slow step of ours, which stands for
a slow period, takes turns with the steps of MuJoCo over that period, each timed by the processor's time.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.outcome import distribution
from palpo.app.systems.multirate.build import build_scene
from palpo.benchmarks.mujoco_block import MujocoBlock, mujoco
from palpo.benchmarks.timing import Figures, bare_loop_us, beside, within
from palpo.config.load import load_scene, parse_scene
from palpo.physics.engine.servo import run_ticks
from palpo.physics.exchange.port import OK
from palpo.physics.systems.multirate.literal import Paper
from palpo.physics.systems.multirate.lock_step import LockStep

SCENE = """
title = "Ball pressed into a block"

[[bodies]]
name = "block"
kind = "tets"
elements = "tet4"
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
"""Slow steps of pressing, and of rest before timing."""

IN_PROBE = 0.012
"""That of the probe's, which begins 5 mm above the block."""

TAKES = 0.3
"""Slow periods after which a step's frame appears while the ball is dragged, about what it takes in threads:
candidates must last so long."""

DRAG, STROKE = 0.004, 40
"""How far the hand drags the ball to either side [m], and the slow steps of a stroke to and fro."""


def low_step(steps: int = 60) -> Figures:
    """Whole slow steps and their named parts, `paper` and `krylov`, under some thirty contacts; MuJoCo's."""
    kinds = {kind: _kind(kind, steps) for kind in ("paper", "krylov")}
    paper, ours = (kinds[kind]["step ms"]["p50"] for kind in ("paper", "krylov"))
    figures = kinds | {"krylov, step p50 ms": beside(ours, paper, "paper")}
    patches = 'bodies.block.elements="tet4-patch"'
    plain = _in_turns(steps, (patches,), ('bodies.block.elements="tet4"',))
    figures |= {"tet4-patch on the probe, step p50 CPU ms": beside(*plain, "tet4")}
    for law, *more in (("neo-hookean",), ("fung", "bodies.block.material.exponent=2")):
        told = patches, f"bodies.block.material.law={law}", *more
        figures |= {
            f"{law} on the probe, step p50 CPU ms": beside(*_in_turns(steps, told, (patches,)), "linear")
        }
    if mujoco is not None:
        figures |= _dragged(steps)
    return figures | {"bare loop us": bare_loop_us()}


def _in_turns(steps: int, *told: tuple[str, ...]) -> tuple[float, float]:
    """A slow step of the shipped probe, pressed and dragged, as told in two ways by turns: medians of the
    processor's time [ms]."""
    scenes = [load_scene("probe", overrides) for overrides in told]
    runs = [LockStep(build_scene(scene), "krylov", durations=(TAKES,)) for scene in scenes]
    took = np.zeros((2, steps))
    try:
        for step in range(-PRESS - SETTLE, steps):
            for k, run in enumerate(runs):
                down = IN_PROBE * min(1.0, (step + PRESS + SETTLE + 1) / PRESS)
                aside = DRAG * np.sin(2.0 * np.pi * max(0, step) / STROKE)
                run.high.port.position[:] = scenes[k].device.path[0][1:]
                run.high.port.position[:2] += aside, -down
                whole, apart = _timed(run, time.process_time)
                if step >= 0:
                    took[k, step] = whole - apart
    finally:
        for run in runs:
            run.close()
    ours, plain = 1e3 * np.median(took, axis=1)
    return float(ours), float(plain)


def _dragged(steps: int) -> Figures:
    """A slow step of `krylov` while the ball is dragged, in turns with MuJoCo's steps of the same path."""
    spec = parse_scene(SCENE, "slow-step", ())
    run = LockStep(build_scene(spec), "krylov", durations=(TAKES,))
    try:
        body, material = run.scene.members[0].body, spec.bodies[0].material
        top = run.high.held.tool.x[0].copy()
        other = MujocoBlock(
            run.scene.numbers.dt, top, count="19 2 19", spacing="0.0025 0.03 0.0025", centre="0 -0.015 0",
            last=18, mass=body.mass, young=material.youngs_modulus, poisson=material.poisson_ratio,
            beta=run.scene.members[0].body.damping[1], mu=0.4, radius=0.025, ball_mass=0.03, stiffness=1000.0,
            damping=2.0,
        )  # fmt: skip
        ours, theirs, active = np.zeros(steps), np.zeros(steps), np.zeros(steps, int)
        for step in range(-PRESS - SETTLE, steps):
            hand = top.copy()
            hand[1] -= DEPTH * min(1.0, (step + PRESS + SETTLE + 1) / PRESS)
            hand[0] += DRAG * np.sin(2.0 * np.pi * max(0, step) / STROKE)
            run.high.port.position[:] = hand
            whole, apart = _timed(run, time.process_time)
            own = [other.step(hand) for _ in range(run.ratio)]
            if step >= 0:
                ours[step], theirs[step] = whole - apart, np.median(own)
                active[step] = _contacts(run)[1]
        dragged = {
            "step ms": distribution(ours, 1e3), "active contacts at high rate": _spread(active),
        }  # fmt: skip
        mine, its = float(np.median(ours)), float(np.median(theirs))
        return {
            "krylov, dragged": dragged,
            "MuJoCo, dragged": other.size() | {"step ms": distribution(theirs, 1e3), "sound": other.sound()},
            "krylov dragged, step p50 CPU ms": beside(1e3 * mine, 1e3 * its, "MuJoCo"),
        }
    finally:
        run.close()


def _timed(run: LockStep, clock: Callable[[], float]) -> tuple[float, float]:
    """A slow period: its time, and that of the ticks in it [s]."""
    apart = 0.0

    def ticks(span: int) -> None:
        nonlocal apart
        start = clock()
        _ticks(run, span)
        apart += clock() - start

    start = clock()
    run.advance(run.ratio, ticks)
    return clock() - start, apart


def _kind(kind: str, steps: int) -> Figures:
    run = LockStep(build_scene(parse_scene(SCENE, "slow-step", ())), kind)
    try:
        return _measure(run, steps)
    finally:
        run.close()


def _measure(run: LockStep, steps: int) -> Figures:
    port, top = run.high.port, run.high.held.tool.x[0].copy()
    port.position[:] = top
    for step in range(PRESS + SETTLE):
        port.position[1] = top[1] - DEPTH * min(1.0, (step + 1) / PRESS)
        run.advance(run.ratio, lambda span: _ticks(run, span))
    run.low.times.clear()
    whole, contacts, active = np.zeros(steps), np.zeros(steps, int), np.zeros(steps, int)
    for step in range(steps):
        both, apart = _timed(run, time.perf_counter)
        whole[step] = both - apart
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
    """Contacts that are rows of the kind's own problem, at slow rate where it has one; those under load."""
    high = run.low.proxy if isinstance(run.low, Paper) else run.high
    return int(high.engine.contacts.count[0]["found"]), int(run.high.port.status["contacts"][0])


def _spread(counts: NDArray[np.int_]) -> dict[str, Any]:
    return {"least": int(counts.min()), "median": int(np.median(counts))}
