"""Lines of sight of a camera, for tests of what the mouse points at."""

import numpy as np

from palpo.render.camera import Camera


def ray(camera: Camera, x: float, y: float, width: int, height: int):
    """Unit direction (3,) from the eye through pixel (x, y) of a picture of that size."""
    tan = np.tan(np.radians(camera.field_of_view) / 2)
    local = np.array([(2 * x / width - 1) * tan * width / height, (1 - 2 * y / height) * tan, -1.0])
    d = local @ camera.axes
    return d / np.linalg.norm(d)
