"""An orbiting perspective camera, as plain matrices; nothing here needs OpenGL.

Right-handed axes, y up. Azimuth 0 and elevation 0 put the eye on +z, where the user sits, looking along -z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# (azimuth, elevation) in degrees
STANDARD_VIEWS = {
    "front": (0.0, 0.0),
    "back": (180.0, 0.0),
    "right": (90.0, 0.0),
    "left": (-90.0, 0.0),
    "top": (0.0, 89.9),
    "bottom": (0.0, -89.9),
    "perspective": (28.0, 22.0),
}
SEPARATION = 1 / 30
"""Of a pair of eyes, in distances of the target: more tires."""
STEEPEST = 89.9  # degrees: at the pole itself the picture's upward direction is undefined
CLOSEST, FARTHEST = 1e-4, 1e4  # m, so that a wheel that turns and turns leaves finite numbers


class Viewpoint(Protocol):
    """What a scene is drawn from."""

    @property
    def eye(self) -> Floats:
        """Position of the eye [m], shape (3,)."""
        ...

    def matrix(self, aspect: float) -> Floats:
        """World to clip coordinates, shape (4, 4); width over height is `aspect`."""
        ...


@dataclass(frozen=True)
class Camera:
    """Where the picture is taken from; movements return a new one. Angles in degrees, lengths in metres."""

    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    distance: float = 1.0
    azimuth: float = 28.0
    elevation: float = 22.0
    field_of_view: float = 30.0  # vertical
    aside: float = 0.0  # m, of the eye to the right of where it looks from: one of a pair

    @classmethod
    def looking(
        cls,
        view: str,
        points: ArrayLike,
        aspect: float = 1.5,
        margin: float = 1.12,
        field_of_view: float = 30.0,
    ) -> Camera:
        """A standard view that holds all `points` (n, 3) [m]; raises ValueError for an unknown view."""
        return cls(field_of_view=field_of_view).seen_from(view).fit(points, aspect, margin)

    def seen_from(self, view: str) -> Camera:
        """Turned to a standard view of the same target; raises ValueError for an unknown one."""
        if view not in STANDARD_VIEWS:
            raise ValueError(f"view {view!r} is unknown; choose one of {', '.join(STANDARD_VIEWS)}.")
        azimuth, elevation = STANDARD_VIEWS[view]
        return replace(self, azimuth=azimuth, elevation=elevation)

    @cached_property
    def axes(self) -> Floats:
        """Right, up and backward unit vectors of the picture as rows, shape (3, 3)."""
        a, e = np.radians((self.azimuth, self.elevation))
        back = np.array([np.sin(a) * np.cos(e), np.sin(e), np.cos(a) * np.cos(e)])
        right = np.array([np.cos(a), 0.0, -np.sin(a)])
        return np.array([right, np.cross(back, right), back])

    @property
    def eye(self) -> Floats:
        """Position of the eye [m], shape (3,)."""
        return np.asarray(self.target) + self.distance * self.axes[2] + self.aside * self.axes[0]

    def pair(self) -> tuple[Camera, Camera]:
        """The left and the right eye of somebody who looks at the target, which is where the screen is.

        They look the same way, so that nothing is shifted up or down between their pictures.
        """
        half = 0.5 * SEPARATION * self.distance
        return replace(self, aside=-half), replace(self, aside=half)

    def depth(self, point: ArrayLike) -> float:
        """Distance [m] of the plane that faces the camera through a point (3,)."""
        return float(self.axes[2] @ (self.eye - np.asarray(point, float)))

    def height(self, depth: float) -> float:
        """Height [m] of what the picture shows of the facing plane at this depth [m]."""
        return float(2.0 * depth * np.tan(np.radians(self.field_of_view) / 2))

    def orbit(self, azimuth: float, elevation: float) -> Camera:
        """Turn about the target by these angles; the elevation stops short of the poles."""
        up = float(np.clip(self.elevation + elevation, -STEEPEST, STEEPEST))
        return replace(self, azimuth=(self.azimuth + azimuth + 180.0) % 360.0 - 180.0, elevation=up)

    def zoom(self, factor: float) -> Camera:
        """Come closer by `factor` (above 1) or go away (below 1)."""
        return replace(self, distance=float(np.clip(self.distance / factor, CLOSEST, FARTHEST)))

    def pan(self, right: float, up: float) -> Camera:
        """Shift the view by fractions of the picture's height, measured at the target."""
        shift = self.height(self.distance) * (right * self.axes[0] + up * self.axes[1])
        return replace(self, target=tuple((np.asarray(self.target) + shift).tolist()))

    def fit(self, points: ArrayLike, aspect: float, margin: float = 1.12) -> Camera:
        """Keep the direction and stand as near as lets all `points` (n, 3) [m] be seen, with a margin.

        In the picture's axes a point p is inside when |p_x - e_x| <= (e_z - p_z) tan_x for an eye e. Its two
        sides give e_x + tan_x e_z >= A and -e_x + tan_x e_z >= B, with A and B the largest over all points,
        so the nearest eye has e_z = (A + B) / (2 tan_x), e_x = (A - B) / 2; likewise in y.
        """
        p = self._local(points)
        if not len(p):
            return self
        tan, plus, minus = self._sides(p, aspect, margin)
        depth = 0.5 * (p[:, 2].min() + p[:, 2].max())
        distance = max(float(np.max((plus + minus) / (2 * tan))) - depth, 1e-6)
        target = np.append(0.5 * (plus - minus), depth) @ self.axes
        return replace(self, target=tuple(target.tolist()), distance=distance)

    def keep(self, points: ArrayLike, aspect: float, margin: float = 1.12) -> Camera:
        """Move no more than it takes to see all `points` (n, 3) [m]: stand back, and aside; never nearer.

        The nearest eye that satisfies the inequalities of `fit`.
        """
        p = self._local(points)
        if not len(p):
            return self
        tan, plus, minus = self._sides(p, aspect, margin)
        eye, target = self.axes @ self.eye, self.axes @ np.asarray(self.target)
        back = max(float(np.max((plus + minus) / (2 * tan))) - float(eye[2]), 0.0)
        aside = np.clip(eye[:2], plus - tan * (eye[2] + back), tan * (eye[2] + back) - minus)
        if back == 0.0 and (aside == eye[:2]).all():
            return self
        target[:2] = aside
        return replace(self, target=tuple((target @ self.axes).tolist()), distance=self.distance + back)

    def follow(self, point: ArrayLike, aspect: float, share: float = 0.5) -> Camera:
        """Shift no more than brings a point (3,) [m] into the middle `share` of the picture, each way."""
        away = self.axes @ (np.asarray(point, float) - self.eye)
        if not (np.isfinite(away).all() and away[2] < 0.0):
            return self
        room = share * -away[2] * np.tan(np.radians(self.field_of_view) / 2) * np.array([aspect, 1.0])
        shift = away[:2] - np.clip(away[:2], -room, room)
        if not shift.any():
            return self
        target = np.asarray(self.target) + shift @ self.axes[:2]
        return replace(self, target=tuple(target.tolist()))

    def _local(self, points: ArrayLike) -> Floats:
        """Those that are finite, in the picture's axes."""
        p = np.asarray(points, float).reshape(-1, 3)
        return np.asarray(p[np.isfinite(p).all(axis=1)] @ self.axes.T)

    def _sides(self, p: Floats, aspect: float, margin: float) -> tuple[Floats, Floats, Floats]:
        """tan, A and B of `fit`, each in x and y, of points in the picture's axes."""
        tan = np.tan(np.radians(self.field_of_view) / 2) / margin * np.array([aspect, 1.0])
        return tan, np.max(p[:, :2] + tan * p[:, 2:], axis=0), np.max(-p[:, :2] + tan * p[:, 2:], axis=0)

    def view_matrix(self) -> Floats:
        """World to eye coordinates, shape (4, 4), acting on columns."""
        m = np.eye(4)
        m[:3, :3] = self.axes
        m[:3, 3] = -self.axes @ self.eye
        return m

    def projection_matrix(self, aspect: float) -> Floats:
        """Eye to clip coordinates of OpenGL (depth -1 to 1), shape (4, 4); width over height is `aspect`."""
        near, far = self.distance / 50.0, self.distance * 50.0
        f = 1.0 / np.tan(np.radians(self.field_of_view) / 2)
        m = np.zeros((4, 4))
        m[0, 0], m[1, 1] = f / aspect, f
        # the picture's frame stays where the screen is, so that its plane has no parallax
        m[0, 2] = -f / aspect * self.aside / self.distance
        m[2, 2], m[2, 3] = (far + near) / (near - far), 2 * far * near / (near - far)
        m[3, 2] = -1.0
        return m

    def matrix(self, aspect: float) -> Floats:
        """World to clip coordinates, shape (4, 4)."""
        return self.projection_matrix(aspect) @ self.view_matrix()

    def project(self, points: ArrayLike, width: int, height: int) -> Floats:
        """Pixels (n, 2) of points (n, 3) [m]: x to the right, y downward from the upper left corner."""
        p = np.asarray(points, float).reshape(-1, 3)
        clip = np.column_stack([p, np.ones(len(p))]) @ self.matrix(width / height).T
        ndc = clip[:, :2] / clip[:, 3:]
        return np.column_stack([0.5 * (1 + ndc[:, 0]) * width, 0.5 * (1 - ndc[:, 1]) * height])
