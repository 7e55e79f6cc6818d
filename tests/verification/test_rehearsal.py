"""What is called before a run, so that no function is compiled or loaded while it goes on."""

import subprocess
import sys
from pathlib import Path

FIRST_CAVITY = """
from numba.core.dispatcher import Dispatcher

from palpo.app.systems.multirate.rehearsal import rehearse_air
from tests.verification.small_scenes import small_scene
from tests.verification.test_member_cavities import FREE_BLOCK

rehearse_air()
scene, met = small_scene(FREE_BLOCK), []
plain = Dispatcher.compile
Dispatcher.compile = lambda self, sig: met.append(self.py_func.__qualname__) or plain(self, sig)
scene.air.find()
print(len(scene.air.identity), *met)
"""


def test_first_cavity_of_any_cup_meets_no_function_that_was_not_called_before():
    """In a process of its own, which has called nothing else; another cup, on a block."""
    told = subprocess.run(
        [sys.executable, "-c", FIRST_CAVITY],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == ["1"]
