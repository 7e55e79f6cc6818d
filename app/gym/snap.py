"""Robot learning of a snap connection: push, align and latch a plug that lies askew in its gripper."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from palpo.app.build.snap import build_model
from palpo.app.cli.progress import Silent
from palpo.app.cli.refusal import Refusal
from palpo.app.visual.snap import SnapVisual
from palpo.config.load import load_scene
from palpo.config.schema.snap import SnapScene
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK
from palpo.physics.exchange.snapshot import COUNTERS
from palpo.physics.math3 import quat_from_rotvec, quat_multiply
from palpo.physics.mesh.connectors.connector import GIVE
from palpo.physics.systems.snap_servo import make_servo
from palpo.physics.systems.snap_tick import tick
from palpo.render.camera import Camera
from palpo.render.offscreen import Offscreen
from palpo.render.scene_view import visible_points

Floats = NDArray[np.float64]
Observation = NDArray[np.float32]

TICKS = 10
"""Ticks of the servo in a step."""
SPEED, TURNING = 0.05, 0.5
"""Of the target at a full action [m/s], [rad/s]."""
AHEAD, ASIDE, TILT = 4e-3, 10e-3, 0.3
"""How far the target may go beyond the stroke or behind its start [m], aside [m], and turn [rad]."""
BACK = 2e-3
"""Where an episode starts, behind the scene's own start, which a plug askew would touch [m]."""
LATCHED = 0.98
"""Share of the stroke that latches the plug."""
BREAKING = 2.5
"""Force, in units of the reference force, at which something breaks."""
COST = 0.05
"""Of the reference force, in a step."""
BOUND = 10.0
"""Entries of an observation beyond it are cut off."""
WIDTH, HEIGHT = 640, 480


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

    **Reward**: the share of the stroke by which the plug has come farther than ever before, less 0.05 times
    the force in its unit; +1 for the step that latches it, -1 for one that breaks something.

    **Episode**: it starts at rest 2 mm before the stroke, the plug off its target by an error that is drawn
    evenly from +-`position_error` [m] along the axes across the push and +-`tilt_error` [rad] about all axes;
    `reset(options={"position": (x, y, z), "tilt": (x, y, z)})` gives it instead. It is terminated when the
    plug is latched, at 98 % of the stroke, or the force exceeds 2.5 times its unit; `gymnasium.make`
    truncates it after 300 steps. `info` has `travel_m`, `force_N` and `latched`, and after a reset `position`
    and `tilt`.

    With the default scene and errors, pushing blindly latches 4 plugs of 5 and returns 0.8 in the mean; who
    knows the error and corrects it first latches all, for 1.7.

    scene: name or file of a snap scene; overrides: "key=value" as `--set` takes them. The same seed and
    actions give the same episode, bit for bit.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012

    def __init__(
        self,
        scene: str = "snap",
        overrides: tuple[str, ...] = (),
        position_error: float = 6e-3,
        tilt_error: float = 0.15,
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigError, InputError and Refusal for what cannot be built."""
        told = load_scene(scene, overrides)
        if not isinstance(told, SnapScene):
            raise Refusal(f'{scene}: system = "{told.system}"; this environment needs a snap scene')
        if not (position_error >= 0.0 and tilt_error >= 0.0):
            raise Refusal(f"errors of {position_error} m and {tilt_error} rad; neither may be negative")
        self.scene, self.render_mode = told, render_mode
        self.errors = position_error, tilt_error
        self.model = model = build_model(told, Silent())
        self.servo = make_servo(model, told.integration.substeps, turns=True)
        self._handle = Handle(self.servo)
        self._fresh = [(array, array.copy()) for array in _state(self.servo)]
        parts = (*model.prongs, *(probe.state for probe in model.probes))
        self._fresh += [(array, array.copy()) for part in parts for array in _state(part)]
        c, plug = model.connector, model.state.plug.model
        along = c.push
        self.unit_force = float(along @ plug.stiffness[:3, :3] @ along) * GIVE
        mass, _, inertia = c.plug.mass_properties(1.0)
        self.unit_torque = self.unit_force * float(np.sqrt(np.trace(inertia) / (3.0 * mass)))
        reach = np.abs(along) * (c.stroke + AHEAD) + (1.0 - np.abs(along)) * ASIDE
        behind = np.abs(along) * AHEAD + (1.0 - np.abs(along)) * ASIDE
        forward = along >= 0.0
        self._low = np.r_[np.where(forward, -behind, -reach), np.full(3, -TILT)]
        self._high = np.r_[np.where(forward, reach, behind), np.full(3, TILT)]
        self._rate = np.repeat([SPEED, TURNING], 3) * TICKS * told.rates.dt
        self._unit = np.repeat([c.stroke, TILT, GIVE, TILT, self.unit_force, self.unit_torque], 3)
        self._command = np.zeros(6)
        self._best = 0.0
        self.action_space = Box(-1.0, 1.0, (6,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (18,), np.float32)
        self._visual: SnapVisual | None = None
        self._photographer: Offscreen | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode; see the class."""
        super().reset(seed=seed)
        for array, fresh in self._fresh:
            array[...] = fresh
        across = np.eye(3) - np.outer(self.model.connector.push, self.model.connector.push)
        drawn = self.np_random.uniform(-1.0, 1.0, 6)
        given = options or {}
        own = self.scene.misalignment
        position = np.array(given.get("position", self.errors[0] * across @ drawn[:3]), float)
        tilt = np.array(given.get("tilt", self.errors[1] * drawn[3:]), float)
        self.servo.offset[:] = own.position + position
        quat_multiply(_quaternion(tilt), np.array(own.quaternion), self.servo.rest)
        self._command[:3], self._command[3:], self._best = -BACK * self.model.connector.push, 0.0, 0.0
        self._lead(np.zeros(6), 1)
        return self._observe(), {**self._info(), "position": position, "tilt": tilt}

    def step(self, action: Observation) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """10 ms; see the class."""
        wanted = self._command + self._rate * np.clip(np.asarray(action, float), -1.0, 1.0)
        well = self._lead(np.clip(wanted, self._low, self._high) - self._command, TICKS)
        info = self._info()
        share = info["travel_m"] / self.model.connector.stroke
        force = info["force_N"] / self.unit_force
        broken = not well or force > BREAKING
        reward = max(0.0, share - self._best) - COST * min(force, BOUND) + info["latched"] - broken
        self._best = max(self._best, share)
        return self._observe(), float(reward), bool(info["latched"] or broken), False, info

    def _lead(self, way: Floats, ticks: int) -> bool:
        """Lead the target on by `way` (6,) in so many ticks; False if the simulation broke down."""
        port, start = self.servo.port, self._command.copy()
        for k in range(ticks):
            self._command[:] = start + (k + 1) / ticks * way
            port.position[:] = self.model.start + self._command[:3]
            port.orientation[:] = _quaternion(self._command[3:])
            if tick(self._handle) != OK:
                return False
        return True

    def _observe(self) -> Observation:
        seen = (
            np.concatenate([self._command, self.servo.snap.plug.motion.error, self.servo.hand]) / self._unit
        )
        return np.nan_to_num(np.clip(seen, -BOUND, BOUND)).astype(np.float32)

    def _info(self) -> dict[str, Any]:
        c = self.model.connector
        travel = float((self.servo.snap.plug.motion.position - self.model.start) @ c.push)
        force = float(np.linalg.norm(self.servo.hand[:3]))
        return {"travel_m": travel, "force_N": force, "latched": travel >= LATCHED * c.stroke}

    def render(self) -> Any:
        """A picture (480, 640, 3) of the present state; raises RenderUnavailable where there is no EGL."""
        if self.render_mode is None:
            return None
        if self._visual is None:
            self._visual = SnapVisual(self.scene, self.model, self.servo)
        visual = self._visual
        visual.publish(
            visual.take_tool(), int(self.servo.count[0]["tick"]), np.zeros(len(COUNTERS), np.int64)
        )
        state, _ = visual.latest()
        if self._photographer is None:
            self._photographer = Offscreen(visual.geometry, state, WIDTH, HEIGHT)
            self._camera = Camera.looking(
                "perspective", visible_points(visual.geometry, state), WIDTH / HEIGHT
            )
        return self._photographer.picture(state, self._camera)

    def close(self) -> None:
        """Give the picture's resources back."""
        if self._photographer is not None:
            self._photographer.close()
            self._photographer = None


CONSTANT = (
    "model", "field", "scratch", "points", "settings", "picture", "prong", "prongs", "probe", "probes",
    "bodies", "batch", "problem", "acceleration",
)  # fmt: skip
"""Fields of the servo's and of its parts' state that no tick changes, or that none reads before it writes."""


def _state(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays of nested tuples that a run changes."""
    for name, field in value._asdict().items():
        if name in CONSTANT:
            continue
        if isinstance(field, np.ndarray):
            yield field
        elif hasattr(field, "_asdict"):
            yield from _state(field)


def _quaternion(turn: ArrayLike) -> Floats:
    """(w, x, y, z) of a rotation vector (3,) [rad]."""
    q = np.empty(4)
    quat_from_rotvec(np.asarray(turn, float), q)
    return q
