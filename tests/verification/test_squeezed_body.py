"""A soft cube between plates, pressed far: the servo's force is that of everything at its own rate."""

import numpy as np
import pytest

from palpo.physics.exchange.port import SHAPE_LOST, WAITING
from palpo.physics.reduction.interface_model import MOST_ENERGY
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import lock_step, proceed, resting, straight

SIDE, TOP = 0.02, 0.023
SQUEEZED = """
title = "squeezed cube"

[[bodies]]
name = "ground"
kind = "plane"

[[bodies]]
name = "cube"
kind = "tets"
elements = "tet4"
geometry = {{ kind = "block", size = [0.02, 0.02, 0.02], divisions = [4, 4, 4] }}
placement = {{ position = [0, 0.0105, 0] }}
material = {{ youngs_modulus = 20e3, poisson_ratio = 0.45, density = 1000, alpha = 0.0, beta = 0.002 }}

[[bodies]]
name = "plate"
kind = "rigid"
rate = "high"
geometry = {{ kind = "box", size = [0.05, 0.004, 0.05] }}
placement = {{ position = [0, 0.023, 0] }}
mass = 0.05

[friction]
default = 0.3

[tool]
body = "plate"
[tool.hold]
orientation = true
{hold}
"""
HOLDS = {"direct": 'mode = "direct"', "coupling": "stiffness = 4000\ndamping = 10"}
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)
WHOLE = {"direct": (1.753, 2.643, 3.521, 4.371, 5.169), "coupling": (1.624, 2.426, 3.222, 4.002, 4.751)}
"""Forces [N] on the plate at these shares of the cube's height, everything at 1 kHz (kind "monolithic")."""
SPEED, REST = 0.02, 100
"""Of the hand [m/s], and ticks for which it rests at each share."""


def squeezed(hold: str, *overrides: str, kind: str = "krylov") -> LockStep:
    """The cube and the plate on it."""
    return lock_step(SQUEEZED.format(hold=HOLDS[hold]), *overrides, kind=kind)


def press(run: LockStep, shares: tuple[float, ...], rest: int = REST) -> list[float]:
    """The force [N] at each share; the plate comes from where it just touches."""
    at, forces = TOP, []
    for share in shares:
        to = TOP - share * SIDE
        way = straight((0.0, at, 0.0), (0.0, to, 0.0), round((at - to) / SPEED * 1000))
        trace = run.run(np.vstack([way, resting((0.0, to, 0.0), rest)]))
        assert len(trace["force"]) == len(way) + rest, f"it broke down: {run.broken}"
        forces.append(float(np.linalg.norm(trace["force"][-1])))
        at = to
    run.close()
    return forces


@pytest.mark.parametrize("hold", HOLDS)
def test_a_cube_pressed_to_40_percent_of_its_height_pushes_back_as_with_everything_at_1_khz(hold):
    """Asked of a slow rate of 50 Hz: 1% of the force at every share. Without columns for all points that bear
    4.6% remain, and with forces replayed in place of the servo's own states the cube topples."""
    forces = press(squeezed(hold, "rates.low_hz=50"), SHARES)
    np.testing.assert_allclose(forces, WHOLE[hold], rtol=0.01)


def test_the_forces_that_this_is_held_against_are_those_of_the_whole_scene_at_1_khz():
    """The first of them; figures of three decimals."""
    assert press(squeezed("direct", kind="monolithic"), SHARES[:1]) == pytest.approx(
        WHOLE["direct"][:1], abs=6e-4
    )


@pytest.mark.parametrize("elements", ["tet4", "tet4-patch"])
@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize(("hz", "off"), [(10, 0.05), (20, 0.02)])
def test_so_it_does_at_10_and_20_hz_once_the_plate_has_come_to_rest(hz, off, hold, elements):
    """5 and 2% of everything at 1 kHz: in a period of 10 Hz the plate comes a tenth of the height nearer.

    Friction alone holds it: it creeps, and falls over, if W has forces elsewhere than where the body is now.
    """
    over = f"bodies.cube.elements={elements}"
    rest = max(REST, 3 * 1000 // hz)
    whole = press(squeezed(hold, over, kind="monolithic"), SHARES)
    forces = press(squeezed(hold, over, f"rates.low_hz={hz}"), SHARES, rest)
    np.testing.assert_allclose(forces, whole, rtol=off)


def test_a_squeezed_cube_at_20_hz_stays_where_it_is():
    """Two seconds at half its height: the force moves by less than 1%."""
    run, deep = squeezed("direct", "rates.low_hz=20"), (0.0, TOP - 0.5 * SIDE, 0.0)
    run.run(np.vstack([straight((0.0, TOP, 0.0), deep, 500), resting(deep, 3 * REST)]))
    force = run.run(resting(deep, 2000))["force"]
    run.close()
    assert np.abs(force - force[0]).max() < 0.01 * force[0, 1]


def test_a_model_that_goes_astray_is_caught_before_a_number_is_lost():
    """The scene stands still until the next frame, whose body is where it was; then all is as before."""
    run, deep = squeezed("coupling", "rates.low_hz=50"), (0.0, TOP - 0.2 * SIDE, 0.0)
    # until a tick within a slow period, so that no frame is about to come
    way = np.vstack([straight((0.0, TOP, 0.0), deep, 200), resting(deep, REST + 7)])
    before = proceed(run, way)["force"][-1]
    run.high.link.interface.rate[0] = np.sqrt(2.1 * MOST_ENERGY)
    told = [
        proceed(run, resting(deep, 1)) and int(run.high.port.status["flags"][0]) for _ in range(2 * run.ratio)
    ]
    lost = np.array(told) & SHAPE_LOST > 0
    assert lost[0] and not lost[run.ratio :].any()
    assert (np.array(told)[lost] & WAITING > 0).all()
    np.testing.assert_allclose(
        proceed(run, resting(deep, REST))["force"][-1], before, rtol=0, atol=1e-3 * before[1]
    )
    away = (0.0, TOP + 0.1 * SIDE, 0.0)
    assert not proceed(run, straight(deep, away, 200))["force"][-1].any()
    assert (
        proceed(run, np.vstack([straight(away, deep, 200), resting(deep, REST)]))["force"][-1][1]
        > 0.9 * before[1]
    )
    run.close()


@pytest.mark.parametrize("hold", HOLDS)
def test_at_10_hz_a_cube_pressed_to_a_seventh_of_its_height_loses_no_number(hold):
    assert np.isfinite(press(squeezed(hold, "rates.low_hz=10"), (0.4, 0.6, 0.7, 0.8, 0.85))).all()
