"""A wall ready to run, and what there is to see of it."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.rigs import Rig, Start
from palpo.app.visual.picture import Picture, Shapes
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.slow_loop import SettingsLoop
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.snapshot import SceneState
from spring_wall.scene import SpringFloor, WallScene
from spring_wall.tick import floor_tick, make_floor


class WallPicture(Picture):
    """A plate, and the hand over it."""

    def __init__(self, spec: WallScene, port: Port) -> None:
        shapes = Shapes()
        shapes.add("wall", spec.corners, kind="plane", static=True)
        super().__init__(shapes, contacts=0)
        self._port, self._dt = port, spec.rates.dt

    def take_tool(self) -> int:
        """There is no tool."""
        return 0

    def publish(self, k: int, tick: int, counters: NDArray[np.int64]) -> None:
        """Hand over the plate and the hand."""
        at, force = self._port.position.copy(), self._port.force.copy()
        self.hand_over(
            SceneState(
                self.vertices, tick, tick * self._dt, device_point=at, held_point=at, hand_force=force,
                counters=counters,
            )
        )  # fmt: skip


class WallRig(Rig):
    """One scene for one run, a `palpo.app.runtime.rigs.Rig`."""

    def __init__(self, spec: WallScene, start: Start) -> None:
        self.spec = spec
        self.dt = spec.rates.dt
        self.held = np.array(spec.device.path[0][1:])
        self.floor = floor = make_floor()
        self._settings = SettingsLoop(
            floor.frames, floor.ticks, spec.rates.ratio, self.dt, spec.wall, self._write
        )
        self.lock = LockedLoops([self._settings], "none")
        self.serve(start, floor_tick.address, Handle(self.floor), floor.port)

    def _write(self, slot: int, wall: SpringFloor) -> None:
        self.floor.stiffness[slot], self.floor.height[slot] = wall.stiffness, wall.height

    @cached_property
    def visual(self) -> WallPicture:
        """What there is to see."""
        return WallPicture(self.spec, self.floor.port)

    @property
    def turn(self) -> NDArray[np.float64]:
        """A point does not turn."""
        return np.array([1.0, 0.0, 0.0, 0.0])

    def change(self, spec: WallScene) -> None:
        """Bring the wall to the values of `spec`."""
        super().change(spec)
        self._settings.values = spec.wall
