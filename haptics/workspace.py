"""The map between the device's workspace and the scene.

  x_scene = s R x_device + o,  v_scene = s R v_device,  q_scene = q_R q_device,  w_scene = R w_device
  f_device = g R^T f_scene,    torque_device = (g / s) R^T torque_scene
With g = s, the default, the map is power-consistent: f_device . v_device = f_scene . v_scene, so a passive
scene stays passive in the hand, and a stiffness K of the scene is felt as s^2 K. With g = 1 a newton of the
scene is a newton in the hand, a stiffness is felt as s K, and power is scaled by 1 / s: for s < 1 the
hand receives more than the scene gives, and passivity is the user's to keep.

The offset is where a run starts: a servo keeps a copy and moves it as its clutch says.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.physics.numerics.kernels import inlined


class Workspace(NamedTuple):
    """Scale s and force scale g [-], offset o (3,) [m], rotation R (3, 3) and its quaternion (4,).

    clutch_buttons: bit mask of the buttons of which any, while down, holds the scene's position; 0 is none.
    """

    scale: float
    force_scale: float
    offset: NDArray[np.float64]
    rotation: NDArray[np.float64]
    quaternion: NDArray[np.float64]
    clutch_buttons: int


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
) -> Workspace:
    """The map with this scale, offset [m], rotation (quaternion) and force scale (None: power-consistent).

    Raises HapticsError on a scale that is not positive or a rotation that is no quaternion.
    """
    if not (np.isfinite(scale) and scale > 0.0):
        raise HapticsError(f"workspace scale {scale} must be a positive number")
    quaternion = np.array(rotation, dtype=np.float64)
    norm = float(np.linalg.norm(quaternion))
    if quaternion.shape != (4,) or not (np.isfinite(norm) and norm > 1e-6):
        raise HapticsError(f"workspace rotation {quaternion.tolist()} must be a quaternion (w, x, y, z)")
    quaternion /= norm
    gain = scale if force_scale is None else force_scale
    return Workspace(
        float(scale),
        float(gain),
        np.array(offset, dtype=np.float64),
        quaternion_matrix(quaternion),
        quaternion,
        int(clutch_buttons),
    )


def positions_to_device(workspace: Workspace, positions: ArrayLike) -> NDArray[np.float64]:
    """Device positions (n, 3) [m] that map to these scene positions."""
    return (np.asarray(positions, dtype=np.float64) - workspace.offset) @ workspace.rotation / workspace.scale


def orientations_to_device(workspace: Workspace, orientations: ArrayLike) -> NDArray[np.float64]:
    """Device quaternions (n, 4) that map to these scene quaternions."""
    return quaternion_product(workspace.quaternion * [1.0, -1.0, -1.0, -1.0], orientations)


@inlined
def pose_to_scene(workspace, device_port, port):
    """Bring pose, velocities and buttons from the device's port into the scene's."""
    R, s = workspace.rotation, workspace.scale
    x, v, w = device_port.position, device_port.velocity, device_port.angular_velocity
    for i in range(3):
        port.position[i] = s * (R[i, 0] * x[0] + R[i, 1] * x[1] + R[i, 2] * x[2]) + workspace.offset[i]
        port.velocity[i] = s * (R[i, 0] * v[0] + R[i, 1] * v[1] + R[i, 2] * v[2])
        port.angular_velocity[i] = R[i, 0] * w[0] + R[i, 1] * w[1] + R[i, 2] * w[2]
    p, q = workspace.quaternion, device_port.orientation
    port.orientation[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3]
    port.orientation[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2]
    port.orientation[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1]
    port.orientation[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]
    port.buttons[0] = device_port.buttons[0]


@inlined
def force_to_device(workspace, g, port, device_port):
    """Bring force and torque from the scene's port into the device's; g: device force per scene force [-]."""
    R, turned = workspace.rotation, g / workspace.scale
    f, t = port.force, port.torque
    for i in range(3):
        device_port.force[i] = g * (R[0, i] * f[0] + R[1, i] * f[1] + R[2, i] * f[2])
        device_port.torque[i] = turned * (R[0, i] * t[0] + R[1, i] * t[1] + R[2, i] * t[2])
