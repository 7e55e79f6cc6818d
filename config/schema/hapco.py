"""Scenes of HapCo: one quasi-static body, moved by the hand, against another."""

from collections.abc import Set
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from palpo.config.schema.base import Flag, Spec, choose, refuse
from palpo.config.schema.body import QuasistaticBodySpec, Region
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.solver import PlainFriction, Sweeps
from palpo.config.schema.tool import GrippedTool, GripSpec
from palpo.config.schema.units import Angle, Force, Length, Number, Quantity, Stiffness, Time


class PressedBody(QuasistaticBodySpec):
    """One of the two; the hand moves the tool by its clamped nodes. With all of them clamped, it is rigid."""

    contact: tuple[Region, ...] = Field(
        (), description="Of the tool: boundary nodes that may touch; without it, all that are not clamped."
    )


class HapcoContact(Spec):
    """How contacts are found: vertices of the mobile body on faces of the fixed one, and edges on edges."""

    tolerance: Length = Field(
        0.002, ge=0, description="Gap below which a vertex is a contact (the thesis's DDC tolerance)."
    )
    edges: Flag = Field(True, description="Whether edges touch edges, too.")
    normals: Literal["smooth", "faceted"] = Field(
        "smooth",
        description="Smoothed over the fixed surface, or those of its facets, on which vertices snag.",
    )
    crease: Angle = Field(
        0.7, gt=0, lt=3.2, description="Angle of an edge beyond which the surface is not smoothed over it."
    )


class HapcoSolver(Spec):
    """The contact solver of the servo and its stops; rho and the errors are those of Uzawa's method."""

    name: Literal[
        "anderson", "newton", "gauss-seidel", "maximal-dissipation", "uzawa-global", "uzawa-local"
    ] = Field(
        "anderson",
        description="Sweeps over contacts, each solved on its own: accelerated (anderson); with Newton's "
        "method on all at once where the first do not end it (newton; with a time_cap on up to 24), for "
        "fine bodies on coarse ones; as they are (gauss-seidel); over-relaxed, by bisection "
        "(maximal-dissipation); or with Uzawa's method and the bi-potential in each, one step a visit "
        "(global) or steps to the Uzawa error (local).",
    )
    tolerance: Number = Field(1e-4, gt=0, lt=1, description="Relative residual at which it stops.")
    sweeps: Sweeps = Field(1000, description="Most sweeps in a tick.")
    time_cap: Time = Field(
        0.0004, ge=0, description="Most time in a tick, where there is a clock; 0: no limit."
    )
    rho: Stiffness | Literal["computed"] = Field(
        "computed",
        description="A stiffness imposes rho, > 0; computed, it is rho_min, the least 1 / W_ii of a tick.",
    )
    rho_factor: Number = Field(1.0, gt=0, le=1000, description="Multiplies rho, computed or imposed.")
    error_kind: Literal["residual", "relative", "physical"] = Field(
        "residual",
        description="Stop of the sweeps: the residual, at the tolerance; or what one changes, at the "
        "Gauss-Seidel error: of the force (relative), or of L after division by rho (physical). L is the "
        "largest free gap or slip.",
    )
    gauss_seidel_error: Number = Field(1e-4, gt=0, lt=1, description="Of the relative and the physical stop.")
    uzawa_error: Number = Field(
        1e-3, gt=0, lt=1, description="Change of a force over rho, in shares of L, that ends a local visit."
    )

    @field_validator("rho", mode="before")
    @classmethod
    def _rho(cls, rho: Any) -> Any:
        if rho == "computed":
            return rho
        try:
            value = Quantity("stiffness").to_si(rho)
        except ValueError as error:
            raise ValueError(f'{error}; or "computed"') from None
        if value <= 0.0:
            raise ValueError('is too small; it must be above 0, or "computed"')
        return value


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
    bodies: tuple[PressedBody, PressedBody] = Field(description="The two bodies.")
    tool: GrippedTool = Field(description="The body that the hand moves.")
    contact: HapcoContact = Field(HapcoContact(), description="Detection of contacts.")
    friction: PlainFriction = Field(PlainFriction(), description="Coefficient of friction.")
    solver: HapcoSolver = Field(HapcoSolver(), description="Contact solver.")
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
    def mobile(self) -> PressedBody:
        """The body that the hand moves."""
        return next(body for body in self.bodies if body.name == self.tool.body)

    @property
    def fixed(self) -> PressedBody:
        """The body that it touches."""
        return next(body for body in self.bodies if body.name != self.tool.body)

    @property
    def hold(self) -> GripSpec:
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
