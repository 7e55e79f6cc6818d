"""The colours that pictures, legends, the panel and the report share (sRGB, 0 to 1)."""

import matplotlib
import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import BILATERAL, OPEN, SLIP, STICK

Colour = tuple[float, float, float]


def from_hex(code: str) -> Colour:
    """'#rrggbb' as three fractions."""
    r, g, b = (int(code[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    return r, g, b


BACKGROUND_TOP = from_hex("#dfe7f0")
BACKGROUND_BOTTOM = from_hex("#f8f9fb")
GROUND = from_hex("#e9edf2")
GRID_LINE = from_hex("#8a97a8")
AXES = (from_hex("#d64550"), from_hex("#3f9b57"), from_hex("#3c6fc4"))  # x, y, z

CONTACT = {
    OPEN: from_hex("#8d97a5"),
    STICK: from_hex("#1fa35c"),
    SLIP: from_hex("#f08a12"),
    BILATERAL: from_hex("#7b4fd0"),
}
FORCE = from_hex("#c8243f")
HAND_FORCE = from_hex("#1769c9")
DEVICE = from_hex("#1769c9")
HELD = from_hex("#20304a")
ATTACHMENT = CONTACT[BILATERAL]
FIXED = from_hex("#4a5568")
REST = from_hex("#5a6b86")
GHOST = from_hex("#8a4fb8")
HINT = from_hex("#0a8484")
NEAR = from_hex("#b0308f")

GOOD, WARN, BAD = from_hex("#1c8f52"), from_hex("#c06a00"), from_hex("#c4202f")
EMERGENCY = from_hex("#d3202f")
SERIES = (
    HAND_FORCE,
    FORCE,
    from_hex("#1fa35c"),
    from_hex("#f08a12"),
    from_hex("#7b4fd0"),
    from_hex("#566276"),
)
"""Curves of a plot, in their order."""


# Perceptually uniform, and read alike by the colour-blind. Lines between 33 samples keep it within 1 %.
COLOUR_MAP: NDArray[np.float64] = matplotlib.colormaps["viridis"](np.linspace(0.0, 1.0, 33))[:, :3]
