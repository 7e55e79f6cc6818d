"""A hand that moves while the slow loop stands still: the energy that its port takes and gives.

The scene's own path presses the tool into what it touches. Then no frame comes for a while, as on a machine
that is busy with something else; once the scene waits, the hand withdraws along the force, or pushes against
it, and moves back when frames have long returned. Without a clock: the figures repeat bit for bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.runtime.rigs import Rig
from palpo.app.systems.system import check_kind, make_rig
from palpo.benchmarks.timing import Figures
from palpo.config.load import load_scene
from palpo.haptics.device import EXTERNAL, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.row import NAMES
from palpo.haptics.workspace import positions_to_device
from palpo.physics.exchange.port import WAITING
from palpo.studies.runs import scene_path

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pressed:
    """A scene, and the time of its path at which it is pressed [s]."""

    scene: str
    until: float
    overrides: Sequence[str] = ()
    kind: str | None = None


_PROBE = ("bodies.probe.placement.position=[-0.01, 0.0405, 0]", "workspace.offset=[-0.01, 0.0405, 0]",
          "device.path=[[0, -0.01, 0.0405, 0], [0.3, -0.01, 0.034, 0]]")  # fmt: skip
_NEEDLE = ("device.path=[[0, 0.072, 0.160, 0], [0.6, 0.072, 0.144, 0]]",)
_WIRE = ("device.path=[[0, 0.12, 0.2, 0], [0.6, 0.15, 0.23, 0]]",)
_PUNCH = ('loops="multirate"', "device.path=[[0, 0, 0.0625, 0], [0.6, 0, 0.0465, 0]]")
_CUP = ("device.path=[[0, 0, 0.0254, 0], [0.6, 0, 0.0164, 0]]",)

CASES: dict[str, Pressed] = {
    "probe": Pressed("probe", 0.5, _PROBE),
    "probe, paper": Pressed("probe", 0.5, _PROBE, "paper"),
    "probe, extrapolated": Pressed("probe", 0.5, _PROBE, "extrapolated"),
    "probe, held directly": Pressed("probe", 0.5, (*_PROBE, 'tool.hold.mode="direct"')),
    "needle": Pressed("needle", 0.8, _NEEDLE),
    "wire": Pressed("wire", 0.8, _WIRE),
    "hapco-16": Pressed("hapco-16", 0.8, _PUNCH),
    "hapco-16, coupled": Pressed(
        "hapco-16", 0.8, (*_PUNCH, 'tool.hold.mode="coupling"', 'tool.hold.stiffness="0.5 N/mm"')
    ),
    "suction-cube": Pressed("suction-cube", 0.8, _CUP),
}
ALWAYS = ("safety.fade_in=0", 'safety.passivity="observe"')
"""The force is there from the start, and nothing but the wait itself keeps the port passive."""

SPEED = 0.2
"""Of the hand [m/s]."""
WAY = 0.03
"""How far it goes [m]."""
AFTER = 0.6
"""Seconds with fresh frames before the hand moves back, and after it has."""


@dataclass(frozen=True)
class Stalled:
    """Rows of the servo by column; the ticks at which the stall begins, frames return, and the hand moves."""

    rows: dict[str, Floats]
    began: int
    moved: int
    ended: int

    @property
    def given(self) -> Floats:
        """Energy given to the hand since the start [J], once a tick."""
        return self.rows["energy_J"]

    @property
    def paid(self) -> float:
        """What the hand had put in when it began to move [J]."""
        return float(-self.given[self.moved])

    @property
    def returned(self) -> float:
        """What it had got back at most since then, before or after frames returned [J]."""
        return float(self.given[self.moved :].max() + self.paid)

    @property
    def sent(self) -> Floats:
        """Force [N], shape (n, 3)."""
        return np.stack([self.rows[f"sent_{axis}"] for axis in "xyz"], axis=1)

    @property
    def at(self) -> Floats:
        """Where the device is [m], shape (n, 3)."""
        return np.stack([self.rows[f"device_p{axis}"] for axis in "xyz"], axis=1)


class _Hand:
    """A rigid hand on a rig, and the slow loop beside it; a frame is a slow period late."""

    def __init__(self, pressed: Pressed, overrides: Sequence[str]) -> None:
        self.pressed = pressed
        self.spec = load_scene(pressed.scene, [*ALWAYS, *pressed.overrides, *overrides])
        self.workspace = workspace_of(self.spec)
        self.rig: Rig = make_rig(
            self.spec, check_kind(self.spec, pressed.kind, False),
            lambda _: make_virtual_device(np.zeros((1, 3)), source=EXTERNAL, dt=self.spec.rates.dt),
            self.workspace, limits_of(self.spec), threads=False,
        )  # fmt: skip
        self.rows: list[Floats] = []
        self.tick, self.begun = 0, False
        self.to(positions_to_device(self.workspace, scene_path(self.spec)[:1])[0], fresh=False)

    @property
    def place(self) -> Floats:
        """Where the device is [m]."""
        return self.rig.servo.device_port.position.copy()

    @property
    def waits(self) -> bool:
        """Whether the scene does."""
        return bool(self.rig.servo.port.status["flags"][0] & WAITING)

    def to(self, place: Floats, fresh: bool = True) -> None:
        """One tick with the device there; fresh: frames come."""
        if not self.begun or (fresh and self.tick % self.rig.ratio == 0):
            low = self.rig.low
            if self.begun:
                low.publish(low.known())
            else:
                low.step()
                low.publish(0)
            low.step()
            self.begun = True
        self.rig.servo.device_port.position[:] = place
        servo_run(self.rig.servo, 1)
        self.rows.append(drain_rows(self.rig.servo))
        self.tick += 1

    def along(self, way: Floats, fresh: bool) -> None:
        """Ticks at which the device moves by this way (3,) [m], evenly at SPEED."""
        start, n = self.place, max(1, round(np.linalg.norm(way) / (SPEED * self.rig.dt)))
        for k in range(1, n + 1):
            self.to(start + k / n * way, fresh)

    def rest(self, seconds: float, fresh: bool) -> None:
        """Ticks at which it stays."""
        place = self.place
        for _ in range(round(seconds / self.rig.dt)):
            self.to(place, fresh)


def stalled(pressed: Pressed, stall: float, way: float = WAY, overrides: Sequence[str] = ()) -> Stalled:
    """Press, let frames fail for `stall` seconds, move by `way` [m] along the force, and back afterwards.

    A way below zero goes against the force. The hand moves once the scene waits, if it does; a motion that
    outlasts the stall goes on under fresh frames.
    """
    hand = _Hand(pressed, overrides)
    path = positions_to_device(hand.workspace, scene_path(hand.spec))
    for k in range(round(pressed.until / hand.rig.dt)):
        hand.to(path[min(k, len(path) - 1)])
    while hand.tick % hand.rig.ratio:
        hand.to(hand.place)
    began, last = hand.tick, hand.tick + round(stall / hand.rig.dt)
    still = hand.place
    while not hand.waits and hand.tick < last:
        hand.to(still, fresh=False)
    moved = hand.tick
    force = hand.rig.servo.sent.copy()
    direction = force / np.linalg.norm(force)
    start, n = hand.place, round(abs(way) / (SPEED * hand.rig.dt))
    k = 0
    while k < n or hand.tick < last:
        k = min(k + 1, n)
        hand.to(start + k / n * way * direction, fresh=hand.tick >= last)
    hand.rest(AFTER, fresh=True)
    # all the way out, so that what is still pressed gives back what it holds
    hand.along(start + WAY * direction - hand.place, fresh=True)
    hand.rest(AFTER, fresh=True)
    hand.rig.low.close()
    rows = np.concatenate(hand.rows)
    return Stalled(dict(zip(NAMES, rows.T, strict=True)), began, moved, last)


def stall(seconds: float = 0.5, cases: Sequence[str] = tuple(CASES)) -> Figures:
    """Energy of a port in a withdrawal, and in a push, while no frame comes [mJ]; steps of the force [N]."""
    return {name: _figures(CASES[name], seconds) for name in cases}


def _figures(pressed: Pressed, seconds: float) -> Figures:
    return {
        name: _told(stalled(pressed, seconds, way))
        for name, way in (("withdrawn", WAY), ("pushed", -0.2 * WAY))
    }


def _told(run: Stalled) -> Figures:
    back = slice(run.ended - 1, run.ended + round(AFTER / 1e-3))
    return {
        "force as the hand moves N": float(np.linalg.norm(run.sent[run.moved - 1])),
        "paid before mJ": 1e3 * run.paid,
        "returned since, at most mJ": 1e3 * run.returned,
        "given in all mJ": 1e3 * float(run.given[-1]),
        "largest step of the force after frames return N": float(
            np.linalg.norm(np.diff(run.sent[back], axis=0), axis=1).max()
        ),
    }
