"""Steps a second of the environments for learning robots: a batch in one compiled call, and one by one.

Both are pushed blindly over the same seeds, in turn; then a batch on each processor, in processes of their
own, which share nothing. Wall time is what a learner waits for; the processors' time says what the same steps
cost where other programs take their share of the machine.
"""

import multiprocessing
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
PATIENCE = 600.0
"""For a process that has begun, and may compile [s]."""


def robots(num_envs: int = 16, rounds: int = ROUNDS) -> Figures:
    """Steps a second of `palpo/Snap-v1` in a batch, of one environment, and of a batch on each processor."""
    batch, single = SnapVectorEnv(num_envs), gymnasium.wrappers.TimeLimit(SnapEnv(), 300)
    push, step_all = _push(batch), _stepped(batch)
    single.reset(seed=0)

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
    workers = len(os.sched_getaffinity(0))
    many = _side_by_side(workers, num_envs, rounds)
    (ours, ours_cpu), (other, other_cpu), (all_of_them, all_cpu) = (
        (part[:, 0].sum() / part[:, 1].sum(), part[:, 0].sum() / part[:, 2].sum()) for part in (*spent, many)
    )
    return {
        "environments": num_envs,
        "processors": workers,
        "steps a second, batch": beside(ours, other, "one environment"),
        "steps a second of a processor's time, batch": beside(ours_cpu, other_cpu, "one environment"),
        "steps a second, a batch on each processor": beside(all_of_them, other, "one environment"),
        "steps a second of a processor's time, a batch on each": beside(
            all_cpu, other_cpu, "one environment"
        ),
        "target": {"ours": all_of_them, "at least": AIM, "met": bool(all_of_them >= AIM)},
    }


def _push(batch: SnapVectorEnv) -> Any:
    """Straight on, of one environment."""
    return np.r_[batch.plant.nominal.push, np.zeros(3)].astype(np.float32)


def _stepped(batch: SnapVectorEnv, seed: int = 0) -> Callable[[], int]:
    """A blind step of a batch that begins at a seed; how many steps it was."""
    actions = np.tile(_push(batch), (batch.num_envs, 1))
    batch.reset(seed=seed)

    def step() -> int:
        batch.step(actions)
        return batch.num_envs

    return step


def _side_by_side(workers: int, num_envs: int, rounds: int) -> Any:
    """Steps, wall time and time of all processors [s] of a round, (rounds, 3), with a batch a process."""
    spawn = multiprocessing.get_context("spawn")
    together, told = spawn.Barrier(workers, timeout=PATIENCE), spawn.Queue()
    started = [
        spawn.Process(target=_work, args=(k, num_envs, rounds, together, told), daemon=True)
        for k in range(workers)
    ]
    for process in started:
        process.start()
    found = np.array([told.get(timeout=PATIENCE) for _ in started])
    for process in started:
        process.join()
    # a round is over when the last is through
    return np.stack([found[:, :, 0].sum(axis=0), found[:, :, 1].max(axis=0), found[:, :, 2].sum(axis=0)], 1)


def _work(k: int, num_envs: int, rounds: int, together: Any, told: Any) -> None:
    """One process of _side_by_side, with seeds of its own."""
    batch = SnapVectorEnv(num_envs, threads=1)
    step = _stepped(batch, k * num_envs)
    for _ in range(4 * PART):
        step()
    spent = []
    for _ in range(rounds):
        together.wait()
        spent.append(_timed(step, PART))
    told.put(spent)
    batch.close()


def _timed(step: Callable[[], int], calls: int) -> tuple[Any, ...]:
    """Steps, wall time and the processors' [s] of so many calls."""
    wall, cpu, steps = time.perf_counter(), time.process_time(), 0
    for _ in range(calls):
        steps += step()
    return steps, time.perf_counter() - wall, time.process_time() - cpu
