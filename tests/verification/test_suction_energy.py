"""Steps of any lengths, one after another, give a suction scene no energy: what meets, falls and rests."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.systems.suction.build import build
from palpo.config.load import load_scene
from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_motion import add_held
from palpo.physics.mesh.generate import box_surface
from palpo.physics.suction.contact_search import Ground
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.sides import RigidSide
from palpo.physics.systems.suction.rows import PARTING
from palpo.physics.systems.suction.step import STOP, Suction
from tests.verification.test_suction_step import (
    AIR,
    LIMITS,
    TIGHT,
    UP,
    G,
    H,
    cube,
    on_plane,
    press_and_lift,
    small_cup,
    soft_cube,
)

STEPS = (0.01, 0.0125, 0.016, 0.02, 0.025, 0.032)
"""Of rates from 100 to 31 Hz."""
CLOSED = replace(AIR, largest=np.inf)


def energy(system):
    """Kinetic, elastic and of height, and what shut-in air can do on its way to the outside's pressure [J]:
    n R T (log(p / P_atm) + P_atm / p - 1)."""
    total = 0.0
    for side in system.sides:
        body = side.body
        total += body.energy()
        handle = getattr(body, "handle", None)
        if handle is not None:
            mass, rest = handle.own_mass(), np.zeros_like(body.x)
            add_held(body.fixed, body.x, handle.position, body.node_mass, rest, mass, np.zeros(6))
            total += 0.5 * handle.velocity @ mass @ handle.velocity
    ratio = system.pressure / system.air.atmosphere
    return total + float((system.amount * system.air.rt * (np.log(ratio) + 1.0 / ratio - 1.0)).sum())


def plate(mass, tilt):
    """A plate of 150 x 8 x 150 mm about the height of 0, turned by `tilt` [rad] about a slanting axis."""
    a, b = 0.15, 0.008
    inertia = mass / 12.0 * np.diag([a * a + b * b, 2.0 * a * a, a * a + b * b])
    turn = np.cos(0.5 * tilt), 0.8 * np.sin(0.5 * tilt), 0.0, 0.6 * np.sin(0.5 * tilt)
    body = RigidBody("plate", mass, inertia, (0.0, -0.5, 0.0), turn, gravity=(0.0, -G, 0.0))
    return RigidSide(body, box_surface((a, b, a)), 512)


def lowest(part):
    origin, turn = part.axes
    return float((origin + part.local @ turn.T)[:, 1].min())


@pytest.mark.parametrize("seed", range(3))
def test_a_plate_that_falls_on_its_edge_never_gains_energy_whatever_the_steps(seed):
    """It falls by some 25 mm in a step of 32 ms: the ground below is found before, and not from behind."""
    part, steps = plate(0.2, 0.3), np.random.default_rng(seed)
    ground = Ground(lowest(part) - 0.03, 0.6, np.arange(8))
    system = Suction([CupSpec(small_cup())], part, LIMITS, AIR, H, ground=ground)
    energies, start = [part.body.energy()], part.body.x[0, 1]
    for _ in range(50):
        system.take_step(steps.choice(STEPS))
        system.step()
        energies.append(part.body.energy())
        # what a plate that turns in a step comes lower than its points' straight ways, by the second power
        assert lowest(part) > ground.height - 1e-3
    assert start - part.body.x[0, 1] > 0.03, "it has not fallen"
    assert np.diff(energies).max() <= 1e-6 * (energies[0] - energies[-1])
    corners = part.body.v[:3] + np.cross(part.body.v[3:], part.local @ part.axes[1].T)
    # at rest: what solutions to the solver's tolerance leave of the longest step's free fall, in the shortest
    assert np.abs(corners).max() <= STOP.tolerance * G * max(STEPS) ** 2 / min(STEPS)


@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_a_cup_thrown_at_a_cube_in_the_void_never_gains_energy_whatever_the_steps(kind):
    """At 1 m/s it flies through five times the alarm distance in a step, from 25 mm away."""
    for seed in range(2):
        body = small_cup(above=0.025, gravity=0.0)
        part = cube(0.05, gravity=0.0) if kind == "rigid" else soft_cube()
        body.handle.release()
        body.handle.velocity[:3] = 0.01, -1.0, 0.02
        body.v[:] = np.tile(body.handle.velocity[:3], body.free.size)
        system = Suction([CupSpec(body)], part, LIMITS, CLOSED, H, stop=TIGHT)
        steps, energies, most = np.random.default_rng(seed), [energy(system)], 0.0
        for _ in range(30):
            system.take_step(steps.choice(STEPS))
            system.step()
            energies.append(energy(system))
            most = max(most, np.abs(system.pressure - AIR.atmosphere).max(initial=0.0))
        assert most > 50.0, "or it shows nothing of the air"
        # gaps and volumes are linear over a step: what is left is of its second power
        assert np.diff(energies).max() <= 1e-5 * energies[0]
        # most of the blow is lost: both move on together
        assert energies[-1] < 0.5 * energies[0]


def test_what_overlaps_comes_apart_slowly_and_gains_no_more_than_that_speed():
    part = cube(0.2)
    low = np.flatnonzero(part.surface.vertices[:, 1] < 0.0)
    deep = 0.01
    ground = Ground(-2.0 * part.local[:, 1].max() + deep, 0.6, low)
    system = Suction([CupSpec(small_cup(above=0.05))], part, LIMITS, AIR, H, ground=ground)
    rising = []
    for _ in range(round(1.2 * deep / (PARTING * H))):
        system.step()
        rising.append(part.body.v[1])
    assert max(rising) == pytest.approx(PARTING, rel=1e-6)
    assert lowest(part) == pytest.approx(ground.height + LIMITS.contact, abs=PARTING**2 / G)


def test_a_change_of_step_leaves_a_cup_at_rest_where_it_is():
    """Pressed on and held, at rest at 10 ms: it stays, its force and its air too, whatever the steps."""
    system = on_plane(small_cup(), air=CLOSED, stop=TIGHT)
    handle = system.cups[0].body.handle
    path = press_and_lift(1.2e-3, 0.2, 0.0)
    for _ in range(200):
        handle.drive(handle.centre + path(system.time + H) * UP)
        system.step()
    rest, hold, pressure = system.cups[0].body.x.copy(), system.hold[0].copy(), system.pressure.copy()
    steps = np.random.default_rng(0)
    for _ in range(60):
        system.take_step(steps.choice(STEPS))
        system.step()
        # the solver's tolerance, on a cup of 2 cm under a force of a newton
        assert np.abs(system.cups[0].body.x - rest).max() <= 1e-8
        assert system.hold[0] == pytest.approx(hold, abs=1e-4 * np.abs(hold).max())
        assert system.pressure - AIR.atmosphere == pytest.approx(pressure - AIR.atmosphere, rel=1e-3)


@pytest.mark.parametrize("h", [0.01, 0.032])
def test_a_gripper_s_plate_falls_once_the_air_is_in_at_any_step(h):
    """The vent opens at 3.4 s; lines and walls take some 14 ms, and it falls 25 mm in 71 ms."""
    made = build(load_scene("suction-gripper", [f"bodies.{i}.geometry.resolution=76" for i in range(4)]))
    suction = made.suction
    suction.take_step(h)
    start, heights = suction.partner.body.x[0, 1], []
    while suction.time < 3.72:
        for drive in made.drives:
            drive.prepare(suction.time + h)
        suction.step()
        heights.append((suction.time, suction.partner.body.x[0, 1] - start))
    suction.close()
    time, height = np.array(heights).T
    assert height[(time > 2.8) & (time < 3.4)].min() > 0.02
    assert abs(height[-1]) < 1e-3
    assert height.max() < 0.03
