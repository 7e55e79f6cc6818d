"""A policy that learns to latch a plug that lies askew in its gripper, beside one that pushes blindly.

On a batch of `palpo/Snap-v1` with its default errors, by palpo.studies.learning.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.studies.claims import Line
from palpo.studies.learning import Task, learn, need_stable_baselines

BATCH = 16
"""Environments at once."""
STEPS, QUICK_STEPS = 40_000, 2_000
"""Of all of them together, in training."""
JUDGED, QUICK_JUDGED = 400, 32
"""Episodes that judge a policy."""
MOST = 300
"""Steps of an episode."""


def run(out: Path, quick: bool) -> list[Line]:
    """Train, judge, and write table, curve and the policy's weights; quick: hardly any training."""
    need_stable_baselines()
    from gymnasium.vector import AutoresetMode

    from palpo.app.gym.snap_batch import SnapVectorEnv

    judged = SnapVectorEnv(BATCH, max_episode_steps=MOST)
    blind = np.r_[judged.plant.nominal.push, np.zeros(3)].astype(np.float32)

    def sent(actions: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(blind + actions, -1.0, 1.0).astype(np.float32)

    task = Task(
        plural="plugs",
        done="latched",
        title="Plugs latched under the default errors",
        trained_in=lambda: SnapVectorEnv(
            BATCH, max_episode_steps=MOST, autoreset_mode=AutoresetMode.SAME_STEP
        ),
        judged_in=lambda: judged,
        sent=sent,
        others={"blind push": lambda seen: np.tile(blind, (len(seen), 1))},
        steps=QUICK_STEPS if quick else STEPS,
        episodes=QUICK_JUDGED if quick else JUDGED,
        settings={
            "learning_starts": BATCH * 50, "batch_size": 256, "train_freq": 1, "gradient_steps": 8,
            "gamma": 0.98, "learning_rate": 5e-4, "ent_coef": 0.002,
            "policy_kwargs": {"net_arch": [128, 128]},
        },
        step="steps of the environment",
    )  # fmt: skip
    return learn(task, out)
