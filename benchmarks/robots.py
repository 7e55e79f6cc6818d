"""Steps a second of the environments for learning robots: a batch in one compiled call, and one by one.

Both are pushed blindly over the same seeds, in turn. Wall time is what a learner waits for; the processors'
time says what the same steps cost where other programs take their share of the machine.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from palpo.app.gym.snap import SnapEnv
from palpo.app.gym.snap_batch import SnapVectorEnv
from palpo.benchmarks.timing import Figures, beside

ROUNDS = 5
PART = 40
"""Steps of each environment in a round, before the other's turn."""
AIM = 2000.0
"""Steps a second that two processors are asked for."""


def robots(num_envs: int = 16, rounds: int = ROUNDS) -> Figures:
    """Steps a second of `palpo/Snap-v1` in a batch, and of one environment."""
    batch, single = SnapVectorEnv(num_envs), gymnasium.wrappers.TimeLimit(SnapEnv(), 300)
    push = np.r_[batch.plant.nominal.push, np.zeros(3)].astype(np.float32)
    all_push = np.tile(push, (num_envs, 1))
    batch.reset(seed=0)
    single.reset(seed=0)

    def step_all() -> int:
        batch.step(all_push)
        return num_envs

    def step_one() -> int:
        _, _, terminated, truncated, _ = single.step(push)
        if terminated or truncated:
            single.reset()
        return 1

    # rigs are made when they are first wanted: not to be timed
    for _ in range(4 * PART):
        step_all()
        step_one()
    spent = np.zeros((2, rounds, 3))
    for k in range(rounds):
        spent[0, k] = _timed(step_all, PART)
        spent[1, k] = _timed(step_one, PART * num_envs)
    batch.close()
    (ours, ours_cpu), (other, other_cpu) = (
        (part[:, 0].sum() / part[:, 1].sum(), part[:, 0].sum() / part[:, 2].sum()) for part in spent
    )
    return {
        "environments": num_envs,
        "processors": len(os.sched_getaffinity(0)),
        "steps a second, batch": beside(ours, other, "one environment"),
        "steps a second of a processor's time, batch": beside(ours_cpu, other_cpu, "one environment"),
        "target": {"ours": ours, "at least": AIM, "met": bool(ours >= AIM)},
    }


def _timed(step: Callable[[], int], calls: int) -> tuple[Any, ...]:
    """Steps, wall time and the processors' [s] of so many calls."""
    wall, cpu, steps = time.perf_counter(), time.process_time(), 0
    for _ in range(calls):
        steps += step()
    return steps, time.perf_counter() - wall, time.process_time() - cpu
