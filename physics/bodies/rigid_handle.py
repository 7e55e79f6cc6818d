"""The rigid piece that a soft body hangs on: its pose, its velocity, and what moves it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.numerics.math3 import quat_difference, quat_normalise, quat_to_matrix, rotate_by


class RigidHandle:
    """The rigid piece on the held nodes: its pose, its velocity, and what moves it.

    nodes (k,): held nodes. mass [kg], inertia (3, 3) [kg m2] about the centre, in the rest axes: of the
    handle itself; the held nodes' own come on top. Its gyroscopic torque is left out: cups do not spin.
    position (3,) [m]: of the held nodes' centre; orientation (4,), the rest's is identity; velocity (6,).
    load (6,) [N, N m]: on a free handle at the present state, its weight not included; stiffness, damping
    (6, 6): how the load falls off with the motion during a step. They stay until they are written again.
    """

    def __init__(
        self, nodes: NDArray[np.int32], rest: NDArray[np.float64], mass: float, inertia: ArrayLike | None
    ) -> None:
        self.nodes = nodes
        self.centre = rest[nodes].mean(axis=0)
        self.rest = rest[nodes] - self.centre
        self.mass = mass
        self.inertia = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=np.float64)
        self.position = self.centre.copy()
        self.orientation = np.array([1.0, 0.0, 0.0, 0.0])
        self.velocity = np.zeros(6)
        self.load, self.stiffness, self.damping = np.zeros(6), np.zeros((6, 6)), np.zeros((6, 6))
        self.driven = True
        self._target = self.position.copy(), self.orientation.copy()

    def drive(self, position: ArrayLike, orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Be there at the end of the next step: the centre's position [m], the orientation (w, x, y, z)."""
        q = np.array(orientation, dtype=np.float64)
        quat_normalise(q)
        self._target = np.array(position, dtype=np.float64), q
        self.driven = True

    def release(self) -> None:
        """Move freely from now on."""
        self.driven = False

    def imposed_velocity(self, h: float) -> NDArray[np.float64]:
        """w (6,) that brings a driven handle to its target in h."""
        turn = np.empty(3)
        quat_difference(self._target[1], self.orientation, turn)
        return np.concatenate([self._target[0] - self.position, turn]) / h

    def advance(self, w: NDArray, h: float) -> None:
        """Move by h w."""
        self.velocity = w
        if self.driven:
            self.position, self.orientation = self._target[0].copy(), self._target[1].copy()
        else:
            self.position = self.position + h * w[:3]
            rotate_by(h * w[3:], self.orientation)

    def place(self, x: NDArray[np.float64]) -> None:
        """Write the held nodes' positions into x (n, 3) [m]."""
        x[self.nodes] = self.position + self.rest @ self.rotation().T

    def rotation(self) -> NDArray[np.float64]:
        """Orientation as a matrix, shape (3, 3)."""
        matrix = np.empty((3, 3))
        quat_to_matrix(self.orientation, matrix)
        return matrix

    def own_mass(self) -> NDArray[np.float64]:
        """M of the handle without the held nodes, shape (6, 6)."""
        r, out = self.rotation(), np.zeros((6, 6))
        out[0, 0] = out[1, 1] = out[2, 2] = self.mass
        out[3:, 3:] = r @ self.inertia @ r.T
        return out
