"""The reduced interface: low steps when the servo gets a small model of the soft bodies (EQUATIONS.md, 1).

The low loop integrates the full bodies under the forces that the servo recorded, so that action equals
reaction over every period, and hands down their Galerkin model on the columns that L5 computes anyway.
"""

import numpy as np
from numpy.typing import NDArray

from physics.exchange.constraint_frame import REDUCED
from physics.exchange.handle import Handle
from physics.exchange.ring import ring_available, ring_release
from physics.reduction.interface_model import adopt, make_interface_state, replay, store
from physics.systems.high_rate import HighRate
from physics.systems.low_rate import LowRate
from physics.systems.reduced_frame import Tangent, linearise, write_reduced
from physics.systems.scene import Scene

LIFE = 2.5
"""Low periods that candidates must cover: a frame appears within one, serves for another; half in hand."""

LATEST = 1.5
"""Low periods that candidates allow a late step at most: longer lists would only make it later still."""


class Krylov(LowRate):
    """Low steps of the reduced interface."""

    kind = "krylov"

    def __init__(self, scene: Scene, high: HighRate) -> None:
        super().__init__(scene, high)
        self.shifts = [self.dt, self.DT]
        if scene.numbers.shifts == 3:
            self.shifts.append(float(np.sqrt(self.dt * self.DT)))
        self.frame = Handle(high.frame)
        self.model = Handle(make_interface_state(scene.capacity))
        self.log = Handle(high.log)
        self.tangents: list[Tangent] = []
        self.chosen, self.near = np.zeros(0, np.int32), 0
        self._released = self._begun = 0

    def begin(self) -> None:
        """L1 to L5: candidates for the frame's whole life, tangents, and A^-1 J^T at every shift."""
        with self.timed("L1 proximity"):
            self.read_tool()
            self.place_points(self.servo_tool())
            self.find_pairs(LIFE * self._period())
            self.chosen, self.near = self.choose_slots()
        with self.timed("L3-L5 tangent and columns"):
            self.tangents = [
                linearise(member, self.shifts, self._with_columns(local), self.pool)
                for member, (_, local) in zip(self.scene.members, self.member_slots(self.chosen), strict=True)
            ]

    def finish(self, until: int, present: int | None = None) -> None:
        """L6: the full bodies up to `until` under the servo's forces. L7: reduce, replay, publish."""
        with self.timed("L6 integrate"):
            points, forces = self.drain(until)
            self.integrate_members([t.factors[0] for t in self.tangents], points, forces)
            self.tick = until
        with self.timed("L7 reduce and publish"):
            chosen = self._with_loaded()
            f = self.open_frame(REDUCED, chosen, self.near)
            for low, (slots, local) in enumerate(self.member_slots(chosen)):
                limit = self.scene.capacity.modes
                write_reduced(
                    self.tangents[low],
                    self.high.frame,
                    f,
                    low,
                    slots,
                    local,
                    limit,
                    self.near,
                    self.dt,
                    self.pool,
                )
            self._bring_to_present(f, present)
            self.hand_over(f)

    def _period(self) -> float:
        """Low period [s], or the time since the last step began where the loop is late."""
        now = int(self.high.state.tick[self.tool_slot])
        late, self._begun = (now - self._begun) * self.dt, now
        return min(max(self.DT, late), LATEST * self.DT)

    def _with_columns(self, local: NDArray[np.intp]) -> NDArray[np.intp]:
        """The likeliest points of a member, as many as the basis has room for."""
        return local[: self.scene.numbers.max_columns // (3 * len(self.shifts))]

    def _with_loaded(self) -> NDArray[np.int32]:
        """The chosen slots, and those that the servo pressed on meanwhile: their forces must find a slot."""
        missing = np.setdiff1d(self.loaded, self.chosen).astype(np.int32)
        return np.concatenate([self.chosen[: self.scene.capacity.slots - len(missing)], missing])

    def _bring_to_present(self, f: int, present: int | None) -> None:
        """Replay on the frame the ticks up to `present`; the servo replays what comes after.

        In lock-step there is nothing to wait for: the servo replays all of them.
        """
        ring_release(self.high.log.ring, max(0, self.tick - self._released))
        self._released = self.present = self.tick
        if self.lock_step:
            return
        # ticks still being written are not in the log: its ring says how many are complete
        self.present = self.tick + int(ring_available(self.high.log.ring)) if present is None else present
        if self.present == self.tick:
            return
        adopt(self.frame, f, self.model)
        mask = len(self.high.log.tick) - 1
        for done in range(self.tick, self.present):
            replay(self.frame, f, self.model, self.log, done & mask, self.dt)
        store(self.frame, f, self.model, self.present)
