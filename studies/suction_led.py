"""A suction cup that a blind plan leads down and up, and an agent aside on its way down."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from palpo.app.gym.suction import BOX, DROPPED, HIGH, UNIT, SuctionEnv

REPEAT = 5
"""Steps of the environment for which an agent's action stands."""
PRESSED, LIFTED = float(BOX[0, 1]) + 0.1e-3, 1.5 * HIGH
"""Heights of the target at which the plan turns [m]."""
SPEED = 0.5
"""Of a full action, at which the plan goes down: slowly enough to be led aside on the way."""
DWELL = 10
"""Steps for which it stays pressed."""
MOST = 500
"""Steps of an episode."""
NEARER = 2.0
"""Pay in training for each 10 mm by which the cup comes nearer to where the middle is seen."""
FLAT = (
    "bodies.cube.geometry.divisions=[8, 1, 8]",
    'bodies.cup.elements="tetrahedra"',
    "bodies.cup.geometry.resolution=203",
)
"""The cube is as flat with fewer triangles, and a step 8% quicker. The cup is the stiff one of tetrahedra
with which the policies were judged: it lets go of a cube whose middle is 2 mm aside. The scene's own, of
hexahedra, held one that was 21 mm aside, so that pressing where it stands is enough."""
DOWN, STAY, UP, HOLD = range(4)


class LedCup(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A cup that a blind plan leads down and up, and an agent aside on its way down.

    The plan looks at the target's height alone: down, stay, up, hold. Actions (2,) are the environment's
    along x and z. What a cup comes to is settled once it is pressed, so that the last action on the way down
    goes on to the end of the episode, which every cup reaches after as many actions; it ends, too, when the
    cup is up and the cube is not.

    paid: also for coming nearer, NEARER. Without, reward is the environment's.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], paid: bool = False) -> None:
        super().__init__(env)
        self.action_space = Box(-1.0, 1.0, (2,), np.float32)
        self._nearer = NEARER if paid else 0.0
        self._stage, self._stayed, self._away = DOWN, 0, 0.0

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        """The plan begins anew."""
        seen, told = self.env.reset(**given)
        self._stage, self._stayed, self._away = DOWN, 0, _away(seen)
        return seen, told

    def step(self, action: NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """REPEAT steps, or to the end."""
        total, steps, over = 0.0, 0, False
        while not over and (self._stage != DOWN or steps < REPEAT):
            down = self._stage == DOWN
            aside, up = (action if down else np.zeros(2)), (-SPEED, 0.0, 1.0, 0.0)[self._stage]
            wanted = np.array([aside[0], up, aside[1]], np.float32)
            seen, reward, over, _, told = self.env.step(wanted)
            total, steps = total + float(reward), steps + 1
            if down:
                total += self._nearer * (self._away - _away(seen))
                self._away = _away(seen)
            self._turn(float(seen[1] * UNIT[1]))
            over |= self._stage == HOLD and (told["height_m"] < DROPPED or steps >= MOST)
        return seen, total, over, False, told

    def _turn(self, height: float) -> None:
        """To the plan's next stage, if the target at a height [m] is through with this one."""
        self._stayed += self._stage == STAY
        through = height <= PRESSED, self._stayed >= DWELL, height >= LIFTED, False
        self._stage += through[self._stage]


def _away(seen: NDArray[np.float32]) -> float:
    """How far the middle is seen from the target, as the observation has it."""
    return float(np.hypot(*seen[9:11]))


def led(paid: bool = False) -> gymnasium.Env[Any, Any]:
    """One of them."""
    return LedCup(SuctionEnv(overrides=FLAT), paid)
