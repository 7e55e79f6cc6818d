"""Where points of a quasi-static surface are, loaded and free."""

from palpo.physics.numerics.kernels import inlined
from palpo.physics.numerics.math3 import (
    matvec3,
)


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
