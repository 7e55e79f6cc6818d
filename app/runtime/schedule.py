"""When the slow steps of a recorded run in threads began, and when the servo adopted their frames."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from palpo.haptics.recording import Recording
from palpo.physics.exchange.budget import Budget


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
    loops = told.get("loop", np.zeros(n)).astype(int).tolist()
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
    return steps


def _budgets(recording: Recording, loops: Sequence[int], ratios: Sequence[int]) -> list[Budget]:
    """What each slow step was allowed to cost; those of earlier versions had the scene's own rate."""
    steps = recording.low_steps
    if "period_ticks" not in steps:
        return [Budget(ratios[loop]) for loop in loops]
    names = ("period_ticks", "columns_share", "contacts_share")
    return [Budget(*values) for values in zip(*(steps[k].tolist() for k in names), strict=True)]


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
