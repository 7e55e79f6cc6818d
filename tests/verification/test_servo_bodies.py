"""A body of another kind in a multi-rate scene is one more entry in a list."""

import numpy as np

from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.physics.systems.multirate.scene import Scene, ServoBody
from tests.verification.small_scenes import proceed, resting, small_scene, straight

BALL_ON_BLOCK_ON_BOX = """
title = "ball on a static box beside a soft one"

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.02, 0.02, 0.02], divisions = [2, 2, 2] }
placement = { position = [0.022, 0.01, 0] }
material = { youngs_modulus = 30e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }
fixed = [{ box = [[-1, -0.0001, -1], [1, 0.0001, 1]] }]

[[bodies]]
name = "box"
kind = "mesh"
geometry = { kind = "box", size = [0.02, 0.02, 0.02] }
placement = { position = [0, 0.01, 0] }

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.005, 0.0288, 0.001] }
mass = 0.03

[friction]
default = 0.4

[tool]
body = "ball"
"""


def with_the_box_as_a_body_of_its_own(scene: Scene) -> Scene:
    """The same scene, whose static box is no longer a part of the world."""
    number = scene.names.index("box")
    own = np.flatnonzero(scene.topology.point_body == number)
    points = scene.rest[own]
    scene.servo_bodies.append(
        ServoBody(FIXED, lambda room: make_fixed(points), (number,), int(own[0]), len(own))
    )
    return scene


def pressed_and_dragged(scene: Scene) -> np.ndarray:
    """Force on the ball over a path that presses it on both boxes and drags it from one to the other."""
    run = LockStep(scene)
    try:
        start = run.high.port.position.copy()
        down = start - np.array([0.0, 0.004, 0.0])
        across = down + np.array([0.014, 0.0, 0.0])
        path = np.vstack([straight(start, down, 150), straight(down, across, 250), resting(across, 50)])
        return proceed(run, path)["force"]
    finally:
        run.close()


def test_a_body_that_stands_still_pushes_as_the_world_does_whatever_kind_it_is():
    world = pressed_and_dragged(small_scene(BALL_ON_BLOCK_ON_BOX))
    own = pressed_and_dragged(with_the_box_as_a_body_of_its_own(small_scene(BALL_ON_BLOCK_ON_BOX)))
    assert np.linalg.norm(world, axis=1).max() > 0.5
    np.testing.assert_array_equal(own, world)
