"""A blade that cuts a soft body."""

import math

from pydantic import Field, model_validator

from palpo.config.schema.base import Spec, refuse
from palpo.config.schema.units import Force, Length, Toughness
from palpo.config.schema.vectors import Direction, Position

LONGEST = 10.0
"""Most [m] that a blade may be long or deep."""

MOST = 64
"""Points of a blade that a frame has room for."""


class BladeSpec(Spec):
    """A tool's straight edge that cuts a soft body wherever it goes."""

    body: str = Field(description="The tool: a rigid body, with a flat part behind the edge.")
    tissue: str = Field(description="The soft body, of linear tetrahedra, that it may cut.")
    edge: tuple[Position, Position] = Field(description="Ends of the edge, in the scene as it begins.")
    towards: Direction = Field(
        description="Where it cuts to, in the blade's plane, in the scene as it begins."
    )
    depth: Length = Field(gt=0, description="How far the blade's flat sides reach behind the edge.")
    puncture: Force = Field(gt=0, description="Push at which the edge breaks the surface.")
    toughness: Toughness = Field(gt=0, description="Energy that it takes to cut, for each area.")
    spacing: Length = Field(
        0.003,
        ge=2e-4,
        le=0.05,
        description="About how far points of the blade that meet the tissue are apart.",
    )

    @model_validator(mode="after")
    def _flat(self) -> "BladeSpec":
        along = tuple(b - a for a, b in zip(*self.edge, strict=True))
        length = math.hypot(*along)
        if not length > 0.0:
            raise refuse("both ends are one point; give an edge", "edge")
        for key, size in (("edge", length), ("depth", self.depth)):
            if size > LONGEST:
                raise refuse(f"{size:g} m is longer than {LONGEST:g} m, the most that a blade may be", key)
        if abs(sum(a * b for a, b in zip(along, self.towards, strict=True))) > 0.95 * length * math.hypot(
            *self.towards
        ):
            raise refuse("it runs along the edge; give a direction across it", "towards")
        points, rows = self.grid
        if self.points > MOST:
            raise refuse(
                f"makes {points} points on the edge and {rows} rows behind it; give at least "
                f"{self._least(length):.2g} m, for at most {MOST} in all",
                "spacing",
            )
        return self

    @property
    def grid(self) -> tuple[int, int]:
        """Points along the edge, and rows of as many behind it."""
        length = math.dist(*self.edge)
        return max(2, round(length / self.spacing) + 1), max(1, round(self.depth / self.spacing))

    @property
    def points(self) -> int:
        """All of them: one for each on the edge, two for each behind it."""
        return self.grid[0] * (1 + 2 * self.grid[1])

    def _least(self, length: float) -> float:
        spacing = self.spacing
        while max(2, round(length / spacing) + 1) * (1 + 2 * max(1, round(self.depth / spacing))) > MOST:
            spacing *= 1.05
        return spacing
