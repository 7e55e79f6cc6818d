"""What cups are set on: its shape, and how it moves."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from palpo.config.schema.base import Count, Kinds, Spec, exactly_one, refuse
from palpo.config.schema.body import Colour, Corners, Name, Region, SphereRegion
from palpo.config.schema.gas import SealSpec
from palpo.config.schema.geometry import (
    BlockGeometry,
    Cells,
    Cylinder,
    Factor,
    Placement,
    PositiveLength,
    Sphere,
    SurfaceFile,
    VolumeFile,
)
from palpo.config.schema.material import MaterialSpec
from palpo.config.schema.units import (
    Density,
    Length,
    Mass,
    Number,
)

Roughness = Annotated[Length, Field(ge=0)]
ROUGHNESS = "Mean depth of the surface's valleys, where air stays when two surfaces are pressed together."


class Plate(Spec):
    """A square plate, its top at its origin."""

    kind: Literal["plate"]
    side: PositiveLength = Field(0.2, description="Edge length.")
    thickness: PositiveLength = Field(0.02, description="Thickness.")
    cells: Cells = Field(20, description="Squares of two triangles along an edge; one is enough for a plane.")
    bump: Length = Field(0.0, ge=0, description="Amplitude of waves on its top; below half the thickness.")
    wavelength: PositiveLength = Field(0.02, description="Of these waves.")

    @model_validator(mode="after")
    def _thick_enough(self) -> "Plate":
        if self.bump >= 0.5 * self.thickness:
            raise refuse(f"bumps must be below half the thickness, {0.5 * self.thickness:g} m", "bump")
        return self


class Bunny(Spec):
    """A bumpy animal with head, ears and paws, its body a ball about its origin."""

    kind: Literal["bunny"]
    radius: PositiveLength = Field(0.055, description="Of its body.")
    bump: Length = Field(0.0006, ge=0, description="Amplitude of the waves of its coat.")
    subdivisions: Annotated[Count, Field(ge=2, le=6)] = Field(
        4, description="Times that a triangle of an icosahedron is cut in four."
    )


class HalfCylinder(Spec):
    """Half of a cylinder along z, lying with its axis at its origin, its height scaled."""

    kind: Literal["half-cylinder"]
    radius: PositiveLength = Field(0.06, description="Before it is scaled.")
    length: PositiveLength = Field(0.12, description="Length.")
    flatness: Factor = Field(1.0, description="Factor on its height; 0.2 to 1 in the thesis.")
    around: Cells = Field(48, description="Cells of its arc.")
    along: Cells = Field(40, description="Cells along it.")


class TunnelBlock(Spec):
    """A cube about its origin with holes in its top that a passage joins below; a single hole is blind."""

    kind: Literal["tunnel"]
    side: PositiveLength = Field(0.115, description="Edge length.")
    holes: Annotated[Count, Field(ge=1, le=5)] = Field(2, description="Holes, in a row along x.")
    spacing: PositiveLength = Field(0.016, description="Between their middles.")
    width: PositiveLength = Field(0.006, description="Of holes and passage, which are square.")
    depth: PositiveLength = Field(0.02, description="Of the passage's floor.")
    cell: PositiveLength = Field(0.012, description="Longest edge of a cell.")

    @model_validator(mode="after")
    def _fits(self) -> "TunnelBlock":
        if self.holes > 1 and self.width >= self.spacing:
            raise refuse(f"the holes overlap; give less than spacing = {self.spacing:g} m", "width")
        if not self.width < self.depth < self.side:
            said = f"it must lie between width = {self.width:g} m and side = {self.side:g} m"
            raise refuse(said, "depth")
        if (self.holes - 1) * self.spacing + self.width >= self.side:
            raise refuse(f"the holes do not fit a cube of side = {self.side:g} m; give less", "spacing")
        return self


RigidShape = Annotated[
    Plate | Bunny | HalfCylinder | TunnelBlock | BlockGeometry | Cylinder | Sphere | SurfaceFile,
    Field(discriminator="kind"),
    Kinds(),
]
SoftShape = Annotated[
    BlockGeometry | TunnelBlock | Cylinder | Sphere | VolumeFile, Field(discriminator="kind"), Kinds()
]


class WallRegionSpec(Spec):
    """A part of the surface that is rougher or smoother than elsewhere, or through which air goes.

    Chosen by one of box and sphere, in the scene as it begins; where regions overlap the last one counts.
    """

    box: Corners | None = Field(None, description="Two opposite corners.")
    sphere: SphereRegion | None = Field(None, description="Centre and radius.")
    seal: SealSpec | None = Field(
        None, description="Roughness there, with the cup's; without it, `gas.seal`."
    )
    permeability: Number | None = Field(
        None,
        gt=0,
        description="Of its pores, in m2, by Darcy's law; without it, it is tight.",
    )
    thickness: PositiveLength | None = Field(
        None, description="How far the air goes through the pores until it is outside."
    )

    @model_validator(mode="after")
    def _says_something(self) -> "WallRegionSpec":
        exactly_one(self, "box", "sphere")
        if self.seal is None and self.permeability is None:
            raise refuse("the key is missing (or permeability: one of them makes the region differ)", "seal")
        if (self.permeability is None) != (self.thickness is None):
            missing = "permeability" if self.permeability is None else "thickness"
            raise refuse("the key is missing: air goes through the pores by both of them", missing)
        return self


class _Partner(Spec):
    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    roughness: Roughness = Field(5e-6, description=ROUGHNESS)
    regions: tuple[WallRegionSpec, ...] = Field(
        (),
        description="Parts of its surface that are rough or porous, where what gets by is computed.",
    )
    colour: Colour = Field((0.75, 0.75, 0.75), description="Red, green and blue from 0 to 1.")


_NEVER_MOVES = "this partner never moves, so leave it out"


class StaticPartner(_Partner):
    """A body that never moves."""

    misplaced: ClassVar[dict[str, str]] = dict.fromkeys(
        ("material", "mass", "density", "fixed", "ground"), _NEVER_MOVES
    )

    kind: Literal["mesh"]
    geometry: RigidShape = Field(description="Its shape; a closed surface.")


class _MovingPartner(_Partner):
    ground: Length | None = Field(
        None, description="Height of an endless ground that carries it; without it, there is none."
    )


class RigidPartner(_MovingPartner):
    """A rigid body; exactly one of density and mass is given."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": 'a rigid body that never moves is kind = "mesh"',
        "material": "a rigid body has density or mass instead",
    }

    kind: Literal["rigid"]
    geometry: RigidShape = Field(description="Its shape; a closed surface.")
    density: Density | None = Field(None, gt=0, description="Mass per volume.")
    mass: Mass | None = Field(None, gt=0, description="Mass, spread evenly over the volume.")

    @model_validator(mode="after")
    def _one(self) -> "RigidPartner":
        exactly_one(self, "density", "mass")
        return self


class SoftPartner(_MovingPartner):
    """A soft body of corotational tetrahedra."""

    kind: Literal["tets"]
    geometry: SoftShape = Field(description="Its shape.")
    material: MaterialSpec = Field(description='A name such as `"silicone"`, or a table.')
    mass: Mass | None = Field(None, gt=0, description="Instead of the material's density.")
    fixed: tuple[Region, ...] = Field((), description="Nodes that never move.")

    @model_validator(mode="after")
    def _no_ends(self) -> "SoftPartner":
        for i, region in enumerate(self.fixed):
            if region.end is not None:
                raise refuse("only a beam has ends; choose box, sphere or nodes", "fixed", i, "end")
        return self


Partner = StaticPartner | RigidPartner | SoftPartner
