"""Nothing is compiled while a scene runs; where something is all the same, it is told."""

import threading

import pytest
from numba import njit
from numba.core import event

from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.app.systems.system import find_system
from palpo.physics.numerics.compilations import COMPILATIONS
from tests.scenes.runs import called_beside_ahead

SHORT = Options("hapco-soft", device="mock", baseline=False, lock_step=True, duration=0.05)
OF_EACH_MAKE = {
    "multirate": (
        "wire", "probe", "organ", "stiffening", "fold", "biopsy", "two-hands", "mixed-cup", "mixed-snap",
        "mixed-press",
    ),
    "hapco": ("hapco-soft", "hapco-2008-both", "hapco-liver", "hapco-thousand"),
    "snap": ("snap", "snap-cap"),
    "suction": ("suction-toy", "suction-arm", "suction-bellows", "suction-gripper", "suction-cube"),
}  # fmt: skip
"""Scenes of which each has bodies, contacts, solvers or air that the others have not."""


@pytest.mark.slow
@pytest.mark.parametrize("system", OF_EACH_MAKE)
def test_every_kernel_that_a_scene_calls_is_compiled_ahead(system, tmp_path):
    """Run, looked at, changed live, recorded, gone back to, one repeated; all scenes: in studies."""
    assert called_beside_ahead("scenes", system, tmp_path, OF_EACH_MAKE[system]) == {}


@pytest.mark.slow
def test_every_kernel_that_the_first_scene_calls_is_compiled_for_it_alone(tmp_path):
    """In a window, changed live and kept, too; `palpo demo` waits for no more than that."""
    assert called_beside_ahead("first", "multirate", tmp_path, [find_system("multirate").first]) == {}


def test_what_is_compiled_while_a_scene_runs_is_named_in_its_result():
    session = Session(SHORT)
    session.prepare()
    fresh = njit(lambda x: x + 1)
    fresh.py_func.__name__ = "fresh"
    done = session.run(lambda state, new: fresh(1))
    assert done.result["compiled"] == ["fresh"]
    assert any("1 kernels were compiled during the run" in told for told in done.result["warnings"])
    again = Session(SHORT)
    again.prepare()
    assert again.run(lambda state, new: fresh(1)).result["compiled"] == []


def test_the_panel_names_the_kernel_that_is_being_compiled():
    """Seen from another thread while numba is at it, and no longer than that."""
    session, seen = Session(SHORT), []

    class Look(event.Listener):
        def on_start(self, _):
            thread = threading.Thread(target=lambda: seen.append(session.state))
            thread.start()
            thread.join()

        def on_end(self, _):
            pass

    def inner(x):
        return x + 1

    inner = njit(inner)

    def outer(x):
        return inner(x)

    with event.install_listener("numba:compile", Look()):
        njit(outer)(1)
    assert seen == ["compiling outer", "compiling outer"]
    assert session.state == ""
    assert COMPILATIONS.names[-2:] == ["outer", "inner"]
