"""A cup of revolution on a wall: balance of forces, gas law, what a rim bears, and what leaks under it."""

import numpy as np
import pytest

from palpo.physics.gas.roughness import RoughSurface, seal_of
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO
from palpo.physics.suction.walled_cup import AIRTIGHT, ATMOSPHERE, BONDED, Lost, WalledCup

SMALL = CUPS["small"]
MODULUS = SMALL.youngs_modulus / (1 - POISSON_RATIO**2)


def cup(mu=BONDED, sealing=AIRTIGHT, rms=0.0):
    seal = seal_of(RoughSurface(rms, 50 * rms), MODULUS) if rms else None
    return WalledCup(SMALL.shape, SMALL.youngs_modulus, mu, sealing, seal=seal)


def pushed(model, depth=5e-4, steps=5):
    for k in range(1, steps + 1):
        state = model.step(-depth * k / steps, 0.0, 0.0)
    return state


def inside(model, border):
    """Area of the wall inside the border [m2]."""
    whole = min(int(border), model.through - 1)
    nodes = model.mesh.nodes + model.u.reshape(-1, 2)
    edge = model.mesh.curve[2 * (model.mesh.border + whole) :][:3]
    s = 2 * (border - whole) - 1
    radius = np.array([0.5 * s * (s - 1), 1 - s * s, 0.5 * s * (s + 1)]) @ nodes[edge, 0]
    return np.pi * radius**2


@pytest.mark.parametrize(("mu", "sealing"), [(BONDED, AIRTIGHT), (0.6, AIRTIGHT), (0.6, 5e-4)])
def test_the_stem_holds_the_suction_on_the_area_inside_the_border_less_what_presses_the_rim(mu, sealing):
    model = cup(mu, sealing)
    sealed = ATMOSPHERE * pushed(model).volume
    for height in (-3e-4, 0.0, 3e-4):
        state = model.step(height, 0.0, sealed)
        # the cavity's roof is the disc inside the border: its volume's derivative by the height is the area
        assert state.force == pytest.approx(
            state.suction * inside(model, state.border) - state.pressed, abs=2e-4
        )
        assert (ATMOSPHERE - state.suction) * state.volume == pytest.approx(sealed, rel=1e-9)


def test_a_rim_bears_more_the_deeper_it_is_pushed_and_none_beyond_that():
    borne = []
    for depth in (3e-4, 8e-4):
        model = cup(0.6)
        open_rim = pushed(model, depth)
        borne.append(model.largest_pressure(-depth, 5e3))
        last = model.step(-depth, -0.98 * borne[-1], 0.0)
        assert last.pressed < 0.2 * open_rim.pressed
        with pytest.raises(Lost):
            model.step(-depth, -1.3 * borne[-1], 0.0)
    assert 1.5 * borne[0] < borne[1]


def test_a_rougher_wall_and_a_weaker_push_let_more_air_by():
    conductance = [
        pushed(cup(rms=rms), depth).conductance for rms, depth in ((1e-6, 5e-4), (5e-6, 5e-4), (5e-6, 2e-4))
    ]
    assert 0.0 < 10.0 * conductance[0] < conductance[1] < conductance[2]


def test_a_sealed_cup_forgets_its_suction_as_its_rim_conducts():
    """Held still: p goes to the atmosphere, by the leak of its rim at first."""
    model = cup(rms=5e-6)
    held = ATMOSPHERE * pushed(model).volume
    state, held = model.breathe(-1e-4, held, 1e-6)
    rate = 2.0 * state.conductance * ATMOSPHERE / state.volume
    first, kept = model.breathe(-1e-4, held, 0.01 / rate)
    # a hundredth of the time constant; air that comes in also lets the wall rise, which slows it
    assert 0.0 < (held - kept) * -1.0 / (state.suction * state.volume) < 0.0101
    assert 0.98 * state.suction < first.suction < state.suction
    last, _ = model.breathe(-1e-4, kept, 100.0 / rate)
    assert abs(last.suction) < 0.05 * state.suction


def test_air_shut_in_leaks_until_the_rim_bears_what_is_left():
    model = cup(rms=5e-6)
    held = ATMOSPHERE * pushed(model, 2e-4, 2).volume
    for height in (-3e-4, -4e-4):
        state, held = model.breathe(height, held, 0.01)
    assert 0.0 < -state.suction < 500.0 and state.pressed > 0.0
    later, _ = model.breathe(-4e-4, held, 2.0)
    assert -later.suction < 0.3 * -state.suction
