"""The multi-rate system: bodies of which the tool moves at the servo's rate, the others at their own."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from palpo.app.runtime.live import Live, hand_keys, hold_keys
from palpo.app.systems.system import ENGINE, PHYSICS, YIELDS, System
from palpo.config.schema.body import Plane
from palpo.config.schema.scene import SceneSpec

if TYPE_CHECKING:
    from palpo.app.runtime.rigs import Rig, Start
    from palpo.app.visual.picture import Shapes


class Multirate(System):
    """See System."""

    scene = SceneSpec
    heading = "A stiff tool on soft bodies"
    interfaces = ("krylov", "paper", "extrapolated", "monolithic")
    kinds = (f"{YIELDS}.chain", f"{YIELDS}.modal")
    ticks = (f"{ENGINE}.servo", f"{PHYSICS}.multirate.high_rate")
    beside = (f"{ENGINE}.pairs",)

    rehearsed = ("beams", "mixed-press", "mixed-snap", "organ")
    first = "wire"

    def make_rig(self, spec: SceneSpec, start: Start) -> Rig:
        """See System."""
        from palpo.app.systems.multirate.rig import MultirateRig

        with start.progress.stage("building the scene"):
            return MultirateRig(spec, start)

    def live_keys(self, spec: SceneSpec) -> list[Live]:
        """See System."""
        solver = spec.solver
        return [
            Live("friction.default", "friction", "friction", "", 0.0, 2.0, spec.friction.default),
            *(
                Live(f"friction.pairs.{i}.mu", "friction", " - ".join(pair.bodies), "", 0.0, 2.0, pair.mu)
                for i, pair in enumerate(spec.friction.pairs)
            ),
            *hold_keys("tool.hold", spec.tool.hold),
            Live("solver.tolerance", "solver", "tolerance", "", 1e-12, 1e-1, solver.tolerance, True),
            Live("solver.sweeps_high", "solver", "sweeps, servo", "", 1, 1000, solver.sweeps_high, True),
            Live("solver.sweeps_low", "solver", "sweeps, slow loop", "", 1, 10000, solver.sweeps_low, True),
            *hand_keys(spec),
            Live("gravity.1", "world", "gravity", "m/s2", -30.0, 30.0, spec.gravity[1], help="along y, up"),
        ]

    def held_name(self, spec: SceneSpec) -> str:
        """See System."""
        return spec.tool.body

    def starts_anywhere(self) -> bool:
        """See System."""
        return True

    def add_shapes(self, spec: SceneSpec, shapes: Shapes) -> None:
        """See System."""
        from palpo.app.build.shapes import add_body
        from palpo.app.visual.solids import plate

        for body in spec.bodies:
            if not isinstance(body, Plane):
                add_body(shapes, body)
        solid = np.vstack([*shapes.points, np.array([p[1:] for p in spec.device.path])])
        for body in spec.bodies:
            if isinstance(body, Plane):
                shapes.add(body.name, plate(body, solid), kind="plane", colour=body.colour, static=True)

    def rehearse(self, scenes: Iterable[str]) -> None:
        """Three slow periods; the bodies by themselves first, while another process compiles their kinds."""
        from palpo.app.systems.multirate.build import build_scene
        from palpo.app.systems.multirate.rehearsal import REHEARSED, SHARED, rehearse
        from palpo.config.load import load_scene
        from palpo.physics.bodies.soft import SoftBody
        from palpo.physics.reduction.reductions import make_reduction

        scene = build_scene(load_scene(REHEARSED, (SHARED,)))
        dt, low_dt = scene.numbers.dt, scene.numbers.low_dt
        with ThreadPoolExecutor(1) as pool:
            for member in scene.members:
                if isinstance(member.body, SoftBody):
                    make_reduction(member.body, [dt, low_dt], [1], 3).prepare(np.zeros(1, np.intp), pool)
                    slots = np.zeros(1, np.int32)
                    member.body.substeps(member.body.factor_of(dt), dt, np.zeros((1, 1, 3)), slots)

        rehearse(REHEARSED, (SHARED,))
        super().rehearse(scenes)

    def rehearse_parts(self) -> None:
        """See System."""
        from palpo.app.systems.multirate.parts_rehearsal import rehearse_parts

        rehearse_parts()

    def rehearse_beside(self) -> None:
        """Bodies between which air is shut in, and what few scenes have."""
        from palpo.app.systems.multirate.rehearsal import BESIDE, rehearse, rehearse_air

        rehearse_air()
        for scene in BESIDE:
            rehearse(scene)


SYSTEM = Multirate()
