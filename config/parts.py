"""The parts of scenes, each a class: what `palpo` offers by the same names, to make scenes in Python."""

from collections.abc import Sequence
from typing import Literal, Required, TypedDict

from palpo.config.schema.attachment import (
    BodyPoint,
    FrameAttachment,
    Oscillation,
    PointAttachment,
    SlideAttachment,
    WeldAttachment,
)
from palpo.config.schema.blade import BladeSpec
from palpo.config.schema.body import (
    Beam,
    MaterialSpec,
    Plane,
    Quasistatic,
    Region,
    Rigid,
    Soft,
    SphereRegion,
    Static,
    WallRegionSpec,
)
from palpo.config.schema.cavity import AirSpec
from palpo.config.schema.connector import (
    BuckleConnector,
    CapConnector,
    FilesConnector,
    LanConnector,
    PlugFile,
    ProngFile,
    TwoProngConnector,
)
from palpo.config.schema.cues import Cues
from palpo.config.schema.device import HandSpec, HapticDevice, Safety, WorkspaceSpec
from palpo.config.schema.gas import ActiveGas, AirtightGas, PassiveGas, PumpedGas, SealSpec
from palpo.config.schema.geometry import (
    BellowsCup,
    Block,
    BodyFile,
    Box,
    Bunny,
    Capsule,
    CupModel,
    Cylinder,
    DrawnCup,
    Ellipsoid,
    HalfCylinder,
    HexBlock,
    Liver,
    Placement,
    Plate,
    Plug,
    Polyline,
    ProngPart,
    RevolvedCup,
    Robot,
    Segment,
    SolidFile,
    Sphere,
    StraightLine,
    SurfaceFile,
    TunnelBlock,
    VolumeFile,
)
from palpo.config.schema.hapco import Stylus, Zoom
from palpo.config.schema.incision import IncisionSpec
from palpo.config.schema.material import Elastic, OgdenTerm, PronyTerm, SoftMaterial
from palpo.config.schema.needle import NeedleSpec
from palpo.config.schema.pump import CupLine, LineSpec, Manifold, PumpSpec, Vent
from palpo.config.schema.rates import Rates
from palpo.config.schema.snap import (
    AdmittanceSpec,
    ExactDistanceSpec,
    GridDistanceSpec,
    Integration,
    LearnedDistanceSpec,
    Misalignment,
    Rayleigh,
    SnapModelSpec,
)
from palpo.config.schema.solver import Contact, Friction, FrictionPair, Interface, SolverSpec
from palpo.config.schema.suction import (
    CableDrive,
    Cup,
    CupFile,
    FigureDrive,
    FreeDrive,
    OctopusArm,
    SameDrive,
    ScriptedDrive,
)
from palpo.config.schema.surface import SurfaceSpec
from palpo.config.schema.tool import HoldSpec, Tool
from palpo.config.schema.view import View

__all__ = [
    "ActiveGas",
    "AdmittanceSpec",
    "AirSpec",
    "AirtightGas",
    "Beam",
    "BellowsCup",
    "BladeSpec",
    "Block",
    "BodyFile",
    "BodyPoint",
    "Box",
    "BuckleConnector",
    "Bunny",
    "CableDrive",
    "CapConnector",
    "Capsule",
    "Contact",
    "Cues",
    "Cup",
    "CupFile",
    "CupLine",
    "CupModel",
    "Cylinder",
    "DrawnCup",
    "Elastic",
    "Ellipsoid",
    "ExactDistanceSpec",
    "FigureDrive",
    "FilesConnector",
    "FrameAttachment",
    "FreeDrive",
    "Friction",
    "FrictionPair",
    "GridDistanceSpec",
    "HalfCylinder",
    "HandSpec",
    "HapticDevice",
    "HexBlock",
    "HoldSpec",
    "IncisionSpec",
    "Integration",
    "Interface",
    "LanConnector",
    "LearnedDistanceSpec",
    "LineSpec",
    "Liver",
    "Manifold",
    "MaterialSpec",
    "Misalignment",
    "NeedleSpec",
    "OctopusArm",
    "OgdenTerm",
    "Oscillation",
    "PassiveGas",
    "Placement",
    "Plane",
    "Plate",
    "Plug",
    "PlugFile",
    "PointAttachment",
    "Polyline",
    "ProngFile",
    "ProngPart",
    "PronyTerm",
    "PumpSpec",
    "PumpedGas",
    "Quasistatic",
    "Rates",
    "Rayleigh",
    "Region",
    "RevolvedCup",
    "Rigid",
    "Robot",
    "Safety",
    "SameDrive",
    "ScriptedDrive",
    "SealSpec",
    "Segment",
    "SlideAttachment",
    "SnapModelSpec",
    "Soft",
    "SoftMaterial",
    "SolidFile",
    "SolverSpec",
    "Sphere",
    "SphereRegion",
    "Static",
    "StraightLine",
    "Stylus",
    "SurfaceFile",
    "SurfaceSpec",
    "Tool",
    "TunnelBlock",
    "TwoProngConnector",
    "Vent",
    "View",
    "VolumeFile",
    "WallRegionSpec",
    "WeldAttachment",
    "WorkspaceSpec",
    "Zoom",
]


class SceneKeys(TypedDict, total=False):
    """What `palpo.Scene` takes, part by part, in SI units."""

    title: Required[str]
    description: str
    bodies: Sequence[Soft | Beam | Rigid | Quasistatic | Plane | Static | Cup]
    tool: Tool
    tools: Sequence[Tool]
    device: HapticDevice
    workspace: WorkspaceSpec
    rates: Rates
    contact: Contact
    friction: Friction
    solver: SolverSpec
    gravity: tuple[float, float, float]
    safety: Safety
    cues: Cues
    view: View
    surfaces: Sequence[SurfaceSpec]
    needles: Sequence[NeedleSpec]
    blades: Sequence[BladeSpec]
    attachments: Sequence[PointAttachment | WeldAttachment | SlideAttachment | FrameAttachment]
    air: AirSpec
    interface: Interface
    loops: Literal["servo", "multirate", "tangent"]
    stylus: Stylus
    zoom: Zoom
    gas: PassiveGas | AirtightGas | ActiveGas | PumpedGas
    refine: bool
    connector: TwoProngConnector | LanConnector | CapConnector | BuckleConnector | FilesConnector
    material: Elastic | str
    damping: Rayleigh
    distance: ExactDistanceSpec | GridDistanceSpec | LearnedDistanceSpec
    admittance: AdmittanceSpec
    misalignment: Misalignment
    integration: Integration
    model: SnapModelSpec
    strain_limit: float | str | None
    socket_colour: tuple[float, float, float]
    plug_colour: tuple[float, float, float]
    system: Literal["multirate", "hapco", "snap", "suction"]
