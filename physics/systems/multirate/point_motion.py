"""Where points are that a tool carries, and how quick points are."""

from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_rotate


@kernel
def tool_points(start, stop, frame, lever, x, q, v, w, out_x, out_u):
    """Positions and velocities of the tool's points."""
    for p in range(start, stop):
        k = frame[p]
        quat_rotate(q[k], lever[p], out_x[p])
        arm = out_x[p]
        out_u[p, 0] = v[k, 0] + w[k, 1] * arm[2] - w[k, 2] * arm[1]
        out_u[p, 1] = v[k, 1] + w[k, 2] * arm[0] - w[k, 0] * arm[2]
        out_u[p, 2] = v[k, 2] + w[k, 0] * arm[1] - w[k, 1] * arm[0]
        for i in range(3):
            out_x[p, i] += x[k, i]


@kernel
def fastest(u):
    """Largest speed among velocities u (n, 3)."""
    most = 0.0
    for p in range(u.shape[0]):
        most = max(most, u[p, 0] * u[p, 0] + u[p, 1] * u[p, 1] + u[p, 2] * u[p, 2])
    return most**0.5
