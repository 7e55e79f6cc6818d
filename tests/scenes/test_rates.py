"""Runs whose low rate follows a scripted machine: nothing waits, and a replay repeats them bit for bit."""

import numpy as np
import pytest

from palpo.app.runtime.replay import replay
from palpo.haptics.recording import read_recording
from tests.scripted_time import Duration, ScriptedTime

PROBE = ("bodies.block.geometry.divisions=[6, 2, 6]",)
SCENES = {
    "probe": PROBE,
    "hapco-block": ("loops=multirate",),
    "suction-cube": (),
    "snap": (),
}


def busy(slow: float, since: float, until: float) -> Duration:
    """Low steps that take so long [s] in that time, and 2 ms else."""
    return lambda now, budget: slow if since <= now < until else 2e-3


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_whose_rate_changes_waits_for_nothing_and_is_repeated_bit_for_bit(scene, tmp_path):
    """Down to steps of 60 ms and back: each change is in the recording, and all columns come out the same."""
    path = tmp_path / "run.h5"
    made = ScriptedTime(scene, SCENES[scene], busy(0.06, 0.8, 1.8), path, 4.5)
    made.run()
    periods = [budget.period for budget in made.budgets]
    assert made.waited == 0
    assert max(periods) == 80 and periods[0] == periods[-1] == made.rig.ratio
    assert made.pacer.misses <= 3
    recording = read_recording(path)
    assert recording.low_steps["period_ticks"].tolist()[1:] == periods
    assert np.ptp(recording.columns["force_x"]) + np.ptp(recording.columns["force_y"]) > 0.1
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]
