"""Scenes of HapCo: one quasi-static body, moved by the hand, against another."""

from collections.abc import Set
from typing import Literal

from pydantic import Field, model_validator

from palpo.config.schema.base import Spec, refuse
from palpo.config.schema.body import Quasistatic
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.solver import Contact, Friction, SolverSpec
from palpo.config.schema.tool import HoldSpec, Tool
from palpo.config.schema.units import Force, Length, Number
from palpo.config.words import choose


class Stylus(Spec):
    """What makes up for the stylus's own weight and friction."""

    weight: Force = Field(0.0, ge=0, description="Force upward that is added.")
    friction: Force = Field(0.0, ge=0, description="Force along the hand's velocity that is added.")


class Zoom(Spec):
    """Small motions near the fixed body: the hand's motion is reduced where it comes close."""

    scale: Number = Field(1.0, gt=0, le=1, description="Share of the hand's motion that is left at contact.")
    range: Length = Field(0.0, ge=0, description="Gap at which the reduction begins; 0 is no zoom.")


class HapcoScene(BaseScene):
    """A HapCo scene: two quasi-static bodies, their contact forces computed at the servo's rate."""

    system: Literal["hapco"] = Field(
        "hapco",
        description="What computes the scene: two quasi-static bodies in contact, at the servo's rate.",
    )
    loops: Literal["servo", "multirate", "tangent"] = Field(
        "servo",
        description="What the servo does: all; forces on the W of contacts that were found at the slow rate "
        "(multirate), for some hundred that bear; or it follows the tangents of forces solved at the low "
        "rate (tangent), for hundreds that bear. contact.tolerance must then exceed the hand's way in two "
        "slow periods.",
    )
    bodies: tuple[Quasistatic, Quasistatic] = Field(description="The two bodies.")
    tool: Tool = Field(description="The body that the hand moves.")
    contact: Contact = Field(Contact(), description="Detection of contacts.")
    friction: Friction = Field(Friction(), description="Coefficient of friction.")
    solver: SolverSpec = Field(SolverSpec(), description="Contact solver.")
    stylus: Stylus = Field(Stylus(), description="Compensation of the stylus.")
    zoom: Zoom = Field(Zoom(), description="Reduction of the hand's motion near contact.")

    @property
    def passivity(self) -> Literal["observe", "control"]:
        """See BaseScene; from one frame's tangents to the next a rubbing hand may gain energy."""
        return "control" if self.loops == "tangent" else "observe"

    @classmethod
    def claims(cls, kinds: Set[str]) -> bool:
        """See BaseScene."""
        return kinds == {"quasistatic"}

    @property
    def mobile(self) -> Quasistatic:
        """The body that the hand moves."""
        return next(body for body in self.bodies if body.name == self.tool.body)

    @property
    def fixed(self) -> Quasistatic:
        """The body that it touches."""
        return next(body for body in self.bodies if body.name != self.tool.body)

    @property
    def hold(self) -> HoldSpec:
        """How the device holds the mobile body."""
        return self.tool.hold

    @model_validator(mode="after")
    def _agrees(self) -> "HapcoScene":
        names = [body.name for body in self.bodies]
        if names[0] == names[1]:
            raise refuse("another body has this name already; give each its own", "bodies", 1, "name")
        if self.tool.body not in names:
            raise refuse(f"no such body; {choose(self.tool.body, names)}", "tool", "body")
        if self.fixed.contact:
            said = f'the hand moves "{self.mobile.name}"; only that one chooses what may touch'
            raise refuse(said, "bodies", self.fixed.name, "contact")
        if self.loops == "tangent" and self.hold.mode != "direct":
            raise refuse(
                'loops = "tangent" needs a body that is where the hand is; use "direct"',
                "tool", "hold", "mode",
            )  # fmt: skip
        return self
