"""Z-width: the sampled wall against its eigenvalues, the search, and the study's own verdict."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.config.schema.tool import HoldSpec
from palpo.haptics.device_spec import TOUCH
from palpo.studies.registry import run_study
from palpo.studies.sampled_wall import (
    IdealDevice,
    closed_loop,
    decays,
    exact_boundary,
    largest_stable,
    passivity_bound,
    spectral_radius,
)
from palpo.studies.zwidth_loops import IN_THE_HAND, LET_GO, REST, ClosedLoop

DELAYED = IdealDevice(0.045, 4.0, 1e-3, 2e-3)
DEVICES = [
    IdealDevice(0.045, 4.0, 1e-3),
    IdealDevice(0.045, 0.5, 1e-3),
    IdealDevice(0.2, 20.0, 2.5e-4),
    # friction stops it within a period: the loop ends by flipping sign at every tick, not by swinging
    IdealDevice(0.002, 10.0, 1e-3),
]


def natural_damping(device: IdealDevice) -> float:
    """What scales the largest damping that a loop bears [N s/m]."""
    return max(device.mass / device.period, device.viscosity)


@pytest.mark.parametrize("device", DEVICES)
def test_the_closed_form_separates_eigenvalues_within_from_those_without_the_unit_circle(device: IdealDevice):
    most = natural_damping(device)
    for damping in np.concatenate([[0.0], np.geomspace(1e-3, 4.0, 25)]) * most:
        edge = exact_boundary(damping, device)
        for stiffness in np.geomspace(1e-3, 10.0, 60) * most / device.period:
            if abs(stiffness / max(edge, 1e-12) - 1.0) > 1e-9:
                assert (spectral_radius(stiffness, damping, device) < 1.0) == (stiffness < edge)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_on_the_boundary_an_eigenvalue_lies_on_the_unit_circle(device: IdealDevice, share: float):
    damping = share * natural_damping(device)
    assert spectral_radius(exact_boundary(damping, device), damping, device) == pytest.approx(1.0, abs=1e-12)


def test_one_period_of_the_loop_is_the_equation_of_motion_integrated():
    device, stiffness, damping = DEVICES[0], 5000.0, 3.0
    x, v, before = 1e-3, -0.2, 1.3e-3
    force = -stiffness * x - damping * (x - before) / device.period
    start, n = x, 100_000
    h = device.period / n
    for _ in range(n):  # midpoint rule: second order in a step of 1e-5 periods
        middle = v + 0.5 * h * (force - device.viscosity * v) / device.mass
        x, v = x + h * middle, v + h * (force - device.viscosity * middle) / device.mass
    after = closed_loop(stiffness, damping, device) @ [start, -0.2, before]
    np.testing.assert_allclose(after, [x, v, start], rtol=1e-10)


@pytest.mark.parametrize("delay", [0.3e-3, 1e-3, 2.4e-3])
def test_a_delayed_loop_is_the_equation_of_motion_under_forces_that_come_late(delay: float):
    device, stiffness, damping = DELAYED._replace(delay=delay), 900.0, 3.0
    step = closed_loop(stiffness, damping, device)
    state = np.zeros(len(step))
    state[:3] = 1e-3, -0.2, 1.3e-3
    m, b, T = device[:3]
    x, v, before, sent = 1e-3, -0.2, 1.3e-3, []
    n = 20_000  # steps a period of the midpoint rule, second order: 1e-9 of the way
    late = round(delay / T * n)
    for k in range(6):
        sent.append(-stiffness * x - damping * (x - before) / T)
        before = x
        for i in range(n):
            tick = (k * n + i - late) // n
            force = sent[tick] if tick >= 0 else 0.0
            middle = v + 0.5 * T / n * (force - b * v) / m
            x, v = x + T / n * middle, v + T / n * (force - b * middle) / m
        state = step @ state
        np.testing.assert_allclose(state[:3], [x, v, before], rtol=1e-8)


def test_a_delay_takes_a_wall_with_little_friction_to_a_boundary_of_b_over_t_half_and_d():
    # for slow swings it is m x'' + (b - K (T / 2 + d)) x' + K x = 0, off by the square of w (T + d) = 6e-3
    device = IdealDevice(4.5, 0.045, 1e-3, 2e-3)
    assert exact_boundary(0.0, device) == pytest.approx(0.045 / 2.5e-3, rel=1e-3)


@pytest.mark.parametrize("device", [*DEVICES, DELAYED])
def test_passive_implies_stable(device: IdealDevice):
    for damping in np.linspace(0.0, 0.999 * device.viscosity, 40):
        assert passivity_bound(damping, *device[1:]) < exact_boundary(damping, device) * (1.0 + 1e-9)


def test_without_damping_and_with_light_friction_passive_and_stable_are_the_same():
    # K = 2 b / T (1 + b T / 6 m + ...), here a sixth of 1e-3 beyond the bound
    device = IdealDevice(0.045, 0.045, 1e-3)
    assert exact_boundary(0.0, device) == pytest.approx(passivity_bound(0.0, *device[1:]), rel=2e-4)


@pytest.mark.parametrize("delay", [0.0, 2e-3])
@pytest.mark.parametrize("damping", [0.0, 2.0, 10.0])
def test_the_simulated_servo_is_stable_up_to_the_exact_boundary(damping: float, delay: float):
    # 0.4%: what splitting friction from motion within a tick shifts the boundary by, doubled
    device = DEVICES[0]._replace(delay=delay)
    edge = exact_boundary(damping, device)
    assert decays(0.996 * edge, damping, device)
    assert not decays(1.004 * edge, damping, device)


def test_the_search_finds_an_edge_to_its_resolution_and_stops_before_an_island():
    grid = np.geomspace(1.0, 1e4, 33)
    found = largest_stable(lambda k: k < 70.0 or k > 500.0, grid, 0.01)
    assert 70.0 / 1.01 <= found < 70.0
    assert largest_stable(lambda k: False, grid, 0.01) == 0.0
    assert largest_stable(lambda k: True, grid, 0.01) == 1e4


@pytest.mark.parametrize("friction", [0.0, TOUCH.friction])
def test_the_default_coupling_rests_with_nobody_holding_on_after_a_touch_s_delay(friction: float):
    hold, device = HoldSpec(), replace(TOUCH, friction=friction)
    # without friction a swing of 0.3 m/s dies at the rate of the loop's own damping, in seconds
    assert ClosedLoop(device, LET_GO, ticks=4800).rests(hold.stiffness, hold.damping)


@pytest.mark.parametrize("grip", [IN_THE_HAND, LET_GO])
def test_the_default_coupling_rests_where_a_hundredfold_one_swings(grip: str):
    loop, hold = ClosedLoop(TOUCH, grip), HoldSpec()
    assert loop.rests(hold.stiffness, hold.damping)
    wild = loop.rows(100.0 * hold.stiffness, hold.damping, 0.1)
    # no limit, fade or stop may have hidden the swing
    assert len(wild) == loop.ticks
    assert np.ptp(loop.tail(wild, "py")) > REST
    assert not loop.tail(wild, "flags").any()


def test_a_pressed_wall_feels_the_press():
    """In equilibrium the wall carries the press less what dry friction may still hold."""
    loop = ClosedLoop(TOUCH, LET_GO)
    force = loop.tail(loop.rows(2000.0, 1.0, 0.0), "sent_y").mean()
    assert abs(force - 1.0) <= TOUCH.friction


@pytest.mark.slow
def test_the_zwidth_study_holds(tmp_path: Path):
    claims = run_study("zwidth", tmp_path, quick=True, console=Console(quiet=True))
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
    with (tmp_path / "map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["largest_N_per_m"]) > float(row["promised_N_per_m"]) for row in rows)
    assert all((tmp_path / f"{name}.png").stat().st_size > 20_000 for name in ("zwidth", "margin_map"))
