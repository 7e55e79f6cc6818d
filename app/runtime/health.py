"""How a run fares, as one word with its sentence: the light of the panel."""

from typing import NamedTuple

from palpo.haptics.flags import (
    DEFORMED,
    DEVICE_LOST,
    EMERGENCY,
    FADING,
    FLAG_NAMES,
    NON_FINITE,
    PAUSING,
    STALE,
    STARTING_PUSHED,
    STOOD_STILL,
    STOPPING,
    TICK_FAILED,
)
from palpo.render.panel_state import Light

LATE = 0.01
"""Share of the hand's ticks that may come late before the light says so."""
CAUSES = (
    EMERGENCY,
    DEVICE_LOST,
    TICK_FAILED,
    NON_FINITE,
    DEFORMED,
    STOOD_STILL,
    STALE,
    STARTING_PUSHED,
    STOPPING,
)
"""Flags that say why the force fades, the gravest first."""


class Signs(NamedTuple):
    """What the light is judged by. Counts are of the last second or so."""

    flags: int = 0
    """Of the limiter, at the last tick (palpo.haptics.flags)."""
    paused: bool = False
    waited: int = 0
    """Ticks for which the scene stood still."""
    ticks: int = 0
    late: int = 0
    """Ticks that missed their time."""
    slower: str = ""
    """What the run gives up to keep up with the clock, in words; empty for nothing."""
    rates: str = ""
    """The rates, in words."""
    unrecorded: str = ""
    """Why the recording stopped; empty while it goes on, or where there is none."""


def light(signs: Signs) -> Light:
    """The gravest of what there is to say.

    A fading force comes before a lost recording: a hand is at stake.
    """
    flags = signs.flags
    cause = next((FLAG_NAMES[flag] for flag in CAUSES if flags & flag), "")
    if cause:
        return Light("force off" if flags & EMERGENCY else "fading", f"the force fades: {cause}", "bad")
    if signs.unrecorded:
        return Light("recording failed", signs.unrecorded, "bad")
    if signs.paused or flags & PAUSING:
        return Light("paused", "the scene is paused, the force is off", "warn")
    if signs.waited:
        return Light("waiting", f"the scene paused for {signs.waited} of the last {signs.ticks} ticks: "
                     "this machine cannot keep up", "bad")  # fmt: skip
    if flags & FADING:
        return Light("fading in", "the force is rising", "warn")
    if signs.late > LATE * signs.ticks:
        return Light("late", f"{signs.late} of the last {signs.ticks} ticks were late: "
                     "another program uses the processor", "warn")  # fmt: skip
    if signs.slower:
        return Light("slower rates", signs.slower, "warn")
    return Light("real time", signs.rates, "good")
