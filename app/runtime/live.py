"""What an operator may change while a scene runs, in the scene's own keys.

A change is the text "key=value" of `--set`: it is validated likewise, takes effect at the next slow step,
and a recording keeps it with that step's number, so that a replay can make it again. A quantity that the hand
feels goes over to its new value in even steps, one a slow step, each of them such a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from palpo.app.systems.system import system_of
from palpo.config.load import parse_scene, said_today, scene_tables
from palpo.config.schema.device import Handed
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.tool import HoldSpec
from palpo.config.words import ConfigError
from palpo.haptics.device_spec import DEVICES, DeviceSpec

SLEW = 0.1
"""Seconds, at least, in which a quantity that the hand feels goes over to another value."""


FEW = 3
"""Keys that are shown before all others."""
FIRST = (
    "gas.manifold.vent.state", "gas.manifold.pump.state", "gas.manifold.pump.speed", "gas.gauge",
    "gas.seal.rms", "gas.max_pressure", "admittance.stiffness", "friction.default", "workspace.force_scale",
    "gravity.1", "tool.hold.stiffness",
)  # fmt: skip
"""Which these are, of those that a scene has: what one feels or sees most of."""


@dataclass(frozen=True)
class Live:
    """One key that may be changed, and how a control for it looks."""

    key: str
    group: str
    """Empty where a button of its own changes it."""
    label: str
    unit: str
    lower: float
    upper: float
    value: float | str
    log: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    felt: bool = False
    """Whether it is the spring between device and tool, which no device feels stiffer than it can render."""


def around(key: str, group: str, label: str, unit: str, value: float, felt: bool = False) -> Live:
    """A positive quantity whose control spans two powers of ten below its value and one above."""
    return Live(key, group, label, unit, 1e-2 * value, 10.0 * value, value, True, felt=felt)


def live_keys(spec: BaseScene) -> list[Live]:
    """Everything that may be changed in this scene, with its present value."""
    return system_of(spec).live_keys(spec)


def few_keys(spec: BaseScene, keys: Sequence[Live]) -> tuple[str, ...]:
    """The few of a scene's live keys that matter most."""
    held = bool(system_of(spec).held_name(spec))
    present = {live.key for live in keys if live.group and (held or live.group != "hand")}
    return tuple(key for key in FIRST if key in present)[:FEW]


def hold_keys(key: str, hold: HoldSpec) -> list[Live]:
    """Springs and dampers of a coupling; a pose that is imposed has none."""
    if hold.mode != "coupling":
        return []
    keys = [
        around(f"{key}.stiffness", "coupling", "stiffness", "N/m", hold.stiffness, felt=True),
        Live(
            f"{key}.damping", "coupling", "damping", "N s/m", 0.0, max(10.0, 4 * hold.damping), hold.damping
        ),
    ]
    if hold.orientation:
        stiff, damped = hold.rotational_stiffness, hold.rotational_damping
        keys += [
            around(f"{key}.rotational_stiffness", "coupling", "turning", "N m/rad", stiff),
            Live(f"{key}.rotational_damping", "coupling", "turning damping", "N m s/rad", 0.0,
                 max(0.1, 4 * damped), damped),
        ]  # fmt: skip
    return keys


def hand_keys(spec: BaseScene) -> list[Live]:
    """What reaches the hand, a share of the scene's force and at most so much, and which hand it is."""
    strongest, felt = DEVICES[spec.device.model].max_force, spec.workspace.felt_force
    return [
        Live("workspace.force_scale", "hand", "force scale", "", min(0.01, 0.01 * felt), max(10.0, felt),
             felt, True),
        Live("safety.max_force", "hand", "largest force", "N", 0.1, strongest,
             spec.safety.max_force or strongest),
        Live("workspace.handed", "", "hand", "", 0.0, 0.0, spec.workspace.handed, choices=get_args(Handed)),
    ]  # fmt: skip


def way_to(spec: BaseScene, text: str, steps: int) -> list[str]:
    """The changes that lead in even steps to that of `text`, which is the last of them.

    Solvers, counts and what is laid out in time elsewhere (force scale and largest force by the servo,
    Poisson's ratio by the rig) change at once.
    """
    key = text.partition("=")[0].strip()
    name = "gravity.1" if key == "gravity" else key
    now, goal = (
        next((live for live in live_keys(scene) if live.key == name), None)
        for scene in (spec, changed(spec, text))
    )
    at_once = key in _AT_ONCE or key.endswith(".poisson_ratio")
    if now is None or goal is None or at_once or now.group == "solver":
        return [text]
    if not (isinstance(now.value, float) and isinstance(goal.value, float)):
        return [text]
    between = [now.value + (goal.value - now.value) * k / steps for k in range(1, steps)]
    return [*(change_text(spec, name, value) for value in between), text]


_AT_ONCE = ("workspace.force_scale", "safety.max_force", "contact.clusters")


def change_text(spec: BaseScene, key: str, value: object) -> str:
    """The change "key=value" as `--set` reads it; counts are rounded."""
    if key == "gravity.1":
        # a list that the file leaves out has no items to change one by one
        return f"gravity=[{spec.gravity[0]!r}, {value!r}, {spec.gravity[2]!r}]"
    if key.startswith("solver.sweeps") and isinstance(value, float):
        return f"{key}={max(1, round(value))}"
    if key == "contact.clusters" and isinstance(value, float):
        return f"{key}={round(value)}"
    return f"{key}={value}" if isinstance(value, str) else f"{key}={value!r}"


def changed(spec: BaseScene, text: str) -> Any:
    """The scene after a change; raises ConfigError for a key that is not live, or a value that is refused."""
    text = said_today(spec.origin, text)
    key = text.partition("=")[0].strip()
    known = [live.key for live in live_keys(spec)]
    if key.endswith(".poisson_ratio") and key not in known:
        raise ConfigError(
            f"{text}: this stiffness cannot change while the scene runs; start the scene with --set"
        )
    if key not in known and key != "gravity":
        raise ConfigError(f"{text}: cannot be changed while the scene runs; choose one of {', '.join(known)}")
    return _with(spec, text)


def same_key(one: str, other: str) -> bool:
    """Whether two changes are of one key."""
    return one.partition("=")[0].strip() == other.partition("=")[0].strip()


def _with(spec: BaseScene, text: str) -> Any:
    """The scene with a key of `text` instead of what was asked of that key before."""
    origin = spec.origin
    # or an hour of dragging would be read again each time
    kept = [o for o in origin.overrides if not same_key(o, text)]
    return parse_scene(origin.text, origin.path, (*kept, text))


def softened(spec: BaseScene, figures: Sequence[DeviceSpec]) -> tuple[Any, list[str], list[str]]:
    """The scene whose couplings no hand's device feels stiffer than its maker's stiffest wall.

    A stiffness K of the coupling is felt as s g K, by the workspace's scale s and force scale g. figures: of
    the devices of the hands. Returns the scene, the changes that were needed, and a sentence on each.
    """
    changes, said = [], []
    for number, (hand, device) in enumerate(zip(spec.hands, figures, strict=False)):
        most = device.max_stiffness / hand.workspace.felt
        for key in live_keys(hand):
            if key.felt and isinstance(key.value, float) and key.value > most * (1.0 + 1e-9):
                name = key.key
                if number:
                    place = number - ("tool" in scene_tables(spec.origin))
                    name = name.replace("tool", f"tools.{place}", 1)
                changes.append(f"{name}={most!r}")
                said.append(
                    f"{name} is {most:.4g} N/m instead of {key.value:.4g}: a {device.name} renders at most "
                    f"{device.max_stiffness:g} N/m"
                )
    for change in changes:
        spec = _with(spec, change)
    return spec, changes, said


def device_values(spec: BaseScene) -> tuple[float, ...]:
    """What `Port.live` has of the scene; NaN where that leaves it to the servo."""
    given = spec.workspace.force_scale, spec.safety.max_force, float(spec.workspace.handed == "left")
    return tuple(math.nan if value is None else value for value in given)
