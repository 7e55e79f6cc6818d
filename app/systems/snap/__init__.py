"""Snap connectors: a plug in the hand that clicks into an elastic socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palpo.app.runtime.live import Live, around, hand_keys
from palpo.app.systems.system import ENGINE, PHYSICS, YIELDS, System
from palpo.config.schema.snap import SnapScene
from palpo.config.schema.solver import METHODS

if TYPE_CHECKING:
    from palpo.app.runtime.rigs import Rig, Start
    from palpo.app.visual.picture import Shapes


class Snap(System):
    """See System."""

    scene = SnapScene
    heading = "Connectors that click"
    ticks = (f"{YIELDS}.midpoint_modal", f"{YIELDS}.midpoint_held", f"{PHYSICS}.snap.servo")
    beside = ("palpo.physics.collision.field_contacts", f"{ENGINE}.dissipating")

    rehearsed = ("snap",)

    def make_rig(self, spec: SnapScene, start: Start) -> Rig:
        """See System."""
        from palpo.app.systems.snap.rig import SnapRig

        return SnapRig(spec, start)

    def live_keys(self, spec: SnapScene) -> list[Live]:
        """Friction and contact law, the gains of the admittance, and the solver."""
        from palpo.app.systems.snap.connector import gains_of

        contact, solver = spec.contact, spec.solver
        mass, damping, stiffness = gains_of(spec)
        return [
            Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
            Live("contact.restitution", "contact", "restitution", "", 0.0, 1.0, contact.restitution,
                 help="below 1, ringing contacts add energy"),
            Live("contact.correction", "contact", "correction", "", 0.0, 1.0, contact.correction,
                 help="share of a penetration that one step removes"),
            Live("contact.clusters", "contact", "contacts of a prong", "", 0, 32, contact.clusters,
                 help="at most, chosen by k-means; 0: every touching point"),
            Live("admittance.stiffness", "admittance", "stiffness K_ad", "N/m", 0.01 * stiffness,
                 10.0 * stiffness, stiffness, True,
                 help="mass and damping follow, unless the scene gives them", felt=True),
            Live("admittance.damping", "admittance", "damping D_ad", "N s/m", 0.0, 4.0 * damping + 1.0,
                 damping),
            around("admittance.mass", "admittance", "mass M_ad", "kg", mass),
            Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name,
                 choices=METHODS["snap"]),
            Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
            Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
            *hand_keys(spec),
        ]  # fmt: skip

    def held_name(self, spec: SnapScene) -> str:
        """See System."""
        return "plug"

    def add_shapes(self, spec: SnapScene, shapes: Shapes) -> None:
        """See System."""
        from palpo.app.systems.snap.connector import connector_of

        connector = connector_of(spec)
        for i, prong in enumerate(connector.prongs):
            skin = prong.mesh.surface().triangles
            shapes.add(f"prong {i + 1}", prong.mesh.nodes, skin, colour=spec.socket_colour)
        plug = connector.plug
        shapes.add("plug", plug.vertices + connector.rest_position, plug.triangles, colour=spec.plug_colour)


SYSTEM = Snap()
