"""Contact forces with and without the Delassus operator (N. Talbi, thesis, "001", sections 4.2 and 4.3).

Figures 4.4 to 4.12 and tables 4.13 and 4.14: Uzawa global, bi-potential, mu 0.3, eps_GS 1e-4, on the bench of
figure 4.3, once on W and once on bodies that are asked for displacements at the contact points. As in 001,
the time with W is that of W, of the free offsets and of the solve; the time without it holds everything that
its solver asks. Times are the thread's own CPU time, the least of a few.

Then what 001 could not do or only said: the step rho from the bodies alone, Jacobi's order, bodies solved by
conjugate gradients, and figure 4.17, a bar that its weight lays on a liver, which needs ../shared/data.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.physics.bodies.boundary import add_delassus, gather_scratch
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.laws import SLIP, STICK, natural_map_residual
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.family import uzawa
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most, greatest
from palpo.studies.force_errors import deviation
from palpo.studies.hapco_benches import PAIRS, lead, make_interaction, penetration, sliding
from palpo.studies.hapco_liver import LOWERED, compare_on_liver
from palpo.studies.reference import without_delassus
from palpo.studies.reference.conjugate_gradient_body import ConjugateGradientBody
from palpo.studies.reference.interaction import Interaction, StepResult
from palpo.studies.reference.unassembled import UnassembledProblem
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS, save_figure, write_csv

BENCH_NAMES = {36: "delassus", 16: "delassus-16"}
PATHS = {"penetration": penetration(5), "sliding": sliding(20, depth=2)}
"""001's paths; its sliding is at a depth of 2 cm in a block of 1.5 cm, here 0.2 cm."""

EPS_GS = 1e-4
THESIS_STOP: Row = {"outer": ("relative", EPS_GS)}
MOST = Stop(EPS_GS, 50_000)
"""To which rhos and orders are compared."""
LOOSE = 1e-3
"""Residual where each sweep is two solves by conjugate gradients."""
LEADING = Stop(1e-8, 20_000)
"""To which the equilibria of a path are solved."""
REPEATS = 3

PRINTED = {
    (36, "aluminium-tissue"): (28.8, 95.28),
    (36, "aluminium-rubber"): (9.28, 28.88),
    (36, "tissue-tissue"): (9.04, 27.56),
    (16, "aluminium-tissue"): (3.16, 9.88),
    (16, "aluminium-rubber"): (2.16, 6.4),
    (16, "tissue-tissue"): (1.84, 5.72),
}
"""Tables 4.13 and 4.14: time of the contact forces with W and without [ms]."""


def run(out: Path, quick: bool) -> list[Line]:
    """All pairs and numbers of contacts; then rho, Jacobi and conjugate gradients; then the liver."""
    pairs = list(PAIRS)[2:] if quick else list(PAIRS)
    steps = [row for pair in pairs for row in _compared(pair, 4 if quick else 1)]
    variants = [row for pair in pairs for row in _variants(pair, quick)]
    means = _means(steps)
    write_csv(out / "steps.csv", steps)
    write_csv(out / "means.csv", means)
    write_csv(out / "variants.csv", variants)
    save_figure(out / "delassus.png", 7.0, lambda figure: _draw(figure, steps, pairs))
    _print(means)
    return [
        *_claims(steps, means),
        *_variant_claims(variants),
        *compare_on_liver(out, LOWERED[:1] if quick else LOWERED),
    ]


# ---- with and without, step by step


def unassembled(interaction: Interaction, step: StepResult, *bodies: Any) -> UnassembledProblem:
    """A step's contact problem, on the bodies themselves or on others in their place, from no force."""
    assert isinstance(step.problem, ContactProblem)
    one, two = interaction.mobile, interaction.fixed
    gap = step.problem.b.copy()
    for body, H in zip((one, two), step.maps, strict=True):
        assert isinstance(body, QuasistaticBody)
        gap -= H.rows(body.free_displacement(H.points))
    pair: Any = bodies or (one, two)
    return UnassembledProblem(pair, step.maps, gap, step.problem.mu)


def assembled(problem: UnassembledProblem) -> ContactProblem:
    """W = H1 K1^-1 H1^T + H2 K2^-1 H2^T, gathered from the boundary inverses, and the free offsets (4.1)."""
    n = len(problem.mu)
    w, b, order = np.zeros((3 * n, 3 * n)), problem.gap.copy(), np.arange(n, dtype=np.int32)
    for body, H in zip(problem.bodies, problem.maps, strict=True):
        assert isinstance(body, QuasistaticBody)
        scratch = gather_scratch(body.surface_nodes.size, n)
        slots, axes = body.slot[H.nodes], H.axes @ body.rotation
        add_delassus(body.boundary.compliance, n, order, slots, H.weights, axes, scratch, w)
        b += H.rows(body.free_displacement(H.points))
    return ContactProblem(w, b, problem.mu)


def _with_w(problem: UnassembledProblem) -> ContactResult:
    return uzawa(assembled(problem), Stop(EPS_GS), **THESIS_STOP)


def _without_w(problem: UnassembledProblem) -> ContactResult:
    # a copy: what a problem remembers of its bodies belongs to the time
    return without_delassus.solve(replace(problem), Stop(EPS_GS), **THESIS_STOP)


def _cpu_ms(
    work: Callable[[UnassembledProblem], ContactResult], problem: UnassembledProblem
) -> tuple[ContactResult, float]:
    """What it gives, and the least CPU time of a few calls [ms]."""
    least = np.inf
    for _ in range(REPEATS):
        began = thread_time()
        given = work(problem)
        least = min(least, thread_time() - began)
    return given, 1e3 * least


def _steps(pair: str, bench: str, path: str, every: int) -> Iterator[tuple[int, Interaction, StepResult]]:
    """Equilibria along a path, every so many of them; their anchors are those of all."""
    interaction = make_interaction(bench, *PAIRS[pair], stop=LEADING)
    for k, displacement in enumerate(PATHS[path]):
        step = lead(interaction, displacement)
        if k % every == 0:
            yield k + 1, interaction, step


def _compared(pair: str, every: int) -> list[Row]:
    rows = []
    for contacts, bench in BENCH_NAMES.items():
        for path in PATHS:
            for k, interaction, step in _steps(pair, bench, path, every):
                problem = unassembled(interaction, step)
                (one, with_ms), (other, without_ms) = _cpu_ms(_with_w, problem), _cpu_ms(_without_w, problem)
                rows.append(
                    {
                        "pair": pair,
                        "contacts": contacts,
                        "path": path,
                        "step": k,
                        "off_percent": deviation(other.r, one.r),
                        "same_status": bool((other.status == one.status).all()),
                        "sweeps_with": one.iterations,
                        "sweeps_without": other.iterations,
                        "sliding": int((one.status == SLIP).sum()),
                        "sticking": int((one.status == STICK).sum()),
                        "force_N": float(np.linalg.norm(one.r)),
                        "with_ms": with_ms,
                        "without_ms": without_ms,
                        "displacements_ms": 1e3 * step.times.update,
                    }
                )
    return rows


def _means(steps: list[Row]) -> list[Row]:
    """Tables 4.13 and 4.14."""
    rows = []
    for contacts, pair in dict.fromkeys((r["contacts"], r["pair"]) for r in steps):
        own = [r for r in steps if (r["contacts"], r["pair"]) == (contacts, pair)]
        means = {
            key: float(np.mean([r[key] for r in own]))
            for key in ("with_ms", "without_ms", "displacements_ms", "sweeps_with")
        }
        printed = PRINTED[contacts, pair]
        rows.append(
            {"contacts": contacts, "pair": pair}
            | means
            | {
                "ratio": means["without_ms"] / means["with_ms"],
                "printed_with_ms": printed[0],
                "printed_without_ms": printed[1],
                "printed_ratio": printed[1] / printed[0],
            }
        )
    return rows


def _print(means: list[Row]) -> None:
    table = Table(
        title="001, tables 4.13 and 4.14: mean times in ms (and those that it prints)", title_justify="left"
    )
    for name in ("contacts", "pair", "R with W", "R without", "ratio", "U", "sweeps"):
        table.add_column(name, justify="left" if name == "pair" else "right")
    for r in means:
        table.add_row(
            str(r["contacts"]), r["pair"],
            f"{r['with_ms']:.3f} ({r['printed_with_ms']:g})",
            f"{r['without_ms']:.3f} ({r['printed_without_ms']:g})",
            f"{r['ratio']:.1f} ({r['printed_ratio']:.1f})",
            f"{r['displacements_ms']:.3f}", f"{r['sweeps_with']:.0f}",
        )  # fmt: skip
    Console().print(table)


def _claims(steps: list[Row], means: list[Row]) -> list[Claim]:
    apart = greatest(abs(r["sweeps_with"] - r["sweeps_without"]) for r in steps)
    source = "001, section 4.2.2: no difference"
    claims = [
        at_most(f"forces with and without W, greatest deviation of {len(steps)} steps (4.4)",
                greatest(r["off_percent"] for r in steps), 1e-8, "%", source),
        at_most("sweeps with and without W, greatest difference", apart, 1, "", source),
        at_most("steps with other statuses without W", sum(not r["same_status"] for r in steps), 0, "",
                source),
    ]  # fmt: skip
    claims += [
        Claim(f"{r['contacts']} contacts, {r['pair']}: time of the forces without W over with it", r["ratio"],
              "", f"{r['printed_ratio']:.1f} (001, tables 4.13 and 4.14), within a factor of 2",
              0.5 <= r["ratio"] / r["printed_ratio"] <= 2.0)
        for r in means
    ]  # fmt: skip
    return claims


# ---- rho from the bodies, Jacobi, conjugate gradients


def _variants(pair: str, quick: bool) -> list[Row]:
    """The last step of each path under every rho and order; conjugate gradients at 16 contacts."""
    rows: list[Row] = []
    for contacts, bench in BENCH_NAMES.items():
        for path in list(PATHS)[:1] if quick else PATHS:
            *_, (_, interaction, step) = _steps(pair, bench, path, 1)
            problem = unassembled(interaction, step)
            where = {"pair": pair, "contacts": contacts, "path": path}
            assert isinstance(step.problem, ContactProblem)
            right = uzawa(replace(step.problem, warm=None), Stop(1e-12, 200_000)).r
            for order, rho in (
                ("gauss-seidel", "rho_min"), ("gauss-seidel", "series"), ("gauss-seidel", "lesser"),
                ("jacobi", "lambda_max"), ("jacobi", "rho_min"),
            ):  # fmt: skip
                found = without_delassus.solve(problem, MOST, order=order, rho=rho)
                rows.append(where | _judged("K^-1", order, rho, found, step.problem, right))
            if contacts == 16:
                found = _by_conjugate_gradients(interaction, step)
                rows.append(where | _judged("CG", "jacobi", "lambda_max", found, step.problem, right))
    return rows


def _by_conjugate_gradients(interaction: Interaction, step: StepResult) -> ContactResult:
    """001's algorithm 4.1: the bodies solve iteratively, and all contacts answer one x."""
    bodies = []
    for body in (interaction.mobile, interaction.fixed):
        twin = ConjugateGradientBody(
            body.name, body.mesh, body.material, body.clamped, body.gravity, tolerance=1e-8
        )
        twin.place(body.position, (1.0, 0.0, 0.0, 0.0))
        bodies.append(twin)
    problem = unassembled(interaction, step, *bodies)
    return without_delassus.solve(problem, replace(MOST, tolerance=LOOSE), order="jacobi")


def _judged(
    bodies: str, order: str, rho: str, found: ContactResult, problem: ContactProblem, right: NDArray
) -> Row:
    return {
        "bodies": bodies,
        "order": order,
        "rho": rho,
        "ended": found.reason,
        "sweeps": found.iterations,
        "cpu_s": found.seconds,
        "residual_said": found.residual,
        "residual_by_w": natural_map_residual(problem.w, problem.b, problem.mu, found.r),
        "off_percent": deviation(found.r, right),
    }


def _variant_claims(rows: list[Row]) -> list[Line]:
    def pick(**keys: str) -> list[Row]:
        return [r for r in rows if all(r[key] == value for key, value in keys.items())]

    least, series = pick(rho="rho_min", order="gauss-seidel"), pick(rho="series")
    slower = greatest(b["sweeps"] / a["sweeps"] for a, b in zip(least, series, strict=True))
    jacobi, diverging, cg = (
        pick(bodies="K^-1", rho="lambda_max"), pick(order="jacobi", rho="rho_min"), pick(bodies="CG"),
    )  # fmt: skip
    lesser = pick(rho="lesser")
    failed = sum(r["ended"] != "converged" for r in lesser)
    gain = float(np.median([a["sweeps"] / b["sweeps"] for a, b in zip(series, lesser, strict=True)]))
    return [
        at_most("rho from the bodies in series: sweeps over those with the rho_min of W, most", slower, 2.0,
                "", "the sum of the softest rows is at most twice the softest row of the sum"),
        at_most(f"rho from the bodies in series: solves of {len(series)} that do not converge",
                sum(r["ended"] != "converged" for r in series), 0, "", "rho <= rho_min"),
        Reported(f"001's min(rho_1, rho_2): solves of {len(lesser)} that do not converge", failed, "",
                 "twice too much for equal bodies"),
        Reported("001's min(rho_1, rho_2): sweeps in series over sweeps with it, median", gain, "",
                 "a factor on rho up to 2.2 pays (001, section 3.5)"),
        at_most("Jacobi, 1 / lambda_max: worst residual, by W", greatest(r["residual_by_w"] for r in jacobi),
                1.01 * EPS_GS, "", "its stop, and what offsets differ by between W and the bodies"),
        at_least(f"Jacobi, rho_min: share of {len(diverging)} that does not converge",
                 float(np.mean([r["ended"] != "converged" for r in diverging])), 1.0, "",
                 "it needs rho < 2 / lambda_max"),
        at_most("conjugate gradients, Jacobi: worst residual, by W", greatest(r["residual_by_w"] for r in cg),
                1.01 * LOOSE, "", "its stop"),
        Reported("conjugate gradients, Jacobi: greatest deviation of the forces",
                 max(r["off_percent"] for r in cg), "%", f"at a residual of {LOOSE:g}"),
    ]  # fmt: skip


# ---- the pictures


def _draw(figure: Figure, steps: list[Row], pairs: list[str]) -> None:
    """Figures 4.4 to 4.12 at 36 contacts: times, statuses and force over the steps, a column a pair."""
    axes = figure.subplots(3, len(pairs), sharex=True, sharey="row", squeeze=False)
    for column, pair in enumerate(pairs):
        for path, style in (("penetration", (0, (3, 2))), ("sliding", "-")):
            own = [r for r in steps if (r["pair"], r["path"], r["contacts"]) == (pair, path, 36)]
            k = [r["step"] for r in own]
            time, status, force = axes[:, column]
            for key, colour, name in (
                ("without_ms", COLOURS["paper"], "without W"), ("with_ms", COLOURS["krylov"], "with W"),
            ):  # fmt: skip
                time.plot(k, [r[key] for r in own], color=colour, lw=1.2, ls=style, label=f"{name}, {path}")
            for key, colour in (("sliding", COLOURS["extrapolated"]), ("sticking", COLOURS["low"])):
                status.plot(k, [r[key] for r in own], color=colour, lw=1.2, ls=style, label=f"{key}, {path}")
            force.plot(
                k, [r["force_N"] for r in own], color=COLOURS["monolithic"], lw=1.2, ls=style, label=path
            )
        axes[0, column].set(title=pair.replace("-", " on "), yscale="log")
        axes[2, column].set(xlabel="step", yscale="log")
    for ax, label in zip(
        axes[:, 0], ("time of the forces [ms]", "contacts", "norm of the forces [N]"), strict=True
    ):
        ax.set_ylabel(label)
        ax.legend(frameon=False, fontsize=7)
    axes[1, 0].set_ylim(-1, 37)
