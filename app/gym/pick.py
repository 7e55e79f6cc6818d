"""Robot learning in MuJoCo: bring a gripper with suction cups over a load, grip it, and lift it."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from palpo.app.gym.drawn import errors_of, known_only, require
from palpo.app.library.gripping import lift
from palpo.config.words import Refusal

Floats = NDArray[np.float64]
Observation = NDArray[np.float32]

TICKS = 20
"""Steps of MuJoCo in one of the environment's, 20 ms."""
SPEED = 0.1
"""Of the gripper at a full action [m/s]."""
ROOM = np.array([[-0.05, -0.05, -0.012], [0.05, 0.05, 0.10]])
"""How far it may go from its start [m]."""
HIGH = 0.05
"""How high the load has to hang [m]."""
LOADED = 0.4
"""Share of what the cups lift at SPEED that the load weighs."""
BOUND = 10.0
UNIT = np.repeat([10e-3, 10e-3, 1.0, 1.0], [3, 3, 3, 1])
"""Of the observation's entries [m], [m], [N], share."""


@dataclass(frozen=True)
class PickVariation:
    """What differs from episode to episode, drawn evenly from both sides of nothing.

    position [m]: of the load beside the gripper's start, along x and y. sight [m]: of where it is taken to
    be. mass: share of the load's. noise: standard deviation of the force [N].
    Raises Refusal for a negative entry and a share of 1 or more.
    """

    position: float = 20e-3
    sight: float = 1e-3
    mass: float = 0.3
    noise: float = 0.02

    def __post_init__(self) -> None:
        require(self, ("mass",))


class PickEnv(gymnasium.Env[Observation, Observation]):
    """Bring a gripper over a load, push its cups on it, and lift it, in MuJoCo.

    What a cup holds is its exported law (docs/suction.md): pushed too little it does not grip, pulled too
    quickly, aside of the load's middle or too long it lets go. A step is 20 ms.

    **Action**, `Box(-1, 1, (4,), float32)`: velocity of the gripper along x, y and z (up), in 0.1 m/s; the
    valves are open while the last is below 0. The gripper stays within 50 mm beside its start, 12 mm below
    and 100 mm above it.

    **Observation**, `Box(-10, 10, (10,), float32)`: the gripper from its start [10 mm], the load's middle
    from the gripper, by sight [10 mm], the force on the gripper [N], the share of cups that hold.

    **Reward**: the share of 50 mm by which the load hangs higher than ever before; 0.1 times the share of
    cups that hold, where it is larger than ever before; -1 for a load that hung half as high and fell.

    **Episode**: it starts at rest, the load beside the middle. It is terminated when the load hangs 50 mm
    high, or has fallen; `gymnasium.make` truncates it after 400 steps. `info` has `height_m`, `force_N`,
    `held`, and after a reset what was drawn; `reset(options={...})` gives `position`, `sight`, `mass`.

    cup: a cup's name or a suction scene, as `palpo.lift` takes it. errors: a `PickVariation`, or a table of
    some of its entries. The same seed and actions give the same episode. Raises Refusal without MuJoCo.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        cup: str = "small",
        errors: PickVariation | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        try:
            import mujoco

            from palpo.app.exported.in_mujoco import MujocoGripper
        except ImportError:
            raise Refusal("palpo/Pick-v1 runs in MuJoCo: pip install 'palpo[gym,simulators]'") from None
        self._lib, self._kind, self.render_mode = mujoco, MujocoGripper, render_mode
        self.errors = errors_of(PickVariation, errors)
        found = lift(cup)
        self._folder = TemporaryDirectory()
        found.export(self._folder.name)
        self._model = mujoco.MjModel.from_xml_path(str(Path(self._folder.name) / "lift.xml"))
        self._load = self._model.body("load").id
        self._weight = LOADED * len(found.cups) * found.lifted(SPEED)
        self._inertia = self._model.body_inertia[self._load] / self._model.body_mass[self._load]
        self.action_space = Box(-1.0, 1.0, (4,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (10,), np.float32)
        self._data = mujoco.MjData(self._model)
        self._renderer: Any = None
        self._sight, self._force = np.zeros(2), np.zeros(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; see the class. Raises Refusal for an option that there is not."""
        super().reset(seed=seed)
        e, rng = self.errors, self.np_random
        drew: dict[str, Any] = {
            "position": e.position * rng.uniform(-1.0, 1.0, 2),
            "sight": e.sight * rng.uniform(-1.0, 1.0, 2),
            "mass": self._weight * (1.0 + e.mass * float(rng.uniform(-1.0, 1.0))),
        }
        drew |= known_only(options, list(drew), "reset")
        model = self._model
        model.body_mass[self._load] = float(drew["mass"])
        model.body_inertia[self._load] = float(drew["mass"]) * self._inertia
        self._lib.mj_setConst(model, self._data)
        self._lib.mj_resetData(model, self._data)
        self._data.qpos[:2] += drew["position"]
        self._lib.mj_forward(model, self._data)
        self._gripper = self._kind(model, self._data, self._folder.name)
        self._start = self._data.mocap_pos[0].copy()
        self._at, self._sight = np.zeros(3), np.asarray(drew["sight"], float)
        self._rest, self._best, self._most = self._height(), 0.0, 0.0
        self._force = np.zeros(3)
        return self._observe(), {**self._told(), **drew}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """20 ms; see the class."""
        wanted = np.clip(np.asarray(action, float), -1.0, 1.0)
        self._gripper.grip() if wanted[3] >= 0.0 else self._gripper.release()
        dt = self._model.opt.timestep
        for _ in range(TICKS):
            self._at = np.clip(self._at + SPEED * dt * wanted[:3], *ROOM)
            self._data.mocap_pos[0] = self._start + self._at
            self._gripper.step()
            self._lib.mj_step(self._model, self._data)
        self._force = -np.sum(list(self._gripper.forces.values()), axis=0)
        told = self._told()
        high, held = min(1.0, max(0.0, told["height_m"] / HIGH)), told["held"]
        reward = max(0.0, high - self._best) + 0.1 * max(0.0, held - self._most)
        self._best, self._most = max(self._best, high), max(self._most, held)
        dropped = self._best >= 0.5 and held == 0.0
        return self._observe(), float(reward - dropped), bool(high >= 1.0 or dropped), False, told

    def _height(self) -> float:
        return float(self._data.xpos[self._load, 2])

    def _told(self) -> dict[str, Any]:
        holding = self._gripper.holding.values()
        force = float(np.linalg.norm(self._force))
        return {
            "height_m": self._height() - self._rest, "force_N": force, "held": sum(holding) / len(holding),
        }  # fmt: skip

    def _observe(self) -> Observation:
        away = self._data.xpos[self._load] - (self._start + self._at)
        away[:2] += self._sight
        force = self._force + self.errors.noise * self.np_random.standard_normal(3)
        seen = np.concatenate([self._at, away, force, [self._told()["held"]]]) / UNIT
        return np.clip(seen, -BOUND, BOUND).astype(np.float32)

    def render(self) -> Any:
        """A picture (480, 640, 3) by MuJoCo's own renderer."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = self._lib.Renderer(self._model, 480, 640)
        self._renderer.update_scene(self._data)
        return self._renderer.render()

    def close(self) -> None:
        """Give the picture's resources and files back."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._folder.cleanup()
