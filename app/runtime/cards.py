"""The launcher's cards: what each shipped scene is called, what one does in it, and its picture."""

from typing import Any

import numpy as np
from PIL import Image

from palpo.app.systems.system import find_system
from palpo.config.load import CARDS, shipped_tables
from palpo.config.systems import SYSTEMS, system_told
from palpo.render.panel_state import Card


def cards() -> tuple[Card, ...]:
    """A card for each scene that comes with the program, by system."""
    known = list(SYSTEMS)
    found = [(known.index(system_told(tables)), name, tables) for name, tables in shipped_tables().items()]
    return tuple(
        _card(name, tables, find_system(known[number]).heading)
        for number, name, tables in sorted(found, key=lambda one: one[:2])
    )


def _card(name: str, tables: dict[str, Any], heading: str) -> Card:
    return Card(name, tables["title"], _words(tables.get("description", "")), heading, _picture(name))


def _words(description: str) -> str:
    """Without the name of the system, which is the heading."""
    head, colon, rest = description.partition(": ")
    if not colon or len(head.split()) > 3:
        return description
    return rest[:1].upper() + rest[1:]


def _picture(name: str) -> np.ndarray | None:
    path = CARDS / f"{name}.png"
    return np.asarray(Image.open(path).convert("RGB")) if path.exists() else None
