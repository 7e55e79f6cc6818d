"""Bases of a prong's segments at equal order: balanced, modal truncation, Craig-Bampton; 002, III-B.

A basis is judged by the H-infinity error of its segment, at the nodes where forces enter; by the compliance
at rest of the joined prong's contact nodes, beside that of the whole prong; and by the click's peak, beside
that of unreduced segments. An undamped model has no gramians: those of a small damping stand for them, and
the basis depends on it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import splu

from palpo.app.cli.progress import Progress
from palpo.physics.reduction.balanced import GRAMIAN_DAMPING, balanced
from palpo.physics.reduction.error_norm import error_norm
from palpo.physics.reduction.joining import coupling_nodes
from palpo.physics.reduction.linear_model import Basis, LinearModel, VibrationModes, vibration_modes
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import segment_models
from palpo.studies.claims import Line, Reported, at_most, smallest
from palpo.studies.reference.craig_bampton import craig_bampton
from palpo.studies.reference.modal import modal
from palpo.studies.snap_models import ModelCase, Row, case_of, columns, exact_distance, insert
from palpo.studies.tables import COLOURS, save_figure, write_csv

BALANCED, MODAL, CRAIG_BAMPTON = "balanced", "modal", "Craig-Bampton"
METHODS = {BALANCED: COLOURS["krylov"], MODAL: COLOURS["paper"], CRAIG_BAMPTON: COLOURS["low"]}
ORDERS = ((6, 25), (12, 25), (24, 60))
"""Of the contact segment and of the inside: the paper's at the coarse mesh, and two above."""
WEAKER, STRONGER = 1e-6, 1e-4
"""beta of gramians besides GRAMIAN_DAMPING's, which is the model's own [s]; alpha is GRAMIAN_DAMPING's."""


class SocketReduction:
    """A connector at a mesh, its segments and what they are judged by."""

    def __init__(self, case: ModelCase) -> None:
        self.case, self.field = case, exact_distance(case.connector)
        self.numerics = replace(case.numerics, segments=2, orders=None)
        self.parts: list[list[tuple[LinearModel, VibrationModes, NDArray[np.int64]]]] = []
        for prong in case.connector.prongs:
            models = segment_models(prong, case.connector, self.numerics)
            joints = coupling_nodes(models)
            inputs = [
                np.union1d(np.intersect1d(prong.contact, m.nodes), j)
                for m, j in zip(models, joints, strict=True)
            ]
            self.parts.append([(m, vibration_modes(m), i) for m, i in zip(models, inputs, strict=True)])
        self.whole = compliance(self._model(segments=1))
        self.unreduced = self._peak(self._model())

    def _model(self, bases: list[list[Basis]] | None = None, segments: int = 2) -> SnapModel:
        numerics = replace(self.numerics, segments=segments)
        return SnapModel(self.case.connector, numerics, self.field, bases)

    def _peak(self, model: SnapModel) -> float:
        """Of the contacts' push against an insertion [N]."""
        series = insert(model)
        return float(-(series.wrench[:, :3] @ self.case.connector.push).min())

    def bases(self, method: str, orders: Sequence[int], beta: float) -> list[list[Basis]]:
        """Of each prong's segments; beta [s]: of the gramians."""
        return [
            [basis_of(*part, method, order, beta) for part, order in zip(parts, orders, strict=True)]
            for parts in self.parts
        ]

    def row(self, method: str, orders: Sequence[int], beta: float = GRAMIAN_DAMPING[1]) -> Row:
        """What these bases are worth."""
        bases = self.bases(method, orders, beta)
        errors = []
        for (model, modes, inputs), basis in zip(self.parts[0], bases[0], strict=True):
            found = error_norm(model, modes, basis, inputs, *GRAMIAN_DAMPING)
            errors.append(found.error / found.size)
        joined = self._model(bases)
        return {
            "mesh": self.case.mesh,
            "method": method,
            "orders": " + ".join(map(str, orders)),
            "beta_s": beta,
            "contact_segment_error": errors[0],
            "inside_error": errors[1],
            "compliance_error_percent": 100.0 * (compliance(joined) / self.whole - 1.0),
            "peak_error_percent": 100.0 * (self._peak(joined) / self.unreduced - 1.0),
        }


def basis_of(
    model: LinearModel, modes: VibrationModes, inputs: NDArray[np.int64], method: str, order: int, beta: float
) -> Basis:
    """A segment's basis of `order` columns for forces at the nodes `inputs`."""
    if method == BALANCED:
        return balanced(model, modes, inputs, order, damping=(GRAMIAN_DAMPING[0], beta))
    # where forces act on every node there is nothing inside, and constraint modes are vibration modes
    if method == MODAL or inputs.size == model.nodes.size:
        return modal(model, modes, order)
    return craig_bampton(model, modes, inputs, order)


def compliance(model: SnapModel) -> float:
    """Mean displacement of a contact node of the first prong per force on it, at rest [m/N]."""
    joined = model.prongs[0].model
    n = int(joined.segment_start[-1])
    K, H, surface = (
        sp.csr_array((r.value, r.column, r.start), shape=(len(r.start) - 1, n))
        for r in (joined.K, joined.H, joined.surface)
    )
    held = splu((K + joined.coupling_stiffness * (H.T @ H)).tocsc())
    return float(np.mean((surface.T.toarray() * held.solve(surface.T.toarray())).sum(axis=0)))


def run(out: Path, quick: bool) -> list[Line]:
    """Every basis at every order, and balanced ones of other gramians; quick: one order, the coarse mesh."""
    progress = Progress()
    rows: list[Row] = []
    for mesh in ("coarse",) if quick else ("coarse", "fine"):
        with progress.stage(f"{mesh} mesh: segments and their modes"):
            reduction = SocketReduction(case_of("two-prong", mesh))
        for orders in ORDERS[:1] if quick else ORDERS:
            for method in METHODS:
                with progress.stage(f"{mesh} mesh, {method}, {orders}"):
                    rows.append(reduction.row(method, orders))
        for beta in (WEAKER,) if quick else (WEAKER, STRONGER):
            with progress.stage(f"{mesh} mesh, gramians at beta = {beta:g} s"):
                rows.append(reduction.row(BALANCED, ORDERS[0], beta))
    write_csv(out / "reduction.csv", rows)
    save_figure(out / "reduction.png", 3.6, partial(_draw, rows=rows))
    _print(rows)
    return [claim for mesh in dict.fromkeys(r["mesh"] for r in rows) for claim in claims_of(rows, mesh)]


def claims_of(rows: Sequence[Row], mesh: str) -> list[Line]:
    """Balanced reduction beside the others, and how much hangs on the gramians' damping."""
    own = [r for r in rows if r["mesh"] == mesh]
    usual = [r for r in own if r["beta_s"] == GRAMIAN_DAMPING[1]]
    first, last = usual[0]["orders"], usual[-1]["orders"]
    by = {(r["method"], r["orders"]): r for r in usual}
    ours, others = by[BALANCED, first], [by[m, first] for m in (MODAL, CRAIG_BAMPTON)]
    other = {r["beta_s"]: r["inside_error"] / ours["inside_error"] for r in own if r not in usual}
    what = f"{mesh}: H-infinity error with gramians at beta = {{:g}} s over that at the model's own"
    claims: list[Line] = [
        at_most(what.format(WEAKER), other[WEAKER], 1.2, "", "with less damping, the basis stays what it is")
    ]
    if STRONGER in other:
        about = "strong damping hides the resonances"
        claims.append(Reported(what.format(STRONGER), other[STRONGER], "", about))
    return [
        at_most(f"{mesh}: H-infinity error of the inside at {first}, balanced over the better other",
                ours["inside_error"] / smallest(r["inside_error"] for r in others), 1.0, "", "002, III-B"),
        at_most(f"{mesh}: error of the compliance at rest at {last}, balanced",
                abs(by[BALANCED, last]["compliance_error_percent"]), 5.0, "%", "beside the whole prong"),
        at_most(f"{mesh}: error of the click's peak at {last}, balanced",
                abs(by[BALANCED, last]["peak_error_percent"]), 5.0, "%", "beside unreduced segments"),
        *claims,
    ]  # fmt: skip


def _print(rows: Sequence[Row]) -> None:
    heads = ("mesh", "basis", "orders", "beta [s]", "contact", "inside", "at rest [%]", "peak [%]")
    table = Table(*heads, title="H-infinity error of each segment, at rest, and at the click",
                  title_justify="left")  # fmt: skip
    for cells in columns(
        rows, "mesh", "method", "orders", "beta_s", "contact_segment_error", "inside_error",
        "compliance_error_percent", "peak_error_percent",
    ):  # fmt: skip
        table.add_row(*cells)
    Console(stderr=True, highlight=False).print(table)


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    usual = [r for r in rows if r["beta_s"] == GRAMIAN_DAMPING[1]]
    names = list(dict.fromkeys(r["orders"] for r in usual))
    measures = {
        "inside_error": "H-infinity error of the inside",
        "compliance_error_percent": "error of the compliance at rest [%]",
        "peak_error_percent": "error of the click's peak [%]",
    }
    axes = figure.subplots(1, 3)
    for ax, (key, title) in zip(axes, measures.items(), strict=True):
        for method, colour in METHODS.items():
            for mesh, stroke in (("coarse", "-"), ("fine", (0, (3, 2)))):
                own = [r for r in usual if (r["method"], r["mesh"]) == (method, mesh)]
                if own:
                    ax.plot([names.index(r["orders"]) for r in own], [r[key] for r in own], "o", ls=stroke,
                            ms=3.5, lw=1.2, color=colour, label=f"{method}, {mesh}")  # fmt: skip
        ax.set_xticks(range(len(names)), names)
        ax.set(xlabel="orders of contact segment and inside")
        ax.set_title(title, fontsize=9.5)
    axes[0].set_yscale("log")
    axes[1].legend(fontsize=7, frameon=False)
