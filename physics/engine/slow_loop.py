"""A slow loop of a scene, whatever it brings to the servo.

    step          reads what the servo has told, and computes what a frame is made of
    publish       brings its own bodies, and with them the frame, up to a tick, and hands the frame over
    wants_step    whether a step should begin before it is due

What differs between scenes is what a step makes and what a frame holds: each publisher is a class of this
one, which says that in `make`, `follow` and `fill`: reduced models of bodies, offered contacts with their W,
followed tangents, a held cup, settings alone. The numbers, heads and ages of frames, their budget and how
late they may be stand here; who calls it with or without a clock are palpo.physics.engine.lock_step and the
threads of palpo.app.runtime.slow_thread.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import writer_slot
from palpo.physics.exchange.durations import StepTimes
from palpo.physics.exchange.frames import (
    LEAST,
    PATIENCE_PERIODS,
    TAKEN_CALL,
    TAKEN_ID,
    SlowFrames,
    hand_over,
    patience_of,
)
from palpo.physics.exchange.port import UNSET


class SlowLoop:
    """What all slow loops have in common; each is loop `number` of its scene's `frames`.

    ticks: (1,) of palpo.physics.engine.servo.TICKS, of the servo. ratio: its ticks of dt [s] in a period by
    the scene. parts: of a step, of which times are kept.
    """

    spares: tuple[str, ...] = ()
    """Fields of a Budget that its steps take less time with, beside the period."""
    slowest_hz = 0.0
    """Rate below which a machine that is late may not lower it: past that the scene runs in slow motion."""
    patience: tuple[float, int] | None = LEAST, PATIENCE_PERIODS
    """Seconds that the servo goes on with a frame at any rate, and periods; None where frames do not age."""
    each_tick = False
    """Whether it makes a step before every tick, without a clock only."""
    asks = False
    """Whether it may ever want a step before that is due."""
    ready_share = 0.0
    """Share of a step's time, in lock-step, between what its bodies have followed and its frame."""

    def __init__(
        self, frames: SlowFrames, ticks: NDArray[np.void], ratio: int, dt: float, number: int = 0,
        parts: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.frames, self.ticks, self.number = frames, ticks, number
        self.ratio, self.dt = ratio, dt
        self.budget = Budget(ratio)
        self.live = UNSET
        """What the operator has set for the device's side, as Port.live has it."""
        self.times = StepTimes(*parts)
        """Wall times of the named parts of its steps."""
        self.frame_id = 0
        """Of the last frame that was published; the next one's is one more."""
        self.tick = 0
        """Ticks whose forces its bodies contain."""
        self.frame_tick = 0
        """Ticks whose forces the last published frame contains."""
        self.lost_slots = 0
        """What found no room in the last step."""

    # ---- what a publisher says

    def make(self) -> int:
        """What a frame is made of, from the servo's newest state; calls of its tick behind that, or -1."""
        raise NotImplementedError

    def follow(self, tick: int) -> None:
        """The bodies of its own take the forces of the servo's ticks before that one."""

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """The frame into that slot, its bodies at `tick`; ticks whose forces it contains.

        frame_tick: up to which it is to be brought, where a publisher does that; None for as far as is known.
        """
        raise NotImplementedError

    def foresee(self) -> None:
        """What the next step needs of this one, begun when the frame is out."""

    def known(self) -> int:
        """Ticks whose forces are known by now."""
        return int(self.ticks["done"][0])

    def wants_step(self) -> bool:
        """Whether a step should begin before it is due; only between two steps."""
        return False

    def check(self) -> None:
        """Raise RuntimeError or FloatingPointError, in words, for a state that cannot go on."""

    def close(self) -> None:
        """End worker threads."""

    # ---- what is common

    def set_budget(self, budget: Budget) -> None:
        """What the next steps may cost; only between two of them."""
        self.budget = budget

    @property
    def slot(self) -> int:
        """That of the next frame, until it is published."""
        return int(writer_slot(self.frames.control[self.number]))

    def step(self) -> int:
        """Make a step; calls of the servo's tick that the state which it read had behind it, -1 for none."""
        return self.make()

    def publish(self, tick: int, frame_tick: int | None = None) -> None:
        """Hand over the frame of the last step: its bodies contain the forces of ticks before `tick`.

        frame_tick: see `fill`; the replay of a run in threads gives the one that was recorded.
        """
        self.follow(tick)
        self.tick = tick
        self.frame_tick = self.fill(self.slot, frame_tick)
        self.frame_id += 1
        told = (0, 0)
        if self.patience is not None:
            told = patience_of(self.budget.period, self.ratio, self.dt, *self.patience)
        hand_over(self.frames, self.number, self.frame_id, told, self.live)
        self.foresee()

    def taken_at(self) -> int:
        """Calls of the servo's tick before the one that took the last frame, -1 where none did so far."""
        taken = self.frames.taken[self.number]
        return int(taken[TAKEN_CALL]) if taken[TAKEN_ID] == self.frame_id else -1

    def in_force(self) -> bool:
        """Whether the servo has taken the last frame."""
        return bool(self.frames.taken[self.number, TAKEN_ID] == self.frame_id)

    @property
    def followed_from(self) -> int:
        """The first tick after which the servo's bodies are those of the frame in force."""
        return int(self.frames.in_force["adopted_at"][self.number]) + 1


class SettingsLoop(SlowLoop):
    """The slow loop of a servo that computes everything itself: it carries `values`.

    write(slot, values): puts them where the frame has them. lost: the servo's count of contacts that found no
    room.
    """

    patience = None

    def __init__(
        self, frames: SlowFrames, ticks: NDArray[np.void], ratio: int, dt: float, values: Any,
        write: Callable[[int, Any], None], lost: Callable[[], int] = lambda: 0,
    ) -> None:  # fmt: skip
        super().__init__(frames, ticks, ratio, dt)
        self.values = values
        self._write, self._count_lost, self._lost = write, lost, 0

    def make(self) -> int:
        """See SlowLoop: there is nothing to make, but to count what was lost."""
        lost = self._count_lost()
        self.lost_slots, self._lost = lost - self._lost, lost
        return self.known() or -1

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """See SlowLoop."""
        self._write(slot, self.values)
        return self.tick if frame_tick is None else frame_tick
