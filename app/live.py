"""What an operator may change while a scene runs, in the scene's own keys.

A change is the text "key=value" of `--set`: it passes the same validation, takes effect at the next low step,
and a recording keeps it with that step's number, so that a replay can make it again.
"""

import math
from dataclasses import dataclass
from typing import get_args

from config.load import ConfigError, parse_scene
from config.schema.scene import SceneSpec
from config.schema.solver import Solver
from haptics.device import DEVICES


@dataclass(frozen=True)
class Live:
    """One key that may be changed, and how a control for it looks."""

    key: str
    group: str
    label: str
    unit: str
    lower: float
    upper: float
    value: float | str
    log: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""


def _around(key: str, group: str, label: str, unit: str, value: float) -> Live:
    """A positive quantity whose control spans two powers of ten below its value and one above."""
    return Live(key, group, label, unit, 1e-2 * value, 10.0 * value, value, True)


def live_keys(spec: SceneSpec) -> list[Live]:
    """Everything that may be changed in this scene, with its present value."""
    hold, solver, strongest = spec.tool.hold, spec.solver, DEVICES[spec.device.model].max_force
    keys = [Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default)]
    keys += [
        Live(f"friction.pairs.{i}.mu", "friction", " - ".join(pair.bodies), "", 0.0, 2.0, pair.mu)
        for i, pair in enumerate(spec.friction.pairs)
    ]
    if hold.mode == "coupling":
        keys += [
            _around("tool.hold.stiffness", "coupling", "stiffness", "N/m", hold.stiffness),
            Live(
                "tool.hold.damping",
                "coupling",
                "damping",
                "N s/m",
                0.0,
                max(10.0, 4 * hold.damping),
                hold.damping,
            ),
        ]
        if hold.orientation:
            stiff, damped = hold.rotational_stiffness, hold.rotational_damping
            turning = "tool.hold.rotational_"
            keys += [
                _around(f"{turning}stiffness", "coupling", "turning", "N m/rad", stiff),
                Live(f"{turning}damping", "coupling", "turning damping", "N m s/rad", 0.0,
                     max(0.1, 4 * damped), damped),
            ]  # fmt: skip
    names = get_args(Solver.model_fields["name"].annotation)
    felt, strength = spec.workspace.force_scale, spec.safety.max_force
    return [
        *keys,
        Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name, choices=names),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.sweeps_high", "solver", "sweeps, servo", "", 1, 1000, solver.sweeps_high, True),
        Live("solver.sweeps_low", "solver", "sweeps, slow loop", "", 1, 10000, solver.sweeps_low, True),
        Live("workspace.force_scale", "hand", "force scale", "", 0.01, 10.0,
             spec.workspace.scale if felt is None else felt, True),
        Live("safety.max_force", "hand", "largest force", "N", 0.1, strongest, strength or strongest),
        Live("gravity.1", "world", "gravity", "m/s2", -30.0, 30.0, spec.gravity[1], help="along y, up"),
    ]  # fmt: skip


def change_text(spec: SceneSpec, key: str, value: object) -> str:
    """The change "key=value" as `--set` reads it; counts are rounded."""
    if key == "gravity.1":
        # a list that the file leaves out has no items to change one by one
        return f"gravity=[{spec.gravity[0]!r}, {value!r}, {spec.gravity[2]!r}]"
    if key.startswith("solver.sweeps") and isinstance(value, float):
        return f"{key}={max(1, round(value))}"
    return f"{key}={value}" if isinstance(value, str) else f"{key}={value!r}"


def changed(spec: SceneSpec, text: str) -> SceneSpec:
    """The scene after a change; raises ConfigError for a key that is not live, or a value that is refused."""
    key = text.partition("=")[0].strip()
    known = [live.key for live in live_keys(spec)]
    if key not in known and key != "gravity":
        raise ConfigError(f"{text}: cannot be changed while it runs; what can be is {', '.join(known)}")
    origin = spec.origin
    # it replaces an earlier change of the same key, or an hour of dragging would be read again each time
    kept = [o for o in origin.overrides if o.partition("=")[0].strip() != key]
    return parse_scene(origin.text, origin.path, (*kept, text))


def device_values(spec: SceneSpec) -> tuple[float, float]:
    """Force scale and largest force [N] for `Port.live`; NaN where the scene leaves them to the servo."""
    scale, largest = spec.workspace.force_scale, spec.safety.max_force
    return (math.nan if scale is None else scale, math.nan if largest is None else largest)
