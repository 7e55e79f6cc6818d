"""A cut through a soft body."""

from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from palpo.config.schema.base import Spec
from palpo.config.schema.units import Toughness
from palpo.config.schema.vectors import Position

FLAT = 1e-3
"""Most by which a corner may be off the plane of an incision, by its length."""


class IncisionSpec(Spec):
    """A flat cut through a soft body, that is open or tears open."""

    corners: tuple[Position, ...] = Field(
        min_length=3, max_length=64,
        description="Of its flat, convex outline, one after another, in the scene as it begins. What lies "
        "outside of the body cuts nothing.",
    )  # fmt: skip
    toughness: Toughness | None = Field(
        None,
        gt=0,
        description="Energy that it takes to tear it open, for each area; without it, it is open from the "
        "beginning.",
    )

    @field_validator("corners")
    @classmethod
    def _flat(cls, corners: Any) -> Any:
        points = np.array(corners) - np.mean(corners, axis=0)
        _, sizes, axes = np.linalg.svd(points)
        if sizes[1] <= FLAT * sizes[0]:
            raise ValueError("all corners lie on a line; give the outline of a surface")
        off = np.abs(points @ axes[2]).max()
        if off > FLAT * sizes[0]:
            raise ValueError(f"a corner lies {off:.3g} m off the plane of the others; an incision is flat")
        return corners

    @property
    def triangles(self) -> Any:
        """Its surface [m], (t, 3, 3)."""
        first, *others = (np.array(corner) for corner in self.corners)
        return np.array([[first, a, b] for a, b in pairwise(others)])
