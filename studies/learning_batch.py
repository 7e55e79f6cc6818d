"""A batch of environments of Gymnasium as Stable-Baselines3 wants it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

TRAINED_FROM = 1
"""Seed of the first environment."""


class SampleBatch(VecEnv):
    """A vector environment that begins anew in the same step, with the other's manners.

    sent: what the environments are told for an agent's actions (n, k). done: the entry of `info` that says
    whether an episode ended well.

    ends: of each episode that has ended, the steps of all environments so far, its return, and whether it
    ended well.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], sent: Callable[[Any], Any], done: str) -> None:
        n = env.num_envs
        self.env, self.sent, self.done = env, sent, done
        super().__init__(n, env.single_observation_space, env.single_action_space)
        self.ends: list[tuple[int, float, bool]] = []
        self._returns, self._steps = np.zeros(n), 0
        self._actions: Any = None

    def reset(self) -> Any:
        """First observations."""
        return self.env.reset(seed=TRAINED_FROM)[0]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions."""
        self._actions = self.sent(actions)

    def step_wait(self) -> Any:
        """A step; what an episode ended with is in its own info."""
        seen, rewards, terminated, truncated, told = self.env.step(self._actions)
        over, infos = terminated | truncated, [{} for _ in range(self.num_envs)]  # type: ignore[var-annotated]
        self._returns += rewards
        self._steps += self.num_envs
        for i in np.flatnonzero(over).tolist():
            infos[i]["terminal_observation"] = told["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
            well = bool(told["final_info"][self.done][i])
            self.ends.append((self._steps, float(self._returns[i]), well))
            self._returns[i] = 0.0
        return seen, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        """Give threads and processes back."""
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
