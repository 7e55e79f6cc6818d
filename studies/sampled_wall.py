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

With a transport delay d the force of the first part of a period is an older one. The loop then remembers the
forces on their way, and where it is stable is asked of its eigenvalues. Of a delay of n periods their
condition,
  b > T / (2 (1 - cos wT)) Re((1 - e^-jwT) e^-jnwT (K + B (1 - e^-jwT) / T))
    = (K T / 2) sin((n + 1/2) wT) / sin(wT / 2) - B cos((n + 1) wT),
holds at all w if b > K (T / 2 + d) + |B|.

"""

import math
from collections.abc import Callable, Sequence
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
SCAN = np.geomspace(1.0, 1e6, 97)
"""Stiffnesses [N/m] among which the boundary of a delayed loop is looked for."""
START = 1e-3
"""Where the device is let go [m]."""


class IdealDevice(NamedTuple):
    """Mass [kg] and viscous friction [N s/m], above zero, of the device, servo's period and delay [s]."""

    mass: float
    viscosity: float
    period: float
    delay: float = 0.0


def passivity_bound(damping: float, viscosity: float, period: float, delay: float = 0.0) -> float:
    """Stiffness [N/m] below which a sampled wall is passive, (b - |B|) / (T / 2 + d); none if below 0."""
    return (viscosity - abs(damping)) / (0.5 * period + delay)


def largest_stable(
    stable: Callable[[float], bool], grid: Sequence[float] | NDArray[np.float64], resolution: float
) -> float:
    """Largest stiffness up to which all were found stable: a rising scan over grid, then bisection.

    0 where the first is unstable already, the last of the grid where all are stable.
    """
    below = 0.0
    for above in map(float, grid):
        if not stable(above):
            break
        below = above
    else:
        return below
    while below > 0.0 and above / below > 1.0 + resolution:
        middle = float(np.sqrt(below * above))
        below, above = (middle, above) if stable(middle) else (below, middle)
    return below


def exact_boundary(damping: float, device: IdealDevice) -> float:
    """Largest stiffness [N/m] at which the loop is stable with damping B >= 0 [N s/m]; 0 where none is.

    Two zeros leave the unit circle as a complex pair, |a_0 a_2 - a_1| = 1 - a_0^2, or one does at z = -1.
    With a delay it is bisected, to 1e-9.
    """
    m, b, T, delay = device
    if delay > 0.0:
        return largest_stable(lambda K: spectral_radius(K, damping, device) < 1.0, SCAN, 1e-9)
    a, beta = np.exp(-b * T / m), damping / T
    g1 = m / b**2 * (b * T / m - 1.0 + a)
    g0 = m / b**2 * (1.0 - a - a * b * T / m)
    if beta * g0 >= 1.0:
        return 0.0
    pair = (1.0 - a - (beta * g0) ** 2 + beta * (g1 + (1.0 + a) * g0)) / (g0 * (1.0 + beta * g1)) - beta
    flip = 2.0 * (1.0 + a) / (g1 - g0) - 2.0 * beta
    return float(max(0.0, min(pair, flip)))


def closed_loop(stiffness: float, damping: float, device: IdealDevice) -> NDArray[np.float64]:
    """One period of the loop on x_k, v_k, x_{k-1} and n = ceil(d / T) last forces, (3 + n, 3 + n)."""
    T, on_way = device.period, math.ceil(device.delay / device.period - 1e-9)
    step = np.zeros((3 + on_way, 3 + on_way))
    force = np.zeros(3 + on_way)
    force[[0, 2]] = -stiffness - damping / T, damping / T
    # the newest first; within a period the last but one takes over from the last once the delay is over
    forces = np.vstack([force, np.eye(3 + on_way)[3:]])
    older = device.delay - max(on_way - 1, 0) * T
    newer, from_new = _move(device, T - older)
    step[:2, :2] = _move(device, T)[0]
    step[:2] += np.outer(from_new, forces[max(on_way - 1, 0)])
    if on_way:
        step[:2] += np.outer(newer @ _move(device, older)[1], forces[on_way])
    step[2, 0] = 1.0
    step[3:] = forces[:on_way]
    return step


def _move(device: IdealDevice, t: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What (x, v) become of themselves over t, shape (2, 2), and of a newton, shape (2,)."""
    m, b = device.mass, device.viscosity
    a = math.exp(-b * t / m)
    return np.array([[1.0, m / b * (1.0 - a)], [0.0, a]]), np.array(
        [(t - m / b * (1.0 - a)) / b, (1.0 - a) / b]
    )


def spectral_radius(stiffness: float, damping: float, device: IdealDevice) -> float:
    """Largest factor by which a motion of the loop grows in a period; below 1 it is stable."""
    return float(np.abs(np.linalg.eigvals(closed_loop(stiffness, damping, device))).max())


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
    m, b, T, delay = device
    stylus = make_virtual_device(
        [[0.0, START, 0.0]], grip=HandGrip(0.0, 0.0), mass=m, viscosity=b, delay=delay, dt=T
    )
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
