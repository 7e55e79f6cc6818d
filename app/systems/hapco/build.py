"""From a HapCo scene to its two bodies, to how they meet, and to the values that may change while it runs."""

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.parts import chosen_nodes, gains_of, key_of
from palpo.app.build.quasistatic import quasistatic_body
from palpo.app.cli.progress import Progress
from palpo.config.schema.hapco import HapcoScene
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.solvers.family import OUTER_STOPS
from palpo.physics.exchange.gains import gains_record
from palpo.physics.exchange.quasistatic_frame import (
    ANDERSON,
    GAUSS_SEIDEL,
    MAXIMAL_DISSIPATION,
    NEWTON,
    UZAWA_GLOBAL,
    UZAWA_LOCAL,
    VALUES,
)
from palpo.physics.systems.hapco.detection import Detection
from palpo.physics.systems.hapco.servo import Hold

SOLVERS = {
    "anderson": ANDERSON, "newton": NEWTON, "gauss-seidel": GAUSS_SEIDEL,
    "maximal-dissipation": MAXIMAL_DISSIPATION, "uzawa-global": UZAWA_GLOBAL, "uzawa-local": UZAWA_LOCAL,
}  # fmt: skip


def build_bodies(spec: HapcoScene, progress: Progress) -> tuple[QuasistaticBody, QuasistaticBody]:
    """The mobile and the fixed body at rest, K^-1 computed or loaded; raises InputError."""
    bodies = []
    for told in (spec.mobile, spec.fixed):
        with progress.stage(f"K^-1 of {told.name}, or loading it"):
            key = key_of(spec, "bodies", told.name, "clamped")
            bodies.append(quasistatic_body(told, key, spec.gravity, progress.come_to))
    return bodies[0], bodies[1]


def detection_of(spec: HapcoScene, mobile: QuasistaticBody) -> Detection:
    """How contacts are found; InputError for a region without a boundary node."""
    vertices = None
    if spec.mobile.contact:
        key = key_of(spec, "bodies", spec.mobile.name, "contact")
        chosen = chosen_nodes(key, spec.mobile.name, spec.mobile.contact, mobile.mesh.nodes, "chooses")
        vertices = np.intersect1d(chosen, mobile.surface_nodes)
    contact = spec.contact
    return Detection(vertices, contact.tolerance, contact.edges, contact.normals, contact.crease)


def hold_of(spec: HapcoScene) -> Hold:
    """How the hand holds the mobile body."""
    hold = spec.hold
    return Hold(hold.mode == "direct", hold.orientation, gains_of(hold))


def ratios_of(spec: HapcoScene) -> list[float | None]:
    """Poisson's ratio of the mobile and of the fixed body; None for one from a file."""
    materials = spec.mobile.material, spec.fixed.material
    return [None if material is None else material.poisson_ratio for material in materials]


def settings_of(spec: HapcoScene, built: tuple[float, float]) -> NDArray[np.void]:
    """(1,) of palpo.physics.exchange.quasistatic_frame.VALUES; built: the moduli [Pa] behind K^-1."""
    values = np.zeros(1, VALUES)
    solver = spec.solver
    values["friction"] = spec.friction.default
    for name in ("tolerance", "sweeps", "time_cap", "rho_factor", "gauss_seidel_error", "uzawa_error"):
        values[name] = getattr(solver, name)
    values["solver"], values["error_kind"] = SOLVERS[solver.name], OUTER_STOPS[solver.error_kind]
    values["rho"] = 0.0 if isinstance(solver.rho, str) else solver.rho
    values["collision"] = spec.contact.tolerance
    for i, body in enumerate((spec.mobile, spec.fixed)):
        material = body.material
        values["modulus"][0, i] = 1.0 if material is None else material.youngs_modulus / built[i]
    values["hold"] = gains_record(gains_of(spec.hold))
    values["stylus_weight"], values["stylus_friction"] = spec.stylus.weight, spec.stylus.friction
    values["zoom_scale"], values["zoom_range"] = spec.zoom.scale, spec.zoom.range
    return values
