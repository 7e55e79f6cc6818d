"""Z-width: the sampled wall against its eigenvalues, the search, and the study's own verdict."""

import csv
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palpo.haptics.device_spec import TOUCH
from palpo.studies.registry import run_study
from palpo.studies.sampled_wall import IdealDevice, closed_loop, decays, exact_boundary, passivity_bound
from palpo.studies.zwidth_loops import REST, ClosedLoop, largest_stable

DEVICES = [
    IdealDevice(0.045, 4.0, 1e-3),
    IdealDevice(0.045, 0.5, 1e-3),
    IdealDevice(0.2, 20.0, 2.5e-4),
    # friction stops it within a period: the loop ends by flipping sign at every tick, not by swinging
    IdealDevice(0.002, 10.0, 1e-3),
]


def spectral_radius(stiffness: float, damping: float, device: IdealDevice) -> float:
    return float(np.abs(np.linalg.eigvals(closed_loop(stiffness, damping, device))).max())


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


@pytest.mark.parametrize("device", DEVICES)
def test_passive_implies_stable(device: IdealDevice):
    for damping in np.linspace(0.0, 0.999 * device.viscosity, 40):
        assert passivity_bound(damping, *device[1:]) < exact_boundary(damping, device)


def test_without_damping_and_with_light_friction_passive_and_stable_are_the_same():
    # K = 2 b / T (1 + b T / 6 m + ...), here a sixth of 1e-3 beyond the bound
    device = IdealDevice(0.045, 0.045, 1e-3)
    assert exact_boundary(0.0, device) == pytest.approx(passivity_bound(0.0, *device[1:]), rel=2e-4)


@pytest.mark.parametrize("damping", [0.0, 2.0, 20.0])
def test_the_simulated_servo_is_stable_up_to_the_closed_form(damping: float):
    # 0.4%: what splitting friction from motion within a tick shifts the boundary by at 20 N s/m, doubled
    device = DEVICES[0]
    edge = exact_boundary(damping, device)
    assert decays(0.996 * edge, damping, device)
    assert not decays(1.004 * edge, damping, device)


def test_the_search_finds_an_edge_to_its_resolution_and_stops_before_an_island():
    grid = np.geomspace(1.0, 1e4, 33)
    found = largest_stable(lambda k: k < 70.0 or k > 500.0, grid, 0.01)
    assert 70.0 / 1.01 <= found < 70.0
    assert largest_stable(lambda k: False, grid) == 0.0
    assert largest_stable(lambda k: True, grid) == 1e4


@pytest.mark.parametrize("held", [True, False], ids=["in the hand", "let go"])
def test_the_default_coupling_rests_where_a_hundredfold_one_swings(held: bool):
    loop = ClosedLoop(TOUCH, held)
    assert loop.rests(500.0, 1.0)
    wild = loop.rows(50e3, 1.0, 0.1)
    # no limit, fade or stop may have hidden the swing
    assert len(wild) == loop.ticks
    assert np.ptp(loop.tail(wild, "py")) > REST
    assert not loop.tail(wild, "flags").any()


def test_a_pressed_wall_feels_the_press():
    """In equilibrium the wall carries the press less what dry friction may still hold."""
    loop = ClosedLoop(TOUCH, held=False)
    force = loop.tail(loop.rows(2000.0, 1.0, 0.0), "sent_y").mean()
    assert abs(force - 1.0) <= TOUCH.friction


@pytest.mark.slow
def test_the_zwidth_study_holds(tmp_path: Path):
    claims = run_study("zwidth", tmp_path, quick=True, console=Console(quiet=True))
    assert claims and all(claim.holds for claim in claims), [c for c in claims if not c.holds]
    with (tmp_path / "map.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["largest_N_per_m"]) > float(row["promised_N_per_m"]) for row in rows)
    assert (tmp_path / "zwidth.png").stat().st_size > 20_000
