"""What frames carry for the picture: strain when it is asked for, and the time of their publication."""

import time

import numpy as np
import pytest

from app.build import build_scene
from app.visual import COLOURED, SMALLEST_STRAIN, Visual, colour_range
from config.load import load_scene
from physics.exchange.snapshot import COUNTERS, NO_SCALAR, STRAIN
from physics.systems.lock_step import LockStep

NOTHING = np.zeros(len(COUNTERS), np.int64)


@pytest.fixture(scope="module")
def visual():
    spec = load_scene("wire")
    lock = LockStep(build_scene(spec), "krylov", spec.interface.latency)
    yield Visual(spec, lock.scene, lock.high)
    lock.low.close()


def shown(visual):
    visual.publish(visual.take_tool(), 0, NOTHING)
    return visual.latest()[0]


def test_frames_carry_strain_only_when_asked(visual):
    kinds = []
    for visual.strain in (False, True, False):
        kinds.append(shown(visual).scalar_kind)
    assert kinds == [NO_SCALAR, STRAIN, NO_SCALAR]


def test_a_stretched_body_shows_its_strain_and_the_others_none(visual):
    soft = next(d for d in visual.geometry.drawables if d.name == "cylinder")
    body = next(m for m in visual.members.values() if m.body.name == "cylinder").body
    before, visual.strain = body.x.copy(), True
    body.x[:] = before * [1.2, 1.0, 1.0]
    state = shown(visual)
    np.testing.assert_allclose(state.scalar[soft.span], (1.2**2 - 1) / 3, rtol=1e-9)
    others = np.ones(len(state.scalar), bool)
    others[soft.span] = False
    assert np.isnan(state.scalar[others]).all()
    assert state.scalar_range[0] == 0.0
    assert (1.2**2 - 1) / 3 <= state.scalar_range[1] <= 0.5
    body.x[:] = before
    assert shown(visual).scalar[soft.span].max() < 1e-12
    visual.strain = False


def test_frames_of_a_timed_run_carry_the_clock_and_others_nothing(visual):
    assert shown(visual).published_ns == 0
    visual.timed, before = True, time.perf_counter_ns()
    assert before <= shown(visual).published_ns <= time.perf_counter_ns()
    visual.timed = False


@pytest.mark.parametrize("scale", [0.0011, 0.02, 0.3, 7.0])
def test_a_colour_bar_ends_at_a_round_number_that_holds_most_values_and_is_not_far_too_large(scale):
    values = scale * np.linspace(0.0, 1.0, 1001)
    upper = colour_range(SMALLEST_STRAIN, values)
    mantissa = upper / 10 ** np.floor(np.log10(upper * (1 + 1e-9)))
    assert min(abs(mantissa - k) for k in (1, 2, 5)) < 1e-9
    assert (values <= upper).mean() >= COLOURED
    assert upper <= 2.5 * scale


def test_a_colour_bar_does_not_flicker_when_its_values_hover_at_a_round_number():
    upper, ends = SMALLEST_STRAIN, []
    for strain in 0.2 + 0.01 * np.sin(np.arange(100)):
        upper = colour_range(upper, np.full(10, strain))
        ends.append(upper)
    # it may grow once, and then stays
    assert len(set(ends[10:])) == 1


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf], [0.0], [1e-12]])
def test_a_colour_bar_has_a_length_whatever_there_is_to_show(values):
    assert colour_range(1.0, np.array(values, float)) == SMALLEST_STRAIN
