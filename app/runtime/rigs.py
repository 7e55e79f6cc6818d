"""What a run asks of a system: the seam between the loops and what they simulate.

A rig is one scene ready for one run: a servo with the system's tick, its slow loops, and what there is to
see. Whoever drives it (`app.runtime.session`, `app.runtime.replay`) knows no bodies, no frames and no solver.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.progress import Progress, Silent
from palpo.app.runtime.live import device_values
from palpo.app.systems.system import NO_INTERFACE
from palpo.app.visual.picture import Picture
from palpo.haptics.device import VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import compile_servo, servo_run
from palpo.haptics.limits import LimitParams
from palpo.haptics.servo import Servo, make_servo
from palpo.haptics.workspace import Workspace
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.engine.lock_step import LockedLoops
from palpo.physics.engine.slow_loop import SlowLoop
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import Port
from palpo.physics.fem.element import Elements
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.fem.material import Material
from palpo.physics.numerics.errors import InputError

WARM_PERIODS = 3
"""Slow periods that call every compiled function at least once."""

LIMITS_MET = {"not converged": "sweep_caps", "out of time": "time_caps", "solves diverged": "divergences"}
"""Counters of a solver, by what they are called where they are shown."""

DeviceAt = Callable[[NDArray[np.float64]], VirtualDevice]
"""The device of a run, given where the tool's held point is at rest (3,) [m]."""


class Further(NamedTuple):
    """The device of a hand after the first, as a rig takes it."""

    at: DeviceAt
    spec: DeviceSpec | None = None
    """Its figures; None are those of the scene's model."""
    rebased: bool = False
    """Whether its first position is taken as the tool's, wherever the hand is."""


class Start(NamedTuple):
    """What a rig of a scene is made with."""

    device_at: DeviceAt
    workspace: Workspace
    limits: LimitParams
    kind: str = NO_INTERFACE
    """Of the interface between two rates, where there is one."""
    threads: bool = False
    """Whether its loops will run in threads, and not in lock-step."""
    rebased: bool = False
    """Whether the device's first position is taken as the held point's, wherever the hand is."""
    progress: Progress = Silent()
    further: Sequence[Further] = ()
    """The devices of the hands after the first."""


class Curves(NamedTuple):
    """Quantities of one unit over time."""

    title: str
    unit: str
    seconds: NDArray[np.float64]
    """Ascending, shape (n,)."""
    series: Mapping[str, NDArray[np.float64]]
    """By name, shape (n,) each."""


class Solid(NamedTuple):
    """A body of elements: its mesh is where it is at rest."""

    mesh: SolidMesh
    elements: Elements
    material: Material
    x: NDArray[np.float64] | None = None
    """Where its nodes are now (n, 3) [m]; None where the picture's vertices are its nodes."""
    drawn: NDArray[np.int32] | None = None
    """Node of each vertex of the picture; None where they are the same."""


class CavityReading(NamedTuple):
    """A cavity between bodies."""

    pressure: float
    """Of its air, above the atmosphere's [Pa]."""
    volume: float
    """[m3]"""
    amount: float
    """Of its air [mol]."""
    vertices: Mapping[str, NDArray[np.int64]]
    """Of the picture, that are on its walls, by body."""


class NeedleReading(NamedTuple):
    """A needle that may go into a body."""

    needle: str
    tissue: str
    depth: float
    """Length of its channel [m], 0 while it is outside."""
    inside: float
    """Length of the shaft that is in the channel [m]."""
    path: NDArray[np.float64]
    """Points of the channel, the first where it went in, (n, 3) [m]."""
    ahead: NDArray[np.float64]
    """Where it points at rest, (3,)."""


class Rig(ABC):
    """One scene for one run: without an interface, all at the servo's rate, unless a system says more.

    The same object is driven in lock-step or by threads.
    """

    spec: Any
    kind = NO_INTERFACE
    servo: Servo
    dt: float
    """Servo period [s]."""
    held: NDArray[np.float64]
    """The tool's held point at rest [m], shape (3,)."""
    lock: LockedLoops
    """The driver without a clock, and the slow loops."""
    threads: bool
    """Whether its loops run in threads, and not in lock-step."""

    def serve(self, start: Start, tick: int, data: Handle, port: Port, led: Sequence[Servo] = ()) -> None:
        """Put the servo on its device; tick: address of what it calls with `data`; led: further servos."""
        self.threads, self.data = start.threads, data
        self.servo = make_servo(
            tick, data.address, port, start.device_at(self.held), start.limits, start.workspace,
            rate_hz=self.spec.rates.servo_hz, start_at=self.held if start.rebased else None, led=led,
        )  # fmt: skip

    @property
    def lows(self) -> Sequence[SlowLoop]:
        """The slow loops, the quickest first; most systems have one."""
        return self.lock.lows

    @property
    def low(self) -> SlowLoop:
        """The first slow loop, which leads the others."""
        return self.lock.lows[0]

    @property
    def ratio(self) -> int:
        """Servo ticks in a slow period of the scene's own rate."""
        return self.low.ratio

    @property
    @abstractmethod
    def visual(self) -> Picture:
        """What there is to see; always the same."""

    @property
    def latency(self) -> str:
        """How old a frame is when it is first felt, in words."""
        return "none: the servo computes everything"

    @property
    def waited(self) -> int:
        """Ticks in which the simulation paused for an overdue frame."""
        ticks = self.low.ticks[0]
        return int(ticks["calls"] - ticks["done"])

    @property
    def behind(self) -> int:
        """Ticks by which a scene that no hand leads is behind the servo: a run lasts as much longer."""
        return 0

    @property
    @abstractmethod
    def turn(self) -> NDArray[np.float64]:
        """Orientation of what the hand holds (w, x, y, z), shape (4,)."""

    def masses(self) -> dict[str, float]:
        """Mass of each moving body [kg]."""
        return {}

    def solids(self) -> dict[str, Solid]:
        """The bodies of elements whose inside is known, by name."""
        return {}

    def needles(self) -> list[NeedleReading]:
        """The needles that may go into bodies, as the scene has them."""
        return []

    def cavities(self) -> list[CavityReading]:
        """The cavities between bodies, by age."""
        return []

    @property
    def mesh_errors(self) -> list[str]:
        """By how much meshes err under the tools, a sentence a body, as far as an estimate can tell."""
        return []

    @property
    def doing(self) -> str:
        """What is being made in the background for a change, in words; empty where nothing is."""
        return ""

    def ready(self, spec: Any) -> bool:
        """Whether `change` to `spec` would take no longer than a slow step may; what it lacks is begun."""
        return True

    def change(self, spec: Any) -> None:
        """Bring what may change while it runs to the values of `spec`; only between two slow steps."""
        self.spec, self.low.live = spec, device_values(spec)

    def go_over(self, seconds: float) -> None:  # noqa: B027
        """Before each slow step, of so long: values that the rig itself brings to new ones in even steps."""

    def warm_up(self, progress: Progress) -> None:
        """Compile everything, or load it from the cache, by running a little; only to be measured then, and
        its slow loop closed."""
        with progress.stage("compiling the servo, or loading it"):
            compile_servo(self.servo)
        with progress.stage("compiling the slow loop, or loading it"):
            self.lock.advance(
                WARM_PERIODS * max(low.ratio for low in self.lows), lambda n: servo_run(self.servo, n)
            )
            drain_rows(self.servo)

    def repeat(self, sweeps: NDArray[np.int64], flags: NDArray[np.int64]) -> None:
        """Make again as many ticks of a run in threads as there are in its columns `sweeps`, `tick_flags`."""
        servo_run(self.servo, len(flags))

    def problem(self) -> ContactProblem:
        """The last tick's contact problem; InputError where there is none, or none that can be told."""
        raise no_contact()

    def counts(self) -> dict[str, int]:
        """How often the servo's solver came to one of its limits, by name, where the readings show it not."""
        return {}

    def warnings(self, result: Mapping[str, Any]) -> list[str]:
        """Sentences on what went less than well in the system."""
        return []

    def findings(self, columns: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """What the run found out about its scene, from the servo's columns: numbers and flags by name.

        They are the result's `system`, and columns of the table of a sweep.
        """
        return {}

    def curves(self) -> list[Curves]:
        """What there is to plot of the system over the last seconds, beside the hand's force."""
        return []


def limits_met(engine: Any, *names: str) -> dict[str, int]:
    """How often an engine's solver came to these of its `LIMITS_MET`."""
    told = engine.solver.told[0]
    return {name: int(told[LIMITS_MET[name]]) for name in names}


def no_contact(span: str = "tick") -> InputError:
    """What `Rig.problem` raises where the last tick, or step, had no contact."""
    return InputError(f"nothing is in contact in this {span}, so that it has no contact problem")
