"""A policy that learns to latch a plug that lies askew in its gripper, beside one that pushes blindly.

Soft actor-critic (T. Haarnoja, A. Zhou, P. Abbeel, S. Levine, Soft Actor-Critic: Off-Policy Maximum Entropy
Deep Reinforcement Learning with a Stochastic Actor, ICML 2018) as Stable-Baselines3 has it, on a batch of
`palpo/Snap-v1` with its default errors. What is learned is added to the blind push (T. Silver, K. Allen,
J. Tenenbaum, L. Kaelbling, Residual policy learning, 2018): from nothing, the first thing learned is that who
touches nothing pays nothing. Episodes that judge are of seeds that training has not seen, the same for every
policy.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.studies.claims import Line, Reported, Skipped, at_least
from palpo.studies.tables import COLOURS, save_figure, write_csv

BATCH = 16
"""Environments at once."""
STEPS, QUICK_STEPS = 40_000, 2_000
"""Of all of them together, in training."""
JUDGED, QUICK_JUDGED = 400, 32
"""Episodes that judge a policy."""
FIRST_JUDGED = 1_000_000
"""Seed of the first; training's are drawn from another."""
SHOULD = 95.0
"""Latched plugs that are asked of what has learned [%]."""
MOST = 300
"""Steps of an episode."""

Policy = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def run(out: Path, quick: bool) -> list[Line]:
    """Train, judge, and write table, curve and the policy's weights; quick: hardly any training."""
    try:
        from stable_baselines3 import SAC
    except ImportError:
        raise Skipped("Stable-Baselines3 is not installed: pip install 'palpo[robots]'") from None
    from palpo.studies.snap_learning_batch import Batch

    progress, episodes = Progress(), QUICK_JUDGED if quick else JUDGED
    with progress.stage("a batch of environments"):
        batch = Batch(BATCH, MOST)
    steps, began = QUICK_STEPS if quick else STEPS, time.perf_counter()
    model = SAC(
        "MlpPolicy", batch, seed=0, device="cpu", learning_starts=BATCH * 50, batch_size=256,
        train_freq=1, gradient_steps=8, gamma=0.98, learning_rate=5e-4, ent_coef=0.002,
        policy_kwargs={"net_arch": [128, 128]},
    )  # fmt: skip
    with progress.stage(f"training for {steps} steps"):
        model.learn(steps, log_interval=None)
    minutes = (time.perf_counter() - began) / 60.0
    model.save(out / "policy.zip")
    with progress.stage("pushing blindly"):
        rows = [judge("blind push", lambda seen: np.tile(batch.blind, (len(seen), 1)), episodes)]
    with progress.stage("what has learned"):
        rows.append(
            judge("trained", lambda seen: batch.sent(model.predict(seen, deterministic=True)[0]), episodes)
        )
    batch.close()
    write_csv(out / "learning.csv", rows)
    save_figure(out / "learning.png", 3.2, partial(_draw, ends=batch.ends))
    _print(rows)
    blind_row, trained = rows
    return [
        at_least("plugs that what has learned latches", trained["latched_percent"], SHOULD, "%",
                 "under the default errors"),
        Reported("plugs that a blind push latches", blind_row["latched_percent"], "%", "of the same seeds"),
        Reported("time of training", minutes, "min", f"{steps} steps of the environment on this machine"),
    ]  # fmt: skip


def judge(name: str, policy: Policy, episodes: int) -> dict[str, Any]:
    """What a policy does in so many episodes: a row of the table."""
    from palpo.app.gym.snap_batch import SnapVectorEnv

    env = SnapVectorEnv(min(BATCH, episodes), max_episode_steps=MOST)
    n, found = env.num_envs, []
    for first in range(0, episodes, n):
        seen, _ = env.reset(seed=FIRST_JUDGED + first)
        going, returns = np.ones(n, bool), np.zeros(n)
        while going.any():
            seen, rewards, terminated, truncated, told = env.step(policy(seen))
            returns += going * rewards
            for i in np.flatnonzero(going & (terminated | truncated)).tolist():
                found.append((bool(told["latched"][i]), returns[i], bool(truncated[i])))
            going &= ~(terminated | truncated)
    env.close()
    latched, returned, spent = np.array(found, float).T
    share = latched.mean()
    return {
        "policy": name, "episodes": len(found), "latched_percent": 100.0 * share,
        "deviation_percent": 100.0 * float(np.sqrt(share * (1.0 - share) / len(found))),
        "broke_percent": 100.0 * float(np.mean((latched == 0.0) & (spent == 0.0))),
        "mean_return": returned.mean(),
    }  # fmt: skip


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table(
        "policy", "episodes", "latched [%]", "deviation", "broke [%]", "mean return",
        title="Plugs latched under the default errors", title_justify="left",
    )  # fmt: skip
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(highlight=False).print(table)


def _draw(figure: Figure, ends: list[tuple[int, float, bool]]) -> None:
    """Latched plugs and returns of the last hundred episodes while training."""
    left, right = figure.subplots(1, 2)
    if not ends:
        return
    steps, returns, latched = np.array(ends, float).T
    window = min(100, len(steps))
    mean = np.ones(window) / window
    for ax, values, what in (
        (left, 100.0 * latched, "latched [%]"),
        (right, returns, "return"),
    ):
        ax.plot(steps[window - 1 :], np.convolve(values, mean, "valid"), color=COLOURS["krylov"], lw=1.2)
        ax.set(xlabel="steps of training", ylabel=f"{what}, mean of {window} episodes")
    left.axhline(SHOULD, color=COLOURS["faint"], ls=":", lw=1.0)
