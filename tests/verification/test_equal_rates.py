"""A slow rate that is the servo's own: both step sizes are one, and no forces come late."""

import numpy as np
import pytest

from palpo.physics.reduction.soft_reduction import SoftReduction
from palpo.physics.systems.multirate.krylov import Krylov
from palpo.studies.runs import SceneDrive
from tests.verification.small_scenes import BALL_ON_BLOCK, lock_step, resting, straight

ABOVE, PRESSED = (0.003, 0.0088, -0.002), (0.003, 0.0068, -0.002)


@pytest.mark.parametrize("solver", ["direct", "multigrid"])
def test_two_equal_steps_have_one_factor_that_is_made_once(solver, monkeypatch):
    """Factors of unlike steps are made side by side: two threads at the same one would spoil it."""
    run = lock_step(BALL_ON_BLOCK, "rates.low_hz=1000", f'bodies.block.solver="{solver}"', latency="none")
    low, made = run.low, list[float]()
    assert isinstance(low, Krylov)
    reduction = low.reductions[0]
    assert isinstance(reduction, SoftReduction) and reduction.shifts[0] == reduction.shifts[1]
    factor, prepare = reduction.body.factor, reduction.prepare

    def counted(h: float):
        made.append(h)
        return factor(h)

    def prepared(*args) -> None:
        prepare(*args)
        assert len(made) == len(set(made)) and reduction.factors[0] is reduction.factors[1]
        made.clear()

    monkeypatch.setattr(reduction.body, "factor", counted)
    monkeypatch.setattr(reduction, "prepare", prepared)
    trace = run.run(np.vstack([straight(ABOVE, PRESSED, 60), resting(PRESSED, 60)]))
    run.close()
    assert len(trace["force"]) == 120, run.broken


@pytest.mark.parametrize("before", [0, 3])
def test_a_run_whose_low_step_breaks_down_keeps_the_ticks_made_before_and_says_why(before, tmp_path):
    scene = tmp_path / "ball.toml"
    scene.write_text(BALL_ON_BLOCK)
    with SceneDrive(str(scene)) as run:
        low, made = run.lock.low, before * run.lock.ratio
        steps = [0]
        make = low.step

        def step() -> int:
            # the first two are made before the first tick
            if steps[0] == before + 1:
                low.members[0].body.x[:] = np.nan
            steps[0] += 1
            return make()

        low.step = step  # type: ignore[method-assign]
        trace = run.go(resting(ABOVE, 200))
    assert run.stopped and run.lock.broken
    assert made <= len(trace["force"]) < 200
