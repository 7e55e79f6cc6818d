"""A scene as the loops need it: bodies, their points, what joins them, and every number."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_models import ChainModel, ChainState
from palpo.physics.collision.surface_feel import SlidingSurfaces, make_surfaces
from palpo.physics.collision.topology import LOW, STATIC, Topology
from palpo.physics.compliance.hold import Hold
from palpo.physics.contract.stages import Kind
from palpo.physics.exchange.ahead import Ahead
from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.systems.multirate.blade_paths import BladePath
from palpo.physics.systems.multirate.member_cavities import MemberCavities
from palpo.physics.systems.multirate.needle_paths import NeedlePath
from palpo.physics.systems.multirate.quasistatic_tool import QuasistaticTool


class Attachments(NamedTuple):
    """Bilateral blocks of a scene, of three rows each; a side is up to three weighted global points."""

    kind: NDArray[np.int32]  # (n,) POINT, ROTATION or SLIDE of palpo.physics.engine.joints
    points: NDArray[np.int32]  # (n, 2, 3), -1 unused; a ROTATION names one rotation a side, -1 for the world
    weights: NDArray[np.float64]  # (n, 2, 3)
    reference: NDArray[np.float64]  # (n, 4) q_1 = reference q_2 is kept by a ROTATION
    direction: NDArray[np.float64]  # (n, 3) free direction of a SLIDE, in the axes of `turn`
    turn: NDArray[np.int32]  # (n,) rotation that carries the direction, -1 for the world


class ToolPoints(NamedTuple):
    """Which frame of a tool carries a global point, and where."""

    span: NDArray[np.int64]  # (2,) first and past-the-last global point of the first tool
    frame: NDArray[np.int32]  # (points,) frame among those of all tools, -1 where the point is no tool's
    lever: NDArray[np.float64]  # (points, 3) [m], frame axes


class MovingPoints(NamedTuple):
    """Points and frames of the world that follow a script (attachments to a moving frame)."""

    point: NDArray[np.int32]  # (m,) global point; its rotation is the next global number
    x: NDArray[
        np.float64
    ]  # (m, rows, 3) [m] at the end of each tick, as palpo.physics.exchange.ahead keeps them
    q: NDArray[np.float64]  # (m, rows, 4)
    known: NDArray[np.int64]  # (1,) rows of the script so far


@dataclass(frozen=True, eq=False)
class FurtherTool:
    """A tool beside the first, held by a hand of its own."""

    number: int
    """Body number in the topology."""
    model: ChainModel
    state: ChainState
    hold: Hold
    span: tuple[int, int]
    """First and past-the-last global point."""
    frame: int
    """Number of its first frame among those of all tools."""
    feedback: int
    """What is fed back, CONSTRAINT_SUM or HOLD_REACTION."""


@dataclass(frozen=True, eq=False)
class ServoBody:
    """A body that the engine computes at the servo's rate, whole and by itself: one of any kind."""

    kind: Kind
    make: Callable[[int], Any]
    """A state of that kind at rest, with room for so many points of joints and contacts."""
    numbers: tuple[int, ...]
    """The bodies of the topology that it is."""
    first: int
    """Global number of its first point."""
    looks: int
    """How many points it has."""


@dataclass(frozen=True)
class Numbers:
    """Every number of a scene that is not a body's."""

    dt: float
    """Servo period [s]."""
    ratio: int
    """Servo steps in one low period."""
    skin: float = 5e-4
    """Contact distance: the gap that contacts keep [m]."""
    reach: float = 1e-3
    """A contact is a row when its gap is below this [m]."""
    alarm: float = 3e-3
    """Distance at which pairs at rest become candidates [m]."""
    acceleration: float = 20.0
    """Largest acceleration of a hand that no candidate search may miss [m/s2]."""
    solver: str = "gauss_seidel"
    """Of the servo's contacts: gauss_seidel, or anderson, the same extrapolated."""
    tolerance: float = 1e-6
    sweeps_high: int = 50
    sweeps_low: int = 500
    shifts: int = 1
    max_columns: int = 96
    max_distance: float = 5e-3
    max_time: float = 0.02
    feedback: int = 0
    gravity: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, -9.81, 0.0]))

    @property
    def low_dt(self) -> float:
        """Low period [s]."""
        return self.dt * self.ratio


@dataclass(frozen=True, eq=False)
class Loop:
    """The bodies of one low loop: one of the engine's."""

    number: int
    """Its place among the scene's loops, the quickest first; the first carries what an operator changes."""
    members: tuple[Any, ...]
    ratio: int
    """Servo steps in one of its periods."""
    capacity: Capacity
    """Sizes of its frames."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its bodies' numbers in the topology."""
        return tuple(member.number for member in self.members)


@dataclass
class Scene:
    """The physics of a scene. `members` are the low-rate bodies, in the order of their reduced models: each a
    Member.

    An operator may change numbers, gravity among them, mu and hold.gains between two low steps; the
    next frame brings them to the servo.
    """

    names: list[str]
    """Names of the bodies, by body number."""
    topology: Topology
    rest: NDArray[np.float64]
    """Positions of all points at rest [m], (points, 3); static points keep theirs."""
    members: list[Any]
    model: ChainModel
    tool: ChainState
    hold: Hold
    tool_points: ToolPoints
    moving: MovingPoints
    script: Ahead
    """Keeps the moving points ahead of the ticks."""
    attachments: Attachments
    mu: NDArray[np.float64]
    ignored: frozenset[tuple[int, int]]
    numbers: Numbers
    capacity: Capacity
    further: list[FurtherTool] = field(default_factory=list)
    """Tools beside the first."""
    quasistatic: dict[int, QuasistaticTool] = field(default_factory=dict)
    """Those of the tools that are quasi-static, by body number."""
    servo_bodies: list[ServoBody] = field(default_factory=list)
    """Bodies at the servo's rate beside the tool; a low loop sees them where `rest` has their points."""
    ratios: list[int] = field(default_factory=list)
    """Of each member: servo steps in a period of its own low loop; without any, all have `numbers.ratio`."""
    surfaces: SlidingSurfaces = field(default_factory=make_surfaces)
    """How surfaces feel to what slides on them."""
    air: MemberCavities | None = None
    """Finds the cavities between two of the members."""
    needles: list[NeedlePath] = field(default_factory=list)
    """Needles that may go into bodies."""
    blades: list[BladePath] = field(default_factory=list)
    """Blades that may cut them."""
    falling: list[str] = field(default_factory=list)
    """Names of the bodies that nothing holds up."""

    def loops(self, apart: bool) -> list[Loop]:
        """The low loops, the quickest first: one for each member, or one for all, as where there is air."""
        apart = apart and self.air is None  # both walls of a cavity are one loop's
        if not apart or len(self.members) < 2:
            ratio = self.ratios[0] if apart and self.ratios else self.numbers.ratio
            return [Loop(0, tuple(self.members), ratio, self.capacity)]
        ratios = self.ratios or [self.numbers.ratio] * len(self.members)
        order = sorted(range(len(ratios)), key=ratios.__getitem__)
        own = self.capacity._replace(bodies=1)
        return [Loop(i, (self.members[k],), ratios[k], own) for i, k in enumerate(order)]

    def rigid(self) -> list[int]:
        """Numbers of the bodies that never change their shape."""
        tools = [(int(self.topology.point_body[self.tool_points.span[0]]), self.model)]
        tools += [(tool.number, tool.model) for tool in self.further]
        bodies = [b for b, model in tools if b not in self.quasistatic and model.mass.size == 1]
        bodies += [m.number for m in self.members if m.body.rigid]
        anyhow = {number for body in self.servo_bodies for number in body.numbers}
        return bodies + [int(b) for b in np.flatnonzero(self.topology.body_role == STATIC) if b not in anyhow]

    def tool_spans(self) -> list[tuple[int, int]]:
        """First and past-the-last global point of each tool."""
        start, stop = self.tool_points.span
        return [(int(start), int(stop)), *(tool.span for tool in self.further)]

    def holds_low_bodies_together(self) -> bool:
        """Whether a joint, or air, has bodies with a low loop on both sides."""
        points = self.attachments.points[:, :, 0]
        roles = self.topology.body_role[self.topology.point_body[np.maximum(points, 0)]]
        return self.air is not None or bool(((points >= 0) & (roles == LOW)).all(axis=1).any())

    def tool_frames(self) -> ChainState:
        """The frames of all tools at rest, one tool after another."""
        states = [self.tool, *(tool.state for tool in self.further)]
        return ChainState(*(np.concatenate(parts) for parts in zip(*states, strict=True)))

    def masses(self) -> dict[str, float]:
        """Mass of each moving body [kg]."""
        masses = {self.names[m.number]: float(m.body.mass) for m in self.members}
        tool = int(self.topology.point_body[self.tool_points.span[0]])
        masses[self.names[tool]] = float(self.model.weight.sum())
        for other in self.further:
            masses[self.names[other.number]] = float(other.model.weight.sum())
        return masses
