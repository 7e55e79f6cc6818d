"""A virtual X screen, for tests that open a window and act on it with real events."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCREEN = (1280, 800)
STARTS = 30.0  # s


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """The name of a display of its own; skips where Xvfb or xdotool is not installed."""
    for program in ("Xvfb", "xdotool"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (Debian, Ubuntu: apt-get install xvfb xdotool)")
    reading, writing = os.pipe()
    size = "{}x{}x24".format(*SCREEN)
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
    server = subprocess.Popen(
        command, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], STARTS)
        number = os.read(reading, 16).decode().strip() if ready else ""
        if not number:
            pytest.skip("Xvfb does not start here")
        yield f":{number}"
    finally:
        os.close(reading)
        server.terminate()
        server.wait()


def acted(display: str, module: str, folder: Path) -> dict[str, Any]:
    """The seen.json of `python -m module folder` on that display; skips where no window can be opened."""
    done = subprocess.run(
        [sys.executable, "-m", module, str(folder)],
        cwd=folder,
        # the folder of the tests is on the path of pytest alone; what this process draws by is its own affair
        env={name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"}
        | {"DISPLAY": display, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=900,
    )
    if "is not available here" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    assert seen["failure"] == []
    return seen
