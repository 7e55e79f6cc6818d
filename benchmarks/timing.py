"""What the benchmarks share: compiled stopwatches, a bare loop to compare machines by, verdicts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.outcome import distribution
from palpo.haptics.clock import make_scratch, now_ns
from palpo.physics.contract.links import BOOK, FRAME, TELL
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.equilibrium import equilibrium
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.servo import aim, ask_links, feedback, lead_hands, tick
from palpo.physics.engine.tick import begin, close, find
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.kernels import inlined, kernel

STAGES = (
    "aim", "take frames", "free motion", "find", "violation", "compliance and solve", "end", "feedback",
    "publish",
)  # fmt: skip

SIZE = 64
"""Edge of the bare loop's matrix: 32 kB, which any first-level cache nearly holds."""

BARE = "bare loop"
"""Whose time `bare_loop_us` is."""

Figures = dict[str, Any]


@kernel
def time_ticks(s, ns, scratch):
    """Ticks, one for each entry of ns, which gets its time [ns]; returns how many were well."""
    for i in range(ns.shape[0]):
        start = now_ns(scratch)
        if tick(s) != OK:
            return i
        ns[i] = now_ns(scratch) - start
    return ns.shape[0]


@kernel
def time_stages(s, ns, scratch):
    """Ticks with a clock after each stage, times [ns] into ns (ticks, len(STAGES)); how many were well.

    The same functions as in the engine's tick and step, of one step a tick and one round of detection.
    """
    e = s.engine
    for i in range(ns.shape[0]):
        at, now = ns[i], now_ns(scratch)
        aim(s)
        lead_hands(s, True)
        now = lap(at, 0, now, scratch)
        well = ask_links(s, FRAME) == DONE
        now = lap(at, 1, now, scratch)
        well = well and begin(e) == DONE
        now = lap(at, 2, now, scratch)
        well = well and find(e) == DONE
        now = lap(at, 3, now, scratch)
        well = well and free_motion(e) == DONE
        now = lap(at, 4, now, scratch)
        well = well and equilibrium(e) == DONE
        now = lap(at, 5, now, scratch)
        well = well and close(e) == DONE and ask_links(s, BOOK) == DONE
        now = lap(at, 6, now, scratch)
        if not well or feedback(s) != DONE:
            return i
        now = lap(at, 7, now, scratch)
        s.ticks[0].done += 1
        ask_links(s, TELL)
        lap(at, 8, now, scratch)
    return ns.shape[0]


@inlined
def lap(at, stage, before, scratch):
    """Book the time since `before` as that stage's [ns]; returns the time now."""
    now = now_ns(scratch)
    at[stage] = now - before
    return now


@inlined
def add_lap(at, stage, before, scratch):
    """Add the time since `before` to that stage's [ns]; returns the time now."""
    now = now_ns(scratch)
    at[stage] += now - before
    return now


@kernel
def _bare_loop(a, x, y, ns, scratch):
    """y = a x, SIZE^2 multiplications and additions in plain loops, once for each entry of ns."""
    for k in range(ns.shape[0]):
        start = now_ns(scratch)
        for i in range(a.shape[0]):
            total = 0.0
            for j in range(a.shape[1]):
                total += a[i, j] * x[j]
            y[i] = total
        ns[k] = now_ns(scratch) - start


def bare_loop_us(n: int = 4000) -> Figures:
    """Times of a product of a 64 x 64 matrix and a vector [us]: 8192 flops, whatever the machine."""
    generator = np.random.default_rng(0)
    ns = np.zeros(n, np.int64)
    matrix, x = generator.random((SIZE, SIZE)), generator.random(SIZE)
    _bare_loop(matrix, x, np.zeros(SIZE), ns[:1], make_scratch())
    _bare_loop(matrix, x, np.zeros(SIZE), ns, make_scratch())
    return {"flops": 2 * SIZE**2} | microseconds(ns)


def microseconds(ns: NDArray[np.int64]) -> Figures:
    """Percentiles of times in nanoseconds [us]."""
    return dict(distribution(ns.astype(np.float64), 1e-3))


def well_timed(kernel: Any, handle: Handle, ns: NDArray[np.int64]) -> None:
    """Run a timing kernel over all of ns; RuntimeError where a tick failed."""
    if (done := kernel(handle, ns, make_scratch())) < len(ns):
        raise RuntimeError(f"the tick failed after {done} of {len(ns)} timed ticks")


def within(value: float, limit: float) -> Figures:
    """A figure beside its target, and whether it is met."""
    return {"ours": value, "at most": limit, "ratio": _ratio(value, limit), "met": bool(value <= limit)}


def beside(ours: float, other: float, whose: str) -> Figures:
    """A figure beside somebody else's, in the same unit; `whose` says to people what the other one is."""
    return {"ours": ours, "other": other, "ratio": _ratio(ours, other), "whose": whose}


def _ratio(ours: float, other: float) -> float:
    return ours / other if other else np.nan
