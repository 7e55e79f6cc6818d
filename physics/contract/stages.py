"""What the engine asks of a body, and how: one C function a kind of body, called with the number of a stage.

    int32 unit(int64 stage, state *, batch *, problem *, double h)

A kind (physics/compliance, one file each) says how its bodies yield: x+ = x + d + C J^T r of the points that
rows touch, with d the displacement of the step h without contact and C the compliance [m/N]. It knows neither
contacts nor other bodies, so that any two kinds may touch, and it is compiled and cached alone. The engine
knows a body by three addresses: of its unit, its state and its batches.

A stage works on the body's `state` and on one `Batch` of its points, and writes nothing else but W. Points
are named by slots: numbers of the body's own points, of which up to three are weighted; what a force acts on
lies `arm` beside that sum. A FIELD, which a kind may or may not have, is a number that many points make: how
much of a cavity's volume the body takes away or gives (palpo.physics.engine.cavities). It is a slot like a
point's; its place, its displacement and its force are the first of the three numbers of a point, the others
are 0: [m3], [m3] and [Pa], so that a force f pushes every point with f dV/dx.

    AIM       the hand's pose (batch.hand) becomes the target of whoever is held
    BEGIN     the free motion and the factor of the step; forces pushed in the last step stay until CLEAR
    SHAPE     x of all of the body's points, at the step's start or, after END, at its end
    PLACE     x of the weighted points, without arms; q of a ROTATION
    FREE      d of the points in the step without contact, and v at its start if batch.wants says so
    MOVED     d of the points under the forces pushed so far
    DELASSUS  the lower triangle of W += J C J^T, all pairs of the batch's points
    CLEAR     no force is pushed
    PUSH      forces f (moments of a ROTATION), at the points, world axes
    END       the step is made; d of the points is how far they have moved, if batch.wants says so
    FEEL      what the hand feels, batch.hand, from the forces of the batch
    ADOPT     the newest frame of a body with a low loop, if one waits; told in batch.frame. d is the jump of
              the points

A kind that has a bound for the speed of its points keeps it in batch.speed: BEGIN tells the speed that is
expected, that of the step before where a body has inertia, PUSH that under the forces pushed, and by END it
is that of the step.

MOVED, d of FREE and W are of what the law of contact sees: of a body under passive midpoint integration that
is T v+, and what END tells is T vh (EQUATIONS.md, 3, equation 28).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.numerics.kernels import callback, layout

AIM, BEGIN, SHAPE, PLACE, FREE, MOVED, DELASSUS, CLEAR, PUSH, END, FEEL, ADOPT = range(12)
"""Stages."""

FAILED, DONE, NOT_FINITE, NOT_OFFERED = 0, 1, 2, 3
"""What a stage returns. FAILED is what a C function that raises returns; NOT_OFFERED is for a stage that the
kind has no answer to: the engine goes on as if it had not asked."""

POINT, ROTATION, FIELD = 0, 1, 3
"""What a row is of: a point's translation [m], [N], a frame's rotation [rad], [N m], or a volume [m3], [Pa];
2 is a SLIDE's of palpo.physics.engine.joints."""

FRAME = np.dtype(
    [("fresh", np.int64), ("id", np.int64), ("base_tick", np.int64), ("replayed", np.int64),
     ("stays", np.int64)]
)  # fmt: skip
"""What ADOPT tells: whether it took a frame, its number, the tick that it was made at, the ticks replayed
since; and whether its points stay where the frame has them, whatever forces are pushed, though they yield to
these in W."""


WANTS = np.dtype([("v", np.int64), ("d", np.int64)])
"""Whether FREE is to tell v, which restitution asks for, and END d, which the books of works ask for."""


class Hand(NamedTuple):
    """One hand: where it wants what it holds, and what it feels; world axes, SI units."""

    position: NDArray[np.float64]  # (3,) [m]
    orientation: NDArray[np.float64]  # (4,)
    velocity: NDArray[np.float64]  # (3,) [m/s]
    angular_velocity: NDArray[np.float64]  # (3,) [rad/s]
    force: NDArray[np.float64]  # (3,) on the hand [N]
    torque: NDArray[np.float64]  # (3,) [N m]
    held: NDArray[np.float64]  # (3,) where what it holds is [m]


class Batch(NamedTuple):
    """n points of one body; room for c."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) n
    now: NDArray[np.int64]  # (1,) steps done, the engine's own counter
    what: NDArray[np.int32]  # (c,) POINT, ROTATION or FIELD
    slots: NDArray[np.int32]  # (c, 3) the body's points, 0 where there are fewer; of a ROTATION the first
    weights: NDArray[np.float64]  # (c, 3) 0 where there are fewer
    arm: NDArray[np.float64]  # (c, 3) [m] from the weighted point to where the force acts
    block: NDArray[np.int32]  # (c,) row block, not falling; one block may have two points of one body
    axes: NDArray[np.float64]  # (c, 3, 3) directions of the block's rows, negative on body 2
    x: NDArray[np.float64]  # (c, 3) [m]
    q: NDArray[np.float64]  # (c, 4)
    d: NDArray[np.float64]  # (c, 3) [m] or [rad]
    v: NDArray[np.float64]  # (c, 3) [m/s] or [rad/s]
    f: NDArray[np.float64]  # (c, 3) on the body [N] or [N m]
    rows: NDArray[np.float64]  # (3 c, 6) scratch of kinds whose compliance is of low rank
    give: NDArray[np.float64]  # (3 c, 6) scratch, too
    wants: NDArray[Any]  # (1,) of WANTS, the engine's own
    speed: NDArray[np.float64]  # (1,) [m/s] bound of all points' speed, see below, if the kind has one
    hand: Hand
    frame: NDArray[Any]  # (1,) of FRAME


class GasRows(NamedTuple):
    """The air of the k cavities of a problem, room for c, and scratch of who solves for it."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) k
    active: NDArray[np.bool_]  # (c,) whether the pressure is given
    pressure: NDArray[np.float64]  # (c,) [Pa], absolute: given or to start from, and found
    amount: NDArray[np.float64]  # (c,) n [mol], which the solver makes that of the step's end
    volume: NDArray[np.float64]  # (c,) [m3] likewise
    area: NDArray[np.float64]  # (c,) [m2]
    seeping: NDArray[np.float64]  # ((c + 1)^2,) [m3/Pa] packed: see pressure.Gas
    air: NDArray[np.float64]  # (3,) P_atm [Pa], P_max [Pa], R T [J/mol]
    start: NDArray[np.float64]  # (2, c)
    w: NDArray[np.float64]  # ((3 contacts + c)^2,)
    b: NDArray[np.float64]  # (3 contacts + c,)
    x: NDArray[np.float64]
    u: NDArray[np.float64]


class Problem(NamedTuple):
    """u = W r + b, three rows a block: joints, the contacts that are solved for, cavities. Room for c blocks.

    Of a cavity's block only the first row is one, V = W r + b with the pressure above the atmosphere's in the
    place of a force; the others are 0.
    """

    rows: NDArray[np.int64]  # (2,) of the joints, of all
    w: NDArray[np.float64]  # (9 c^2,) W of all rows in one piece [m/N]
    b: NDArray[np.float64]  # (3 c,) gap and offset without contact force [m], volume [m3]
    mu: NDArray[np.float64]  # (c,) of the contacts, the first contact's first
    shafts: NDArray[np.int64]  # (1,) how many of the contacts, the last ones, are points of shafts
    limits: NDArray[np.float64]  # (c, 2) least and most force along these [N], the first one's first
    r: NDArray[np.float64]  # (3 c,) [N]
    u: NDArray[np.float64]  # (3 c,) [m]
    status: NDArray[np.int32]  # (c,) of the contacts
    gas: GasRows


def make_hand() -> Hand:
    """A hand at the origin, upright, at rest."""
    return Hand(*(np.zeros(3) for _ in range(7)))._replace(orientation=np.array([1.0, 0.0, 0.0, 0.0]))


def make_batch(
    capacity: int,
    now: NDArray[np.int64] | None = None,
    wants: NDArray[Any] | None = None,
    hand: Hand | None = None,
) -> Batch:
    """No points; with the engine's now and wants, and a hand, or with its own."""
    c = capacity
    return Batch(
        np.zeros(1, np.int64), np.zeros(1, np.int64) if now is None else now, np.zeros(c, np.int32),
        np.zeros((c, 3), np.int32), np.zeros((c, 3)), np.zeros((c, 3)), np.zeros(c, np.int32),
        np.zeros((c, 3, 3)), np.zeros((c, 3)), np.zeros((c, 4)), np.zeros((c, 3)), np.zeros((c, 3)),
        np.zeros((c, 3)), np.zeros((3 * c, 6)), np.zeros((3 * c, 6)),
        np.zeros(1, WANTS) if wants is None else wants, np.zeros(1), hand or make_hand(), np.zeros(1, FRAME),
    )  # fmt: skip


def make_problem(blocks: int, cavities: int = 0) -> Problem:
    """No rows; room for so many blocks, of which so many may be cavities."""
    c, k = blocks, cavities
    rows = 3 * (c - k) + k if k else 0
    gas = GasRows(
        np.zeros(1, np.int64), np.zeros(k, np.bool_), np.zeros(k), np.zeros(k), np.zeros(k), np.ones(k),
        np.zeros((k + 1) ** 2), np.ones(3), np.zeros((2, k)), np.zeros(rows * rows), np.zeros(rows),
        np.zeros(rows), np.zeros(rows),
    )  # fmt: skip
    return Problem(
        np.zeros(2, np.int64), np.zeros(9 * c * c), np.zeros(3 * c), np.zeros(c), np.zeros(1, np.int64),
        np.zeros((c, 2)), np.zeros(3 * c), np.zeros(3 * c), np.zeros(c, np.int32), gas,
    )  # fmt: skip


BATCH, PROBLEM = typeof(make_batch(1)), typeof(make_problem(1))


@dataclass(frozen=True)
class Kind:
    """A kind of body: its compiled unit, and the layout of state that it was compiled for."""

    name: str
    unit: Any
    content: Any
    points: Callable[[Any], int]
    """How many points a state has."""
    room: Callable[[Any], int] | None = None
    """How many points of a batch it can be asked about; None for any."""
    springs_back: bool = False
    """Whether FREE is no motion to expect, but where a body without inertia would be if nothing touched."""

    def bind(self, state: Any) -> "Body":
        """A body of this kind; TypeError for a state of another layout, which addresses cannot tell."""
        if layout(typeof(state)) != layout(self.content):
            raise TypeError(f"a state {type(state).__name__} is not laid out as {self.name} expects")
        return Body(self, Handle(state), make_batch(0)._replace(x=np.zeros((self.points(state), 3))))


@dataclass(frozen=True)
class Body:
    """A body as the engine knows it; keeps its state's memory alive."""

    kind: Kind
    handle: Handle
    whole: Batch
    """All of its points, for SHAPE."""

    @property
    def state(self) -> Any:
        """The kind's state."""
        return self.handle.state


def unit(smallest: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a kind's function (stage, state, batch, problem, h) for states laid out like `smallest`."""
    arguments = types.int64, HandleType(typeof(smallest)), HandleType(BATCH), HandleType(PROBLEM)
    return callback(types.int32(*arguments, types.float64))


@intrinsic
def call_unit(typing_context, address, stage, state, batch, problem, h):
    """Call the unit at an int64 address on the addresses of its state, of a batch and of the problem."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        c_type = ir.FunctionType(ir.IntType(32), [word, word, word, word, ir.DoubleType()])
        return builder.call(builder.inttoptr(args[0], c_type.as_pointer()), args[1:])

    word = types.int64
    return types.int32(word, word, word, word, word, types.float64), codegen


@intrinsic
def address_of(typing_context, handle):
    """The int64 address behind a handle."""
    if not isinstance(handle, HandleType):
        return None

    def codegen(context, builder, signature, args):
        return args[0]

    return types.int64(handle), codegen
