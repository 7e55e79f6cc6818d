"""What there is to see of a HapCo scene: both deformed surfaces, and the contacts between them.

The servo computes the boundary only, so that there is no strain of the elements to colour the bodies by.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.app.visual.frames import ServoFrames
from palpo.config.schema.hapco import HapcoScene
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.physics.systems.hapco.tick import QuasistaticServo


class HapcoVisual(ServoFrames):
    """Geometry of the two bodies, and the frames of the servo's pictures."""

    def __init__(
        self, spec: HapcoScene, bodies: tuple[QuasistaticBody, QuasistaticBody], servo: QuasistaticServo
    ) -> None:
        self._dt = spec.rates.dt
        drawables, first = [], 0
        for body, told in zip(bodies, (spec.mobile, spec.fixed), strict=True):
            n = body.surface_nodes.size
            drawables.append(
                Drawable(
                    body.name, "surface", first, n, body.slot[body.surface.triangles], 0.0, told.colour,
                    np.intersect1d(body.slot[body.clamped], np.arange(n)).astype(np.int32),
                )
            )  # fmt: skip
            first += n
        vertices = np.vstack([body.positions(body.surface_nodes) for body in bodies])
        self.geometry = make_geometry(drawables, vertices)
        super().__init__(vertices, servo.picture, servo.picture_control)
        self._surface = servo.surface

    def told(self, k: int, tick: int, counters: NDArray[np.int64]) -> SceneState:
        """The picture of slot k."""
        if self.picture.tick[k] >= 0:
            self.vertices[:] = self._surface[k]
        return self.contacts_and_hand(k, tick, self._dt, counters)
