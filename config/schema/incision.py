"""A cut through a soft body."""

import math
from itertools import pairwise
from typing import Any

from pydantic import Field, field_validator

from palpo.config.schema.base import Spec
from palpo.config.schema.units import Toughness
from palpo.config.schema.vectors import Position

FLAT = 1e-3
"""Most by which a corner may be off the plane of an incision, by the outline's length."""


class IncisionSpec(Spec):
    """A flat cut through a soft body, open from the beginning or to be torn."""

    corners: tuple[Position, ...] = Field(
        min_length=3, max_length=64,
        description="Of its flat, convex outline, one after another, in the scene as it begins. What lies "
        "outside of the body cuts nothing.",
    )  # fmt: skip
    toughness: Toughness | None = Field(
        None,
        gt=0,
        description="Energy that it takes to tear it open, for each area; without it, it is open.",
    )

    @field_validator("corners")
    @classmethod
    def _flat(cls, corners: Any) -> Any:
        ways = [tuple(b - a for a, b in zip(corners[0], corner, strict=True)) for corner in corners]
        longest = max(math.hypot(*way) for way in ways)
        normals = [_cross(one, other) for one, other in pairwise(ways[1:])]
        normal = tuple(sum(parts) for parts in zip(*normals, strict=True))
        size = math.hypot(*normal)
        if not size > FLAT * longest**2:
            raise ValueError("all corners lie on a line; give the outline of a surface")
        off = max(abs(_dot(normal, way)) for way in ways) / size
        if off > FLAT * longest:
            raise ValueError(f"a corner lies {off:.3g} m off the plane of the others; an incision is flat")
        if any(_dot(normal, one) < 0.0 for one in normals):
            raise ValueError("the outline is not convex; give it as several incisions")
        return corners


def _dot(a: Any, b: Any) -> float:
    return float(sum(x * y for x, y in zip(a, b, strict=True)))


def _cross(a: Any, b: Any) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
