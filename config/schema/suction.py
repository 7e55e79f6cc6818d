"""Scenes of suction: cups that stick by air pressure, and what they are set on.

docs/suction.md gives the reasons of the values that the thesis leaves open.
"""

from collections.abc import Set
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from palpo.config.schema.base import Flag, Kinds, Spec, refuse
from palpo.config.schema.body import (
    ROUGHNESS,
    Colour,
    Name,
    NodeIndex,
    Region,
    Rigid,
    Roughness,
    Soft,
    Static,
    refuse_ends,
)
from palpo.config.schema.device import Waypoints, in_order
from palpo.config.schema.gas import Gas, PassiveGas, PumpedGas
from palpo.config.schema.geometry import (
    BellowsCup,
    CupModel,
    DrawnCup,
    Placement,
    RevolvedCup,
    VolumeFile,
)
from palpo.config.schema.material import Elastic
from palpo.config.schema.pump import CupLine
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.solver import Contact, Friction, SolverSpec
from palpo.config.schema.tool import Tool
from palpo.config.schema.units import Damping, Force, Mass, Speed, Stiffness, Time
from palpo.config.words import choose

Forces = Annotated[tuple[tuple[Time, Force], ...], AfterValidator(in_order)]


class CupFile(VolumeFile):
    """A cup from a file of tetrahedra, or a closed surface or STEP file, filled; the opening towards -y."""

    usual: ClassVar[str] = "gmsh"
    held: tuple[Region, ...] = Field(min_length=1, description="Nodes by which the cup is held.")


class OctopusArm(Spec):
    """An arm along x with four cups of several sizes towards -y, held at x = 0."""

    kind: Literal["arm"] = "arm"


CupGeometry = Annotated[
    CupModel | RevolvedCup | DrawnCup | BellowsCup | CupFile | OctopusArm,
    Field(discriminator="kind"),
    Kinds(),
]


class ScriptedDrive(Spec):
    """The held nodes move on a path."""

    kind: Literal["scripted"] = "scripted"
    path: Waypoints = Field(description="Displacements from rest over time, rows [t, x, y, z].")
    smooth: Flag = Field(
        False, description="Come to rest at each waypoint (minimum jerk) instead of straight ramps."
    )
    led: Flag = Field(
        False,
        description="Whether a hand leads it, too, as far as the device moves; it feels nothing. "
        "Then pump and vent are the hand's as well, and their tables over.",
    )


class SameDrive(Spec):
    """The held nodes move as those of another cup, as on one frame."""

    kind: Literal["same"] = "same"
    cup: Name = Field(description="Name of that cup, whose drive is scripted.")


class FreeDrive(Spec):
    """Nothing holds the cup."""

    kind: Literal["free"] = "free"
    velocity: tuple[Speed, Speed, Speed] = Field((0.0, 0.0, 0.0), description="At the start.")


class FigureDrive(Spec):
    """A rigid figure on the held nodes, with a spring between it and the partner."""

    kind: Literal["figure"] = "figure"
    mass: Mass = Field(0.02, gt=0, description="Of the figure.")
    stiffness: Stiffness = Field(150.0, gt=0, description="Of the spring.")
    damping: Damping = Field(0.05, ge=0, description="Of the spring.")
    push: Forces = Field((), description="Force downward on the figure over time, rows [t, force].")


class CableDrive(Spec):
    """The base of an arm stays, its cables are pulled."""

    kind: Literal["cables"] = "cables"
    curl: Forces = Field((), description="Pull on each of the two lower cables over time, rows [t, force].")
    uncurl: Forces = Field((), description="Pull on the cable along its back over time, rows [t, force].")


Drive = Annotated[
    ScriptedDrive | SameDrive | FreeDrive | FigureDrive | CableDrive,
    Field(discriminator="kind"),
    Kinds(),
]


class Cup(Spec):
    """A soft body with one or several cups, and what moves it."""

    misplaced: ClassVar[dict[str, str]] = {
        "fixed": "a cup is held by its drive; a path of one row, [[0, 0, 0, 0]], lets it stay",
        "density": "it stands in the material; a mass takes its place",
    }

    kind: Literal["cup"] = "cup"
    name: Name = Field(description="Unique name: a letter, then letters, digits, _ or -.")
    geometry: CupGeometry = Field(description="Its shape.")
    elements: Literal["hexahedra", "tetrahedra"] | None = Field(
        None,
        description="What it is cut into: hexahedra bend as the cup does, tetrahedra are too stiff; "
        "without the key, a cup that is turned about its axis is of hexahedra.",
    )
    placement: Placement = Field(Placement(), description="Where it stands.")
    material: Elastic | None = Field(
        None, description="A name or a table; without it, that of the model or of the arm in the thesis."
    )
    mass: Mass | None = Field(
        None, gt=0, description="Instead of the material's density; without both, the model's."
    )
    roughness: Roughness = Field(5e-6, description=ROUGHNESS)
    seed: NodeIndex | None = Field(
        None, description="A node on its outside, from which that is found; without it, one is chosen."
    )
    drive: Drive | None = Field(None, description="What moves it; not of the tool, which the hand moves.")
    line: CupLine | None = Field(None, description="To the manifold, where the gas is pumped.")
    colour: Colour = Field((0.45, 0.65, 0.85), description="Red, green and blue from 0 to 1.")

    @model_validator(mode="after")
    def _agrees(self) -> "Cup":
        if self.material is None and isinstance(self.geometry, RevolvedCup | DrawnCup | BellowsCup | CupFile):
            raise refuse("the key is missing (a material's name, or a table)", "material")
        if self.elements == "hexahedra" and isinstance(self.geometry, CupFile | OctopusArm):
            what = "a file" if isinstance(self.geometry, CupFile) else "the arm"
            said = f"{what} brings tetrahedra, and no cells to take whole; leave the key out"
            raise refuse(said, "elements")
        if isinstance(self.drive, CableDrive) and not isinstance(self.geometry, OctopusArm):
            raise refuse('only an arm has cables; choose another drive, or geometry kind = "arm"', "drive")
        if isinstance(self.drive, FigureDrive) and isinstance(self.geometry, OctopusArm):
            raise refuse("a figure sits on one cup, not on an arm; choose another drive", "drive")
        if isinstance(self.geometry, CupFile):
            refuse_ends(self.geometry.held, "geometry", "held")
        return self


SuctionBody = Annotated[Cup | Static | Rigid | Soft, Field(discriminator="kind"), Kinds()]


class SuctionScene(BaseScene):
    """A suction scene: cups, what moves them, and the body they are set on."""

    system: Literal["suction"] = Field(
        "suction",
        description="What computes the scene: cups that stick by the pressure of the air they shut in.",
    )
    bodies: tuple[SuctionBody, ...] = Field(description="The cups, and the one body that they are set on.")
    tool: Tool | None = Field(None, description="The cup that the hand moves; without it, none is.")
    contact: Contact = Field(Contact(), description="Distances of contact and sealing.")
    friction: Friction = Field(Friction(), description="Coefficient of friction.")
    gas: Gas = Field(PassiveGas(), description="The air in the cavities.")
    refine: Flag = Field(
        True,
        description="Whether cavities end where the gap is the sealing distance, or at the next vertices.",
    )
    solver: SolverSpec = Field(SolverSpec(), description="Solver of contacts and pressures.")

    @classmethod
    def claims(cls, kinds: Set[str]) -> bool:
        """See BaseScene."""
        return "cup" in kinds

    @property
    def cups(self) -> tuple[Cup, ...]:
        """The cups."""
        return tuple(body for body in self.bodies if isinstance(body, Cup))

    @property
    def partner(self) -> Static | Rigid | Soft:
        """What they are set on."""
        return next(body for body in self.bodies if not isinstance(body, Cup))

    def drive_of(self, cup: Cup) -> Drive | None:
        """What moves a cup; of one that moves as another, that one's; None of the tool."""
        if not isinstance(cup.drive, SameDrive):
            return cup.drive
        return next(other.drive for other in self.cups if other.name == cup.drive.cup)

    @property
    def led(self) -> str:
        """Name of the first cup that a hand leads without holding it; empty where it leads none."""
        led = (cup.name for cup in self.cups if isinstance(cup.drive, ScriptedDrive) and cup.drive.led)
        return next(led, "")

    def roughness(self, cup: Cup) -> float:
        """Depth [m] of the gap that stays between a cup and the partner where they are pressed together."""
        return cup.roughness + self.partner.roughness

    def mu(self, cup: Cup) -> float:
        """Friction coefficient between a cup and the partner."""
        return self.friction.at(self.roughness(cup))

    @model_validator(mode="after")
    def _agrees(self) -> "SuctionScene":
        contact = self.contact
        if contact.sealing > contact.alarm:
            said = f"it must not exceed alarm = {contact.alarm:g} m, beyond which no gap is known"
            raise refuse(said, "contact", "sealing")
        if contact.distance > contact.sealing:
            said = f"it must not exceed sealing = {contact.sealing:g} m, or nothing seals"
            raise refuse(said, "contact", "distance")
        if not self.cups:
            raise refuse('a cup is missing; give one body kind = "cup"', "bodies")
        partners = len(self.bodies) - len(self.cups)
        if partners != 1:
            said = "what the cups are set on is missing" if partners == 0 else "cups are set on one body"
            raise refuse(f'{said}; give one body of kind "mesh", "rigid" or "tets"', "bodies")
        if isinstance(self.partner, Soft):
            refuse_ends(self.partner.fixed, "bodies", self.partner.name, "fixed")
        if self.partner.regions and not isinstance(self.gas, PassiveGas):
            said = f'gas.kind = "{self.gas.kind}" lets nothing by; choose "passive" or "pumped"'
            raise refuse(said, "bodies", self.partner.name, "regions")
        names = [self.partner.name]
        held = None if self.tool is None else self.tool.body
        pumped = isinstance(self.gas, PumpedGas)
        for cup in self.cups:
            if cup.name in names:
                raise refuse(
                    "another body has this name already; give each its own", "bodies", cup.name, "name"
                )
            names.append(cup.name)
            if cup.line is not None and not pumped:
                raise refuse('a line leads to a pump; give [gas] kind = "pumped"', "bodies", cup.name, "line")
            if cup.name == held and cup.drive is not None:
                raise refuse("the hand moves this cup; leave the drive out", "bodies", cup.name, "drive")
            if cup.name != held and cup.drive is None:
                said = "the key is missing (what moves the cup; or name it in tool.body)"
                raise refuse(said, "bodies", cup.name, "drive")
        cups = names[1:]
        if held is not None and held not in cups:
            raise refuse(f"the hand holds a cup; {choose(held, cups)}", "tool", "body")
        scripted = [cup.name for cup in self.cups if isinstance(cup.drive, ScriptedDrive)]
        for cup in self.cups:
            if isinstance(cup.drive, SameDrive) and cup.drive.cup not in scripted:
                said = f"no cup of that name has a scripted drive; {choose(cup.drive.cup, scripted)}"
                raise refuse(said, "bodies", cup.name, "drive", "cup")
        return self
