"""A hand that swings, as a table of rows."""

from numpy.typing import ArrayLike

from palpo.haptics.path import Table, oscillation


def oscillation_path(
    centre: ArrayLike, amplitude: ArrayLike, frequency_hz: float, duration: float, ramp: float = 0.0
) -> Table:
    """All rows of `palpo.haptics.path.oscillation` at 1 kHz."""
    return oscillation(centre, amplitude, frequency_hz, duration, ramp).table()
