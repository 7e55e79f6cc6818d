"""What a step of the low loop may cost."""

from typing import NamedTuple


class Budget(NamedTuple):
    """How often the low loop makes a frame, and how much goes into it."""

    period: int
    """Servo ticks from one frame to the next."""
    columns: float = 1.0
    """Share of the scene's columns of A^-1 J^T that a frame gets."""
    contacts: float = 1.0
    """Share of the room for candidate contacts that a frame uses."""
