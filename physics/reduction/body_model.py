"""The reduced model of one body, x = c + R (X + V z), as one frame has it.

Where the servo has the low-rate bodies now: the reduced models of the last frames, kept for the picture.

The low loop leaves the model of each frame here before it publishes the frame; who draws takes the one that
belongs to the state of the servo (`ToolState.frame`). A model is never changed, entries are replaced whole,
so that neither side waits.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.low_body import LowBody
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.reduction.rational_krylov import ReducedModes

Floats = NDArray[np.float64]


class BodyModel(NamedTuple):
    """V = B T, which is never formed."""

    body: LowBody
    basis: Floats
    """B (n_dof, k), none for a rigid body."""
    modes: ReducedModes | None
    span: slice
    """Of its modes among those of all bodies."""
    motions: Floats
    """(n_dof, 6) rigid motions about its centre; none where it does not move as a whole."""
    share: Floats
    """(6, n_dof) what there is of them in a field."""
    places: Floats = np.zeros((0, 3))
    """X [m] of all its points, (count, 3), in body axes from the centre where it moves as a whole; of a model
    that is kept for the picture."""

    def field(self, z: Floats, rate: Floats) -> Floats:
        """V z and V dz/dt, (n_dof, 2)."""
        if self.modes is None:
            return np.zeros((len(self.motions), 2))
        return self.basis @ self.modes.expand(np.column_stack([z[self.span], rate[self.span]]))

    def coordinates(self, weighed: Floats) -> Floats:
        """Those (modes, m) of the model's fields that come nearest to some fields, weighed (n_dof, m)."""
        if self.modes is None:
            return np.zeros((0, weighed.shape[1]))
        along = (self.basis.T @ weighed)[self.modes.order]
        return self.modes.weight[:, None] * (self.modes.factor.T @ along)

    def positions(self, z: Floats, centre: Floats, orientation: Floats) -> Floats:
        """World positions (count, 3) [m], for z (modes of all bodies,), centre (3,) and orientation (4,)."""
        x = self.places
        if self.modes is not None:
            x = x + self._moved(self.modes, z)
        if not self.body.rides:
            return x
        axes = np.empty((3, 3))
        quat_to_matrix(orientation, axes)
        return centre + x @ axes.T

    def velocities(
        self, rate: Floats, arms: Floats, orientation: Floats, velocity: Floats, spin: Floats
    ) -> Floats:
        """World velocities (count, 3) [m/s], for dz/dt (modes,), arms from the centre (count, 3) [m], and the
        body's velocity [m/s] and spin [rad/s], (3,)."""
        u = np.zeros((self.body.count, 3)) if self.modes is None else self._moved(self.modes, rate)
        if not self.body.rides:
            return u
        axes = np.empty((3, 3))
        quat_to_matrix(orientation, axes)
        return velocity + cross_rows(spin, arms) + u @ axes.T

    def _moved(self, modes: ReducedModes, z: Floats) -> Floats:
        """V z at all points, (count, 3)."""
        moved = self.basis @ (modes.transform @ z[self.span])
        return self.body.gather(np.arange(self.body.count), moved[:, None]).reshape(-1, 3)


def no_model(body: LowBody) -> BodyModel:
    """Of a body that has none yet, or moves as a whole."""
    none = np.zeros((body.n_dof, 0))
    rigid = np.zeros((body.n_dof, 6)) if body.rides else none
    return BodyModel(body, none, None, slice(0, 0), rigid, rigid.T)


KEPT = 4
"""Frames that the servo may still move by: the newest, the one it has, and room for a slow reader."""


class DrawnModels:
    """Models of the last frames by the frames' ids."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether anybody looks: without it nothing is kept."""
        self._frames: dict[int, tuple[BodyModel, ...]] = {}

    def keep(self, frame: int, models: tuple[BodyModel, ...]) -> None:
        """Leave the models of a frame, in the order of the low-rate bodies; from the low loop only."""
        newest = list(self._frames.items())[1 - KEPT :]
        self._frames = dict([*newest, (frame, models)])

    def change(self, low: int, changed: Callable[[BodyModel], BodyModel]) -> None:
        """Leave other models of body number `low` in place of those that are kept."""
        self._frames = {
            frame: (*models[:low], changed(models[low]), *models[low + 1 :])
            for frame, models in self._frames.items()
        }

    def of(self, frame: int) -> tuple[BodyModel, ...]:
        """The models of that frame; none where it is not known, or has no reduced bodies."""
        return self._frames.get(frame, ())
