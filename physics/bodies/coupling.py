"""How a rigid handle and the free nodes beside it are coupled, and how that turns with both."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.rigid_handle import RigidHandle
from palpo.physics.fem.assembly import BlockPattern
from palpo.physics.numerics.kernels import kernel

Floats = NDArray[np.float64]


class Coupled(NamedTuple):
    """Of a handle with velocities w (6,) and a body of n nodes; see palpo.physics.bodies.held_body.

    twist (n, 3, 6): T of the k held nodes, which move with T w. untwist (6, 3 k): its pseudoinverse.
    coupling (n, 3, 6): G = s K_.h T. held (6, 6): T^T G of the held nodes.
    """

    twist: Floats
    untwist: Floats
    coupling: Floats
    held: Floats


def uncoupled() -> Coupled:
    """Of a body without a handle."""
    return Coupled(np.zeros((0, 3, 6)), np.zeros((6, 0)), np.zeros((0, 3, 6)), np.zeros((6, 6)))


def couple(handle: RigidHandle, x: Floats, near: BlockPattern, blocks: Floats) -> Coupled:
    """At positions x (n, 3) [m], with the lower blocks (b, 9) of s K of the elements at held nodes."""
    twist, coupling = np.zeros((2, *x.shape, 6))
    is_held = np.zeros(len(x), np.bool_)
    is_held[handle.nodes] = True
    _set_twist(handle.nodes, x, handle.position, twist)
    _add_coupling(near.rows, near.cols, blocks, is_held, twist, coupling)
    own = twist[handle.nodes].reshape(-1, 6)
    untwist = np.linalg.pinv(own.T @ own, hermitian=True) @ own.T
    return Coupled(twist, untwist, coupling, own.T @ coupling[handle.nodes].reshape(-1, 6))


def turned_coupling(then: Coupled, ring: NDArray, held: NDArray, turns: Floats, turn: Floats) -> Coupled:
    """That of R K R^T, R = turns (n, 3, 3) of the nodes `ring` and `turn` (3, 3) of those `held`."""
    both = np.zeros((6, 6))
    both[:3, :3] = both[3:, 3:] = turn
    twist, coupling = np.zeros_like(then.twist), np.zeros_like(then.coupling)
    twist[held] = turn @ then.twist[held] @ both.T
    coupling[held] = turn @ then.coupling[held] @ both.T
    coupling[ring] = turns[ring] @ then.coupling[ring] @ both.T
    untwist = ((both @ then.untwist).reshape(6, -1, 3) @ turn.T).reshape(6, -1)
    return Coupled(twist, untwist, coupling, both @ then.held @ both.T)


@kernel
def _set_twist(held, x, position, out):
    """out (n, 3, 6) = T of the held nodes at x (n, 3) about `position`."""
    for node in held:
        a, b, c = x[node, 0] - position[0], x[node, 1] - position[1], x[node, 2] - position[2]
        t = out[node]
        t[0, 0] = t[1, 1] = t[2, 2] = 1.0
        t[0, 4], t[0, 5], t[1, 3], t[1, 5], t[2, 3], t[2, 4] = c, -b, -c, a, b, -a


@kernel
def _add_coupling(rows, cols, blocks, held, twist, out):
    """out (n, 3, 6) += K_.h T from lower blocks (b, 9) of K and T, `twist` (n, 3, 6)."""
    for k in range(rows.size):
        i, j = rows[k], cols[k]
        for a in range(3):
            for b in range(3):
                value = blocks[k, 3 * a + b]
                for c in range(6):
                    if held[j]:
                        out[i, a, c] += value * twist[j, b, c]
                    if i != j and held[i]:
                        out[j, b, c] += value * twist[i, a, c]
