"""The device port: what a tick reads from the device and leaves for it, in scene axes and SI units."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import view_f64, view_i64
from palpo.physics.kernels import inlined

# Entries of Port.status
STATUS_CODE, STATUS_FRAME, STATUS_AGE, STATUS_SWEEPS = 0, 1, 2, 3
STATUS_CONTACTS, STATUS_ROWS, STATUS_REPLAYED, STATUS_FLAGS = 4, 5, 6, 7
STATUS_STRETCH, STATUS_FELT = 8, 9
STATUSES = 10
# Entries of Port.info; the held point and the constraint sum take three each
INFO_RESIDUAL, INFO_DEPTH, INFO_HELD, INFO_SUM = 0, 1, 2, 5
# Entries of Port.live
LIVE_FORCE_SCALE, LIVE_MAX_FORCE = 0, 1

FAILED, OK, NOT_FINITE = 0, 1, 2
"""Status code of a tick. FAILED is what a C function that raises returns; it also stands in the port from
before a tick begins until it ends, so that one that never ends has failed."""

WAITING, SWEEPS_SPENT, TIME_SPENT, CONTACTS_LOST, SOLVE_DIVERGED = 1, 2, 4, 8, 16
"""Flags of a tick: the scene waited for a frame; the solver used up its sweeps, or its time; contacts did not
fit the capacity; the solver's force grew past all measure, or was worse than the one at the start."""

TOUCHES, SLIDES, SUCKS, FELT_BITS = 1, 2, 4, 3
"""What a hand feels, in STATUS_FELT, FELT_BITS for each hand, the first one's lowest: what it holds touches
something, slides on it, is held by suction."""


class Port(NamedTuple):
    """Inputs and outputs of one tick; arrays, so that a C function reaches them by address.

    Inputs, written by the servo:
      position (3,) [m], orientation (4,) (w, x, y, z), velocity (3,) [m/s], angular_velocity (3,) [rad/s],
      buttons (1,) int64 bit mask.
    Outputs, written by the tick:
      force (3,) [N] and torque (3,) [N m], commanded, on the device's hand;
      status (STATUSES,) int64: status code (1 is well), id of the frame consumed, its age [ticks] since it
        became visible, sweeps, active contacts, rows, replayed ticks, flags, stretch: by how many ticks
        frames come further apart than the scene asks, and what the hands feel;
      info (8,): residual, penetration depth [m], held point x y z [m], constraint sum fx fy fz [N];
      live (2,): what the operator has set for the device's side and a frame has brought: force scale [-] and
        largest force [N]; NaN leaves what the servo was made with.
    """

    position: NDArray[np.float64]
    orientation: NDArray[np.float64]
    velocity: NDArray[np.float64]
    angular_velocity: NDArray[np.float64]
    buttons: NDArray[np.int64]
    force: NDArray[np.float64]
    torque: NDArray[np.float64]
    status: NDArray[np.int64]
    info: NDArray[np.float64]
    live: NDArray[np.float64]


@inlined
def begin_tick(port):
    """Whoever calls a tick says first that it has failed, on a frame that is a tick older."""
    port.status[STATUS_CODE] = FAILED
    port.status[STATUS_AGE] += 1


@inlined
def end_tick(port, status, age):
    """The last act of a tick: its status, which it returns, and the age of its frame [ticks]."""
    port.status[STATUS_AGE] = age
    port.status[STATUS_CODE] = status
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
        status=np.zeros(STATUSES, dtype=np.int64),
        info=np.zeros(8),
        live=np.full(2, np.nan),
    )


def port_addresses(port: Port) -> NDArray[np.int64]:
    """Addresses of the port's arrays in field order, shape (10,); the port must outlive their use."""
    return np.array([array.ctypes.data for array in port], dtype=np.int64)


@inlined
def port_view(addresses):
    """The Port behind `port_addresses`, inside a C function."""
    return Port(
        view_f64(addresses[0], 3),
        view_f64(addresses[1], 4),
        view_f64(addresses[2], 3),
        view_f64(addresses[3], 3),
        view_i64(addresses[4], 1),
        view_f64(addresses[5], 3),
        view_f64(addresses[6], 3),
        view_i64(addresses[7], STATUSES),
        view_f64(addresses[8], 8),
        view_f64(addresses[9], 2),
    )
