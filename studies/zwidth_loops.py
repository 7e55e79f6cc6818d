"""A hand that presses a tool on a wall, and the stiffest coupling that rests there."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from palpo.app.systems.multirate.build import build_scene
from palpo.config.load import parse_scene
from palpo.config.schema.device import HandSpec
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import HandGrip
from palpo.haptics.device_spec import DEVICES, DeviceSpec
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import make_servo
from palpo.physics.engine.servo import servo_tick, tick_data
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.studies.sampled_wall import IdealDevice, largest_stable

SCENE = """
title = "Ball on a wall"
gravity = [0, 0, 0]

[[bodies]]
name = "wall"
kind = "plane"

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = "10 mm" }
placement = { position = [0, "10.5 mm", 0] }
mass = "30 g"

[tool]
body = "ball"
"""
TOUCHING = np.array([0.0, 0.0105, 0.0])
"""The ball's centre when it just touches, its radius and the contact distance above the plane [m]."""
PERIOD = 1e-3
PRESS = 1.0
"""Force with which the stylus is pressed on the wall [N]."""
STRIKES = (0.0, 0.1, 0.3)
"""Speeds at which it meets the wall [m/s]; a light tap of a hand is the fastest."""
REST = 2.5 * DEVICES["touch"].resolution
"""Peak to peak of a stylus at rest [m]: two counts, and half a count for the rounding of their difference."""
GRID = np.geomspace(250.0, 250e3, 25)
"""Stiffnesses of the rising scan [N/m], eight a decade."""
RESOLUTION = 0.02
"""Relative width at which the bisection ends."""
HAND = HandSpec()
LET_GO, IN_THE_HAND = "let go", "in the hand"
GRIPS = {
    # let go, what presses is a spring so soft that its force is constant
    LET_GO: HandGrip(1.0, 0.0),
    "held lightly": HandGrip(100.0, 1.0),
    IN_THE_HAND: HandGrip(HAND.stiffness, HAND.damping),
}
"""Hands on the stylus, by what they are called."""
IDEAL = IdealDevice(DEVICES["touch"].mass, HAND.damping, PERIOD)
"""The Touch's mass; as much viscous friction as the simulated hand's damper."""


@dataclass(frozen=True)
class ClosedLoop:
    """A device on the wall through the real servo and tick, in one of GRIPS."""

    device: DeviceSpec
    grip: str
    feedback: str = "constraints"
    strikes: tuple[float, ...] = STRIKES
    ticks: int = 1200

    def rows(self, stiffness: float, damping: float, strike: float) -> NDArray[np.float64]:
        """The servo's rows of one run, fewer than `ticks` where a number was not finite."""
        grip = GRIPS[self.grip]
        stylus = make_mock(self.device, [TOUCHING - [0.0, PRESS / grip.stiffness, 0.0]], grip=grip, dt=PERIOD)
        stylus.position[:] = stylus.measured[0] = TOUCHING
        stylus.velocity[1] = -strike
        hold = [f"tool.hold.stiffness={stiffness}", f"tool.hold.damping={damping}"]
        lock = LockStep(build_scene(parse_scene(SCENE, "wall", [*hold, f"tool.feedback={self.feedback}"])))
        data = tick_data(lock.servo)
        # no limit may hide what the loop does
        limits = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, hand_speed=np.inf)
        servo = make_servo(
            servo_tick.address, data.address, lock.high.port, stylus, limits, ring_capacity=8192
        )
        try:
            lock.advance(self.ticks, lambda n: servo_run(servo, n))
        finally:
            lock.close()
        return drain_rows(servo)

    def tail(self, rows: NDArray[np.float64], column: str) -> NDArray[np.float64]:
        """A column of a run's rows over its last quarter."""
        return rows[3 * self.ticks // 4 :, NAMES.index(column)]

    def rests(self, stiffness: float, damping: float) -> bool:
        """Whether the stylus comes to rest after every strike."""
        for strike in self.strikes:
            rows = self.rows(stiffness, damping, strike)
            if len(rows) < self.ticks or np.ptp(self.tail(rows, "py")) > REST:
                return False
        return True

    @cache  # noqa: B019 - a handful of loops that live as long as the study
    def largest(self, damping: float) -> float:
        """Largest stiffness [N/m] that comes to rest with this damping [N s/m]."""
        return largest_stable(lambda stiffness: self.rests(stiffness, damping), GRID, RESOLUTION)
