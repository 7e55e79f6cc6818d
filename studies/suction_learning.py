"""A policy that learns to set a suction cup so that it holds, beside one that presses where it stands.

On `palpo/Suction-v1` with its default errors, by palpo.studies.learning; in processes, for its steps are made
in Python. In training alone, coming nearer to the middle by sight is paid, too: a cup holds only where it is
set within some 2 mm of it, which aimless actions hardly meet. By sight is who goes there by hand.
"""

from functools import partial
from pathlib import Path

import numpy as np

from palpo.studies.claims import Line
from palpo.studies.learning import Task, learn, need_stable_baselines

WORKERS = 4
"""Processes, an environment each."""
STEPS, QUICK_STEPS = 1_600, 80
"""Decisions of all of them together, in training."""
JUDGED, QUICK_JUDGED = 60, 4
"""Episodes that judge a policy."""
GAIN = 4.0
"""Of who goes by sight: a full action for 2.5 mm, which is what it goes in its time."""


def run(out: Path, quick: bool) -> list[Line]:
    """Train, judge, and write table, curve and the policy's weights; quick: hardly any training."""
    need_stable_baselines()
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    from palpo.studies.suction_led import led

    task = Task(
        plural="cubes",
        done="held",
        title="Cubes held under the default errors",
        trained_in=lambda: AsyncVectorEnv(
            [partial(led, paid=True)] * WORKERS, context="spawn", autoreset_mode=AutoresetMode.SAME_STEP
        ),
        judged_in=lambda: AsyncVectorEnv([led] * WORKERS, context="spawn"),
        sent=lambda actions: actions,
        others={
            "blind": lambda seen: np.zeros((len(seen), 2), np.float32),
            "by sight": lambda seen: np.clip(GAIN * seen[:, 9:11], -1.0, 1.0),
        },
        steps=QUICK_STEPS if quick else STEPS,
        episodes=QUICK_JUDGED if quick else JUDGED,
        settings={
            "learning_starts": 10 * WORKERS, "batch_size": 128, "train_freq": 1,
            "gradient_steps": 5 * WORKERS, "gamma": 0.98, "learning_rate": 1e-3, "ent_coef": 0.002,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
        step="actions, ten an episode",
    )  # fmt: skip
    return learn(task, out)
