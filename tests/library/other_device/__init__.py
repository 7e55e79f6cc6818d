"""The smallest device of a package of its own: a hand that goes around a circle."""

import numpy as np

from palpo.app.devices.device import Device
from palpo.haptics.path import TickPath


class Circle(Device):
    """It leads the tool around a circle of 5 mm about where it is at rest, once a second."""

    word, about = "circle", "a hand that goes around a circle"

    @property
    def title(self):
        return "circling hand"

    def path(self, spec, held):
        def at(ticks):
            turn = 2.0 * np.pi * ticks * spec.rates.dt
            around = np.stack([np.cos(turn) - 1.0, np.sin(turn), np.zeros_like(turn)], axis=1)
            return held + 5e-3 * around, np.tile([1.0, 0.0, 0.0, 0.0], (len(ticks), 1))

        return TickPath(round(1.0 / spec.rates.dt), at)
