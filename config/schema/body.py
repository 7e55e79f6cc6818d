"""The kinds of body, each with the keys that it has in scenes of any system."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from palpo.config.schema.base import Count, Only, Spec, at_most_one, exactly_one, refuse
from palpo.config.schema.gas import SealSpec
from palpo.config.schema.geometry import (
    BeamGeometry,
    Block,
    BodyFile,
    CupModel,
    Placement,
    PositiveLength,
    RevolvedCup,
    RigidGeometry,
    Robot,
    SoftGeometry,
    SolidGeometry,
    VolumeFile,
)
from palpo.config.schema.incision import IncisionSpec
from palpo.config.schema.material import Elastic, SoftMaterial
from palpo.config.schema.units import Density, Force, Frequency, Length, Mass, Number, Pressure, Stiffness
from palpo.config.schema.vectors import Direction, Position

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Shade = Annotated[Number, Field(ge=0, le=1)]
Colour = tuple[Shade, Shade, Shade]
NodeIndex = Annotated[Count, Field(ge=0)]
BeamEnd = Literal["first", "last"]
Roughness = Annotated[Length, Field(ge=0)]
ROUGHNESS = "Mean depth of the surface's valleys, where air stays when two surfaces are pressed together."


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


def refuse_ends(regions: tuple[Region, ...], *path: str | int) -> None:
    """Refuse ends among the regions of a body that is no beam; `path` is the regions' key."""
    for i, region in enumerate(regions):
        if region.end is not None:
            raise refuse("only a beam has ends; choose box, sphere or nodes", *path, i, "end")


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


class MaterialSpec(Spec):
    """A part of a soft body that is softer or firmer than the rest: a nodule, a layer.

    Chosen by exactly one of box, sphere and label; an element is in it whose centre is. Where parts overlap
    the last one counts.
    """

    misplaced: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("poisson_ratio", "alpha", "beta", "law", "prony", "c10", "c01", "terms", "exponent"),
            "all parts of a body have that of its material",
        ),
        "material": "give youngs_modulus and density; all else is that of the body's material",
    }

    box: Corners | None = Field(None, description="Two opposite corners, in the scene.")
    sphere: SphereRegion | None = Field(None, description="Centre and radius.")
    label: Count | None = Field(
        None, description="Of elements of a mesh file: Gmsh's physical group, or whole numbers of cells."
    )
    youngs_modulus: Pressure | None = Field(
        None, gt=0, description="Young's modulus there; without it, the body's."
    )
    density: Density | None = Field(None, gt=0, description="Mass per volume; without it, the body's.")
    puncture: Force | None = Field(
        None,
        gt=0,
        description="Force on a needle's tip at which its border gives way; else it has none.",
    )
    cutting: Force | None = Field(
        None, ge=0, description="Force that a needle's tip cuts at in it; without it, the needle's."
    )
    friction: Stiffness | None = Field(
        None, ge=0, description="Of a needle's shaft in it, a length; without it, the needle's."
    )
    colour: Colour | None = Field(
        None, description="Of its border inside, seen dimly through the rest; else it is not drawn."
    )

    @model_validator(mode="after")
    def _one(self) -> "MaterialSpec":
        exactly_one(self, "box", "sphere", "label")
        return self


class _Body(Spec):
    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    colour: Colour = Field((0.75, 0.75, 0.75), description="Red, green and blue from 0 to 1.")


class _CupsStand(_Body):
    """What cups can be set on."""

    roughness: Annotated[Roughness, Only("suction")] = Field(5e-6, description=ROUGHNESS)
    regions: Annotated[tuple[WallRegionSpec, ...], Only("suction")] = Field(
        (),
        description="Parts of its surface that are rough or porous, where what gets by is computed.",
    )


class _Slow(_Body):
    """What moves, and has a slow loop where it is not the tool."""

    rate_hz: Annotated[Frequency | None, Only("multirate")] = Field(
        None, ge=1, description="Rate of its own slow loop; without it, `rates.low_hz`."
    )


class _Moving(_CupsStand, _Slow):
    """What moves, and can carry cups."""

    ground: Annotated[Length | None, Only("suction")] = Field(
        None, description="Height of an endless ground that carries it; without it, there is none."
    )


HEXAHEDRAL = (Block, CupModel, RevolvedCup, VolumeFile)
"""Shapes of a soft body that can be cut into hexahedra, or bring them."""

SoftElements = Literal["auto", "tet4", "tet4-patch", "tet10", "hex8"]


class Soft(_Moving):
    """A soft body of corotational elements."""

    kind: Literal["tets"] = "tets"
    rate: Annotated[Literal["low"], Only("multirate")] = Field(
        "low", description="Soft bodies are computed at the slow rate."
    )
    geometry: SoftGeometry = Field(description="Its shape.")
    material: SoftMaterial = Field(description='A name such as `"liver"`, or a table.')
    materials: Annotated[tuple[MaterialSpec, ...], Only("multirate")] = Field(
        (), description="Parts of it that are of another modulus or density."
    )
    mass: Mass | None = Field(None, gt=0, description="Instead of the material's density.")
    elements: Annotated[SoftElements, Only("multirate")] = Field(
        "auto",
        description="What it is made of. `tet4`: linear tetrahedra, too stiff where Poisson's ratio is high. "
        "`tet4-patch`: the same, some five of which share their change of volume. `tet10`: with a node in "
        "each edge, which bend. `hex8`: hexahedra that bend, of blocks, cups and files. `auto`: hexahedra of "
        "a file that has them; for a block with at most two cells across that is four times as long as thick "
        '`hex8`, or `tet10` if `law` is not `"linear"`; else `tet4-patch` from a ratio of 0.4 on, `tet4` '
        "below or under multigrid.",
    )
    mass_model: Annotated[Literal["lumped", "consistent"], Only("multirate")] = Field(
        "lumped", description="Mass matrix."
    )
    solver: Annotated[Literal["auto", "direct", "multigrid"], Only("multirate")] = Field(
        "auto",
        description="How its systems are solved: with factors, or by multigrid without, which takes a lumped "
        "mass; `auto` decides by the number of nodes.",
    )
    fixed: tuple[Region, ...] = Field((), description="Nodes that never move.")
    incisions: Annotated[tuple[IncisionSpec, ...], Only("multirate")] = Field(
        (), description="Cuts through it, of linear tetrahedra."
    )

    @model_validator(mode="after")
    def _fits(self) -> "Soft":
        if self.incisions:
            self.check_cut("a body with incisions")
        if self.elements == "hex8" and not isinstance(self.geometry, HEXAHEDRAL):
            raise refuse('only a block, a cup or a file can be hexahedra; use "tet10"', "elements")
        if self.elements == "hex8" and self.material.law != "linear":
            raise refuse('hexahedra follow law = "linear" alone; use "tet4-patch" or "tet10"', "elements")
        for i, part in enumerate(self.materials):
            if self.mass is not None and part.density is not None:
                raise refuse(
                    "the body's mass is spread evenly; leave it out, or give densities alone",
                    "materials", i, "density",
                )  # fmt: skip
            if part.label is not None and not isinstance(self.geometry, VolumeFile):
                raise refuse("only a mesh file has labels; give a box or a sphere", "materials", i, "label")
        if self.solver == "multigrid" and self.mass_model != "lumped":
            raise refuse('multigrid takes mass_model = "lumped"', "solver")
        return self

    def check_cut(self, what: str, path: tuple[str, ...] = ()) -> None:
        """Refuse what cannot be cut; `what` it is in words, `path` of its keys."""
        if self.elements in ("tet10", "hex8"):
            raise refuse(f'{what} is of linear tetrahedra; use "tet4-patch"', *path, "elements")
        if self.solver == "multigrid":
            raise refuse(f"{what} is solved with factors; leave the key out", *path, "solver")
        if self.mass_model != "lumped":
            raise refuse(f'{what} takes mass_model = "lumped"', *path, "mass_model")
        if self.material.prony:
            raise refuse(f"{what} has a material that forgets; leave out prony", *path, "material")
        if self.materials:
            raise refuse(f"{what} is of one material; leave the key out", *path, "materials")


class Beam(_Slow):
    """A chain of corotational Timoshenko beams with six freedoms a node."""

    kind: Literal["beam"] = "beam"
    rate: Literal["low", "high"] = Field("low", description='`"high"` for the tool, `"low"` for any other.')
    geometry: BeamGeometry = Field(description="Its centre line and section.")
    material: Elastic = Field(description='A name such as `"steel"`, or a table.')
    mass_model: Literal["averaged", "lumped", "consistent"] = Field(
        "averaged",
        description="Mass matrix; the mean of the other two has the most accurate frequencies.",
    )
    fixed: tuple[Region, ...] = Field((), description="Nodes that neither move nor turn.")


class Rigid(_Moving):
    """A rigid body; exactly one of density and mass is given, but for a robot, whose file says it."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": 'a rigid body that never moves is kind = "mesh"',
        "material": "a rigid body has density or mass instead",
    }

    kind: Literal["rigid"] = "rigid"
    rate: Annotated[Literal["low", "high"], Only("multirate")] = Field(
        "low", description='`"high"` for the tool, `"low"` for any other.'
    )
    geometry: RigidGeometry = Field(description="Its shape; a closed surface.")
    density: Density | None = Field(None, gt=0, description="Mass per volume.")
    mass: Mass | None = Field(None, gt=0, description="Mass, spread evenly over the volume.")

    @model_validator(mode="after")
    def _one(self) -> "Rigid":
        (at_most_one if isinstance(self.geometry, Robot) else exactly_one)(self, "density", "mass")
        return self


class Quasistatic(_Body):
    """An elastic body without inertia, in balance at each tick; if all nodes are clamped, it is rigid."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": "nodes that follow the hand or stay where they are stand under clamped",
        "mass": "a quasi-static body has the density of its material",
        **dict.fromkeys(
            ("rate", "rate_hz"), "a quasi-static body always has the servo's rate, so leave it out"
        ),
    }

    kind: Literal["quasistatic"] = "quasistatic"
    geometry: SolidGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands; a body file is only moved.")
    material: Elastic | None = Field(
        None, description='A name such as `"liver"`, or a table; none with a body file, which has its own.'
    )
    clamped: tuple[Region, ...] = Field(
        (), description="Nodes that the hand moves, or that stay where they are; a body file has its own."
    )
    contact: Annotated[tuple[Region, ...], Only("hapco")] = Field(
        (), description="Of the tool: boundary nodes that may touch; without it, all that are not clamped."
    )
    integration: Literal["bbar", "selective", "full"] = Field(
        "bbar", description="Of hexahedra; the full one is far too stiff near a Poisson's ratio of 0.5."
    )

    @model_validator(mode="after")
    def _whole(self) -> "Quasistatic":
        for key in ("clamped", "contact"):
            refuse_ends(getattr(self, key), key)
        if isinstance(self.geometry, BodyFile):
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
_STATIC = dict.fromkeys(("fixed", "material", "density", "mass", "rate", "rate_hz", "ground"), _NEVER_MOVES)


class Plane(Spec):
    """An endless static plane."""

    misplaced: ClassVar[dict[str, str]] = _STATIC | {"geometry": "a plane is given by point and normal"}

    kind: Literal["plane"] = "plane"
    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    colour: Colour = Field((0.75, 0.75, 0.75), description="Red, green and blue from 0 to 1.")
    point: Position = Field((0.0, 0.0, 0.0), description="A point of the plane.")
    normal: Direction = Field((0.0, 1.0, 0.0), description="Direction out of the solid side; any length.")


class Static(_CupsStand):
    """A body that never moves, with a closed surface."""

    misplaced: ClassVar[dict[str, str]] = _STATIC

    kind: Literal["mesh"] = "mesh"
    geometry: RigidGeometry = Field(description="Its shape; a closed surface.")


class Place(Spec):
    """A point of a body at rest, chosen by at most one key; without one, a rigid body's centre of mass."""

    node: Annotated[NodeIndex | None, Only("multirate")] = Field(
        None, description="Node number of tets or a beam, from 0."
    )
    end: Annotated[BeamEnd | None, Only("multirate")] = Field(None, description="An end of a beam chain.")
    at: Annotated[Position | None, Only("multirate")] = Field(
        None,
        description="Position in the scene: the nearest node of tets or beams, that very point of others.",
    )

    @model_validator(mode="after")
    def _one(self) -> "Place":
        at_most_one(self, "node", "end", "at")
        return self
