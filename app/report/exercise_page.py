"""What an examination found of a device: a page with pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from palpo.app.report.figures import FAINT, INK, LOOK, WIDTH
from palpo.app.report.page import rendered
from palpo.config.schema.profile import DeviceProfile
from palpo.haptics.device_spec import DeviceSpec
from palpo.render import palette

if TYPE_CHECKING:
    from palpo.app.cli.exercise import DeviceFindings

PAGE, PICTURE = "exercise.html", "exercise.png"


def write_exercise(folder: Path, found: DeviceFindings, profile: DeviceProfile, maker: DeviceSpec) -> Path:
    """Write page and picture into the folder, made if need be; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, 9.6), layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure, found)
        figure.savefig(folder / PICTURE, dpi=150)
    wrong = [way for way, right in found.axes.items() if not right]
    page = rendered(
        "exercise.html",
        title=f"{found.title}: {found.model}",
        facts=[
            ("serial number", found.serial or "not told"),
            ("axes", "as they should be" if not wrong else f"not read as such: {', '.join(wrong)}"),
            ("ticks", found.scheduler),
        ],
        rows=_rows(found, maker),
        profile=[(key, _shown(key, value)) for key, value in profile.model_dump().items()],
        picture="data:image/png;base64," + base64.b64encode((folder / PICTURE).read_bytes()).decode("ascii"),
    )
    (folder / PAGE).write_text(page, encoding="utf-8")
    return folder / PAGE


def _rows(found: DeviceFindings, maker: DeviceSpec) -> list[tuple[str, str, str]]:
    """What was measured, and what its maker says."""
    answer = found.answer
    assert answer is not None
    sides = " x ".join(f"{1e3 * side:.0f}" for side in found.high - found.low)
    stated = " x ".join(f"{1e3 * side:.0f}" for side in maker.workspace)
    each = ", ".join(f"{f:.3f}" for f in found.friction)
    pulls = ", ".join(f"{b:.3f}" for b in found.bias)
    late = 1e6 * np.quantile(found.late, (0.5, 0.99, 1.0))
    drift = 1e3 * float(np.linalg.norm(found.drift))
    return [
        ("", "found", "its maker says"),
        ("reached [mm]", sides, stated),
        ("count of the encoder [mm]", f"{1e3 * found.resolution:.4f}", f"{1e3 * maker.resolution:.4f}"),
        ("noise at rest, rms [mm]", f"{1e3 * found.noise:.4f}", ""),
        ("dry friction along x, y, z [N]", each, f"{maker.friction:g}"),
        ("pulled by itself along x, y, z [N]", pulls, ""),
        ("moving mass [g]", f"{1e3 * answer.mass:.1f}", f"{1e3 * maker.mass:.0f}"),
        ("viscosity [N s/m]", f"{answer.viscosity:.2f}", ""),
        ("delay [ms]", f"{1e3 * answer.delay:.1f}", ""),
        ("greatest stable stiffness, let go [N/m]", f"{found.stable['let go']:.0f}", ""),
        (
            "greatest stable stiffness, held [N/m]",
            f"{found.stable['held']:.0f}",
            f"{maker.max_stiffness:.0f}",
        ),
        ("ticks late, median, p99, most [us]", ", ".join(f"{t:.0f}" for t in late), ""),
        ("force allowed while held warm", f"{100 * found.allowance:.0f}%", ""),
        ("drift over the examination [mm]", f"{drift:.3f}", ""),
    ]


def _shown(key: str, value: object) -> str:
    unit, scale = {
        "max_stiffness": ("N/m", 1.0), "max_force": ("N", 1.0), "resolution": ("mm", 1e3),
        "friction": ("N", 1.0), "mass": ("g", 1e3), "delay": ("ms", 1e3),
    }.get(key, ("", 1.0))  # fmt: skip
    return f"{scale * value:.4g} {unit}" if isinstance(value, float) else str(value)


def _draw(figure: Figure, found: DeviceFindings) -> None:
    (reach, ramps), (push, late), (free, held) = figure.subplots(3, 2)
    at = 1e3 * found.reached
    reach.plot(at[:, 0], at[:, 1], color=INK, lw=0.8)
    reach.set_aspect("equal", "datalim")
    _label(reach, "where it went, from the front", "x [mm]", "y [mm]")
    for name, (force, way) in found.ramps.items():
        side = 1.0 if name[0] == "+" else -1.0
        colour, style = palette.AXES["xyz".index(name[1])], "-" if side > 0 else "--"
        ramps.plot(side * force, 1e3 * side * way, style, color=colour, lw=1.2, label=name)
    ramps.axvline(float(found.friction.mean()), color=FAINT, lw=0.8)
    ramps.legend(ncol=3, frameon=False, fontsize=8)
    _label(ramps, "breaking away", "force [N]", "way [mm]")
    assert found.answer is not None
    seconds, pushed = found.pushed
    push.plot(1e3 * seconds, 1e3 * (pushed - pushed[0]), ".", color=INK, ms=4, label="read")
    fitted = found.answer.fitted
    push.plot(
        1e3 * seconds, 1e3 * (fitted - fitted[0]), color=palette.AXES[0], lw=1.2, label="by mass and delay"
    )
    push.legend(frameon=False, fontsize=8)
    _label(push, "answer to a push", "time [ms]", "way [mm]")
    late.hist(1e3 * found.late, bins=60, color=INK, log=True)
    _label(late, "ticks late by", "[ms]", "ticks")
    for axes, who in ((free, "let go"), (held, "held")):
        ways = found.scans[who]
        shown = [k for k in ways if k <= found.stable[who]][-1:] + [k for k in ways if k > found.stable[who]]
        for k, red in zip(shown, (False, True), strict=False):
            rang = found.dt * np.arange(len(ways[k]))
            rest = "comes to rest" if k <= found.stable[who] else "does not"
            axes.plot(
                rang,
                1e3 * ways[k],
                color=palette.AXES[0] if red else INK,
                lw=0.9,
                label=f"{k:.0f} N/m {rest}",
            )
        axes.legend(loc="upper right", framealpha=0.9, edgecolor="none", fontsize=8)
        _label(axes, f"on a spring, {who}", "time [s]", "way [mm]")


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
