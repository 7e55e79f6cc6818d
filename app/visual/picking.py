"""Which shape is seen at a place of the picture."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import Drawable, SceneGeometry
from palpo.render.camera import Camera

Floats = NDArray[np.float64]

NEAR = 4.0
"""Pixels beside a thin line that still are it."""


def picked(
    geometry: SceneGeometry, vertices: Floats, camera: Camera, at: tuple[float, float], size: tuple[int, int]
) -> str:
    """Name of the foremost body with vertices (n, 3) [m] at a place of the picture; empty without one.

    at: right and down, in shares of the picture. size: its width and height [pixels]. Planes are ground.
    """
    pixels = size[1] / camera.height(1.0)
    depth = (camera.eye - vertices) @ camera.axes[2]
    places = camera.project(vertices, *size) - np.multiply(at, size)
    nearness = {
        shape.name: (_of_tube if shape.kind == "tube" else _of_surface)(
            shape, places[shape.span], depth[shape.span], pixels
        )
        for shape in geometry.drawables
        if shape.kind != "plane"
    }
    name = max(nearness, key=lambda name: nearness[name], default="")
    return name if name and nearness[name] > 0.0 else ""


def _of_surface(shape: Drawable, places: Floats, depth: Floats, _: float) -> float:
    """One over the depth [1/m] of a surface's foremost triangle at the origin of places (n, 2); 0 without."""
    corners, far = places[shape.triangles], depth[shape.triangles]
    ends = np.roll(corners, -1, axis=1)
    # twice the areas that the origin makes with the sides; that with a side belongs to the corner before it
    parts = corners[..., 0] * ends[..., 1] - corners[..., 1] * ends[..., 0]
    inside = ((parts >= 0.0).all(axis=1) | (parts <= 0.0).all(axis=1)) & (far > 0.0).all(axis=1)
    inside &= parts.any(axis=1)
    if not inside.any():
        return 0.0
    weights = np.roll(parts[inside], -1, axis=1)
    # what is linear in the picture is one over the depth
    return float(((weights / far[inside]).sum(axis=1) / weights.sum(axis=1)).max())


def _of_tube(shape: Drawable, places: Floats, depth: Floats, pixels: float) -> float:
    """The same of a tube, from the nearest points of its middle; pixels: of a metre at a metre's depth."""
    first, way = places[:-1], np.diff(places, axis=0)
    share = -(first * way).sum(axis=1) / np.maximum((way**2).sum(axis=1), 1e-12)
    share = np.clip(share, 0.0, 1.0)
    off = np.linalg.norm(first + share[:, None] * way, axis=1)
    far = depth[:-1] + share * np.diff(depth)
    hit = (far > 0.0) & (off <= np.maximum(NEAR, shape.radius * pixels / np.maximum(far, 1e-12)))
    return float((1.0 / far[hit]).max()) if hit.any() else 0.0
