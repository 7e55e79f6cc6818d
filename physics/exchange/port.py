"""The device port: what a tick reads from the device and leaves for it, in scene axes and SI units."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined

STATUS = np.dtype(
    [("code", np.int64), ("frame", np.int64), ("age", np.int64), ("sweeps", np.int64), ("contacts", np.int64),
     ("rows", np.int64), ("replayed", np.int64), ("flags", np.int64), ("stretch", np.int64),
     ("felt", np.int64)]
)  # fmt: skip
"""How a tick went: its code (OK is well); id of the frame consumed, and its age [ticks] since it became
visible; the solver's sweeps; active contacts; rows; replayed ticks; flags; by how many ticks frames come
further apart than the scene asks; and what the hands feel."""

INFO = np.dtype(
    [("residual", np.float64), ("depth", np.float64), ("held", np.float64, (3,)), ("total", np.float64, (3,))]
)
"""Residual of the contact solve [-], deepest penetration [m], the held point [m], and the sum of the
constraint forces on what is held [N]."""

LIVE = np.dtype([("force_scale", np.float64), ("max_force", np.float64), ("left", np.float64)])
"""What the operator has set for the device's side and a frame has brought: force scale [-], largest force
[N], and 1 if the left hand holds it, 0 if the right one; NaN leaves what the servo was made with."""

UNSET: tuple[float, ...] = (np.nan, np.nan, np.nan)
"""LIVE of an operator who has set nothing."""

FAILED, OK, NOT_FINITE = 0, 1, 2
"""Status code of a tick. FAILED is what a C function that raises returns; it also stands in the port from
before a tick begins until it ends, so that one that never ends has failed."""

WAITING, SWEEPS_SPENT, TIME_SPENT, CONTACTS_LOST, SOLVE_DIVERGED, SHAPE_LOST = 1, 2, 4, 8, 16, 32
"""Flags of a tick: the scene waited for a frame; the solver used up its sweeps, or its time; contacts did not
fit the capacity; the solver's force grew past all measure, or was worse than the one at the start; a soft
body's model went astray, and the scene waits for another."""

TOUCHES, SLIDES, SUCKS, FELT_BITS = 1, 2, 4, 3
"""What a hand feels, in STATUS's felt, FELT_BITS for each hand, the first one's lowest: what it holds touches
something, slides on it, is held by suction."""


class Port(NamedTuple):
    """Inputs and outputs of one tick; arrays, so that a C function reaches them by address.

    Inputs, written by the servo:
      position (3,) [m], orientation (4,) (w, x, y, z), velocity (3,) [m/s], angular_velocity (3,) [rad/s],
      buttons (1,) int64 bit mask.
    Outputs, written by the tick:
      force (3,) [N] and torque (3,) [N m], commanded, on the device's hand;
      status (1,) of STATUS, info (1,) of INFO, live (1,) of LIVE.
    """

    position: NDArray[np.float64]
    orientation: NDArray[np.float64]
    velocity: NDArray[np.float64]
    angular_velocity: NDArray[np.float64]
    buttons: NDArray[np.int64]
    force: NDArray[np.float64]
    torque: NDArray[np.float64]
    status: NDArray[Any]
    info: NDArray[Any]
    live: NDArray[Any]


@inlined
def begin_tick(port):
    """Whoever calls a tick says first that it has failed, on a frame that is a tick older."""
    port.status[0].code = FAILED
    port.status[0].age += 1


@inlined
def end_tick(port, status, age):
    """The last act of a tick: its status, which it returns, and the age of its frame [ticks]."""
    port.status[0].age = age
    port.status[0].code = status
    return status


def make_port() -> Port:
    """A port at rest at the origin, upright."""
    return Port(
        position=np.zeros(3),
        orientation=np.array([1.0, 0.0, 0.0, 0.0]),
        velocity=np.zeros(3),
        angular_velocity=np.zeros(3),
        buttons=np.zeros(1, dtype=np.int64),
        force=np.zeros(3),
        torque=np.zeros(3),
        status=np.zeros(1, STATUS),
        info=np.zeros(1, INFO),
        live=np.full(1, np.nan, LIVE),
    )
