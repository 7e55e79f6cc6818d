"""How long a leaking cup holds: the closed form of an even leak, and its limits."""

import math

import numpy as np
import pytest

from palpo.physics.gas.law import sheet_conductance
from palpo.physics.gas.roughness import RoughSurface, SealTable, seal_of
from palpo.studies.reference.hold_time import HeldCup, hold_time, rim_pressure

ATMOSPHERE, RT = 101325.0, 2437.0
CUP = HeldCup(radius=16e-3, rim=4e-3, volume=4e-6)
AREA = math.pi * (16e-3**2 + 0.5 * (20e-3**2 - 16e-3**2))


def test_an_even_gap_lets_go_when_the_closed_form_says():
    gap, load, suction = 2e-4, 3.0, 10e3
    even = SealTable(0.0, 1e6, np.array([gap, gap]))
    last = load / AREA
    # dp/dt = G (P^2 - p^2) / V with the conductance of the mean pressure, which slip changes by 1e-4 at most
    g = math.pi * sheet_conductance(gap, ATMOSPHERE, RT) / math.log(20 / 16)
    between = [math.atanh((ATMOSPHERE - s) / ATMOSPHERE) for s in (suction, last)]
    wanted = CUP.volume / (g * ATMOSPHERE) * (between[1] - between[0])
    assert hold_time(CUP, even, load, suction, RT) == pytest.approx(wanted, rel=2e-3)
    # the balance at that end: the rim no longer presses
    assert rim_pressure(CUP, last, load) == pytest.approx(0.0, abs=1e-9)


def test_a_cup_holds_longer_the_less_it_bears_the_softer_and_the_smoother_it_is():
    def time(load=2.0, rms=3e-6, modulus=4e5):
        return hold_time(CUP, seal_of(RoughSurface(rms, 50 * rms), modulus), load, 10e3, RT)

    assert 0.0 < time(load=6.0) < time(load=2.0)
    assert time(rms=6e-6) < time() < time(modulus=2e5)
    assert time(load=1.01 * 10e3 * AREA) == 0.0
    assert time(load=0.0) == math.inf
    # touching so much that nothing passes
    assert hold_time(CUP, seal_of(RoughSurface(3e-6, 150e-6), 1e3), 2.0, 10e3, RT) == math.inf
