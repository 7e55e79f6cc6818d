"""The figures of a run's report, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import CONTACT_STATES
from palpo.render import palette

INK = "#263242"
FAINT = "#8a97a8"
BLUE = "#2f6fc0"
WIDTH = 9.2  # inches
LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#c3ccd8",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', {[BLUE, '#d64550', '#3f9b57']})",
    "grid.color": "#e6eaf0",
    "xtick.color": "#5c6a7c",
    "ytick.color": "#5c6a7c",
    "agg.path.chunksize": 20000,
}

Series = Mapping[str, Any]


class Missing(LookupError):
    """The run holds nothing to draw a figure from; the message is the sentence that stands in its place."""


def force(series: Series) -> Figure:
    """Commanded and sent force by component, and its norm."""
    t = _array(series, "time_s", "force")
    sent = _array(series, "force_sent_N", "force", len(t))
    commanded = _optional(series, "force_commanded_N", len(t))
    figure, (top, bottom) = _figure(4.6, rows=2, height_ratios=(1.5, 1))
    for k, name in enumerate("xyz"):
        top.plot(t, sent[:, k], color=palette.AXES[k], lw=1.3, label=f"{name} sent")
        if commanded is not None:
            top.plot(t, commanded[:, k], color=palette.AXES[k], lw=0.9, ls=(0, (3, 2)), alpha=0.75)
    if commanded is not None:
        top.plot([], [], color=FAINT, lw=0.9, ls=(0, (3, 2)), label="commanded")
        bottom.plot(t, np.linalg.norm(commanded, axis=1), color=FAINT, lw=1.0, label="commanded")
    bottom.plot(t, np.linalg.norm(sent, axis=1), color=INK, lw=1.3, label="sent")
    top.set_ylabel("force on the hand [N]")
    bottom.set_ylabel("norm [N]")
    bottom.set_ylim(bottom=0)
    _finish_time(top, bottom)
    return figure


def position(series: Series) -> Figure:
    """Where the hand was, and the tool's point that it held."""
    t = _array(series, "time_s", "position")
    device = 1e3 * _array(series, "position_m", "position", len(t))
    held = _optional(series, "held_m", len(t))
    figure, (ax,) = _figure(2.9)
    for k, name in enumerate("xyz"):
        ax.plot(t, device[:, k], color=palette.AXES[k], lw=1.3, label=f"{name} device")
        if held is not None:
            ax.plot(t, 1e3 * held[:, k], color=palette.AXES[k], lw=0.9, ls=(0, (3, 2)), alpha=0.8)
    if held is not None:
        ax.plot([], [], color=FAINT, lw=0.9, ls=(0, (3, 2)), label="held point")
    ax.set_ylabel("position [mm]")
    _finish_time(ax)
    return figure


def needles(series: Series) -> Figure:
    """Force along each needle over the length of it that is inside, both ways, with its punctures."""
    inside = _array(series, "needle_inside_m", "needles")
    along = _array(series, "needle_along_N", "needles", len(inside))
    names = series["needles"]
    figure, axes = _figure(2.9 * len(names), rows=len(names))
    for ax, name, depth, force in zip(axes, names, inside.T, along.T, strict=True):
        events = np.flatnonzero((depth[:-1] <= 0.0) & (depth[1:] > 0.0))
        draw_ways(ax, 1e3 * depth, force, np.append(np.diff(depth) >= 0.0, True), events)
        ax.set(title=name, xlabel="length that is inside [mm]")
    return figure


def draw_ways(
    ax: Axes,
    at: NDArray[np.float64],
    along: NDArray[np.float64],
    into: NDArray[np.bool_],
    punctures: NDArray[np.int64],
) -> None:
    """Force `along` (n,) [N] a needle over `at` (n,), where it goes `into` (n,) the tissue and where it is
    drawn out, with the rows of its punctures as events."""
    for label, here in (("in", into), ("out", ~into)):
        # a way ends at the first row of the next, so that no gap is left
        shown = here | np.append(False, here[:-1])
        ax.plot(np.where(shown, at, np.nan), np.where(shown, along, np.nan), lw=1.3, label=label)
    for k in punctures:
        ax.plot(at[k], along[k], "o", ms=5, color=INK)
        ax.annotate("puncture", (at[k], along[k]), (6, 4), textcoords="offset points")
    ax.axhline(0.0, lw=0.6, color=FAINT)
    ax.set_ylabel("force along the needle [N]")
    _legend(ax)


def servo_times(series: Series, result: Mapping[str, Any]) -> Figure:
    """Histograms of the servo's lateness and of its step time, on logarithmic bins."""
    servo = result.get("servo") or {}
    panels = [
        ("wake-up lateness [µs]", *_bins(series, "late"), servo.get("late_us") or {}),
        ("step time [µs]", *_bins(series, "step"), servo.get("step_us") or {}),
    ]
    figure, axes = _figure(2.9, columns=2, sharey=True)
    for ax, (label, edges, counts, marks) in zip(axes, panels, strict=True):
        _histogram(ax, edges, counts)
        for name, side in (("p50", "right"), ("p99", "left")):
            if _finite(marks.get(name)) and marks[name] > 0:
                ax.axvline(marks[name], color="#d64550", lw=1.0, ls=(0, (4, 2)))
                above = ax.get_xaxis_transform()
                words = f"{name} {marks[name]:.3g}"
                ax.text(marks[name], 1.02, words, transform=above, ha=side, fontsize=8.5, color="#b02a37")
        ax.set_xlabel(label)
    axes[0].set_ylabel("ticks")
    return figure


def slow_steps(result: Mapping[str, Any]) -> Figure:
    """Time of the slow-rate loop's named steps: median, 99th percentile and maximum."""
    steps: Mapping[str, Mapping[str, float]] = (result.get("slow") or {}).get("by_step_ms") or {}
    if not steps:
        raise Missing("The run did not time the steps of its slow loop.")
    names = list(steps)
    p50, p99, top = (np.array([_number(steps[n].get(k)) for n in names]) for k in ("p50", "p99", "max"))
    figure, (ax,) = _figure(0.75 + 0.31 * len(names))
    y = np.arange(len(names))
    ax.plot(top, y, ls="", marker="|", ms=11, mew=1.6, color="#d64550", label="max")
    ax.barh(y, p99, height=0.62, color="#c9d9ee", label="p99")
    ax.barh(y, p50, height=0.62, color=BLUE, label="median")
    ax.set_yticks(y, names)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("time [ms]")
    ax.set_xlim(left=0)
    _legend(ax, reverse=True)
    return figure


def contacts(series: Series) -> Figure:
    """Number of contacts at each slow-rate step, by state where the run kept it."""
    t = _array(series, "low_time_s", "contacts")
    counts = _array(series, "contacts", "contacts", len(t))
    figure, (ax,) = _figure(2.4)
    if counts.ndim == 2:
        kept = [k for k in range(counts.shape[1]) if counts[:, k].any()]
        colours = [palette.CONTACT[k] for k in kept]
        ax.stackplot(
            t, counts[:, kept].T, step="post", colors=colours, labels=[CONTACT_STATES[k] for k in kept], lw=0
        )
    else:
        ax.fill_between(t, counts, step="post", color="#c9d9ee", lw=0)
        ax.step(t, counts, where="post", color=BLUE, lw=1.1, label="contacts")
    ax.set_ylabel("contacts")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(bottom=0)
    _finish_time(ax)
    return figure


def save(figure: Figure, path: Any) -> None:
    """Write it as PNG."""
    with rc_context(LOOK):
        figure.savefig(path, dpi=130, facecolor="white")


def _figure(height: float, rows: int = 1, columns: int = 1, **grid: Any) -> tuple[Figure, Sequence[Axes]]:
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=rows > 1, **grid)
    return figure, axes.ravel()


def _finish_time(*axes: Axes) -> None:
    axes[-1].set_xlabel("time [s]")
    for ax in axes:
        ax.margins(x=0)
        _legend(ax)


def _legend(ax: Axes, reverse: bool = False) -> None:
    ax.legend(
        *(items[::-1] for items in ax.get_legend_handles_labels()) if reverse else (),
        loc="lower right",
        bbox_to_anchor=(1.0, 0.99),
        ncols=5,
        fontsize=8.5,
        frameon=False,
        labelcolor=INK,
        borderaxespad=0.1,
    )


def _histogram(ax: Axes, edges: NDArray[np.float64], counts: NDArray[np.float64]) -> None:
    kept = np.flatnonzero(counts)
    first, last = kept[0], kept[-1] + 1
    ax.bar(
        edges[first:last],
        counts[first:last],
        np.diff(edges[first : last + 1]),
        align="edge",
        color=BLUE,
        edgecolor="white",
        linewidth=0.4,
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _bins(series: Series, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    edges = _array(series, f"{name}_edges_us", "servo's times")
    counts = _array(series, f"{name}_counts", "servo's times", len(edges) - 1)
    if not counts.any():
        raise Missing("The servo made no tick, so its times have no histogram.")
    # A first bin that starts at zero has no place on a logarithmic axis.
    positive = edges > 0
    edges = np.where(positive, edges, 0.5 * edges[positive].min(initial=1.0))
    return edges, counts


def _array(series: Series, name: str, what: str, length: int | None = None) -> NDArray[np.float64]:
    values = np.asarray(series.get(name, ()), float)
    if not len(values):
        raise Missing(f"The run kept no series of its {what} ({name}).")
    if length is not None and len(values) != length:
        raise Missing(f"The series of the {what} has {len(values)} values in {name} where {length} belong.")
    return values


def _optional(series: Series, name: str, length: int) -> NDArray[np.float64] | None:
    values = np.asarray(series.get(name, ()), float)
    return values if len(values) == length and length else None


def _number(value: Any) -> float:
    return float(value) if _finite(value) else np.nan


def _finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))
