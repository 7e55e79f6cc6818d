"""A soft body that falls on a table: what holds however fast it comes and however old its model is."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import hex_block
from palpo.physics.reduction.energy_law import keep_energy
from palpo.physics.reduction.rational_krylov import best_rotation
from palpo.physics.systems.multirate.lock_step import LockStep
from tests.verification.small_scenes import (
    BALL_ON_BLOCK,
    BOX_ON_PLANE,
    lock_step,
    resting,
    small_scene,
    straight,
)

FAR = (2.0, 0.5, 0.0)
CYLINDER = """
kind = "tets"
geometry = {{ kind = "cylinder", radius = 0.02, length = 0.06, axis = "x", around = 11, along = 6 }}
placement = {{ position = [0, {height}, 0] }}
material = {{ youngs_modulus = 30e3, poisson_ratio = 0.45, density = 1030, alpha = {alpha}, beta = 2e-3 }}
"""
LATE = (1.0, 1.9, 1.2, 1.7)
"""Slow periods that slow steps take in turn."""


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


@pytest.mark.parametrize(("height", "low_hz"), [(0.6, 50), (1.2, 20), (1.2, 50), (1.2, 100), (3.0, 50)])
@pytest.mark.parametrize("durations", [(1.0,), LATE])
def test_no_energy_is_made_by_an_impact(height: float, low_hz: int, durations: tuple[float, ...]) -> None:
    """A body never has more than before it fell, and rises no higher; the servo's model neither."""
    run = dropped(height, low_hz, durations)
    body = run.low.scene.members[0].body
    start, high = body.energy(), float(body.node_mass @ body.x[:, 1]) / body.mass
    for _ in range(round((np.sqrt(2.0 * height / 9.81) + 0.5) / 0.01)):
        proceed(run, 10)
        # the tolerance is rounding of the gravity potential
        assert body.energy() <= (1.0 + 1e-9) * start
        assert run.side.links[0].interface.centre[0, 1] <= high
    run.close()


@pytest.mark.parametrize("low_hz", [20, 100])
def test_momentum_is_gravitys_and_the_contacts_impulse(low_hz: int) -> None:
    """p = m g t + sum f h, to rounding: without damping of the mass nothing else acts on the whole body."""
    run = dropped(1.2, low_hz, LATE, alpha=0.0)
    body, impulse = run.low.scene.members[0].body, np.zeros(3)
    run.low.booked = lambda _, given: impulse.__iadd__(given.sum(axis=0))
    for _ in range(20):
        proceed(run, 35)
        expected = impulse + body.mass * body.gravity * (run.low.tick * run.scene.numbers.dt)
        assert body.momentum()[0] == pytest.approx(expected, abs=1e-9)
    assert np.linalg.norm(impulse) > 0.3
    run.close()


def wild() -> tuple[SoftBody, np.ndarray]:
    """A cylinder that turns, flies and was blown up unevenly by a model; its positions at rest."""
    run = dropped(1.0, 50)
    member = run.low.scene.members[0]
    run.close()
    body, rng = member.body, np.random.default_rng(2)
    centre = body.node_mass @ body.x / body.mass
    rest = body.x - centre
    turned = rest @ Rotation.from_rotvec([0.4, -0.8, 0.3]).as_matrix().T
    body.x[:] = centre + turned + 0.005 * rng.standard_normal(rest.shape)
    body.v = (np.array([0.5, -3.0, 0.1]) + np.cross([3.0, 20.0, -8.0], turned)).ravel()
    body.v += rng.standard_normal(body.v.size)
    return body, rest


def statics(body: SoftBody) -> Callable[[], np.ndarray]:
    """A step towards less energy by the body's own factor, which is of where it is now."""
    h, beta = 0.02, body.material.beta
    body.linearise()
    factor = body.factor(h)
    return lambda: factor.solve(h * (beta + h) * body.undamped_force()).reshape(-1, 3)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_body_keeps_what_energy_allows_and_all_of_its_momentum(share: float) -> None:
    body, rest = wild()
    centre = body.node_mass @ body.x / body.mass
    linear, angular = body.momentum()
    _, velocity, spin, inertia = body.rigid_state()
    momentum = inertia @ spin
    axes = best_rotation(rest, body.x - centre, body.mass_free)
    inertia = axes @ inertia_of(body.node_mass, rest) @ axes.T
    least = 0.5 * body.mass * velocity @ velocity - body.mass * body.gravity @ centre
    least += 0.5 * momentum @ np.linalg.solve(inertia, momentum)
    allowed = least + share * (body.energy() - least)
    before = body.energy()
    assert 0.0 <= keep_energy(body, statics(body), [rest], allowed) < 1.0
    assert body.energy() <= allowed * (1.0 + 1e-9)
    assert before - body.energy() < 2.0 * (before - allowed)
    assert body.momentum()[0] == pytest.approx(linear, rel=1e-9)
    assert body.momentum()[1] == pytest.approx(angular, rel=1e-9, abs=1e-12)
    assert body.node_mass @ body.x / body.mass == pytest.approx(centre, abs=1e-12)
    # what is within its bound stays as it is
    shape = body.x.copy(), body.v.copy()
    assert keep_energy(body, statics(body), [rest], body.energy()) == 1.0
    assert np.array_equal(shape[0], body.x)
    assert np.array_equal(shape[1], body.v)


def inertia_of(mass: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.eye(3) * (mass * (r * r).sum(axis=1)).sum() - (mass[:, None] * r).T @ r


@pytest.mark.parametrize("excess", [1e-8, 1e-5, 1e-2])
def test_of_a_body_with_a_little_too_much_energy_a_little_is_taken(excess: float) -> None:
    """In proportion to what is too much, however little that is: here of a cylinder that is pressed unevenly,
    whose energy falls more slowly than the share's square, so that one trial is not enough.
    """
    body, rest = wild()
    body.x[:] = [0.7, 1.0, 1.0] * rest + 1e-3 * np.random.default_rng(1).standard_normal(rest.shape)
    body.v[:] = 0.0
    before = body.energy()
    keep_energy(body, statics(body), [rest], (1.0 - excess) * before)
    assert 0.9 * excess < 1.0 - body.energy() / before < 1.5 * excess


def folded() -> SoftBody:
    """A clamped bar, bent by its free end into half a circle."""
    bar = hex_block((0.12, 0.006, 0.02), (20, 1, 2))
    clamped = np.flatnonzero(bar.nodes[:, 0] < -0.0599)
    body = SoftBody("bar", bar, Material(1e5, 0.45, 1000.0, 0.0, 5e-3), clamped)
    radius = 0.12 / np.pi
    angle, away = (bar.nodes[:, 0] + 0.06) / radius, radius - bar.nodes[:, 1]
    body.x[body.free] = np.column_stack(
        [away * np.sin(angle) - 0.06, radius - away * np.cos(angle), bar.nodes[:, 2]]
    )[body.free]
    return body


def moved(body: SoftBody, before: np.ndarray) -> float:
    """The farthest that a node is from where it was, over the bar's length."""
    return float(np.linalg.norm(body.x - before, axis=1).max() / 0.12)


def test_a_folded_bar_with_a_little_too_much_energy_stays_folded() -> None:
    """A hundredth of its energy is a two-hundredth of its bend."""
    body = folded()
    rest, before = body.mesh.nodes[body.free], body.x.copy()
    allowed = 0.99 * body.energy()
    keep_energy(body, statics(body), [rest], allowed)
    assert 0.98 * allowed < body.energy() <= allowed * (1.0 + 1e-9)
    assert moved(body, before) < 0.02


def test_a_folded_bar_that_a_model_crushed_goes_back_to_its_last_shape() -> None:
    body = folded()
    rest, before, start = body.mesh.nodes[body.free], body.x.copy(), body.x[body.free].copy()
    allowed, step = 1.01 * body.energy(), statics(body)
    body.x[body.free] += 0.01 * np.random.default_rng(3).standard_normal((len(body.free), 3))
    assert body.energy() > 100.0 * allowed
    keep_energy(body, step, [start, rest], allowed)
    assert body.energy() <= allowed * (1.0 + 1e-9)
    assert moved(body, before) < 0.05


@pytest.mark.parametrize("rate", [100, 1000])
def test_a_ball_that_rests_on_a_lightly_damped_block_is_felt_as_if_all_were_at_1_khz(rate: int) -> None:
    """Nothing of a slow step is felt where nothing moves."""
    above, pressed = (0.003, 0.0088, -0.002), (0.003, 0.0068, -0.002)
    felt = []
    for kind in ("krylov", "monolithic"):
        run = lock_step(BALL_ON_BLOCK, f"rates.low_hz={rate}", latency="none", kind=kind)
        trace = run.run(np.vstack([straight(above, pressed, 60), resting(pressed, 700)]))
        run.close()
        felt.append(trace["force"][-200:])
        assert np.ptp(felt[-1], axis=0) == pytest.approx(0.0, abs=1e-6)
    assert felt[0][-1] == pytest.approx(felt[1][-1], abs=1e-4 * np.linalg.norm(felt[1][-1]))
