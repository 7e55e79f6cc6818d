"""How far the servo's force is from that of everything at 1 kHz where bodies of several kinds and rates meet.

`three-rates`: a wire at 1 kHz lays a gel at 100 Hz on a liver at 20 Hz, drags it and lifts it off.
`two-hands`: two tools squeeze a soft cylinder and lift it; both hands together, and each by itself.
`mixed-press`: a quasi-static block is pressed on a dynamic liver and dragged.
`mixed-cup`: a suction cup in the hand grips a soft cylinder, lifts it and drops it.
`mixed-snap`: the two-prong connector whose socket stands on soft tissue; how much softer the click is than on
a firm base stands beside.

A case is judged to where something first lands, grips or clicks, and over the whole path; one in which
nothing does, over the whole path by the smaller figure. Of several hands each one is judged, by what its own
device is sent, and two against each other; what they do together is told. Two that hold a thing by friction
share its weight in more than one way, and contacts that the servo's sweeps leave unsolved move the shares:
fewer columns and fewer sweeps, of another solver, are told beside. What both carry is its weight and their
tools'.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from palpo.config.load import load_scene
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.studies.claims import Claim, Line, Reported, at_most
from palpo.studies.force_errors import Floats, compare
from palpo.studies.rows import Row
from palpo.studies.runs import SceneDrive, drive, scene_path
from palpo.studies.tables import COLOURS, save_figure, write_csv

CALM, THROUGH_IMPACTS = 1.0, 2.0
"""Largest RMS errors [% of the peak]."""

OTHERS = "beside the scene's own settings"
TOGETHER = ", all hands"
"""What stands behind the scene's name where the forces of all hands are added."""

QUICK_TICKS = 3800
"""Of a path in the quick form: until the gel is laid down and dragged."""


@dataclass(frozen=True)
class MixedCase:
    """A scene on its own path."""

    scene: str
    lands: float | None
    """Time [s] at which something is let down, clicks or falls; None where all of the path is calm."""
    rates: tuple[tuple[str, ...], ...] = ((),)
    """Settings to compare with the scene's own rates, or with something else of its own."""
    hangs: tuple[float, float] | None = None
    """Times [s] between which the hands carry all that moves, and it hangs still."""
    firm: tuple[str, ...] = ()
    """Settings that make firm what is soft."""


CASES = (
    MixedCase(
        "three-rates",
        1.9,
        ((), ("bodies.gel.rate_hz=20",), ("bodies.gel.rate_hz=50", "bodies.liver.rate_hz=50")),
    ),
    MixedCase(
        "two-hands",
        4.4,
        ((), ("interface.max_columns=96",), ("solver.name=gauss-seidel", "solver.sweeps_high=50")),
        hangs=(3.2, 3.6),
    ),
    MixedCase("mixed-cup", None, ((), ("rates.low_hz=100",))),
    MixedCase(
        "mixed-snap",
        1.65,
        ((), ("bodies.left.rate_hz=50", "bodies.right.rate_hz=50")),
        firm=("bodies.tissue.material.youngs_modulus=3e9",),
    ),
    MixedCase("mixed-press", None, ((), ("rates.low_hz=20",))),
)


def run(out: Path, quick: bool) -> list[Line]:
    """Each scene's reference, then its own rates and others beside them."""
    rows, lines = [], list[Line]()
    for case in CASES:
        spec = load_scene(case.scene)
        path = scene_path(spec)[: QUICK_TICKS if quick else None]
        exact = drive(case.scene, path, (), "monolithic").trace["felt"]
        forces: dict[str, Floats] = {}
        for changes in case.rates[:1] if quick else case.rates:
            other = drive(case.scene, path, changes)
            named = [_rate(other, low) for low in other.lock.lows] + [c for c in changes if "_hz=" not in c]
            rates = ", ".join(named)
            forces[rates] = other.trace["felt"][:, 0]
            parts = {"whole": len(exact)}
            if case.lands is not None:
                parts = {"until it touches": round(case.lands / other.dt)} | parts
            for whose, of in _hands(exact.shape[1]).items():
                compared = of @ exact, of @ other.trace["felt"], path
                for part, until in parts.items():
                    row = compare(*compared, other.lock.ratio, other.dt, 0, until)
                    rows.append({"scene": case.scene, "hand": whose, "rates": rates, "judged": part} | row)
                    limit = THROUGH_IMPACTS if part == "whole" and case.lands is not None else CALM
                    told = OTHERS if changes else "as it is" if whose == TOGETHER else ""
                    lines += _judged(f"{case.scene}, {rates}{whose}, {part}", row, limit, told)
            if case.hangs is not None:
                lines.append(_carried(f"{case.scene}, {rates}", other, case.hangs))
        if case.firm:
            firm = drive(case.scene, path, case.firm).trace["felt"]
            share = 100.0 * _peak(exact) / _peak(firm)
            lines.append(Reported(f"{case.scene}, peak force over that on a firm base", share, "%", "softer"))
        title = f"{case.scene}: {spec.description}"
        figure_of = partial(_draw, title=title, exact=exact[:, 0], forces=forces)
        save_figure(out / f"force-{case.scene}.png", 5.6, figure_of)
    write_csv(out / "mixed.csv", rows)
    return lines


def _peak(felt: Floats) -> float:
    """Of the force on the first hand, felt (n, hands, 3) [N]."""
    return float(np.linalg.norm(felt[:, 0], axis=1).max())


def _carried(name: str, run: SceneDrive, hangs: tuple[float, float]) -> Claim:
    """The mean force of all hands while everything hangs, beside its weight."""
    first, last = (round(t / run.dt) for t in hangs)
    force = run.trace["felt"][first:last].sum(axis=1).mean(axis=0)
    weight = sum(run.lock.scene.masses().values()) * np.array(run.spec.gravity)
    off = 100.0 * float(np.linalg.norm(force - weight) / np.linalg.norm(weight))
    return at_most(f"{name}, what the hands carry, off its weight", off, 1.0, "%", "weight of all that moves")


def _hands(n: int) -> dict[str, Floats]:
    """Weights (n,) of the forces judged: of one hand, or of all together, of each and between two."""
    if n == 1:
        return {"": np.ones(1)}
    between = {", between hands": np.array([0.5, -0.5])} if n == 2 else {}
    return {TOGETHER: np.ones(n)} | {f", hand {k + 1}": np.eye(n)[k] for k in range(n)} | between


def _rate(run: SceneDrive, low: LowRate) -> str:
    """A loop's bodies and its rate."""
    names = " and ".join(run.lock.scene.names[b] for b in low.loop.numbers)
    return f"{names} at {1.0 / (low.loop.ratio * run.dt):g} Hz"


def _judged(name: str, row: Row, limit: float, beside: str) -> list[Line]:
    """RMS of the motion, within the limit unless `beside` says why it is only told; and the largest error."""
    unit, error = "% of peak", row["moving_rms_percent"]
    rms: Line
    if beside:
        rms = Reported(f"{name}, moving, RMS", error, unit, beside)
    else:
        rms = at_most(f"{name}, moving, RMS", error, limit, unit, "everything at 1 kHz")
    return [rms, Reported(f"{name}, moving, largest", row["moving_max_percent"], unit, "as it is")]


def _draw(figure: Figure, title: str, exact: Floats, forces: dict[str, Floats]) -> None:
    """The reference's force, and how far each set of rates is from it."""
    top, bottom = figure.subplots(2, 1, sharex=True)
    t, peak = 1e-3 * np.arange(len(exact)), float(np.linalg.norm(exact, axis=1).max())
    top.plot(t, np.linalg.norm(exact, axis=1), color=COLOURS["monolithic"], lw=1.2, label="all at 1 kHz")
    for (rates, force), style in zip(forces.items(), ("-", "--", ":"), strict=False):
        n = min(len(force), len(exact))
        error = 100.0 / peak * np.linalg.norm(force[:n] - exact[:n], axis=1)
        bottom.plot(t[:n], np.maximum(error, 1e-4), color=COLOURS["krylov"], ls=style, lw=0.8, label=rates)
    top.set_ylabel("force [N]")
    top.set_title(title, loc="left", fontsize=10)
    top.legend(frameon=False, fontsize=8.5)
    bottom.set_yscale("log")
    bottom.set_ylabel("error [% of peak]")
    bottom.set_xlabel("time [s]")
    bottom.legend(frameon=False, fontsize=8.5)
