"""A gripper's air: charging curves in closed form, conservation, and cups that share a line."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.physics.gas.law import VISCOSITY, leak
from palpo.physics.gas.network import OUTSIDE, Network, NodePump, Pipe, PumpedCups, pipe_conductance
from palpo.physics.numerics.errors import InputError

ATMOSPHERE, RT = 101325.0, 2437.0


def run(network, seconds, h):
    for _ in range(round(seconds / h)):
        network.step(h)
    return network.pressure


def errors(make, seconds, exact):
    return [abs(run(make(), seconds, h)[0] - exact) for h in (seconds / 50, seconds / 100, seconds / 200)]


def test_a_pumped_volume_falls_exponentially_to_what_the_pump_reaches():
    volume, pump = 2e-5, NodePump(0, 1.4e-4, 20e3)
    seconds = 0.2
    exact = pump.lowest + (ATMOSPHERE - pump.lowest) * math.exp(-pump.speed * seconds / volume)
    found = errors(lambda: Network([volume], [], [pump]), seconds, exact)
    # the first order of backward Euler
    assert 1.8 < found[0] / found[1] < 2.2 and 1.8 < found[1] / found[2] < 2.2
    assert found[2] < 0.005 * ATMOSPHERE
    assert run(Network([volume], [], [pump]), 100.0, 1.0)[0] == pytest.approx(pump.lowest, rel=1e-6)


def test_a_leaking_volume_fills_by_the_leak_s_own_law():
    volume, g = 4e-6, 3e-11

    def emptied():
        network = Network([volume], [Pipe(0, OUTSIDE, g)])
        network.held[:] = 40e3 * volume
        return network

    seconds = 1.0
    exact = leak(40e3 * volume / RT, volume, g, ATMOSPHERE, RT, seconds) * RT / volume
    found = errors(emptied, seconds, exact)
    assert 1.8 < found[0] / found[1] < 2.2 and found[2] < 0.005 * ATMOSPHERE


@given(
    st.lists(st.floats(1e-7, 1e-4), min_size=3, max_size=5),
    st.lists(st.floats(1e-13, 1e-7), min_size=6, max_size=6),
    st.floats(1e-5, 10.0),
)
def test_air_is_neither_made_nor_lost_between_nodes_and_no_pressure_leaves_its_bounds(volume, g, h):
    n = len(volume)
    pairs = [(i, j) for i in range(n) for j in range(i)][:6]
    network = Network(volume, [Pipe(i, j, c) for (i, j), c in zip(pairs, g, strict=False)])
    network.held *= np.linspace(0.05, 1.0, n)
    total, least, most = network.held.sum(), network.pressure.min(), network.pressure.max()
    for _ in range(5):
        network.step(h)
        assert network.held.sum() == pytest.approx(total, rel=1e-12)
        assert least * (1 - 1e-9) <= network.pressure.min() <= network.pressure.max() <= most * (1 + 1e-9)


def test_at_rest_what_leaks_in_is_what_the_pump_takes():
    """Cups on one manifold: the pump's flow curve meets the leaks' at the pressure that all share."""
    line, tight, torn = pipe_conductance(4e-3, 0.5), 1e-12, 2e-10
    pump = NodePump(0, 2e-4, 15e3)
    network = Network(
        [1e-5, 3e-6, 3e-6],
        [Pipe(1, 0, line), Pipe(2, 0, line), Pipe(OUTSIDE, 1, tight), Pipe(OUTSIDE, 2, torn)],
        [pump],
    )
    p = run(network, 50.0, 0.05)
    assert network.flow[2] + network.flow[3] == pytest.approx(network.pumped[0], rel=1e-6)
    assert network.flow[0] == pytest.approx(network.flow[2], rel=1e-6)
    for cup, leaks in ((1, tight), (2, torn)):
        # in series with its line, both conducting by the squares
        square = (line * p[0] ** 2 + leaks * ATMOSPHERE**2) / (line + leaks)
        assert p[cup] == pytest.approx(math.sqrt(square), rel=1e-6)
    assert p[1] < p[2] < ATMOSPHERE
    # the torn cup's valve shut: the others are pumped lower, and it fills
    network.open[1] = False
    q = run(network, 50.0, 0.05)
    assert q[1] < p[1] and q[2] == pytest.approx(ATMOSPHERE, rel=1e-4)


def test_a_cup_that_grows_thins_its_air():
    network = Network([4e-6], [])
    network.volume[0] *= 1.25
    network.step(0.01)
    assert network.pressure[0] == pytest.approx(0.8 * ATMOSPHERE, rel=1e-12)


def test_a_line_conducts_as_hagen_and_poiseuille_say():
    d, length, dp = 4e-3, 0.7, 1.0
    flow = pipe_conductance(d, length) * (ATMOSPHERE**2 - (ATMOSPHERE - dp) ** 2)
    assert flow == pytest.approx(math.pi * d**4 / (128 * VISCOSITY * length) * dp * ATMOSPHERE, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Network([1e-6, 0.0], []), "give each node one above 0"),
        (lambda: Network([1e-6], [Pipe(0, 1, 1e-9)]), "two of the nodes 0 to 0"),
        (lambda: Network([1e-6], [Pipe(0, OUTSIDE, -1.0)]), "conductance of 0 or more"),
        (lambda: Network([1e-6], [], [NodePump(0, 1e-4, 2e5)]), "pressure below the atmosphere's"),
        (lambda: pipe_conductance(0.0, 1.0), "diameter = 0.0"),
    ],
)
def test_what_is_no_network_is_refused_in_words(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_a_torn_cup_draws_its_neighbours_up_until_its_valve_is_shut():
    """What the pump takes at the common pressure is what the torn cup's line lets in; shut, nothing is."""
    line, volume = pipe_conductance(2e-3, 0.3), np.array([3e-6, 3e-6])
    pump = NodePump(0, 1e-4, 80e3)
    pumped = PumpedCups.of(2e-5, [line, line], 0.0, pump, ATMOSPHERE)
    pressure = np.full(2, ATMOSPHERE)

    def settle():
        for _ in range(2000):
            held = pumped.step(pressure, volume, np.array([True, False]), 0.01)
            pressure[0] = held[0] / volume[0]
            assert held[1] == 0.0, "what is torn holds nothing"
        return pressure[0]

    pumped.switch(True, False, [True, True])
    # S (p - p_end) = G (P^2 - p^2)
    s, g = pump.speed, line
    exact = (-s + math.sqrt(s * s + 4.0 * g * (g * ATMOSPHERE**2 + s * pump.lowest))) / (2.0 * g)
    assert settle() == pytest.approx(exact, rel=1e-6) == pytest.approx(pumped.pressure, rel=1e-6)
    pumped.switch(True, False, [True, False])
    assert settle() == pytest.approx(pump.lowest, rel=1e-6)
    pumped.switch(False, False, [True, False])
    assert settle() == pytest.approx(pump.lowest, rel=1e-6), "off and shut it stays"


def test_a_vent_fills_every_cup_whose_valve_is_open():
    pumped = PumpedCups.of(2e-5, [1e-8, 1e-8], 1e-8, NodePump(0, 1e-4, 80e3), ATMOSPHERE)
    pumped.network.held[0] *= 0.8
    pumped.switch(False, True, [True, False])
    pressure, volume = np.full(2, 0.8 * ATMOSPHERE), np.full(2, 3e-6)
    for _ in range(500):
        pressure = pumped.step(pressure, volume, np.ones(2, bool), 0.01) / volume
    assert pressure[0] == pytest.approx(ATMOSPHERE, rel=1e-6)
    assert pressure[1] == pytest.approx(0.8 * ATMOSPHERE, rel=1e-12)


def moved(pumped, held, walls, h):
    """Pressures [Pa] and p V [J] after a step of cups with p V `held`, whose walls give: V = V_0 + c (p - P).

    walls: V_0 [m3] and c [m3/Pa].
    """
    room, yielding = walls
    bare = room - yielding * ATMOSPHERE
    start = 2.0 * held / (bare + np.sqrt(bare**2 + 4.0 * yielding * held))
    lines = pumped.couple(np.arange(len(held)), start, room + yielding * (start - ATMOSPHERE), h)
    p = start.copy()
    for _ in range(50):
        s, all_p = lines.seeping, np.append(p, ATMOSPHERE)
        flow = (s * (all_p[:, None] ** 2 - all_p**2)).sum(axis=1)[:-1]
        error = p * (room + yielding * (p - ATMOSPHERE)) + flow - held - lines.amount
        slope = np.diag(room + yielding * (2.0 * p - ATMOSPHERE) + 2.0 * s[:-1].sum(axis=1) * p)
        p -= np.linalg.solve(slope - 2.0 * s[:-1, :-1] * p, error)
    after = p * (room + yielding * (p - ATMOSPHERE))
    pumped.settle(float((after - held).sum()), h)
    return p, after


def of_three(volume=2e-5, vent=0.0):
    """Three cups of 4 cm3 on lines as the gripper's, 20 kPa below the atmosphere as the manifold is."""
    line = pipe_conductance(2e-3, 0.3)
    pumped = PumpedCups.of(volume, [line] * 3, vent, NodePump(0, 1e-4, 60e3), ATMOSPHERE)
    pumped.network.held[0] *= 0.8
    return pumped, 0.8 * ATMOSPHERE * np.array([4e-6, 3e-6, 2e-6])


STIFF = np.array([4e-6, 3e-6, 2e-6]), np.full(3, 1e-18)
"""Walls that do not give."""


@given(st.floats(1e-5, 1.0), st.floats(1.01, 2.0))
def test_lines_in_the_cups_own_solution_make_and_lose_no_air(h, pulled):
    pumped, held = of_three()
    pumped.switch(False, False, [True] * 3)
    total = held.sum() + pumped.network.held[0]
    for _ in range(3):
        _, held = moved(pumped, held, (pulled * STIFF[0], np.full(3, 1e-10)), h)
        assert held.sum() + pumped.network.held[0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("h", [1e-4, 1e-2, 1.0])
def test_with_walls_that_do_not_give_it_is_the_network_s_own_step(h):
    (one, held), (other, _) = of_three(vent=1e-8), of_three(vent=1e-8)
    for pumped in (one, other):
        pumped.switch(True, True, [True, True, False])
    _, found = moved(one, held.copy(), STIFF, h)
    exact = other.step(held / STIFF[0], STIFF[0], np.ones(3, bool), h)
    assert found == pytest.approx(exact, rel=1e-6)
    assert one.pressure == pytest.approx(other.pressure, rel=1e-6)


def test_a_pulled_cup_fills_in_the_time_of_the_air_and_not_in_a_number_of_steps():
    """A load stretches three cups and the vent opens: their lines take 14 ms, so that 0.2 s later nothing is
    left of 20 kPa, at any step. With the volumes held while air flows, a step lets in 2.4 kPa."""
    vent = pipe_conductance(2e-3, 0.05)
    for h in (1e-3, 1e-2, 0.05):
        pumped, held = of_three(vent=vent)
        pumped.switch(False, True, [True] * 3)
        walls = np.full(3, 2e-5), np.full(3, 8e-10)
        for _ in range(round(0.2 / h)):
            p, held = moved(pumped, held, walls, h)
        assert p == pytest.approx(ATMOSPHERE, rel=0.01)
