"""Where the nodes of a quasi-static surface are, loaded and free, and how fast they move."""

from palpo.physics.bodies.boundary import place_surface
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    matvec3,
    norm3,
    quat_difference,
)


@kernel
def fastest(s, h):
    """Bound on the speed of the nodes in this step [m/s]: the last step's, and the frame's own motion."""
    told, frame, turn = s.told, s.frame, s.vectors[0]
    n = told.x.shape[0] - 1
    if n < 0:
        return 0.0
    worst, way, angle, own_turn = fastest_told(s), 0.0, 0.0, 0.0
    quat_difference(frame.now.orientation, told.q[n], turn)
    for i in range(3):
        way += (abs(frame.now.position[i] - told.x[n, i]) + abs(frame.free[i])) ** 2
        angle += frame.free[3 + i] ** 2
        own_turn += turn[i] ** 2
    return worst + (way**0.5 + s.reach[0] * (angle**0.5 + own_turn**0.5)) / h


@kernel
def fastest_told(s):
    """Speed of the quickest node in the step that has ended [m/s]."""
    worst = 0.0
    for k in range(s.told.x.shape[0] - 1):
        worst = max(worst, norm3(s.told.v[k]))
    return worst


@kernel
def tell(s, h):
    """Where the nodes and the frame now are, and how fast they came there, for who looks from outside."""
    told, pose = s.told, s.frame.now
    n = told.x.shape[0] - 1
    if n < 0:
        return
    copy_rows(told.x, told.v)
    place_surface(s.boundary.rest, s.u, pose.position, pose.rotation, told.x[:n])
    copy(pose.position, told.x[n])
    for k in range(n + 1):
        copy(pose.orientation, told.q[k])
        for i in range(3):
            told.v[k, i] = (told.x[k, i] - told.v[k, i]) / h


@inlined
def placed(s, batch, k, pose, u, out):
    """out (3,) = where point k of the batch stands at that pose and displacement u (s, 3)."""
    local = s.vectors[5]
    for j in range(3):
        local[j] = 0.0
    for c in range(3):
        weight, a = batch.weights[k, c], batch.slots[k, c]
        if weight != 0.0:
            for j in range(3):
                local[j] += weight * (s.boundary.rest[a, j] + u[a, j])
    matvec3(pose.rotation, local, out)
    for i in range(3):
        out[i] += pose.position[i]


@inlined
def sag(s, a, j):
    """Displacement of slot a along axis j of the body under the weight alone [m]."""
    share = s.share[0]
    if share == 0.0:
        return _sag(s.weight, s.boundary.sag, a, j)
    if share == 1.0:
        return _sag(s.weight, s.second.sag, a, j)
    return (1.0 - share) * _sag(s.weight, s.boundary.sag, a, j) + share * _sag(s.weight, s.second.sag, a, j)


@inlined
def _sag(weight, sag, a, j):
    return weight[0] * sag[0, a, j] + weight[1] * sag[1, a, j] + weight[2] * sag[2, a, j]


@inlined
def free_arm(s, batch, k, out):
    """out (3,) = from the frame's centre to point k under the weight alone."""
    local = s.vectors[5]
    for j in range(3):
        local[j] = 0.0
    for c in range(3):
        weight, a = batch.weights[k, c], batch.slots[k, c]
        if weight != 0.0:
            for j in range(3):
                local[j] += weight * (s.boundary.rest[a, j] + sag(s, a, j))
    matvec3(s.frame.now.rotation, local, out)
