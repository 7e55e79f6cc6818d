"""What is concluded of a stylus from a push, against the closed form of its way."""

import numpy as np
import pytest

from palpo.haptics.identified import Push, answer_to

DT, NET, BREAKS = 1e-3, 1.0, 0.3
COUNT = 2e-5


def pushes(mass, viscosity, delay, every=1):
    """To and fro from rest under a constant force, read by an encoder, so many ticks apart."""
    made = []
    for side, phase in ((1.0, 0), (-1.0, 1), (1.0, 2), (-1.0, 0)):
        force = np.full(36, side * (BREAKS + NET))
        t = np.maximum(DT * np.arange(36) - delay, 0.0)
        if viscosity:
            tau = mass / viscosity
            way = NET / viscosity * (t - tau * (1.0 - np.exp(-t / tau)))
        else:
            way = 0.5 * NET / mass * t * t
        told = (np.arange(36) - phase % every) // every * every + phase % every
        way = side * COUNT * np.round(way[np.maximum(told, 0)] / COUNT)
        made.append(Push(force, way, side * BREAKS))
    return made


@pytest.mark.parametrize("mass", [0.03, 0.15])
@pytest.mark.parametrize("delay", [0.0, 2e-3, 5e-3])
@pytest.mark.parametrize("every", [1, 3])
def test_a_mass_and_its_delay_are_found_also_where_poses_come_in_stairs(mass, delay, every):
    found = answer_to(pushes(mass, 0.0, delay, every), DT)
    # a count of the way at its end, 4 mm at least, and of the time in which it goes by one there
    assert found.mass == pytest.approx(mass, rel=0.03)
    assert found.delay == pytest.approx(delay, abs=5e-4)
    assert found.viscosity == 0.0


@pytest.mark.parametrize("every", [1, 3])
def test_a_viscosity_that_the_way_cannot_do_without_is_found(every):
    found = answer_to(pushes(0.03, 2.0, 2e-3, every), DT)
    # what an examination promises of a device's figures
    assert found.viscosity == pytest.approx(2.0, rel=0.1)
    assert found.mass == pytest.approx(0.03, rel=0.1)
