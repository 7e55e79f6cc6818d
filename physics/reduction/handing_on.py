"""From one frame's reduced model to the next one's, while the servo goes on: no tick is made again.

A frame is made about the full body at a tick, and is done some ticks later. In between the servo moves the
body on the model of the frame before: x = c + R (X + V z). What has changed since is brought into the new
model, x' = c' + R' (X' + V' z'): the axes go on together, R' = R Q with a constant Q, and

    z' = V'^T A' Q^T V (z - z_T),    dz'/dt = dz'/dt_T + V'^T A' Q^T V (dz/dt - dz/dt_T)

in the norm A' in which V'^T A' V' = 1, T being the tick of the frame. The rigid part of either change, which
the new modes are free of, goes to c', R' and their velocities. At T itself the new model is as it was made.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.reduction.body_model import BodyModel
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.reduction.rational_krylov import turned

Floats = NDArray[np.float64]


class Weighing(Protocol):
    """What has a new model."""

    @property
    def model(self) -> BodyModel:
        """The last one."""
        ...

    def weigh(self, field: Floats) -> Floats:
        """A field (n_dof, m) times the matrix in which its modes are orthogonal."""
        ...


def hand_on(
    last: BodyModel,
    source: Weighing,
    low: int,
    then: InterfaceState,
    now: InterfaceState,
    out: InterfaceState,
) -> None:
    """Body number `low` of `out`, in the new model of `source` at T, is brought to the present.

    then, now: the states of the last model at T and at present.
    """
    new = source.model
    field = last.field(now.z - then.z, now.rate - then.rate)
    if new.motions.shape[1]:
        field = _hand_on_rigid(new, low, field, then, now, out)
    moved = new.coordinates(source.weigh(field))
    out.z[new.span] += moved[:, 0]
    out.rate[new.span] += moved[:, 1]


def _hand_on_rigid(
    new: BodyModel, low: int, field: Floats, then: InterfaceState, now: InterfaceState, out: InterfaceState
) -> Floats:
    """The rigid motion is brought to the present; what is left of the field, in the new axes."""
    before, after = then.axes[low], now.axes[low]
    turn = before.T @ out.axes[low]
    field = turned(field, turn.T)
    share = new.share @ field
    own = after @ turn
    offset = before.T @ (out.centre[low] - then.centre[low])
    known = before.T @ (then.velocity[low] + np.cross(then.spin[low], before @ offset))
    speed = after.T @ (now.velocity[low] + np.cross(now.spin[low], after @ offset))
    out.centre[low] = now.centre[low] + after @ offset + own @ share[:3, 0]
    out.velocity[low] = after @ (before.T @ out.velocity[low] + speed - known) + own @ share[:3, 1]
    gained = after.T @ now.spin[low] - before.T @ then.spin[low]
    out.spin[low] = after @ (before.T @ out.spin[low] + gained) + own @ share[3:, 1]
    axes = Rotation.from_matrix(own) * Rotation.from_rotvec(share[3:, 0])
    out.q[low] = axes.as_quat(scalar_first=True)
    quat_to_matrix(out.q[low], out.axes[low])
    return field - new.motions @ share


def sweep_fields(frame: ConstraintFrame, f: int, start: InterfaceState, out: InterfaceState) -> None:
    """What the rigid motion from `start` to `out` adds to the volumes of slot f's fields, to first order."""
    for k in range(int(frame.head["n_fields"][f])):
        slot = int(frame.field_slot[f, k])
        low = int(frame.slot_body[f, slot])
        turn = start.axes[low].T @ out.axes[low]
        way = start.axes[low].T @ (out.centre[low] - start.centre[low])
        motion = np.concatenate([way, Rotation.from_matrix(turn).as_rotvec()])
        out.swept[slot] += float(frame.field_pull[f, k] @ motion)
