"""Robot learning of a suction cup: place it on a cube, press, lift, and hold before the air has seeped in."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from palpo.app.gym.drawn import errors_of, known_only, require
from palpo.app.gym.of_state import Observation, StateEnv
from palpo.app.library.model import Model
from palpo.app.library.scene import Scene
from palpo.config.load import load_scene
from palpo.config.schema.body import Rigid
from palpo.config.schema.gas import PassiveGas
from palpo.config.schema.suction import SuctionScene
from palpo.config.words import Refusal

Floats = NDArray[np.float64]

PERIOD = 0.01
"""Of a step [s]."""
SPEED = 0.05
"""Of the target at a full action [m/s]."""
BOX = np.array([[-20e-3, -12e-3, -20e-3], [20e-3, 40e-3, 20e-3]])
"""How far the target may go from its start [m]."""
HIGH, LONG = 10e-3, 2.5
"""How high the cube has to hang [m], and for how long [s]."""
DROPPED = 0.5 * HIGH
"""Below which a cube that has hung has fallen [m]."""
BREAKING = 8.0
"""Force at which something breaks [N]."""
COST = 0.0005
"""Of a newton, in a step."""
BOUND = 10.0
"""Entries of an observation beyond it are cut off."""
UNIT = np.repeat([10e-3, 1e-3, 1.0, 10e-3], [3, 3, 3, 2])
"""Of the observation's entries [m], [m], [N], [m]."""


@dataclass(frozen=True)
class LiftVariation:
    """What differs from the scene, drawn evenly from both sides of nothing where it is not said otherwise.

    position [m]: of the cup beside the middle of the cube, along x and z. sight [m]: of where the middle is
    taken to be, along both, the same for a whole episode. mass, leak, friction: share of the
    cube's mass, of the roughness that air gets through, and of the coefficient. noise: standard deviation of
    all that is measured, in the observation's units. delay [s]: of what is measured, drawn evenly from zero
    on in whole steps. variants: how many scenes are made, each with a mass, leak and friction of its own; an
    episode draws one.

    Raises Refusal for a negative entry, no variant, and a share of 1 or more.
    """

    position: float = 15e-3
    sight: float = 1e-3
    mass: float = 0.3
    leak: float = 0.3
    friction: float = 0.3
    noise: float = 0.01
    delay: float = 0.02
    variants: int = 4

    def __post_init__(self) -> None:
        require(self, ("mass", "leak", "friction"))


class SuctionEnv(StateEnv):
    """Place a suction cup on a cube, press it, lift the cube, and hold it.

    The cup hangs on a spring and a damper that pull it to a target; the agent moves the target. What the cup
    holds, and for how long, follows from how it was pressed: air seeps in under its rim. A step is 10 ms.

    **Action**, `Box(-1, 1, (3,), float32)`: velocity of the target along x, y and z, in 0.05 m/s. The target
    stays within 20 mm beside its start, 12 mm below and 40 mm above it.

    **Observation**, `Box(-10, 10, (11,), float32)`:

    | entries | what | unit |
    |---|---|---|
    | 0-2 | target from its start | 10 mm |
    | 3-5 | cup from its target | 1 mm |
    | 6-8 | force on the gripper | 1 N |
    | 9-10 | where the cube's middle lay at the start, from the target, along x and z | 10 mm |

    Entries 3 to 8 are measured: with noise, and late. The last two are by sight: the same error in all of an
    episode.

    **Reward**: the share of 10 mm by which the cube hangs higher than ever before; the share of 2.5 s by
    which it has hung 10 mm high for longer than ever before; less 0.0005 for each newton; -1 for the step
    that breaks something.

    **Episode**: it starts at rest above the cube, off its middle. `errors` says what is drawn, and
    `reset(options={...})` gives some of it instead: `position`, `sight` (x, z) [m], `delay` [s], `variant`.
    It is terminated when the cube has hung 10 mm high for 2.5 s, when it has hung so high and fallen below
    5 mm, or when the force exceeds 8 N; `gymnasium.make` truncates it after 500 steps. `info` has `height_m`
    of the cube, `force_N` and `held`, without error or delay, and after a reset what was drawn.

    scene: name or file of a suction scene with one cup that the hand holds, passive gas and a rigid partner
    of a given mass; overrides: "key=value" as `--set` takes them. errors: an `Errors`, or a table of some of
    its entries. The same seed and actions give the same episode, bit for bit. A step takes some 10 ms of a
    processor; several environments go by `gymnasium.make_vec` in processes, `vectorization_mode="async"`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012

    def __init__(
        self,
        scene: str = "suction-cube",
        overrides: tuple[str, ...] = (),
        errors: LiftVariation | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigError and Refusal for what cannot be built."""
        super().__init__(render_mode)
        self.scene = Scene.of(load_scene(scene, overrides), scene)
        self.errors = errors_of(LiftVariation, errors)
        spec = self.scene.spec
        if not _usable(spec):
            raise Refusal(
                f"{scene}: this environment needs a suction scene with one cup that a hand drives, passive "
                "gas, and a rigid partner of a given mass"
            )
        assert isinstance(spec, SuctionScene) and isinstance(spec.partner, Rigid)
        self._body, self._ticks = spec.partner.name, round(PERIOD / self.scene.dt)
        self._models: dict[int, Model] = {}
        self._late: deque[Floats] = deque(maxlen=1)
        self._target, self._start, self._away = np.zeros(3), np.zeros(3), np.zeros(3)
        self._sight = np.zeros(2)
        self._rest = self._best = self._hung = self._longest = 0.0
        self.action_space = Box(-1.0, 1.0, (3,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (11,), np.float32)

    def _model(self, variant: int) -> Model:
        """A variant, built when it is first wanted; drawn by its number, the same for every seed."""
        if variant not in self._models:
            e, spec = self.errors, self.scene.spec
            assert isinstance(spec, SuctionScene) and isinstance(spec.partner, Rigid)
            assert isinstance(spec.gas, PassiveGas) and spec.partner.mass is not None
            mass, leak, friction = 1.0 + np.array([e.mass, e.leak, e.friction]) * np.random.default_rng(
                variant
            ).uniform(-1.0, 1.0, 3)
            varied = self.scene.with_(
                {
                    f"bodies.{self._body}.mass": spec.partner.mass * float(mass),
                    "gas.seal.rms": spec.gas.seal.rms * float(leak),
                    "friction.default": spec.friction.default * float(friction),
                }
            )
            self._models[variant] = varied.build()
        return self._models[variant]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; see the class. Raises Refusal for an option that there is not."""
        super().reset(seed=seed)
        e, rng = self.errors, self.np_random
        drew: dict[str, Any] = {
            "position": e.position * rng.uniform(-1.0, 1.0, 2),
            "sight": e.sight * rng.uniform(-1.0, 1.0, 2),
            "delay": PERIOD * int(rng.integers(round(e.delay / PERIOD) + 1)),
            "variant": int(rng.integers(e.variants)),
        }
        drew |= known_only(options, list(drew), "reset")
        if self._state is not None:
            self._state.close()
        model = self._model(int(drew["variant"]))
        self._state = model.start()
        x, z = np.asarray(drew["position"], float)
        self._away[:] = x, 0.0, z
        self._sight[:] = drew["sight"]
        self._start[:] = model.held
        self._target[:] = 0.0
        self._state.step(hand=self._start + self._away, ticks=1)
        self._rest = self._height()
        self._best = self._hung = self._longest = 0.0
        self._late = deque(maxlen=1 + round(float(drew["delay"]) / PERIOD))
        return self._observe(), {**self._told(), **drew}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """10 ms; see the class."""
        assert self._state is not None
        wanted = self._target + SPEED * PERIOD * np.clip(np.asarray(action, float), -1.0, 1.0)
        self._target[:] = np.clip(wanted, *BOX)
        well = True
        try:
            self._state.step(hand=self._start + self._away + self._target, ticks=self._ticks)
        except (FloatingPointError, RuntimeError):
            well = False
        told = self._told()
        height, force = told["height_m"], told["force_N"]
        self._hung = self._hung + PERIOD if height >= HIGH else 0.0
        told["held"] = self._hung >= LONG - 0.5 * PERIOD
        broken = not well or force > BREAKING
        dropped = self._best >= 1.0 and height < DROPPED
        high, long = min(1.0, height / HIGH), min(1.0, self._hung / LONG)
        reward = max(0.0, high - self._best) + max(0.0, long - self._longest)
        reward -= COST * min(force, BREAKING) + broken
        self._best, self._longest = max(self._best, high), max(self._longest, long)
        return self._observe(), float(reward), bool(told["held"] or dropped or broken), False, told

    def _height(self) -> float:
        assert self._state is not None
        return float(self._state.positions[self._body][:, 1].mean())

    def _told(self) -> dict[str, Any]:
        assert self._state is not None
        force = float(np.linalg.norm(self._state.force))
        return {"height_m": self._height() - self._rest, "force_N": force, "held": False}

    def _observe(self) -> Observation:
        """What the agent sees; the oldest measurement that is kept."""
        assert self._state is not None
        lag = self._state.tool.position - (self._start + self._away + self._target)
        self._late.append(np.concatenate([lag, self._state.force]))
        sight = self._sight - (self._away + self._target)[[0, 2]]
        seen = np.concatenate([self._target, self._late[0], sight]) / UNIT
        seen[3:9] += self.errors.noise * self.np_random.standard_normal(6)
        return np.nan_to_num(np.clip(seen, -BOUND, BOUND)).astype(np.float32)


def _usable(spec: Any) -> bool:
    return (
        isinstance(spec, SuctionScene)
        and len(spec.cups) == 1
        and spec.tool is not None
        and isinstance(spec.gas, PassiveGas)
        and isinstance(spec.partner, Rigid)
        and spec.partner.mass is not None
    )
