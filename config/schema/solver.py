"""How the two rates are joined, how contacts are found and how they are solved."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from palpo.config.schema.base import Among, Count, Default, Flag, Only, Spec
from palpo.config.schema.geometry import PositiveLength
from palpo.config.schema.units import Acceleration, Angle, Length, Number, Quantity, Stiffness, Time

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


METHODS = {
    "multirate": ("gauss-seidel", "anderson"),
    "hapco": ("anderson", "newton", "gauss-seidel", "maximal-dissipation", "uzawa-global", "uzawa-local"),
    "snap": ("anderson", "maximal-dissipation", "gauss-seidel"),
}
"""Contact solvers to choose from, by system."""

_TWO_RATES, _SWEPT = Only("multirate"), Only("hapco", "snap", "suction")


class SolverSpec(Spec):
    """The contact solver and its stops; rho and the errors are those of Uzawa's method."""

    name: Annotated[
        Literal[
            "anderson", "newton", "gauss-seidel", "maximal-dissipation", "uzawa-global",
            "uzawa-local",
        ],
        Among(**METHODS), Default(multirate="gauss-seidel"), Only(*METHODS),
    ] = Field(
        "anderson",
        description="Sweeps over contacts, each solved on its own: as they are (gauss-seidel); "
        "accelerated (anderson), which takes fewer where many contacts of one body "
        "weigh on each other; with Newton's method on all at once where the first do not end it (newton; "
        "with a time_cap on up to 24), for fine bodies on coarse ones; over-relaxed, by bisection "
        "(maximal-dissipation); or with Uzawa's method and the bi-potential in each, one step a visit "
        "(uzawa-global) or steps to the Uzawa error (uzawa-local).",
    )  # fmt: skip
    tolerance: Annotated[Number, Default(hapco=1e-4)] = Field(
        1e-6, gt=0, lt=1, description="Relative residual at which it stops."
    )
    stop: Annotated[Literal["residual", "sweeps"], Only("suction")] = Field(
        "residual", description="At the tolerance, or after all the sweeps (50 in the thesis)."
    )
    sweeps: Annotated[Sweeps, _SWEPT, Default(hapco=1000, suction=300)] = Field(
        200, description="Most sweeps in a tick, or in a step of suction."
    )
    sweeps_low: Annotated[Sweeps, _TWO_RATES] = Field(500, description="Most sweeps in a slow step.")
    sweeps_high: Annotated[Sweeps, _TWO_RATES] = Field(50, description="Most sweeps in a tick.")
    time_cap: Annotated[Time, Only("hapco")] = Field(
        0.0004, ge=0, description="Most time in a tick, where there is a clock; 0: no limit."
    )
    rho: Annotated[Stiffness | Literal["computed"], Only("hapco")] = Field(
        "computed",
        description="A stiffness imposes rho, > 0; computed, it is rho_min, the least 1 / W_ii of a tick.",
    )
    rho_factor: Annotated[Number, Only("hapco")] = Field(
        1.0, gt=0, le=1000, description="Multiplies rho, computed or imposed."
    )
    error_kind: Annotated[Literal["residual", "relative", "physical"], Only("hapco")] = Field(
        "residual",
        description="Stop of the sweeps: the residual, at the tolerance; or what one changes, at the "
        "Gauss-Seidel error: of the force (relative), or of L after division by rho (physical). L is the "
        "largest free gap or slip.",
    )
    gauss_seidel_error: Annotated[Number, Only("hapco")] = Field(
        1e-4, gt=0, lt=1, description="Of the relative and the physical stop."
    )
    uzawa_error: Annotated[Number, Only("hapco")] = Field(
        1e-3, gt=0, lt=1, description="Change of a force over rho, in shares of L, that ends a local visit."
    )

    @field_validator("name", mode="before")
    @classmethod
    def _name(cls, name: Any) -> Any:
        """As scenes at two rates wrote it before all systems shared the names."""
        return "gauss-seidel" if name == "gauss_seidel" else name

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


class Contact(Spec):
    """Which contacts are found, and how many fit; in a snap scene also their law."""

    distance: Annotated[Length, Only("multirate", "suction"), Default(suction=0.0001)] = Field(
        0.0005,
        ge=0,
        description="Gap that is kept between surfaces; none where a ball or a capsule, of a radius no less "
        "than two thirds of a soft body's facets, meets them by area.",
    )
    sealing: Annotated[Length, Only("suction")] = Field(
        0.0005,
        gt=0,
        description="Gap up to which a rim counts as one, and is airtight or lets through what flows.",
    )
    alarm: Annotated[Length, Only("multirate", "suction"), Default(suction=0.002)] = Field(
        0.003,
        gt=0,
        description="Surfaces nearer than this are candidates; what motion may close until fresh candidates "
        "can come (at two rates their speed and a hand's acceleration, of cups free motion) is added to it.",
    )
    max_acceleration: Annotated[Acceleration, _TWO_RATES] = Field(
        20.0, ge=0, description="Acceleration of a hand up to which no contact may be lost."
    )
    max_contacts: Annotated[Annotated[Count, Field(ge=1, le=256)], _TWO_RATES] = Field(
        96, description="Room for contacts at the servo's rate; more are counted, those of tools come first."
    )
    ignore: Annotated[tuple[tuple[str, str], ...], _TWO_RATES] = Field(
        (),
        description="Pairs of bodies that pass through each other; a soft body twice passes through itself.",
    )
    tolerance: Annotated[Length, Only("hapco")] = Field(
        0.002,
        ge=0,
        description="Gap below which a vertex of the mobile body is a contact on a face of the fixed one (the"
        " thesis's DDC tolerance).",
    )
    edges: Annotated[Flag, Only("hapco", "snap"), Default(snap=False)] = Field(
        True, description="Whether edges touch, too: edges on edges, or a plug's on the socket's facets."
    )
    normals: Annotated[Literal["smooth", "faceted"], Only("hapco")] = Field(
        "smooth",
        description="Smoothed over the fixed surface, or those of its facets, on which vertices snag.",
    )
    crease: Annotated[Angle, Only("hapco")] = Field(
        0.7, gt=0, lt=3.2, description="Angle of an edge beyond which the surface is not smoothed over it."
    )
    spacing: Annotated[PositiveLength, Only("snap")] = Field(
        0.001, description="Of the points on the socket's contact surface."
    )
    margin: Annotated[Length, Only("snap")] = Field(
        2e-4, ge=0, description="Points that would come nearer than this within a step may become contacts."
    )
    clusters: Annotated[Annotated[Count, Field(ge=0, le=32)], Only("snap")] = Field(
        8, description="Most contacts of a prong, by k-means of the points that touch; 0: all of these."
    )
    capacity: Annotated[Annotated[Count, Field(ge=1, le=400)], Only("snap")] = Field(
        48, description="Room for contacts of all prongs; more points are counted."
    )
    meridians: Annotated[Annotated[Count, Field(ge=3)] | None, Only("snap")] = Field(
        None,
        description="Of a ring: contacts are looked for on so many meridians, a divisor of its cells around, "
        "and its static basis keeps the cyclic orders that these tell apart; by default, all around.",
    )
    restitution: Annotated[Number, Only("snap")] = Field(
        1.0,
        ge=0,
        le=1,
        description="Of a prong at the plug; below 1, ringing contacts add energy.",
    )
    correction: Annotated[Number, Only("snap")] = Field(
        1.0,
        ge=0,
        le=1,
        description="Of a penetration; with restitution 1 half of this share is taken away in a step.",
    )


class FrictionPair(Spec):
    """Coulomb's coefficient for one pair of bodies."""

    bodies: tuple[str, str] = Field(description="Names of two bodies, in any order.")
    mu: Number = Field(ge=0, le=10, description="Coefficient.")


class Friction(Spec):
    """Coulomb's coefficients; with `rough`, those of a cup and its partner depend on their roughness."""

    default: Annotated[Number, Default(snap=0.163, suction=0.6)] = Field(
        0.3,
        ge=0,
        le=10,
        description="Coefficient of bodies that have none of their own; in a snap scene the paper's, of "
        "printed ABS, and in a suction scene that of smooth surfaces.",
    )
    pairs: Annotated[tuple[FrictionPair, ...], Only("multirate")] = Field(
        (), description="Pairs of bodies with their own coefficient."
    )
    rough: Annotated[Number | None, Only("suction")] = Field(
        None, ge=0, le=10, description="Coefficient of very rough ones; without it, roughness has no effect."
    )
    half_depth: Annotated[Length, Only("suction")] = Field(
        2e-5, gt=0, description="Sum of both roughnesses at which it is half way from default to rough."
    )

    def at(self, depth: float) -> float:
        """Coefficient of two surfaces whose roughnesses sum up to `depth` [m]."""
        if self.rough is None:
            return self.default
        return self.rough + (self.default - self.rough) / (1.0 + depth / self.half_depth)
