"""A quasi-static block in the hand of a multi-rate scene: what it pushes with, and what others see of it."""

import numpy as np
import pytest

from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import SKIN, resting, small_scene, straight

ON_A_BOX = """
title = "a quasi-static block over a box"
gravity = [0, 0, 0]

[[bodies]]
name = "box"
kind = "mesh"
geometry = { kind = "box", size = [0.2, 0.02, 0.2] }
placement = { position = [0, -0.01, 0] }

[[bodies]]
name = "aside"
kind = "tets"
geometry = { kind = "block", size = [0.02, 0.02, 0.02], divisions = [1, 1, 1] }
placement = { position = [0.5, 0, 0] }
material = { youngs_modulus = 30e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }

[[bodies]]
name = "block"
kind = "quasistatic"
geometry = { kind = "hexes", size = [0.02, 0.03, 0.02], divisions = [2, 3, 2] }
placement = { position = [0, 0.016, 0] }
material = { youngs_modulus = 20e3, poisson_ratio = 0.3, density = 1000 }
clamped = [{ box = [[-1, 0.0309, -1], [1, 1, 1]] }]

[friction]
default = 0.0

[solver]
name = "SOLVER"
tolerance = 1e-9
sweeps_high = 5000

[tool]
body = "block"

[tool.hold]
MODE
"""
DIRECT, COUPLED = 'mode = "direct"', "stiffness = 400"
FREE, DEPTH = 0.001 - SKIN, 0.002
"""How far the block is above the gap that contacts keep, and how far its upper end is pressed beyond [m]."""


def pressed(hold: str, solver: str = "gauss-seidel") -> tuple[LockStep, dict[str, np.ndarray]]:
    """The block, its upper end led down by DEPTH beyond contact and left there."""
    run = LockStep(small_scene(ON_A_BOX.replace("MODE", hold).replace("SOLVER", solver)))
    start = run.high.port.position.copy()
    down = start - np.array([0.0, FREE + DEPTH, 0.0])
    trace = run.run(np.vstack([straight(start, down, 200), resting(down, 300)]))
    run.close()
    return run, trace


def lower_end(run: LockStep) -> np.ndarray:
    """Surface nodes of the block's lower end, by their place among them."""
    (tool,) = run.scene.quasistatic.values()
    y = tool.body.boundary.rest[:, 1]
    return np.flatnonzero(y < y.min() + 1e-6)


@pytest.fixture(scope="module", params=["gauss-seidel", "anderson"])
def held(request):
    return pressed(DIRECT, request.param)


def pushes(run: LockStep, depth: float) -> np.ndarray:
    """What nodes that are kept from sinking in by `depth` [m] push with, by K^-1 alone [N], (k,)."""
    (tool,) = run.scene.quasistatic.values()
    nodes = tool.body.surface_nodes[lower_end(run)]
    normal = tool.body.compliance(nodes)[1::3, 1::3]
    force = np.linalg.solve(normal, np.full(len(nodes), depth))
    assert (force > 0.0).all()
    return force


def test_a_block_that_is_held_pushes_with_its_stiffness(held):
    run, trace = held
    expected = [0.0, pushes(run, DEPTH).sum(), 0.0]
    np.testing.assert_allclose(trace["felt"][-1, 0], expected, atol=1e-5 * expected[1])


def test_a_coupling_and_the_block_are_springs_in_series():
    run, trace = pressed(COUPLED)
    block = pushes(run, DEPTH).sum() / DEPTH
    assert trace["felt"][-1, 0, 1] == pytest.approx(DEPTH / (1.0 / 400.0 + 1.0 / block), rel=1e-5)


def test_others_see_the_deformed_surface(held):
    run, trace = held
    end = lower_end(run)
    np.testing.assert_allclose(trace["tool"][-1, end, 1], SKIN, atol=1e-8)
    low, first = run.low, int(run.scene.tool_points.span[0])
    low.read_tool()
    low.place_points(low.servo_tool())
    np.testing.assert_array_equal(low.x[first + end], trace["tool"][-1, end])


def test_what_others_are_told_of_its_speed_covers_its_way(held):
    """Candidates are looked for by the odometer: it is ahead of each node, but for the tick that it lags."""
    run, trace = held
    steps = np.linalg.norm(np.diff(trace["tool"], axis=0), axis=2)
    assert run.high.search.odometer[0] >= steps.sum(axis=0).max() - steps.max()
    assert steps.max() > 0.0
