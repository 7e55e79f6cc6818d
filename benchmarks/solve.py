"""The contact solvers against plain Gauss-Seidel: cold starts, one thread, the same residual.

The times of sweeps are the kernels' own, stop tests of `anderson` included; a solve from Python adds some
30 us. `portfolio` is timed as it is called, by its thread's processor, beside the interior point.
"""

import time
from pathlib import Path

import numpy as np

from palpo.benchmarks.contact_problems import brick_wall, pressed_block, soft_on_soft, squeezed_block
from palpo.benchmarks.timing import Figures, bare_loop_us, beside
from palpo.haptics.clock import make_scratch, now_ns
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.laws import scale_to_disc
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.residual import natural_map_residual
from palpo.physics.contact.solvers.anderson import CONVERGED, SWEEPS, advance, begin, make_acceleration
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.kernels import kernel

FRICTION = Path(__file__).resolve().parents[3] / "shared" / "data" / "friction"
"""Problems of others, timed too where they are."""

TOLERANCES = (1e-4, 1e-8)
PATIENCE_MS = 300.0
"""Time to repeat a solve for its median; three times at least."""

WHOLE, TURNS = ("portfolio", "interior-point"), 3
"""Solvers of whole problems that are timed beside the sweeps, and how often they take turns."""

MOST = 50_000
"""Sweeps after which a solve is given up."""


def problems(small: bool = False) -> dict[str, ContactProblem]:
    """The problems by name; `small` leaves out what takes long to make."""
    made = {
        "block under a plate, 36": pressed_block(5, 0.5),
        "brick pillar, 64, rank-deficient": brick_wall(16, 1, 0.7),
    }
    if small:
        return made
    made |= {
        "block under a plate, 64": pressed_block(7, 0.5),
        "block under a plate, 289": pressed_block(16, 0.5),
        "soft on soft, mu 0.5, 64": soft_on_soft(7, 0.5),
        "soft on soft, mu 2, 196": soft_on_soft(13, 2.0),
        "squeezed block, mu 0.5, 180": squeezed_block(9, 0.5),
        "squeezed block, mu 2, 180": squeezed_block(9, 2.0),
        "squeezed block, mu 1, 364": squeezed_block(13, 1.0),
        "brick wall, 156, rank-deficient": brick_wall(6, 4, 0.6),
        "brick tower, 188, rank-deficient": brick_wall(16, 2, 0.7),
        "brick wall, 332, rank-deficient": brick_wall(8, 6, 0.5),
    }
    read = {path.stem[:24]: read_problem(path) for path in sorted(FRICTION.glob("*.[nh][pd]*"))}
    return made | {name: problem for name, problem in read.items() if isinstance(problem, ContactProblem)}


def solve(small: bool = False) -> Figures:
    """Contact problems, easy and hard, to 1e-4 and 1e-8: `anderson` and whole solves beside plain sweeps."""
    return {name: _problem(held) for name, held in problems(small).items()} | {"bare loop us": bare_loop_us()}


def _problem(held: ContactProblem) -> Figures:
    w, b, mu = held.w, held.b, held.mu
    r, u, a = np.zeros_like(b), np.zeros_like(b), make_acceleration(held.n_contacts)
    scratch, figures = make_scratch(), {}
    for tolerance in TOLERANCES:
        sweeps = plain_sweeps(held, tolerance)
        plain = _median_ms(lambda ns, n=sweeps: time_plain(w, b, mu, r, u, n, ns, scratch))
        left = natural_map_residual(w, b, mu, r)
        ours = _median_ms(lambda ns, t=tolerance: time_anderson(w, b, mu, r, u, t, MOST, a, ns, scratch))
        figures[f"{tolerance:g}"] = {
            "plain": {"ms": plain, "sweeps": sweeps, "residual": left},
            "anderson": {
                "ms": ours,
                "sweeps": int(a.count[SWEEPS]),
                "residual": natural_map_residual(w, b, mu, r),
            },
            "anderson ms": beside(ours, plain, "plain sweeps"),
        }
        for name, found in _whole(held, tolerance).items():
            ratio = beside(found["ms"], plain, "plain sweeps")
            figures[f"{tolerance:g}"] |= {name: found, f"{name} ms": ratio}
    return figures


def _whole(held: ContactProblem, tolerance: float) -> dict[str, dict[str, float]]:
    """Least time, iterations and residual of the solvers of whole problems, which take turns."""
    found: dict[str, dict[str, float]] = {}
    for turn in range(TURNS + 1):
        for name in WHOLE:
            begun = time.thread_time()
            result = find_solver(name).solve(held, Stop(tolerance, MOST))
            spent = 1e3 * (time.thread_time() - begun)
            if turn > 0:  # the first may compile
                least = min(spent, found.get(name, {"ms": spent})["ms"])
                found[name] = {"ms": least, "iterations": result.iterations, "residual": result.residual}
    return found


def _median_ms(run) -> float:
    first = np.zeros(1, np.int64)
    run(first)  # compiles
    run(first)
    ns = np.zeros(int(np.clip(1e6 * PATIENCE_MS / first[0], 3, 300)), np.int64)
    run(ns)
    return float(np.median(ns)) * 1e-6


def plain_sweeps(held: ContactProblem, tolerance: float) -> int:
    """Sweeps, MOST at most, of plain Gauss-Seidel to that residual; it is timed without a stop test."""
    r, u = np.zeros_like(held.b), held.b.copy()
    for sweeps in range(1, MOST + 1):
        plain_sweep(held.w, held.mu, r, u)
        if natural_map_residual(held.w, held.b, held.mu, r) <= tolerance:
            return sweeps
    return MOST


@kernel
def plain_sweep(w, mu, r, u):
    """One sweep of block Gauss-Seidel with a projected step a contact; u = W r + b is kept."""
    for k in range(mu.shape[0]):
        i = 3 * k
        half = 0.5 * (w[i + 1, i + 1] + w[i + 2, i + 2])
        spread = (0.25 * (w[i + 1, i + 1] - w[i + 2, i + 2]) ** 2 + w[i + 1, i + 2] ** 2) ** 0.5
        r_n = max(0.0, r[i] - u[i] / w[i, i])
        d_n = r_n - r[i]
        t1 = r[i + 1] - (u[i + 1] + w[i + 1, i] * d_n) / (half + spread)
        t2 = r[i + 2] - (u[i + 2] + w[i + 2, i] * d_n) / (half + spread)
        scale = scale_to_disc(t1, t2, mu[k] * r_n)
        d1, d2 = scale * t1 - r[i + 1], scale * t2 - r[i + 2]
        if d_n != 0.0 or d1 != 0.0 or d2 != 0.0:
            r[i], r[i + 1], r[i + 2] = r_n, scale * t1, scale * t2
            row_n, row_1, row_2 = w[i], w[i + 1], w[i + 2]
            for c in range(u.shape[0]):
                u[c] += d_n * row_n[c] + d1 * row_1[c] + d2 * row_2[c]


@kernel
def time_plain(w, b, mu, r, u, sweeps, ns, scratch):
    """A cold plain solve of that many sweeps for each entry of ns, which gets its time [ns]."""
    for k in range(ns.shape[0]):
        start = now_ns(scratch)
        r[:] = 0.0
        u[:] = b
        for _ in range(sweeps):
            plain_sweep(w, mu, r, u)
        ns[k] = now_ns(scratch) - start


@kernel
def time_anderson(w, b, mu, r, u, tolerance, most, a, ns, scratch):
    """A cold solve to the tolerance for each entry of ns, which gets its time [ns]; whether all converged."""
    well = True
    for k in range(ns.shape[0]):
        start = now_ns(scratch)
        r[:] = 0.0
        begin(w, b, mu, r, u, 0, a)
        well &= advance(w, b, mu, r, u, 0, tolerance, np.inf, most, a) == CONVERGED
        ns[k] = now_ns(scratch) - start
    return well
