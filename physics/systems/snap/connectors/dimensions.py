"""Dimensions of a connector, checked in words."""

from typing import Any

from palpo.physics.numerics.errors import InputError

ANGLES = ("ramp",)
"""Dimensions in radians; all others are in metres."""


def require_between(kind: str, dimensions: Any, **limits: tuple[float, float]) -> None:
    """InputError for the first dimension outside its limits (low, high), border included.

    Limits may follow from the dimensions before them, so their order tells which one to blame.
    """
    for name, (low, high) in limits.items():
        value = getattr(dimensions, name)
        unit = "rad" if name in ANGLES else "m"
        if not low <= value <= high:
            raise InputError(
                f"{kind}: {name} is {value:g} {unit}, expected {low:.4g} to {high:.4g} {unit} "
                "beside its other dimensions."
            )
