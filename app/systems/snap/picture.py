"""What there is to see of a snap scene: the socket, coloured by deflection or strain, the plug, and contacts.

The servo publishes coordinates; the nodes are found from them here, by whoever looks.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.history import History
from palpo.app.visual.colours import SMALLEST_STRAIN, colour_range
from palpo.app.visual.picture import ServoPicture, Shapes
from palpo.app.visual.solids import rotate
from palpo.config.schema.snap import SnapScene
from palpo.physics.exchange.snapshot import DEFLECTION, STRAIN, Ints, SceneState
from palpo.physics.fem.strain import NodalStrain
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.servo import SnapLink

SMALLEST_DEFLECTION = 0.1
"""A colour bar never ends below it, so that a socket at rest looks it [mm]."""

FELT = 1e-6
"""Force below which there is no arrow: what is left of a vibration that has died away [N]."""

ENERGY = {"kinetic": "kinetic", "elastic": "elastic", "coupling": "coupling", "plug and hold": "plug"}
"""Energies that are plotted, by their name in the picture."""


class SnapVisual(ServoPicture):
    """Geometry of prongs and plug, and the frames of the servo's pictures; keeps the energies and forces."""

    def __init__(self, spec: SnapScene, model: SnapModel, side: SnapLink) -> None:
        self.model = model
        self._rail = spec.admittance.rail is not None
        connector, shapes = model.connector, Shapes()
        for i, part in enumerate(connector.prongs):
            name = "socket" if len(connector.prongs) == 1 else f"prong {i + 1}"
            skin = part.mesh.surface().triangles
            clamped = np.intersect1d(part.clamped, skin).astype(np.int32)
            shapes.add(name, part.mesh.nodes, skin, colour=spec.socket_colour, fixed=clamped)
        self._plug = connector.plug.vertices
        shapes.add(
            "plug", self._plug + connector.rest_position, connector.plug.triangles, colour=spec.plug_colour
        )
        self._parts = [drawable.span for drawable in shapes.drawables]
        super().__init__(shapes, side.picture, side.picture_control, spec.rates.dt)
        self._more = side.more
        self._scalar = np.full(len(self.vertices), np.nan)
        self._upper = [SMALLEST_STRAIN, SMALLEST_DEFLECTION]
        self._gauges = [NodalStrain(part.mesh) for part in connector.prongs]
        self._bears, self._strain = spec.strain_limit, np.zeros(len(self.vertices))
        for self.strain in (True, False):  # compiled before the loop starts
            self._measure()
        self._kept = -1
        self.energy = History(tuple(ENERGY))
        self.force = History(("floor", "contact", "hold"))

    def told(self, k: int, tick: int, counters: Ints) -> SceneState:
        """The picture of slot k; its energies and forces are kept."""
        started = self.picture.tick[k] >= 0
        if started:
            self._move(k)
            self._keep(k, tick)
        self._measure()
        state = self.contacts_and_hand(k, tick, counters)
        if started:
            state.hand_force = self._felt(k)
        state.strained = self._strained()
        state.scalar, state.scalar_kind = self._scalar, STRAIN if self.strain else DEFLECTION
        state.scalar_range = np.array([0.0, self._upper[0 if self.strain else 1]])
        return state

    def _keep(self, k: int, tick: int) -> None:
        """Energies [mJ] and forces [N] of a tick that was not looked at before, for the plots."""
        if tick == self._kept:
            return
        self._kept = tick
        more, along = self._more, self.model.connector.push
        self.energy.add(tick * self.dt, [1e3 * more.energy[k][name] for name in ENERGY.values()])
        forces = (more.floor[k], -self.picture.force[k], -more.hand[k, :3])
        self.force.add(tick * self.dt, [float(f @ along) for f in forces])

    def _felt(self, k: int) -> NDArray[np.float64]:
        """Force on the hand [N], NaN where there is none to speak of."""
        force, along = self._more.hand[k, :3], self.model.connector.push
        if self._rail:
            force = force @ along * along
        return force if np.abs(force).max() > FELT else np.full(3, np.nan)

    def _move(self, k: int) -> None:
        """Bring all vertices to the picture of slot k."""
        for span, nodes in zip(self._parts, self.model.positions(self._more.coordinates[k]), strict=False):
            self.vertices[span] = nodes
        turned = rotate(self.picture.orientation[k], self._plug)
        self.vertices[self._parts[-1]] = self.picture.position[k] + turned

    def _strained(self) -> float:
        """Largest strain over the limit; NaN without one."""
        if self._bears is None:
            return np.nan
        for gauge, span in zip(self._gauges, self._parts, strict=False):
            gauge.evaluate(self.vertices[span], self._strain[span])
        return float(self._strain.max()) / self._bears

    def _measure(self) -> None:
        """Strain [-] or deflection [mm] of the prongs as they are."""
        for gauge, span in zip(self._gauges, self._parts, strict=False):
            if self.strain:
                gauge.evaluate(self.vertices[span], self._scalar[span])
            else:
                moved = self.vertices[span] - self.geometry.rest[span]
                self._scalar[span] = 1e3 * np.linalg.norm(moved, axis=1)
        k = 0 if self.strain else 1
        self._upper[k] = colour_range(self._upper[k], self._scalar, (SMALLEST_STRAIN, SMALLEST_DEFLECTION)[k])
