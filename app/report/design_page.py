"""A designer's report of a snap connector: an HTML page with its pictures inside, tables as CSV beside it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from palpo.app.report import design_figures as draw
from palpo.app.report.page import PageSection, _data_url, number, rendered
from palpo.config.schema.snap import SnapScene

if TYPE_CHECKING:
    from palpo.app.cli.design import DesignResult, Row

PAGE = "design.html"


def write_design(folder: Path, found: DesignResult, share: tuple[float, float, float] | None) -> Path:
    """Page, pictures and tables into a folder that exists; the page's path.

    share: the yield and the ends of its confidence interval, where parts were drawn.
    """
    travel, limits = found.travel, found.limits
    curve = folder / "curve.csv"
    _write_curve(curve, found)
    parts = [
        _part(folder, "force", "Force over travel", _about_force(found), draw.force(travel, limits)),
        _part(folder, "body", "Loads on the body",
              "Where the stress is largest on the way in; means of the elements around each node. Elements "
              "that the plug can touch are left out of the largest. At a sharp inner corner loads grow with "
              "every finer mesh.",
              draw.body(travel, limits, _eye(found.spec))),
        _part(folder, "quality", "Mesh", "Of the socket.", draw.quality(travel)),
    ]  # fmt: skip
    if found.grid:
        _write(folder / "sweep.csv", found.grid)
        note = "White crosses do not keep to the limits." if len(found.axes) == 2 else "Dotted: the limits."
        parts.append(_part(folder, "sweep", "What a change does", note, draw.swept(found)))
    if found.parts and share is not None:
        _write(folder / "parts.csv", found.parts)
        drawing = draw.yielded(found, said(share, len(found.parts)))
        parts.append(_part(folder, "parts", "Parts within tolerances", _about(found), drawing))
    page = rendered(
        "design.html",
        title=found.spec.title,
        when=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        facts=_facts(found),
        passes=found.row["passes"],
        cards=_cards(found, share),
        parts=parts,
        heads=draw.rows_of(found.grid),
        rows=[[number(value) for value in row.values()] for row in found.grid],
        config_text=found.spec.origin.text,
    )
    (folder / PAGE).write_text(page, encoding="utf-8")
    return folder / PAGE


def said(share: tuple[float, float, float], n: int) -> str:
    """The yield in words."""
    p, low, high = (100.0 * value for value in share)
    return f"{p:.0f} % of {n} parts pass (95 % confidence: {low:.0f} to {high:.0f} %)"


def _part(folder: Path, name: str, title: str, note: str, figure: Figure) -> PageSection:
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=150)
    return PageSection(title, note, image=_data_url(path))


def _about_force(found: DesignResult) -> str:
    inward = found.travel.insertion
    return (
        f"The force nears its peak of {inward.peak:.3g} N at {1e3 * inward.at_peak:.3g} mm and is "
        f"{inward.plateau:.3g} N in the mean up to the click; after it {inward.sliding:.3g} N drag on."
    )


def _about(found: DesignResult) -> str:
    drawn = ", ".join(f"{t.key} {t.about:.4g} ± {3.0 * t.deviation:.2g}" for t in found.tolerances)
    return f"Drawn from normal distributions, three deviations wide: {drawn}."


def _facts(found: DesignResult) -> list[tuple[str, str]]:
    c = found.travel.model.connector
    return [
        ("E", f"{1e-6 * c.material.youngs_modulus:.4g} MPa"),
        ("friction", f"{c.friction:g}"),
        ("stroke", f"{1e3 * c.stroke:.3g} mm"),
    ]


def _cards(found: DesignResult, share: tuple[float, float, float] | None) -> list[tuple[str, str, str]]:
    row, limits = found.row, found.limits

    def allowed(value: float | None, unit: float, what: str) -> str:
        return "" if value is None else f"{what} {unit * value:.3g} is asked"

    loose = "comes loose" if row["released"] else "holds as far as it was pulled"
    arrived = "felt hardly anything on arrival" if row["latched"] else "still pushed back on arrival"
    strain, stress = 100.0 * row["strain"], 1e-6 * row["stress_Pa"]
    cards = [
        ("Insertion, peak", f"{row['insertion_N']:.3g} N", allowed(limits.insertion_below, 1.0, "below")),
        ("Retention, peak", f"{row['retention_N']:.3g} N",
         allowed(limits.retention_above, 1.0, "above") or loose),
        ("Largest strain", f"{strain:.3g} %", allowed(limits.strain_below, 100.0, "below")),
        ("Largest stress", f"{stress:.3g} MPa", allowed(limits.stress_below, 1e-6, "below")),
        ("Latched", "yes" if row["latched"] else "no", arrived),
    ]  # fmt: skip
    if share is not None:
        p, low, high = (100.0 * value for value in share)
        cards.append(("Yield", f"{p:.0f} %", f"{low:.0f} to {high:.0f} % at 95 % confidence"))
    return cards


def _eye(spec: SnapScene) -> Any:
    view = spec.view
    if view.eye is None:
        return None
    return np.array(view.eye) - np.array(view.target if view.target is not None else (0.0, 0.0, 0.0))


def _write_curve(path: Path, found: DesignResult) -> None:
    """Every step: which way, travel, force; and the loads, in straight lines between their samples."""
    rows = []
    for name, way in (("in", found.travel.insertion), ("out", found.travel.retention)):
        order = np.argsort(way.at)
        strain, stress = (
            np.interp(way.travel, way.at[order], values[order]) for values in (way.strain, way.stress)
        )
        rows += [
            {"way": name, "travel_m": x, "force_N": f, "strain": e, "stress_Pa": s}
            for x, f, e, s in zip(way.travel, way.force, strain, stress, strict=True)
        ]
    _write(path, rows)


def _write(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, draw.rows_of(rows))
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
