"""Where the time of a scheduler's tick goes, by its own clock: hdGetSchedulerTimeStamp, since the tick began.

A call that comes late in its tick waited for others; the device's bus takes the time of a frame's begin and
end, the scene that of the servo's step. A period that passes without a call is owed to whichever of bus and
scene took longer in the call before, if the two took more than a period, else to a late call: the machine, or
another program, had the scheduler's thread.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import call_for_number
from palpo.physics.numerics.kernels import inlined

SPENT = np.dtype(
    [(name, np.int64) for name in ("calls", "call", "bus", "scene", "last_bus", "last_scene", "at_bus",
                                   "at_scene", "at_call")]
)  # fmt: skip
"""Calls; times [ns] over all of them from the tick's beginning to the call, of the bus and of the scene;
those two of the last call; and periods lost to the bus, to the scene and to late calls."""
CULPRITS = ("at_bus", "at_scene", "at_call")


@inlined
def stamp(function):
    """Time since the scheduler's tick began [ns], by hdGetSchedulerTimeStamp at that address."""
    return np.int64(1e9 * call_for_number(function))


@inlined
def spend(spent, called, read, stepped, written):
    """Book a call by the stamps [ns] at its begin, after reading, after the scene's step and at its end."""
    spent.last_bus, spent.last_scene = read - called + written - stepped, stepped - read
    spent.calls += 1
    spent.call += called
    spent.bus += spent.last_bus
    spent.scene += spent.last_scene


@inlined
def owe(spent, periods, period):
    """Owe lost periods, of so many ns each, to what took them."""
    if spent.last_bus + spent.last_scene <= period:
        spent.at_call += periods
    elif spent.last_bus >= spent.last_scene:
        spent.at_bus += periods
    else:
        spent.at_scene += periods


def culprit(spent: NDArray[Any], before: NDArray[Any]) -> str:
    """Which of CULPRITS lost most periods since SPENT was `before`, each of shape (1,)."""
    return max(CULPRITS, key=lambda name: int(spent[name][0] - before[name][0]))


def shares(spent: NDArray[Any]) -> str:
    """The mean times of a tick in words; empty before the first call."""
    calls = int(spent["calls"][0])
    if calls == 0:
        return ""
    call, bus, scene = (1e-6 * int(spent[name][0]) / calls for name in ("call", "bus", "scene"))
    return (
        f"called {call:.2g} ms after a tick begins; the bus takes {bus:.2g} ms of it, the scene {scene:.2g}"
    )
