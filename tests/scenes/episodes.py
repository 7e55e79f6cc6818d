"""Episodes of an environment."""

from typing import Any

import numpy as np


def episode(env: Any, actions: Any, **reset: Any) -> tuple[Any, ...]:
    """Observations, rewards and the last answer of an episode."""
    seen, rewards = [env.reset(**reset)[0]], []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.array(seen), rewards, terminated, truncated, info
