"""What a cup holds: a page with maps, the same as a table, and the cup's law for other simulators."""

from __future__ import annotations

import base64
import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from palpo.app.report.figures import LOOK, WIDTH
from palpo.app.report.page import rendered
from palpo.physics.suction.reduced_cup import HeldLoad, ReducedCup, lifted_mass, margin, margins

PAGE, LAW, TABLE, PICTURE = "lift.html", "cup.json", "map.csv", "map.png"
LEAST_MASS, MASSES, VALUES = 0.01, 25, 25
"""Lightest load of the maps [kg], and how many masses and values of the other axis they have."""
STEEPEST, FARTHEST, CURVED = math.radians(60.0), 20e-3, 20.0
"""Largest tilt [rad], offset [m] and curvature [1/m] of the maps."""
AXES = {
    "tilt": ("tilt of the cup's axis [degrees]", 180.0 / math.pi),
    "offset": ("offset of the centre of mass [mm]", 1e3),
    "curvature": ("curvature of a cylinder, 1 / D [1/m]", 1.0),
    "roughness": ("roughness of the wall, rms [um]", 1e6),
}
COLOURS = {
    "pull": "#2f6fc0", "slip": "#e08a2e", "peel": "#d64550", "lie": "#8a5fb0", "leak": "#3f9b57",
}  # fmt: skip


def loads(law: ReducedCup, base: HeldLoad, axis: str) -> tuple[np.ndarray, np.ndarray, list[list[HeldLoad]]]:
    """Masses (m,), values of the axis (v,), and the load of each pair: `base` but for both."""
    masses = np.geomspace(LEAST_MASS, 1.5 * law.limit / 9.81, MASSES)
    values: np.ndarray = {
        "tilt": np.linspace(0.0, STEEPEST, VALUES),
        "offset": np.linspace(0.0, FARTHEST, VALUES),
        "curvature": np.linspace(0.0, CURVED, VALUES),
        "roughness": np.array(sorted(law.leak_time)),
    }[axis]

    def load(mass: float, value: float) -> HeldLoad:
        changed: dict[str, Any] = {"mass": mass}
        if axis == "curvature":
            changed["diameter"] = 1.0 / value if value > 0.0 else math.inf
        else:
            changed[{"roughness": "rms"}.get(axis, axis)] = value
        return base._replace(**changed)

    return masses, values, [[load(float(m), float(v)) for v in values] for m in masses]


def write_lift(folder: Path, law: ReducedCup, base: HeldLoad) -> Path:
    """Write page, picture, table, law and snippet into the folder, which exists; returns the page's path."""
    maps = {axis: loads(law, base, axis) for axis in AXES}
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*HeldLoad._fields, "least_margin", "decides"])
        for _, _, grid in maps.values():
            for row in grid:
                for load in row:
                    least, name = margin(law, load)
                    writer.writerow([f"{v:.6g}" for v in (*load, least)] + [name])
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, 7.2), layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure, law, maps)
        figure.savefig(folder / PICTURE, dpi=150)
    (folder / LAW).write_text(json.dumps(as_data(law), indent=1) + "\n", "utf-8")
    found = margins(law, base)
    least, name = margin(law, base)
    page = rendered(
        "lift.html",
        title=f"What the cup {law.cup} holds",
        held=least > 1.0,
        name=name,
        load=[(field, _shown(field, value)) for field, value in base._asdict().items()],
        margins=[(key, "not asked" if value > 1e6 else f"{value:.3g}") for key, value in found.items()],
        law=[
            ("pushed by", f"{1e3 * law.push:g} mm"), ("friction", f"{law.mu:g}"),
            ("holds at most", f"{law.limit:.3g} N"), ("stiffness", f"{law.stiffness:.4g} N/m"),
            ("the line's largest error", f"{100 * law.misfit:.2g}% of the most"),
            ("lets go at", f"{1e3 * law.pull[-1]:.3g} mm"),
            ("lifts off the ground at 0.1 m/s", f"{1e3 * lifted_mass(law, 0.1):.3g} g"),
        ],
        picture="data:image/png;base64," + base64.b64encode((folder / PICTURE).read_bytes()).decode("ascii"),
    )  # fmt: skip
    (folder / PAGE).write_text(page, encoding="utf-8")
    return folder / PAGE


def _shown(field: str, value: float) -> str:
    unit, scale = {
        "mass": ("g", 1e3), "tilt": ("degrees", 180 / math.pi), "offset": ("mm", 1e3), "below": ("mm", 1e3),
        "diameter": ("mm", 1e3), "rms": ("um", 1e6), "seconds": ("s", 1.0),
    }[field]  # fmt: skip
    return "flat" if math.isinf(value) else f"{scale * value:.4g} {unit}"


def _draw(figure: Figure, law: ReducedCup, maps: dict[str, Any]) -> None:
    for axes, (axis, (masses, values, grid)) in zip(figure.subplots(2, 2).flat, maps.items(), strict=True):
        found = [[margin(law, load) for load in row] for row in grid]
        least = np.array([[value for value, _ in row] for row in found])
        label, scale = AXES[axis]
        shown = np.clip(np.log2(np.maximum(least, 1e-9)), -3, 3)
        mesh = axes.pcolormesh(
            scale * values, 1e3 * masses, shown, cmap="RdYlGn", vmin=-3, vmax=3, shading="nearest"
        )
        for name, colour in COLOURS.items():
            where = np.array(
                [[float(which == name and value < 1.0) for value, which in row] for row in found]
            )
            if where.any():
                i, j = (int(np.median(k)) for k in np.nonzero(where))
                axes.text(
                    scale * values[j], 1e3 * masses[i], name, color=colour, weight="bold", fontsize=9,
                    ha="center", bbox={"fc": "white", "ec": "none", "alpha": 0.75, "pad": 1},
                )  # fmt: skip
        if (least > 1.0).any() and (least < 1.0).any():
            axes.contour(scale * values, 1e3 * masses, least, [1.0], colors="#263242", linewidths=1.6)
        axes.set(yscale="log", xlabel=label, ylabel="mass [g]")
        if axis == "roughness":
            axes.set_xscale("log")
        axes.grid(False)
    colours = figure.colorbar(mesh, ax=figure.axes, ticks=[-3, -2, -1, 0, 1, 2, 3], shrink=0.7)
    colours.ax.set_yticklabels(["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    colours.set_label("least margin; what lets go first where it is below 1 is written in")


def as_data(law: ReducedCup) -> dict[str, Any]:
    """The law as JSON has it, SI units; `about` says what each is."""
    return {
        "about": {
            "pull_m": "of the stem from where the cup bears nothing",
            "force_N": "along the axis at that pull; the last is the most",
            "rim_N": "with which the rim is pressed under it; across the axis mu times it is borne",
            "peel_Nm": "moment about an axis in the rim's plane at which the rim lifts on one side",
            "leak_s": "by the wall's rms roughness [m]: in which the suction falls to a third",
            "stiffness_N_per_m": "of the line through these points, for a spring that lets go at release_m",
            "rest_m": "height of the stem, from where the rim first touches, at which the cup bears nothing",
            "rim_stiffness_N_per_m": "of the cup when it is pushed on, before it grips",
            "damping_s": "force at a speed over that at as long a pull",
            "pumped": "whether a pump keeps the suction, so that it grips at a touch and nothing leaks",
        },
        "cup": law.cup, "push_m": law.push, "mu": law.mu, "radius_m": law.radius,
        "stiffness_N_per_m": law.stiffness, "stiffness_misfit": law.misfit, "release_m": float(law.pull[-1]),
        "limit_N": law.limit, "pull_m": law.pull.tolist(), "force_N": law.force.tolist(),
        "rest_m": law.rest, "rim_stiffness_N_per_m": law.rim_stiffness, "damping_s": law.damping,
        "pumped": law.pumped, "rim_N": law.pressed.tolist(),
        "peel_Nm": (0.5 * law.radius * law.pressed).tolist(),
        "leak_s": {f"{rms:g}": times.tolist() for rms, times in law.leak_time.items()},
    }  # fmt: skip
