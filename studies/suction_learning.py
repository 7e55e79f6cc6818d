"""A policy that learns to set a suction cup so that it holds, beside one that presses where it stands.

On `palpo/Suction-v1` with its default errors, by palpo.studies.learning; in processes, for its steps are made
in Python.
"""

from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.studies.claims import Line, Reported, at_least
from palpo.studies.learning import judge, need_stable_baselines, train, write

WORKERS = 4
"""Processes, an environment each."""
STEPS, QUICK_STEPS = 6_000, 200
"""Decisions of all of them together, in training."""
JUDGED, QUICK_JUDGED = 100, 4
"""Episodes that judge a policy."""
SHOULD = 95.0
"""Cubes held that are asked of what has learned [%]."""


def run(out: Path, quick: bool) -> list[Line]:
    """Train, judge, and write table, curve and the policy's weights; quick: hardly any training."""
    need_stable_baselines()
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    from palpo.studies.learning_batch import Batch
    from palpo.studies.suction_led import REPEAT, led

    progress, episodes = Progress(), QUICK_JUDGED if quick else JUDGED
    steps = QUICK_STEPS if quick else STEPS
    with progress.stage("environments in processes"):
        env = AsyncVectorEnv([led] * WORKERS, context="spawn", autoreset_mode=AutoresetMode.SAME_STEP)
    batch = Batch(env, lambda actions: actions, "held")
    trained, minutes = train(
        batch, steps, out, progress, learning_starts=25 * WORKERS, batch_size=128, train_freq=1,
        gradient_steps=2 * WORKERS, gamma=0.98, learning_rate=1e-3, ent_coef=0.002,
        policy_kwargs={"net_arch": [64, 64]},
    )  # fmt: skip
    judged, rows = AsyncVectorEnv([led] * WORKERS, context="spawn"), []
    for name, policy in (("blind", lambda seen: np.zeros((len(seen), 2), np.float32)), ("trained", trained)):
        with progress.stage(f"judging: {name}"):
            rows.append(judge(name, judged, policy, episodes, "held"))
    judged.close()
    write(out, rows, batch.ends, "Cubes held under the default errors", SHOULD)
    return [
        at_least("cubes that what has learned holds", rows[1]["held_percent"], SHOULD, "%",
                 "under the default errors"),
        Reported("cubes that a blind press holds", rows[0]["held_percent"], "%", "of the same seeds"),
        Reported("time of training", minutes, "min",
                 f"{steps} decisions, each for {REPEAT} steps of the environment, on this machine"),
    ]  # fmt: skip
