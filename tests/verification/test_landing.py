"""A soft body that falls on a table: what holds however fast it comes and however old its model is."""

from itertools import pairwise

import numpy as np
import pytest

from palpo.physics.systems.lock_step import LockStep
from tests.verification.small_scenes import BOX_ON_PLANE, resting, small_scene

FAR = (2.0, 0.5, 0.0)
CYLINDER = """
kind = "tets"
geometry = {{ kind = "cylinder", radius = 0.02, length = 0.06, axis = "x", around = 11, along = 6 }}
placement = {{ position = [0, {height}, 0] }}
material = {{ youngs_modulus = 30e3, poisson_ratio = 0.45, density = 1030, alpha = {alpha}, beta = 2e-3 }}
"""
LATE = (1.0, 1.9, 1.2, 1.7)
"""Low periods that low steps take in turn."""


def dropped(
    height: float, low_hz: int, durations: tuple[float, ...] = (1.0,), alpha: float = 0.5
) -> LockStep:
    """A soft cylinder at rest at that height [m]; the tool stays away."""
    text = BOX_ON_PLANE.format(box=CYLINDER.format(height=height, alpha=alpha))
    text = text.replace("[0, 0.5, 0]", str(list(FAR)))
    return LockStep(small_scene(text, f"rates.low_hz={low_hz}"), "krylov", "period", durations)


def proceed(run: LockStep, ticks: int) -> None:
    assert len(run.run(resting(FAR, ticks))["force"]) == ticks


@pytest.mark.parametrize("low_hz", [10, 50])
def test_the_odometer_keeps_up_with_a_fall(low_hz: int) -> None:
    """It bounds how far any point has moved, also of a body far quicker than when the frame was made."""
    run = dropped(5.0, low_hz)
    proceed(run, 1)
    start = float(run.side.links[0].interface.centre[0, 1]), float(run.high.search.odometer[0])
    for _ in range(8):
        proceed(run, 50)
        fallen = start[0] - float(run.side.links[0].interface.centre[0, 1])
        assert float(run.high.search.odometer[0]) - start[1] >= fallen
    run.close()


@pytest.mark.parametrize(
    ("height", "low_hz"), [(0.1, 10), (0.3, 10), (0.3, 20), (1.2, 20), (1.2, 50), (3.0, 50)]
)
@pytest.mark.parametrize("durations", [(1.0,), LATE])
def test_a_body_that_falls_lands(height: float, low_hz: int, durations: tuple[float, ...]) -> None:
    """Its centre stays above the table."""
    run = dropped(height, low_hz, durations)
    for _ in range(round((np.sqrt(2.0 * height / 9.81) + 0.5) / 0.005)):
        proceed(run, 5)
        assert run.side.links[0].interface.centre[0, 1] > 0.0
    run.close()


@pytest.mark.parametrize(("height", "low_hz"), [(0.6, 50), (1.2, 50), (1.2, 100), (3.0, 50)])
def test_no_energy_is_made_by_an_impact(height: float, low_hz: int) -> None:
    """Kinetic, elastic and gravity's energy of the whole body never increase: a table does no work."""
    run = dropped(height, low_hz)
    body = run.low.scene.members[0].body
    energy = [body.energy()]
    for _ in range(round((np.sqrt(2.0 * height / 9.81) + 0.5) / 0.01)):
        proceed(run, 10)
        energy.append(body.energy())
    run.close()
    # the tolerance is rounding of the gravity potential
    assert all(after <= before + 1e-9 * energy[0] for before, after in pairwise(energy))
