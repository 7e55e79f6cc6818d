"""The camera."""

from pydantic import Field

from palpo.config.schema.base import Spec
from palpo.config.schema.units import Angle
from palpo.config.schema.vectors import Position


class View(Spec):
    """Where the camera stands and looks; whatever is missing is chosen so that the scene fits."""

    eye: Position | None = Field(None, description="Position of the camera.")
    target: Position | None = Field(None, description="Point it looks at.")
    field_of_view: Angle = Field(0.7, gt=0, lt=3.1, description="Vertical opening angle.")
