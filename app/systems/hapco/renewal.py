"""Poisson's ratio of a body that is felt: K^-1 made anew in the background, and taken between two ticks.

A modulus scales K^-1, a ratio of Poisson's does not, and to make it anew takes seconds. So each surface has
room for two (palpo.physics.compliance.surface): the one in force, and one beside it. A thread makes what is
asked for while the servo goes on with what it has; then it is written beside, and the share of it rises to
one in even steps, one a slow step, as a modulus goes over. A recording keeps the slow step when that began,
so that a replay, which makes K^-1 on the spot, repeats the run.
"""

import math
import threading
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import TimeLeft
from palpo.app.runtime.live import SLEW
from palpo.physics.bodies.boundary import Boundary
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.numerics.cache import cache_folder


class Cancelled(Exception):
    """Something else was asked for."""


class Making(threading.Thread):
    """One boundary in the making; `run` may also be called without starting the thread."""

    def __init__(self, body: QuasistaticBody, ratio: float) -> None:
        super().__init__(name=f"K^-1 of {body.name}", daemon=True)
        self._body, self.ratio = body, ratio
        self.cancelled, self.error = False, ""
        self.boundary: Boundary | None = None
        self.seconds, self._pace, self._far = 0.0, TimeLeft(), "0%"

    @property
    def words(self) -> str:
        """What is being done, for people."""
        return f"K^-1 of {self._body.name} for nu = {self.ratio:g}: {self._far}"

    def run(self) -> None:
        """Make it, or say why it could not be made."""
        start = perf_counter()
        try:
            made = self._body.with_poisson_ratio(self.ratio, cache_folder("compliance"), self._come_to)
        except Cancelled:
            return
        except (ValueError, ArithmeticError, RuntimeError, OSError, MemoryError) as error:
            self.error = str(error) or "there is not enough memory"
            return
        self.seconds = perf_counter() - start
        self.boundary = made.boundary

    def _come_to(self, share: float) -> None:
        self._far = self._pace.words(share)
        if self.cancelled:
            raise Cancelled


class RatioRenewal:
    """The Poisson's ratios of the two bodies, in force and beside.

    bodies: as they were built. background: whether what is asked for is made by a thread; else it is made on
    the spot. say: where to tell what was done.
    """

    def __init__(
        self, bodies: Sequence[QuasistaticBody], background: bool, say: Callable[[str], None]
    ) -> None:
        self._bodies, self._background, self._say = tuple(bodies), background, say
        built = [body.material.poisson_ratio for body in bodies]
        self._ratios = np.array([built, [math.nan] * len(built)]).T
        """Behind the boundary and the second boundary of each body, nan for none."""
        self._goal = np.zeros(len(built), np.int64)
        """Which of the two is in force, or goes over to be."""
        self.shares: NDArray[np.float64] = np.zeros(len(built))
        """Of the second boundary of each body."""
        self._making: Making | None = None

    @property
    def words(self) -> str:
        """What is being made, empty where nothing is."""
        making = self._making
        return making.words if making is not None and making.is_alive() else ""

    def ready(self, ratios: Sequence[float | None]) -> bool:
        """Whether `take` of these ratios, None for a body as it is, can be made at once.

        Otherwise what is missing is begun, or waited for. Raises RuntimeError where it could not be made.
        """
        for i, ratio in enumerate(ratios):
            if ratio is None or self._ratios[i, self._goal[i]] == ratio:
                continue
            if self.shares[i] != self._goal[i]:
                return False
            if not self._background or ratio in self._ratios[i]:
                continue
            making = self._making
            if making is None or not self._makes(i, ratio):
                self._begin(i, ratio)
                return False
            if making.error:
                raise RuntimeError(f"{making.words}: {making.error}")
            if making.boundary is None:
                return False
        return True

    def take(self, ratios: Sequence[float | None]) -> None:
        """Go over to these ratios from the next step on; what is not made yet is made now."""
        for i, ratio in enumerate(ratios):
            if ratio is None or self._ratios[i, self._goal[i]] == ratio:
                continue
            beside = 1 - self._goal[i]
            if self._ratios[i, beside] != ratio:
                self._write(i, beside, ratio)
            self._goal[i] = beside

    def go_over(self, seconds: float) -> None:
        """The shares after one more step of so long."""
        steps = max(1, math.ceil(SLEW / seconds - 1e-9))
        for i, goal in enumerate(self._goal):
            away = goal - self.shares[i]
            # the last step lands on it, whatever the steps before have rounded
            self.shares[i] = (
                goal if abs(away) < 1.5 / steps else self.shares[i] + math.copysign(1.0 / steps, away)
            )

    def _makes(self, i: int, ratio: float) -> bool:
        making = self._making
        return making is not None and making._body is self._bodies[i] and making.ratio == ratio

    def _begin(self, i: int, ratio: float) -> None:
        if self._making is not None:
            self._making.cancelled = True
        self._making = Making(self._bodies[i], ratio)
        self._making.start()

    def _write(self, i: int, beside: int, ratio: float) -> None:
        """The boundary of that ratio into the place that nothing reads."""
        making = self._making
        if making is None or not self._makes(i, ratio) or making.boundary is None:
            making = Making(self._bodies[i], ratio)
            making.run()
        if making.boundary is None:
            raise RuntimeError(f"{making.words}: {making.error}")
        body = self._bodies[i]
        room = body.second if beside else body.boundary
        room.compliance[:], room.sag[:] = making.boundary.compliance, making.boundary.sag
        self._ratios[i, beside] = ratio
        self._making = None
        self._say(f"{body.name} has nu = {ratio:g} now, its K^-1 made in {making.seconds:.1f} s")
