"""The device, the simulated hand that holds it, how it maps into the scene, and what protects its user."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from palpo.config.schema.base import Count, Flag, Spec
from palpo.config.schema.units import (
    Angle,
    Damping,
    Force,
    ForceRate,
    Length,
    Mass,
    Number,
    Stiffness,
    Time,
)
from palpo.config.schema.vectors import NO_ROTATION, AxisAngle, Position, quaternion


def in_order(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """Rows that begin with a time: refused unless it starts at 0 or later and increases."""
    if rows and rows[0][0] < 0:
        raise ValueError(f"starts at t = {rows[0][0]:g} s; times start at 0 or later")
    for i, (a, b) in enumerate(pairwise(rows)):
        if b[0] <= a[0]:
            raise ValueError(f"has t = {b[0]:g} s in row {i + 1} after {a[0]:g} s; times must increase")
    return rows


Waypoints = Annotated[
    tuple[tuple[Time, Length, Length, Length], ...], Field(min_length=1), AfterValidator(in_order)
]
Turns = Annotated[tuple[tuple[Time, Number, Number, Number, Angle], ...], AfterValidator(in_order)]


Handed = Literal["right", "left"]


Button = Annotated[Count, Field(ge=1, le=8)]


class HandSpec(Spec):
    """The hand of the mock device: a spring and damper pull the stylus along the path; it turns freely."""

    stiffness: Stiffness = Field(400.0, gt=0, description="Spring from the target to the stylus.")
    damping: Damping = Field(4.0, ge=0, description="Damper from the target to the stylus.")
    mass: Mass | None = Field(None, gt=0, description="Moving mass; without it, the device's own.")
    friction: Force | None = Field(None, ge=0, description="Dry friction; without it, the device's own.")
    delay: Time | None = Field(
        None,
        ge=0,
        le=0.05,
        description="From a pose to the force that answers it; without it, the device's own.",
    )


class HapticDevice(Spec):
    """The haptic device, and the scripted target of the hand that moves the mock one."""

    model: Literal["touch", "phantom_desktop"] = Field(
        "touch",
        description="Limits, resolution, mass and friction: Touch (3.3 N) or Phantom Desktop (7.9 N).",
    )
    path: Waypoints = Field(
        ((0.0, 0.0, 0.0, 0.0),),
        description="Target of the hand over time, rows [t, x, y, z] in the scene; the last one is held.",
    )
    turns: Turns = Field(
        (), description="Target orientation over time, rows [t, ax, ay, az, angle]; without it, constant."
    )
    smooth: Flag = Field(
        True, description="Come to rest at each waypoint (minimum jerk) instead of straight ramps."
    )
    hand: HandSpec = Field(HandSpec(), description="The simulated hand.")


class WorkspaceSpec(Spec):
    """How the device's frame maps into the scene: scaled, then rotated, then moved."""

    scale: Number = Field(1.0, gt=0, description="Scene lengths per device length.")
    offset: Position = Field((0.0, 0.0, 0.0), description="Where the device's origin lies in the scene.")
    rotation: AxisAngle = Field(
        NO_ROTATION, description="Axis and angle from the device's axes to the scene's."
    )
    force_scale: Number | None = Field(
        None, gt=0, description="Device force per scene force; without it, equal to scale, which keeps power."
    )
    clutch_button: Count = Field(
        2, ge=0, le=8, description="Button that holds the scene still while the hand moves on; 0 is none."
    )
    neutral: Literal["first", "upright"] = Field(
        "first",
        description="Orientation of the device in which the tool is as it is at rest: the one in which it is "
        "first held, or upright, with its axes along the scene's.",
    )
    mount: AxisAngle = Field(
        NO_ROTATION,
        description="How the tool sits on the device in a right hand: axis and angle by which it is turned "
        "from where it is at rest, while the device is in its neutral orientation.",
    )
    handed: Handed = Field(
        "right",
        description="The hand that holds the device; in the left one the mount is mirrored, left to right.",
    )

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Unit quaternion (w, x, y, z) of the rotation."""
        return quaternion(self.rotation)

    @property
    def felt_force(self) -> float:
        """Device force per scene force."""
        return self.scale if self.force_scale is None else self.force_scale

    @property
    def felt(self) -> float:
        """Stiffness, or damping, in the hand over that of the scene."""
        return self.scale * self.felt_force


class Safety(Spec):
    """Limits on the force sent to the device; each intervention is counted."""

    max_force: Force | None = Field(
        None, gt=0, description="Largest force; at most, and without it, the device's."
    )
    max_rate: ForceRate = Field(
        500.0,
        gt=0,
        description="Fastest change of the force; at most the device's. Raise it where a fast change is what "
        "is to be felt, as in a click.",
    )
    frame_age_limit: Time = Field(
        0.25, gt=0, description="Age of the slow-rate frame at which the force fades."
    )
    fade_in: Time = Field(0.5, ge=0, description="Time in which the force rises at the start.")
    fade_out: Time = Field(0.05, gt=0, description="Time in which the force fades to zero.")
    recovery: Time = Field(
        0.25, ge=0, description="Time in which it comes back when frames are fresh again, or after a pause."
    )
    emergency: Time = Field(0.01, gt=0, description="Time in which it fades at an emergency stop.")
    emergency_buttons: tuple[Button, ...] = Field(
        (1, 2), description="Buttons that, all down together, are an emergency stop; none if empty."
    )
    start_force: Force = Field(
        0.5, gt=0, description="Force of the scene above which none is sent at the start, until withdrawn."
    )
    edge_stiffness: Stiffness = Field(
        200.0, ge=0, description="Spring that pushes inward at the edge of the device's reach; 0 is off."
    )
    edge_margin: Length = Field(0.01, ge=0, description="How far inside the reach that spring begins.")
    saturation_damping: Damping = Field(
        2.0, ge=0, description="Damping at the largest force; it sets in at 80 % of it."
    )
    passivity: Literal["off", "observe", "control"] | None = Field(
        None,
        description="Account of the energy handed to the user: none, kept, or held down by damping; without "
        "it, held down where bodies have inertia or forces are followed along tangents, else kept.",
    )
    passivity_damping: Damping = Field(5.0, gt=0, description="Largest damping of the passivity controller.")
