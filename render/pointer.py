"""How a pointer moves and turns a point of the scene, in the picture's own terms: no window, no OpenGL.

Pixels count from the upper left corner, x to the right and y downward, as `Camera.project` gives them.
The trackball is G. Bell's: the ball continues as a hyperbola of revolution, so that there is no edge at which
the turn jumps (Henriksen, Sporring and Hornbaek, Virtual trackballs revisited, IEEE TVCG 10, 2004).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.render.camera import Camera

Floats = NDArray[np.float64]

BALL = 0.4
"""Radius of the trackball in heights of the picture."""


def slide(camera: Camera, point: ArrayLike, dx: float, dy: float, height: int) -> Floats:
    """The point (3,) [m] moved in the plane that faces the camera so that its pixel moves by (dx, dy)."""
    point = np.asarray(point, float)
    pixel = camera.height(camera.depth(point)) / height
    return point + pixel * (dx * camera.axes[0] - dy * camera.axes[1])


def recede(camera: Camera, point: ArrayLike, heights: float) -> Floats:
    """The point (3,) [m] moved away from the eye along its own line of sight: its pixel stays.

    `heights` is the way in heights of the picture as seen where the point is at each moment. The depth thus
    changes by a factor: there and back returns exactly, and no way leads behind the eye.
    """
    factor = np.exp(camera.height(1.0) * heights)
    return camera.eye + factor * (np.asarray(point, float) - camera.eye)


def trackball(
    camera: Camera, centre: ArrayLike, start: ArrayLike, end: ArrayLike, width: int, height: int
) -> Floats:
    """Unit quaternion (4,) that a drag from pixel `start` to `end` gives to a ball seen at `centre` (3,) [m].

    On the ball, the point under the pointer goes with it; far outside, it rolls about the line of sight.
    """
    middle = camera.project(centre, width, height)[0]
    a, b = (_on_ball((np.asarray(pixel, float) - middle) / (BALL * height)) for pixel in (start, end))
    turn = np.append(1.0 + a @ b, np.cross(a, b) @ camera.axes)
    return turn / np.linalg.norm(turn)


def _on_ball(at: Floats) -> Floats:
    """Unit vector (right, up, backward) from the centre to the ball's point at (x, y) radii, y downward."""
    r2 = float(at @ at)
    towards_eye = np.sqrt(1.0 - r2) if r2 < 0.5 else 0.5 / np.sqrt(r2)
    v = np.array([at[0], -at[1], towards_eye])
    return v / np.linalg.norm(v)


def compose(p: ArrayLike, q: ArrayLike) -> Floats:
    """Unit quaternion (4,) of the turn q followed by the turn p."""
    (a, *u), (b, *v) = np.asarray(p, float), np.asarray(q, float)
    product = np.array([a * b - np.dot(u, v), *(a * np.array(v) + b * np.array(u) + np.cross(u, v))])
    return product / np.linalg.norm(product)
