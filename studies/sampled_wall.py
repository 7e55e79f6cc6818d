"""An ideal haptic device on a plain sampled wall: where the pair is stable, exactly and simulated.

Device: m dv/dt = -b v + f, the force held over the period T. Wall: f_k = -K x_k - B (x_k - x_{k-1}) / T, both
ways. With a = exp(-b T / m), the device seen at the ticks is G(z) = (g_1 z + g_0) / ((z - 1) (z - a)),
  g_1 = (m / b^2) (b T / m - 1 + a),   g_0 = (m / b^2) (1 - a - a b T / m),
and with beta = B / T the loop's characteristic polynomial is
  p(z) = z (z - 1) (z - a) + ((K + beta) z - beta) (g_1 z + g_0) = z^3 + a_2 z^2 + a_1 z + a_0.
By Jury's criterion all its zeros lie in the unit circle exactly if p(1) > 0, p(-1) < 0, |a_0| < 1 and
|a_0 a_2 - a_1| < 1 - a_0^2; in each, K stands linearly (`exact_boundary`).

Colgate and Schenkel, *Passivity of a class of sampled-data systems: application to haptic interfaces*,
J. Robotic Systems 14(1), 1997: the wall is passive, so that any passive hand is stable, if b > K T / 2 + |B|.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.haptics.device import HandGrip, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import make_servo
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback

TICKS = 1200
"""Ticks of a simulated run; the last two quarters of it are compared."""
START = 1e-3
"""Where the device is let go [m]."""


class IdealDevice(NamedTuple):
    """Mass [kg] and viscous friction [N s/m], above zero, of the device, and the servo's period [s]."""

    mass: float
    viscosity: float
    period: float


def passivity_bound(damping: float, viscosity: float, period: float) -> float:
    """Stiffness [N/m] below which a sampled wall is passive, 2 (b - |B|) / T; not positive where none is."""
    return 2.0 * (viscosity - abs(damping)) / period


def exact_boundary(damping: float, device: IdealDevice) -> float:
    """Largest stiffness [N/m] at which the loop is stable with damping B >= 0 [N s/m]; 0 where none is.

    Two zeros leave the unit circle as a complex pair, |a_0 a_2 - a_1| = 1 - a_0^2, or one does at z = -1.
    """
    m, b, T = device
    a, beta = np.exp(-b * T / m), damping / T
    g1 = m / b**2 * (b * T / m - 1.0 + a)
    g0 = m / b**2 * (1.0 - a - a * b * T / m)
    if beta * g0 >= 1.0:
        return 0.0
    pair = (1.0 - a - (beta * g0) ** 2 + beta * (g1 + (1.0 + a) * g0)) / (g0 * (1.0 + beta * g1)) - beta
    flip = 2.0 * (1.0 + a) / (g1 - g0) - 2.0 * beta
    return float(max(0.0, min(pair, flip)))


def closed_loop(stiffness: float, damping: float, device: IdealDevice) -> NDArray[np.float64]:
    """One period of the loop on (x_k, v_k, x_{k-1}), shape (3, 3)."""
    m, b, T = device
    a = np.exp(-b * T / m)
    from_v = np.array([m / b * (1.0 - a), a])
    from_f = np.array([(T - m / b * (1.0 - a)) / b, (1.0 - a) / b])
    step = np.zeros((3, 3))
    step[0, 0] = step[2, 0] = 1.0
    step[:2, 1] = from_v
    step[:2] += np.outer(from_f, [-stiffness - damping / T, 0.0, damping / T])
    return step


class SampledWall(NamedTuple):
    """What the wall's tick touches."""

    port: Port
    gain: NDArray[np.float64]
    """Stiffness [N/m] and damping [N s/m], shape (2,)."""


@callback(types.int32(HandleType(typeof(SampledWall(make_port(), np.zeros(2))))))
def _wall_tick(wall):
    port = wall.port
    for i in range(3):
        port.force[i] = -wall.gain[0] * port.position[i] - wall.gain[1] * port.velocity[i]
    return end_tick(port, OK, 0)


def decays(stiffness: float, damping: float, device: IdealDevice) -> bool:
    """Whether the simulated device, let go beside the wall's rest, swings less and less: through the servo.

    The loop is linear, so that its largest excursion over a window shrinks exactly if it is stable.
    """
    m, b, T = device
    stylus = make_virtual_device([[0.0, START, 0.0]], grip=HandGrip(0.0, 0.0), mass=m, viscosity=b, dt=T)
    wall = SampledWall(make_port(), np.array([stiffness, damping]))
    data = Handle(wall)
    # the force is limited only where the run is lost already, before its numbers overflow
    limits = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, dt=T, hand_speed=np.inf)
    servo = make_servo(
        _wall_tick.address, data.address, wall.port, stylus, limits, rate_hz=1.0 / T, ring_capacity=2048
    )
    servo_run(servo, TICKS)
    y = np.abs(drain_rows(servo)[:, NAMES.index("py")])
    before, after = y[TICKS // 2 : 3 * TICKS // 4], y[3 * TICKS // 4 :]
    return bool(after.max() < before.max() and not any(servo.limit_state.counts[0]))
