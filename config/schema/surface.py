"""How a body's surface feels to what slides on it."""

from pydantic import Field, model_validator

from palpo.config.schema.base import Spec, at_most_one
from palpo.config.schema.body import Corners, SphereRegion
from palpo.config.schema.units import Length, Number, Slowness
from palpo.config.schema.vectors import Direction


class SurfaceSpec(Spec):
    """Grooves and a viscous film on a body, or on a part of it; both change its friction and dissipate."""

    body: str = Field(description="Name of the body. Where several surfaces hold, the last one does.")
    box: Corners | None = Field(
        None, description="Only within two opposite corners, where the body is at rest, in the scene."
    )
    sphere: SphereRegion | None = Field(None, description="Only within a sphere, likewise.")
    texture: Number = Field(
        0.0, ge=0, le=1, description="Depth of grooves: friction varies by this share of it, up and down."
    )
    pitch: Length = Field(0.003, gt=0, description="Distance of the grooves.")
    along: Direction = Field((1.0, 0.0, 0.0), description="Direction across the grooves.")
    viscosity: Slowness = Field(
        0.0, ge=0, le=20, description="By how much the coefficient of friction rises with the sliding speed."
    )

    @model_validator(mode="after")
    def _one(self) -> "SurfaceSpec":
        at_most_one(self, "box", "sphere")
        return self
