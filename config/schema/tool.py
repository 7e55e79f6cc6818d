"""The tools: bodies that are computed at the servo's rate, each held by a device."""

from typing import Annotated, Literal

from pydantic import Field

from palpo.config.schema.base import Flag, Only, Spec
from palpo.config.schema.body import Place
from palpo.config.schema.device import HapticDevice, WorkspaceSpec
from palpo.config.schema.units import Damping, RotationalDamping, RotationalStiffness, Stiffness


class HoldSpec(Place):
    """How the device holds what it moves, and of a beam or a rigid body where: by one of node, end and at."""

    mode: Literal["coupling", "direct"] = Field(
        "coupling",
        description="A spring and damper (virtual coupling), or the device's pose imposed as it is.",
    )
    orientation: Flag = Field(True, description="Whether the orientation is held as well.")
    stiffness: Stiffness = Field(500.0, gt=0, description="Spring of the coupling.")
    damping: Damping = Field(2.0, ge=0, description="Damper of the coupling.")
    rotational_stiffness: RotationalStiffness = Field(1.0, gt=0, description="Spring on the orientation.")
    rotational_damping: RotationalDamping = Field(0.001, ge=0, description="Damper on the orientation.")


class Tool(Spec):
    """Which body the hand holds, how, and which force is fed back."""

    body: str = Field(
        description="Name of the body that the hand holds: at two rates a beam or a rigid body with rate = "
        '"high", or a quasi-static one, which is held by its clamped nodes; a cup by its held ones.'
    )
    hold: HoldSpec = Field(HoldSpec(), description="The hold.")
    feedback: Annotated[Literal["constraints", "reaction"], Only("multirate")] = Field(
        "constraints",
        description="Sum of the constraint forces on the tool (the paper's), or reaction of the held point, "
        "which adds the tool's own weight and inertia.",
    )
    device: Annotated[HapticDevice | None, Only("multirate")] = Field(
        None,
        description="Of a further tool: its device, and the simulated hand that holds it. The first one's is "
        "the scene's.",
    )
    workspace: Annotated[WorkspaceSpec | None, Only("multirate")] = Field(
        None,
        description="Of a further tool: from its device's frame to the scene's; its button is that device's.",
    )
