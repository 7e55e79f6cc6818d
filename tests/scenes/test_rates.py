"""Runs whose slow rate follows a scripted machine: nothing waits, and a replay repeats them bit for bit."""

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
    """Slow steps that take so long [s] in that time, and 2 ms else."""
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


def test_what_no_rate_can_keep_costs_columns_and_then_contacts_but_no_energy(tmp_path):
    """Steps that fit 10 Hz only with few columns: nothing waits, and the hand gets back what it paid at most.

    The servo's hold leaks a little at any rate of frames: the bound is that of a run at the scene's own rate.
    """
    own = ("safety.fade_in=0", 'safety.passivity="observe"')

    def heavy(now, budget):
        return 0.05 + 0.08 * budget.columns + 0.02 * budget.contacts if now < 2.5 else 2e-3

    given = []
    for takes in (heavy, busy(0.0, 0.0, 0.0)):
        made = ScriptedTime("probe", PROBE + own, takes, tmp_path / "run.h5", 6.0)
        made.run()
        assert made.waited == 0
        given.append(read_recording(tmp_path / "run.h5").columns["energy_J"])
        if takes is heavy:
            shares = [budget.columns for budget in made.budgets]
            assert min(shares) == 0.25 and all(b.period == 100 for b in made.budgets if b.columns < 1.0)
    adapted, exact = given
    paid = -exact.min()
    assert adapted.max() <= exact.max() + 0.01 * paid
    assert abs(adapted[-1] - exact[-1]) <= 0.1 * paid


def test_a_rate_that_was_asked_for_is_kept_and_its_misses_are_counted(tmp_path):
    """`rates.adapt = false`: steps of 30 ms at 50 Hz are late, every one, and the period stays."""
    made = ScriptedTime("snap", ("rates.adapt=false",), busy(0.03, 0.0, 1.0), tmp_path / "run.h5", 1.5)
    made.run()
    assert {budget.period for budget in made.budgets} == {made.rig.ratio}
    assert made.pacer.misses == pytest.approx(1.0 / 0.03, abs=2)


def test_steps_that_fit_ten_hertz_lose_no_contact(tmp_path):
    """`wire` through its landing with steps of 80 ms: nothing waits, no pair is lost, and nothing penetrates
    by more than the contact distance."""
    made = ScriptedTime("wire", (), lambda now, budget: 0.08, tmp_path / "run.h5", 7.0)
    made.run()
    depth = read_recording(tmp_path / "run.h5").columns["depth"]
    assert made.budgets[-1].period == 100
    assert made.waited == 0 and made.rig.low.lost_pairs == 0
    assert depth.max() < made.session.spec.contact.distance
