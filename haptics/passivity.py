"""The energy that a device hands to its user: a passivity observer and controller in the time domain.

The force of tick k is held until tick k + 1, so that the energy delivered to the hand is known exactly from
what was sent and from the device's own positions, whatever made the force:
  E(k + 1) = E(k) + f_sent(k) . (x(k + 1) - x(k))
A passive scene keeps E <= 0: the hand never gets back more than it gave. Where E > 0 the controller takes
off the force a damping that would spend the excess within a tick at the speed v = (x(k) - x(k - 1)) / T,
  f -> f - alpha v,  alpha = min(E / (|v|^2 T), alpha_max),
and since that force is sent and observed as the rest, E accounts for it. v is the bare difference: a
filtered velocity lags, and a damper that lags feeds the very oscillation that it should end.

Hannaford and Ryu (2002), Time-domain passivity control of haptic interfaces, IEEE Trans. Robotics and
Automation 18(1); the exact discrete sum, Ryu, Preusche, Hannaford and Hirzinger (2005), IEEE Trans. Control
Systems Technology 13(4). Its known limit: a scene that dissipates much saves up a negative E, out of which
it may act actively for a while unseen.

Torque. A device of three forces renders no torque, so the hand turns the stylus for free, while the scene
counts the work that it would have cost. What contact stores through the rotation it can give back through
the force: a scene that is passive with all six coordinates need not be with three. `torque_work` is that
account: the work that the commanded torque would have done on the hand, negative where the hand owes it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.errors import HapticsError
from palpo.physics.numerics.kernels import kernel

OFF, OBSERVE, CONTROL = 0, 1, 2
MODES = ("off", "observe", "control")


class PassivityParams(NamedTuple):
    """Mode, largest damping of the controller [N s/m], period [s]."""

    mode: int
    damping: float
    dt: float


JOULES = np.dtype([(name, np.float64) for name in ("energy", "highest", "dissipated", "torque_work")])
"""[J] Energy, its highest value, what the controller dissipated, and the torque's work."""


class PortEnergy(NamedTuple):
    """The account of one device's port, device axes."""

    joules: NDArray[np.void]
    """Shape (1,) of JOULES."""
    peak_torque: NDArray[np.float64]
    """Shape (1,) [N m]."""
    last: NDArray[np.float64]
    """Position at the last tick, shape (3,) [m]."""
    step: NDArray[np.float64]
    """Motion over the last tick, shape (3,) [m]."""
    brake: NDArray[np.float64]
    """What the controller took off the force last, shape (3,) [N]."""
    ticks: NDArray[np.int64]
    """Ticks observed, ticks on which the controller acted; shape (2,)."""


def make_passivity(mode: str = "off", damping: float = 5.0, dt: float = 1e-3) -> PassivityParams:
    """Parameters of a mode named in MODES; raises HapticsError on another or on a damping not positive."""
    if mode not in MODES:
        raise HapticsError(f'passivity = "{mode}": choose one of {", ".join(MODES)}')
    if not damping > 0.0:
        raise HapticsError(f"passivity_damping = {damping} must be positive")
    return PassivityParams(MODES.index(mode), float(damping), float(dt))


def make_port_energy() -> PortEnergy:
    """An account with nothing on it."""
    return PortEnergy(
        np.zeros(1, JOULES), np.zeros(1), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(2, dtype=np.int64)
    )


@kernel
def observe_port(account, params, port, sent, turned, gain, interrupted):
    """Book the work of the last tick, once the device has reported where it led.

    port: device axes; its torque is still that of the last tick. sent (3,) [N], turned (3,) [N m] and gain:
    of the last tick. What was asked of torque and not sent is booked as lacking.
    interrupted: the device moved on without ticks, under no force.
    """
    if interrupted or account.ticks[0] == 0:
        for i in range(3):
            account.step[i] = 0.0
    else:
        joules, delivered, dissipated, lacking = account.joules[0], 0.0, 0.0, 0.0
        for i in range(3):
            account.step[i] = port.position[i] - account.last[i]
            delivered += sent[i] * account.step[i]
            dissipated += gain * account.brake[i] * account.step[i]
            turn = port.angular_velocity[i] * params.dt
            delivered += turned[i] * turn
            lacking += (port.torque[i] - turned[i]) * turn
        # a pose or torque that is no number ends the run, and must not end the account
        if params.mode != OFF and np.isfinite(delivered):
            joules.energy += delivered
            joules.highest = max(joules.highest, joules.energy)
            joules.dissipated += dissipated
        if np.isfinite(lacking):
            joules.torque_work += lacking
    for i in range(3):
        account.last[i] = port.position[i]
    account.ticks[0] += 1


@kernel
def observe_torque(account, port):
    """Keep the largest commanded torque [N m]."""
    t = port.torque
    norm = np.sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2])
    if norm > account.peak_torque[0]:
        account.peak_torque[0] = norm


@kernel
def brake_delivery(account, params, brake):
    """Add to brake (3,) [N] the controller's damping force; True if it acts."""
    for i in range(3):
        account.brake[i] = 0.0
    if params.mode != CONTROL or not account.joules[0].energy > 0.0:
        return False
    step = account.step
    square = step[0] * step[0] + step[1] * step[1] + step[2] * step[2]
    if square == 0.0:
        return False
    # |v|^2 T = |step|^2 / T
    damping = min(account.joules[0].energy * params.dt / square, params.damping)
    for i in range(3):
        account.brake[i] = damping * step[i] / params.dt
        brake[i] += account.brake[i]
    account.ticks[1] += 1
    return True
