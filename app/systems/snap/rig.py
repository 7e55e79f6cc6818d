"""A snap scene ready to run: the servo computes everything, the slow loop carries settings and pictures."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.outcome import vectors
from palpo.app.runtime.rigs import Curves, Rig, Solid, Start, limits_met, no_contact
from palpo.app.systems.snap.build import build_model, matrices_of, settings_of
from palpo.app.systems.snap.picture import SnapVisual
from palpo.config.schema.snap import SnapScene
from palpo.haptics.flags import STOPPING
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import servo_tick, tick_data
from palpo.physics.engine.slow_loop import SettingsLoop
from palpo.physics.fem.elements import make_elements
from palpo.physics.systems.snap.click import click
from palpo.physics.systems.snap.servo import make_servo as make_snap_servo

PLOTTED = 6.0
"""Seconds of history in the plots."""

FORCE, HELD = ("force_x", "force_y", "force_z"), ("held_x", "held_y", "held_z")
"""Columns of the hold's force on the hand [N], and of the plug's position [m]."""

Values = tuple[NDArray[np.void], NDArray[np.float64]]
"""Settings and matrices of the hold, as palpo.physics.exchange.snap_frame has them."""


class SnapRig(Rig):
    """One scene for one run, a `Rig`. The same object is driven in lock-step or by threads."""

    def __init__(self, spec: SnapScene, start: Start) -> None:
        self.spec = spec
        self.dt = spec.rates.dt
        self.model = build_model(spec, start.progress)
        self.held: NDArray[np.float64] = self.model.start.copy()
        servo, self.side = make_snap_servo(
            self.model,
            spec.integration.substeps,
            spec.admittance.orientation and spec.admittance.rail is None,
            rest=spec.misalignment.quaternion,
            offset=spec.misalignment.position,
            rail=spec.admittance.rail is not None,
        )
        self._settings = SettingsLoop(
            servo.frames, servo.ticks, spec.rates.ratio, self.dt, self._values(), self._write,
            lambda: int(servo.engine.count[0]["lost"]),
        )  # fmt: skip
        self.lock = LockedLoops([self._settings], "none")
        self.serve(start, servo_tick.address, tick_data(servo), servo.port)

    def _values(self) -> Values:
        connector = self.model.connector
        return settings_of(self.spec, connector), matrices_of(self.spec, connector)

    def _write(self, slot: int, values: Values) -> None:
        self.side.settings.value[slot], self.side.settings.gains[slot] = values[0][0], values[1]

    @cached_property
    def visual(self) -> SnapVisual:
        """What there is to see."""
        return SnapVisual(self.spec, self.model, self.side)

    @property
    def turn(self) -> NDArray[np.float64]:
        """Orientation of what the hand holds (w, x, y, z), shape (4,)."""
        return self.side.snap.plug.motion.orientation

    def masses(self) -> dict[str, float]:
        """Mass of the socket, and the one that the plug is given by its hold [kg]."""
        c = self.model.connector
        volume = sum(float(prong.mesh.volumes.sum()) for prong in c.prongs)
        held = c.push @ self.side.snap.plug.model.mass[:3, :3] @ c.push
        return {"socket": c.material.density * volume, "plug": float(held)}

    def solids(self) -> dict[str, Solid]:
        """See Rig."""
        connector = self.model.connector
        names = [d.name for d in self.visual.geometry.drawables]
        return {
            name: Solid(part.mesh, make_elements(part.mesh, connector.material), connector.material)
            for name, part in zip(names, connector.prongs, strict=False)
        }

    def change(self, spec: SnapScene) -> None:
        """See Rig."""
        super().change(spec)
        self._settings.values = self._values()

    def problem(self) -> ContactProblem:
        """The last step's contact problem [m], [N]; InputError if it had no contact."""
        p = self.side.snap.engine.problem
        n = int(p.rows[1])
        if n == 0:
            raise no_contact()
        w = p.w[: n * n].reshape(n, n)
        return ContactProblem(w.copy(), p.b[:n].copy(), p.mu[: n // 3].copy())

    def counts(self) -> dict[str, int]:
        """See Rig."""
        return limits_met(self.side.snap.engine, "not converged", "solves diverged")

    def warnings(self, result: Mapping[str, Any]) -> list[str]:
        """Sentences on dropped contacts and on solves that stopped short."""
        counts, found = self.counts(), []
        lost = int(self.side.snap.engine.count[0]["lost"])
        if lost:
            found.append(f"{lost} contacts were dropped: raise contact.capacity or lower contact.clusters.")
        if counts["not converged"]:
            found.append(
                f"In {counts['not converged']} steps {self.spec.solver.sweeps} sweeps did not reach the "
                f"solver's tolerance; raise solver.sweeps or solver.tolerance."
            )
        if counts["solves diverged"]:
            found.append(f"In {counts['solves diverged']} steps the contact solver diverged.")
        return found

    def findings(self, columns: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """The click as the hand met it, in newtons of the scene, and how hard it pulled afterwards."""
        c = self.model.connector
        running = (columns["flags"].astype(np.int64) & STOPPING) == 0
        if not running.any():
            return {}
        force, held = (vectors(columns, *names)[running] @ c.push for names in (FORCE, HELD))
        time, travel = columns["time_s"][running], held - self.held @ c.push
        felt = click(time, -force, travel, c.interference)
        return {
            "click_peak_N": felt.peak,
            "click_drop_N": felt.drop,
            "click_release_s": felt.release,
            "click_travel_m": felt.travel,
            "latched": felt.latched,
            "travel_m": float(travel.max()),
            "pull_out_N": float(force[time > felt.release].max(initial=0.0)),
        }

    def curves(self) -> list[Curves]:
        """Forces along the push, and energies."""
        force, energy = self.visual.force.latest(PLOTTED), self.visual.energy.latest(PLOTTED)
        return [Curves("force along the push", "N", *force), Curves("energy", "mJ", *energy)]
