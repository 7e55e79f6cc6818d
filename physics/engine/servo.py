"""One tick of the servo, of any scene.

    wait        while a frame is overdue by far, the scene's time stands still (exchange.frames)
    settings    what an operator has changed
    aim         each device's pose becomes what its hand wants
    adopt       the newest frames of slow loops
    steps       of the engine (palpo.physics.engine.tick), along which the hands go evenly
    feedback    what each hand felt, in the mean of the steps
    publish     states, logs and pictures

What differs between scenes stands in tables: bodies, detectors, joints and solvers in the engine's, hands in
`grips` (palpo.physics.engine.grip), who brings and takes in `link` (palpo.physics.contract.links). The tick
allocates nothing, asks nothing of the interpreter and reports by its status.
"""

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.contract.links import ASTRAY, BOOK, FRAME, LOST, SETTINGS, TELL, call_link
from palpo.physics.contract.stages import DONE, make_hand
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.grip import Grip, add_felt, felt_by, lead, make_grip, pose, tell_device
from palpo.physics.engine.table import Engine
from palpo.physics.engine.tick import step
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.frames import SlowFrames, make_frames, wait, waits
from palpo.physics.exchange.handle import Handle, HandleType, handle_for, handle_like, of_process
from palpo.physics.exchange.port import (
    CONTACTS_LOST,
    FELT_BITS,
    NOT_FINITE,
    OK,
    SHAPE_LOST,
    WAITING,
    Port,
    end_tick,
    make_port,
)
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import callback, inlined, kernel

TICKS = np.dtype([("done", np.int64), ("steps", np.int64), ("calls", np.int64)])
"""Ticks done; steps of the engine in a tick; calls, those in which the scene waited included."""


@of_process("grips", "link", "link_state")
class TickState(NamedTuple):
    """Everything that a tick reads and writes. Of hands the first stands beside the table, for its layout."""

    port: Port  # of the first hand's device; its status is the scene's
    ticks: NDArray[np.void]  # (1,) of TICKS
    frames: SlowFrames  # of the slow loops
    engine: Engine
    grip: Grip
    grips: NDArray[np.int64]  # (g,) addresses
    link: NDArray[np.int64]  # (l,) addresses
    link_state: NDArray[np.int64]  # (l,)


def make_ticks(steps: int = 1) -> NDArray[np.void]:
    """(1,) of TICKS before the first, of so many steps each; InputError for less than one."""
    if steps < 1:
        raise InputError(f"a tick of {steps} steps: there must be at least one.")
    ticks = np.zeros(1, TICKS)
    ticks["steps"] = steps
    return ticks


def make_servo(
    engine: Engine,
    grips: Sequence[Grip],
    links: Sequence[Bound] = (),
    ticks: NDArray[np.void] | None = None,
    frames: SlowFrames | None = None,
    kept: Sequence[object] = (),
) -> TickState:
    """The state of an engine's ticks.

    ticks: `make_ticks`, frames: `make_frames` of all slow loops, if links know them already.
    kept: what else has addresses in the engine, and lives as long as the ticks' state.
    """
    hands = [Handle(grip) for grip in grips]
    servo = TickState(
        port=grips[0].port,
        ticks=make_ticks() if ticks is None else ticks,
        frames=make_frames() if frames is None else frames,
        engine=engine,
        grip=grips[0],
        grips=np.array([hand.address for hand in hands], np.int64),
        link=np.array([link.unit.address for link in links], np.int64),
        link_state=np.array([link.handle.address for link in links], np.int64),
    )
    # what the addresses point to lives as long as the servo, by an array that no link has
    weakref.finalize(servo.grips, _release, (hands, tuple(links), tuple(kept))).atexit = False
    return servo


def _release(kept: object) -> None:
    """Nothing to do: the reference goes."""


@inlined
def _grip_of(s, g):
    return handle_like(s.grip, s.grips[g])


@kernel
def ask_links(s, stage):
    """A stage of all links; DONE, or NOT_FINITE."""
    for k in range(s.link.shape[0]):
        if call_link(s.link[k], stage, s.link_state[k], s.engine.step[0]) != DONE:
            return NOT_FINITE
    return DONE


@kernel
def _age(s):
    """Age [ticks] of the frame that is oldest by its loop's own measure, that one's stretch, and its wait."""
    worst, stretch, waited, seen = 0, 0, 0, False
    for k in range(s.frames.in_force.shape[0]):
        one = s.frames.in_force[k]
        if one.patience == 0:  # settings alone
            continue
        age = s.ticks[0].done - one.adopted_at
        if not seen or age - one.stretch > worst - stretch:
            worst, stretch, seen = age, one.stretch, True
        waited = max(waited, one.waited)
    s.port.status[0].stretch = stretch
    return worst + waited


@kernel
def _stands_still(s):
    """WAITING if a frame is overdue by far, which is counted; SHAPE_LOST too if a model has gone astray."""
    flags = 0
    for k in range(s.link.shape[0]):
        if call_link(s.link[k], ASTRAY, s.link_state[k], s.engine.step[0]) == LOST:
            flags = WAITING | SHAPE_LOST
    for k in range(s.frames.in_force.shape[0]):
        if waits(s.frames, k, s.ticks[0].done):
            flags |= WAITING
    return flags


@kernel
def aim(s):
    """Each device's pose becomes what its hand wants."""
    for g in range(s.grips.shape[0]):
        pose(_grip_of(s, g), s.ticks[0].done == 0, s.ticks[0].steps)


@kernel
def lead_hands(s, last):
    """The hands go on to the end of the next step."""
    for g in range(s.grips.shape[0]):
        lead(_grip_of(s, g), last)


@kernel
def steps(s):
    """The steps of a tick, and what each adds to what is told of it; DONE or NOT_FINITE."""
    e, status, info, n = s.engine, s.port.status[0], s.port.info[0], s.ticks[0].steps
    told, lost = e.solver.told[0], e.count[0].lost
    status.sweeps = status.flags = 0
    info.residual = 0.0
    for k in range(n):
        lead_hands(s, k + 1 == n)
        if step(e) != DONE or ask_links(s, BOOK) != DONE:
            return NOT_FINITE
        for g in range(s.grips.shape[0]):
            add_felt(_grip_of(s, g), n)
        status.sweeps += e.count[0].sweeps
        status.flags |= told.flags
        info.residual = max(info.residual, told.residual)
    if e.count[0].lost > lost:
        status.flags |= CONTACTS_LOST
    return DONE


@kernel
def feedback(s):
    """What each hand felt, to its device, and the numbers that go with it; DONE or NOT_FINITE."""
    e, status, well, active = s.engine, s.port.status[0], True, 0
    first, found = e.joints.what.shape[0], e.contacts.count[0].found
    status.felt = 0
    for g in range(s.grips.shape[0]):
        well = tell_device(_grip_of(s, g)) and well
        status.felt |= felt_by(e, _grip_of(s, g)) << (FELT_BITS * g)
    for k in range(found):
        active += e.r[3 * (first + k)] > 0.0
    status.contacts, status.rows = active, 3 * (first + found)
    return DONE if well else NOT_FINITE


@kernel
def tick(s):
    """One tick. Returns OK or NOT_FINITE; forces and moments are on the hands' ports."""
    s.ticks[0].calls += 1
    flags = _stands_still(s)
    if flags != 0:
        return wait(s.port, _age(s), flags)
    if not (_begin(s) and steps(s) == DONE and feedback(s) == DONE):
        return end_tick(s.port, NOT_FINITE, s.port.status[0].age)
    age = _age(s)
    s.ticks[0].done += 1
    return end_tick(s.port, OK if ask_links(s, TELL) == DONE else NOT_FINITE, age)


@kernel
def _begin(s):
    """What comes from outside: settings, poses, frames; False where one is not finite."""
    if ask_links(s, SETTINGS) != DONE:
        return False
    aim(s)
    s.port.status[0].replayed = 0
    if ask_links(s, FRAME) != DONE:
        return False
    if s.frames.in_force.shape[0] > 0:
        head, live = s.frames.head[0, reader_slot(s.frames.control[0])], s.port.live[0]
        live.force_scale, live.max_force, live.left = head.force_scale, head.max_force, head.left
        s.port.status[0].frame = s.frames.in_force[0].frame
    return True


@kernel
def run_ticks(s, n):
    """n ticks in a row with the ports as they stand; the first status that is not OK."""
    for _ in range(n):
        status = tick(s)
        if status != OK:
            return status
    return OK


def _smallest() -> TickState:
    """A point of the world in a hand."""
    hand = make_hand()
    built = make_engine([FIXED.bind(make_fixed(np.zeros((1, 3))))], [], 1, 1.0, hands={0: hand})
    return make_servo(built.engine, [make_grip(make_port(), hand, built.batches[0])])


_CONTENT = typeof(_smallest())


@callback(types.int32(HandleType(_CONTENT)))
def servo_tick(state):
    """`int32 f(void *)`: one tick of the TickState behind the handle; its status."""
    return tick(state)


def tick_data(servo: TickState) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(servo, _CONTENT, "servo")
