"""Figures 6 to 9 of the paper of 2008, redrawn."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palpo.studies.hapco_2008_steps import (
    CLAMPS,
    KINDS,
    METHODS,
    PRINTED,
)
from palpo.studies.hapco_benches import LEGS_2008
from palpo.studies.rows import Row, mean, pick
from palpo.studies.tables import COLOURS

COLOUR = {"global": "#d64550", "local": "#2f6fc0", "local, warm": "#3f9b57"}


def _legs(ax: Axes) -> None:
    """A line where each leg of the path ends."""
    for end in np.cumsum(LEGS_2008)[:-1]:
        ax.axvline(end + 0.5, color=COLOURS["faint"], lw=0.8, ls=":")


def draw_along(figure: Figure, rows: Sequence[Row], key: str, mu: float, label: str) -> None:
    """A quantity over the steps of the path: a panel a clamping, a line a method."""
    axes = figure.subplots(len(CLAMPS), len(KINDS), sharex=True, sharey="col")
    for line, clamp in zip(axes, CLAMPS, strict=True):
        for ax, kind in zip(line, KINDS, strict=True):
            for method in METHODS:
                own = pick(rows, clamp=clamp, kind=kind, method=method, mu=mu, error=1e-4)
                ax.plot([r["step"] for r in own], [r[key] for r in own], color=COLOUR[method], lw=1.3,
                        marker=".", ms=4, label=method)  # fmt: skip
            _legs(ax)
            ax.set_title(f"clamped at {clamp}, {kind} error", loc="left", fontsize=9.5)
            ax.set_ylim(bottom=0.0)
    axes[0, 0].legend(frameon=False, fontsize=8.5)
    figure.supxlabel("step of 0.1 cm; dotted: the legs 5P 20P 7P 4P 1P", fontsize=9)
    figure.supylabel(label, fontsize=9)


def draw_over_friction(figure: Figure, rows: Sequence[Row]) -> None:
    """Means over the path, over the coefficient of friction."""
    axes = figure.subplots(len(CLAMPS), len(KINDS), sharex=True, sharey=True)
    strokes = dict(zip(sorted({row["error"] for row in rows}, reverse=True), ("-", "--", ":"), strict=False))
    for line, clamp in zip(axes, CLAMPS, strict=True):
        for ax, kind in zip(line, KINDS, strict=True):
            for method in METHODS:
                for error, stroke in strokes.items():
                    own = pick(rows, clamp=clamp, kind=kind, method=method, error=error)
                    mus = sorted({row["mu"] for row in own})
                    sweeps = [mean(pick(own, mu=mu), "iterations") for mu in mus]
                    ax.plot(mus, sweeps, ls=stroke, color=COLOUR[method], lw=1.3, marker=".",
                            label=f"{method}, {error:.0e}")  # fmt: skip
            ax.set_title(f"clamped at {clamp}, {kind} error", loc="left", fontsize=9.5)
            ax.set_yscale("log")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False,
                  fontsize=8.5)  # fmt: skip
    for ax in axes[-1]:
        ax.set_xlabel("friction coefficient", fontsize=9)
    figure.supylabel("mean sweeps along the path", fontsize=9)


def draw_one_clamp(figure: Figure, rows: Sequence[Row], factors: Sequence[Row]) -> None:
    """Left end only: sweeps and force along the path with rho_min, and what factors on it do."""
    grid = figure.add_gridspec(2, 2, width_ratios=(1.5, 1.0))
    upper = figure.add_subplot(grid[0, 0])
    lower = figure.add_subplot(grid[1, 0], sharex=upper)
    for method in METHODS:
        own = pick(rows, clamp="left end", kind="physical", error=1e-4, mu=0.6, method=method)
        for ax, key in ((upper, "iterations"), (lower, "force_error_percent")):
            ax.plot([r["step"] for r in own], [max(r[key], 1e-6) for r in own], color=COLOUR[method], lw=1.3,
                    marker=".", ms=4, label=method)  # fmt: skip
            ax.set_yscale("log")
            _legs(ax)
    upper.set_ylabel("sweeps")
    upper.set_title("left end only, rho_min, mu = 0.6, error 1e-4 (figure 9)", loc="left", fontsize=9.5)
    upper.legend(frameon=False, fontsize=8.5)
    lower.set_ylabel("force on the hand off [%]")
    lower.set_xlabel("step of 0.1 cm")
    ax = figure.add_subplot(grid[:, 1])
    for method in PRINTED:
        for clamp, stroke in zip(CLAMPS, (":", "-"), strict=True):
            own = pick(factors, clamp=clamp, method=method)
            known = sorted({row["factor"] for row in own})
            lost = [100.0 * np.mean([not r["met"] for r in pick(own, factor=f)]) for f in known]
            ax.plot(
                known, lost, color=COLOUR[method], ls=stroke, lw=1.4, marker=".", label=f"{method}, {clamp}"
            )
    ax.set_xlabel("factor on rho_min")
    ax.set_ylabel("steps that do not converge, mu = 0.3 [%]")
    ax.legend(frameon=False, fontsize=8.5)
