"""A simulated hand that goes as poses go that somebody sends: a robot, a tracker, another program.

From where it is when they begin, it goes by the same way and turn, with the speed of a calm hand at most, so
that nothing that is sent makes a jump. Poses that leap farther than such a hand goes in a while, or come
after a silence, begin anew from where it is then. While nobody sends any, the force is off and the scene
stands still.
"""

import math
import threading
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.control import hold_servo
from palpo.haptics.led import FAR, LedThread, Target
from palpo.haptics.servo import OWNED, Servo
from palpo.haptics.workspace import (
    orientations_to_device,
    positions_to_device,
    quaternion_from_axis_angle,
    quaternion_product,
)

SPEED, TURN = 1.0, 6.0
"""Largest speed [m/s] and angular speed [rad/s] with which it follows."""
LEAP, LEAP_TURN = 0.1, 0.6
"""Way [m] and angle [rad] to a pose that is too far to be followed: what a tenth of a second allows."""
TURNED = 1e-9
"""Angle [rad] below which there is nothing left to turn: rounding has no axis."""
SILENCE = 0.25
"""Seconds without a pose after which nobody leads."""
LARGEST = 1000.0
"""No coordinate [m] is larger."""
UNIT = 0.02
"""By how much the norm of an orientation may differ from 1."""
BUTTONS = 32
"""Buttons that a pose may have."""


class SentPose(NamedTuple):
    """What is sent, scene axes: position (3,) [m], orientation (4,) (w, x, y, z), mask of buttons."""

    position: NDArray[np.float64]
    orientation: NDArray[np.float64]
    buttons: int = 0


def pose_of(position: ArrayLike, orientation: ArrayLike, buttons: int = 0) -> SentPose:
    """A pose that can be followed. Raises ValueError, in words, for numbers that are none."""
    x, q = np.array(position, float), np.array(orientation, float)
    if not (np.isfinite(x).all() and np.abs(x).max() <= LARGEST):
        raise ValueError(f"position: give finite metres, at most {LARGEST:g}")
    size = math.sqrt(float(q @ q)) if np.isfinite(q).all() and np.abs(q).max() < 2.0 else math.nan
    if not abs(size - 1.0) <= UNIT:
        raise ValueError("orientation: give a unit quaternion (w, x, y, z)")
    if not 0 <= buttons < 1 << BUTTONS:
        raise ValueError(f"buttons: give a mask of {BUTTONS} bits")
    return SentPose(x, q / size, int(buttons))


class Guide:
    """Where poses come in, from any thread, and a hand takes the newest: a `palpo.haptics.led.Source`.

    One leads at a time: the first who sends, until he has been silent.
    """

    def __init__(self, title: str, silence: float = SILENCE) -> None:
        """silence: seconds without a pose after which nobody leads."""
        self.title, self.silence = title, silence
        self._news: SentPose | None = None
        self._who: object = None
        self._when = -math.inf
        self._there = threading.Condition()

    def put(self, pose: SentPose, who: object = None) -> bool:
        """Take a pose; False while somebody else leads."""
        with self._there:
            now = time.monotonic()
            if who is not self._who and now - self._when <= self.silence:
                return False
            self._news, self._who, self._when = pose, who, now
            self._there.notify()
            return True

    @property
    def leads(self) -> bool:
        """Whether somebody has sent a pose lately."""
        return time.monotonic() - self._when <= self.silence

    def read(self, patience: float) -> SentPose | None:
        """The newest pose that was not read yet, None after `patience` [s]."""
        with self._there:
            if self._news is None:
                self._there.wait(patience)
            news, self._news = self._news, None
            return news

    def close(self) -> None:
        """Nothing to leave: who sends is somebody else's."""


def _conjugate(q: NDArray[np.float64]) -> NDArray[np.float64]:
    return q * (1.0, -1.0, -1.0, -1.0)


class FollowedPose:
    """A pose that goes as others go. position (3,) [m], orientation (4,): where it starts."""

    def __init__(self, position: ArrayLike, orientation: ArrayLike) -> None:
        self._start = np.array(position, float)
        self.position, self.orientation = self._start.copy(), np.array(orientation, float)
        self._first: SentPose | None = None
        """The pose from which ways and turns count, and where this one was then."""
        self._here = self._goal = self.position, self.orientation

    def let_go(self) -> None:
        """The next pose is a beginning."""
        self._first, self._goal = None, (self.position, self.orientation)

    def hear(self, pose: SentPose) -> None:
        """Go from now on as this pose has gone since the beginning; one that leaps begins anew."""
        if self._first is not None:
            way = self._here[0] + pose.position - self._first.position
            turn = quaternion_product(pose.orientation, _conjugate(self._first.orientation))
            self._goal = (
                way.clip(self._start - FAR, self._start + FAR),
                quaternion_product(turn, self._here[1]),
            )
        if self._first is None or self._away()[0] > LEAP or self._away()[1] > LEAP_TURN:
            self._first = pose
            self._here = self._goal = self.position.copy(), self.orientation.copy()

    def move(self, seconds: float) -> None:
        """Go on for a time [s]."""
        (way, angle), (goal, turned) = self._away(), self._goal
        self.position = self.position + min(1.0, SPEED * seconds / max(way, 1e-12)) * (goal - self.position)
        if angle > TURNED:
            rest = quaternion_product(turned, _conjugate(self.orientation))
            axis = rest[1:] * (1.0 if rest[0] >= 0.0 else -1.0)
            step = quaternion_from_axis_angle(axis, min(angle, TURN * seconds))
            now = quaternion_product(step, self.orientation)
            self.orientation = now / np.linalg.norm(now)

    def _away(self) -> tuple[float, float]:
        """Way [m] and angle [rad] that are left."""
        rest = quaternion_product(self._goal[1], _conjugate(self.orientation))
        angle = 2.0 * math.atan2(float(np.linalg.norm(rest[1:])), abs(float(rest[0])))
        return float(np.linalg.norm(self._goal[0] - self.position)), angle


class GuidedThread(LedThread[SentPose]):
    """The servo on a simulated hand that goes as the poses of a `Guide`; in silence its force is off."""

    def __init__(self, servo: Servo, guide: Guide) -> None:
        super().__init__(servo, guide)
        place = servo.workspace
        # as it is now: the clutch moves the servo's own, which the hand must not follow
        self._place = place._replace(**{name: getattr(place, name).copy() for name in OWNED})
        self._pose = FollowedPose(servo.device.positions[0], servo.device.orientations[0])
        self._buttons, self._held, self._silence = 0, True, guide.silence

    def prepare(self) -> None:
        super().prepare()
        hold_servo(self.servo, self._held)

    def accompany(self) -> None:
        hold_servo(self.servo, self._held)
        super().accompany()

    def led(self, news: SentPose | None, quiet: float, seconds: float) -> Target:
        if news is not None:
            self._pose.hear(
                SentPose(
                    positions_to_device(self._place, news.position),
                    orientations_to_device(self._place, news.orientation),
                )
            )
            self._buttons = news.buttons
        held = quiet > self._silence or (self._held and news is None)
        if held:
            self._pose.let_go()
        if held != self._held:
            hold_servo(self.servo, held)
            self._held = held
        self._pose.move(seconds)
        return self._pose.position, self._pose.orientation, self._buttons
