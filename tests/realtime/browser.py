"""Chromium without a screen, on a page of ours; as a program, the manual's picture, and its rate:

python -m tests.realtime.browser docs/pictures/page.png [SECONDS]
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from palpo.app.cli.progress import Silent
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.app.runtime.viewer import Viewer
from palpo.app.web.panel import PagePanel
from palpo.app.web.server import Server
from palpo.app.web.window import PageWindow
from palpo.render.requests import Request

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Draws on the processor, also where a graphics card is."""
DRAWN = """(seconds) => new Promise(resolve => {
    let count = 0; const begin = performance.now();
    const draw = () => { count += 1; const now = performance.now() - begin;
        if (now < 1000 * seconds) requestAnimationFrame(draw); else resolve(1000 * count / now); };
    draw();
})"""


def program():
    """Where Chromium is; None where it is not."""
    there = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, there), None)


@contextlib.contextmanager
def opened(address, width=1280, height=800, touch=False):
    """A page there, of this size; AssertionError afterwards if it asked for anything from elsewhere."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program(), args=FLAGS)
        context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch
        )
        page, foreign = context.new_page(), []
        page.on("request", lambda asked: None if _at_home(asked.url) else foreign.append(asked.url))
        page.goto(address)
        yield page
        browser.close()
        assert not foreign


def clear(page):
    """Put away what viser says of a browser without a graphics card, over the scene."""
    for note in page.locator(".mantine-Notification-closeButton").all():
        with contextlib.suppress(Exception):  # it goes by itself, too
            note.click(timeout=2000)
    page.wait_for_timeout(500)


def _at_home(url):
    return url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))


def main(out, seconds=2.5):
    """The probe in the middle of its press, as the page shows a recording of it."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "probe.h5"
        run(Options("probe", device="mock", lock_step=True, duration=3.0, record=recording, baseline=False))
        window = PageWindow(Server("127.0.0.1", 0))
        viewer = Viewer(recording, Silent(), screen=lambda: (window, PagePanel(window)))

        def visit():
            try:
                with opened(window.server.address("lead")) as page:
                    page.wait_for_function("document.body.innerText.includes('force ')")
                    page.wait_for_timeout(3000)
                    for shadow in (False, True):
                        viewer.controls.ask(Request("overlay", "shadow", shadow))
                        page.wait_for_timeout(3000)
                        viewer._seek(0.0)
                        viewer.playing = True
                        drawn, words = page.evaluate(DRAWN, seconds), "with" if shadow else "without"
                        print(f"{drawn:.0f} pictures a second {words} shadows, {window.frame_rate:.0f} sent")
                    viewer.playing = False
                    viewer._seek(1.5)
                    clear(page)
                    page.wait_for_timeout(3000)
                    page.screenshot(path=out)
            finally:
                viewer.closing = True

        visitor = threading.Thread(target=visit)
        with viewer:
            visitor.start()
            viewer.run()
            visitor.join()


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
