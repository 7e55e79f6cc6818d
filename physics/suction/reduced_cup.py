"""A cup as a law of few numbers: force over pull, what presses its rim, leak; and whether a load is held.

Taken from a pull of a cup of revolution (palpo.physics.suction.pull_off), or of any cup of a scene. A load
that hangs on it pulls along its axis, across it, and by a moment. It is held where each of these is borne:

    pull   F = m g cos(tilt) at most what the cup holds
    slip   m g sin(tilt) at most mu N(F), N the force with which the rim is pressed under that pull
    peel   the moment at most N r / 2: p = N / (2 pi r) (1 + cos) is the pressure of a thin ring that is about
           to lift on one side
    lie    the rim reaches what it stands on all around: a cylinder falls off by r^2 / D beside its crest, and
           each part of the rim is a spring of its own, k / (2 pi r), which is on the safe side as the parts
           of a rim that bend do not stretch it
    leak   the time V / (2 G P_atm) in which suction falls to a third lasts as long as is asked
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.pull_off import Handling, pull_off
from palpo.physics.suction.walled_cup import ATMOSPHERE, CupEquilibrium, WalledCup

Floats = NDArray[np.float64]

GRAVITY = 9.81
WAVES = 50.0
"""Longest wavelength of a rough wall over its rms height, as of sandblasted plates."""
EARLY = 4
"""Share of a pull, one in so many, whose slope is that of its beginning."""
NEVER = 1e9
"""Seconds that stand for a rim that lets nothing by, and a margin of what is not asked for."""


class ReducedCup(NamedTuple):
    """The law of a cup pushed by `push` [m] at friction mu; arrays (k,) over the pull, to the most force."""

    cup: str
    push: float
    mu: float
    pull: Floats  # of the stem [m], from where the cup bears nothing
    force: Floats  # [N], growing
    pressed: Floats  # on the rim [N]
    leak_time: Mapping[float, Floats]  # by the wall's rms roughness [m]: seconds
    radius: float  # of the pressed rim [m]
    stiffness: float  # fitted, force = stiffness pull [N/m]
    misfit: float  # largest error of that fit over the largest force
    rim_stiffness: float  # of the cup when pushed [N/m]
    rest: (
        float  # height of the stem over where the rim first touched, where the gripped cup bears nothing [m]
    )
    damping: float = 0.0  # force at a speed over that at as long a pull [s]
    pumped: bool = False  # whether a pump keeps the suction, so that nothing leaks

    @property
    def limit(self) -> float:
        """The largest force [N]."""
        return float(self.force[-1])


class HeldLoad(NamedTuple):
    """What is to be held."""

    mass: float  # [kg]
    tilt: float = 0.0  # of the cup's axis from the vertical [rad]
    offset: float = 0.0  # of the centre of mass from the axis [m]
    below: float = 0.0  # of the centre of mass under the rim [m]
    diameter: float = math.inf  # of the cylinder that the rim stands on [m]
    rms: float = 1e-6  # roughness of the wall [m]
    seconds: float = 10.0  # for which it is to hold


def reduce_cup(cup: str, push: float, mu: float, roughnesses: tuple[float, ...]) -> ReducedCup:
    """Push a cup of that name, its air free to go, pull it off, and fit.

    InputError for an unknown cup, one that is no solid of revolution, and a push or mu that is not positive.
    """
    if cup not in CUPS:
        raise InputError(f"cup {cup!r} is unknown; there are {', '.join(CUPS)}")
    for name, value in (("push", push), ("mu", mu)):
        if not value > 0.0:
            raise InputError(f"{name} = {value}: give one above 0")
    design = CUPS[cup]
    model = WalledCup(design.shape, design.youngs_modulus, mu)
    modulus = design.youngs_modulus / (1 - POISSON_RATIO**2)
    seals = {rms: seal_of(RoughSurface(rms, WAVES * rms), modulus) for rms in roughnesses}
    radii: list[float] = []
    times: dict[float, list[float]] = {rms: [] for rms in roughnesses}

    def look(state: CupEquilibrium) -> None:
        radii.append(model.radius)
        for rms, seal in seals.items():
            flow = model.conductance(seal, state.suction)
            times[rms].append(state.volume / (2 * flow * ATMOSPHERE) if flow > 0.0 else NEVER)

    states = pull_off(model, Handling(push, pull_step=push / 4), look)
    seen = PulledCup(
        np.array([state.height for state in states]), np.array([state.force for state in states]),
        np.array([state.pressed for state in states]), np.array(radii),
        {rms: np.array(found) for rms, found in times.items()},
    )  # fmt: skip
    return law_of(cup, push, mu, seen)


class PulledCup(NamedTuple):
    """What is seen of a cup from when it is pushed until it has let go, (n,) each."""

    height: Floats  # of the stem over where the rim first touched [m]
    force: Floats  # on the stem, upward [N]
    pressed: Floats  # on the rim [N]
    radius: Floats  # of the pressed rim [m]
    leak_time: Mapping[float, Floats]  # by the wall's rms roughness [m]: seconds


def law_of(cup: str, push: float, mu: float, seen: PulledCup) -> ReducedCup:
    """The law of a cup that was pulled off; InputError for one that never held a load."""
    height, force = seen.height, seen.force
    last = int(force.argmax())
    pulling = np.flatnonzero(force[: last + 1] <= 0.0)
    first = int(pulling[-1]) + 1 if pulling.size else 0
    if not force[last] > 0.0 or last == 0:
        raise InputError(
            f"the cup {cup}, pushed by {push:g} m, is pulled off without a force: it holds nothing."
        )
    # of a cup that is drawn on harder than it was pushed, along the line of its pull
    k = max(first, 1) if first else max(1, last // EARLY)
    slope = (force[k] - force[k - 1 if first else 0]) / (height[k] - height[k - 1 if first else 0])
    rest = float(height[k] - force[k] / slope)
    kept = np.arange(first, last + 1)
    kept = kept[force[kept] >= np.maximum.accumulate(force[kept])]  # what trembles does not grow
    kept = kept[np.diff(force[kept], prepend=0.0) > 0.0]
    pull, force = height[kept] - rest, force[kept]
    stiffness = float(pull @ force / (pull @ pull))
    return ReducedCup(
        cup, push, mu, pull, force, seen.pressed[kept],
        {rms: times[kept] for rms, times in seen.leak_time.items()}, float(np.mean(seen.radius[kept])),
        stiffness, float(np.abs(stiffness * pull - force).max() / force[-1]), seen.pressed[0] / push, rest,
    )  # fmt: skip


def lifted_mass(law: ReducedCup, speed: float) -> float:
    """The largest mass [kg] that is lifted off the ground by a cup which goes up at a speed [m/s].

    It leaves the ground with the cup's speed to gain, and sways on it by v sqrt(k m) about its weight:
    m g + v sqrt(k m) is at most what the cup holds. What damping takes off that is left out.
    """
    sway = speed * math.sqrt(law.stiffness)
    root = (math.sqrt(sway**2 + 4.0 * GRAVITY * law.limit) - sway) / (2.0 * GRAVITY)
    return root**2


def margins(law: ReducedCup, load: HeldLoad) -> dict[str, float]:
    """What the cup has of each over what the load asks: held where all are above 1; NEVER if it asks none."""
    weight = load.mass * GRAVITY
    axial, across = weight * math.cos(load.tilt), weight * math.sin(load.tilt)
    moment = abs(across * load.below) + abs(weight * math.cos(load.tilt) * load.offset)
    pressed = float(np.interp(axial, law.force, law.pressed))
    drop = law.rim_stiffness * law.radius**2 / load.diameter
    left = max(pressed - drop, 0.0)
    lasts = NEVER if law.pumped else float(np.interp(axial, law.force, law.leak_time[load.rms]))
    asked = {
        "pull": (law.limit, axial),
        "slip": (law.mu * pressed, abs(across)),
        "peel": (0.5 * left * law.radius, moment),
        "lie": (pressed, drop),
        "leak": (lasts, load.seconds),
    }
    return {
        name: min(has / wanted, NEVER) if wanted > NEVER**-1 else NEVER
        for name, (has, wanted) in asked.items()
    }


def margin(law: ReducedCup, load: HeldLoad) -> tuple[float, str]:
    """The least of `margins`, and its name."""
    found = margins(law, load)
    name = min(found, key=lambda key: found[key])
    return found[name], name
