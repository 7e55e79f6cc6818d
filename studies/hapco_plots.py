"""The figures of `palpo study hapco-solvers`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from palpo.studies.hapco_thesis import SYMBOLS
from palpo.studies.rows import Row, pick
from palpo.studies.tables import COLOURS, save_figure

Data = Mapping[str, Sequence[Row]]

STYLES = {
    "GB": ("#2f6fc0", "-"),
    "L": ("#2f6fc0", (0, (4, 2))),
    "LS": ("#2f6fc0", (0, (1, 1.5))),
    "G*B": ("#d64550", "-"),
    "L*": ("#d64550", (0, (4, 2))),
    "LS*": ("#d64550", (0, (1, 1.5))),
    "G*B'": ("#3f9b57", "-"),
    "best": ("#263242", "-"),
    "G*P": ("#e08a2e", "-"),
    "G*P'": ("#8b6fc0", "-"),
}
"""Colour by rho, stroke by reach: whole once a visit, dashed (3.6), dotted (3.7)."""

BLUES = ("#a9c8ec", "#6b9fdb", "#2f6fc0", "#173d70")
"""From low to high friction."""

LABELS = {
    "GB": "GB, rho_min", "L": "L, rho_min", "LS": "LS, rho_min", "G*B": "G*B as printed",
    "L*": "L* as printed", "LS*": "LS* as printed", "G*B'": "G*B' metric-correct",
    "best": "portfolio (ours), at 1e-8", "G*P": "G*P, printed sign", "G*P'": "G*P', right sign",
}  # fmt: skip


def draw_all(out: Path, data: Data) -> None:
    """Seven PNG files."""
    for name, height, draw in (
        ("times", 7.2, _times),
        ("deviations", 7.2, _deviations),
        ("forces", 6.2, _forces),
        ("statuses", 6.6, _statuses),
        ("formulations", 5.6, _formulations),
        ("factors", 6.6, _factors),
        ("convergence", 8.4, _convergence),
    ):
        save_figure(out / f"{name}.png", height, partial(draw, data=data))


def _panels(
    figure: Figure, data: Data, fill: Callable[[Axes, str, str], None], under: str, **grid: Any
) -> list[Axes]:
    """One panel for each pair of materials and path, filled; `under` names the abscissa."""
    pairs, paths = (list(dict.fromkeys(row[key] for row in data["paths"])) for key in ("pair", "path"))
    axes = figure.subplots(len(pairs), len(paths), squeeze=False, **grid)
    for line, pair in zip(axes, pairs, strict=True):
        for ax, path in zip(line, paths, strict=True):
            ax.set_title(f"{pair}, {path}", loc="left", fontsize=9.5)
            fill(ax, pair, path)
    for ax in axes[-1]:
        ax.set_xlabel(under, fontsize=9)
    return list(axes.ravel())


def _legend_below(figure: Figure, ax: Axes, columns: int = 4) -> None:
    figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=8.5,
    )


def _times(figure: Figure, data: Data) -> None:
    """Tables 3.36 to 3.41 as curves."""

    def fill(ax: Axes, pair: str, path: str) -> None:
        for symbol in (*SYMBOLS, "G*B'", "best"):
            stop = "tight" if symbol == "best" else "printed"
            rows = pick(data["solvers"], symbol=symbol, stop=stop, pair=pair, path=path)
            colour, stroke = STYLES[symbol]
            mu, ms = ([row[key] for row in rows] for key in ("mu", "mean_time_ms"))
            ax.plot(mu, ms, color=colour, ls=stroke, lw=1.3, label=LABELS[symbol])
            for kept in (True, False):
                own = [row for row in rows if (row["failed"] == 0) == kept]
                ax.plot([r["mu"] for r in own], [r["mean_time_ms"] for r in own], ls="", color=colour,
                        marker="o" if kept else "x", ms=3.5 if kept else 6.0)  # fmt: skip
        ax.set_yscale("log")

    axes = _panels(figure, data, fill, "friction coefficient", sharex=True, sharey=True)
    axes[-1].plot([], [], ls="", marker="x", ms=6, color=COLOURS["faint"], label="a step does not converge")
    figure.supylabel("mean time of a solve [ms], |dr| ≤ 1e-4 |r|", fontsize=9)
    _legend_below(figure, axes[-1], 5)


def _deviations(figure: Figure, data: Data) -> None:
    """Figures 3.21, 3.23, 3.25, 3.28, 3.31 and 3.34."""

    def fill(ax: Axes, pair: str, path: str) -> None:
        for symbol in (*SYMBOLS, "G*B'"):
            rows = pick(data["steps"], symbol=symbol, stop="printed", pair=pair, path=path, mu=0.3)
            colour, stroke = STYLES[symbol]
            ax.plot([r["step"] for r in rows], [max(r["deviation_percent"], 1e-3) for r in rows],
                    color=colour, ls=stroke, lw=1.2, label=LABELS[symbol])  # fmt: skip
        ax.set_yscale("log")

    axes = _panels(figure, data, fill, "step of 0.1 cm", sharey=True)
    figure.supylabel("deviation from the solution at 1e-12 [%], mu = 0.3, |dr| ≤ 1e-4 |r|", fontsize=9)
    _legend_below(figure, axes[0])


def _forces(figure: Figure, data: Data) -> None:
    """Figures 3.6, 3.10, 3.26, 3.29, 3.32, 3.35 and 3.42."""

    def fill(ax: Axes, pair: str, path: str) -> None:
        rows = pick(data["paths"], pair=pair, path=path)
        mus = list(dict.fromkeys(row["mu"] for row in rows))
        for colour, mu in zip(BLUES[-len(mus) :], mus, strict=True):
            own = pick(rows, mu=mu)
            ax.plot([r["step"] for r in own], [r["force_norm_N"] for r in own], color=colour, marker=".",
                    ms=4, lw=1.2, label=f"mu = {mu:g}")  # fmt: skip
        ax.set_ylim(bottom=0.0)

    axes = _panels(figure, data, fill, "step of 0.1 cm")
    figure.supylabel("norm of the contact force, reference [N]", fontsize=9)
    _legend_below(figure, axes[0])


def _statuses(figure: Figure, data: Data) -> None:
    """Figures 3.8, 3.12 and 3.18: the reference's, and what G*B as printed makes of it."""

    def fill(ax: Axes, pair: str, path: str) -> None:
        exact = pick(data["paths"], pair=pair, path=path, mu=0.3)
        star = pick(data["steps"], symbol="G*B", stop="tight", pair=pair, path=path, mu=0.3)
        for key, name, colour in (("slip", "sliding", "#d64550"), ("stick", "sticking", "#2f6fc0")):
            ax.plot([r["step"] for r in exact], [r[key] for r in exact], color=colour, lw=1.6,
                    label=f"{name}, solution", drawstyle="steps-mid")  # fmt: skip
            ax.plot([r["step"] for r in star], [r[key] for r in star], color=colour, ls="", marker="o", ms=4,
                    mfc="none", label=f"{name}, G*B as printed")  # fmt: skip

    axes = _panels(figure, data, fill, "step of 0.1 cm", sharey=True)
    axes[0].set_ylim(-1, 37)
    figure.supylabel("contacts of 36, mu = 0.3", fontsize=9)
    _legend_below(figure, axes[0])


def _formulations(figure: Figure, data: Data) -> None:
    """Figures 3.4, 3.5, 3.7, 3.9 and 3.11."""
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for k, (contacts, path) in enumerate(((16, "penetration"), (36, "sliding"))):
        for symbol in dict.fromkeys(row["symbol"] for row in data["formulations"]):
            rows = pick(data["formulations"], symbol=symbol, contacts=contacts)
            colour, stroke = STYLES[symbol]
            for ax, key in ((axes[0, k], "iterations"), (axes[1, k], "deviation_percent")):
                ax.plot([r["step"] for r in rows], [max(r[key], 1e-6) for r in rows], color=colour, ls=stroke,
                        lw=1.3, marker=".", ms=4, label=LABELS[symbol])  # fmt: skip
                ax.set_yscale("log")
        axes[0, k].set_title(
            f"aluminium-tissue, {path}, {contacts} contacts, mu = 0.3", loc="left", fontsize=9.5
        )
        axes[1, k].set_xlabel("step of 0.1 cm")
    axes[0, 0].axhline(10000, color=COLOURS["faint"], lw=0.9, ls=":")
    axes[0, 1].axhline(10000, color=COLOURS["faint"], lw=0.9, ls=":")
    axes[0, 0].set_ylabel("sweeps to |dr| ≤ 1e-8 |r|")
    axes[1, 0].set_ylabel("deviation from the solution [%]")
    _legend_below(figure, axes[0, 0], 5)


def _factors(figure: Figure, data: Data) -> None:
    """Figures 3.13 and 3.14, table 3.19."""

    def fill(ax: Axes, pair: str, path: str) -> None:
        for symbol in dict.fromkeys(row["symbol"] for row in data["factors"]):
            rows = pick(data["factors"], symbol=symbol, pair=pair, path=path)
            factors = sorted({row["factor"] for row in rows})
            own = [pick(rows, factor=factor) for factor in factors]
            sweeps = [float(np.mean([r["iterations"] for r in some])) for some in own]
            colour, stroke = STYLES[symbol]
            ax.plot(factors, sweeps, color=colour, ls=stroke, lw=1.3, label=LABELS[symbol])
            for kept in (True, False):
                at = [k for k, some in enumerate(own) if all(r["met"] for r in some) == kept]
                ax.plot([factors[k] for k in at], [sweeps[k] for k in at], ls="", color=colour,
                        marker="o" if kept else "x", ms=3.5 if kept else 6.5)  # fmt: skip
        ax.set(xscale="log", yscale="log")
        ax.set_xticks([0.5, 1, 1.5, 2, 3, 4], ["1/2", "1", "1.5", "2", "3", "4"])
        ax.minorticks_off()

    axes = _panels(figure, data, fill, "factor on rho", sharex=True, sharey=True)
    axes[0].plot([], [], ls="", marker="x", ms=6, color=COLOURS["faint"], label="a step does not converge")
    figure.supylabel("mean sweeps to |dr| ≤ 1e-8 |r|, at most 10000, mu = 0.3", fontsize=9)
    _legend_below(figure, axes[0])


def _convergence(figure: Figure, data: Data) -> None:
    """Every solver on every path: how many steps end at the tight stop."""
    rows = pick(data["solvers"], stop="tight")
    solvers = list(dict.fromkeys(row["solver"] for row in rows))
    places = list(dict.fromkeys((row["pair"], row["path"], row["mu"]) for row in rows))
    share = np.full((len(solvers), len(places)), np.nan)
    for row in rows:
        kept = 1.0 - row["failed"] / row["steps"]
        share[solvers.index(row["solver"]), places.index((row["pair"], row["path"], row["mu"]))] = kept
    ax = figure.subplots()
    colours = ListedColormap(["#d64550", "#eba0a5", "#f4d7a8", "#bcdcc4", "#3f9b57"])
    ax.pcolormesh(share, cmap=colours, vmin=0.0, vmax=1.0, edgecolors="white", lw=0.6)
    for i, j in np.argwhere((share > 0.0) & (share < 1.0)):
        ax.text(j + 0.5, i + 0.5, f"{100 * share[i, j]:.0f}", ha="center", va="center", fontsize=7)
    stars = {row["solver"] for row in rows if not row["consistent"]}
    ax.set_yticks(np.arange(len(solvers)) + 0.5, [f"{s} †" if s in stars else s for s in solvers], fontsize=8)
    ax.set_xticks(np.arange(len(places)) + 0.5, [f"{mu:g}" for _, _, mu in places], fontsize=8)
    for pair, path in dict.fromkeys((pair, path) for pair, path, _ in places):
        own = [k for k, place in enumerate(places) if place[:2] == (pair, path)]
        ax.text(
            float(np.mean(own)) + 0.5,
            -0.2,
            "\n".join((*pair.split("-"), path)),
            ha="center",
            va="bottom",
            fontsize=8,
        )
        ax.axvline(own[0], color=COLOURS["monolithic"], lw=0.8)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.set_xlabel("friction coefficient")
    figure.supxlabel(
        "per cent of the steps that end at the tight stop; without a number green is all, red none.   "
        "† not consistent: ends at a force that is not the solution",
        fontsize=8.5,
    )
