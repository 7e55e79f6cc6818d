"""From two quasi-static bodies to an engine, to what is exchanged of it, and to the servo's tick."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.collision.contact_surface import contact_surface
from palpo.physics.collision.mobile_contacts import mobile_features
from palpo.physics.collision.tracked_contacts import make_tracked, tracked_unit
from palpo.physics.compliance.surface import SURFACE
from palpo.physics.compliance.surface_state import COUPLED, HELD, make_surface
from palpo.physics.contact.solvers.semi_smooth_newton import make_semi_smooth
from palpo.physics.contract.links import SETTINGS, TELL, link
from palpo.physics.contract.stages import DONE, make_hand
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.dissipating import maximal_dissipation_unit
from palpo.physics.engine.grip import UPRIGHT, make_grip
from palpo.physics.engine.relaxing import anderson_unit, uzawa_unit
from palpo.physics.engine.servo import TickState, make_ticks
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.engine.stepping import newton_unit
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.exchange.buffer import SLOTS, make_control
from palpo.physics.exchange.frames import make_frames
from palpo.physics.exchange.gains import COUPLING, Gains, gains_record
from palpo.physics.exchange.hand_state import make_hand_state
from palpo.physics.exchange.port import make_port
from palpo.physics.exchange.quasistatic_frame import VALUES
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import hex_block
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.hapco.detection import EDGE_CONTACTS, Detection, contact_slots, edge_reach
from palpo.physics.systems.hapco.tick import QuasistaticServo, take_settings, tell

SOLVERS = anderson_unit, uzawa_unit, newton_unit, gauss_seidel_unit, maximal_dissipation_unit
"""By the values of palpo.physics.exchange.quasistatic_frame.VALUES' solver."""


@dataclass(frozen=True)
class Hold:
    """How the hand holds the mobile body's frame.

    Raises InputError for a stiffness that is not positive or a damping that is negative.
    """

    direct: bool = True
    """The frame is where the hand is; otherwise the gains couple them."""
    turns: bool = True
    """Whether the frame turns with the hand."""
    gains: Gains = COUPLING
    rest: tuple[float, float, float, float] = UPRIGHT
    """Orientation of the frame when the device's is the identity (w, x, y, z)."""

    def __post_init__(self) -> None:
        for name, value in self.gains._asdict().items():
            if not (value > 0.0 or (value == 0.0 and name.endswith("damping"))):
                raise InputError(
                    f"the hold's {name} is {value}; stiffnesses must be positive and dampings not negative"
                )


def default_settings(
    mu: float = 0.3,
    tolerance: float = 1e-4,
    sweeps: int = 200,
    time_cap: float = 0.0,
    collision: float = 2e-3,
    gains: Gains = COUPLING,
) -> NDArray[np.void]:
    """(1,) of palpo.physics.exchange.quasistatic_frame.VALUES, to change some of.

    time_cap: of the contact solver [s], 0 for none. The solver is ANDERSON; Uzawa's method, where it is
    chosen instead, has rho_min, the common residual as its stop, and the errors of 001 (chapter 3).
    """
    values = np.zeros(1, VALUES)
    values["friction"], values["tolerance"], values["sweeps"] = mu, tolerance, sweeps
    values["time_cap"], values["collision"] = time_cap, collision
    values["modulus"], values["hold"] = 1.0, gains_record(gains)
    values["zoom_scale"] = values["rho_factor"] = 1.0
    values["gauss_seidel_error"], values["uzawa_error"] = 1e-4, 1e-3
    return values


@dataclass(frozen=True, eq=False)
class BodyPair:
    """Two bodies where they stand now, how they meet, and at which rates.

    Raises InputError for a body that is not quasi-static and linear.
    """

    mobile: QuasistaticBody
    fixed: QuasistaticBody
    detection: Detection = field(default_factory=Detection)
    hold: Hold = field(default_factory=Hold)
    settings: NDArray[np.void] | None = None
    """(1,) of VALUES: `default_settings` with the detection's tolerance and the hold's gains if not given;
    given ones overrule both."""
    dt: float = 1e-3
    """Period of the servo [s]."""
    ratio: int = 20
    """Servo ticks in a low period."""
    clock: int = 0
    """Address of a C function (physics.engine.solve) for the time limit of the servo's solver; 0 in
    lock-step."""

    def __post_init__(self) -> None:
        for body in (self.mobile, self.fixed):
            if not isinstance(body, QuasistaticBody):
                raise InputError(f"body {body!r}: the servo needs K^-1 on the boundary of a QuasistaticBody")

    @property
    def values(self) -> NDArray[np.void]:
        """The settings that it begins with."""
        if self.settings is not None:
            return self.settings
        return default_settings(collision=self.detection.tolerance, gains=self.hold.gains)


def make_bodies(pair: BodyPair, clock: int = 0) -> QuasistaticServo:
    """A pair in an engine; clock: as the pair's, for the engine that has to keep to it.

    Raises InputError for contact vertices that are none of the boundary.
    """
    mobile, fixed, detection, hold, settings = pair.mobile, pair.fixed, pair.detection, pair.hold, pair.values
    features = mobile_features(
        contact_surface(mobile.surface, mobile.slot), contact_slots(mobile, detection.vertices),
        detection.edges,
    )  # fmt: skip
    capacity = features.vertices.size + (EDGE_CONTACTS if detection.edges else 0)
    bodies = (
        SURFACE.bind(make_surface(mobile, capacity, HELD if hold.direct else COUPLED, second=mobile.second)),
        SURFACE.bind(make_surface(fixed, capacity, second=fixed.second)),
    )
    for bound, body in zip(bodies, (mobile, fixed), strict=True):
        bound.whole.x[:] = body.positions(body.surface_nodes)
    tracked = make_tracked(
        features, bodies[0].whole.x, contact_surface(fixed.surface, fixed.slot, detection.crease),
        bodies[1].whole.x, bodies[1].state.frame.now.rotation, capacity,
    )  # fmt: skip
    tracked.settings["edge_reach"] = edge_reach(fixed, detection.tolerance) if detection.edges else 0.0
    tracked.settings["faceted"] = detection.normals == "faceted"
    hand = make_hand()
    hand.position[:], hand.orientation[:] = mobile.position, hold.rest
    built = make_engine(
        bodies, SOLVERS, capacity, pair.dt,
        [Bound.bind(tracked_unit, tracked)], hands={0: hand}, clock=clock,
    )  # fmt: skip
    solver, own = built.engine.solver, make_port()
    roomy = solver._replace(bordered=solver.bordered._replace(way=make_semi_smooth(capacity)))
    return QuasistaticServo(
        port=own,
        ticks=make_ticks(),
        live=settings.copy(),
        engine=built.engine._replace(solver=roomy),
        mobile=bodies[0].state,
        fixed=bodies[1].state,
        mobile_x=bodies[0].whole.x,
        fixed_x=bodies[1].whole.x,
        points=built.batches[0],
        tracked=tracked,
        hand=hand,
        grip=make_grip(own, hand, built.batches[0], hold.turns, hold.rest, gap=tracked.tracker.gap),
        frames=make_frames(0),
        settings=np.repeat(settings, SLOTS),
        picture=make_hand_state(capacity),
        surface=np.zeros((SLOTS, mobile.surface_nodes.size + fixed.surface_nodes.size, 3)),
        picture_control=make_control(),
    )


def smallest_bodies() -> QuasistaticServo:
    """One element over another, both rigid: the least that a tick can be run on."""
    cube = hex_block((0.01, 0.01, 0.01), (1, 1, 1))
    above = cube.with_nodes(cube.nodes + np.array([0.0, 0.02, 0.0]))
    bodies = [
        QuasistaticBody(name, mesh, Material(1e6, 0.3, 1000.0), np.arange(8))
        for name, mesh in (("above", above), ("below", cube))
    ]
    return make_bodies(BodyPair(bodies[0], bodies[1], Detection(np.arange(8))))


@link(smallest_bodies())
def hapco_link(stage, s, h):
    """The stages of palpo.physics.contract.links."""
    if stage == SETTINGS:
        take_settings(s)
    elif stage == TELL:
        return tell(s)
    return DONE


def make_servo(pair: BodyPair) -> tuple[TickState, QuasistaticServo]:
    """The servo of a pair that computes everything itself, and what it exchanges; raises as `make_bodies`."""
    side = make_bodies(pair, pair.clock)
    links = [Bound.bind(hapco_link, side)]
    return make_tick_state(side.engine, [side.grip], links, side.ticks, side.frames), side
