"""Scenes of suction: cups that stick by air pressure, and what they are set on.

docs/suction.md gives the reasons of the values that the thesis leaves open.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from palpo.config.schema.base import Count, Flag, Kinds, Spec, choose, exactly_one, refuse
from palpo.config.schema.body import Colour, Name, NodeIndex, Region
from palpo.config.schema.device import Waypoints, in_order
from palpo.config.schema.geometry import (
    Block,
    Cells,
    Cylinder,
    Factor,
    Placement,
    PositiveLength,
    Sphere,
    SurfaceFile,
    VolumeFile,
)
from palpo.config.schema.material import Material
from palpo.config.schema.pump import CupLine, Manifold
from palpo.config.schema.rates import Rates
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.solver import PlainFriction, Sweeps
from palpo.config.schema.tool import Grip
from palpo.config.schema.units import (
    Damping,
    Density,
    Force,
    Frequency,
    Length,
    Mass,
    Number,
    Pressure,
    Speed,
    Stiffness,
    Time,
)

Forces = Annotated[tuple[tuple[Time, Force], ...], AfterValidator(in_order)]
Pressures = Annotated[tuple[tuple[Time, Pressure], ...], AfterValidator(in_order)]
Resolution = Literal[76, 125, 141, 151, 159, 203, 363, 415, 455, 502, 552, 576, 723, 1200, 2400, 4800]


class SuctionRates(Rates):
    """The rates of the loops; cavities, pressures and soft bodies are computed at the low one."""

    low_hz: Frequency = Field(100.0, ge=1, description="Rate of cavities, pressures and soft bodies.")


class _GeneratedCup(Spec):
    resolution: Resolution = Field(
        576, description="Its mesh, by the nodes of the thesis's; 723 is the dart's, those beyond are finer."
    )


class CupModel(_GeneratedCup):
    """A cup of the thesis, standing on its opening at its origin, axis along y."""

    kind: Literal["cup"]
    model: Literal[
        "small", "large", "round", "asymmetric", "S10", "S20", "S30", "B20", "A20", "A30", "dart"
    ] = Field("small", description="Which one; it brings its material and mass. The dart's rod is rigid.")


class RevolvedCup(_GeneratedCup):
    """A cup of one's own dimensions, standing on its opening at its origin, axis along y."""

    kind: Literal["revolved"]
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


class CupFile(VolumeFile):
    """Tetrahedra from a Gmsh (1, 2, 4), VTK or VTU file, the opening towards -y."""

    held: tuple[Region, ...] = Field(min_length=1, description="Nodes by which the cup is held.")


class ArmGeometry(Spec):
    """An arm along x with four cups of several sizes towards -y, held at x = 0."""

    kind: Literal["arm"]


CupGeometry = Annotated[CupModel | RevolvedCup | CupFile | ArmGeometry, Field(discriminator="kind"), Kinds()]


class HandDrive(Grip):
    """The device moves the held nodes."""

    kind: Literal["hand"]


class ScriptedDrive(Spec):
    """The held nodes move on a path."""

    kind: Literal["scripted"]
    path: Waypoints = Field(description="Displacements from rest over time, rows [t, x, y, z].")
    smooth: Flag = Field(
        False, description="Come to rest at each waypoint (minimum jerk) instead of straight ramps."
    )


class SameDrive(Spec):
    """The held nodes move as those of another cup, as on one frame."""

    kind: Literal["same"]
    cup: Name = Field(description="Name of that cup, whose drive is scripted.")


class FreeDrive(Spec):
    """Nothing holds the cup."""

    kind: Literal["free"]
    velocity: tuple[Speed, Speed, Speed] = Field((0.0, 0.0, 0.0), description="At the start.")


class FigureDrive(Spec):
    """A rigid figure on the held nodes, with a spring between it and the partner."""

    kind: Literal["figure"]
    mass: Mass = Field(0.02, gt=0, description="Of the figure.")
    stiffness: Stiffness = Field(150.0, gt=0, description="Of the spring.")
    damping: Damping = Field(0.05, ge=0, description="Of the spring.")
    push: Forces = Field((), description="Force downward on the figure over time, rows [t, force].")


class CableDrive(Spec):
    """The base of an arm stays, its cables are pulled."""

    kind: Literal["cables"]
    curl: Forces = Field((), description="Pull on each of the two lower cables over time, rows [t, force].")
    uncurl: Forces = Field((), description="Pull on the cable along its back over time, rows [t, force].")


Drive = Annotated[
    HandDrive | ScriptedDrive | SameDrive | FreeDrive | FigureDrive | CableDrive,
    Field(discriminator="kind"),
    Kinds(),
]

WAVES = 50.0
"""Longest wavelength of a roughness over its height: of sandblasted plates, 50 to 100."""

Roughness = Annotated[Length, Field(ge=0)]
_ROUGHNESS = "Mean depth of the surface's valleys, where air stays when two surfaces are pressed together."


class Cup(Spec):
    """A soft body with one or several cups, and what moves it."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": "a cup is held by its drive; a path of one row, [[0, 0, 0, 0]], lets it stay",
        "density": "it stands in the material; a mass takes its place",
    }

    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    geometry: CupGeometry = Field(description="Its shape.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    material: Material | None = Field(
        None, description="A name or a table; without it, that of the model or of the arm in the thesis."
    )
    mass: Mass | None = Field(
        None, gt=0, description="Instead of the material's density; without both, the model's."
    )
    roughness: Roughness = Field(5e-6, description=_ROUGHNESS)
    seed: NodeIndex | None = Field(
        None, description="A node on its outside, from which that is found; without it, one is chosen."
    )
    drive: Drive = Field(description="What moves it.")
    line: CupLine | None = Field(None, description="To the manifold, where the gas is pumped.")
    colour: Colour = Field((0.45, 0.65, 0.85), description="Red, green and blue from 0 to 1.")

    @model_validator(mode="after")
    def _agrees(self) -> "Cup":
        if self.material is None and isinstance(self.geometry, RevolvedCup | CupFile):
            raise refuse("the key is missing (a material's name, or a table)", "material")
        if isinstance(self.drive, CableDrive) and not isinstance(self.geometry, ArmGeometry):
            raise refuse('only an arm has cables; choose another drive, or geometry kind = "arm"', "drive")
        if isinstance(self.drive, FigureDrive) and isinstance(self.geometry, ArmGeometry):
            raise refuse("a figure sits on one cup, not on an arm; choose another drive", "drive")
        if isinstance(self.geometry, CupFile):
            for i, region in enumerate(self.geometry.held):
                if region.end is not None:
                    said = "only a beam has ends; choose box, sphere or nodes"
                    raise refuse(said, "geometry", "held", i, "end")
        return self


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
    Plate | Bunny | HalfCylinder | TunnelBlock | Block | Cylinder | Sphere | SurfaceFile,
    Field(discriminator="kind"),
    Kinds(),
]
SoftShape = Annotated[
    Block | TunnelBlock | Cylinder | Sphere | VolumeFile, Field(discriminator="kind"), Kinds()
]


class _Partner(Spec):
    name: Name = Field("partner", description="Unique name: a letter, then letters, digits, _ or -.")
    placement: Placement = Field(Placement(), description="Where it stands.")
    roughness: Roughness = Field(5e-6, description=_ROUGHNESS)
    colour: Colour = Field((0.75, 0.75, 0.75), description="Red, green and blue from 0 to 1.")


_NEVER_MOVES = "this partner never moves, so leave it out"


class StaticPartner(_Partner):
    """A body that never moves."""

    misplaced: ClassVar[dict[str, str]] = dict.fromkeys(
        ("material", "mass", "density", "fixed", "ground"), _NEVER_MOVES
    )

    kind: Literal["static"]
    geometry: RigidShape = Field(description="Its shape; a closed surface.")


class _MovingPartner(_Partner):
    ground: Length | None = Field(
        None, description="Height of an endless ground that carries it; without it, there is none."
    )


class RigidPartner(_MovingPartner):
    """A rigid body; exactly one of density and mass is given."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": 'a rigid body that never moves is kind = "static"',
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

    kind: Literal["soft"]
    geometry: SoftShape = Field(description="Its shape.")
    material: Material = Field(description='A name such as `"silicone"`, or a table.')
    mass: Mass | None = Field(None, gt=0, description="Instead of the material's density.")
    fixed: tuple[Region, ...] = Field((), description="Nodes that never move.")

    @model_validator(mode="after")
    def _no_ends(self) -> "SoftPartner":
        for i, region in enumerate(self.fixed):
            if region.end is not None:
                raise refuse("only a beam has ends; choose box, sphere or nodes", "fixed", i, "end")
        return self


Partner = Annotated[StaticPartner | RigidPartner | SoftPartner, Field(discriminator="kind"), Kinds()]


class SuctionContact(Spec):
    """The three distances between two surfaces; each is at most the next."""

    distance: Length = Field(0.0001, ge=0, description="Gap that is kept between surfaces.")
    sealing: Length = Field(
        0.0005,
        gt=0,
        description="Gap up to which a rim counts as one, and is airtight or lets through what flows.",
    )
    alarm: Length = Field(0.002, gt=0, description="Gap up to which a vertex becomes a contact.")

    @model_validator(mode="after")
    def _in_order(self) -> "SuctionContact":
        if self.sealing > self.alarm:
            raise refuse(
                f"it must not exceed alarm = {self.alarm:g} m, beyond which no gap is known", "sealing"
            )
        if self.distance > self.sealing:
            raise refuse(f"it must not exceed sealing = {self.sealing:g} m, or nothing seals", "distance")
        return self


class SuctionFriction(PlainFriction):
    """Coulomb's coefficient of cup and partner; with `rough`, it depends on their roughness."""

    default: Number = Field(0.6, ge=0, le=10, description="Coefficient of smooth surfaces.")
    rough: Number | None = Field(
        None, ge=0, le=10, description="Coefficient of very rough ones; without it, roughness has no effect."
    )
    half_depth: Length = Field(
        2e-5, gt=0, description="Sum of both roughnesses at which it is half way from default to rough."
    )

    def at(self, depth: float) -> float:
        """Coefficient of two surfaces whose roughnesses sum up to `depth` [m]."""
        if self.rough is None:
            return self.default
        return self.rough + (self.default - self.rough) / (1.0 + depth / self.half_depth)


class _Gas(Spec):
    atmosphere: Pressure = Field(101_325.0, gt=0, description="Pressure outside.")
    temperature: Number = Field(
        293.15, gt=0, description="In kelvin; it sets how many moles are reported, and no force."
    )


class Seal(Spec):
    """Cup and partner as surfaces of measured roughness, self-affine; where they touch air leaks."""

    rms: Length = Field(
        2e-6, gt=0, description="Root mean square height of both together; milled plastic by default."
    )
    wavelength: PositiveLength | None = Field(
        None, description="Longest wavelength of their roughness; without it, 50 times `rms`."
    )
    hurst: Number = Field(0.8, gt=0, lt=1, description="Hurst exponent of their spectrum.")

    @property
    def longest(self) -> float:
        """Longest wavelength [m]."""
        return WAVES * self.rms if self.wavelength is None else self.wavelength


_FLOWS = 'the seal says how air gets by; rims that are tight by themselves are kind = "airtight"'


class PassiveGas(_Gas):
    """Air shut in by the cups: p V = n R T. What gets by under the rims is computed."""

    misplaced: ClassVar[dict[str, str]] = dict.fromkeys(("max_pressure", "leak"), _FLOWS)

    kind: Literal["passive"]
    seal: Seal = Field(
        Seal(),
        description="Air flows through the gap under a rim, and between rough surfaces the less the harder "
        "they are pressed.",
    )


class AirtightGas(_Gas):
    """As the thesis has it: rims are airtight up to `contact.sealing`, and lift at a given pressure."""

    misplaced: ClassVar[dict[str, str]] = {
        "seal": 'these rims are tight by themselves; what gets by is computed with kind = "passive"'
    }

    kind: Literal["airtight"]
    max_pressure: Pressure = Field(102_000.0, gt=0, description="At which air lifts the rim and escapes.")
    leak: Length = Field(
        0.0, ge=0, description="Height of the gap through which air seeps in under the rim; 0 is tight."
    )

    @model_validator(mode="after")
    def _above_atmosphere(self) -> "AirtightGas":
        if self.max_pressure <= self.atmosphere:
            said = f"air would leave by itself; give more than atmosphere = {self.atmosphere:g} Pa"
            raise refuse(said, "max_pressure")
        return self


class ActiveGas(_Gas):
    """A pump imposes the pressure, given relative to the atmosphere: negative is suction."""

    kind: Literal["active"]
    gauge: Pressure = Field(0.0, description="Without a table; it can be changed while the scene runs.")
    table: Pressures = Field((), description="Pressure over time, rows [t, p], with straight ramps between.")

    @model_validator(mode="after")
    def _above_vacuum(self) -> "ActiveGas":
        said = f"no pump goes below a vacuum, {-self.atmosphere:g} Pa; give more"
        if self.gauge < -self.atmosphere:
            raise refuse(said, "gauge")
        for i, (_, pressure) in enumerate(self.table):
            if pressure < -self.atmosphere:
                raise refuse(said, "table", i, 1)
        return self


class PumpedGas(PassiveGas):
    """A pump, its manifold and a line to each cup: all share a vacuum, and lose it to one that leaks."""

    kind: Literal["pumped"]  # type: ignore[assignment]
    manifold: Manifold = Field(description="Pump, vent and volume.")

    @model_validator(mode="after")
    def _pumps(self) -> "PumpedGas":
        self.manifold.check(self.atmosphere)
        return self


Gas = Annotated[
    PassiveGas | AirtightGas | ActiveGas | PumpedGas, Field(discriminator="kind"), Kinds("passive")
]


class SuctionSolver(Spec):
    """Block Gauss-Seidel over contacts, friction and pressures, and its stops."""

    stop: Literal["residual", "sweeps"] = Field(
        "residual", description="At the tolerance, or after all the sweeps (50 in the thesis)."
    )
    tolerance: Number = Field(1e-6, gt=0, lt=1, description="Relative residual at which it stops.")
    sweeps: Sweeps = Field(300, description="Most sweeps in a step.")


class SuctionScene(BaseScene):
    """A suction scene: cups, what moves them, and the body they are set on."""

    system: Literal["suction"] = Field(
        "suction",
        description="What computes the scene: cups that stick by the pressure of the air they shut in.",
    )
    rates: SuctionRates = Field(SuctionRates(), description="Rates of the loops.")
    cups: tuple[Cup, ...] = Field(min_length=1, description="The cups.")
    partner: Partner = Field(description="What they are set on.")
    contact: SuctionContact = Field(SuctionContact(), description="Distances of contact and sealing.")
    friction: SuctionFriction = Field(SuctionFriction(), description="Coefficient of friction.")
    gas: Gas = Field(PassiveGas(kind="passive"), description="The air in the cavities.")
    refine: Flag = Field(
        True,
        description="Whether cavities end where the gap is the sealing distance, or at the next vertices.",
    )
    solver: SuctionSolver = Field(SuctionSolver(), description="Solver of contacts and pressures.")

    def drive_of(self, cup: Cup) -> Drive:
        """What moves a cup; of one that moves as another, that one's."""
        if not isinstance(cup.drive, SameDrive):
            return cup.drive
        return next(other.drive for other in self.cups if other.name == cup.drive.cup)

    def roughness(self, cup: Cup) -> float:
        """Depth [m] of the gap that stays between a cup and the partner where they are pressed together."""
        return cup.roughness + self.partner.roughness

    def mu(self, cup: Cup) -> float:
        """Friction coefficient between a cup and the partner."""
        return self.friction.at(self.roughness(cup))

    @model_validator(mode="after")
    def _agrees(self) -> "SuctionScene":
        names = [self.partner.name]
        hands = 0
        pumped = isinstance(self.gas, PumpedGas)
        for cup in self.cups:
            if cup.name in names:
                raise refuse(
                    "another body has this name already; give each its own", "cups", cup.name, "name"
                )
            names.append(cup.name)
            hands += isinstance(cup.drive, HandDrive)
            if cup.line is not None and not pumped:
                raise refuse('a line leads to a pump; give [gas] kind = "pumped"', "cups", cup.name, "line")
            if hands > 1:
                said = "the device moves another cup already; choose another drive"
                raise refuse(said, "cups", cup.name, "drive")
        scripted = [cup.name for cup in self.cups if isinstance(cup.drive, ScriptedDrive)]
        for cup in self.cups:
            if isinstance(cup.drive, SameDrive) and cup.drive.cup not in scripted:
                said = f"no cup of that name has a scripted drive; {choose(cup.drive.cup, scripted)}"
                raise refuse(said, "cups", cup.name, "drive", "cup")
        return self
