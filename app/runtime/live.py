"""What an operator may change while a scene runs, in the scene's own keys.

A change is the text "key=value" of `--set`: it passes the same validation, takes effect at the next low step,
and a recording keeps it with that step's number, so that a replay can make it again. A quantity that the hand
feels goes over to its new value in even steps, one a low step, each of them such a change.
"""

import math
from dataclasses import dataclass
from typing import Any, get_args

from palpo.app.build.snap_connector import gains_of
from palpo.config.load import ConfigError, parse_scene
from palpo.config.schema.hapco import HapcoScene, HapcoSolver
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.snap import SnapScene, SnapSolver
from palpo.config.schema.solver import Solver
from palpo.config.schema.suction import ActiveGas, HandDrive, PassiveGas, SuctionScene
from palpo.config.schema.tool import Grip
from palpo.haptics.device import DEVICES

SLEW = 0.1
"""Seconds, at least, in which a quantity that the hand feels goes over to another value."""
RHO = tuple(f"{10.0**k:g}" for k in range(8))
"""Values of rho to choose from [N/m]."""


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


def live_keys(spec: BaseScene) -> list[Live]:
    """Everything that may be changed in this scene, with its present value."""
    if isinstance(spec, HapcoScene):
        return _hapco_keys(spec)
    if isinstance(spec, SnapScene):
        return _snap_keys(spec)
    if isinstance(spec, SuctionScene):
        return _suction_keys(spec)
    assert isinstance(spec, SceneSpec)
    solver = spec.solver
    names = get_args(Solver.model_fields["name"].annotation)
    return [
        Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
        *(
            Live(f"friction.pairs.{i}.mu", "friction", " - ".join(pair.bodies), "", 0.0, 2.0, pair.mu)
            for i, pair in enumerate(spec.friction.pairs)
        ),
        *_hold_keys("tool.hold", spec.tool.hold),
        Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name, choices=names),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.sweeps_high", "solver", "sweeps, servo", "", 1, 1000, solver.sweeps_high, True),
        Live("solver.sweeps_low", "solver", "sweeps, slow loop", "", 1, 10000, solver.sweeps_low, True),
        *_hand_keys(spec),
        Live("gravity.1", "world", "gravity", "m/s2", -30.0, 30.0, spec.gravity[1], help="along y, up"),
    ]


def _hapco_keys(spec: HapcoScene) -> list[Live]:
    """The parameters of the thesis's interface (N. Talbi, section 4.4.2) that the servo knows."""
    solver, stylus, zoom, tolerance = spec.solver, spec.stylus, spec.zoom, spec.contact.tolerance
    return [
        Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
        *(
            _around(f"{key}.material.youngs_modulus", "material", f"E of {body.name}", "Pa",
                    body.material.youngs_modulus)
            for key, body in (("mobile", spec.mobile), ("fixed", spec.fixed))
            if body.material is not None
        ),
        Live("contact.tolerance", "contact", "tolerance", "m", 0.0, max(0.01, 2 * tolerance), tolerance,
             help="gap below which a vertex is a contact"),
        *_hold_keys("hold", spec.hold),
        *_solver_keys(solver),
        Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
        Live("solver.time_cap", "solver", "most time", "s", 0.0, max(0.005, solver.time_cap), solver.time_cap,
             help="0 is no limit"),
        *_hand_keys(spec),
        Live("stylus.weight", "hand", "stylus weight", "N", 0.0, max(1.0, 2 * stylus.weight), stylus.weight,
             help="force upward that makes up for it"),
        Live("stylus.friction", "hand", "stylus friction", "N", 0.0, max(0.5, 2 * stylus.friction),
             stylus.friction, help="force along the motion that makes up for it"),
        Live("zoom.scale", "zoom", "motion at contact", "", 0.01, 1.0, zoom.scale, True),
        Live("zoom.range", "zoom", "begins at", "m", 0.0, max(0.02, 2 * zoom.range), zoom.range),
    ]  # fmt: skip


def _snap_keys(spec: SnapScene) -> list[Live]:
    """Friction and contact law, the gains of the admittance, and the solver."""
    contact, solver = spec.contact, spec.solver
    mass, damping, stiffness = gains_of(spec)
    return [
        Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
        Live("contact.restitution", "contact", "restitution", "", 0.0, 1.0, contact.restitution,
             help="below 1, contacts that ring feed energy in"),
        Live("contact.correction", "contact", "correction", "", 0.0, 1.0, contact.correction,
             help="share of a penetration that is taken away within a step"),
        Live("contact.clusters", "contact", "contacts of a prong", "", 0, 32, contact.clusters,
             help="at most, by k-means; 0: every point that touches"),
        Live("admittance.stiffness", "admittance", "stiffness K_ad", "N/m", 0.01 * stiffness,
             10.0 * stiffness, stiffness, True, help="mass and damping follow where the scene gives none"),
        Live("admittance.damping", "admittance", "damping D_ad", "N s/m", 0.0, 4.0 * damping + 1.0, damping),
        _around("admittance.mass", "admittance", "mass M_ad", "kg", mass),
        Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name,
             choices=get_args(SnapSolver.model_fields["name"].annotation)),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
        *_hand_keys(spec),
    ]  # fmt: skip


def _suction_keys(spec: SuctionScene) -> list[Live]:
    """Friction, air, solver, and the hold of a cup that the hand holds."""
    gas, solver, kpa = spec.gas, spec.solver, 1e3
    air: list[Live] = []
    if isinstance(gas, PassiveGas):
        lower, upper = gas.atmosphere + 1.0, max(gas.atmosphere + 20 * kpa, 2 * gas.max_pressure)
        air = [
            Live("gas.max_pressure", "air", "P_max", "Pa", lower, upper, gas.max_pressure, True,
                 help="at which air lifts the rim"),
            Live("gas.leak", "air", "slot under the rim", "m", 0.0, max(2e-5, 2 * gas.leak), gas.leak),
        ]  # fmt: skip
    elif isinstance(gas, ActiveGas) and not gas.table:
        air = [
            Live("gas.gauge", "air", "pump", "Pa", min(-20 * kpa, gas.gauge), max(kpa, gas.gauge), gas.gauge,
                 help="pressure against the atmosphere"),
        ]  # fmt: skip
    held = [(cup.name, cup.drive) for cup in spec.cups if isinstance(cup.drive, HandDrive)]
    return [
        Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
        *air,
        *(key for name, drive in held for key in _hold_keys(f"cups.{name}.drive", drive)),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
        *_hand_keys(spec),
        Live("gravity.1", "world", "gravity", "m/s2", -30.0, 30.0, spec.gravity[1], help="along y, up"),
    ]


def _solver_keys(solver: HapcoSolver) -> list[Live]:
    """Method and stops; rho is chosen by its power of ten, and the factor is what lies between."""
    rho = solver.rho if isinstance(solver.rho, str) else f"{solver.rho:g}"
    choices = ("computed", *RHO) if rho in RHO or rho == "computed" else ("computed", rho, *RHO)
    return [
        Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name, choices=_literals("name")),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.rho", "solver", "rho_min, N/m", "", 0.0, 0.0, rho, choices=choices,
             help="of Uzawa's method: computed from W, or imposed"),
        Live("solver.rho_factor", "solver", "times", "", 0.01, max(100.0, solver.rho_factor),
             solver.rho_factor, True, help="multiplies rho_min"),
        Live("solver.error_kind", "solver", "Uzawa stops by", "", 0.0, 0.0, solver.error_kind,
             choices=_literals("error_kind"),
             help="residual: the tolerance; relative and physical: the Gauss-Seidel error"),
        Live("solver.gauss_seidel_error", "solver", "Gauss-Seidel error", "", 1e-12, 0.5,
             solver.gauss_seidel_error, True),
        Live("solver.uzawa_error", "solver", "Uzawa error", "", 1e-12, 0.5, solver.uzawa_error, True,
             help="at each contact, of uzawa-local"),
    ]  # fmt: skip


def _literals(key: str) -> tuple[str, ...]:
    return get_args(HapcoSolver.model_fields[key].annotation)


def _hold_keys(key: str, hold: Grip) -> list[Live]:
    """Springs and dampers of a coupling; a pose that is imposed has none."""
    if hold.mode != "coupling":
        return []
    keys = [
        _around(f"{key}.stiffness", "coupling", "stiffness", "N/m", hold.stiffness),
        Live(
            f"{key}.damping", "coupling", "damping", "N s/m", 0.0, max(10.0, 4 * hold.damping), hold.damping
        ),
    ]
    if hold.orientation:
        stiff, damped = hold.rotational_stiffness, hold.rotational_damping
        keys += [
            _around(f"{key}.rotational_stiffness", "coupling", "turning", "N m/rad", stiff),
            Live(f"{key}.rotational_damping", "coupling", "turning damping", "N m s/rad", 0.0,
                 max(0.1, 4 * damped), damped),
        ]  # fmt: skip
    return keys


def _hand_keys(spec: BaseScene) -> list[Live]:
    """What reaches the hand: a share of the scene's force, and at most so much."""
    strongest, felt = DEVICES[spec.device.model].max_force, spec.workspace.force_scale
    felt = spec.workspace.scale if felt is None else felt
    return [
        Live("workspace.force_scale", "hand", "force scale", "", min(0.01, 0.01 * felt), max(10.0, felt),
             felt, True),
        Live("safety.max_force", "hand", "largest force", "N", 0.1, strongest,
             spec.safety.max_force or strongest),
    ]  # fmt: skip


def way_to(spec: BaseScene, text: str, steps: int) -> list[str]:
    """The changes that lead in even steps to that of `text`, which is the last of them.

    Solvers, counts and what the servo itself lays out in time (force scale, largest force) change at once.
    """
    key = text.partition("=")[0].strip()
    name = "gravity.1" if key == "gravity" else key
    now, goal = (
        next((live for live in live_keys(scene) if live.key == name), None)
        for scene in (spec, changed(spec, text))
    )
    if now is None or goal is None or key in _AT_ONCE or now.group == "solver":
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
    key = text.partition("=")[0].strip()
    if key.endswith(".poisson_ratio"):
        raise ConfigError(f"{text}: it is part of K^-1; give it with --set when the scene begins")
    known = [live.key for live in live_keys(spec)]
    if key not in known and key != "gravity":
        raise ConfigError(f"{text}: cannot be changed while it runs; what can be is {', '.join(known)}")
    origin = spec.origin
    # it replaces an earlier change of the same key, or an hour of dragging would be read again each time
    kept = [o for o in origin.overrides if o.partition("=")[0].strip() != key]
    return parse_scene(origin.text, origin.path, (*kept, text))


def device_values(spec: BaseScene) -> tuple[float, float]:
    """Force scale and largest force [N] for `Port.live`; NaN where the scene leaves them to the servo."""
    scale, largest = spec.workspace.force_scale, spec.safety.max_force
    return (math.nan if scale is None else scale, math.nan if largest is None else largest)
