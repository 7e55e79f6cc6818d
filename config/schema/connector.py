"""Snap connectors in scene files: the generators' dimensions, or meshes of one's own."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from palpo.config.schema.base import Kinds, Spec, refuse
from palpo.config.schema.body import Region, refuse_ends
from palpo.config.schema.geometry import (
    CAD_FILES,
    SURFACE_FILES,
    FileOf,
    PositiveLength,
    SurfaceFile,
    VolumeFile,
)
from palpo.config.schema.units import Angle, Length
from palpo.config.schema.vectors import Direction


class _Generated(Spec):
    mesh: Literal["coarse", "fine"] = Field("coarse", description="Of the socket.")


class TwoProngConnector(_Generated):
    """Two hooked prongs spread by a wedge; without a dimension, that of the generator."""

    kind: Literal["two-prong"] = "two-prong"
    length: PositiveLength | None = Field(None, description="From the clamp to the hook's catching face.")
    thickness: PositiveLength | None = Field(None, description="Of each prong.")
    width: PositiveLength | None = Field(None, description="Of each prong.")
    opening: PositiveLength | None = Field(None, description="Between the prongs.")
    hook: PositiveLength | None = Field(None, description="Height of the hook.")
    clearance: PositiveLength | None = Field(None, description="Between parts that do not touch.")
    ramp: Angle | None = Field(None, gt=0, description="Half angle of the wedge.")


class LanConnector(_Generated):
    """The latch of a LAN plug under the lip of its jack; without a dimension, that of the generator."""

    kind: Literal["lan"] = "lan"
    length: PositiveLength | None = Field(None, description="From the latch's root to its catch.")
    lever: PositiveLength | None = Field(None, description="Beyond the catch.")
    thickness: PositiveLength | None = Field(None, description="Of the latch.")
    width: PositiveLength | None = Field(None, description="Of the latch.")
    lever_width: PositiveLength | None = Field(None, description="Of the lever.")
    lift: PositiveLength | None = Field(None, description="Of the latch's root above the body.")
    hook: PositiveLength | None = Field(None, description="Height of the catch.")
    interference: PositiveLength | None = Field(None, description="Of the catch with the lip.")
    clearance: PositiveLength | None = Field(None, description="Between parts that do not touch.")
    ramp: Angle | None = Field(None, gt=0, description="Of the lip's entry.")


class CapConnector(_Generated):
    """A leak-stop cap whose lip stretches over a bead; without a dimension, that of the generator."""

    kind: Literal["cap"] = "cap"
    radius: PositiveLength | None = Field(None, description="Of the wall's inner face.")
    length: PositiveLength | None = Field(None, description="From the clamp to the lip's catching face.")
    thickness: PositiveLength | None = Field(None, description="Of the wall.")
    lip: PositiveLength | None = Field(None, description="Height of the lip.")
    interference: PositiveLength | None = Field(None, description="Of the stopper's bead with the lip.")
    ramp: Angle | None = Field(None, gt=0, description="Of the bead.")


class BuckleConnector(_Generated):
    """A side-release buckle with two arms; without a dimension, that of the generator."""

    kind: Literal["buckle"] = "buckle"
    length: PositiveLength | None = Field(None, description="From the clamp to the hook's catching face.")
    thickness: PositiveLength | None = Field(None, description="Of each arm.")
    width: PositiveLength | None = Field(None, description="Of each arm.")
    spread: PositiveLength | None = Field(None, description="Between the arms' outer faces.")
    hook: PositiveLength | None = Field(None, description="Height of the hook, which points outward.")
    clearance: PositiveLength | None = Field(None, description="Between parts that do not touch.")
    ramp: Angle | None = Field(None, gt=0, description="Half angle of the funnel.")


class ProngFile(VolumeFile):
    """One elastic part: a Gmsh, VTK or VTU file of tetrahedra, or a closed surface or STEP file, filled."""

    usual: ClassVar[str] = "gmsh"
    order: Literal[1, 2] = Field(
        1,
        description="Of the tetrahedra: 2 adds a node in the middle of each edge, and they bend; it is some "
        "eight times the freedoms, off line alone where model.static reduces them.",
    )
    clamped: tuple[Region, ...] = Field(min_length=1, description="Nodes that are held for ever.")
    contact: tuple[Region, ...] = Field(
        min_length=1,
        description="Nodes that the plug can touch: every triangle of the boundary between them is one.",
    )

    @model_validator(mode="after")
    def _no_ends(self) -> "ProngFile":
        for key in ("clamped", "contact"):
            refuse_ends(getattr(self, key), key)
        return self


class PlugFile(SurfaceFile):
    """The plug: a closed triangle surface (STL, OBJ, PLY, glTF, Gmsh, VTK or VTU), or a STEP file."""

    path: Annotated[str, FileOf(*SURFACE_FILES, *CAD_FILES)] = Field(
        description="Mesh file; a relative path starts at the scene's folder."
    )
    size: PositiveLength | None = Field(
        None, description="Edge of the triangles that Gmsh lays on a STEP file's faces."
    )
    grow: Length = Field(
        0.0, description="How far all faces stand out from the file's: a tolerance of the interference."
    )

    @property
    def drawn(self) -> bool:
        """Whether the file has faces that are no triangles yet."""
        return self.path.lower().endswith(CAD_FILES)

    @model_validator(mode="after")
    def _sized(self) -> "PlugFile":
        if self.drawn and self.size is None:
            raise refuse("the key is missing (the edge of the triangles on a STEP file's faces)", "size")
        if self.size is not None and not self.drawn:
            raise refuse("this file has triangles of its own; leave the size out", "size")
        return self


class FilesConnector(Spec):
    """A pair of one's own: meshes in one frame, the plug clear of the socket where its push begins."""

    kind: Literal["files"] = "files"
    prongs: tuple[ProngFile, ...] = Field(min_length=1, description="The parts of the socket, each a model.")
    plug: PlugFile = Field(description="A closed surface.")
    push: Direction = Field((0.0, -1.0, 0.0), description="Direction of the insertion.")
    stroke: PositiveLength = Field(description="Way along it to where the plug is latched.")


ConnectorSpec = Annotated[
    TwoProngConnector | LanConnector | CapConnector | BuckleConnector | FilesConnector,
    Field(discriminator="kind"),
    Kinds(),
]
