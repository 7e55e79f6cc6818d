"""The slow loop of a suction scene: whole steps, and, where a hand holds a cup, a frame for the servo.

Where nobody holds a cup a step is `Suction.step`. A held cup's step is split where the hand's pose enters:

    prepare     collision, cavities, and the problem of a handle that stays, from rest and with its momentum;
                condensed and grouped (palpo.physics.systems.suction.condensed) it is the servo's frame
    complete    when the next step is due: the pose that the hand has then, the handle on its spring and
                damper, contacts, friction and gas laws of all rows, correction; the air is committed

so that the slow loop's bodies and the servo see the same hand at the end of every step.
"""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.engine.slow_loop import SlowLoop
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.frames import NEVER, PATIENCE_PERIODS
from palpo.physics.exchange.gains import Gains
from palpo.physics.numerics.math3 import quat_difference
from palpo.physics.systems.suction.condensed import (
    Floats,
    HeldProblem,
    couple,
    fewer_cavities,
    fill_frame,
    grouped,
)
from palpo.physics.systems.suction.drives import CupDrive, Lead
from palpo.physics.systems.suction.servo import SuctionServo
from palpo.physics.systems.suction.step import HISTORY, STAGES, Suction

SLOWEST_HZ = 20.0
"""To which a slow machine lowers the rate: a gripper lifts its plate in steps of up to 80 ms, and leaves it
in steps of 100 ms."""


class HandledCup:
    """The step of a suction scene whose cup number `cup` a hand holds.

    gains: of the coupling; None imposes the hand's pose.
    """

    def __init__(self, suction: Suction, cup: int, gains: Gains | None) -> None:
        self.suction, self.cup, self.gains = suction, cup, gains
        body = suction.cups[cup].body
        assert body.handle is not None
        self.body, self.handle = body, body.handle
        self.error = np.zeros(6)
        """From handle to hand at the start of the step [m], [rad]."""

    def prepare(self) -> HeldProblem:
        """Collision and cavities at the present state, and the problem with the handle's pose left open."""
        suction, h = self.suction, self.suction.h
        self.handle.stiffness[:] = 0.0
        self.handle.damping[:] = 0.0
        self.handle.load = np.zeros(6)
        self.handle.drive(self.handle.position, self.handle.orientation)
        velocities = [_velocity(side) for side in suction.sides], self.handle.velocity
        for side in suction.sides:
            _set_velocity(side, None)
        self.handle.velocity = np.zeros(6)
        suction.move_freely()
        rest = suction.free_motions()
        load = -self.body.holding_wrench(rest[self.cup], h)
        for side, velocity in zip(suction.sides, velocities[0], strict=True):
            _set_velocity(side, velocity)
        self.handle.velocity = velocities[1]
        suction.move_freely()
        motions = suction.free_motions()
        way = [moving - still for moving, still in zip(motions, rest, strict=True)]
        moving = -self.body.holding_wrench(motions[self.cup], h)
        suction.detect()
        suction.free = [*rest]
        w, b = suction.assemble()
        k, contacts, rows = suction.cavity_count, suction.contacts, suction.rows
        added = np.sum([rows.moved(motion, i, h) for i, motion in enumerate(way)], axis=0)
        twists = np.moveaxis(self.body.carried, 2, 0)
        carried = np.stack(
            [rows.moved(np.ascontiguousarray(twist), self.cup, 1.0) for twist in twists], axis=1
        )
        m = len(b)
        momentum, turned = added[:m], carried[:m]
        stiffness, load_momentum = _symmetric(self.body.handle_mass) / h**2, moving - load
        springs = rows.springs
        if springs.fields:
            grown = added[m:], carried[m:]
            more, pull, drawn = springs.held(*grown)
            momentum, turned = momentum - springs.passed_on(grown[0]), turned - springs.passed_on(grown[1])
            stiffness, load, load_momentum = stiffness + more, load + pull, load_momentum + drawn
        return HeldProblem(
            w=w,
            b=b,
            momentum=momentum,
            rows=turned,
            stiffness=stiffness,
            load=load,
            load_momentum=load_momentum,
            mu=contacts.mu[rows.solved],
            points=rows.places(),
            axes=contacts.frame[rows.solved],
            start=rows.remembered(),
            active=np.full(k, suction.gauge is not None),
            pressure=suction.pressure.copy(),
            amount=suction.supplied(),
            seeping=suction.seeping(),
            itself=rows.with_itself(),
        )

    def complete(self, target: Floats, target_q: Floats) -> None:
        """End the step with the hand at this pose: position (3,) [m], orientation (4,)."""
        suction, handle = self.suction, self.handle
        if self.gains is None:
            handle.drive(target, target_q)
        else:
            self._couple(target, target_q, self.gains)
        suction.move_freely()
        suction.settle()
        self.error = self.reach(target, target_q)

    def _couple(self, target: Floats, target_q: Floats, gains: Gains) -> None:
        handle = self.handle
        spring = np.repeat([gains.stiffness, gains.turn_stiffness], 3)
        damper = np.repeat([gains.damping, gains.turn_damping], 3)
        way = self.reach(target, target_q)
        handle.release()
        handle.stiffness, handle.damping = np.diag(spring), np.diag(damper)
        handle.load = spring * way + damper * (way - self.error) / self.suction.h

    def reach(self, target: Floats, target_q: Floats) -> Floats:
        """Twist (6,) from the handle's pose to this one [m], [rad]."""
        turn = np.empty(3)
        quat_difference(target_q, self.handle.orientation, turn)
        return np.concatenate([target - self.handle.position, turn])


def _velocity(side):
    return getattr(getattr(side, "body", None), "v", None)


def _set_velocity(side, velocity) -> None:
    body = getattr(side, "body", None)
    if body is not None:
        body.v = np.zeros_like(body.v) if velocity is None else velocity


def _symmetric(a: Floats) -> Floats:
    return 0.5 * (a + a.T)


class SuctionLoop(SlowLoop):
    """The slow loop of cups, of which the servo gets the one that is held.

    settings (1,) of VALUES of physics.exchange.suction_frame: of the next frame. drives: of all cups but the
    held one. gauge: pressure given over time [Pa]; None where the air is shut in. hand: the held cup's step,
    None where nobody holds one. lead: of a hand that leads the drives without holding a cup.
    """

    slowest_hz = SLOWEST_HZ

    def __init__(
        self, servo: SuctionServo, suction: Suction, drives: Sequence[CupDrive], hand: HandledCup | None,
        settings: NDArray[np.void], gauge: Callable[[float], float] | None = None, lead: Lead | None = None,
    ) -> None:  # fmt: skip
        dt, parts = float(servo.engine.step[0]), ("step", "frame") if hand else STAGES
        super().__init__(servo.frames, servo.ticks, round(suction.h / dt), dt, parts=parts)
        self.servo, self.suction, self.drives, self.hand = servo, suction, drives, hand
        self.settings, self.gauge, self.lead = settings, gauge, lead
        if hand is None:
            self.patience = NEVER, PATIENCE_PERIODS
        self.watch: Callable[[], None] = lambda: None
        """Called at the end of every step, while its contacts and cavities are still there."""
        frame = servo.cup.frame
        self._room = frame.mu.shape[1], frame.cavities.amount.shape[1]

    def _stretch(self) -> None:
        """Give the step that begins its length, that of the budget's period; a held cup's last one ends with
        its own. So the scene keeps to the servo's time.
        """
        self.settings["step"] = h = self.budget.period * self.dt
        self.suction.take_step(h)

    def make(self) -> int:
        """A whole step, or the rest of a held one and the first half of the next."""
        suction = self.suction
        if self.hand is None:
            self._stretch()
        until = suction.time + suction.h
        slot = int(acquire(self.servo.state_control)[0])
        calls = int(self.servo.state.calls[slot])
        if self.lead is not None and calls >= 0:
            self.lead.follow(self.servo.state.target[slot], suction.h)
        for drive in self.drives:
            drive.prepare(until)
        if self.gauge is not None:
            suction.gauge = self.gauge(until)
        if self.hand is None:
            if self.frame_id:
                suction.step()
                for name, spent in zip(STAGES, suction.times[(suction.steps - 1) % HISTORY], strict=True):
                    self.times.add(name, float(spent))
                self.watch()
        else:
            self._begin_held(self.hand, slot, known=calls >= 0)
        self.lost_slots = int(suction.contacts.count["lost"][0])
        return calls

    def _begin_held(self, hand: HandledCup, slot: int, known: bool) -> None:
        state, start = self.servo.state, perf_counter()
        origin = max(int(state.tick[slot]), 0)
        if self.frame_id and known:
            hand.complete(state.target[slot].copy(), state.target_q[slot].copy())
            self.watch()
        completed = perf_counter()
        self._stretch()
        held = hand.prepare()
        contacts, cavities = self._room
        part = grouped(fewer_cavities(held, cavities, float(self.settings["atmosphere"][0])), contacts)
        coupling = couple(held.stiffness, hand.gains, self.settings["step"][0], hand.error)
        frame, free = self.servo.cup.frame, self.slot
        fill_frame(frame, free, part, coupling, self.settings, origin)
        frame.position[free], frame.orientation[free] = hand.handle.position, hand.handle.orientation
        self.times.add("step", completed - start)
        self.times.add("frame", perf_counter() - completed)

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """The frame is as the step has made it; where nobody holds a cup it has settings alone."""
        if self.hand is None:
            self.servo.cup.frame.settings[slot] = self.settings[0]
        return self.tick if frame_tick is None else frame_tick

    def close(self) -> None:
        """End the worker threads."""
        self.suction.close()
