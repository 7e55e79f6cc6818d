"""The specification of its scenes."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from palpo.config.schema.base import Spec
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.units import Length, Stiffness
from palpo.physics.exchange.snapshot import plane_corners


class SpringFloor(Spec):
    """An endless floor that pushes upward."""

    stiffness: Stiffness = Field(200.0, gt=0, description="Of the floor.")
    height: Length = Field(0.0, description="Of its surface.")


class WallScene(BaseScene):
    """A point in the hand over a floor that is a spring."""

    system: Literal["spring_wall"] = Field("spring_wall", description="What computes the scene: a spring.")
    wall: SpringFloor = Field(description="The floor.")

    @property
    def corners(self) -> NDArray[np.float64]:
        """The floor as a plate [m], shape (4, 3)."""
        return plane_corners(np.array([0.0, self.wall.height, 0.0]), np.array([0.0, 1.0, 0.0]), 0.2)
