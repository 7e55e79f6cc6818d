"""Robot learning with a needle: bring its tip to a place inside a body that breathes."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from palpo.app.gym.drawn import errors_of, known_only, require
from palpo.app.gym.of_state import Observation, StateEnv
from palpo.app.library.scene import Scene
from palpo.config.load import load_scene
from palpo.config.words import Refusal
from palpo.physics.systems.multirate.needle_paths import NeedlePath

Floats = NDArray[np.float64]

PERIOD = 0.02
"""Of a step [s]."""
SPEED = 0.03
"""Of the hand at a full action [m/s]."""
ROOM = 0.03
"""How far aside the hand may go from its start [m]."""
REACHED = 2e-3
"""Distance of the tip from its target that counts as there [m]."""
DEEP = 12e-3, 20e-3
"""Between which depths the target lies along the needle's line [m]."""
TEARING = 4.0
"""Force at which the episode ends [N]."""
BOUND = 10.0
UNIT = np.repeat([10e-3, 10e-3, 1.0, 10e-3], [3, 3, 3, 1])
"""Of the observation's entries [m], [m], [N], [m]."""


@dataclass(frozen=True)
class BiopsyVariation:
    """What differs from episode to episode, drawn evenly from both sides of nothing.

    target [m]: of the target beside the needle's line, across it. breath [m], pace: the body's motion up and
    down, never more than that, and the share by which its 4 s vary. sight [m]: of where the target is taken
    to be, the same for a whole episode. noise: standard deviation of all that is measured, in the
    observation's units. Raises Refusal for a negative entry and a pace of 1 or more.
    """

    target: float = 8e-3
    breath: float = 3e-3
    pace: float = 0.3
    sight: float = 5e-4
    noise: float = 0.01

    def __post_init__(self) -> None:
        require(self, ("pace",))


class BiopsyEnv(StateEnv):
    """Bring a needle's tip to a target inside soft tissue that breathes.

    The needle is pushed in without being turned; tissue gives way, rubs, and is carried along. The body moves
    up and down as a breathing patient's does, slowly enough that only its place matters. A step is 20 ms.

    **Action**, `Box(-1, 1, (3,), float32)`: velocity of the hand along the needle, forwards, and across it in
    two directions, in 0.03 m/s. It stays within 30 mm aside of its start.

    **Observation**, `Box(-10, 10, (10,), float32)`, in those three directions: the hand from its start
    [10 mm], the target from the tip [10 mm], by sight, the force on the hand [N]; and the length of the shaft
    that is inside [10 mm].

    **Reward**: by how much the tip is nearer to the target than ever before, in 10 mm; 1 when it is there; -1
    when the force exceeds 4 N.

    **Episode**: it starts before the body. It is terminated within 2 mm of the target, inside, and at 4 N;
    `gymnasium.make` truncates it after 400 steps. `info` has `distance_m`, `depth_m`, `force_N` and
    `reached`, and after a reset what was drawn; `reset(options={...})` gives `target` (2,), `depth`,
    `breath`, `pace`, `phase`, `sight` (3,).

    scene: name or file of a scene with a needle; overrides: "key=value" as `--set` takes them. errors: a
    `BiopsyVariation`, or a table of some of its entries. The same seed and actions give the same episode.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        scene: str = "biopsy",
        overrides: tuple[str, ...] = (),
        errors: BiopsyVariation | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigError and Refusal for what cannot be built."""
        super().__init__(render_mode)
        made = Scene.of(load_scene(scene, overrides), scene)
        if not getattr(made.spec, "needles", ()):
            raise Refusal(f"{scene}: this environment needs a scene with a table `needles`, such as `biopsy`")
        self.errors = errors_of(BiopsyVariation, errors)
        self._model, self._ticks = made.build(), round(PERIOD / made.dt)
        self._drew: dict[str, Any] = {}
        self._axes, self._start, self._hand = np.eye(3), np.zeros(3), np.zeros(3)
        self._cell, self._weights = 0, np.zeros(4)
        self._best, self._steps = math.inf, 0
        self.action_space = Box(-1.0, 1.0, (3,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (10,), np.float32)

    @property
    def _path(self) -> NeedlePath:
        assert self._state is not None
        path: NeedlePath = self._state.rig.scene.needles[0]  # type: ignore[attr-defined]
        return path

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; see the class. Raises Refusal for an option that there is not, and a target outside
        of the body."""
        super().reset(seed=seed)
        e, rng = self.errors, self.np_random
        drew: dict[str, Any] = {
            "target": e.target * rng.uniform(-1.0, 1.0, 2), "depth": float(rng.uniform(*DEEP)),
            "breath": e.breath * float(rng.uniform()), "pace": 1.0 + e.pace * float(rng.uniform(-1.0, 1.0)),
            "phase": float(rng.uniform(0.0, 2.0 * math.pi)), "sight": e.sight * rng.uniform(-1.0, 1.0, 3),
        }  # fmt: skip
        self._drew = drew | known_only(options, list(drew), "reset")
        if self._state is not None:
            self._state.close()
        self._state = state = self._model.start()
        path, rest = self._path, state.rig.scene.rest  # type: ignore[attr-defined]
        tip, behind = rest[path.spec.points[:2]]
        ahead = (tip - behind) / np.linalg.norm(tip - behind)
        side = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead))])
        side /= np.linalg.norm(side)
        self._axes = np.array([ahead, side, np.cross(ahead, side)])
        self._find_target(tip)
        self._start, self._hand = np.array(self._model.held), np.zeros(3)
        self._best, self._steps = math.inf, 0
        state.step(hand=self._at(), ticks=1)
        self._best = self._told()["distance_m"]
        return self._observe(), {**self._told(), **self._drew}

    def _find_target(self, tip: Floats) -> None:
        """The target's element and weights: so deep on a line along the needle, from where that meets the
        body."""
        path, aside = self._path, np.asarray(self._drew["target"], float)
        line = tip + aside @ self._axes[1:]
        nearest = float(((path.body.mesh.nodes - line) @ self._axes[0]).min())
        for way in np.arange(nearest, nearest + 0.2, 5e-4):
            if path.places.find(line + way * self._axes[0])[0] >= 0:
                place = line + (way + float(self._drew["depth"])) * self._axes[0]
                self._cell, self._weights = path.places.find(place)
                if self._cell >= 0:
                    return
                break
        raise Refusal(f"reset: the target, {self._drew['depth']} m deep, is not inside the body")

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """20 ms; see the class."""
        assert self._state is not None
        self._hand += SPEED * PERIOD * np.clip(np.asarray(action, float), -1.0, 1.0)
        self._hand[1:] = np.clip(self._hand[1:], -ROOM, ROOM)
        self._steps += 1
        self._state.step(hand=self._at(), ticks=self._ticks)
        told = self._told()
        nearer = max(0.0, self._best - told["distance_m"]) / 10e-3
        self._best = min(self._best, told["distance_m"])
        torn = told["force_N"] > TEARING
        reward = nearer + told["reached"] - torn
        return self._observe(), float(reward), bool(told["reached"] or torn), False, told

    def _at(self) -> Floats:
        """Where the hand is, for a body that stays: as breathing is slow, it is the hand that moves."""
        drew = self._drew
        angle = 2.0 * math.pi * self._steps * PERIOD / (4.0 * float(drew["pace"])) + float(drew["phase"])
        lifted = float(drew["breath"]) * 0.5 * (1.0 - math.cos(angle))
        return self._start + self._hand @ self._axes - np.array([0.0, lifted, 0.0])

    def _away(self) -> Floats:
        """The target from the tip [m], in the needle's axes."""
        assert self._state is not None
        path, high = self._path, self._state.rig.high  # type: ignore[attr-defined]
        nodes = path.places.cells[self._cell]
        target = path.places.shares(self._weights) @ path.body.x[nodes]
        frame = 0 if path.spec.points[0] < path.spec.points[1] else -1
        return np.asarray(self._axes @ (target - high.held.tool.x[frame]))

    def _told(self) -> dict[str, Any]:
        assert self._state is not None
        [needle, *_] = self._state.needles
        distance, force = float(np.linalg.norm(self._away())), float(np.linalg.norm(self._state.force))
        reached = distance < REACHED and needle.inside > 0.0
        return {
            "distance_m": distance, "depth_m": needle.inside, "force_N": force, "reached": reached,
        }  # fmt: skip

    def _observe(self) -> Observation:
        assert self._state is not None
        sight = self._away() + np.asarray(self._drew["sight"], float)
        force, depth = self._axes @ self._state.force, self._told()["depth_m"]
        seen = np.concatenate([self._hand, sight, force, [depth]]) / UNIT
        seen[3:] += self.errors.noise * self.np_random.standard_normal(7)
        return np.nan_to_num(np.clip(seen, -BOUND, BOUND)).astype(np.float32)


def straight_in(seen: Observation) -> Observation:
    """A hand that lines the needle up with its target and pushes: the baseline.

    It goes on towards the target across the needle while it is inside, where the tissue is carried along.
    """
    _, across = float(seen[3]), np.asarray(seen[4:6], float)
    inside = float(seen[9]) > 0.05
    aligned = inside or float(np.linalg.norm(across)) < 0.15
    forward = 1.0 if aligned else 0.0
    return np.clip([forward, *(4.0 * across)], -1.0, 1.0).astype(np.float32)
