"""HapCo: two quasi-static bodies in contact, at the servo's rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from palpo.app.runtime.live import Live, around, hand_keys, hold_keys
from palpo.app.systems.system import ENGINE, PHYSICS, YIELDS, System
from palpo.config.schema.hapco import HapcoScene
from palpo.config.schema.solver import METHODS, SolverSpec

if TYPE_CHECKING:
    from palpo.app.runtime.rigs import Rig, Start
    from palpo.app.visual.picture import Shapes

RHO = tuple(f"{10.0**k:g}" for k in range(8))
"""Values of rho to choose from [N/m]."""


class Hapco(System):
    """See System."""

    scene = HapcoScene
    heading = "One body pressed on another, with friction at many contacts"
    ticks = (
        f"{YIELDS}.surface", f"{YIELDS}.followed", f"{ENGINE}.servo", f"{PHYSICS}.hapco.servo",
        f"{PHYSICS}.hapco.two_rates",
        f"{PHYSICS}.hapco.tangent",
    )  # fmt: skip
    beside = (
        "palpo.physics.collision.tracked_contacts", f"{ENGINE}.relaxing", f"{ENGINE}.stepping",
        f"{ENGINE}.sweeping", f"{ENGINE}.dissipating",
    )  # fmt: skip

    rehearsed = ("hapco-soft", "hapco-many", "hapco-thousand")

    def make_rig(self, spec: HapcoScene, start: Start) -> Rig:
        """See System."""
        from palpo.app.systems.hapco.rig import HapcoRig

        return HapcoRig(spec, start)

    def live_keys(self, spec: HapcoScene) -> list[Live]:
        """The parameters of the thesis's interface (N. Talbi, section 4.4.2) that the servo knows."""
        solver, stylus, zoom, tolerance = spec.solver, spec.stylus, spec.zoom, spec.contact.tolerance
        return [
            Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
            *(
                around(f"bodies.{body.name}.material.youngs_modulus", "material", f"E of {body.name}", "Pa",
                        body.material.youngs_modulus)
                for body in (spec.mobile, spec.fixed)
                if body.material is not None
            ),
            *(
                Live(f"bodies.{body.name}.material.poisson_ratio", "material", f"nu of {body.name}", "",
                     min(0.0, body.material.poisson_ratio), max(0.49, body.material.poisson_ratio),
                     body.material.poisson_ratio,
                     help="K^-1 is recomputed in the background, then used")
                for body in (spec.mobile, spec.fixed)
                if body.material is not None
            ),
            Live("contact.tolerance", "contact", "tolerance", "m", 0.0, max(0.01, 2 * tolerance), tolerance,
                 help="vertices closer than this are contacts"),
            *hold_keys("tool.hold", spec.hold),
            *_solver_keys(solver),
            Live("solver.sweeps", "solver", "sweeps", "", 1, 10000, solver.sweeps, True),
            Live("solver.time_cap", "solver", "most time", "s", 0.0, max(0.005, solver.time_cap),
                 solver.time_cap, help="0: no limit"),
            *hand_keys(spec),
            Live("stylus.weight", "hand", "stylus weight", "N", 0.0, max(1.0, 2 * stylus.weight),
                 stylus.weight, help="upward force that balances its weight"),
            Live("stylus.friction", "hand", "stylus friction", "N", 0.0, max(0.5, 2 * stylus.friction),
                 stylus.friction, help="force along the motion that balances friction"),
            Live("zoom.scale", "zoom", "motion at contact", "", 0.01, 1.0, zoom.scale, True),
            Live("zoom.range", "zoom", "begins at", "m", 0.0, max(0.02, 2 * zoom.range), zoom.range),
        ]  # fmt: skip

    def held_name(self, spec: HapcoScene) -> str:
        """See System."""
        return spec.mobile.name

    def add_shapes(self, spec: HapcoScene, shapes: Shapes) -> None:
        """See System."""
        from palpo.app.build.shapes import add_body

        for body in (spec.mobile, spec.fixed):
            add_body(shapes, body)


def _solver_keys(solver: SolverSpec) -> list[Live]:
    """Method and stops; rho is chosen by its power of ten, and the factor is what lies between."""
    rho = solver.rho if isinstance(solver.rho, str) else f"{solver.rho:g}"
    choices = ("computed", *RHO) if rho in RHO or rho == "computed" else ("computed", rho, *RHO)
    return [
        Live("solver.name", "solver", "solver", "", 0.0, 0.0, solver.name, choices=METHODS["hapco"]),
        Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
        Live("solver.rho", "solver", "rho_min, N/m", "", 0.0, 0.0, rho, choices=choices,
             help="of Uzawa's method: computed from W, or imposed"),
        Live("solver.rho_factor", "solver", "times", "", 0.01, max(100.0, solver.rho_factor),
             solver.rho_factor, True, help="multiplies rho_min"),
        Live("solver.error_kind", "solver", "Uzawa stops by", "", 0.0, 0.0, solver.error_kind,
             choices=get_args(SolverSpec.model_fields["error_kind"].annotation),
             help="residual: the tolerance; relative and physical: the Gauss-Seidel error"),
        Live("solver.gauss_seidel_error", "solver", "Gauss-Seidel error", "", 1e-12, 0.5,
             solver.gauss_seidel_error, True),
        Live("solver.uzawa_error", "solver", "Uzawa error", "", 1e-12, 0.5, solver.uzawa_error, True,
             help="at each contact, of uzawa-local"),
    ]  # fmt: skip


SYSTEM = Hapco()
