"""When the slow steps of a recorded run in threads began, and when the servo adopted their frames."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import Recording
from palpo.physics.exchange.budget import Budget

SLOWEST = 1e5
"""Most ticks of a slow step that a recording may tell: more than any scene has."""


class LowStep(NamedTuple):
    """A slow step as it was made."""

    loop: int
    frame: int
    begin: int
    """Ticks that the servo had done in the state that it began with."""
    tick: int
    """Ticks whose forces the bodies contain."""
    frame_tick: int
    """Ticks whose forces the frame contains."""
    budget: Budget
    adopted: int
    """Ticks that the servo had done when it adopted the frame; -1 where it did not."""


class Event(NamedTuple):
    """A half of a slow step, due before that tick."""

    tick: int
    step: LowStep
    ends: bool


def steps_of(recording: Recording, ratios: Sequence[int]) -> list[list[LowStep]]:
    """The steps of each slow loop; ratios: their periods by the scene [ticks].

    With one loop the servo's own rows tell when its frames were adopted.
    """
    told = recording.low_steps
    steps: list[list[LowStep]] = [[] for _ in ratios]
    n = len(told["frame"])
    loops = told.within("loop", 0, len(ratios) - 1).astype(int).tolist() if "loop" in told else [0] * n
    if "adopted_tick" in told:
        adopted = told["adopted_tick"].astype(int).tolist()
    else:
        ids, first = np.unique(recording.columns["frame"], return_index=True)
        seen = dict(zip(ids.tolist(), first.tolist(), strict=True))
        adopted = [seen.get(frame, -1) for frame in told["frame"].tolist()]
    columns = (told[k].astype(int).tolist() for k in ("frame", "begin_tick", "until_tick", "present_tick"))
    for loop, frame, begin, tick, frame_tick, budget, at in zip(
        loops, *columns, _budgets(recording, loops, ratios), adopted, strict=True
    ):
        steps[loop].append(LowStep(loop, frame, begin, tick, frame_tick, budget, at))
    for own in steps:
        _check_order(told.path, own)
    return steps


def _check_order(path: str | Path, steps: Sequence[LowStep]) -> None:
    """Raise HapticsError unless a loop can have made these steps as they are told, one after the other."""
    frame, tick = 0, 0
    for number, step in enumerate(steps):
        # the first frame is made before the run
        early = step.frame <= frame or step.tick < tick or 0 <= step.adopted < max(step.tick, step.begin)
        if early or (number == 0 and step.tick > 0):
            raise HapticsError(
                f"{path}: its slow steps are out of order at row {number}, so it cannot be repeated"
            )
        frame, tick = step.frame, step.tick


def _budgets(recording: Recording, loops: Sequence[int], ratios: Sequence[int]) -> list[Budget]:
    """What each slow step was allowed to cost; those of earlier versions had the scene's own rate."""
    steps = recording.low_steps
    if "period_ticks" not in steps:
        return [Budget(ratios[loop]) for loop in loops]
    shares = (steps.within(f"{part}_share", 0, 1) for part in ("columns", "contacts"))
    columns = (steps.within("period_ticks", 1, SLOWEST), *shares)
    return [Budget(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def in_order(steps: Sequence[Sequence[LowStep]]) -> Iterator[Event]:
    """The halves of all steps in the order of their ticks, up to each loop's first frame never adopted.

    What loops do before the same tick does not depend on its order: they know of each other by the servo.
    """
    at = [(0, False) for _ in steps]
    while True:
        due = []
        for loop, (k, begun) in enumerate(at):
            if k < len(steps[loop]) and steps[loop][k].adopted >= 0:
                step = steps[loop][k]
                due.append(Event(step.adopted if begun else max(step.begin, 0), step, begun))
        if not due:
            return
        event = min(due, key=lambda e: (e.tick, e.step.loop))
        k, _ = at[event.step.loop]
        at[event.step.loop] = (k + 1, False) if event.ends else (k, True)
        yield event


def known_until(recording: Recording, steps: Sequence[Sequence[LowStep]]) -> int:
    """Ticks before the first one whose frames the schedule does not know: a crash may cut it short."""
    frames, n = recording.columns["frame"], len(recording.columns["tick"])
    last = max((step.frame for step in steps[0] if step.adopted >= 0), default=0)
    newer = np.flatnonzero(frames > last)
    known = int(newer[0]) if len(newer) else n
    if len(steps) > 1 and not recording.closed:
        known = min(known, *(max((s.adopted for s in own), default=0) + 1 for own in steps))
    return known
