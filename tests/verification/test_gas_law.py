"""The air of one cavity: root, escape and leak against closed forms; pistons on a closed cylinder."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from palpo.physics.contact.problem import Stop
from palpo.physics.gas.law import OutsideAir, held_amount, leak, pressure_root, slot_conductance
from palpo.physics.numerics.errors import InputError
from tests.contact.pressure_problem import PressureProblem, PressureResult, solve

ATMOSPHERE = 101325.0
LOOSE = OutsideAir(largest=math.inf)
AREA, LENGTH, MASS = 1e-3, 0.02, 0.05


def balance(compliance: float, volume: float, n: float, air: OutsideAir = LOOSE) -> PressureResult:
    """One cavity by itself: V = volume + compliance (p - P_atm)."""
    return solve(
        PressureProblem(
            np.array([[compliance]]), np.array([volume]), np.zeros(0), np.array([n]),
            np.array([air.atmosphere]), np.array([False]), air,
        ),
        Stop(),
    )  # fmt: skip


@given(st.floats(1e-16, 1e-6), st.floats(-1e-3, 1e-3), st.floats(1e-9, 1.0))
def test_the_gas_law_has_one_positive_root_for_every_b(a, b, nrt):
    p = pressure_root(a, b, nrt)
    assert p > 0.0
    # a p + b = nRT / p: the left side grows with p and the right one falls, so one root is all;
    # a few roundings of the larger term
    assert abs(a * p + b - nrt / p) <= 8e-16 * (a * p + abs(b) + nrt / p)


@given(st.floats(1.0, 1e6), st.floats(1e-9, 1e-3))
def test_the_root_of_rigid_walls_is_the_ideal_gas(p, volume):
    assert pressure_root(0.0, volume, p * volume) == pytest.approx(p, rel=1e-15)


def test_walls_that_do_not_yield_around_no_volume_have_no_pressure():
    assert pressure_root(0.0, 0.0, 1.0) == math.inf
    assert pressure_root(0.0, -1e-6, 1.0) == math.inf


@given(st.floats(1e-7, 1e-4), st.floats(0.0, 1e-8))
def test_a_cavity_at_rest_reads_the_atmosphere(volume, compliance):
    result = balance(compliance, volume, LOOSE.amount(ATMOSPHERE, volume))
    assert result.pressure[0] == pytest.approx(ATMOSPHERE, rel=1e-9)


@given(st.floats(-5e-6, 2e-5), st.floats(1e-10, 1e-8), st.floats(1.001, 1.5))
def test_air_leaves_only_at_the_largest_pressure_and_what_stays_fills_the_volume(volume, compliance, ratio):
    air = OutsideAir(largest=ratio * ATMOSPHERE)
    n = air.amount(ATMOSPHERE, 5e-6)
    result = balance(compliance, volume, n, air)
    assert result.converged
    assert result.pressure[0] <= air.largest
    if result.pressure[0] < air.largest:
        assert result.amount[0] == n
    else:
        assert result.amount[0] <= n
    filled = result.amount[0] * air.rt
    if result.volume[0] >= 0.0:
        assert result.pressure[0] * result.volume[0] == pytest.approx(filled, rel=1e-10)
    else:
        assert result.amount[0] == 0.0


def test_what_escapes_at_the_largest_pressure_is_equation_3_13():
    a, b, largest, rt, n = 2e-11, 4e-6, 1.1 * ATMOSPHERE, 2437.0, 3e-4
    assert pressure_root(a, b, n * rt) > largest
    # b + a p is the volume
    kept = held_amount(largest, b + a * largest, n, largest, rt)
    assert kept - n == pytest.approx((a * largest**2 + b * largest) / rt - n, rel=1e-12)


def pushed(h: float, force: float, damping: float, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Height [m] and pressure [Pa] after each step of a piston on a closed cylinder; n R T [J]."""
    y, v = LENGTH, 0.0
    n = LOOSE.amount(ATMOSPHERE, AREA * LENGTH)
    heights, pressures = np.empty(steps), np.empty(steps)
    mass = MASS + h * damping
    for i in range(steps):
        free = (MASS * v - h * force) / mass
        result = balance(h * h * AREA**2 / mass, AREA * (y + h * free), n)
        assert result.amount[0] == n
        v = free + h * AREA * (result.pressure[0] - ATMOSPHERE) / mass
        y += h * v
        heights[i], pressures[i] = y, result.pressure[0]
    return heights, pressures, n * LOOSE.rt


@pytest.mark.parametrize("force", [150.0, -60.0], ids=["pushed", "pulled"])
def test_a_rigid_piston_keeps_p_v_at_every_step_and_ends_where_boyle_says(force):
    heights, pressures, nrt = pushed(1e-3, force, 20.0, 500)
    # the volume of a rigid piston is linear in its motion: the geometric volume is the solved one
    np.testing.assert_allclose(pressures * AREA * heights, nrt, rtol=1e-10)
    assert pressures[-1] == pytest.approx(ATMOSPHERE + force / AREA, rel=1e-6)
    assert heights[-1] == pytest.approx(LENGTH * ATMOSPHERE / (ATMOSPHERE + force / AREA), rel=1e-6)


def test_a_piston_s_motion_converges_with_the_order_of_backward_euler():
    force, end = 30.0, 0.01
    nrt = ATMOSPHERE * AREA * LENGTH

    def rate(_, state):
        return state[1], (nrt / state[0] - AREA * ATMOSPHERE - force) / MASS

    exact = solve_ivp(rate, (0.0, end), (LENGTH, 0.0), rtol=1e-10, atol=1e-12).y[0, -1]
    errors = [abs(pushed(end / n, force, 0.0, n)[0][-1] - exact) for n in (100, 200, 400)]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.15)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.08)


def test_a_cavity_between_two_free_pistons_leaves_their_momentum_alone():
    """The pressure's forces on the two bodies of a cavity cancel: dV/dx sums to zero over the pair."""
    h, masses = 1e-3, np.array([0.05, 0.2])
    gradient = AREA * np.array([1.0, -1.0])
    y, v = np.array([LENGTH, 0.0]), np.array([-0.5, 0.3])
    momentum, n = masses @ v, LOOSE.amount(ATMOSPHERE, AREA * LENGTH)
    for _ in range(50):
        result = balance(h * h * (gradient**2 / masses).sum(), gradient @ (y + h * v), n)
        v = v + h * gradient / masses * (result.pressure[0] - ATMOSPHERE)
        y = y + h * v
        assert result.pressure[0] * (gradient @ y) == pytest.approx(n * LOOSE.rt, rel=1e-10)
    assert masses @ v == pytest.approx(momentum, abs=1e-14)


@pytest.mark.parametrize("p", [0.5e5, 0.99e5, 1.3e5])
def test_a_leak_follows_laminar_flow_through_the_slot_and_never_passes_the_atmosphere(p):
    air, volume = OutsideAir(largest=1.4e5), 5e-6
    g = slot_conductance(0.1, 2e-5, 4e-3, air.atmosphere, air.rt)
    n = air.amount(p, volume)

    def rate(_, m):
        return g * (air.atmosphere**2 - (m * air.rt / volume) ** 2) / air.rt

    for h in (1e-4, 1e-2, 0.3):
        exact = solve_ivp(rate, (0.0, h), (n,), method="LSODA", rtol=1e-10, atol=1e-16).y[0, -1]
        assert leak(n, volume, g, air.atmosphere, air.rt, h) == pytest.approx(exact, rel=1e-8)
    rest = air.amount(air.atmosphere, volume)
    for h in np.logspace(-5, 3, 9):
        after = leak(n, volume, g, air.atmosphere, air.rt, h)
        assert min(n, rest) * (1.0 - 1e-15) <= after <= max(n, rest) * (1.0 + 1e-15)
    assert leak(n, 0.0, g, air.atmosphere, air.rt, 1.0) == n


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: OutsideAir(largest=1e5), "largest pressure"),
        (lambda: OutsideAir(largest=math.nan), "largest pressure"),
        (lambda: OutsideAir(largest=2e5, atmosphere=-1.0), "atmosphere"),
        (lambda: OutsideAir(largest=2e5, temperature=math.inf), "temperature"),
        (lambda: LOOSE.amount(1e5, -1e-6), "positive"),
        (lambda: LOOSE.amount(1e5, math.nan), "positive"),
    ],
)
def test_air_that_is_none_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
