"""A suction cup that a blind plan leads up and down, and an agent aside."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from palpo.app.gym.suction import BOUND, BOX, HIGH, UNIT, SuctionEnv

REPEAT = 5
"""Steps of the environment for which an agent's action stands."""
MOST = 500 // REPEAT
"""Decisions of an episode."""
PRESSED, LIFTED = float(BOX[0, 1]) + 0.1e-3, 1.5 * HIGH
"""Heights of the target at which the plan turns [m]."""
SPEED = 0.5
"""Of a full action, at which the plan goes down: slowly enough to be led aside on the way."""
DWELL = 10
"""Steps for which it stays pressed."""
FLAT = ("bodies.cube.geometry.divisions=[8, 1, 8]",)
"""The cube is as flat with fewer triangles, and a step 8% quicker. A coarser cup is stiffer, and holds where
the scene's own lets go."""
DOWN, STAY, UP, HOLD = range(4)


class Led(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A cup that a blind plan leads up and down, and an agent aside.

    The plan looks at the target's height alone: down, stay, up, hold. The last entry of the observation is
    its stage. Actions (2,) are the environment's along x and z.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (UNIT.size + 1,), np.float32)
        self._stage, self._stayed = DOWN, 0

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        """The plan begins anew."""
        seen, told = self.env.reset(**given)
        self._stage, self._stayed = DOWN, 0
        return self._seen(seen), told

    def step(self, action: NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """REPEAT steps, or to the end."""
        total, over, cut = 0.0, False, False
        told: dict[str, Any] = {}
        for _ in range(REPEAT):
            up = (-SPEED, 0.0, 1.0, 0.0)[self._stage]
            wanted = np.array([action[0], up, action[1]], np.float32)
            seen, reward, over, cut, told = self.env.step(wanted)
            total += float(reward)
            self._turn(float(seen[1] * UNIT[1]))
            if over or cut:
                break
        return self._seen(seen), total, over, cut, told

    def _turn(self, height: float) -> None:
        """To the plan's next stage, if the target at a height [m] is through with this one."""
        self._stayed += self._stage == STAY
        through = height <= PRESSED, self._stayed >= DWELL, height >= LIFTED, False
        self._stage += through[self._stage]

    def _seen(self, seen: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.append(seen, np.float32(self._stage))


def led() -> gymnasium.Env[Any, Any]:
    """One of them, with the end of its time."""
    return gymnasium.wrappers.TimeLimit(Led(SuctionEnv(overrides=FLAT)), MOST)
