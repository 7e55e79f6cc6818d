"""The hands beside the first of a scene with several tools: simulated ones, on paths of their own."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Asked
from palpo.app.devices.mock import SimulatedHand
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import VirtualDevice
from palpo.physics.exchange.ahead import Ahead

DeviceAt = Callable[[NDArray[np.float64]], VirtualDevice]
"""A device, given where what it holds is at rest (3,) [m]."""


class Paths:
    """The paths of all hands, kept ahead of the servo together; ticks: of the longest."""

    def __init__(self) -> None:
        self._paths: list[Ahead] = []

    @property
    def ticks(self) -> int:
        """Rows of the longest path."""
        return max(path.ticks for path in self._paths)

    def add(self, path: Ahead) -> None:
        """One more."""
        self._paths.append(path)

    def keep(self, tick: int) -> None:
        """Fill what the servo may ask for soon, now that `tick` ticks are done."""
        for path in self._paths:
            path.keep(tick)


def further_hands(spec: BaseScene, asked: Asked, paths: Paths) -> Sequence[DeviceAt]:
    """The devices of the hands after the first, whose paths join `paths` when they are made."""

    def at(hand: BaseScene) -> DeviceAt:
        def make(held: NDArray[np.float64]) -> VirtualDevice:
            device, path = SimulatedHand(asked, "").make(hand, held)
            paths.add(path)
            return device

        return make

    return [at(hand) for hand in spec.hands[1:]]
