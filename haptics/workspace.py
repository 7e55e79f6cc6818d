"""The map between the device's workspace and the scene.

  x_scene = s R x_device + o,  v_scene = s R v_device,  q_scene = q_R q_device q_T q_M,  w_scene = R w_device
  f_device = g R^T f_scene,    torque_device = (g / s) R^T torque_scene
With g = s, the default, the map is power-consistent: f_device . v_device = f_scene . v_scene, so a passive
scene stays passive in the hand, and a stiffness K of the scene is felt as s^2 K. With g = 1 a newton of the
scene is a newton in the hand, a stiffness is felt as s K, and power is scaled by 1 / s: for s < 1 the
hand receives more than the scene gives, and passivity is the user's to keep.

q_scene turns the tool from where it is at rest. q_T says which orientation of the device is neutral: it is 1
for that with its axes along the scene's, or (q_R q_device)^-1 of the moment when it was taken. q_M is how the
tool sits on the device. Both stand to the right of q_device, so that a turn of the hand by Q turns the tool
by q_R Q q_R^-1, whatever they are. In a left hand the tool sits as a mirror across the plane x = 0 shows it.

Offset and q_T are what a run starts with: a servo keeps copies, which its clutch moves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.physics.numerics.kernels import inlined


class Workspace(NamedTuple):
    """Scale s and force scale g [-], offset o (3,) [m], rotation R (3, 3) and its quaternion (4,).

    clutch_buttons: bit mask of the buttons of which any, while down, holds the scene's position; 0 is none.
    taken: q_T (4,). mount: q_M (4,), of the hand that `left` (1,) tells, 0 or 1. takes: whether a start at a
    point takes the device's orientation, wherever that is, for neutral.
    """

    scale: float
    force_scale: float
    offset: NDArray[np.float64]
    rotation: NDArray[np.float64]
    quaternion: NDArray[np.float64]
    clutch_buttons: int
    taken: NDArray[np.float64]
    mount: NDArray[np.float64]
    left: NDArray[np.float64]
    takes: int


def quaternion_from_axis_angle(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """Unit quaternion (4,) of a turn by angle [rad] about axis (3,); raises HapticsError on a zero axis."""
    direction = np.asarray(axis, dtype=np.float64)
    length = float(np.linalg.norm(direction))
    if not np.isfinite(length) or (length < 1e-12 and angle != 0.0):
        raise HapticsError(f"rotation axis {direction.tolist()} must be finite and not zero")
    unit = direction / length if length > 0.0 else direction
    return np.concatenate([[np.cos(angle / 2.0)], np.sin(angle / 2.0) * unit])


def quaternion_matrix(quaternion: ArrayLike) -> NDArray[np.float64]:
    """Rotation matrix (3, 3) of a unit quaternion (4,)."""
    w, x, y, z = np.asarray(quaternion, dtype=np.float64)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion_product(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Quaternions p q, shapes (..., 4)."""
    a, b = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    w = a[..., 0] * b[..., 0] - np.sum(a[..., 1:] * b[..., 1:], axis=-1)
    v = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([w[..., None], v], axis=-1)


def make_workspace(
    scale: float = 1.0,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    force_scale: float | None = None,
    clutch_buttons: int = 0,
    mount: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    left: bool = False,
    takes: bool = False,
) -> Workspace:
    """The map with this scale, offset [m], rotation (quaternion) and force scale (None: power-consistent).

    mount: how the tool sits on a device in the right hand (quaternion); left: it is in the left one. Raises
    HapticsError on a scale that is not positive, and on a rotation or mount that is no quaternion.
    """
    if not (np.isfinite(scale) and scale > 0.0):
        raise HapticsError(f"workspace scale {scale} must be a positive number")
    quaternion, sits = _unit("rotation", rotation), _unit("mount", mount)
    gain = scale if force_scale is None else force_scale
    place = Workspace(
        float(scale),
        float(gain),
        np.array(offset, dtype=np.float64),
        quaternion_matrix(quaternion),
        quaternion,
        int(clutch_buttons),
        np.array([1.0, 0.0, 0.0, 0.0]),
        sits,
        np.zeros(1),
        int(takes),
    )
    if left:
        mirror_mount(place)
    return place


def _unit(what: str, quaternion: ArrayLike) -> NDArray[np.float64]:
    """The quaternion (4,) at length 1; HapticsError where it is none."""
    q = np.array(quaternion, dtype=np.float64)
    norm = float(np.linalg.norm(q))
    if q.shape != (4,) or not (np.isfinite(norm) and norm > 1e-6):
        raise HapticsError(f"workspace {what} {q.tolist()} must be a quaternion (w, x, y, z)")
    return q / norm


@inlined
def multiply(p, qw, qx, qy, qz, out):
    """out = p q of quaternions; out may be p."""
    w, x, y, z = p[0], p[1], p[2], p[3]
    out[0] = w * qw - x * qx - y * qy - z * qz
    out[1] = w * qx + x * qw + y * qz - z * qy
    out[2] = w * qy - x * qz + y * qw + z * qx
    out[3] = w * qz + x * qy - y * qx + z * qw


@inlined
def mirror_mount(workspace):
    """Put the tool into the other hand, mirrored across the plane x = 0; twice, to the bit, is not at all."""
    workspace.left[0] = 1.0 - workspace.left[0]
    workspace.mount[2] *= -1.0
    workspace.mount[3] *= -1.0


@inlined
def take_neutral(workspace, device_port):
    """The device's present orientation becomes neutral."""
    t, q = workspace.taken, device_port.orientation
    multiply(workspace.quaternion, q[0], q[1], q[2], q[3], t)
    square = t[0] * t[0] + t[1] * t[1] + t[2] * t[2] + t[3] * t[3]
    t[0] /= square
    for i in range(1, 4):
        t[i] /= -square


def positions_to_device(workspace: Workspace, positions: ArrayLike) -> NDArray[np.float64]:
    """Device positions (n, 3) [m] that map to these scene positions."""
    return (np.asarray(positions, dtype=np.float64) - workspace.offset) @ workspace.rotation / workspace.scale


def orientations_to_device(workspace: Workspace, orientations: ArrayLike) -> NDArray[np.float64]:
    """Device quaternions (n, 4) that map to these scene quaternions."""
    inverse = [1.0, -1.0, -1.0, -1.0]
    held = quaternion_product(workspace.taken, workspace.mount) * inverse
    return quaternion_product(workspace.quaternion * inverse, quaternion_product(orientations, held))


@inlined
def pose_to_scene(workspace, device_port, port):
    """Bring pose, velocities and buttons from the device's port into the scene's."""
    R, s = workspace.rotation, workspace.scale
    x, v, w = device_port.position, device_port.velocity, device_port.angular_velocity
    for i in range(3):
        port.position[i] = s * (R[i, 0] * x[0] + R[i, 1] * x[1] + R[i, 2] * x[2]) + workspace.offset[i]
        port.velocity[i] = s * (R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2])
        port.angular_velocity[i] = R[i, 0] * w[0] + R[i, 1] * w[1] + R[i, 2] * w[2]
    q, t, m = device_port.orientation, workspace.taken, workspace.mount
    multiply(workspace.quaternion, q[0], q[1], q[2], q[3], port.orientation)
    multiply(port.orientation, t[0], t[1], t[2], t[3], port.orientation)
    multiply(port.orientation, m[0], m[1], m[2], m[3], port.orientation)
    port.buttons[0] = device_port.buttons[0]


@inlined
def force_to_device(workspace, g, port, device_port):
    """Bring force and torque from the scene's port into the device's; g: device force per scene force [-]."""
    R, turned = workspace.rotation, g / workspace.scale
    f, t = port.force, port.torque
    for i in range(3):
        device_port.force[i] = g * (R[0, i] * f[0] + R[1, i] * f[1] + R[2, i] * f[2])
        device_port.torque[i] = turned * (R[0, i] * t[0] + R[1, i] * t[1] + R[2, i] * t[2])
