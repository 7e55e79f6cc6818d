"""How many pictures the pointer is ahead of what is drawn, counted and not timed."""

import numpy as np

from palpo.app.runtime.options import Options
from palpo.app.runtime.pacing import Pacer
from palpo.app.runtime.session import Session
from palpo.app.systems.multirate.build import build_scene
from palpo.app.systems.multirate.picture import Visual
from palpo.config.load import load_scene
from palpo.physics.engine.servo import run_ticks
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.snapshot import COUNTERS
from palpo.physics.systems.multirate.lock_step import LockStep

FRAMES, TICKS = 8, 33
"""Pictures, and servo ticks between two of them: 30 a second."""
MOST = 2
"""Pictures that the pointer may be ahead."""


class Desk:
    """A session's loops without a clock, which go on while a picture is shown."""

    def __init__(self):
        self.spec = load_scene("wire")
        self.lock = LockStep(build_scene(self.spec), "krylov", self.spec.interface.latency)
        self.visual = Visual(self.spec, self.lock.scene, self.lock.high, self.lock.lows)
        self.visual.follow_servo()
        self.lock.advance(self.lock.ratio, self.ticks)
        self.visual.publish(self.visual.take_tool(), self.lock.tick, np.zeros(len(COUNTERS), np.int64))
        self.pointer, self.drawn = [self.lock.high.port.position.copy()], []

    def ticks(self, n):
        run_ticks(self.lock.handle, n)

    @property
    def running(self):
        return len(self.drawn) < FRAMES

    def watch(self, state, fresh):
        """A picture, and what is heeded after it: the pointer has moved. Then the loops go on."""
        self.drawn.append(state.device_point.copy())
        self.pointer.append(self.pointer[-1] + [1e-3, 0.0, 0.0])
        self.lock.high.port.position[:] = self.pointer[-1]
        self.lock.advance(TICKS, self.ticks)


def test_a_picture_shows_the_pointer_as_it_was_at_most_two_pictures_before(monkeypatch):
    desk = Desk()
    session = Session(Options("wire", device="mock", duration=1.0))
    session.visual, session.ticks = desk.visual, 10**9
    pacer = Pacer([Budget(20)], 1e-3)
    session.slow = type("Slow", (), {"failure": "", "pacer": pacer})()
    session.rig = type("Rig", (), {"servo": None, "behind": 0})()
    session.album = type("Album", (), {"look": lambda self, state, rig: None})()
    monkeypatch.setattr("palpo.app.runtime.session.tick_count", lambda servo: 0)
    session._look_on(desk, desk.watch)
    desk.lock.low.close()
    for n in range(MOST, FRAMES):
        ahead = min(k for k in range(FRAMES) if np.array_equal(desk.drawn[n], desk.pointer[n - k]))
        assert ahead <= MOST
    assert not np.array_equal(desk.drawn[-1], desk.drawn[-2])
