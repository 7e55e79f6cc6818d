"""The page of `palpo serve` over a servo that runs: by a page without a browser, and in Chromium."""

import contextlib
import math
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("viser", reason="a page needs viser: palpo[serve]")

from palpo.app.cli.progress import Silent
from palpo.app.runtime.operator import Operator
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.app.runtime.viewer import Viewer
from palpo.app.web.panel import PagePanel
from palpo.app.web.server import Server
from palpo.app.web.window import PageWindow
from palpo.haptics.control import is_frozen
from palpo.render.requests import Request
from tests.realtime import browser
from tests.robustness.pages import CAMERA, drag, open_page, packed

PROBE = Options("probe", device="page", window=True, page=True, baseline=False)
PRESS = 0.015
"""Way of the pointer down, of which the ball first falls 5 mm to the block [m]."""
PATIENCE = 60.0
STEPS = 100
"""Moves of the pointer by two pixels, in which it surely comes into the body."""
SMALL = 800, 500
"""Pixels of a page that is drawn by a processor."""


def until(true, words):
    """Wait for it."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, words
        time.sleep(0.02)


@contextlib.contextmanager
def attended(desk, go, act):
    """The desk in this thread, and somebody's doings in another; what failed there is raised here."""
    failed = []

    def doings():
        try:
            act()
        except BaseException as error:
            failed.append(error)
        finally:
            desk.closing = True

    visitor = threading.Thread(target=doings, daemon=True)
    with desk:
        visitor.start()
        yield go()
        visitor.join(PATIENCE)
    if failed:
        raise failed[0]


@pytest.fixture
def screen():
    """The window of a desk, and what the desk is made with."""
    window = PageWindow(Server("127.0.0.1", 0))
    return window, lambda: (window, PagePanel(window))


def sent(operator):
    """Norm of the force on the hand [N], as far as it is felt."""
    servo = operator._session.rig.servo
    return float(servo.limit_state.gate["gain"][0]) * float(np.linalg.norm(servo.sent))


def running(operator):
    return operator._session is not None and not is_frozen(operator._session.rig.servo)


def test_a_page_presses_the_tool_down_and_when_it_is_gone_the_force_fades_and_the_tool_stays(screen):
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def visit():
        with open_page(window.server) as page:
            page.send(packed(CAMERA))
            until(lambda: window.placed and running(operator), "the scene does not begin")
            page.send(packed(CAMERA | {"position": [0.0, 0.0, 4.0]}))
            height = 2 * 4.0 / window.scale * math.tan(0.25)
            page.send(packed(drag("start", 0.5, 0.3)))
            for share in np.linspace(0.0, 1.0, 40).tolist():
                page.send(packed(drag("update", 0.5, 0.3 + share * PRESS / height)))
                time.sleep(0.02)
            until(lambda: sent(operator) > 0.3, "nothing is felt")
        port = operator._session.rig.servo.port
        until(lambda: sent(operator) == 0.0 and is_frozen(operator._session.rig.servo), "it does not fade")
        left = port.position.copy()
        time.sleep(0.3)
        assert np.array_equal(port.position, left) and sent(operator) == 0.0

    with attended(operator, lambda: operator.run(PROBE), visit) as done:
        assert done.result["device"] == "page"


# ---- in a browser


@pytest.fixture(scope="module")
def chromium():
    """What opens a page in a browser without a screen."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not browser.program():
        pytest.skip("there is no Chromium here")
    return browser.opened


def force_shown(page):
    """The number of the panel [N]."""
    words = page.inner_text("body")
    found = [line for line in words.splitlines() if line.startswith("force ")]
    return float(found[0].split()[1]) if found else math.nan


class Finger:
    """A finger on a page's touch screen, as a mouse is."""

    def __init__(self, page):
        self._send = page.context.new_cdp_session(page).send
        self._at, self._down = (0.0, 0.0), False

    def move(self, x, y):
        self._at = x, y
        if self._down:
            self._touch("touchMove")

    def down(self):
        self._down = True
        self._touch("touchStart")

    def up(self):
        self._down = False
        self._touch("touchEnd")

    def _touch(self, kind):
        x, y = self._at
        points = [{"x": x, "y": y}] if self._down else []
        self._send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def taken(page, pointer, window, operator):
    """Press on the tool until the page has it: where the pointer is then."""
    for _ in range(10):
        canvas = page.locator("canvas").first.bounding_box()
        (client,) = window.server.viser.get_clients().values()
        camera, held = window.seen_by(client.camera), operator._state.held_point.copy()
        x, y = camera.project(held, canvas["width"], canvas["height"])[0] + (canvas["x"], canvas["y"])
        pointer.move(x, y)
        pointer.down()
        for _ in range(20):
            y += 1.0
            pointer.move(x, y)
            page.wait_for_timeout(100)
            if operator.controls.hand.grip:
                return x, y
        pointer.up()
    raise AssertionError("the page does not take the tool")


@pytest.mark.parametrize("touch", [False, True], ids=["mouse", "finger"])
def test_in_a_browser_dragging_moves_the_tool_into_the_body_and_closing_the_page_fades_the_force(
    touch, screen, chromium
):
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def visit():
        with chromium(window.server.address("lead"), *SMALL, touch) as page:
            pointer = Finger(page) if touch else page.mouse
            until(lambda: window.placed and running(operator), "the scene does not begin")
            page.wait_for_function("document.body.innerText.includes('force ')")
            browser.clear(page)
            operator.controls.ask(Request("overlay", "shadow", False))
            page.wait_for_timeout(3000)
            x, y = taken(page, pointer, window, operator)
            for _ in range(STEPS):
                # a push that stays: the first one is partly the tool's speed
                if sent(operator) > 0.6:
                    break
                y += 2.0
                pointer.move(x, y)
                page.wait_for_timeout(100)
            until(lambda: sent(operator) > 0.3, "nothing is felt")
            page.wait_for_timeout(1000)
            assert force_shown(page) > 0.3
            pointer.up()
        until(lambda: sent(operator) == 0.0 and is_frozen(operator._session.rig.servo), "it does not fade")

    with attended(operator, lambda: operator.run(PROBE), visit) as done:
        assert done.result["window"]["frames_hz"] > 0.0


def test_in_a_browser_a_scene_is_chosen_and_runs(screen, chromium):
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def visit():
        with chromium(window.server.address("lead"), *SMALL) as page:
            page.locator("input:visible").first.click()
            page.get_by_role("option", name="probe").click()
            until(lambda: running(operator), "the scene does not begin")

    with attended(operator, lambda: operator.launch(replace(PROBE, scene="")), visit) as done:
        assert done.result["scene"] == "probe"


def test_in_a_browser_who_looks_on_sees_the_scene_and_presses_nothing(screen, chromium):
    window, made = screen
    operator = Operator(Silent(), screen=made)

    def visit():
        with chromium(window.server.address("watch")) as page:
            until(lambda: window.placed and operator._session is not None, "the scene does not begin")
            page.get_by_role("button", name="Pause").click()
            page.wait_for_timeout(1000)
            assert not operator._session.paused and not running(operator)

    with attended(operator, lambda: operator.run(PROBE), visit):
        pass


def test_in_a_browser_a_recording_plays_and_stops_and_goes_on(screen, chromium, tmp_path):
    window, made = screen
    recording = tmp_path / "run.h5"
    run(Options("probe", device="mock", lock_step=True, duration=1.0, record=recording, baseline=False))
    viewer = Viewer(recording, Silent(), screen=made)

    def visit():
        with chromium(window.server.address("lead")) as page:
            until(lambda: viewer.now == 1.0 or viewer.now > 0.9, "it does not play")
            page.get_by_role("button", name="Go on").click()
            until(lambda: viewer.playing and viewer.now < 0.9, "it does not begin anew")
            page.get_by_role("button", name="Pause").click()
            until(lambda: not viewer.playing, "it does not stop")

    with attended(viewer, viewer.run, visit) as done:
        assert done.status == 0
