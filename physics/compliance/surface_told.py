"""What a quasi-static surface tells of where its nodes are, and how fast they move."""

from palpo.physics.bodies.boundary import place_surface
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import norm3, quat_difference


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
