"""The contact solvers against plain Gauss-Seidel: cold starts, one thread, the same residual.

Plain sweeps keep u = W r + b up to date and pass over what does not move. Beside them stands nonsmooth
Gauss-Seidel as Siconos does it, which forms each contact's rows of W r + b anew and solves its local problem.
The times of sweeps are the kernels' own, stop tests of `anderson` included; a solve from Python adds some
30 us. `portfolio` is timed as it is called, by its thread's processor, beside the interior point.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palpo.benchmarks.contact_problems import (
    brick_wall,
    large_brick_wall,
    pressed_block,
    soft_on_soft,
    squeezed_block,
)
from palpo.benchmarks.timing import Figures, bare_loop_us, beside
from palpo.haptics.clock import make_scratch, now_ns
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.laws import natural_map_residual, scale_to_disc
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import anderson
from palpo.physics.contact.solvers.anderson import CONVERGED, advance, begin, make_acceleration
from palpo.physics.contact.solvers.products import dot
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.numerics.kernels import kernel
from palpo.studies.hapco_benches import PAIRS, sliding
from palpo.studies.hapco_contacts import build, problems_along, refined

FRICTION = Path(__file__).resolve().parents[3] / "shared" / "data" / "friction"
HARD = Path(__file__).resolve().parents[1] / "tests" / "contact" / "problems" / "hard"
"""Problems of others, and the tests' own hard ones, timed too where they are."""

REFINED, STEPS = 8, 8
"""Contacts along an edge of the refined tissue, and steps of its path: a problem each."""

WALLS = ((8, 6), (8, 20), (8, 60))
"""Courses, and bricks in each, of the walls whose W is kept sparse."""

TOLERANCES = (1e-4, 1e-8)
PATIENCE_MS = 300.0
"""Time to repeat a solve for its median; three times at least."""

WHOLE, TURNS = ("portfolio", "interior-point"), 3
"""Solvers of whole problems that are timed beside the sweeps, and how often they take turns."""

SWEPT = 100
"""Sweeps of which the time of one is taken."""

LOCAL, SETTLED = 50, 1e-10
"""Steps of a local problem at most, and how little its last one moves of the force."""

MOST, LONG = 50_000, 60.0
"""Sweeps after which a solve is given up, and time [s] after which that of a sparse wall is."""


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
    made |= {f"refined tissue, 64, step {k + 1}": held for k, held in enumerate(_refined())}
    files = [*sorted(FRICTION.glob("*.[nh][pd]*")), *sorted(HARD.glob("*.npz"))]
    read = {path.stem[:24]: read_problem(path) for path in files}
    return made | {name: problem for name, problem in read.items() if isinstance(problem, ContactProblem)}


def _refined() -> list[ContactProblem]:
    return problems_along(build(refined(REFINED), *PAIRS["tissue-tissue"]), sliding(10), STEPS)[0]


def solve(small: bool = False) -> Figures:
    """Contact problems, easy and hard, to 1e-4 and 1e-8: `anderson` and whole solves beside plain sweeps.

    Walls of bricks up to thousands of contacts follow, with W kept sparse.
    """
    figures: Figures = {name: _problem(held) for name, held in problems(small).items()}
    figures |= sparse_walls(WALLS[: 1 if small else None])
    return figures | {"bare loop us": bare_loop_us()}


def sparse_walls(sizes: Sequence[tuple[int, int]]) -> Figures:
    """Walls with W kept sparse: a sweep, by entries of W, and a whole solve to 1e-4 and 1e-8."""
    figures, first = {}, 0.0
    for courses, bricks in sizes:
        wall = large_brick_wall(courses, bricks, 0.5)
        spent = {}
        for count in (1, 1 + SWEPT):  # the first may compile; a solve's own cost cancels in the difference
            anderson.solve(wall, Stop(1e-15, count))
            begun = time.thread_time()
            anderson.solve(wall, Stop(1e-15, count))
            spent[count] = time.thread_time() - begun
        sweep = 1e6 * (spent[1 + SWEPT] - spent[1]) / SWEPT
        own: Figures = {
            "entries of W": int(wall.w.nnz),
            "sweep us": sweep,
        }
        first = first or 1e3 * sweep / wall.w.nnz
        own["sweep ns an entry"] = beside(1e3 * sweep / wall.w.nnz, first, "the smallest wall")
        for tolerance in TOLERANCES:
            begun = time.thread_time()
            result = find_solver("portfolio").solve(wall, Stop(tolerance, MOST, LONG))
            own[f"{tolerance:g}"] = {
                "ms": 1e3 * (time.thread_time() - begun),
                "iterations": result.iterations,
                "residual": result.residual,
            }
        figures[f"brick wall, {wall.n_contacts}, W sparse"] = own
    return figures


def _problem(held: ContactProblem) -> Figures:
    w, b, mu = held.w, held.b, held.mu
    r, u, a = np.zeros_like(b), np.zeros_like(b), make_acceleration(held.n_contacts)
    scratch, figures = make_scratch(), {}
    for tolerance in TOLERANCES:
        sweeps = plain_sweeps(held, tolerance)
        plain = _median_ms(lambda ns, n=sweeps: time_plain(w, b, mu, r, u, n, ns, scratch))
        left = natural_map_residual(w, b, mu, r)
        anew = plain_sweeps(held, tolerance, rows=True)
        rows = _least_ms(lambda n=anew: sweep_rows(w, b, mu, r, n))
        ours = _median_ms(lambda ns, t=tolerance: time_anderson(w, b, mu, r, u, t, MOST, a, ns, scratch))
        figures[f"{tolerance:g}"] = {
            "plain": {"ms": plain, "sweeps": sweeps, "residual": left},
            "anderson": {
                "ms": ours,
                "sweeps": a.state["sweeps"].item(),
                "residual": natural_map_residual(w, b, mu, r),
            },
            "anderson ms": beside(ours, plain, "plain sweeps"),
            "rows anew": {"ms": rows, "sweeps": anew},
        }
        for name, found in _whole(held, tolerance).items():
            ratio = beside(found["ms"], plain, "plain sweeps")
            figures[f"{tolerance:g}"] |= {name: found, f"{name} ms": ratio}
            if name == WHOLE[0]:
                figures[f"{tolerance:g}"][f"{name} ms, rows"] = beside(found["ms"], rows, "rows anew")
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


def _least_ms(run) -> float:
    """Least time of the thread's processor, as whole solves are timed."""
    spent = []
    for _ in range(TURNS + 1):  # the first may compile
        begun = time.thread_time()
        run()
        spent.append(1e3 * (time.thread_time() - begun))
    return min(spent[1:])


def _median_ms(run) -> float:
    first = np.zeros(1, np.int64)
    run(first)  # compiles
    run(first)
    ns = np.zeros(int(np.clip(1e6 * PATIENCE_MS / first[0], 3, 300)), np.int64)
    run(ns)
    return float(np.median(ns)) * 1e-6


def plain_sweeps(held: ContactProblem, tolerance: float, rows: bool = False) -> int:
    """Sweeps, MOST at most, of plain Gauss-Seidel to that residual; it is timed without a stop test.

    rows: of that which forms each contact's rows anew.
    """
    r, u = np.zeros_like(held.b), held.b.copy()
    for sweeps in range(1, MOST + 1):
        if rows:
            row_sweep(held.w, held.b, held.mu, r)
        else:
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
def row_sweep(w, b, mu, r):
    """One sweep of block Gauss-Seidel over the contacts' own rows of W r + b, each local problem solved."""
    for k in range(mu.shape[0]):
        i = 3 * k
        u_n, u_1, u_2 = b[i] + dot(w[i], r), b[i + 1] + dot(w[i + 1], r), b[i + 2] + dot(w[i + 2], r)
        half = 0.5 * (w[i + 1, i + 1] + w[i + 2, i + 2])
        spread = (0.25 * (w[i + 1, i + 1] - w[i + 2, i + 2]) ** 2 + w[i + 1, i + 2] ** 2) ** 0.5
        for _ in range(LOCAL):
            r_n = max(0.0, r[i] - u_n / w[i, i])
            d_n = r_n - r[i]
            t1 = r[i + 1] - (u_1 + w[i + 1, i] * d_n) / (half + spread)
            t2 = r[i + 2] - (u_2 + w[i + 2, i] * d_n) / (half + spread)
            scale = scale_to_disc(t1, t2, mu[k] * r_n)
            d1, d2 = scale * t1 - r[i + 1], scale * t2 - r[i + 2]
            r[i], r[i + 1], r[i + 2] = r_n, scale * t1, scale * t2
            if d_n * d_n + d1 * d1 + d2 * d2 <= SETTLED * SETTLED * (
                r_n * r_n + r[i + 1] ** 2 + r[i + 2] ** 2
            ):
                break
            u_n += w[i, i] * d_n + w[i, i + 1] * d1 + w[i, i + 2] * d2
            u_1 += w[i + 1, i] * d_n + w[i + 1, i + 1] * d1 + w[i + 1, i + 2] * d2
            u_2 += w[i + 2, i] * d_n + w[i + 2, i + 1] * d1 + w[i + 2, i + 2] * d2


@kernel
def sweep_rows(w, b, mu, r, sweeps):
    """A cold solve of that many sweeps over rows."""
    r[:] = 0.0
    for _ in range(sweeps):
        row_sweep(w, b, mu, r)


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
