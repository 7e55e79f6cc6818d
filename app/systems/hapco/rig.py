"""HapCo ready to run: everything is computed by the servo, so that the slow loop only carries settings and
pictures; or, in a scene of two loops, it finds the contacts (palpo.physics.systems.hapco.two_rates).

What there is to see of a HapCo scene: both deformed surfaces, and the contacts between them.

The servo computes the boundary only, so that there is no strain of the elements to colour the bodies by.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.shapes import look_of
from palpo.app.runtime.rigs import LIMITS_MET, Rig, Start, limits_met, no_contact
from palpo.app.runtime.tick_clock import ENDLESS, READINGS, counted_clock, machine_clock
from palpo.app.systems.hapco.build import build_bodies, detection_of, hold_of, ratios_of, settings_of
from palpo.app.systems.hapco.renewal import RatioRenewal
from palpo.app.visual.picture import ServoPicture, Shapes
from palpo.config.schema.hapco import HapcoScene
from palpo.haptics.drivers import servo_run
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.servo import TickState, servo_tick, tick_data
from palpo.physics.engine.slow_loop import SettingsLoop
from palpo.physics.engine.solve import CHUNK
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import TIME_SPENT
from palpo.physics.exchange.snapshot import SceneState
from palpo.physics.systems.hapco.loop import ContactLoop, make_multirate
from palpo.physics.systems.hapco.servo import BodyPair, make_servo
from palpo.physics.systems.hapco.tangent import TangentServo
from palpo.physics.systems.hapco.tangent_loop import TangentLoop, make_tangent
from palpo.physics.systems.hapco.tick import QuasistaticServo, whole_matrix
from palpo.physics.systems.hapco.two_rates import MultirateServo


class HapcoVisual(ServoPicture):
    """Geometry of the two bodies, and the servo's pictures."""

    def __init__(
        self, spec: HapcoScene, bodies: tuple[QuasistaticBody, QuasistaticBody], servo: QuasistaticServo
    ) -> None:
        shapes = Shapes()
        for body, told in zip(bodies, (spec.mobile, spec.fixed), strict=True):
            nodes = body.surface_nodes
            shapes.add(
                body.name, body.positions(nodes), body.slot[body.surface.triangles], colour=told.colour,
                look=look_of(told),
                fixed=np.intersect1d(body.slot[body.clamped], np.arange(nodes.size)).astype(np.int32),
            )  # fmt: skip
        super().__init__(shapes, servo.picture, servo.picture_control, spec.rates.dt)
        self._surface = servo.surface

    def told(self, k: int, tick: int, counters: NDArray[np.int64]) -> SceneState:
        """The picture of slot k."""
        if self.picture.tick[k] >= 0:
            self.vertices[:] = self._surface[k]
        return self.contacts_and_hand(k, tick, counters)


class HapcoRig(Rig):
    """One scene for one run, a `Rig`. The same object is driven in lock-step or by threads."""

    def __init__(self, spec: HapcoScene, start: Start) -> None:
        self.spec = spec
        self.dt, ratio = spec.rates.dt, spec.rates.ratio
        self.bodies = build_bodies(spec, start.progress)
        mobile, fixed = self.bodies
        self.held: NDArray[np.float64] = mobile.centre.copy()
        self._built = mobile.material.youngs_modulus, fixed.material.youngs_modulus
        self._renewal = RatioRenewal(self.bodies, start.threads, start.progress.say)
        values = settings_of(spec, self._built)
        clock = machine_clock.address if start.threads else 0
        pair = BodyPair(
            mobile, fixed, detection_of(spec, mobile), hold_of(spec), values, self.dt, ratio, clock
        )
        self.ticks: TickState
        self.loops: MultirateServo | TangentServo | None = None
        self._loop: SettingsLoop | ContactLoop
        if spec.loops == "multirate":
            self.ticks, self.loops, self._loop = make_multirate(pair)
            self.state = self.loops.servo
        elif spec.loops == "tangent":
            self.ticks, self.loops, self._loop = make_tangent(pair)
            self.state = self.loops.servo
        else:
            self.ticks, self.state = make_servo(pair)
            state = self.state
            self._loop = SettingsLoop(
                state.frames, state.ticks, ratio, self.dt, values, self._write,
                lambda: int(state.engine.count["lost"][0]),
            )  # fmt: skip
        self.lock = LockedLoops([self._loop], "none" if self.loops is None else "period")
        self.solved = self._loop.side if isinstance(self._loop, TangentLoop) else self.state
        """Whose engine solves the contacts: the servo's, or the slow loop's where the servo follows
        tangents."""
        self.serve(start, servo_tick.address, tick_data(self.ticks), self.state.port)

    def _write(self, slot: int, values: NDArray[np.void]) -> None:
        self.state.settings[slot] = values[0]

    @cached_property
    def visual(self) -> HapcoVisual:
        """What there is to see."""
        return HapcoVisual(self.spec, self.bodies, self.state)

    @property
    def latency(self) -> str:
        """How old a frame is when it is first felt, in words."""
        if self.loops is None:
            return "none: the servo computes everything"
        return "one slow step" if self.threads else "one period of the slow loop"

    @property
    def turn(self) -> NDArray[np.float64]:
        """Orientation of what the hand holds (w, x, y, z), shape (4,)."""
        return self.state.mobile.frame.now.orientation

    def masses(self) -> dict[str, float]:
        """Mass of each body [kg]."""
        return {body.name: body.mass for body in self.bodies}

    @property
    def doing(self) -> str:
        """See Rig."""
        return self._renewal.words

    def ready(self, spec: HapcoScene) -> bool:
        """See Rig: a Poisson's ratio of which there is no K^-1 yet is waited for."""
        return self._renewal.ready(ratios_of(spec))

    def change(self, spec: HapcoScene) -> None:
        """See Rig."""
        super().change(spec)
        self._renewal.take(ratios_of(spec))
        self._loop.values = settings_of(spec, self._built)
        self._loop.values["renewed"] = self._renewal.shares

    def go_over(self, seconds: float) -> None:
        """See Rig: Poisson's ratios."""
        self._renewal.go_over(seconds)
        self._loop.values["renewed"] = self._renewal.shares

    def repeat(self, sweeps: NDArray[np.int64], flags: NDArray[np.int64]) -> None:
        """Ticks of a run in threads: where the clock cut a solve short, it is cut short again."""
        clock = self.state.engine.solver.clock
        clock.address[0] = counted_clock.address
        done = 0
        for cut in np.flatnonzero(flags & TIME_SPENT):
            clock.words[READINGS] = ENDLESS
            servo_run(self.servo, int(cut) - done)
            # one reading before the first sweep, one before each chunk
            clock.words[READINGS] = 1 + -(-sweeps[cut] // CHUNK)
            servo_run(self.servo, 1)
            done = int(cut) + 1
        clock.words[READINGS] = ENDLESS
        servo_run(self.servo, len(flags) - done)

    def problem(self) -> ContactProblem:
        """The last tick's contact problem [m], [N], of all contacts found, or the slow loop's last one.

        Raises InputError if there were none.
        """
        e = self.solved.engine
        n = int(e.contacts.count[0]["found"])
        if n == 0:
            raise no_contact()
        w = np.empty((3 * n, 3 * n))
        whole_matrix(Handle(self.solved), w)
        return ContactProblem(w, e.b[: 3 * n].copy(), e.contacts.mu[:n].copy())

    def counts(self) -> dict[str, int]:
        """See Rig."""
        return limits_met(self.solved.engine, *LIMITS_MET)

    def warnings(self, result: Mapping[str, Any]) -> list[str]:
        """Sentences on dropped contacts and on solves that stopped short."""
        solver, counts, found = self.spec.solver, self.counts(), []
        if lost := int(self.solved.engine.count["lost"][0]):
            found.append(f"{lost} contacts were dropped: capacity full.")
        if counts["not converged"]:
            found.append(
                f"In {counts['not converged']} ticks {solver.sweeps} sweeps did not reach the solver's "
                f"stop; raise solver.sweeps or the error that it stops at."
            )
        if counts["out of time"]:
            found.append(
                f"In {counts['out of time']} ticks the solver's {1e3 * solver.time_cap:g} ms were over "
                f"before it reached its stop."
            )
        if counts["solves diverged"]:
            found.append(
                f"In {counts['solves diverged']} ticks the solver diverged and the last force was kept; "
                f"lower solver.rho or solver.rho_factor."
            )
        return found
