"""Bilateral constraints between two bodies, or between a body and a moving frame."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from palpo.config.schema.base import Flag, Kinds, Spec, at_most_one, refuse
from palpo.config.schema.body import Place
from palpo.config.schema.device import Waypoints
from palpo.config.schema.units import Frequency, Length
from palpo.config.schema.vectors import Direction


class BodyPoint(Place):
    """A point of a named body, by one of node, end and at; a rigid body's centre of mass without any."""

    body: str = Field(description="Name of the body.")


class _Pair(Spec):
    a: BodyPoint = Field(description="The first body's point.")
    b: BodyPoint = Field(description="The second body's point.")

    @model_validator(mode="after")
    def _two_bodies(self) -> "_Pair":
        if self.a.body == self.b.body:
            raise refuse("an attachment joins two different bodies", "b", "body")
        return self


class PointAttachment(_Pair):
    """Two points stay together; both bodies turn freely (3 rows)."""

    kind: Literal["point"] = "point"


class WeldAttachment(_Pair):
    """Two points stay together and keep their relative orientation (6 rows)."""

    kind: Literal["weld"] = "weld"


class SlideAttachment(_Pair):
    """Point a stays on the line through point b (2 rows)."""

    kind: Literal["slide"] = "slide"
    direction: Direction = Field(
        description="Direction of the line at rest; it turns with body b if that can turn."
    )


class Oscillation(Spec):
    """A sine about the place at rest."""

    direction: Direction = Field(description="Direction of the motion.")
    amplitude: Length = Field(gt=0, description="Half the stroke.")
    frequency: Frequency = Field(gt=0, description="Frequency.")


class FrameAttachment(Spec):
    """A point follows a frame that moves on a path or oscillates; without either it stays where it was."""

    kind: Literal["frame"] = "frame"
    a: BodyPoint = Field(description="The point that follows.")
    orientation: Flag = Field(
        False, description="Whether the frame also holds the orientation (6 rows instead of 3)."
    )
    path: Waypoints | None = Field(None, description="Displacements from rest over time, rows [t, x, y, z].")
    oscillation: Oscillation | None = Field(None, description="A sine instead of a path.")

    @model_validator(mode="after")
    def _one_motion(self) -> "FrameAttachment":
        at_most_one(self, "path", "oscillation")
        return self


Attachment = Annotated[
    PointAttachment | WeldAttachment | SlideAttachment | FrameAttachment, Field(discriminator="kind"), Kinds()
]
