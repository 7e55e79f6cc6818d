"""What a measured insertion tells of a connector: modulus, friction, and how far the base gave way."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from palpo.app.cli.design import scene_of
from palpo.app.cli.progress import Progress
from palpo.app.systems.snap.build import field_of, numerics_of
from palpo.app.systems.snap.connector import connector_of
from palpo.config.schema.connector import FilesConnector
from palpo.config.words import Refusal
from palpo.physics.systems.snap.identification import Constant, Constants, Curve, beside, insertion_constants
from palpo.physics.systems.snap.travel import push_in

TRAVEL, TIME, FORCE = "travel_m", "time_s", "force_N"


@dataclass(frozen=True)
class Identified:
    """What was found."""

    modulus: Constant
    """Young's modulus [Pa]."""
    found: Constants
    meshes: int
    """With which it was found: the errors of one are those of the measurement alone."""


def identify(
    scene: str,
    overrides: Sequence[str],
    path: Path,
    speed: float | None,
    other: str | None,
    progress: Progress,
) -> Identified:
    """Constants of a scene's connector from a measured insertion, on its mesh and another.

    speed [m/s]: of a file that has times. other: a scene of the same connector on a coarser or finer mesh; a
    generator has one. Raises Refusal and InputError.
    """
    measured = measured_curve(path, speed)
    own = scene_of(scene, overrides).connector
    found = _found(scene, overrides, measured, "", progress)
    if other is not None:
        found = beside(found, _found(other, overrides, measured, ", other mesh", progress))
    elif not isinstance(own, FilesConnector):
        mesh = "fine" if own.mesh == "coarse" else "coarse"
        again = _found(scene, (*overrides, f'connector.mesh="{mesh}"'), measured, f", {mesh} mesh", progress)
        fine, coarse = (found, again) if own.mesh == "fine" else (again, found)
        found = beside(fine, coarse)
    meshes = 1 if other is None and isinstance(own, FilesConnector) else 2
    modulus = connector_of(scene_of(scene, overrides)).material.youngs_modulus
    share = found.stiffness
    return Identified(Constant(modulus * share.value, modulus * share.error, share.told), found, meshes)


def _found(scene: str, overrides: Sequence[str], measured: Curve, name: str, progress: Progress) -> Constants:
    spec = scene_of(scene, overrides)
    with progress.stage(f"meshes, distance{name}"):
        connector = connector_of(spec, progress)
        numerics, field = numerics_of(spec), field_of(spec, connector)

    def model(friction: float) -> Curve:
        with progress.stage(f"pushed in with friction {friction:.3g}{name}"):
            return push_in(connector, replace(numerics, friction=friction), field)

    return insertion_constants(measured, model)


def measured_curve(path: Path, speed: float | None) -> Curve:
    """Travel [m] and force [N] of a CSV file: columns travel_m, or time_s at a speed [m/s], and force_N.

    Lines that begin with # are passed over. Raises Refusal for a file that is none of these.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"--measured {path}: {error}") from error
    names = set(rows[0]) if rows else set()
    along = TRAVEL if TRAVEL in names or speed is None else TIME
    missing = [name for name in (along, FORCE) if name not in names]
    if missing:
        hint = f"; with --speed, {TIME} will do" if along == TRAVEL and TIME in names else ""
        raise Refusal(f"--measured {path}: no column {' and none '.join(missing)}{hint}")
    try:
        values = np.array([[float(row[along]), float(row[FORCE])] for row in rows])
    except (TypeError, ValueError) as error:
        raise Refusal(f"--measured {path}: {error}") from error
    if along == TIME:
        if speed is None or not speed > 0.0:
            raise Refusal(f"--speed {speed}: give a positive speed [m/s]")
        values[:, 0] *= speed
    return values[:, 0], values[:, 1]


def print_identified(told: Identified) -> None:
    """A line for each constant."""
    found = told.found
    table = Table("constant", "found", "standard error")
    for name, one, unit, scale in (
        ("Young's modulus", told.modulus, "MPa", 1e-6),
        ("friction", found.friction, "", 1.0),
        ("compliance of base and sensor", found.compliance, "mm/kN", 1e6),
        ("travel where the scene's is zero", found.offset, "mm", 1e3),
    ):
        value = f"{scale * one.value:.4g} {unit}".strip() if one.told else "cannot be found from these data"
        table.add_row(name, value, f"{scale * one.error:.2g}" if one.told else "")
    console = Console(highlight=False)
    console.print(table)
    phases = {"click": found.clicked, "sliding": found.slid, "pushing on": found.pushed}
    lacking = [name for name, has in phases.items() if not has]
    console.print(
        f"{found.n} measurements on the ramp; the fit leaves {found.residual:.3g} N RMS there, alike at "
        f"neighbours by {found.alike:.2f}: 0 is noise alone, near 1 the model is another part"
    )
    if lacking:
        console.print(f"the measurement has no {', no '.join(lacking)}, which tell modulus from friction")
    if told.meshes == 1:
        console.print("errors of the mesh are not included; --beside SCENE estimates them")
