"""What a suction scene has to tell of its cavities: curves over the last seconds, and findings of the run."""

from typing import Any

import numpy as np

from palpo.app.runtime.history import History
from palpo.app.runtime.rigs import Curves
from palpo.physics.systems.suction.step import Suction

SPAN = 6.0
"""Seconds of the curves."""

SHOWN = 4
"""Cavities that have a curve each."""

GRIP = 200.0
"""Suction [Pa] from which a cavity is said to grip: above what the solver's tolerance leaves."""

LIFT = 1e-3
"""Rise of the partner [m] from which it is said to be lifted, ten contact distances."""

MANIFOLD = "manifold"

QUANTITIES = (("suction pressure", "kPa", 1e-3), ("volume", "ml", 1e6), ("air", "umol", 1e6))


class Findings:
    """One run's cavities, step by step."""

    def __init__(self, suction: Suction) -> None:
        self._suction = suction
        names = [f"{title} {j + 1}" for title, _, _ in QUANTITIES for j in range(SHOWN)]
        self._history = History([*names, MANIFOLD])
        self._start = self._place()
        self.most = 0
        """Largest number of cavities at once."""
        self.lowest = 0.0
        """Lowest gauge pressure [Pa]."""
        self.hold = 0.0
        """Largest pull upward that a path needed [N]."""
        self.rise = 0.0
        """Largest rise of the partner [m]."""
        self.gripped, self.released = np.nan, np.nan
        """When a cavity first gripped, and when the last one that did let go [s]."""
        self.grips = False

    def note(self) -> None:
        """Take down the step that has just ended."""
        s = self._suction
        gauge = s.pressure - s.air.atmosphere
        order = np.argsort(s.identity)[:SHOWN]
        values = np.full((len(QUANTITIES), SHOWN), np.nan)
        for row, value in zip(values, (gauge, s.volume, s.amount), strict=True):
            row[: len(order)] = value[order]
        shared = np.nan if s.pumped is None else s.pumped.pressure - s.air.atmosphere
        self._history.add(s.time, np.append(values.ravel(), shared))
        self.most = max(self.most, s.cavity_count)
        self.lowest = min(self.lowest, float(gauge.min(initial=0.0)))
        self.hold = max(self.hold, float(s.hold[:, 1].max()))
        self.rise = max(self.rise, self._rise())
        grips = bool((gauge < -GRIP).any())
        if grips and not self.gripped <= s.time:
            self.gripped = s.time
        if self.grips and not grips:
            self.released = s.time
        self.grips = grips

    def _place(self) -> float:
        """Height of the partner's middle [m]."""
        origin, turn = self._suction.partner.axes
        return float((origin + self._suction.partner.local.mean(axis=0) @ turn.T)[1])

    def _rise(self) -> float:
        return self._place() - self._start

    def curves(self) -> list[Curves]:
        """Pressure, volume and air of the cavities over the last seconds."""
        seconds, values = self._history.latest(SPAN)
        shared = {} if self._suction.pumped is None else {MANIFOLD: 1e-3 * values[MANIFOLD]}
        return [
            Curves(
                title, unit, seconds,
                {
                    f"cavity {j + 1}": factor * curve
                    for j in range(SHOWN)
                    if np.isfinite(curve := values[f"{title} {j + 1}"]).any() or j == 0
                }
                | (shared if title == QUANTITIES[0][0] else {}),
            )
            for title, unit, factor in QUANTITIES
        ]  # fmt: skip

    def numbers(self) -> dict[str, Any]:
        """Numbers and flags of the run so far."""
        return {
            "cavities_max": self.most,
            "lowest_gauge_pressure_kPa": 1e-3 * self.lowest,
            "gripped_at_s": self.gripped,
            "released_at_s": np.nan if self.grips else self.released,
            "grips_at_end": self.grips,
            "hold_max_N": self.hold,
            "partner_rise_max_mm": 1e3 * self.rise,
            "partner_rise_at_end_mm": 1e3 * self._rise(),
            "lifted": self.rise > LIFT,
            "lifted_at_end": self._rise() > LIFT,
        }
