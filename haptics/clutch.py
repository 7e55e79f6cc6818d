"""Moving the scene's origin under the hand without a jump: clutch, start at a point, resume, waiting scene.

The workspace maps x_scene = s R x_device + o. While the hand is held off, the scene's position stays where it
was and o absorbs the device's motion, so that on release the map goes on from there. o is corrected by the
difference to the held position itself, never by the sum of motions, so that rounding does not add up.

After a pause the orientation may differ too. It cannot be rebased for good, since the stylus in the hand
and the tool would then stay turned against each other; so the scene's orientation is q q_R q_device with
an offset q that starts as the difference and decays to identity with the time constant TURN_BACK. So it does
where the map of orientations changes: another orientation of the device is taken for neutral, the tool goes
into the other hand, or a start finds the device where the map would have the tool turned.

While a scene waits for a frame, or the force fades as the servo stood still, its pose stays likewise, but the
hand asked for none of it: the offset that arises is kept as a lag, which is made up once the scene goes on.
With x_scene = x_hand + o the hand gets
  f . dx_hand = f . dx_scene - f . do,
so that a scene which is passive at its own pose stays passive in the hand where o moves only along its force.
Pressed against the scene, the lag is left as it is until the force ends. And as long as the force comes back
after the wait, multiplied by a gain g below 1, a hand that moves against it slips by as much as it does not
pay: what reaches the scene is at most g of that motion.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.workspace import mirror_mount, multiply, pose_to_scene, take_neutral
from palpo.physics.exchange.port import Port
from palpo.physics.numerics.kernels import inlined, kernel

TURN_BACK = 0.3
"""Time constant [s] in which an offset of the orientation decays."""
TURNED_BACK = 1e-6
"""Angle [rad] below which an offset is none."""
CATCH_UP_SPEED, CATCH_UP_TIME = 0.25, 0.05
"""Fastest that a lag is made up [m/s], in scene axes, and the time constant of the last of it [s]."""
CAUGHT_UP = 1e-7
"""Lag below which there is none [m]."""
TAKE_HOLD = 0.05
"""Least time from a wait to the hand's full grip on the scene [s]."""

ASKED = np.dtype([("start", np.int64), ("turned", np.int64)])
"""1 until the first tick if a start at a point was asked for; 1 while the orientation is offset."""


class Clutch(NamedTuple):
    """The offset that the workspace does not hold."""

    turn: NDArray[np.float64]
    """Orientation offset q (w, x, y, z), shape (4,)."""
    asked: NDArray[np.void]
    """Shape (1,) of ASKED."""
    lag: NDArray[np.float64]
    """Share of the workspace's offset that is to be made up, shape (3,) [m]."""
    grip: NDArray[np.float64]
    """Share of a motion against the scene's force that reaches it, below 1 after a wait; shape (1,)."""


def make_clutch() -> Clutch:
    """No offset, and a start wherever the device is."""
    return Clutch(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(1, ASKED), np.zeros(3), np.ones(1))


def start_at_pose(clutch: Clutch, port: Port, point: ArrayLike, turn: ArrayLike) -> None:
    """Let the first tick map the device, wherever it is, onto a scene point (3,) [m] and orientation (4,)."""
    port.position[:] = point
    port.orientation[:] = turn
    clutch.asked["start"] = 1


@inlined
def take_start(clutch):
    """Whether this tick is the start at a given point; true once."""
    asked = clutch.asked[0].start != 0
    clutch.asked[0].start = 0
    return asked


@inlined
def changes_grip(workspace, device_port, port, take):
    """Whether the map of orientations changes now: neutral is taken, or the tool goes to the other hand."""
    if take:
        take_neutral(workspace, device_port)
    left = port.live[0].left
    other = math.isfinite(left) and left != workspace.left[0]
    if other:
        mirror_mount(workspace)
    return take or other


@kernel
def follow_hand(clutch, workspace, device_port, port, held, still, dt):
    """Bring the device's pose into the scene's port; workspace.offset and the clutch are moved.

    held: the position stays as the port has it, at rest. still: the orientation too.
    """
    p, m = port.position, port.orientation
    x, y, z = p[0], p[1], p[2]
    w, qx, qy, qz = m[0], m[1], m[2], m[3]
    pose_to_scene(workspace, device_port, port)
    if held:
        for i, kept in ((0, x), (1, y), (2, z)):
            workspace.offset[i] += kept - port.position[i]
            port.position[i] = kept
            port.velocity[i] = 0.0
    if still:
        # the offset that keeps q: q conj(mapped)
        a, b, c, d = m[0], -m[1], -m[2], -m[3]
        m[0], m[1], m[2], m[3] = w, qx, qy, qz
        multiply(m, a, b, c, d, clutch.turn)
        clutch.asked[0].turned = 1
        for i in range(3):
            port.angular_velocity[i] = 0.0
    elif clutch.asked[0].turned != 0:
        _turn_back(clutch, port, dt)


@inlined
def _turn_back(clutch, port, dt):
    """Let the offset decay for a tick, then apply it to orientation and angular velocity."""
    q, spin = clutch.turn, port.angular_velocity
    length = math.sqrt(q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    # of the two quaternions of this turn, the one by less than half a revolution
    sign = 1.0 if q[0] >= 0.0 else -1.0
    angle = 2.0 * math.atan2(length, sign * q[0])
    after = angle * math.exp(-dt / TURN_BACK)
    if after < TURNED_BACK:
        clutch.asked[0].turned = 0
        return
    ax, ay, az = sign * q[1] / length, sign * q[2] / length, sign * q[3] / length
    q[0] = math.cos(0.5 * after)
    s = math.sin(0.5 * after)
    q[1], q[2], q[3] = s * ax, s * ay, s * az
    m = port.orientation
    a, b, c, d = m[0], m[1], m[2], m[3]
    multiply(q, a, b, c, d, m)
    # w = dq/dt + Q w_mapped, by Rodrigues' formula
    along = (1.0 - math.cos(after)) * (ax * spin[0] + ay * spin[1] + az * spin[2])
    co, si, rate = math.cos(after), math.sin(after), (after - angle) / dt
    wx = co * spin[0] + si * (ay * spin[2] - az * spin[1]) + (along + rate) * ax
    wy = co * spin[1] + si * (az * spin[0] - ax * spin[2]) + (along + rate) * ay
    wz = co * spin[2] + si * (ax * spin[1] - ay * spin[0]) + (along + rate) * az
    spin[0], spin[1], spin[2] = wx, wy, wz


@inlined
def _along_force(port, x, y, z):
    """(share, along): motion (3,) . port.force [J], and that over the square of the force, 0 without one."""
    f = port.force
    square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
    along = f[0] * x + f[1] * y + f[2] * z
    return along / square if square > 0.0 else 0.0, along


@kernel
def slip(clutch, workspace, device_port, port, most, dt):
    """`follow_hand` of a hand that is not followed: the pose stays, the hand slips, the lag grows by that.

    most: way [m] for which the hand still feels port.force. So far the scene's pose goes with it along that
    force, so that what the hand gets back is no longer in the scene.
    """
    offset, lag = workspace.offset, clutch.lag
    x, y, z = offset[0], offset[1], offset[2]
    follow_hand(clutch, workspace, device_port, port, True, True, dt)
    share, along = _along_force(port, x - offset[0], y - offset[1], z - offset[2])
    way = math.sqrt(max(share * along, 0.0))
    if not along > 0.0:
        share = 0.0
    elif way > most:
        share *= most / way
    for i, before in ((0, x), (1, y), (2, z)):
        port.position[i] += share * port.force[i]
        offset[i] += share * port.force[i]
        lag[i] += offset[i] - before
    clutch.grip[0] = 0.0


@kernel
def take_hold(clutch, workspace, device_port, port, still, gain, dt):
    """`follow_hand` after a wait: against port.force, the last tick's, the hand still slips, less and less.

    still: the orientation stays. gain: share of that force that the hand feels. What it does not pay for
    the scene does not take; and a hand in motion does not hit the scene with all of its speed in one tick.
    """
    p = port.position
    x, y, z = p[0], p[1], p[2]
    follow_hand(clutch, workspace, device_port, port, False, still, dt)
    catch_up(clutch, workspace, port, dt)
    grip = clutch.grip
    if grip[0] == 1.0:
        return
    grip[0] = min(gain, grip[0] + dt / TAKE_HOLD)
    share, along = _along_force(port, p[0] - x, p[1] - y, p[2] - z)
    if along < 0.0:
        for i in range(3):
            step = (1.0 - grip[0]) * share * port.force[i]
            p[i] -= step
            workspace.offset[i] -= step
            clutch.lag[i] -= step


@kernel
def catch_up(clutch, workspace, port, dt):
    """Make up some of the lag in a tick, but never against port.force, which is still the last tick's."""
    lag = clutch.lag
    length = math.sqrt(lag[0] * lag[0] + lag[1] * lag[1] + lag[2] * lag[2])
    if length == 0.0:
        return
    share = min(1.0, dt / CATCH_UP_TIME, CATCH_UP_SPEED * dt / length) if length > CAUGHT_UP else 1.0
    against, work = _along_force(port, lag[0], lag[1], lag[2])
    for i in range(3):
        step = lag[i] - against * port.force[i] if work > 0.0 else lag[i]
        port.position[i] -= share * step
        workspace.offset[i] -= share * step
        lag[i] -= share * step
