"""A remote hand tick by tick, without a clock or sockets: energies, jumps and forces over delay and loss.

The hand is a simulated Touch with its encoder and its friction, which goes in and out of a spring wall behind
a servo's limiter. Each message is late by the delay and up to a fifth more, or lost.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.benchmarks.timing import Figures
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import EXTERNAL, VirtualDevice, device_read, device_write, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import servo_run
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.remote import WORDS, End, hand_tick, hear, make_end, scene_tick, tell
from palpo.haptics.servo import Servo, make_servo
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback

Floats = NDArray[np.float64]
DT = 1e-3
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
DELAYS, LOSSES = (0, 5, 50, 200), (0.0, 0.05, 0.2)
"""Ticks of one way, and shares of messages."""
STIFFNESS, DEPTH = 300.0, 8e-3
"""Of the wall [N/m], and how deep the hand would go [m], once a second and then four times."""


class OneSidedWall(NamedTuple):
    """A spring wall in x > 0."""

    port: Port
    stiffness: float


@callback(types.int32(HandleType(typeof(OneSidedWall(make_port(), 0.0)))))
def _wall_tick(wall):
    wall.port.force[0] = -wall.stiffness * max(wall.port.position[0], 0.0)
    return end_tick(wall.port, OK, 0)


class Line:
    """One direction of a network: each message is late by `delay` ticks and up to `jitter` more, or lost."""

    def __init__(self, delay: int, loss: float, rng: np.random.Generator, jitter: int) -> None:
        self.delay, self.loss, self.rng, self.jitter = delay, loss, rng, jitter
        self.flying: list[tuple[int, int, Floats]] = []

    def send(self, tick: int, count: int, message: Floats) -> None:
        """Let a message leave."""
        if self.rng.random() >= self.loss:
            late = self.delay + int(self.rng.integers(0, 1 + self.jitter))
            self.flying.append((tick + late, count, message.copy()))

    def arrived(self, tick: int) -> list[tuple[int, Floats]]:
        """Counts and messages that arrive now."""
        due = [flight for flight in self.flying if flight[0] <= tick]
        self.flying = [flight for flight in self.flying if flight[0] > tick]
        return [(count, message) for _, count, message in due]


class RemoteRun:
    """A hand, a channel, and the servo at its other end, tick by tick without a clock."""

    def __init__(
        self, servo: Servo, hand: VirtualDevice, delay: int, loss: float, *, controlled: bool = True,
        seed: int = 1, jitter: int | None = None,
    ) -> None:  # fmt: skip
        """hand: a device that the virtual hand holds; it reports in counts of its resolution."""
        rng = np.random.default_rng(seed)
        jitter = delay // 5 if jitter is None else jitter
        self.servo, self.device, self.tick = servo, hand, 0
        self.there, self.back = Line(delay, loss, rng, jitter), Line(delay, loss, rng, jitter)
        self.hand: End = make_end(TOUCH.max_force, hand.resolution, DT, controlled)
        self.scene: End = make_end(TOUCH.max_force, 0.0, DT, controlled)
        self.port, self.force, self.message = make_port(), np.zeros(3), np.zeros(WORDS)
        self._felt: list[Floats] = []
        self._commanded: list[Floats] = []
        self._energies: list[list[float]] = []
        self._work = 0.0

    def make(self, ticks: int) -> None:
        """Ticks of both ends."""
        for _ in range(ticks):
            self._once()

    def _once(self) -> None:
        device_read(self.device, self.tick, self.port)
        for count, message in self.back.arrived(self.tick):
            hear(self.hand, count, message)
        hand_tick(self.hand, self.port.position, self.force, DT, self.force)
        before = self.device.position.copy()
        device_write(self.device, self.force)
        self._work += float(self.force @ (self.device.position - before))
        count = tell(self.hand, self.port.position, UPRIGHT, 0, 0.0, self.message)
        self.there.send(self.tick, count, self.message)
        for count, message in self.there.arrived(self.tick):
            hear(self.scene, count, message)
        if self.scene.words["newest"][0]:
            own = self.servo.device_port
            scene_tick(self.scene, self.servo.sent, DT, own.position, own.velocity)
            servo_run(self.servo, 1)
            count = tell(self.scene, self.servo.sent, UPRIGHT, 0, 0.0, self.message)
            self.back.send(self.tick, count, self.message)
        self._felt.append(self.force.copy())
        self._commanded.append(self.servo.sent.copy())
        ends = self.hand, self.scene
        booked = [float(end.joules[name][0]) for end in ends for name in ("paid", "given")]
        self._energies.append([*booked, self._work])
        self.tick += 1

    @property
    def felt(self) -> Floats:
        """Force at the hand [N], shape (ticks, 3)."""
        return np.array(self._felt)

    @property
    def commanded(self) -> Floats:
        """Force that the scene had for it [N], shape (ticks, 3)."""
        return np.array(self._commanded)

    @property
    def energies(self) -> Floats:
        """[J], shape (5, ticks): paid and given at the hand's end, at the scene's, and the force's true work.

        The last is of where the stylus really was, between the encoder's counts.
        """
        return np.array(self._energies).T


def in_and_out(ticks: int) -> Floats:
    """Targets (ticks, 3) [m] of a hand that goes into the wall and out again, then quickly."""
    t = np.arange(ticks) * DT
    x = -DEPTH * np.cos(2 * np.pi * np.where(t < 4.0, t, 4.0 * (t - 4.0)))
    return np.column_stack([x, 0.0 * x, 0.0 * x])


def on_a_wall(delay: int, loss: float, ticks: int = 6000) -> RemoteRun:
    """A run against the wall."""
    wall = OneSidedWall(make_port(), STIFFNESS)
    data = Handle(wall)
    external = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    limits = make_limits(TOUCH.max_force, fades=AT_ONCE, hand_speed=np.inf)
    servo = make_servo(_wall_tick.address, data.address, wall.port, external, limits)
    run = RemoteRun(servo, make_mock(TOUCH, in_and_out(ticks)), delay, loss)
    run.alive = data  # type: ignore[attr-defined]
    run.make(ticks)
    return run


def remote() -> Figures:
    """A remote hand at a wall: energies, largest jump, peaks of the forces, over delay and loss.

    Net: the most that the force's true work on the hand came to, or what both ends gave over what was paid.
    """
    return {
        f"{delay} ms, {100 * loss:g}% lost": _figures(on_a_wall(delay, loss))
        for delay in DELAYS
        for loss in (LOSSES if delay else LOSSES[:1])
    }


def _figures(run: RemoteRun) -> Figures:
    paid, given, scene_paid, scene_given, work = 1e3 * run.energies
    felt, had = run.felt[:, 0], run.commanded[:, 0]
    return {
        "paid mJ": float(paid[-1]),
        "given mJ": float(given[-1]),
        "most net mJ": float(max(work.max(), (given + scene_given - paid - scene_paid).max())),
        "jump N/s": float(np.linalg.norm(np.diff(run.felt, axis=0), axis=1).max() / DT),
        "felt N": float(-felt.min()),
        "wall N": float(-had.min()),
    }
