"""A scene ready to run: its physics at rest, the exchange, and the servo on its device."""

import numpy as np
from numpy.typing import NDArray

from app.build import change_scene
from app.progress import Progress
from config.schema.scene import SceneSpec
from haptics.device import VirtualDevice
from haptics.limits import LimitParams
from haptics.servo import Servo, compile_servo, make_servo, servo_run
from haptics.workspace import Workspace
from physics.systems.callback import high_rate_tick, tick_data
from physics.systems.lock_step import LockStep
from physics.systems.low_rate import LowRate
from physics.systems.scene import Scene

KINDS = ("krylov", "paper", "extrapolated", "monolithic")
WARM_PERIODS = 3
"""Low periods that call every compiled function at least once."""


class Rig:
    """One scene for one run. The same object is driven in lock-step or by threads."""

    def __init__(
        self,
        spec: SceneSpec,
        scene: Scene,
        kind: str,
        device: VirtualDevice,
        workspace: Workspace,
        limits: LimitParams,
        threads: bool,
        start_at: NDArray[np.float64] | None = None,
    ) -> None:
        """start_at (3,) [m]: where the device's first position lies in the scene, wherever the hand is."""
        self.spec, self.scene, self.kind = spec, scene, kind
        self.lock = LockStep(self.scene, kind, spec.interface.latency)
        self.high = self.lock.high
        self.low: LowRate = self.lock.low
        self.low.lock_step = not threads
        self._data = tick_data(self.high)
        self.servo: Servo = make_servo(
            high_rate_tick.address, self._data.address, self.high.port, device, limits, workspace,
            rate_hz=spec.rates.servo_hz, start_at=start_at,
        )  # fmt: skip

    def change(self, spec: SceneSpec) -> None:
        """Bring what may change while it runs to the values of `spec`; only between two low steps."""
        self.spec = spec
        change_scene(self.scene, spec)

    def warm_up(self, progress: Progress) -> None:
        """Compile everything, or load it from the cache, by running a little; the rig is spent."""
        with progress.stage("compiling the servo, or loading it"):
            compile_servo(self.servo)
        with progress.stage("compiling the slow loop, or loading it"):
            self.lock.advance(WARM_PERIODS * self.scene.numbers.ratio, lambda n: servo_run(self.servo, n))
        self.low.close()
