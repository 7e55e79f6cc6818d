"""Tables and figures that the studies share."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from palpo.app.report.figures import LOOK

WIDTH = 9.2  # inches
COLOURS = {
    "monolithic": "#263242",
    "krylov": "#2f6fc0",
    "extrapolated": "#e08a2e",
    "paper": "#d64550",
    "low": "#3f9b57",
    "high": "#d64550",
    "faint": "#8a97a8",
}
FOUR = [COLOURS[name] for name in ("krylov", "extrapolated", "low", "monolithic")]
"""Of curves that are alike; the house's cycle has three."""


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """One line a row; columns in the order of their first appearance; numbers to six digits."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def save_figure(path: Path, height: float, draw: Callable[[Figure], None]) -> None:
    """A PNG in the house's look; `draw` fills the figure."""
    with rc_context(LOOK):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        figure.savefig(path, dpi=150)
