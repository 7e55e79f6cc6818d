"""A batch of snap connections as Stable-Baselines3 wants it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from palpo.app.gym.snap_batch import SnapVectorEnv

TRAINED_FROM = 1
"""Seed of the first environment."""


class Batch(VecEnv):
    """`SnapVectorEnv` with the other's manners; actions are added to the blind push.

    blind: straight on at full speed, (6,).
    ends: of each episode that has ended, the steps of all environments so far, its return, and whether it
    latched.
    """

    def __init__(self, n: int, most: int) -> None:
        self.env = SnapVectorEnv(n, max_episode_steps=most, autoreset_mode=AutoresetMode.SAME_STEP)
        super().__init__(n, self.env.single_observation_space, self.env.single_action_space)
        self.ends: list[tuple[int, float, bool]] = []
        self.blind = np.r_[self.env.plant.nominal.push, np.zeros(3)].astype(np.float32)
        self._returns, self._steps = np.zeros(n), 0
        self._actions: Any = None

    def reset(self) -> Any:
        """First observations."""
        return self.env.reset(seed=TRAINED_FROM)[0]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions."""
        self._actions = self.sent(actions)

    def sent(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        """What the environments are told for actions (n, 6)."""
        return np.clip(self.blind + actions, -1.0, 1.0).astype(np.float32)

    def step_wait(self) -> Any:
        """A step; what an episode ended with is in its own info."""
        seen, rewards, terminated, truncated, told = self.env.step(self._actions)
        over, infos = terminated | truncated, [{} for _ in range(self.num_envs)]  # type: ignore[var-annotated]
        self._returns += rewards
        self._steps += self.num_envs
        for i in np.flatnonzero(over).tolist():
            infos[i]["terminal_observation"] = told["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            latched = bool(told["final_info"]["latched"][i])
            self.ends.append((self._steps, float(self._returns[i]), latched))
            self._returns[i] = 0.0
        return seen, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        """Give threads back."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Of each environment; they share what they have."""
        return [getattr(self.env, attr_name)] * len(self._which(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """There is nothing to set."""
        raise AttributeError(f"{attr_name} cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """There is nothing to call."""
        raise AttributeError(f"{method_name} cannot be called of one environment")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """None is."""
        return [False] * len(self._which(indices))

    def _which(self, indices: Any) -> Sequence[int]:
        return list(self._get_indices(indices))
