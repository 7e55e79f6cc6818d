# mypy: ignore-errors
"""A snap connector as a joint with friction and a latch, for any simulator: NumPy alone.

Along the travel x of the plug the socket resists by f_in(x) on the way in, which is negative where it draws
the plug on, and by f_out(x) on the way out. With z from -1 to 1, which follows the motion within a short way,
the force along the push is

    F = -(f_in - f_out) / 2 - z (f_in + f_out) / 2

so that a round trip costs the work between the two curves, and a plug at rest is held by friction.
"""

import json
from pathlib import Path

import numpy as np

SAFE = 0.2
"""Largest stiffness times dt^2 over the mass moved: what is stiffer is softened to it."""


class SnapJoint:
    """The force of a connector on its plug; law: connector.json, dt [s] of a step, mass [kg] that moves."""

    def __init__(self, law, dt, mass):
        self.law = law
        x, inward, outward = (np.array(law[key]) for key in ("travel_m", "inward_N", "outward_N"))
        self.x = x
        self.elastic = _no_steeper(x, 0.5 * (inward - outward), SAFE * mass / (dt * dt))
        self.friction = np.maximum(0.5 * (inward + outward), 0.0)
        self.yielding = max(law["stick_m"], float(self.friction.max()) * dt * dt / (SAFE * mass))
        """Way within which friction turns round [m]."""
        self.z, self.dt = 0.0, dt

    def step(self, travel, speed):
        """The force along the push [N] at a travel [m] and speed [m/s] of the plug; once a step."""
        self.z = float(np.clip(self.z + speed * self.dt / self.yielding, -1.0, 1.0))
        pushed = np.interp(travel, self.x, self.elastic)
        return -float(pushed + self.z * np.interp(travel, self.x, self.friction))

    def latched(self, travel):
        """Whether the plug is behind the click."""
        return travel > self.law["click_m"]


def _no_steeper(x, values, slope):
    """Values (n,) that grow by at most so much a metre and fall as they do: what grows quicker is late."""
    kept = values.copy()
    for k in range(1, len(x)):
        kept[k] = min(values[k], kept[k - 1] + slope * (x[k] - x[k - 1]))
    return kept


def load(folder):
    """The law of a folder's connector.json."""
    return json.loads((Path(folder) / "connector.json").read_text("utf-8"))
