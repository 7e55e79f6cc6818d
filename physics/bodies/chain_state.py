"""What a chain of six-freedom frames is made of: its model, its state, and a step's work."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class ChainModel(NamedTuple):
    """What never changes. n frames, n - 1 elements.

    mass (n,): diagonal translational mass [kg].
    coupling (n - 1,): mass shared by neighbours, zero if lumped [kg].
    weight (n,): mass that gravity pulls at each frame [kg].  inertia (n, 3, 3): in body axes [kg m2].
    rest_length (n - 1,) [m]; stiffness (n - 1, 6): element_constants of fem/beam.py.
    rest_first, rest_second (n - 1, 4): quaternions from the axes of an element's first and second frame to
    the element's own at rest, so that the rest line may be curved.
    fixed (n,): clamped frames.  alpha [1/s], beta [s].  gravity (3,) [m/s2].
    """

    mass: NDArray
    coupling: NDArray
    weight: NDArray
    inertia: NDArray
    rest_length: NDArray
    stiffness: NDArray
    rest_first: NDArray
    rest_second: NDArray
    fixed: NDArray
    alpha: float
    beta: float
    gravity: NDArray


class ChainState(NamedTuple):
    """x (n, 3) [m], q (n, 4) body to world, v (n, 3) [m/s], w (n, 3) [rad/s] in world axes."""

    x: NDArray
    q: NDArray
    v: NDArray
    w: NDArray


class ChainWork(NamedTuple):
    """Workspace of one step.

    D (n, 6, 6), U (n - 1, 6, 6) with U[i] = A[i, i+1], rhs (n, 6): the system, later its factor.
    held (1,): frame under a direct hold or -1; held_mask (6,); held_D, held_left, held_right (6, 6) and
    held_rhs (6,): that frame's rows as they were before.  block (2, 6, 6): scratch.
    """

    D: NDArray
    U: NDArray
    rhs: NDArray
    held: NDArray
    held_mask: NDArray
    held_D: NDArray
    held_left: NDArray
    held_right: NDArray
    held_rhs: NDArray
    block: NDArray


def chain_work(n: int) -> ChainWork:
    """Workspace for n frames."""
    return ChainWork(
        np.zeros((n, 6, 6)), np.zeros((max(n - 1, 0), 6, 6)), np.zeros((n, 6)),
        np.full(1, -1, dtype=np.int32), np.zeros(6, dtype=np.bool_), np.zeros((6, 6)), np.zeros((6, 6)),
        np.zeros((6, 6)), np.zeros(6), np.zeros((2, 6, 6)),
    )  # fmt: skip
