"""Robot learning of a snap connection: push, align and latch a plug that lies askew in its gripper."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from palpo.app.gym.artist import Artist
from palpo.app.gym.drawn import errors_of
from palpo.app.gym.snap_plant import BOUND, QUICK, InsertionVariation, Plant
from palpo.app.gym.snap_trials import Observation, Trials

ACTIONS, OBSERVATIONS = Box(-1.0, 1.0, (6,), np.float32), Box(-BOUND, BOUND, (18,), np.float32)
ONLY = np.zeros(1, np.intp)
"""The place of the only one."""


class SnapEnv(gymnasium.Env[Observation, Observation]):
    """Push, align and latch a plug under pose error; the socket, the plug and its hold are a snap scene's.

    A gripper holds the plug by admittance control: as a mass on a spring and a damper that pull it to a
    target pose. The agent moves the target; how the plug lies in the gripper it must find out from the
    forces. A step is 10 ms: ten ticks of the scene's servo. All vectors are in the scene's axes, y up.

    **Action**, `Box(-1, 1, (6,), float32)`: velocity of the target, in 0.05 m/s along x, y, z, and of its
    rotation vector, in 0.5 rad/s. The target stays within 10 mm beside its path, 4 mm beyond both of its ends
    and 0.3 rad about each axis.

    **Observation**, `Box(-10, 10, (18,), float32)`; the unit of forces is the hold's force at 1 mm, about the
    peak of an insertion, and of torques that times the plug's radius of gyration:

    | entries | what | unit |
    |---|---|---|
    | 0-2 | target from the start of the stroke | stroke |
    | 3-5 | its rotation vector | 0.3 rad |
    | 6-8 | plug from its target | 1 mm |
    | 9-11 | rotation vector of the plug from its target | 0.3 rad |
    | 12-14 | force of the hold on the gripper | reference force |
    | 15-17 | torque of the hold on the gripper | reference torque |

    Entries 6 to 17 are measured: with noise, and late.

    **Reward**: the share of the stroke by which the plug has come farther than ever before, less 0.05 times
    the force in its unit; +1 for the step that latches it, -1 for one that breaks something.

    **Episode**: it starts at rest 2 mm before the stroke. `errors` says what is drawn: the plug's place and
    tilt in the gripper, friction, the delay of what is measured, and one of `errors.variants` connectors that
    differ in Young's modulus and in every dimension. `reset(options={...})` gives some of them instead:
    `position` (3,) [m], `tilt` (3,) [rad], `friction`, `delay` [s], `variant`. It is terminated when the
    plug is latched, at 98 % of the stroke, or the force exceeds 2.5 times its unit; `gymnasium.make`
    truncates it after 300 steps. `info` has `travel_m`, `force_N` and `latched`, without error or delay, and
    after a reset what was drawn.

    scene: name or file of a snap scene; overrides: "key=value" as `--set` takes them. errors: an `Errors`, or
    a table of some of its entries; `{"position": 0.003}` halves one. The same seed and actions give the same
    episode, bit for bit.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012

    def __init__(
        self,
        scene: str = "snap",
        overrides: tuple[str, ...] = QUICK,
        errors: InsertionVariation | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigError, InputError and Refusal for what cannot be built."""
        self.plant = Plant(scene, tuple(overrides), errors_of(InsertionVariation, errors))
        self._trials = Trials(self.plant)
        self.render_mode = render_mode
        self.action_space, self.observation_space = ACTIONS, OBSERVATIONS
        self._artist = Artist()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; see the class. Raises Refusal for an option that there is not."""
        super().reset(seed=seed)
        return self._trials.begin(0, self.np_random, options)

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """10 ms; see the class."""
        seen, reward, over, told = self._trials.step(ONLY, [action], [self.np_random])
        info = {name: value[0].item() for name, value in told.items()}
        return seen[0], float(reward[0]), bool(over[0]), False, info

    def render(self) -> Any:
        """A picture (480, 640, 3) of the present state; raises RenderUnavailable where there is no EGL."""
        rig = self._trials.rigs[0]
        if self.render_mode is None or rig is None:
            return None
        return self._artist.picture(rig, rig.visual, rig.tick)

    def close(self) -> None:
        """Give the picture's resources back."""
        self._artist.close()
