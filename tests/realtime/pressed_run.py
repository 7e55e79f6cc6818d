"""`palpo run` in a process of its own, with the probe pressed on its block."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from palpo.haptics.recording import read_recording

ROOT = Path(__file__).parents[2]
PRESSED = (
    "bodies.probe.placement.position=[0, 0.041, 0]",
    "device.path=[[0, 0, 0.041, 0], [0.2, 0, 0.035, 0]]",
    "workspace.offset=[0, 0.041, 0]",
    "safety.fade_in=0.05",
    # a busy machine must not fade the force before the test does
    "bodies.block.geometry.divisions=[4, 2, 4]",
    "safety.frame_age_limit=100",
)
FADE, EMERGENCY_FADE, RECOVERY = 50, 10, 250
"""Ticks of the fade at a stop, of an emergency's, and of the force's return after a standstill."""
LONG = 60.0
"""Seconds after which a wait has failed."""


def command(path, *overrides):
    changes = [word for change in (*PRESSED, *overrides) for word in ("--set", change)]
    options = ["--headless", "--device", "mock", "--duration", "100", "--record", str(path)]
    return [sys.executable, "-m", "palpo", "run", "probe", *options, *changes]


def hear_interrupts():
    """What is started by a shell in the background is born deaf to SIGINT, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(path, *overrides, **options):
    """`palpo run` with the probe pressed on its block."""
    program = subprocess.Popen(
        command(path, *overrides), stderr=subprocess.PIPE, text=True, cwd=ROOT,
        **{"preexec_fn": hear_interrupts} | options,
    )  # fmt: skip
    # whoever opens the recording before the run begins keeps it from being made
    for line in program.stderr:
        if "first tick" in line:
            until_pressed(path)
            return program
    raise AssertionError(f"the run ended with status {program.wait()}")


def until_pressed(path):
    end = time.monotonic() + LONG
    while not len(pressed(path)):
        assert time.monotonic() < end
        time.sleep(0.05)


def pressed(path):
    """Ticks at which the hand felt the block, of those that are in the recording by now."""
    try:
        columns = read_recording(path).columns
    except ValueError:
        return []
    return np.flatnonzero(np.abs(columns["sent_y"]) > 0.2) if "sent_y" in columns else []
