"""What there is to see of a HapCo scene: both deformed surfaces, and the contacts between them.

The servo computes the boundary only, so that there is no strain of the elements to colour the bodies by.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.app.visual.picture import ServoPicture, Shapes
from palpo.config.schema.hapco import HapcoScene
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.exchange.snapshot import SceneState
from palpo.physics.systems.hapco.tick import QuasistaticServo


class HapcoVisual(ServoPicture):
    """Geometry of the two bodies, and the servo's pictures."""

    def __init__(
        self, spec: HapcoScene, bodies: tuple[QuasistaticBody, QuasistaticBody], servo: QuasistaticServo
    ) -> None:
        shapes = Shapes()
        for body, told in zip(bodies, (spec.mobile, spec.fixed), strict=True):
            nodes = body.surface_nodes
            shapes.add(
                body.name, body.positions(nodes), body.slot[body.surface.triangles], colour=told.colour,
                fixed=np.intersect1d(body.slot[body.clamped], np.arange(nodes.size)).astype(np.int32),
            )  # fmt: skip
        super().__init__(shapes, servo.picture, servo.picture_control, spec.rates.dt)
        self._surface = servo.surface

    def told(self, k: int, tick: int, counters: NDArray[np.int64]) -> SceneState:
        """The picture of slot k."""
        if self.picture.tick[k] >= 0:
            self.vertices[:] = self._surface[k]
        return self.contacts_and_hand(k, tick, counters)
