"""The colours that pictures, legends and the report share (sRGB, 0 to 1)."""

from physics.exchange.snapshot import BILATERAL, OPEN, SLIP, STICK

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

SOFT = from_hex("#d98673")
STIFF = from_hex("#8ea0b5")
WIRE = from_hex("#c99a3d")
BODIES = (SOFT, STIFF, WIRE, from_hex("#6fa88f"), from_hex("#a58bc4"), from_hex("#7fb0d6"))
