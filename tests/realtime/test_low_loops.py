"""Several slow loops in threads: a recording knows which frame of which was adopted when."""

import numpy as np
import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import run
from palpo.haptics.recording import read_recording

SCENE = """
title = "a ball on a quick soft box on a slow block"

[[bodies]]
name = "block"
kind = "tets"
rate_hz = 20
geometry = { kind = "block", size = [0.06, 0.02, 0.06], divisions = [4, 2, 4] }
placement = { position = [0, -0.01, 0] }
material = "soft-tissue"
fixed = [{ box = [[-1, -0.0201, -1], [1, -0.0199, 1]] }]

[[bodies]]
name = "box"
kind = "tets"
rate_hz = 100
geometry = { kind = "block", size = [0.03, 0.02, 0.03], divisions = [2, 1, 2] }
placement = { position = [0.001, 0.0106, 0.002] }
material = "soft-tissue"

[[bodies]]
name = "ball"
kind = "rigid"
rate = "high"
geometry = { kind = "sphere", radius = 0.008 }
placement = { position = [0.002, 0.0305, 0.001] }
mass = 0.03

[tool]
body = "ball"

[device]
path = [
    [0, 0.002, 0.0305, 0.001], [0.4, 0.002, 0.026, 0.001],
    [1.0, 0.004, 0.026, 0.001], [1.4, 0.002, 0.032, 0.001],
]

[workspace]
offset = [0.002, 0.0305, 0.001]
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "stack.toml").write_text(SCENE)
    path = folder / "threads.h5"
    return path, run(Options(str(folder / "stack.toml"), device="mock", record=path, baseline=False))


def test_each_loop_makes_frames_of_its_own_and_each_frame_is_adopted_in_its_order(recorded):
    path, outcome = recorded
    assert outcome.status == FINISHED, outcome.result["exit_reason"]
    steps = read_recording(path).low_steps
    loops = steps["loop"].astype(int)
    assert set(loops) == {0, 1}
    for loop in (0, 1):
        begin, adopted = (steps[k][loops == loop] for k in ("begin_tick", "adopted_tick"))
        assert len(begin) > 3
        # the last frame may come when the servo has already faded
        assert (adopted[:-1] >= 0).all()
        assert (np.diff(adopted[adopted >= 0]) > 0).all()
        assert (adopted[:-1] >= begin[:-1]).all() and (begin[1:] >= adopted[:-1]).all()


def test_a_run_with_several_loops_in_threads_is_repeated_bit_for_bit(recorded):
    again = replay(recorded[0])
    assert again.result["replay"]["equal"], again.result["exit_reason"]
    assert again.result["replay"]["ticks"] == len(read_recording(recorded[0]).columns["tick"])
