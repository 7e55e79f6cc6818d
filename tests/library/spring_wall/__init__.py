"""A system that Palpo does not come with, as small as one can be: a point in the hand on a spring wall.

All of it is this folder, and one line that names it: an entry point of the group `palpo.systems`,
`spring_wall = "spring_wall:SYSTEM"`. Its package is imported whenever scenes are read, so that what compiles
is imported by the methods that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palpo.app.runtime.live import Live, around, hand_keys
from palpo.app.systems.system import System
from spring_wall.scene import WallScene

if TYPE_CHECKING:
    from palpo.app.runtime.rigs import Rig, Start
    from palpo.app.visual.picture import Shapes


class SpringWall(System):
    """See System."""

    scene = WallScene
    heading = "Walls"
    ticks = ("spring_wall.tick",)

    def make_rig(self, spec: WallScene, start: Start) -> Rig:
        """See System."""
        from spring_wall.rig import WallRig

        return WallRig(spec, start)

    def live_keys(self, spec: WallScene) -> list[Live]:
        """See System."""
        return [around("wall.stiffness", "wall", "stiffness", "N/m", spec.wall.stiffness), *hand_keys(spec)]

    def held_name(self, spec: WallScene) -> str:
        """Nothing: a point has no shape."""
        return ""

    def add_shapes(self, spec: WallScene, shapes: Shapes) -> None:
        """See System."""
        shapes.add("wall", spec.corners, kind="plane", static=True)


SYSTEM = SpringWall()
