"""Where the servo has the low-rate bodies now: the reduced models of the last frames, kept for the picture.

The low loop leaves the model of each frame here before it publishes the frame; who draws takes the one that
belongs to the state of the servo (`ToolState.frame`). A model is never changed, entries are replaced whole,
so that neither side waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.numerics.rows3 import cross_rows
from palpo.physics.systems.multirate.reduced.members import Member

KEPT = 4
"""Frames that the servo may still move by: the newest, the one it has, and room for a slow reader."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DrawnModel:
    """x = c + R (X + V z) at all points of a member, with V = basis transform, which is never formed."""

    member: Member
    places: Floats
    """X [m], (count, 3): body axes from the centre where the member floats."""
    basis: Floats
    """(n_dof, k)"""
    transform: Floats
    """(k, modes)"""
    modes: slice
    """Its modes among those of all members."""

    def positions(self, z: Floats, centre: Floats, orientation: Floats) -> Floats:
        """World positions (count, 3) [m], for z (modes of all members,), centre (3,) and orientation (4,)."""
        x = self.places
        if self.basis.size:
            moved = self.basis @ (self.transform @ z[self.modes])
            x = x + self.member.gather(np.arange(self.member.count), moved[:, None]).reshape(-1, 3)
        if not self.member.floating:
            return x
        axes = np.empty((3, 3))
        quat_to_matrix(orientation, axes)
        return centre + x @ axes.T

    def velocities(
        self, rate: Floats, arms: Floats, orientation: Floats, velocity: Floats, spin: Floats
    ) -> Floats:
        """World velocities (count, 3) [m/s], for dz/dt (modes,), arms from the centre (count, 3) [m], and the
        body's velocity [m/s] and spin [rad/s], (3,)."""
        u = np.zeros((self.member.count, 3))
        if self.basis.size:
            moved = self.basis @ (self.transform @ rate[self.modes])
            u = self.member.gather(np.arange(self.member.count), moved[:, None]).reshape(-1, 3)
        if not self.member.floating:
            return u
        axes = np.empty((3, 3))
        quat_to_matrix(orientation, axes)
        return velocity + cross_rows(spin, arms) + u @ axes.T


class DrawnModels:
    """Models of the last frames by the frames' ids."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether anybody looks: without it nothing is kept."""
        self._frames: dict[int, tuple[DrawnModel, ...]] = {}

    def keep(self, frame: int, models: tuple[DrawnModel, ...]) -> None:
        """Leave the models of a frame, in the order of the low-rate bodies; from the low loop only."""
        newest = list(self._frames.items())[1 - KEPT :]
        self._frames = dict([*newest, (frame, models)])

    def of(self, frame: int) -> tuple[DrawnModel, ...]:
        """The models of that frame; none where it is not known, or has no reduced bodies."""
        return self._frames.get(frame, ())
