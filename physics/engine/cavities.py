"""Cavities: shut-in air between bodies, one row each in the step's problem, beside joints and contacts.

A cavity's volume V depends on many points of one or two bodies. How, is the bodies' own: each has a *field*
for it, dV/dx of its points, and answers the stages of palpo.physics.contract.stages for a FIELD as for a
point: the volume is its place, the pressure above the atmosphere's its force. So after a step

    V+ = V + sum_b d_V,b + W_pc r + W_pp (p - P_atm),    p V+ = (n + dn) R T

together with all joints, contacts and friction (palpo.physics.engine.pressurising). Who finds cavities and
hands on their air, a detector of the engine as for contacts, fills the list; the engine keeps n and p.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import add_point, batch_of
from palpo.physics.contract.stages import FIELD
from palpo.physics.numerics.kernels import kernel


class Cavities(NamedTuple):
    """k cavities, room for c."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) k
    identity: NDArray[np.int64]  # (c,) the same cavity's in each step
    body: NDArray[np.int32]  # (c, 2) whose fields it has; -1 for none: a wall that never moves
    slots: NDArray[np.int32]  # (c, 2, 3) the first is the body's field
    active: NDArray[np.bool_]  # (c,) whether the pressure is given
    pressure: NDArray[np.float64]  # (c,) [Pa], absolute: given, else that of the last step
    amount: NDArray[np.float64]  # (c,) n [mol] at the step's start, after END at its end
    volume: NDArray[np.float64]  # (c,) [m3] at the step's start, after END at its end as the law saw it
    seeping: NDArray[np.float64]  # ((c + 1)^2,) packed: see pressure.Gas
    air: NDArray[np.float64]  # (3,) P_atm [Pa], P_max [Pa], R T [J/mol]
    weights: NDArray[np.float64]  # (3,) of `slots`
    axes: NDArray[np.float64]  # (3, 3) of a block: its first row alone is one
    none: NDArray[np.float64]  # (3,) no arm
    known: NDArray[np.int64]  # (c,) scratch: identities of the list before, and
    kept: NDArray[np.float64]  # (c, 2) their n and p


def make_cavities(capacity: int, air: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Cavities:
    """None, and room for so many; air: P_atm [Pa], P_max [Pa], R T [J/mol]."""
    c = capacity
    return Cavities(
        np.zeros(1, np.int64), np.zeros(c, np.int64), np.full((c, 2), -1, np.int32),
        np.zeros((c, 2, 3), np.int32), np.zeros(c, np.bool_), np.full(c, air[0]), np.zeros(c), np.zeros(c),
        np.zeros((c + 1) ** 2), np.array(air), np.array([1.0, 0.0, 0.0]), np.diag([1.0, 0.0, 0.0]),
        np.zeros(3), np.zeros(c, np.int64), np.zeros((c, 2)),
    )  # fmt: skip


@kernel
def take_cavities(frame, f, cavities, body, first):
    """The list becomes that of slot f of a CavityFrame, whose fields count from `first` on that body.

    Who is known keeps the air that it has, but for its share, and its pressure.
    """
    before = cavities.count[0]
    for k in range(before):
        cavities.known[k] = cavities.identity[k]
        cavities.kept[k, 0], cavities.kept[k, 1] = cavities.amount[k], cavities.pressure[k]
    n = min(frame.count[f], cavities.amount.shape[0])
    cavities.count[0] = n
    for k in range(n):
        cavities.identity[k], cavities.active[k] = frame.identity[f, k], frame.active[f, k]
        cavities.amount[k], cavities.pressure[k] = frame.amount[f, k], frame.pressure[f, k]
        for side in range(2):
            field = frame.fields[f, k, side]
            cavities.body[k, side] = body if field >= 0 else -1
            cavities.slots[k, side, 0] = field - first
        for j in range(before):
            if cavities.known[j] == cavities.identity[k]:
                cavities.amount[k] = frame.share[f, k] * cavities.kept[j, 0]
                cavities.pressure[k] = cavities.kept[j, 1]
    for i in range((n + 1) ** 2):
        cavities.seeping[i] = frame.seeping[f, i]


@kernel
def add_cavities(e):
    """The fields of all cavities, in the blocks after those of the contacts."""
    cavities, first = e.cavities, e.joints.what.shape[0] + e.contacts.count[0].found
    for k in range(cavities.count[0]):
        for side in range(2):
            body = cavities.body[k, side]
            if body >= 0:
                e.at[first + k, side] = add_point(
                    batch_of(e, body), FIELD, cavities.slots[k, side], cavities.weights, cavities.none,
                    first + k, cavities.axes, 1.0,
                )  # fmt: skip


@kernel
def free_volumes(e):
    """Volumes at the step's start, and b of the cavities' blocks: those after the free motion."""
    cavities, first = e.cavities, e.joints.what.shape[0] + e.contacts.count[0].found
    for k in range(cavities.count[0]):
        volume, way = 0.0, 0.0
        for side in range(2):
            body = cavities.body[k, side]
            if body >= 0:
                batch, i = batch_of(e, body), e.at[first + k, side]
                volume += batch.x[i, 0]
                way += batch.d[i, 0]
        cavities.volume[k] = volume
        for i in range(3):
            e.b[3 * (first + k) + i] = volume + way if i == 0 else 0.0


@kernel
def gather_air(e):
    """The cavities' air for the problem; False where a number of it is none."""
    cavities, gas, total = e.cavities, e.problem.gas, 0.0
    gas.count[0] = cavities.count[0]
    for k in range(cavities.count[0]):
        gas.active[k], gas.pressure[k] = cavities.active[k], cavities.pressure[k]
        gas.amount[k], gas.volume[k] = cavities.amount[k], cavities.volume[k]
        total += abs(gas.pressure[k]) + abs(gas.amount[k])
    if cavities.count[0] > 0:
        for i in range(3):
            gas.air[i] = cavities.air[i]
            total += 0.0 if i == 1 else abs(gas.air[i])  # P_max may be infinite
        for i in range((cavities.count[0] + 1) ** 2):
            gas.seeping[i] = cavities.seeping[i]
            total += abs(gas.seeping[i])
    return total < np.inf


@kernel
def keep_air(e):
    """What the solution has made of it."""
    cavities, gas = e.cavities, e.problem.gas
    for k in range(cavities.count[0]):
        cavities.pressure[k], cavities.amount[k] = gas.pressure[k], gas.amount[k]
        cavities.volume[k] = gas.volume[k]
