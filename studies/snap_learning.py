"""A policy that learns to latch a plug that lies askew in its gripper, beside one that pushes blindly.

On a batch of `palpo/Snap-v1` with its default errors, by palpo.studies.learning.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress
from palpo.studies.claims import Line, Reported, at_least
from palpo.studies.learning import judge, need_stable_baselines, train, write

BATCH = 16
"""Environments at once."""
STEPS, QUICK_STEPS = 40_000, 2_000
"""Of all of them together, in training."""
JUDGED, QUICK_JUDGED = 400, 32
"""Episodes that judge a policy."""
SHOULD = 95.0
"""Latched plugs that are asked of what has learned [%]."""
MOST = 300
"""Steps of an episode."""


def run(out: Path, quick: bool) -> list[Line]:
    """Train, judge, and write table, curve and the policy's weights; quick: hardly any training."""
    need_stable_baselines()
    from gymnasium.vector import AutoresetMode

    from palpo.app.gym.snap_batch import SnapVectorEnv
    from palpo.studies.learning_batch import Batch

    progress, episodes = Progress(), QUICK_JUDGED if quick else JUDGED
    steps = QUICK_STEPS if quick else STEPS
    with progress.stage("a batch of environments"):
        env = SnapVectorEnv(BATCH, max_episode_steps=MOST, autoreset_mode=AutoresetMode.SAME_STEP)
    blind = np.r_[env.plant.nominal.push, np.zeros(3)].astype(np.float32)

    def sent(actions: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.clip(blind + actions, -1.0, 1.0).astype(np.float32)

    batch = Batch(env, sent, "latched")
    trained, minutes = train(
        batch, steps, out, progress, learning_starts=BATCH * 50, batch_size=256, train_freq=1,
        gradient_steps=8, gamma=0.98, learning_rate=5e-4, ent_coef=0.002,
        policy_kwargs={"net_arch": [128, 128]},
    )  # fmt: skip
    judged, rows = SnapVectorEnv(BATCH, max_episode_steps=MOST), []
    for name, policy in (
        ("blind push", lambda seen: np.tile(blind, (len(seen), 1))),
        ("trained", trained),
    ):
        with progress.stage(f"judging: {name}"):
            rows.append(judge(name, judged, policy, episodes, "latched"))
    judged.close()
    write(out, rows, batch.ends, "Plugs latched under the default errors", SHOULD)
    return [
        at_least("plugs that what has learned latches", rows[1]["latched_percent"], SHOULD, "%",
                 "under the default errors"),
        Reported("plugs that a blind push latches", rows[0]["latched_percent"], "%", "of the same seeds"),
        Reported("time of training", minutes, "min", f"{steps} steps of the environment on this machine"),
    ]  # fmt: skip
