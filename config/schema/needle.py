"""A needle that goes into a soft body."""

from typing import Literal

from pydantic import Field

from palpo.config.schema.base import Spec
from palpo.config.schema.units import Angle, Force, Length, Stiffness
from palpo.config.schema.vectors import Direction


class NeedleSpec(Spec):
    """A tool's end that punctures a soft body, slides in along the path that it cuts, and is drawn out."""

    body: str = Field(description="The tool: a beam, or a rigid body whose shape is a capsule.")
    tip: Literal["first", "last"] = Field(
        "first",
        description="Its end that is the tip; of a capsule the first one lies towards -y of its axes.",
    )
    tissue: str = Field(description="The soft body, of tetrahedra, that it may go into.")
    puncture: Force = Field(gt=0, description="Force on the tip at which the surface gives way.")
    cutting: Force = Field(ge=0, description="Force on the tip while it cuts on; less than `puncture`.")
    friction: Stiffness = Field(ge=0, description="Friction of the shaft inside, for each length of it.")
    bevel: Angle = Field(
        0.0, ge=0, lt=1.4, description="Of the tip's face to the shaft; half of it turns the cut aside."
    )
    bevel_towards: Direction = Field(
        (1.0, 0.0, 0.0), description="Where a bevelled tip cuts to, in the scene, as the needle is at rest."
    )
    spacing: Length = Field(
        0.002, ge=2e-4, le=0.05, description="About how far constraints along the path are apart."
    )
