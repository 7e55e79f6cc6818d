"""What studies of learning robots share: training, judging and drawing.

Soft actor-critic (T. Haarnoja, A. Zhou, P. Abbeel, S. Levine, Soft Actor-Critic: Off-Policy Maximum Entropy
Deep Reinforcement Learning with a Stochastic Actor, ICML 2018) as Stable-Baselines3 has it. What is learned
is added to what a blind hand does (T. Silver, K. Allen, J. Tenenbaum, L. Kaelbling, Residual policy learning,
2018): from nothing, the first thing learned is that who touches nothing pays nothing. Episodes that judge
are of seeds that training has not seen, the same for every policy.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.studies.claims import Line, Reported, Skipped, at_least
from palpo.studies.tables import COLOURS, save_figure, write_csv

FIRST_JUDGED = 1_000_000
"""Seed of the first episode that judges; training's are drawn from another."""
SHOULD = 95.0
"""Good ends that are asked of what has learned [%]."""

Observation = NDArray[np.float32]
Policy = Callable[[Observation], Any]


def need_stable_baselines() -> None:
    """Raises Skipped where Stable-Baselines3 is not installed."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        raise Skipped("Stable-Baselines3 is not installed: pip install 'palpo[robots]'") from None


class Task(NamedTuple):
    """What a study has a policy learn."""

    plural: str  # what ends well, as "cubes"
    done: str  # the entry of `info` that says whether an episode ended well, and its verb
    title: str  # of the table
    trained_in: Callable[[], Any]  # a vector environment to train in, which begins anew in the same step
    judged_in: Callable[[], Any]
    sent: Callable[[Any], Any]  # what environments are told for an agent's actions (n, k)
    others: dict[str, Policy]  # policies beside it by name, the blind one first
    steps: int  # of all environments together, in training
    episodes: int  # that judge a policy
    settings: dict[str, Any]  # of SAC
    step: str  # what a step is


def learn(task: Task, out: Path) -> list[Line]:
    """Train, judge all policies, and write table, curve and the policy's weights."""
    from palpo.studies.learning_batch import SampleBatch

    progress = Progress()
    with progress.stage("environments to train in"):
        batch = SampleBatch(task.trained_in(), task.sent, task.done)
    trained, minutes = train(batch, task.steps, out, progress, **task.settings)
    rows, judged = [], task.judged_in()
    for name, policy in (*task.others.items(), ("trained", trained)):
        with progress.stage(f"judging: {name}"):
            rows.append(judge(name, judged, policy, task.episodes, task.done))
    judged.close()
    write(out, rows, batch.ends, task.title)
    wells = [row[f"{task.done}_percent"] for row in rows]
    return [
        at_least(f"{task.plural} {task.done} by what has learned", wells[-1], SHOULD, "%",
                 "under the default errors"),
        *(Reported(f"{task.plural} {task.done} by: {name}", well, "%", "the same seeds")
          for name, well in zip(task.others, wells[:-1], strict=True)),
        Reported("time of training", minutes, "min", f"{task.steps} {task.step}, on this machine"),
    ]  # fmt: skip


def train(batch: Any, steps: int, out: Path, progress: Progress, **settings: Any) -> tuple[Policy, float]:
    """A policy, trained for so many steps of all environments, and the minutes it took.

    out/policy.zip keeps it. batch: of palpo.studies.learning_batch; closed at the end. settings: of SAC.
    """
    from stable_baselines3 import SAC

    began = time.perf_counter()
    model = SAC("MlpPolicy", batch, seed=0, device="cpu", **settings)
    with progress.stage(f"training for {steps} steps"):
        model.learn(steps, log_interval=None)
    model.save(out / "policy.zip")
    batch.close()
    minutes = (time.perf_counter() - began) / 60.0
    return (lambda seen: batch.sent(model.predict(seen, deterministic=True)[0])), minutes


def judge(name: str, env: Any, policy: Policy, episodes: int, done: str) -> dict[str, Any]:
    """What a policy does in so many episodes of a vector environment: a row of the table.

    done: the entry of `info` that says whether an episode ended well.
    """
    n, found = env.num_envs, []
    for first in range(0, episodes, n):
        seen, _ = env.reset(seed=FIRST_JUDGED + first)
        going, returns = np.arange(n) < episodes - first, np.zeros(n)
        while going.any():
            seen, rewards, terminated, truncated, told = env.step(policy(seen))
            returns += going * rewards
            for i in np.flatnonzero(going & (terminated | truncated)).tolist():
                found.append((bool(told[done][i]), returns[i]))
            going &= ~(terminated | truncated)
    well, returned = np.array(found, float).T
    share = well.mean()
    return {
        "policy": name, "episodes": len(found), f"{done}_percent": 100.0 * share,
        "deviation_percent": 100.0 * float(np.sqrt(share * (1.0 - share) / len(found))),
        "mean_return": returned.mean(),
    }  # fmt: skip


def write(out: Path, rows: list[dict[str, Any]], ends: list[tuple[int, float, bool]], title: str) -> None:
    """learning.csv and the table of policies; learning.png of what training came to."""
    write_csv(out / "learning.csv", rows)
    save_figure(out / "learning.png", 3.2, partial(_draw, ends=ends))
    table = Table(
        *(name.replace("_percent", " [%]").replace("_", " ") for name in rows[0]),
        title=title,
        title_justify="left",
    )
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(highlight=False).print(table)


def _draw(figure: Figure, ends: list[tuple[int, float, bool]]) -> None:
    """Good ends and returns of the last hundred episodes while training."""
    left, right = figure.subplots(1, 2)
    if not ends:
        return
    steps, returns, well = np.array(ends, float).T
    window = min(100, len(steps))
    mean = np.ones(window) / window
    for ax, values, what in ((left, 100.0 * well, "ended well [%]"), (right, returns, "return")):
        ax.plot(steps[window - 1 :], np.convolve(values, mean, "valid"), color=COLOURS["krylov"], lw=1.2)
        ax.set(xlabel="steps of training", ylabel=f"{what}, mean of {window} episodes")
    left.axhline(SHOULD, color=COLOURS["faint"], ls=":", lw=1.0)
