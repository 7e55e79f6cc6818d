"""Every shipped scene without a clock: recorded, changed, exported, reported, repeated."""

from collections.abc import Callable

import numpy as np
import pytest

from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.report.publish import publish
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.physics.contact.io import read_problem
from tests.scenes.changed_runs import SCENES, assert_repeated, changes

LASTS = 0.3
"""Seconds of a run: fifteen slow steps and more, of a large body three."""


def at_every_low_step(session: Session, do: Callable[[], object]) -> None:
    """Call `do` before the changes of each slow step are taken."""
    take = session.slow.take_changes

    def hook() -> None:
        do()
        take()

    session.slow.take_changes = hook


@pytest.mark.parametrize("scene", SCENES)
def test_it_is_changed_exported_reported_and_repeated(scene, tmp_path):
    path, problem = tmp_path / "run.h5", tmp_path / "problem.h5"
    session = Session(
        Options(scene, device="mock", lock_step=True, duration=LASTS, record=path, export=problem)
    )
    session.prepare()
    asked = changes(session)
    at_once = -(-len(asked) // max(1, round(0.8 * LASTS / (session.rig.ratio * session.rig.dt))))
    waiting = list(asked)

    def change() -> None:
        for key, value in waiting[:at_once]:
            session.change(key, value)
        del waiting[:at_once]

    at_every_low_step(session, change)
    done = session.run()
    assert not waiting
    assert done.result["exit_reason"] == "finished"
    if "export" in done.result:
        assert done.status == FINISHED
        assert np.isfinite(read_problem(problem).w).all()
    else:
        # at the last tick nothing touches, and the run says so
        assert done.status == FAILED
        assert any("--export" in warning for warning in done.result["warnings"])
    page = publish(tmp_path / "report", done)
    assert page.stat().st_size > 1000
    assert_repeated(path, asked)
