"""Scenes of snap connectors: a rigid plug, led by the device, and the elastic socket that it clicks into."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from palpo.config.schema.base import Count, Flag, Kinds, Spec, refuse
from palpo.config.schema.body import Colour
from palpo.config.schema.connector import ConnectorSpec, FilesConnector
from palpo.config.schema.geometry import (
    FileOf,
    PositiveLength,
)
from palpo.config.schema.material import Elastic
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.solver import Contact, Friction, SolverSpec
from palpo.config.schema.units import (
    Acceleration,
    Damping,
    Frequency,
    Length,
    Mass,
    Number,
    Stiffness,
    Time,
)
from palpo.config.schema.vectors import NO_ROTATION, AxisAngle, Position, quaternion

WEIGHTS_FILES = (".npz",)


class Rayleigh(Spec):
    """Damping of the socket, D = alpha M + beta K; without an entry, the paper's."""

    alpha: Frequency = Field(1e-4, ge=0, description="Proportional to mass.")
    beta: Time = Field(1e-5, ge=0, description="Proportional to stiffness: 1 % of critical at 320 Hz.")
    settling: Number = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the damping of a reduced socket's vibrations that a step cannot follow; at 0, "
        "the paper's, hooks chatter on what they slide on.",
    )


class AdmittanceSpec(Spec):
    """How the plug follows its target: as a mass on a spring and a damper, also against turning."""

    stiffness: Stiffness | None = Field(
        None, gt=0, description="K_ad; without it, the generator's: its estimated peak at a lag of 1 mm."
    )
    mass: Mass | None = Field(None, gt=0, description="M_ad; without it, one that responds at 400 rad/s.")
    damping: Damping | None = Field(None, ge=0, description="D_ad; without it, critical damping.")
    gyration: PositiveLength | None = Field(
        None, description="Radius whose square turns the three into those against turning; the plug's own."
    )
    orientation: Flag = Field(
        True, description="Whether the target turns with the device; on a rail it does not."
    )
    rail: Number | None = Field(
        None,
        ge=1,
        le=1000,
        description="The plug runs on a rail along the push, which multiplies the three in its other "
        "freedoms; the hand leads it along the rail, and feels no other force.",
    )


class Misalignment(Spec):
    """Error of the plug's pose in the hand: the target is off by as much, all the way."""

    position: Position = Field((0.0, 0.0, 0.0), description="Added to the position.")
    rotation: AxisAngle = Field(NO_ROTATION, description="Axis and angle of a turn about the plug's centre.")

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Unit quaternion (w, x, y, z) of the rotation."""
        return quaternion(self.rotation)


class Integration(Spec):
    """Passive midpoint integration."""

    substeps: Annotated[Count, Field(ge=1, le=20)] = Field(
        1, description="Steps in a servo period: T = 1 / (servo_hz substeps)."
    )


class ExactDistanceSpec(Spec):
    """To the plug's triangles."""

    kind: Literal["exact"] = "exact"


class GridDistanceSpec(Spec):
    """Sampled on a grid, interpolated."""

    kind: Literal["grid"] = "grid"
    spacing: PositiveLength | None = Field(
        None, description="Of the samples; without it, a 150th of the plug's longest side."
    )


class LearnedDistanceSpec(Spec):
    """By a network that was trained on the plug."""

    kind: Literal["learned"] = "learned"
    weights: Annotated[str | None, FileOf(*WEIGHTS_FILES)] = Field(
        None,
        description="The network's .npz file; without it, the one that comes with the program or is kept for "
        "this plug, else one is trained, which takes minutes and needs palpo[learning], and kept.",
    )
    accuracy: Length = Field(
        1e-4, gt=0, description="Error that is accepted of it: 99th percentile near the surface."
    )


Distance = Annotated[
    ExactDistanceSpec | GridDistanceSpec | LearnedDistanceSpec, Field(discriminator="kind"), Kinds()
]


class SnapModelSpec(Spec):
    """How a prong is computed: whole, in segments, reduced."""

    segments: Annotated[Count, Field(ge=1, le=16)] = Field(
        2, description="Of each prong: 1 is the whole, 2 are surface and inside, more are cut by graph."
    )
    orders: tuple[Annotated[Count, Field(ge=1, le=2000)], ...] | None = Field(
        None,
        description="Columns of each segment's balanced basis; without it, error and static, all are whole.",
    )
    error: Number | None = Field(
        None, gt=0, lt=1, description="Instead: H-infinity error of each basis in shares of its segment."
    )
    static: Number | None = Field(
        None,
        gt=0,
        lt=1,
        description="Instead, of whole prongs: share of the contact surface's compliance at rest that a "
        "basis of static modes may leave out.",
    )
    coupling_stiffness: Stiffness | None = Field(
        None, ge=0, description="k_c of the segments; without it, it follows from the mesh."
    )
    coupling_damping: Damping | None = Field(
        None, ge=0, description="d_c of the segments; without it, k_c T / 2, with which they do not ring."
    )

    @model_validator(mode="after")
    def _agrees(self) -> "SnapModelSpec":
        if self.orders is not None and self.error is not None:
            raise refuse("orders and error exclude each other; keep one", "error")
        if self.static is not None and (self.orders is not None or self.error is not None):
            raise refuse("static excludes orders and error; keep one", "static")
        if self.static is not None and self.segments != 1:
            raise refuse("static modes are those of whole prongs; set segments to 1", "static")
        if self.orders is not None and len(self.orders) != self.segments:
            raise refuse(f"give one for each of the {self.segments} segments", "orders")
        if self.segments > 1 and self.coupling_stiffness == self.coupling_damping == 0.0:
            said = "nothing joins the segments; give it, or coupling_damping, above 0"
            raise refuse(said, "coupling_stiffness")
        return self


class SnapScene(BaseScene):
    """A snap scene: a connector, how its plug is held, and how all of it is computed."""

    system: Literal["snap"] = Field(
        "snap", description="What computes the scene: a plug that clicks into an elastic socket."
    )
    gravity: tuple[Acceleration, Acceleration, Acceleration] = Field(
        (0.0, 0.0, 0.0), description="None: the socket is linear about its rest, the plug is held."
    )
    connector: ConnectorSpec = Field(description="Socket and plug.")
    material: Elastic | None = Field(
        None, description="Of the socket, a name or a table; without it, the connector's own."
    )
    strain_limit: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="Equivalent strain of the socket's material from which pictures warn of it."
    )
    damping: Rayleigh = Field(
        Rayleigh(), description="Of the socket; a material's alpha and beta are not used."
    )
    friction: Friction = Field(Friction(), description="Coefficient of friction.")
    contact: Contact = Field(Contact(), description="Contacts.")
    distance: Distance = Field(ExactDistanceSpec(), description="Distance to the plug.")
    admittance: AdmittanceSpec = Field(AdmittanceSpec(), description="How the plug is held.")
    misalignment: Misalignment = Field(Misalignment(), description="Of the plug in the hand.")
    integration: Integration = Field(Integration(), description="The step.")
    model: SnapModelSpec = Field(SnapModelSpec(), description="Of the socket.")
    solver: SolverSpec = Field(SolverSpec(), description="Contact solver.")
    socket_colour: Colour = Field((0.85, 0.85, 0.82), description="Red, green and blue from 0 to 1.")
    plug_colour: Colour = Field((0.25, 0.45, 0.75), description="Red, green and blue from 0 to 1.")

    @property
    def clicks(self) -> bool:
        """See BaseScene."""
        return True

    @model_validator(mode="after")
    def _agrees(self) -> "SnapScene":
        if any(self.gravity):
            raise refuse("weight plays no part in a snap scene; leave it out", "gravity")
        if isinstance(self.connector, FilesConnector):
            if self.material is None:
                raise refuse("the key is missing (files have no material: a name, or a table)", "material")
            if self.admittance.stiffness is None:
                raise refuse(
                    "the key is missing (files have no peak to choose it by)", "admittance", "stiffness"
                )
        return self
