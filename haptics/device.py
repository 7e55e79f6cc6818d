"""The compiled virtual device: a simulated stylus, with or without a hand on it.

The stylus is a point mass m that the sent force f, the hand and the arm's friction act on:
  m dv/dt = f(t - d) + k (x_t - x) + c (v_t - v) - b v - r,   r = F_c v / |v|, or |r| <= F_c where v = 0
with the hand's stiffness k and damping c toward the target path x_t, the viscous friction b, the dry
(backdrive) friction F_c, in which it sticks until more than F_c pulls, and the transport delay d from a pose
that is read to the force that answers it at the motors: of the bus, both ways, and of the amplifier. The
force is held over the tick, as a real device's amplifier holds it, and the motion within the tick is
integrated to second order: a first-order step at the servo's period would add an artificial damping of the
size of the very sampling effect (K T / 2) that makes stiff walls unstable. All of the delay lies behind the
command, where a loop cannot tell it from one before the encoder.

What the device reports is what an encoder gives: the position rounded to the resolution, and a velocity
that is the backward difference of the rounded positions behind a first-order low-pass (a bare difference
would jump by resolution / T, 55 mm/s for a Touch). The orientation follows the target, since these devices
cannot turn the hand, and is not rounded.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.haptics.path import TickPath, upright
from palpo.physics.exchange.ahead import ROWS, Ahead, row_at
from palpo.physics.exchange.buffer import SLOTS, acquire, make_control, publish, writer_slot
from palpo.physics.numerics.kernels import inlined, kernel

TABLE, MAILBOX, RECORDED, EXTERNAL = 0, 1, 2, 3
"""Where a device's target comes from: a table of one row a tick, the newest message, or a recording whose
inputs, velocities included, are reported as they were; or, EXTERNAL, from a real device's scheduler, whose
callback fills the port before each step and sends the force after it."""

DEVICE_OK, DEVICE_GONE, DEVICE_ERRED = 0, 1, 2
"""Health of a device: it works, it is lost, or (RECORDED only) its pose was none that could be followed."""
SUBSTEPS = 4
"""Steps of the stylus within a tick; at second order four are plenty (hand frequency times h is 0.02)."""
LONGEST_DELAY = 0.05
"""Longest transport delay [s] that a device may have."""
MAILBOX_SMOOTHING = 0.02
"""Time constant [s] that turns the 60 Hz stairs of a mouse into a path."""


class HandGrip(NamedTuple):
    """A simulated hand: a spring and a damper between the stylus and the target that it follows."""

    stiffness: float = 400.0
    """[N/m]; the default holds a stylus firmly."""
    damping: float = 4.0
    """[N s/m]."""


class VirtualDevice(NamedTuple):
    """Parameters and state of a virtual device; positions [m], velocities [m/s], device axes."""

    source: int
    """TABLE, MAILBOX or RECORDED."""
    held: int
    """1: a hand pulls the stylus toward the target; 0: the stylus is the target."""
    positions: NDArray[np.float64]
    """Target table, shape (n, 3): rows of ticks as `physics.exchange.ahead` keeps them, the last one held."""
    orientations: NDArray[np.float64]
    """Target quaternions, shape (n, 4)."""
    buttons: NDArray[np.int64]
    """Button bit masks, shape (n,)."""
    known: NDArray[np.int64]
    """Rows of the path that the tables have held so far, shape (1,)."""
    velocities: NDArray[np.float64]
    """Velocities and angular velocities that RECORDED reports, shape (n, 6)."""
    mail: NDArray[np.float64]
    """Target messages (position, orientation, buttons), shape (3, 8), behind the buffer `mail_control`."""
    mail_control: NDArray[np.int64]
    mass: float
    friction: float
    viscosity: float
    hand_stiffness: float
    hand_damping: float
    dt: float
    resolution: float
    """Rounding of the reported position [m]; 0 reports it exactly."""
    lag: int
    """Substeps from the command of a force to its effect: the transport delay."""
    commanded: NDArray[np.float64]
    """Forces sent [N], device axes, the newest first, as many as may still come into effect; shape (n, 3)."""
    velocity_gain: float
    """Share of a new velocity sample in the reported one; 1 is the bare difference."""
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    target: NDArray[np.float64]
    """Target at this tick and at the next, shape (2, 3)."""
    measured: NDArray[np.float64]
    """Last reported position, velocity and angular velocity, shape (3, 3)."""
    measured_orientation: NDArray[np.float64]
    health: NDArray[np.int64]
    """DEVICE_OK, or what whoever watches the device has found, shape (1,)."""
    allowance: NDArray[np.float64]
    """Share of its largest force that it allows now, by its motors' temperature, shape (1,)."""
    allowances: NDArray[np.float64]
    """Those that RECORDED repeats, shape (n,)."""


def make_virtual_device(
    positions: ArrayLike,
    orientations: ArrayLike | None = None,
    buttons: ArrayLike | None = None,
    *,
    source: int = TABLE,
    grip: HandGrip | None = None,
    mass: float = 0.045,
    friction: float = 0.0,
    viscosity: float = 0.0,
    delay: float = 0.0,
    resolution: float = 0.0,
    velocity_cutoff_hz: float | None = None,
    dt: float = 1e-3,
) -> VirtualDevice:
    """A virtual device at rest on the first row of its target table.

    positions (n, 3) [m], orientations (n, 4) (w, x, y, z) or None for upright, buttons (n,) bit masks or
    None; grip: what pulls the stylus toward the target, None where the stylus is the target; delay: from the
    command of a force to its effect [s], to the nearest substep; the rest as in `VirtualDevice`. Raises
    HapticsError on tables that are empty, ragged or not finite, and on a delay that is negative or above
    LONGEST_DELAY.
    """
    if not 0.0 <= delay <= LONGEST_DELAY:
        raise HapticsError(f"a device's delay of {delay} s must be from 0 to {LONGEST_DELAY} s")
    table = np.array(positions, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 3 or len(table) == 0:
        raise HapticsError(
            f"target positions have shape {table.shape} and must have shape (n, 3) with n >= 1"
        )
    n = len(table)
    turns = upright(n) if orientations is None else np.array(orientations, float)
    masks = np.zeros(n, dtype=np.int64) if buttons is None else np.array(buttons, dtype=np.int64)
    if turns.shape != (n, 4) or masks.shape != (n,):
        raise HapticsError(
            f"target orientations {turns.shape} and buttons {masks.shape} must have {n} rows as the positions"
        )
    if not (np.isfinite(table).all() and np.isfinite(turns).all()):
        raise HapticsError("target positions and orientations must be finite")
    norms = np.linalg.norm(turns, axis=1)
    if norms.min() < 1e-6:
        raise HapticsError(f"target orientation at row {int(norms.argmin())} must not be the zero quaternion")
    turns = _unit(turns)
    gain = 1.0 if velocity_cutoff_hz is None else 1.0 - math.exp(-2.0 * math.pi * velocity_cutoff_hz * dt)
    held, lag = grip or HandGrip(), round(delay / dt * SUBSTEPS)
    measured = np.zeros((3, 3))
    measured[0] = _rounded(table[0], resolution)
    return VirtualDevice(
        source=int(source),
        held=int(grip is not None),
        positions=table,
        orientations=turns,
        buttons=masks,
        known=np.array([n], dtype=np.int64),
        velocities=np.zeros((1, 6)),
        mail=np.zeros((SLOTS, 8)),
        mail_control=make_control(),
        mass=float(mass),
        friction=float(friction),
        viscosity=float(viscosity),
        hand_stiffness=float(held.stiffness),
        hand_damping=float(held.damping),
        dt=float(dt),
        resolution=float(resolution),
        lag=lag,
        commanded=np.zeros((1 + -(-lag // SUBSTEPS), 3)),
        velocity_gain=float(gain),
        position=table[0].copy(),
        velocity=np.zeros(3),
        target=np.array([table[0], table[0]]),
        measured=measured,
        measured_orientation=turns[0].copy(),
        health=np.zeros(1, dtype=np.int64),
        allowance=np.ones(1),
        allowances=np.ones(1),
    )


def first_rows(way: TickPath) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rows of a path, device axes, that a device's tables begin with."""
    return way.rows(0, min(way.ticks, ROWS))


def path_ahead(device: VirtualDevice, way: TickPath) -> Ahead:
    """What brings the rest of a path to the tables of a device that was made with its `first_rows`."""

    def script(first: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        positions, turns = way.rows(first, stop)
        return positions, _unit(turns)

    return Ahead(script, way.ticks, (device.positions, device.orientations), device.known)


def _unit(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    return turns / np.linalg.norm(turns, axis=1)[:, None]


def _rounded(position: NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    return np.floor(position / resolution + 0.5) * resolution if resolution > 0.0 else position


def send_target(
    device: VirtualDevice,
    position: ArrayLike,
    orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    buttons: int = 0,
) -> None:
    """Leave a target [m] in the mailbox; one thread may send, the servo takes the newest and never waits."""
    message = device.mail[writer_slot(device.mail_control)]
    message[:3] = position
    message[3:7] = orientation
    message[7] = buttons
    publish(device.mail_control)


@inlined
def _turn(now, before, out):
    """out = rotation vector of now before^-1, which turns one unit quaternion into the other."""
    w = now[0] * before[0] + now[1] * before[1] + now[2] * before[2] + now[3] * before[3]
    out[0] = -now[0] * before[1] + now[1] * before[0] - now[2] * before[3] + now[3] * before[2]
    out[1] = -now[0] * before[2] + now[1] * before[3] + now[2] * before[0] - now[3] * before[1]
    out[2] = -now[0] * before[3] - now[1] * before[2] + now[2] * before[1] + now[3] * before[0]
    s = math.sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2])
    scale = 2.0 if s < 1e-9 else 2.0 * math.atan2(s, abs(w)) / s
    if w < 0.0:
        scale = -scale
    for i in range(3):
        out[i] *= scale


@inlined
def _take_target(device, tick, port):
    """Bring the target to this tick and the next; orientation and buttons go straight to the port."""
    if device.source == TABLE:
        row = row_at(device.known, device.positions.shape[0], tick)
        after = row_at(device.known, device.positions.shape[0], tick + 1)
        for i in range(3):
            device.target[0, i] = device.positions[row, i]
            device.target[1, i] = device.positions[after, i]
        for i in range(4):
            port.orientation[i] = device.orientations[row, i]
        port.buttons[0] = device.buttons[row]
        return
    slot, fresh = acquire(device.mail_control)
    if fresh:
        # row 0 of the tables keeps the newest message, so that it lasts until the next one
        for i in range(3):
            device.positions[0, i] = device.mail[slot, i]
        for i in range(4):
            device.orientations[0, i] = device.mail[slot, 3 + i]
        device.buttons[0] = int(device.mail[slot, 7])
    share = 1.0 - math.exp(-device.dt / MAILBOX_SMOOTHING)
    for i in range(3):
        device.target[0, i] = device.target[1, i]
        device.target[1, i] += share * (device.positions[0, i] - device.target[1, i])
    for i in range(4):
        port.orientation[i] = device.orientations[0, i]
    port.buttons[0] = device.buttons[0]


@inlined
def _repeat(device, tick, port):
    """Report the recorded inputs of this tick, the last ones for ever."""
    row = min(tick, device.positions.shape[0] - 1)
    for i in range(3):
        port.position[i] = device.positions[row, i]
        port.velocity[i] = device.velocities[row, i]
        port.angular_velocity[i] = device.velocities[row, 3 + i]
    for i in range(4):
        port.orientation[i] = device.orientations[row, i]
    port.buttons[0] = device.buttons[row]
    device.allowance[0] = device.allowances[min(row, device.allowances.shape[0] - 1)]


@inlined
def measure_spin(device, port, elapsed):
    """port.angular_velocity [rad/s] from the last two poses, `elapsed` seconds apart, behind the low-pass."""
    _turn(port.orientation, device.measured_orientation, port.angular_velocity)
    for i in range(3):
        rate = port.angular_velocity[i] / elapsed
        device.measured[2, i] += device.velocity_gain * (rate - device.measured[2, i])
        port.angular_velocity[i] = device.measured[2, i]
    for i in range(4):
        device.measured_orientation[i] = port.orientation[i]


@inlined
def begin_measuring(device, port):
    """Take the port's orientation for the first of those that `measure_spin` compares."""
    for i in range(3):
        device.measured[2, i] = port.angular_velocity[i] = 0.0
    for i in range(4):
        device.measured_orientation[i] = port.orientation[i]


@kernel
def device_read(device, tick, port):
    """Report pose, velocities and buttons at this tick into the port; DEVICE_OK, or why it cannot."""
    if device.source == EXTERNAL:
        return device.health[0]
    if device.source == RECORDED:
        _repeat(device, tick, port)
        return device.health[0]
    _take_target(device, tick, port)
    if not device.held:
        for i in range(3):
            device.position[i] = device.target[0, i]
    for i in range(3):
        x = device.position[i]
        if device.resolution > 0.0:
            x = math.floor(x / device.resolution + 0.5) * device.resolution
        difference = (x - device.measured[0, i]) / device.dt
        device.measured[1, i] += device.velocity_gain * (difference - device.measured[1, i])
        device.measured[0, i] = x
        port.position[i] = x
        port.velocity[i] = device.measured[1, i]
    measure_spin(device, port, device.dt)
    return device.health[0]


@inlined
def _push(device, share, h, force):
    """The velocity after h under a held force, the hand and friction; the target at this share of the tick.

    Exact where the velocity keeps its direction; a stylus that friction stops within h sticks.
    """
    v, viscous = device.velocity, device.hand_damping + device.viscosity
    lost = -math.expm1(-viscous * h / device.mass)
    gain = lost / viscous if viscous > 0.0 else h / device.mass
    for i in range(3):
        target = (1.0 - share) * device.target[0, i] + share * device.target[1, i]
        target_velocity = (device.target[1, i] - device.target[0, i]) / device.dt
        pull = device.hand_stiffness * (target - device.position[i]) + device.hand_damping * target_velocity
        v[i] += gain * (force[i] + pull) - lost * v[i]
    speed = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    left = max(0.0, 1.0 - gain * device.friction / speed) if speed > 0.0 else 0.0
    for i in range(3):
        v[i] *= left


@inlined
def _drift(device, h):
    for i in range(3):
        device.position[i] += h * device.velocity[i]


@kernel
def device_write(device, sent_force):
    """Send sent_force (3,) [N], device axes, and move the held stylus for one tick; returns DEVICE_OK.

    Half a drift, the velocity, half a drift in each substep; exact for a constant force.
    """
    if device.held:
        force, h = device.commanded, device.dt / SUBSTEPS
        for k in range(force.shape[0] - 1, 0, -1):
            for i in range(3):  # a row at once might be copied first, to memory that is not there
                force[k, i] = force[k - 1, i]
        for i in range(3):
            force[0, i] = sent_force[i]
        for s in range(SUBSTEPS):
            _drift(device, 0.5 * h)
            _push(device, (s + 0.5) / SUBSTEPS, h, force[max(0, device.lag - s + SUBSTEPS - 1) // SUBSTEPS])
            _drift(device, 0.5 * h)
    return DEVICE_OK
