"""Small scenes for tests of physics: a ball over a soft block, boxes on planes."""

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import parse_scene
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.physics.systems.multirate.scene import Scene

SKIN = 5e-4  # the contact distance of a scene unless it says otherwise

BALL_ON_BLOCK = """
title = "ball on block"
gravity = [0, 0, 0]

[[bodies]]
name = "block"
kind = "tets"
geometry = { kind = "block", size = [0.06, 0.02, 0.06], divisions = [6, 2, 6] }
placement = { position = [0, -0.01, 0] }
material = { youngs_modulus = 30e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }
fixed = [{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }]

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.003, 0.0088, -0.002] }
mass = 0.03

[friction]
default = 0.4

[tool]
body = "ball"
[tool.hold]
orientation = true
stiffness = 500
damping = 1
"""

BOX_ON_PLANE = """
title = "box on plane"

[[bodies]]
name = "ground"
kind = "plane"

[[bodies]]
name = "box"
{box}

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = {{ kind = "sphere", radius = 0.008 }}
placement = {{ position = [0, 0.5, 0] }}
mass = 0.03

[friction]
default = 0.5

[tool]
body = "ball"
"""

RIGID_BOX = """
kind = "rigid"
geometry = { kind = "box", size = [0.06, 0.02, 0.04] }
placement = { position = [0, 0.0105, 0] }
mass = 0.05
"""

SOFT_BOX = """
kind = "tets"
geometry = { kind = "block", size = [0.06, 0.02, 0.04], divisions = [3, 1, 2] }
placement = { position = [0, 0.0105, 0] }
material = { youngs_modulus = 200e3, poisson_ratio = 0.3, density = 1000, alpha = 0.0, beta = 0.002 }
"""


def small_scene(text: str, *overrides: str) -> Scene:
    """The scene of a TOML text with `key=value` overrides."""
    return build_scene(parse_scene(text, "small.toml", overrides))


def lock_step(text: str, *overrides: str, kind: str = "krylov", latency: str = "period") -> LockStep:
    """Both rates of a small scene."""
    return LockStep(small_scene(text, *overrides), kind, latency)


def proceed(run: LockStep, positions: NDArray[np.float64]) -> dict[str, NDArray]:
    """Go on from where the run is, the hand led along positions (n, 3); every tick must be well."""
    run._row = 0
    trace = run.run(positions)
    assert len(trace["force"]) == len(positions), f"stopped at tick {len(trace['force'])}"
    return trace


def straight(start, end, ticks: int) -> NDArray[np.float64]:
    """Positions (ticks, 3) from start, excluded, to end at constant velocity."""
    share = np.arange(1, ticks + 1)[:, None] / ticks
    return (1.0 - share) * np.array(start, float) + share * np.array(end, float)


def resting(place, ticks: int) -> NDArray[np.float64]:
    """The same place for that many ticks."""
    return np.tile(np.array(place, float), (ticks, 1))
