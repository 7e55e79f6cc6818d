"""Laws of cables led through a soft arm."""

import numpy as np

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.octopus_arm import octopus_arm
from palpo.physics.systems.suction.drives import Cables, cable_links

H = 0.01
PULL = 8.0


def pulled_arm():
    """The arm at rest, without weight, and its two lower cables under a constant pull."""
    arm = octopus_arm()
    lower = arm.cables[:2]
    body = HeldBody(
        "arm", arm.mesh, Material(150e3, 0.42, 1070.0), arm.base, gravity=(0, 0, 0), links=cable_links(lower)
    )
    return body, Cables(body, lower, (lambda _: PULL,) * 2, arm.shares[:2]), arm


def step(body, drive, time):
    drive.prepare(time)
    velocities = body.free_motion(H)
    body.finish(velocities, H)
    return velocities


def test_cables_pull_with_no_force_and_no_moment_on_the_whole_arm():
    body, drive, _ = pulled_arm()
    for k in range(20):
        step(body, drive, k * H)
    drive.prepare(1.0)
    assert np.abs(body.load).max() > 1.0
    np.testing.assert_allclose(body.load.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.cross(body.x, body.load).sum(axis=0), 0.0, atol=1e-12)


def test_energy_under_a_constant_pull_falls_until_the_arm_rests():
    """Motion, strain and the pull's potential t l; explicitly the cables keep up a zigzag of 1 m/s."""
    body, drive, arm = pulled_arm()
    links, shares = cable_links(arm.cables[:2]), np.concatenate(arm.shares[:2])
    energy, motion = [], []
    for k in range(300):
        v = step(body, drive, k * H)
        lengths = np.linalg.norm(body.x[links[:, 1]] - body.x[links[:, 0]], axis=1)
        motion.append(0.5 * (body.node_mass[:, None] * v**2).sum())
        strain = body._elements.energy(body.x, body._quats)
        energy.append(motion[-1] + strain + PULL * (shares * lengths).sum())
    assert np.diff(energy).max() < 1e-12 * max(energy)
    assert motion[-1] < 1e-6 * max(motion)
