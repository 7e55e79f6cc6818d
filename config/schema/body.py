"""The kinds of body: soft tetrahedra, beam chain, rigid and quasi-static body, static plane, static mesh."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from palpo.config.schema.base import Count, Kinds, Spec, at_most_one, exactly_one, refuse
from palpo.config.schema.geometry import (
    BeamGeometry,
    BlockGeometry,
    BodyFileSpec,
    CupModel,
    Placement,
    RevolvedCup,
    RigidGeometry,
    SolidGeometry,
    StaticGeometry,
    TetGeometry,
    VolumeFile,
)
from palpo.config.schema.material import MaterialSpec
from palpo.config.schema.units import Density, Frequency, Length, Mass, Number
from palpo.config.schema.vectors import Direction, Position

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Shade = Annotated[Number, Field(ge=0, le=1)]
Colour = tuple[Shade, Shade, Shade]
NodeIndex = Annotated[Count, Field(ge=0)]
BeamEnd = Literal["first", "last"]


def _low_high(corners: tuple[Position, Position]) -> tuple[Position, Position]:
    """Any two opposite corners as the lowest and the highest one."""
    (ax, ay, az), (bx, by, bz) = corners
    return (min(ax, bx), min(ay, by), min(az, bz)), (max(ax, bx), max(ay, by), max(az, bz))


Corners = Annotated[tuple[Position, Position], AfterValidator(_low_high)]


class SphereRegion(Spec):
    """The nodes inside a sphere."""

    centre: Position = Field(description="Centre, in the scene.")
    radius: Length = Field(gt=0, description="Radius.")


class Region(Spec):
    """Nodes of one body at rest, chosen by exactly one key; positions are the scene's, after placement."""

    box: Corners | None = Field(None, description="Two opposite corners; all nodes inside, border included.")
    sphere: SphereRegion | None = Field(None, description="All nodes inside a sphere.")
    nodes: tuple[NodeIndex, ...] | None = Field(None, min_length=1, description="Node numbers, from 0.")
    end: BeamEnd | None = Field(None, description="An end of a beam chain.")

    @model_validator(mode="after")
    def _one(self) -> "Region":
        exactly_one(self, "box", "sphere", "nodes", "end")
        return self


class _Body(Spec):
    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    colour: Colour = Field((0.75, 0.75, 0.75), description="Red, green and blue from 0 to 1.")


HEXAHEDRAL = (BlockGeometry, CupModel, RevolvedCup, VolumeFile)
"""Shapes of a soft body that can be cut into hexahedra, or bring them."""

SoftElements = Literal["auto", "tet4", "tet4-patch", "tet10", "hex8"]


class TetBodySpec(_Body):
    """A soft body of corotational elements."""

    kind: Literal["tets"]
    rate: Literal["low"] = Field("low", description="Soft bodies are computed at the slow rate.")
    rate_hz: Frequency | None = Field(
        None, ge=1, description="Rate of its own slow loop; without it, `rates.low_hz`."
    )
    geometry: TetGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    material: MaterialSpec = Field(description='A name such as `"liver"`, or a table.')
    elements: SoftElements = Field(
        "auto",
        description="What it is made of. `tet4`: linear tetrahedra, too stiff where Poisson's ratio is high. "
        "`tet4-patch`: the same, some five of which share their change of volume. `tet10`: with a node in "
        "each edge, which bend. `hex8`: hexahedra that bend, of blocks, cups and files. `auto`: hexahedra of "
        "a file that has them, else `tet4-patch` from a ratio of 0.4 on, `tet4` below or under multigrid.",
    )
    mass_model: Literal["lumped", "consistent"] = Field("lumped", description="Mass matrix.")
    solver: Literal["auto", "direct", "multigrid"] = Field(
        "auto",
        description="How its systems are solved: with factors, or by multigrid without, which takes a lumped "
        "mass; `auto` decides by the number of nodes.",
    )
    fixed: tuple[Region, ...] = Field((), description="Nodes that never move.")

    @model_validator(mode="after")
    def _fits(self) -> "TetBodySpec":
        if self.elements == "hex8" and not isinstance(self.geometry, HEXAHEDRAL):
            raise refuse('only a block, a cup or a file can be hexahedra; use "tet10"', "elements")
        if self.solver == "multigrid" and self.mass_model != "lumped":
            raise refuse('multigrid takes mass_model = "lumped"', "solver")
        return self


class BeamBodySpec(_Body):
    """A chain of corotational Timoshenko beams with six freedoms a node."""

    kind: Literal["beam"]
    rate: Literal["low", "high"] = Field("low", description='`"high"` for the tool, `"low"` for any other.')
    rate_hz: Frequency | None = Field(
        None, ge=1, description="Rate of its own slow loop; without it, `rates.low_hz`."
    )
    geometry: BeamGeometry = Field(description="Its centre line and section.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    material: MaterialSpec = Field(description='A name such as `"steel"`, or a table.')
    mass_model: Literal["averaged", "lumped", "consistent"] = Field(
        "averaged",
        description="Mass matrix; the mean of the other two has the most accurate frequencies.",
    )
    fixed: tuple[Region, ...] = Field((), description="Nodes that neither move nor turn.")


class RigidBodySpec(_Body):
    """A rigid body; exactly one of density and mass is given."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": 'a rigid body that never moves is kind = "mesh"',
        "material": "a rigid body has density or mass instead",
    }

    kind: Literal["rigid"]
    rate: Literal["low", "high"] = Field("low", description='`"high"` for the tool, `"low"` for any other.')
    rate_hz: Frequency | None = Field(
        None, ge=1, description="Rate of its own slow loop; without it, `rates.low_hz`."
    )
    geometry: RigidGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    density: Density | None = Field(None, gt=0, description="Mass per volume.")
    mass: Mass | None = Field(None, gt=0, description="Mass, spread evenly over the volume.")

    @model_validator(mode="after")
    def _one(self) -> "RigidBodySpec":
        exactly_one(self, "density", "mass")
        return self


class QuasistaticBodySpec(_Body):
    """An elastic body without inertia, in balance at each tick; if all nodes are clamped, it is rigid."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": "nodes that follow the hand or stay where they are stand under clamped",
        "mass": "a quasi-static body has the density of its material",
        **dict.fromkeys(
            ("rate", "rate_hz"), "a quasi-static body always has the servo's rate, so leave it out"
        ),
    }

    kind: Literal["quasistatic"]
    geometry: SolidGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands; a body file is only moved.")
    material: MaterialSpec | None = Field(
        None, description='A name such as `"liver"`, or a table; none with a body file, which has its own.'
    )
    clamped: tuple[Region, ...] = Field(
        (), description="Nodes that the hand moves, or that stay where they are; a body file has its own."
    )
    integration: Literal["bbar", "selective", "full"] = Field(
        "bbar", description="Of hexahedra; the full one is far too stiff near a Poisson's ratio of 0.5."
    )

    @model_validator(mode="after")
    def _whole(self) -> "QuasistaticBodySpec":
        for key in ("clamped", "contact"):
            for i, region in enumerate(getattr(self, key, ())):
                if region.end is not None:
                    raise refuse("only a beam has ends; choose box, sphere or nodes", key, i, "end")
        if isinstance(self.geometry, BodyFileSpec):
            self._refuse_own()
        elif self.material is None:
            raise refuse("the key is missing (a material's name, or a table)", "material")
        elif not self.clamped:
            raise refuse(
                "the key is missing (nodes that hold the body: without them its stiffness is singular)",
                "clamped",
            )
        return self

    def _refuse_own(self) -> None:
        """A body file holds its K in its own axes, of its own material and clamps."""
        for key in ("material", "clamped"):
            if getattr(self, key):
                raise refuse("the body file has its own; leave the key out", key)
        if self.placement.quaternion != (1.0, 0.0, 0.0, 0.0) or self.placement.scale != 1.0:
            raise refuse("a body file keeps its axes and its size; give a position only", "placement")


_NEVER_MOVES = "this body never moves, so leave it out"
_STATIC = dict.fromkeys(("fixed", "material", "density", "mass", "rate", "rate_hz"), _NEVER_MOVES)


class PlaneBody(_Body):
    """An endless static plane."""

    misplaced: ClassVar[dict[str, str]] = _STATIC | {"geometry": "a plane is given by point and normal"}

    kind: Literal["plane"]
    point: Position = Field((0.0, 0.0, 0.0), description="A point of the plane.")
    normal: Direction = Field((0.0, 1.0, 0.0), description="Direction out of the solid side; any length.")


class MeshBody(_Body):
    """A static body with a closed surface."""

    misplaced: ClassVar[dict[str, str]] = _STATIC

    kind: Literal["mesh"]
    geometry: StaticGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands.")


Body = Annotated[
    TetBodySpec | BeamBodySpec | RigidBodySpec | QuasistaticBodySpec | PlaneBody | MeshBody,
    Field(discriminator="kind"),
    Kinds(),
]


class Place(Spec):
    """A point of a body at rest, chosen by at most one key; without one, a rigid body's centre of mass."""

    node: NodeIndex | None = Field(None, description="Node number of tets or a beam, from 0.")
    end: BeamEnd | None = Field(None, description="An end of a beam chain.")
    at: Position | None = Field(
        None,
        description="Position in the scene: the nearest node of tets or beams, that very point of others.",
    )

    @model_validator(mode="after")
    def _one(self) -> "Place":
        at_most_one(self, "node", "end", "at")
        return self
