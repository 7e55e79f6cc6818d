"""The tools: bodies that are computed at the servo's rate, each held by a device."""

from typing import Literal

from pydantic import Field

from palpo.config.schema.base import Flag, Spec
from palpo.config.schema.body import Place
from palpo.config.schema.device import HapticDevice, WorkspaceSpec
from palpo.config.schema.units import Damping, RotationalDamping, RotationalStiffness, Stiffness


class GripSpec(Spec):
    """How the device holds what it moves."""

    mode: Literal["coupling", "direct"] = Field(
        "coupling",
        description="A spring and damper (virtual coupling), or the device's pose imposed as it is.",
    )
    orientation: Flag = Field(True, description="Whether the orientation is held as well.")
    stiffness: Stiffness = Field(500.0, gt=0, description="Spring of the coupling.")
    damping: Damping = Field(1.0, ge=0, description="Damper of the coupling.")
    rotational_stiffness: RotationalStiffness = Field(1.0, gt=0, description="Spring on the orientation.")
    rotational_damping: RotationalDamping = Field(0.001, ge=0, description="Damper on the orientation.")


class GrippedTool(Spec):
    """Which of the bodies the hand holds, by all of the nodes that are held of it."""

    body: str = Field(description="Name of the body that the hand holds.")
    hold: GripSpec = Field(GripSpec(), description="How the device holds it.")


class HoldSpec(GripSpec, Place):
    """Where and how the device holds the tool; the place by at most one of node, end and at."""


class Tool(Spec):
    """Which body is the tool, how it is held and which force is fed back."""

    body: str = Field(
        description='Name of a beam or rigid body with rate = "high", or of a quasi-static one.'
    )
    hold: HoldSpec = Field(HoldSpec(), description="The hold.")
    feedback: Literal["constraints", "reaction"] = Field(
        "constraints",
        description="Sum of the constraint forces on the tool (the paper's), or reaction of the held point, "
        "which adds the tool's own weight and inertia.",
    )


class FurtherToolSpec(Tool):
    """A tool beside the first, in a hand of its own."""

    device: HapticDevice = Field(description="Its device, and the simulated hand that holds it.")
    workspace: WorkspaceSpec = Field(
        WorkspaceSpec(), description="From that device's frame to the scene's; its button is that device's."
    )
