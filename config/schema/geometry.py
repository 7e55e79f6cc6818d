"""Shapes: generated in their own frame, or read from a mesh file; a placement puts them into the scene."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, ValidationInfo, field_validator, model_validator
from pydantic_core import CoreSchema, core_schema

from palpo.config.schema.base import Count, Kinds, Spec, refuse
from palpo.config.schema.units import Angle, Length, Number
from palpo.config.schema.vectors import NO_ROTATION, AxisAngle, Position, quaternion
from palpo.config.words import in_words

PositiveLength = Annotated[Length, Field(gt=0)]
Factor = Annotated[Number, Field(gt=0)]
Cells = Annotated[Count, Field(ge=1, le=200)]

Resolution = Literal[76, 125, 141, 151, 159, 203, 363, 415, 455, 502, 552, 576, 723, 1200, 2400, 4800]

VOLUME_FILES = (".msh", ".vtk", ".vtu")
CLOSED_FILES = (".stl", ".obj", ".ply", ".glb", ".gltf")
SURFACE_FILES = (*CLOSED_FILES, *VOLUME_FILES)
SEGMENTED_FILES = (".nrrd", ".nii", ".nii.gz")
ROBOT_FILES = (".urdf", ".xml", ".mjcf")
BODY_FILES = (".h5", ".hdf5")
CAD_FILES = (".step", ".stp")
FILLED_FILES = (*CLOSED_FILES, *CAD_FILES)
"""What has a boundary alone, and is filled with tetrahedra."""


class GridGeometry(Spec):
    """A block cut into cells, centred at its origin."""

    size: tuple[PositiveLength, PositiveLength, PositiveLength] = Field(
        description="Edge lengths along x, y, z."
    )
    divisions: tuple[Cells, Cells, Cells] = Field((4, 4, 4), description="Cells along x, y, z.")
    grading: tuple[Factor, Factor, Factor] = Field(
        (1.0, 1.0, 1.0), description="Last cell's length over the first's along x, y, z."
    )


class Block(GridGeometry):
    """A block of tetrahedra, or of its surface, centred at its origin."""

    kind: Literal["block"] = "block"


class Cylinder(Spec):
    """A solid cylinder of tetrahedra, centred at its origin."""

    kind: Literal["cylinder"] = "cylinder"
    radius: PositiveLength = Field(description="Radius.")
    length: PositiveLength = Field(description="Length along the axis.")
    axis: Literal["x", "y", "z"] = Field("y", description="Direction of the axis before placement.")
    around: Annotated[Count, Field(ge=3, le=200)] = Field(12, description="Nodes around its outermost ring.")
    along: Cells = Field(6, description="Cells along the axis.")


class Sphere(Spec):
    """A solid ball, centred at its origin; as a rigid body at two rates it is round, elsewhere of cells."""

    kind: Literal["sphere"] = "sphere"
    radius: PositiveLength = Field(description="Radius.")
    divisions: Annotated[Count, Field(ge=1, le=30)] = Field(
        3, description="Cells from the centre to the surface."
    )


class Ellipsoid(Spec):
    """A solid ellipsoid, centred at its origin."""

    kind: Literal["ellipsoid"] = "ellipsoid"
    radii: tuple[PositiveLength, PositiveLength, PositiveLength] = Field(
        description="Half axes along x, y, z."
    )
    divisions: Annotated[Count, Field(ge=1, le=30)] = Field(
        3, description="Cells from the centre to the surface."
    )


class Liver(Spec):
    """A body with the form of a liver, about its middle: left is +x, up +y."""

    kind: Literal["liver"] = "liver"
    width: PositiveLength = Field(description="Length along x.")
    spacing: PositiveLength = Field(
        description="Edge of the lattice's cubes, at most a tenth of the width: 5.75 mm makes 20,000 "
        "tetrahedra of a width of 15 cm.",
    )

    @field_validator("spacing")
    @classmethod
    def _resolves(cls, spacing: float, info: ValidationInfo) -> float:
        width = info.data.get("width")
        if width is not None and not width / 120.0 <= spacing <= width / 10.0:
            raise ValueError(
                f"does not fit a width of {width:g} m; use {width / 120.0:.3g} m to {width / 10.0:.3g} m"
            )
        return spacing


class _GeneratedCup(Spec):
    resolution: Resolution = Field(
        576, description="Its mesh, by the nodes of the thesis's; 723 is the dart's, those beyond are finer."
    )


class CupModel(_GeneratedCup):
    """A cup of the thesis, standing on its opening at its origin, axis along y."""

    kind: Literal["cup"] = "cup"
    model: Literal[
        "small", "large", "round", "asymmetric", "S10", "S20", "S30", "B20", "A20", "A30", "dart"
    ] = Field(
        "small",
        description="Which one; in a suction scene it brings material and mass, and a dart has a rigid rod.",
    )


class RevolvedCup(_GeneratedCup):
    """A cup of one's own dimensions, standing on its opening at its origin, axis along y."""

    kind: Literal["revolved"] = "revolved"
    profile: Literal["straight", "round"] = Field(
        "straight", description="Of the wall: a cone of even thickness, or a quarter of an ellipse."
    )
    opening: Length = Field(description="Diameter of the cavity at the rim.")
    top: PositiveLength = Field(description="Diameter of the cavity's flat roof.")
    height: PositiveLength = Field(description="Height of the cavity.")
    rim: PositiveLength = Field(description="Width of the rim.")
    stem: PositiveLength = Field(description="Diameter of the stem.")
    stem_length: PositiveLength = Field(0.008, description="Length of the stem.")

    @model_validator(mode="after")
    def _open(self) -> "RevolvedCup":
        if self.opening <= 0.0:
            raise refuse("a cup without an opening has no cavity; give a diameter above 0", "opening")
        if self.top > self.opening:
            raise refuse(f"a cavity narrows upward; give at most its opening, {self.opening:g} m", "top")
        return self


class _TurnedCup(Spec):
    wall: PositiveLength = Field(description="Thickness of wall and roof.")
    rim: PositiveLength = Field(description="Width of the rim, level with the opening.")
    stem: PositiveLength = Field(description="Diameter of the stem, at most that of the roof outside.")
    stem_length: PositiveLength = Field(0.008, description="Length of the stem.")
    cell: PositiveLength = Field(0.0025, description="Length of its cells along the wall, at most about.")
    around: Literal[16, 32, 64] = Field(16, description="Cells around the rim.")
    layers: Annotated[Count, Field(ge=1, le=4)] = Field(1, description="Cells through the wall.")


class DrawnCup(_TurnedCup):
    """A cup whose section is drawn, standing on its opening at its origin, axis along y."""

    kind: Literal["drawn"] = "drawn"
    points: tuple[tuple[PositiveLength, Length], ...] = Field(
        min_length=2,
        description="Radius and height along the cavity's wall, rows [r, y], from the rim's inner edge, at "
        "height 0, to the edge of the roof, which is level.",
    )
    walls: tuple[PositiveLength, ...] = Field(
        (), description="Thickness at each of the points, instead of `wall` at all."
    )

    @model_validator(mode="after")
    def _in_order(self) -> "DrawnCup":
        if self.points[0][1] != 0.0:
            raise refuse("it is at the rim's inner edge, on the plane; begin there, with 0", "points", 0, 1)
        if self.walls and len(self.walls) != len(self.points):
            raise refuse(f"give one for each of the {len(self.points)} points, or none", "walls")
        return self


class BellowsCup(_TurnedCup):
    """A cup of bellows, standing on its opening at its origin, axis along y: a lip, and folds over it."""

    kind: Literal["bellows"] = "bellows"
    opening: PositiveLength = Field(description="Diameter of the cavity at the rim.")
    neck: PositiveLength = Field(description="Diameter of the cavity where folds are narrow.")
    belly: PositiveLength = Field(description="Diameter of the cavity where folds are wide.")
    folds: Annotated[Count, Field(ge=1, le=10)] = Field(
        1, description="Whole folds over the lip, which makers count as half a one."
    )
    pitch: PositiveLength = Field(description="Height of a fold.")
    lip: PositiveLength = Field(description="Height of the lip, up to the first neck.")

    @model_validator(mode="after")
    def _folds(self) -> "BellowsCup":
        for key in ("opening", "belly"):
            if getattr(self, key) <= self.neck:
                raise refuse(f"it must be wider than the neck, {self.neck:g} m", key)
        return self


class Plate(Spec):
    """A square plate, its top at its origin."""

    kind: Literal["plate"] = "plate"
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

    kind: Literal["bunny"] = "bunny"
    radius: PositiveLength = Field(0.055, description="Of its body.")
    bump: Length = Field(0.0006, ge=0, description="Amplitude of the waves of its coat.")
    subdivisions: Annotated[Count, Field(ge=2, le=6)] = Field(
        4, description="Times that a triangle of an icosahedron is cut in four."
    )


class HalfCylinder(Spec):
    """Half of a cylinder along z, lying with its axis at its origin, its height scaled."""

    kind: Literal["half-cylinder"] = "half-cylinder"
    radius: PositiveLength = Field(0.06, description="Before it is scaled.")
    length: PositiveLength = Field(0.12, description="Length.")
    flatness: Factor = Field(1.0, description="Factor on its height; 0.2 to 1 in the thesis.")
    around: Cells = Field(48, description="Cells of its arc.")
    along: Cells = Field(40, description="Cells along it.")


class TunnelBlock(Spec):
    """A cube about its origin with holes in its top that a passage joins below; a single hole is blind."""

    kind: Literal["tunnel"] = "tunnel"
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


class _ConnectorPart(Spec):
    connector: Literal["two-prong", "lan", "cap", "buckle"] = Field(
        description="The snap connector that it is a part of, with the generator's dimensions."
    )


class ProngPart(_ConnectorPart):
    """An elastic part of a snap connector's socket, in the connector's frame."""

    kind: Literal["prong"] = "prong"
    number: Annotated[Count, Field(ge=0)] = Field(0, description="Which of the socket's parts, from 0.")
    mesh: Literal["coarse", "fine"] = Field("coarse", description="Its mesh.")


class Plug(_ConnectorPart):
    """The plug of a snap connector, in the connector's frame, where its push begins."""

    kind: Literal["plug"] = "plug"


class StraightLine(Spec):
    """A straight chain of beams."""

    kind: Literal["line"] = "line"
    start: Position = Field(description="First node.")
    end: Position = Field(description="Last node.")
    elements: Cells = Field(10, description="Number of beam elements; nodes are one more.")
    radius: PositiveLength = Field(description="Radius of the round section.")

    @field_validator("end")
    @classmethod
    def _has_length(cls, end: Position, info: ValidationInfo) -> Position:
        if end == info.data.get("start"):
            raise ValueError("equals start; the two ends of a beam must differ")
        return end

    @property
    def n_nodes(self) -> int:
        return self.elements + 1


class Polyline(Spec):
    """A chain of beams through given nodes."""

    kind: Literal["polyline"] = "polyline"
    points: tuple[Position, ...] = Field(
        min_length=2, description="Nodes in order, one element between each two."
    )
    radius: PositiveLength = Field(description="Radius of the round section.")

    @field_validator("points")
    @classmethod
    def _differ(cls, points: tuple[Position, ...]) -> tuple[Position, ...]:
        for i, (a, b) in enumerate(pairwise(points)):
            if a == b:
                raise ValueError(f"has equal points {i} and {i + 1}; consecutive nodes of a beam must differ")
        return points

    @property
    def n_nodes(self) -> int:
        return len(self.points)


class Capsule(Spec):
    """A cylinder with round ends, centred at its origin, axis along y."""

    kind: Literal["capsule"] = "capsule"
    radius: PositiveLength = Field(description="Radius of the shaft and of its round ends.")
    length: PositiveLength = Field(description="Length between the centres of the round ends.")


class Box(Spec):
    """A box, centred at its origin."""

    kind: Literal["box"] = "box"
    size: tuple[PositiveLength, PositiveLength, PositiveLength] = Field(
        description="Edge lengths along x, y, z."
    )


class FileOf:
    """Annotation of a file's path: made whole, refused where it is not there or ends otherwise."""

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._whole, handler(source))

    def _whole(self, path: str | None, info: Any) -> str | None:
        if path is None:
            return None
        full = Path((info.context or {}).get("folder", "."), path).expanduser()
        if not full.name.lower().endswith(self.endings):
            raise ValueError(f"has an ending that is not read here; use {in_words(list(self.endings))}")
        if not full.is_file():
            raise ValueError(f"is not there; a relative path starts at the scene's folder, {full.parent}")
        return str(full.resolve())


class _MeshFile(Spec):
    kind: Literal["file"] = "file"
    scale: Number = Field(
        1.0, gt=0, description="Metres per unit of the file; 0.001 for a mesh in millimetres."
    )


class VolumeFile(_MeshFile):
    """Tetrahedra, or hexahedra where a body may be of them, of a file, or tetrahedra in a closed surface.

    Gmsh (1, 2, 4), VTK and VTU files bring their own; STL, OBJ, PLY, glTF and STEP files are filled.
    """

    path: Annotated[str, FileOf(*VOLUME_FILES, *FILLED_FILES)] = Field(
        description="Mesh file; a relative path starts at the scene's folder."
    )
    size: PositiveLength | None = Field(None, description="Edge of the tetrahedra that fill a surface.")
    mesher: Literal["palpo", "gmsh"] | None = Field(
        None,
        description="Who fills a surface: Palpo on a lattice, the same on every machine, or Gmsh, which "
        "suits walls as thin as the size; without it Palpo, but Gmsh for cups, prongs and STEP files.",
    )

    @property
    def filled(self) -> bool:
        """Whether the file has a boundary alone."""
        return self.path.lower().endswith(FILLED_FILES)

    @property
    def filler(self) -> str:
        """Who fills it."""
        return self.mesher or ("gmsh" if self.path.lower().endswith(CAD_FILES) else self.usual)

    usual: ClassVar[str] = "palpo"
    """Who fills a surface where nothing is said."""

    @model_validator(mode="after")
    def _sized(self) -> "VolumeFile":
        if self.filled and self.size is None:
            raise refuse("the key is missing (the edge of the tetrahedra that fill the surface)", "size")
        for key in ("size", "mesher"):
            if getattr(self, key) is not None and not self.filled:
                raise refuse(f"this file has tetrahedra of its own; leave the {key} out", key)
        if self.mesher == "palpo" and self.path.lower().endswith(CAD_FILES):
            raise refuse("STEP files are filled by gmsh", "mesher")
        return self


class SurfaceFile(_MeshFile):
    """A closed triangle surface from an STL, OBJ, PLY, glTF, Gmsh, VTK or VTU file."""

    path: Annotated[str, FileOf(*SURFACE_FILES)] = Field(
        description="Mesh file; a relative path starts at the scene's folder."
    )


class Segment(Spec):
    """A part of a segmented volume, NRRD or NIfTI; x points to the patient's right, y to the front, z up."""

    kind: Literal["segment"] = "segment"
    path: Annotated[str, FileOf(*SEGMENTED_FILES)] = Field(
        description="The volume; it says its unit. A relative path starts at the scene's folder."
    )
    label: Annotated[Count, Field(ge=-32768, le=2**20)] = Field(
        description="The number that the part's voxels have; `palpo mesh` lists them."
    )
    size: PositiveLength = Field(description="Edge of the tetrahedra that fill it.")


class Robot(Spec):
    """Links of a robot, URDF or MJCF, whose joints are held: one body, in the robot's own frame.

    As a rigid body it has the masses of its file.
    """

    kind: Literal["robot"] = "robot"
    path: Annotated[str, FileOf(*ROBOT_FILES)] = Field(
        description="The robot; a relative path starts at the scene's folder. Its meshes lie there, too."
    )
    link: str | None = Field(
        None, description="A link (MJCF: a body), with all that hangs on it; without it, the whole robot."
    )
    without: tuple[str, ...] = Field(
        (), description="Links that are left out, each with all that hangs on it: other bodies can be those."
    )
    angles: dict[str, Angle] = Field(
        {},
        description="Where hinges are held, by their names; others follow, or are at 0 or their end there.",
    )
    travels: dict[str, Length] = Field({}, description="Where sliding joints are held, by their names.")


class HexBlock(GridGeometry):
    """A block of hexahedra, centred at its origin."""

    kind: Literal["hexes"] = "hexes"


class BodyFile(Spec):
    """A body file: mesh, material, clamped nodes, and K and its inverse if it has them; lengths in metres."""

    kind: Literal["body"] = "body"
    path: Annotated[str, FileOf(*BODY_FILES)] = Field(
        description="HDF5 file; a relative path starts at the scene's folder."
    )


class SolidFile(VolumeFile):
    """Tetrahedra or hexahedra from a Gmsh (1, 2, 4), VTK or VTU file, or a closed surface that is filled."""


SolidGeometry = Annotated[
    HexBlock | Block | Cylinder | Sphere | Ellipsoid | SolidFile | Segment | BodyFile,
    Field(discriminator="kind"),
    Kinds(),
]
"""Shapes of quasi-static bodies."""


SoftGeometry = Annotated[
    Block
    | Cylinder
    | Sphere
    | Ellipsoid
    | Liver
    | TunnelBlock
    | ProngPart
    | CupModel
    | RevolvedCup
    | VolumeFile
    | Segment,
    Field(discriminator="kind"),
    Kinds(),
]
BeamGeometry = Annotated[StraightLine | Polyline, Field(discriminator="kind"), Kinds()]
RigidGeometry = Annotated[
    Capsule
    | Sphere
    | Box
    | Ellipsoid
    | Cylinder
    | Block
    | Plate
    | Bunny
    | HalfCylinder
    | TunnelBlock
    | Liver
    | Plug
    | SurfaceFile
    | Segment
    | Robot,
    Field(discriminator="kind"),
    Kinds(),
]
"""Shapes of rigid bodies, and of those that never move."""


class Placement(Spec):
    """Where a shape stands: scaled, then rotated about its origin, then moved."""

    position: Position = Field((0.0, 0.0, 0.0), description="Where the shape's origin goes.")
    rotation: AxisAngle = Field(
        NO_ROTATION, description='Axis and angle, such as `[1, 0, 0, "90 deg"]`; a plain angle is in radians.'
    )
    scale: Number = Field(1.0, gt=0, description="Factor on the shape's lengths.")

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Unit quaternion (w, x, y, z) of the rotation."""
        return quaternion(self.rotation)
