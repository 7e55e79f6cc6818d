"""Stability at the stiffness of printed ABS: 002, section V-A and figure 4.

Our connector without any damping clicks shut and then stands; and one prong, bent by a force at its nose and
let go, linear without damping beside corotational with the paper's small damping, both under passive midpoint
at the paper's step and stiffness, and at others, to show where the corotational one begins to fail.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import spsolve

from palpo.app.cli.progress import Progress
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.systems.snap.connectors.connector import Connector
from palpo.physics.systems.snap.insertion import Series
from palpo.studies.claims import Claim, at_most, greatest
from palpo.studies.reference.passive_midpoint import CorotationalMidpoint, LinearBody
from palpo.studies.snap_models import MODELS, SPEED, Row, build, case_of, columns, exact_distance, insert
from palpo.studies.tables import COLOURS, save_figure, write_csv

KIND, MESH = "two-prong", "coarse"
PAPER_E = 164.76e6
"""[Pa]"""
ALPHA, BETA = 1e-4, 1e-5
"""Rayleigh damping of the corotational body in 002, V-A: [1/s], [s]."""
UNDAMPED = {"alpha": 0.0, "beta": 0.0, "settling": 0.0, "coupling_damping": 0.0}
BEND = 0.05
"""Time in which the force on the nose rises [s]."""
RELEASED = 1.0
"""How long the prong is watched after it was let go [s]."""
LOST = 10.0
"""Times the energy at release, past which a body counts as diverged."""
LINEAR, COROTATIONAL, STIFF = "linear", "corotational", "corotational, undamped"


@dataclass(frozen=True)
class Bent:
    """One prong under a bending force, then let go."""

    body: str
    youngs_modulus: float
    step: float

    @property
    def damped(self) -> bool:
        """Whether it has the paper's damping."""
        return self.body == COROTATIONAL


CASES = (
    Bent(LINEAR, PAPER_E, 1e-3),
    Bent(COROTATIONAL, PAPER_E, 1e-3),
    Bent(STIFF, PAPER_E, 1e-3),
    Bent(COROTATIONAL, PAPER_E, 5e-4),
    Bent(COROTATIONAL, PAPER_E, 1e-4),
    Bent(COROTATIONAL, 16.476e6, 1e-3),
    Bent(COROTATIONAL, 1.6476e6, 1e-3),
)


def run(out: Path, quick: bool) -> list[Claim]:
    """Energies over time as CSV, one figure, two tables and the claims."""
    progress = Progress()
    case = case_of(KIND, MESH)
    connector = case.connector
    rest = 0.2 if quick else 2.0
    field, series = exact_distance(connector), {}
    for model in (MODELS[0], MODELS[3]):
        with progress.stage(f"{model.name} without damping, clicking shut"):
            made = build(case, model, field, **UNDAMPED)
            series[model.name] = insert(made, rest=rest)
    traces: dict[Bent, NDArray] = {}
    for bend in CASES[:3] if quick else CASES:
        with progress.stage(
            f"{bend.body}, E = {1e-6 * bend.youngs_modulus:g} MPa, T = {1e3 * bend.step:g} ms"
        ):
            traces[bend] = let_go(connector, bend, 0.1 if quick else RELEASED)
    bent = [_row(bend, trace) for bend, trace in traces.items()]
    clicks = [_click_row(name, s, connector) for name, s in series.items()]
    write_csv(out / "released.csv", bent)
    write_csv(out / "clicked.csv", clicks)
    for name, s in series.items():
        write_csv(out / f"{name.replace(' ', '-')}.csv", _energies(s))
    save_figure(out / "stability.png", 3.9, partial(_draw, series=series, traces=traces))
    _print(bent, clicks)
    return claims_of(bent, clicks)


def let_go(connector: Connector, case: Bent, watched: float) -> NDArray[np.float64]:
    """Time [s], energy [J] and the nose's way outward [m] after each step, shape (n, 3), from the release on.

    The force is what bends a linear prong by the interference. Ends where the energy has grown past LOST.
    """
    prong = connector.prongs[0]
    material = replace(
        connector.material,
        youngs_modulus=case.youngs_modulus,
        alpha=ALPHA if case.damped else 0.0,
        beta=BETA if case.damped else 0.0,
    )
    body = SoftBody("prong", prong.mesh, material, prong.clamped, gravity=(0.0, 0.0, 0.0))
    nose = prong.contact[np.argmax(np.abs(prong.mesh.nodes[prong.contact, 0] - _foot(connector)))]
    loaded = int(body.dofs_of([nose])[0, 0])
    force = np.zeros(body.n_dof)
    force[loaded] = np.sign(_foot(connector))
    yielding = float(spsolve(body.K, force)[loaded] * force[loaded])
    force *= connector.interference / yielding
    linear = LinearBody(body.M, 0.0 * body.K, body.K, case.step)
    corotational = CorotationalMidpoint(body, case.step)
    rows: list[tuple[float, float, float]] = []
    rising = round(BEND / case.step)
    for k in range(1, rising + round(watched / case.step) + 1):
        f = force * min(1.0, k / rising) if k <= rising else 0.0
        try:
            (linear if case.body == LINEAR else corotational).step(f)
        except FloatingPointError:
            break
        if k < rising:
            continue
        energy = linear.energy() if case.body == LINEAR else body.energy()
        way = linear.x[loaded] if case.body == LINEAR else body.x[nose, 0] - prong.mesh.nodes[nose, 0]
        rows.append(((k - rising) * case.step, energy, float(way * np.sign(force[loaded]))))
        if not energy < LOST * rows[0][1]:
            break
    return np.array(rows)


def _foot(connector: Connector) -> float:
    """x of the first prong's clamped nodes [m]."""
    prong = connector.prongs[0]
    return float(prong.mesh.nodes[prong.clamped, 0].mean())


def _row(case: Bent, trace: NDArray) -> Row:
    energy = trace[:, 1] / trace[0, 1]
    return {
        "body": case.body,
        "E_MPa": 1e-6 * case.youngs_modulus,
        "step_ms": 1e3 * case.step,
        "largest_energy_over_first": float(np.nanmax(energy)),
        "last_energy_over_first": float(energy[-1]),
        "diverged_after_s": float(trace[-1, 0]) if not energy[-1] < LOST else float("inf"),
    }


def _click_row(name: str, series: Series, connector: Connector) -> Row:
    """The most energy that prongs and couplings had, and how much all, plug and hold too, gain while the
    target stands still and does no work."""
    energy, whole = series.energy[:, :3].sum(axis=1), series.energy.sum(axis=1)
    standing = series.time > connector.stroke / SPEED
    return {
        "body": name,
        "peak_force_N": float((series.floor @ connector.push).max()),
        "largest_energy_J": float(energy.max()),
        "standing_gain": float(np.diff(whole[standing]).max() / whole.max()),
        "standing_s": float(np.ptp(series.time[standing])),
        "travel_error_m": float(abs(series.travel[-1] - connector.stroke)),
        "steps": len(series.time),
    }


def _energies(series: Series) -> list[Row]:
    names = ("kinetic", "elastic", "coupling", "plug")
    return [
        {"time": float(t), **{f"{n}_J": float(e) for n, e in zip(names, row, strict=True)}}
        for t, row in zip(series.time, series.energy, strict=True)
    ]


def claims_of(bent: Sequence[Row], clicks: Sequence[Row]) -> list[Claim]:
    """Ours stays bounded; the corotational one, as it is."""
    by = {(row["body"], row["E_MPa"], row["step_ms"]): row for row in bent}
    ours, other = by[LINEAR, 1e-6 * PAPER_E, 1.0], by[COROTATIONAL, 1e-6 * PAPER_E, 1.0]
    return [
        *(
            at_most(
                f"most energy gained in a step as the target stands, of the largest, {row['body']} undamped",
                row["standing_gain"], 1e-9, "", "002, V-A: stable without damping, nothing does work",
            )
            for row in clicks
        ),
        at_most(
            "largest or last energy of a released linear prong over its first, off 1",
            greatest(abs(ours[f"{which}_energy_over_first"] - 1.0) for which in ("largest", "last")),
            1e-9, "", "002, proposition 1",
        ),
        at_most(
            "time until the released corotational prong has ten times its energy",
            other["diverged_after_s"], RELEASED, "s", "002, V-A: with the paper's damping it just diverges",
        ),
    ]  # fmt: skip


def _print(bent: Sequence[Row], clicks: Sequence[Row]) -> None:
    console = Console(stderr=True, highlight=False)
    heads = (
        "connector, undamped",
        "peak [N]",
        "largest energy [J]",
        "gained standing, over it",
        "off the end [m]",
    )
    table = Table(*heads, title="clicked shut at E = 164.76 MPa, T = 1 ms", title_justify="left")
    names = ("body", "peak_force_N", "largest_energy_J", "standing_gain", "travel_error_m")
    for cells in columns(clicks, *names):
        table.add_row(*cells)
    console.print(table)
    bent_heads = ("prong", "E [MPa]", "T [ms]", "largest energy", "last", "diverged after [s]")
    table = Table(
        *bent_heads, title="bent by its interference and let go; energy over its first", title_justify="left"
    )
    names = ("body", "E_MPa", "step_ms", "largest_energy_over_first", "last_energy_over_first")
    for cells in columns(bent, *names, "diverged_after_s"):
        table.add_row(*cells)
    console.print(table)


def _draw(figure: Figure, series: dict[str, Series], traces: dict[Bent, NDArray]) -> None:
    left, right = figure.subplots(1, 2)
    for model in (MODELS[0], MODELS[3]):
        s = series[model.name]
        energy = 1e3 * s.energy[:, :3].sum(axis=1)
        left.plot(s.time, energy, color=model.colour, lw=1.1, label=f"{model.name}, undamped")
    left.set(xlabel="time [s]", ylabel="energy of the prongs [mJ]", title="clicked shut, T = 1 ms")
    left.legend(fontsize=7.5, frameon=False)
    colours = [COLOURS["krylov"], COLOURS["paper"], "#8b6fc0", "#e08a2e", "#3f9b57", "#8a97a8", "#263242"]
    for (case, trace), colour in zip(traces.items(), colours, strict=False):
        label = f"{case.body}, {1e-6 * case.youngs_modulus:.3g} MPa, {1e3 * case.step:g} ms"
        right.semilogy(1e3 * trace[:, 0], trace[:, 1] / trace[0, 1], color=colour, lw=1.2, label=label)
    right.axhline(LOST, color=COLOURS["faint"], lw=0.8, ls=(0, (4, 3)))
    right.set(xlabel="after release [ms]", ylim=(1e-3, 1e3), xlim=(0.0, 60.0))
    right.set_title("one prong let go: energy over its first")
    right.legend(fontsize=7, frameon=False, loc="upper right")
    for ax in (left, right):
        ax.title.set_fontsize(9.5)
