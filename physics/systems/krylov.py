"""The reduced interface: low steps when the servo gets a small model of the soft bodies (EQUATIONS.md, 1).

The full bodies follow the forces that the servo recorded, so that action equals reaction over every period:
the low loop replays them on its own copy of the model that the servo had, and sets the full bodies to it.
Then it hands down their next Galerkin model, on the columns that L5 computes anyway.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.constraint_frame import REDUCED
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.ring import ring_available, ring_release
from palpo.physics.reduction.interface_model import adopt, make_interface_state, replay_ticks, store
from palpo.physics.systems.high_rate import HighRate
from palpo.physics.systems.low_rate import LowRate
from palpo.physics.systems.reduced_frame import Page
from palpo.physics.systems.reductions import make_reduction
from palpo.physics.systems.scene import Scene

LIFE = 2.5
"""Low periods that candidates must cover: a frame appears within one, serves for another; half in hand."""

LATEST = 1.5
"""Low periods that candidates allow a late step at most: longer lists would only make it later still."""

TAIL = 4
"""Ticks at the end of a period that the full bodies integrate themselves: what the model misses is mostly of
high frequency, and begins to settle there."""


SPANNED = {1: [1], 2: [0, 1], 3: [0, 1, 2]}
"""By the number of shifts, which of the steps dt, DT and sqrt(dt DT) the basis has columns at. What a step
of dt alone would add is local: the slots' own compliance stands for it (`reduced_frame.write_modes`)."""


class Krylov(LowRate):
    """Low steps of the reduced interface."""

    kind = "krylov"
    spares: tuple[str, ...] = ("columns", "contacts")
    least_patience = 0.2

    def __init__(self, scene: Scene, high: HighRate) -> None:
        super().__init__(scene, high)
        self.frame = Handle(high.frame)
        self.state = make_interface_state(scene.capacity)
        self.model = Handle(self.state)
        self.log = Handle(high.log)
        self.reductions = [
            make_reduction(member, self._shifts(), SPANNED[scene.numbers.shifts], scene.numbers.max_columns)
            for member in scene.members
        ]
        self.chosen, self.near = np.zeros(0, np.int32), 0
        self._published = -1
        """Slot of the frame that `state` belongs to, at tick `present`; it is not written before the next."""
        self._released = self._begun = 0

    def _shifts(self) -> list[float]:
        """Step sizes [s] of the columns: servo, low period, and their geometric mean if there are three."""
        mean = [float(np.sqrt(self.dt * self.DT))] if self.scene.numbers.shifts == 3 else []
        return [self.dt, self.DT, *mean]

    def set_budget(self, budget: Budget) -> None:
        """Shifts and columns of the next models."""
        super().set_budget(budget)
        columns = int(budget.columns * self.scene.numbers.max_columns)
        for reduction in self.reductions:
            reduction.afford(self._shifts(), columns)

    def begin(self) -> None:
        """L1 to L5: candidates for the frame's whole life, tangents, and A^-1 J^T at every shift."""
        with self.timed("L1 proximity"):
            self.read_tool()
            self.place_points(self.servo_tool())
            self.find_pairs(LIFE * self._period())
            self.chosen, self.near = self.choose_slots()
        with self.timed("L3-L5 tangent and columns"):
            for reduction, (_, local) in zip(self.reductions, self.member_slots(self.chosen), strict=True):
                reduction.prepare(local, self.pool)

    def finish(self, until: int, present: int | None = None) -> None:
        """L6: the full bodies up to `until` under the servo's forces. L7: reduce, replay, publish."""
        with self.timed("L6 follow"):
            self._follow(until)
        with self.timed("L7 reduce and publish"):
            chosen = self._with_loaded()
            f = self.open_frame(REDUCED, chosen, self.near)
            for low, (slots, local) in enumerate(self.member_slots(chosen)):
                limit = self.scene.capacity.modes
                page = Page(self.high.frame, f, low, slots, local, self.near, self.dt, limit)
                self.reductions[low].write(page, self.pool)
            self._bring_to_present(f, present)
            if self.drawn.wanted:
                self.drawn.keep(self.frame_id, tuple(reduction.drawn() for reduction in self.reductions))
            self.hand_over(f)

    def _follow(self, until: int) -> None:
        """The full bodies up to `until`: the model but for the last ticks, which they make themselves."""
        if until > self.tick:
            start = max(self.present, until - TAIL)
            replay_ticks(self.frame, self._published, self.model, self.log, self.present, start, self.dt)
            points, forces = self.drain(until)
            heard = self.high.frame.slot_of[self._published, points] >= 0
            for low, (member, reduction) in enumerate(zip(self.scene.members, self.reductions, strict=True)):
                own = np.flatnonzero((points >= member.first) & (points < member.first + member.count))
                local = points[own].astype(np.intp) - member.first
                reduction.follow(self.state, low, forces[:, own], local, heard[own], until - start)
            self.loaded = points.astype(np.intp)
            if self.invalid():
                raise FloatingPointError(f"the state of body {self.invalid()!r} is no longer finite")
        self.tick = until

    def _period(self) -> float:
        """The scene's low period [s], or the time since the last step began where the loop is late."""
        now = int(self.high.state.tick[self.tool_slot])
        late, self._begun = (now - self._begun) * self.dt, now
        own = self.scene.numbers.low_dt
        return min(max(own, late), LATEST * own)

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
        if not self.lock_step:
            # ticks still being written are not in the log: its ring says how many are complete
            self.present = self.tick + int(ring_available(self.high.log.ring)) if present is None else present
        self._published = f
        adopt(self.frame, f, self.model)
        if self.present > self.tick:
            replay_ticks(self.frame, f, self.model, self.log, self.tick, self.present, self.dt)
            store(self.frame, f, self.model, self.present)
