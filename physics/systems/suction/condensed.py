"""From a step's problem to the frame of the servo: the coupling condensed, the contacts gathered into groups.

The slow loop knows the step's problem for a handle of given pose (`HeldProblem`). Held by a spring and a
damper, implicit in the step,

    (S + C) d = F + C e - (b / h) e_0 + B^T x,    C = k + b / h

with e from handle to hand at the step's end if the handle stayed, and e_0 the same at its start. So d leaves
the unknowns: W becomes W + B (S + C)^-1 B^T, as in HapCo (palpo.physics.systems.hapco.tick).

**Groups.** Where there are more contacts than the servo has time for, neighbours share one force: with
x = P x_g it obeys the laws of the group's mean gap and slip, W_g = P^T W P. Each group's force is spread
evenly, so that action, reaction and the symmetry of W stay; what is lost is how pressure varies within it.

**Cavities.** Where there are more than the servo has room for, those that the handle moves least keep the
pressure with which the step began, and are part of b and of the load.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.suction_frame import SuctionFrame

Floats = NDArray[np.float64]

APART = 1e3
"""As how far away [m] contacts of a body with itself count from those with another."""


@dataclass(frozen=True, eq=False)
class HeldProblem:
    """A step of n contacts and k cavities, m = 3 n + k rows, before the handle's pose at its end is known.

    u = w x + b + momentum + rows d; twists and wrenches as in physics.exchange.suction_frame.SuctionFrame.
    """

    w: Floats  # (m, m) with the handle held
    b: Floats  # (m,) gaps [m] and volumes [m3] at x = 0, from rest
    momentum: Floats  # (m,) what the start velocities add
    rows: Floats  # (m, 6)
    stiffness: Floats  # (6, 6)
    load: Floats  # (6,)
    load_momentum: Floats  # (6,)
    mu: Floats  # (n,)
    points: Floats  # (n, 3) [m]
    axes: Floats  # (n, 3, 3) rows n, t1, t2
    start: Floats  # (3 n,) forces to start from [N]
    active: NDArray[np.bool_]  # (k,)
    pressure: Floats  # (k,) [Pa]
    amount: Floats  # (k,) [mol]
    seeping: Floats  # (k + 1, k + 1) [m3/Pa] of palpo.physics.gas.pressure.Gas
    itself: NDArray[np.bool_] | None = None  # (n,) contacts of a body with itself: in groups apart


@dataclass(frozen=True, eq=False)
class Coupling:
    """What a hold makes of a handle of stiffness S, as 6 x 6 matrices and a twist."""

    give: Floats  # (S + C)^-1, 0 where the pose is imposed
    follow: Floats  # (S + C)^-1 C, 1 where it is imposed
    drift: Floats  # (6,) -(S + C)^-1 (b / h) e_0


def couple(stiffness: Floats, gains: Gains | None, step: float, error: Floats) -> Coupling:
    """The hold of `gains` in a step [s]; None imposes the pose.

    error: e_0 (6,) [m], [rad].
    """
    if gains is None:
        return Coupling(np.zeros((6, 6)), np.eye(6), np.zeros(6))
    damping = np.repeat([gains.damping / step, gains.turn_damping / step], 3)
    spring = np.repeat([gains.stiffness, gains.turn_stiffness], 3) + damping
    give = np.linalg.inv(stiffness + np.diag(spring))
    return Coupling(0.5 * (give + give.T), give * spring, -give @ (damping * error))


def yielding(held: HeldProblem, coupling: Coupling) -> Floats:
    """W (m, m) of a handle that yields through its coupling, symmetric to the bit."""
    w = held.w + held.rows @ coupling.give @ held.rows.T
    return 0.5 * (w + w.T)


def grouped(held: HeldProblem, most: int) -> HeldProblem:
    """The problem with at most that many contacts: itself, or one of groups of neighbours."""
    n, k = len(held.mu), len(held.active)
    if n <= most:
        return held
    points = held.points
    if held.itself is not None:
        points = np.column_stack([points, APART * held.itself])
    group = neighbours(points, most)
    size = np.bincount(group)
    shared = np.zeros((len(size), n))
    shared[group, np.arange(n)] = 1.0 / size[group]
    axes = _upright_axes(shared @ held.axes[:, 0])
    # u_g = mean of A_g A_i^T u_i
    blocks = axes[group] @ held.axes.transpose(0, 2, 1) / size[group][:, None, None]
    gather = np.zeros((3 * len(size) + k, 3 * n + k))
    for c in range(3):
        gather[(3 * group + c)[:, None], 3 * np.arange(n)[:, None] + np.arange(3)] = blocks[:, c]
    gather[3 * len(size) :, 3 * n :] = np.eye(k)
    turned = gather[: 3 * len(size), : 3 * n]
    whole = size[group][:, None] * held.start.reshape(n, 3)
    return replace(
        held,
        w=gather @ held.w @ gather.T,
        b=gather @ held.b,
        momentum=gather @ held.momentum,
        rows=gather @ held.rows,
        mu=shared @ held.mu,
        points=shared @ held.points,
        axes=axes,
        start=turned @ whole.ravel(),
        itself=None,
    )


def fewer_cavities(held: HeldProblem, most: int, atmosphere: float) -> HeldProblem:
    """The problem with at most that many cavities; the others keep their pressure, and let nothing by.

    atmosphere: P_atm [Pa].
    """
    k = len(held.active)
    if k <= most:
        return held
    n = len(held.b) - k
    moved = np.linalg.norm(held.rows[n:, :3], axis=1)
    order = np.argsort(-moved, kind="stable")
    kept, rest = np.sort(order[:most]), n + order[most:]
    rows, around = np.append(np.arange(n), n + kept), np.append(kept, k)
    push = held.pressure[rest - n] - atmosphere
    return replace(
        held,
        w=held.w[np.ix_(rows, rows)],
        b=held.b[rows] + held.w[np.ix_(rows, rest)] @ push,
        momentum=held.momentum[rows],
        rows=held.rows[rows],
        load=held.load + held.rows[rest].T @ push,
        active=held.active[kept],
        pressure=held.pressure[kept],
        amount=held.amount[kept],
        seeping=held.seeping[np.ix_(around, around)],
    )


def neighbours(points: Floats, most: int) -> NDArray[np.intp]:
    """Group (n,) of each of the points (n, d), at most that many: that of the nearest that lie far apart."""
    nearest = np.linalg.norm(points - points[0], axis=1)
    group = np.zeros(len(points), np.intp)
    for g in range(1, most):
        distance = np.linalg.norm(points - points[nearest.argmax()], axis=1)
        closer = distance < nearest
        group[closer], nearest[closer] = g, distance[closer]
    return np.unique(group, return_inverse=True)[1]


def _upright_axes(normals: Floats) -> Floats:
    """Axes (g, 3, 3) of the normals (g, 3), which need not be unit vectors."""
    n = normals / np.linalg.norm(normals, axis=1)[:, None]
    across = np.cross(n, np.eye(3)[np.abs(n).argmin(axis=1)])
    across /= np.linalg.norm(across, axis=1)[:, None]
    return np.stack([n, across, np.cross(n, across)], axis=1)


def fill_frame(
    frame: SuctionFrame,
    slot: int,
    held: HeldProblem,
    coupling: Coupling,
    settings: NDArray[np.void],
    origin: int,
) -> None:
    """Write a problem that fits the frame's capacity into a slot; the handle's pose and the id are left."""
    n, k = len(held.mu), len(held.active)
    m = 3 * n + k
    frame.origin[slot] = origin
    frame.size[slot] = n, k
    frame.settings[slot] = settings[0]
    frame.w[slot, : m * m] = yielding(held, coupling).ravel()
    frame.b[slot, :m], frame.momentum[slot, :m] = held.b, held.momentum
    frame.rows[slot, :m] = held.rows
    frame.stiffness[slot] = held.stiffness
    frame.load[slot], frame.load_momentum[slot] = held.load, held.load_momentum
    frame.give[slot], frame.follow[slot], frame.drift[slot] = coupling.give, coupling.follow, coupling.drift
    frame.mu[slot, :n], frame.start[slot, : 3 * n] = held.mu, held.start
    air = frame.cavities
    air.count[slot], air.identity[slot, :k], air.fields[slot, :k, 0] = k, np.arange(k), np.arange(k)
    air.active[slot, :k], air.pressure[slot, :k] = held.active, held.pressure
    air.amount[slot, :k] = held.amount
    air.seeping[slot, : (k + 1) ** 2] = held.seeping.ravel()
