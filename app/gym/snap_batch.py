"""Many snap connections at once: one compiled call a step over all of them, shared out among threads."""

import os
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from palpo.app.gym.artist import Artist
from palpo.app.gym.drawn import errors_of
from palpo.app.gym.snap import ACTIONS, OBSERVATIONS, SnapEnv
from palpo.app.gym.snap_plant import QUICK, InsertionVariation, Plant
from palpo.app.gym.snap_trials import Flags, Observation, Trials
from palpo.config.words import Refusal


class SnapVectorEnv(VectorEnv[Observation, Observation, NDArray[np.float64]]):
    """`num_envs` snap connections; each gives bit for bit what `SnapEnv` gives for its seed and actions.

    Spaces, reward and episodes are `SnapEnv`'s, and so are scene, overrides and errors. max_episode_steps:
    after which an episode is truncated. threads: that make a step, by default the processors there are. An
    episode that has ended begins anew in the next step, whose action is not used and whose reward is zero,
    or, with `autoreset_mode` SAME_STEP, at once: `infos` then has its last `final_obs` and `final_info`.
    `reset(seed=s)` gives environment i the seed s + i.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scene: str = "snap",
        overrides: tuple[str, ...] = QUICK,
        errors: InsertionVariation | dict[str, Any] | None = None,
        max_episode_steps: int | None = 300,
        threads: int | None = None,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigError, InputError and Refusal for what cannot be built."""
        modes = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP
        if num_envs < 1 or autoreset_mode not in modes:
            raise Refusal(f"num_envs = {num_envs}, {autoreset_mode}: give at least 1, and one of {modes}")
        self.plant = Plant(scene, tuple(overrides), errors_of(InsertionVariation, errors))
        n = min(num_envs, threads or len(os.sched_getaffinity(0)))
        self._trials = Trials(self.plant, num_envs, n)
        self.num_envs, self.render_mode, self.autoreset_mode = num_envs, render_mode, autoreset_mode
        self.metadata = {**SnapEnv.metadata, "autoreset_mode": autoreset_mode}
        self.single_action_space, self.single_observation_space = ACTIONS, OBSERVATIONS
        self.action_space = batch_space(ACTIONS, num_envs)
        self.observation_space = batch_space(OBSERVATIONS, num_envs)
        self._most = np.inf if max_episode_steps is None else max_episode_steps
        self._rngs = [seeding.np_random()[0] for _ in range(num_envs)]
        self._steps = np.zeros(num_envs, np.int64)
        self._over = np.ones(num_envs, bool)
        self._artists = [Artist() for _ in range(num_envs)]

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """New episodes in all environments; see `SnapEnv.reset`."""
        seeds = (
            seed
            if isinstance(seed, list)
            else [None if seed is None else seed + i for i in range(self.num_envs)]
        )
        infos: dict[str, Any] = {}
        seen = np.zeros(self.observation_space.shape or (), np.float32)
        for i, own in enumerate(seeds):
            if own is not None:
                self._rngs[i] = seeding.np_random(own)[0]
            seen[i], info = self._begin(i, options)
            infos = self._add_info(infos, info, i)
        return seen, infos

    def _begin(self, i: int, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        self._steps[i], self._over[i] = 0, False
        return self._trials.begin(i, self._rngs[i], options)

    def step(  # type: ignore[override]  # flags are no floats
        self, actions: Observation
    ) -> tuple[Observation, NDArray[np.float64], Flags, Flags, dict[str, Any]]:
        """10 ms in all of them; see the class."""
        n, began, going = self.num_envs, np.flatnonzero(self._over), np.flatnonzero(~self._over)
        seen, rewards = np.zeros((n, *OBSERVATIONS.shape), np.float32), np.zeros(n)
        terminated, truncated, infos = np.zeros(n, bool), np.zeros(n, bool), {}
        seen[going], rewards[going], terminated[going], told = self._trials.step(
            going, np.asarray(actions)[going], [self._rngs[i] for i in going]
        )
        for name, value in told.items():
            infos[name], infos[f"_{name}"] = np.zeros(n, value.dtype), ~self._over
            infos[name][going] = value
        self._steps[going] += 1
        truncated[going] = self._steps[going] >= self._most
        self._over = terminated | truncated
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            began = np.flatnonzero(self._over)
            for i in began.tolist():
                info = {name: infos[name][i].item() for name in told}
                infos = self._add_info(infos, {"final_obs": seen[i].copy(), "final_info": info}, i)
        for i in began.tolist():
            seen[i], info = self._begin(i)
            infos = self._add_info(infos, info, i)
        return seen, rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """Pictures (480, 640, 3) of all; raises RenderUnavailable where there is no EGL."""
        if self.render_mode is None:
            return None
        return tuple(
            artist.picture(rig, rig.visual, rig.tick)
            for artist, rig in zip(self._artists, self._trials.rigs, strict=True)
            if rig is not None
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Give threads and pictures' resources back."""
        self._trials.close()
        for artist in self._artists:
            artist.close()
