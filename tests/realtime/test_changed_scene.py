"""A body is changed in the window: the scene runs on while the changed one is built, and if that fails."""

import time

import numpy as np
import pytest

from palpo.app.cli.progress import Silent
from palpo.app.runtime.operator import Operator
from palpo.app.runtime.session import Session
from palpo.config.words import ConfigError
from palpo.haptics.control import tick_count
from palpo.render.requests import Request
from tests.realtime.test_page import PROBE, attended, open_page, packed, running, screen, until  # noqa: F401
from tests.robustness.pages import CAMERA

BUILDS = 1.5
"""Seconds that a build takes here, at least."""
TOO_LARGE = 3.0


@pytest.fixture
def slowly(monkeypatch):
    """Every build takes a while, and one of a block that is too large fails."""
    prepare = Session._prepare

    def slow(session):
        time.sleep(BUILDS)
        if session.spec.body("block").placement.scale > TOO_LARGE:
            raise ConfigError("the block is too large")
        prepare(session)

    monkeypatch.setattr(Session, "_prepare", slow)


def test_a_scene_runs_on_until_its_change_is_built_and_stays_where_it_cannot_be(screen, slowly):  # noqa: F811
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def change(scale):
        """Ask for it; the session until then, and its ticks while the other is built."""
        session = operator._session
        operator.controls.ask(Request("set", "scale", scale))
        until(lambda: operator._coming is not None, "nothing is built")
        before = tick_count(session.rig.servo)
        time.sleep(0.5 * BUILDS)
        assert operator._session is session and running(operator)
        return session, tick_count(session.rig.servo) - before

    def visit():
        with open_page(window.server) as page:
            page.send(packed(CAMERA))
            until(lambda: window.placed and running(operator), "the scene does not begin")
            first = operator._session
            operator._editing.choose(first.spec, "block", 0.1, np.zeros((1, 3)))
            _, ticks = change(TOO_LARGE + 0.5)
            assert ticks > 300 * BUILDS
            until(lambda: operator._coming is None, "it is built for ever")
            assert "the block is too large" in operator.messages
            assert operator._session is first and running(operator)
            (settings,) = operator._editing.groups().values()
            assert {one.key: one.value for one in settings}["scale"] == 1.0
            _, ticks = change(1.2)
            assert ticks > 300 * BUILDS
            until(lambda: operator._session is not first and running(operator), "the change does not run")
            assert operator._session.spec.body("block").placement.scale == 1.2

    with attended(operator, lambda: operator.run(PROBE), visit) as done:
        assert done.status == 0


def test_who_takes_the_force_off_meanwhile_gets_no_other_scene(screen, slowly):  # noqa: F811
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def visit():
        with open_page(window.server) as page:
            page.send(packed(CAMERA))
            until(lambda: window.placed and running(operator), "the scene does not begin")
            first = operator._session
            operator._editing.choose(first.spec, "block", 0.1, np.zeros((1, 3)))
            operator.controls.ask(Request("set", "scale", 1.2))
            until(lambda: operator._coming is not None, "nothing is built")
            operator.controls.ask(Request("emergency"))
            until(lambda: operator._coming is None, "it does not end")
            time.sleep(2.0 * BUILDS)
            assert operator._session is first

    with attended(operator, lambda: operator.run(PROBE), visit):
        pass
