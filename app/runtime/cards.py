"""The launcher's cards: what each shipped scene is called, what one does in it, and its picture."""

import numpy as np
from PIL import Image

from palpo.config.load import CARDS, shipped_tables
from palpo.render.panel_state import Card

GROUPS = {
    "multirate": "A stiff tool on soft bodies",
    "hapco": "One body pressed on another, with friction at many contacts",
    "snap": "Connectors that click",
    "suction": "Suction cups",
}
"""Headings, by a scene's key `system`, in the order of the launcher."""


def cards() -> tuple[Card, ...]:
    """A card for each scene that comes with the program, by system."""
    known = list(GROUPS)
    found = [(tables.get("system", known[0]), name, tables) for name, tables in shipped_tables().items()]
    return tuple(
        Card(name, tables["title"], _words(tables.get("description", "")), GROUPS[system], _picture(name))
        for system, name, tables in sorted(found, key=lambda one: (known.index(one[0]), one[1]))
    )


def _words(description: str) -> str:
    """Without the name of the system, which is the heading."""
    head, colon, rest = description.partition(": ")
    if not colon or len(head.split()) > 3:
        return description
    return rest[:1].upper() + rest[1:]


def _picture(name: str) -> np.ndarray | None:
    path = CARDS / f"{name}.png"
    return np.asarray(Image.open(path).convert("RGB")) if path.exists() else None
