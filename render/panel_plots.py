"""The panel's curves over time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from imgui_bundle import ImVec2, imgui, implot

from palpo.render import palette
from palpo.render.panel_asking import Asking
from palpo.render.panel_state import Floats, Plot
from palpo.render.panel_style import INK, colour
from palpo.render.panel_words import text

PLOT = 7.2
"""Height of a plot."""


def draw_plot(number: int, plot: Plot, asking: Asking) -> None:
    """The `number`th plot of a frame, as wide as there is room."""
    seconds, curves = _curves(plot)
    text(f"{plot.title} [{plot.unit}]" if plot.unit else plot.title, INK)
    for k, (name, values) in enumerate(curves.items()):
        imgui.same_line(0, 0.8 * imgui.get_font_size())
        last = f" {values[-1]:.3g}" if len(values) and np.isfinite(values[-1]) else ""
        text(name + last, palette.SERIES[k % len(palette.SERIES)])
    flags = implot.Flags_.canvas_only | implot.Flags_.no_inputs
    if not implot.begin_plot(f"##plot{number}", ImVec2(-1, PLOT * imgui.get_font_size()), flags):
        return
    x, y = _extent(seconds, curves, plot.limit)
    implot.setup_axes("", "", 0, 0)
    implot.setup_axes_limits(*x, *y, implot.Cond_.always)
    implot.setup_axis_format(implot.ImAxis_.x1, "%g s")
    implot.setup_axis_format(implot.ImAxis_.y1, "%g")
    for k, (name, values) in enumerate(curves.items()):
        good = np.isfinite(seconds) & np.isfinite(values)
        spec = implot.Spec(line_color=colour(palette.SERIES[k % len(palette.SERIES)]), line_weight=1.8)
        if good.any():
            implot.plot_line(f"##{name}", seconds[good], values[good], spec=spec)
    if plot.limit is not None and np.isfinite(plot.limit):
        _dashes(x, plot.limit)
    implot.end_plot()
    asking.place(f"plot:{plot.title}")


def _curves(plot: Plot) -> tuple[Floats, dict[str, Floats]]:
    """Times and curves of one length: the newest of each."""
    seconds = np.asarray(plot.seconds, float).ravel()
    curves = {name: np.asarray(values, float).ravel() for name, values in plot.series.items()}
    n = min([len(seconds), *(len(values) for values in curves.values())])
    return seconds[len(seconds) - n :], {name: v[len(v) - n :] for name, v in curves.items()}


def _extent(
    seconds: Floats, curves: Mapping[str, Floats], limit: float | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes: zero is in view, and the limit once a curve comes to a third of it."""
    times = seconds[np.isfinite(seconds)]
    values = np.concatenate([np.zeros(1), *curves.values()])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if limit is not None and np.isfinite(limit) and max(-low, high) > limit / 3:
        low, high = (-limit if -low > limit / 3 else low), max(high, limit)
    margin = 0.08 * (high - low) or 1.0
    x = (float(times.min()), float(times.max())) if len(times) else (0.0, 1.0)
    return (x if x[0] < x[1] else (x[0] - 1.0, x[1])), (low - margin if low < 0 else low, high + margin)


def _dashes(x: tuple[float, float], limit: float) -> None:
    """Both signs of a limit; the axes show what they show."""
    at = np.linspace(*x, 60)
    spec = implot.Spec(line_color=colour(palette.BAD, 0.8), flags=implot.LineFlags_.segments)
    for sign in (-1.0, 1.0):
        implot.plot_line("##limit", at, np.full(len(at), sign * limit), spec=spec)
