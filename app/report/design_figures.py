"""The figures of a designer's report: force over travel, loads on the body, maps, parts within tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.app.cli.design import short_names
from palpo.app.report.figures import BLUE, FAINT, INK, LOOK, WIDTH
from palpo.physics.fem.stress import NodalLoad
from palpo.physics.systems.snap.travel import Travel, bearing

if TYPE_CHECKING:
    from palpo.app.cli.design import DesignResult, Limits, Row

OUT = "#e08a2e"
BAD = "#d64550"
GOOD = "#3f9b57"
SEEN_FROM = np.array([0.55, 0.45, 1.0])
"""Where bodies are looked at from, unless the scene says otherwise."""
LIGHT = np.array([0.35, 0.8, 0.5])
NAMES = {
    "insertion_N": "insertion, peak [N]",
    "retention_N": "retention, peak [N]",
    "strain": "largest strain [%]",
    "stress_Pa": "largest stress [MPa]",
}
UNITS = {"insertion_N": 1.0, "retention_N": 1.0, "strain": 100.0, "stress_Pa": 1e-6}
LIMITS = {
    "insertion_N": "insertion_below",
    "retention_N": "retention_above",
    "strain": "strain_below",
    "stress_Pa": "stress_below",
}
"""Of each figure, what its limit is called."""


def figure_of(height: float, columns: int = 1, **kwargs: Any) -> tuple[Figure, Any]:
    """A figure in the house's look with its axes."""
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(1, columns, squeeze=False, **kwargs)[0]


def force(travel: Travel, limits: Limits) -> Figure:
    """Force over travel in and out, and the largest strain on the way."""
    figure, (left, right) = figure_of(3.7, 2)
    for way, colour, name in (
        (travel.insertion, BLUE, "pushed in"),
        (travel.retention, OUT, "pulled out"),
    ):
        left.plot(1e3 * way.travel, way.force, color=colour, lw=1.4, label=name)
        left.plot(1e3 * way.at_peak, way.peak, "o", color=colour, ms=4)
        left.annotate(
            f"{way.peak:.1f} N",
            (1e3 * way.at_peak, way.peak),
            (-6, 2),
            textcoords="offset points",
            ha="right",
        )
        right.plot(1e3 * way.at, 100.0 * way.strain, color=colour, lw=1.4, label=name)
    _limit(left, limits.insertion_below, "insertion below")
    _limit(left, limits.retention_above, "retention above")
    _limit(right, None if limits.strain_below is None else 100.0 * limits.strain_below, "strain below")
    left.set(xlabel="travel of the plug [mm]", ylabel="force against it [N]")
    right.set(xlabel="travel of the plug [mm]", ylabel="largest principal strain [%]")
    left.legend(frameon=False)
    return figure


def _limit(ax: Axes, value: float | None, name: str) -> None:
    if value is not None:
        ax.axhline(value, color=BAD, ls=":", lw=1.1)
        ax.annotate(
            name, (0.01, value), xycoords=("axes fraction", "data"), va="bottom", color=BAD, fontsize=8
        )


def body(travel: Travel, limits: Limits, eye: NDArray[np.float64] | None = None) -> Figure:
    """The socket where its stress is largest on the way in: stress and strain, over what is allowed.

    Shapes are drawn as they deform, without exaggeration.
    """
    connector, way = travel.model.connector, travel.insertion
    figure, axes = figure_of(4.6, 2)
    parts = connector.prongs
    shapes = [(p.mesh.nodes + u, p.mesh.surface().triangles) for p, u in zip(parts, way.worst, strict=True)]
    gauges = [NodalLoad(p.mesh.nodes, p.mesh.tets, connector.material) for p in parts]
    loads = [gauge.at(u) for gauge, u in zip(gauges, way.worst, strict=True)]
    kinds = (
        ("stress [MPa]", [1e-6 * load.stress for load in loads], limits.stress_below, 1e-6),
        ("principal strain [%]", [100.0 * load.strain for load in loads], limits.strain_below, 100.0),
    )
    for ax, (name, values, limit, unit) in zip(axes, kinds, strict=True):
        most = max(float(v[bearing(part)].max()) for v, part in zip(values, parts, strict=True))
        top = most if limit is None else unit * limit
        norm, colours = Normalize(0.0, top), "turbo"
        shapes = [
            (p.mesh.nodes + u, p.mesh.surface().triangles) for p, u in zip(parts, way.worst, strict=True)
        ]
        painted(ax, shapes, values, norm, colours, eye)
        bar = figure.colorbar(ScalarMappable(norm, colours), ax=ax, shrink=0.75, extend="max")
        bar.set_label(name if limit is None else f"{name}; the top is what is allowed")
        ax.set_title(f"{name}: at most {most:.3g}", fontsize=9.5)
    return figure


def painted(
    ax: Axes,
    shapes: Sequence[tuple[NDArray[np.float64], NDArray[np.int32]]],
    values: Sequence[NDArray[np.float64]],
    norm: Normalize,
    colours: str,
    eye: NDArray[np.float64] | None,
) -> None:
    """Triangles (t, 3) of nodes (n, 3) coloured by values (n,), the far ones first; without OpenGL."""
    back = np.asarray(SEEN_FROM if eye is None else eye, float)
    back = back / np.linalg.norm(back)
    right = np.cross([0.0, 1.0, 0.0], back)
    right /= np.linalg.norm(right)
    up = np.cross(back, right)
    polygons, depths, paints = [], [], []
    table = ScalarMappable(norm, colours)
    light = LIGHT / np.linalg.norm(LIGHT)
    for (nodes, triangles), value in zip(shapes, values, strict=True):
        corners = nodes[triangles]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        seen = normal @ back > 0.0
        flat = np.stack([corners @ right, corners @ up], axis=-1)[seen]
        colour = table.to_rgba(value[triangles].mean(axis=1)[seen])
        colour[:, :3] *= (0.7 + 0.3 * np.clip(normal[seen] @ light, 0.0, 1.0))[:, None]
        polygons.append(1e3 * flat)
        depths.append((corners @ back).mean(axis=1)[seen])
        paints.append(colour)
    order = np.argsort(np.concatenate(depths))
    paint = np.concatenate(paints)[order]
    ax.add_collection(
        PolyCollection(list(np.concatenate(polygons)[order]), facecolors=paint, edgecolors=paint, lw=0.3)
    )
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.set_axis_off()


def quality(travel: Travel) -> Figure:
    """How good the socket's tetrahedra are."""
    found = qualities(travel)
    figure, (ax,) = figure_of(2.3)
    ax.hist(found, bins=np.linspace(0.0, 1.0, 41), color=BLUE)
    ax.set(xlabel="quality: 1 is a regular tetrahedron, 0 a flat one", ylabel="tetrahedra", xlim=(0.0, 1.0))
    ax.set_title(about_mesh(travel), fontsize=9.5)
    return figure


def qualities(travel: Travel) -> NDArray[np.float64]:
    """Of all tetrahedra of the socket, 1 for the regular one."""
    return np.concatenate([p.mesh.qualities for p in travel.model.connector.prongs])


def about_mesh(travel: Travel) -> str:
    """The socket's mesh in words."""
    found, nodes = qualities(travel), sum(len(p.mesh.nodes) for p in travel.model.connector.prongs)
    return (
        f"{len(found):,} tetrahedra, {nodes:,} nodes; quality {found.min():.2f} at least, "
        f"{np.median(found):.2f} at the median"
    )


def swept(found: DesignResult) -> Figure:
    """Along one axis, curves and what was found; over two, maps."""
    if len(found.axes) == 2:
        return _maps(found)
    axis = found.axes[0]
    figure, axes = figure_of(3.6, 3, width_ratios=(1.4, 1.0, 1.0))
    numbers = _numbers(axis.values)
    names = short_names(axis.values)
    shades = ScalarMappable(Normalize(-0.3 * len(names), len(names)), "Blues")
    for k, travel in found.curves:
        way, shade = travel.insertion, shades.to_rgba(np.array(k))
        axes[0].plot(1e3 * way.travel, way.force, lw=1.2, color=shade, label=names[k])
    axes[0].set(xlabel="travel of the plug [mm]", ylabel="force pushed in [N]")
    axes[0].legend(frameon=False, fontsize=7)
    limits = _limits_of(found)
    for ax, keys in ((axes[1], ("insertion_N", "retention_N")), (axes[2], ("strain",))):
        for key, colour in zip(keys, (BLUE, OUT), strict=False):
            values = [UNITS[key] * row[key] for row in found.grid]
            ax.plot(numbers, values, "o-", ms=4, lw=1.2, color=colour, label=NAMES[key])
            _limit(ax, limits[key], LIMITS[key].replace("_", " "))
        ax.set(xlabel=axis.key, ylim=(0.0, None))
        ax.legend(frameon=False, fontsize=7.5)
        if numbers == list(range(len(names))):
            ax.set_xticks(numbers, names, rotation=30, ha="right", fontsize=7.5)
    return figure


def _maps(found: DesignResult) -> Figure:
    first, second = found.axes
    figure, axes = figure_of(3.3, 3)
    shape = len(first.values), len(second.values)
    passes = np.array([row["passes"] for row in found.grid]).reshape(shape)
    for ax, key in zip(axes, ("insertion_N", "retention_N", "strain"), strict=True):
        values = UNITS[key] * np.array([row[key] for row in found.grid], float).reshape(shape)
        across, up = _numbers(second.values), _numbers(first.values)
        image = ax.pcolormesh(across, up, values, shading="nearest", cmap="viridis")
        figure.colorbar(image, ax=ax).set_label(NAMES[key])
        ax.set(xlabel=second.key, ylabel=first.key)
        ax.grid(False)
        for i, y in enumerate(up):
            for j, x in enumerate(across):
                if not passes[i, j]:
                    ax.plot(x, y, "x", color="white", ms=5, mew=1.4)
    return figure


def yielded(found: DesignResult, said: str) -> Figure:
    """Parts within tolerances: what they need and bear, and which pass."""
    figure, axes = figure_of(2.9, 3)
    limits, passes = _limits_of(found), np.array([row["passes"] for row in found.parts])
    for ax, key in zip(axes, ("insertion_N", "retention_N", "strain"), strict=True):
        values = UNITS[key] * np.array([row[key] for row in found.parts], float)
        whole = np.isfinite(values)
        if whole.any():
            bins = np.histogram_bin_edges(values[whole], 20)
            ax.hist(
                [values[whole & passes], values[whole & ~passes]], bins, stacked=True,
                color=[GOOD, BAD], label=["pass", "fail"],
            )  # fmt: skip
        limit = limits[key]
        if limit is not None:
            ax.axvline(limit, color=INK, ls=":", lw=1.2)
        ax.set(xlabel=NAMES[key], ylabel="parts" if key == "insertion_N" else "")
    axes[0].legend(frameon=False)
    figure.suptitle(said, fontsize=9.5, color=FAINT)
    return figure


def _limits_of(found: DesignResult) -> dict[str, float | None]:
    """By the row's key, in the figure's unit."""
    limits: dict[str, float | None] = {}
    for key, name in LIMITS.items():
        value = getattr(found.limits, name)
        limits[key] = None if value is None else UNITS[key] * value
    return limits


def _numbers(values: Sequence[str]) -> list[float]:
    """Texts as the numbers they are, or as their places."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return [float(k) for k in range(len(values))]


def rows_of(rows: Sequence[Row]) -> list[str]:
    """Columns of a table of rows."""
    return list(dict.fromkeys(name for row in rows for name in row))
