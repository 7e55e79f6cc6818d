"""How the two rates are joined, how contacts are found and how they are solved."""

from typing import Annotated, Literal

from pydantic import Field

from palpo.config.schema.base import Count, Spec
from palpo.config.schema.units import Acceleration, Length, Number, Time

Sweeps = Annotated[Count, Field(ge=1, le=100_000)]


class Interface(Spec):
    """What the servo knows of the soft bodies between two slow steps."""

    kind: Literal["krylov", "paper", "extrapolated"] = Field(
        "krylov",
        description="A small dynamic model of the soft body (krylov), its contact points held still (paper), "
        "or moved at their last velocity (extrapolated).",
    )
    latency: Literal["period", "none"] = Field(
        "period",
        description="When a frame is seen in lock-step: a slow period late, as in threads, or at once.",
    )
    shifts: Literal[1, 2, 3] = Field(
        1,
        description="krylov: time steps at which the basis has columns: the slow period; also the servo's; "
        "also one between.",
    )
    max_columns: Annotated[Count, Field(ge=8, le=1000)] = Field(
        96,
        description="krylov: columns of a body's basis, three for each time step and likely contact point, "
        "and up to twice as many where more points bear; further points are displaced by themselves, which "
        "costs little and is less exact.",
    )
    max_distance: Length = Field(0.005, gt=0, description="extrapolated: how far a contact point may move.")
    max_time: Time = Field(0.02, gt=0, description="extrapolated: how long it may move.")


class SolverSpec(Spec):
    """The contact solver and its stops."""

    name: Literal["gauss_seidel", "anderson"] = Field(
        "gauss_seidel",
        description="Block Gauss-Seidel over contacts; or accelerated, which takes fewer sweeps where many "
        "contacts of one yielding body weigh on each other.",
    )
    tolerance: Number = Field(1e-6, gt=0, lt=1, description="Relative residual at which it stops.")
    sweeps_low: Sweeps = Field(500, description="Most sweeps in a slow step.")
    sweeps_high: Sweeps = Field(50, description="Most sweeps in a tick.")


class Contact(Spec):
    """Which contacts are found, and how many fit."""

    distance: Length = Field(
        0.0005,
        ge=0,
        description="Gap that is kept between surfaces; none where a ball or a capsule no smaller than the "
        "facets of a soft body meets them by area.",
    )
    alarm: Length = Field(
        0.003,
        gt=0,
        description="Surfaces at rest nearer than this are candidates; what their speed and a hand's "
        "acceleration close until fresh candidates can come is added to it.",
    )
    max_acceleration: Acceleration = Field(
        20.0, ge=0, description="Acceleration of a hand up to which no contact may be lost."
    )
    max_contacts: Annotated[Count, Field(ge=1, le=256)] = Field(
        96, description="Room for contacts at the servo's rate; more are counted."
    )
    ignore: tuple[tuple[str, str], ...] = Field(
        (), description="Pairs of bodies that pass through each other."
    )


class FrictionPair(Spec):
    """Coulomb's coefficient for one pair of bodies."""

    bodies: tuple[str, str] = Field(description="Names of two bodies, in any order.")
    mu: Number = Field(ge=0, le=10, description="Coefficient.")


class PlainFriction(Spec):
    """Coulomb's coefficient."""

    default: Number = Field(
        0.3, ge=0, le=10, description="Coefficient of bodies that have none of their own."
    )


class Friction(PlainFriction):
    """Coulomb's coefficients."""

    pairs: tuple[FrictionPair, ...] = Field((), description="Pairs of bodies with their own coefficient.")
