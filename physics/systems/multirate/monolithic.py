"""The reference of the method: every body at the servo's rate, detection at every tick, no latency.

A low step here is one tick: its frame holds the exact free motion and compliance at dt, the tick solves, and
the bodies take the tick's forces.
"""

from collections.abc import Sequence

import numpy as np

from palpo.physics.exchange.constraint_frame import EXACT
from palpo.physics.systems.multirate.held_frame import Motion, free_motions, write_held
from palpo.physics.systems.multirate.high_state import HighRate, Link
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.scene import Loop, Scene


class Monolithic(LowRate):
    """A step before every tick."""

    kind = "monolithic"
    each_tick = True

    def __init__(self, scene: Scene, high: HighRate, link: Link, loops: Sequence[Loop], own: int = 0) -> None:
        super().__init__(scene, high, link, loops, own)
        self._motions: list[Motion] = []
        self._chosen = np.zeros(0, np.int32)

    def make(self) -> int:
        """L7 of the tick before; detection and free motion at dt; the frame is visible at once."""
        self.follow(self.known())
        with self.timed("L1 proximity"):
            self.read_tool()
            self.find_cavities()
            self.place_points(self.servo_tool())
            self.find_pairs(2.0 * self.dt)
            chosen, near = self.choose_slots()
            self._chosen = chosen[:near]
        with self.timed("L3 free motion"):
            self._motions = [
                m[0] for m in self.pool.map(lambda m: free_motions(m, (self.dt,)), self.scene.members)
            ]
        return self.calls()

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """L4 and L5: exact violation and compliance of the chosen slots."""
        with self.timed("L4-L5 violation and compliance"):
            f = self.open_frame(EXACT, self._chosen, len(self._chosen))
            for low, (slots, local) in enumerate(self.member_slots(self._chosen)):
                write_held(self.link.frame, f, low, self._motions[low], slots, local)
            self.bound_speed(f)
        return self.tick

    def follow(self, tick: int) -> None:
        """L7: the bodies take the forces of the tick that has just been made, if they have not yet."""
        if tick == self.tick:
            return
        with self.timed("L7 correct"):
            points, forces = self.drain(tick)
            for motion in self._motions:
                member = motion.member
                own = np.flatnonzero((points >= member.first) & (points < member.first + member.count))
                load = member.body.applied(points[own].astype(np.intp) - member.first, forces[0, own])
                member.body.advance(motion.corrected(load), self.dt)
            self.release(tick - self.tick)
            self.tick = tick
            self.loaded = points.astype(np.intp)
