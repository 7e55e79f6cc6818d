"""Laws of the limiter: whatever is commanded, what is sent is finite, bounded, and continuous."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import CLAMPED, DEFORMED, FADING, NON_FINITE, RATE_LIMITED, STALE
from palpo.haptics.limiter import has_faded, limit_force, make_limit_state, request_fade, stop_reason
from palpo.haptics.limits import AT_ONCE, Fades, make_limits
from palpo.haptics.reasons import RUNNING, STOP_NON_FINITE, STOP_REQUESTED, STOP_TICK_FAILED
from palpo.physics.exchange.port import OK, SHAPE_LOST, WAITING, make_port

TOUCH_FORCE = 3.3
ROUNDING = 1e-12


def send(state, params, commands, ages=None, codes=None, told=None):
    """Forces sent (n, 3) and flags (n,) for a sequence of commands."""
    port, out = make_port(), np.zeros(3)
    sent, flags = np.empty((len(commands), 3)), np.empty(len(commands), dtype=int)
    for k, command in enumerate(commands):
        port.force[:] = command
        port.status["age"][0] = 0 if ages is None else ages[k]
        port.status["code"][0] = OK if codes is None else codes[k]
        port.status["flags"][0] = 0 if told is None else told[k]
        flags[k] = limit_force(state, params, port, out)
        sent[k] = out
    return sent, flags


def at_full_gain(**options):
    params = make_limits(TOUCH_FORCE, fades=AT_ONCE, **options)
    return params, make_limit_state(params)


@settings(deadline=None, max_examples=60)
@given(
    arrays(np.float64, (80, 3), elements=st.floats(allow_nan=True, allow_infinity=True)),
    arrays(np.int64, 80, elements=st.integers(0, 600)),
)
def test_any_command_whatever_is_sent_finite_bounded_and_without_jumps(commands, ages):
    params = make_limits(TOUCH_FORCE)
    sent, _ = send(make_limit_state(params), params, commands, ages)
    assert np.isfinite(sent).all()
    assert np.linalg.norm(sent, axis=1).max() <= TOUCH_FORCE + ROUNDING
    # the product rule: the force moves by max_step, the gain by the steepest of its ramps
    jump = params.max_step + TOUCH_FORCE * params.fade_out_step
    assert np.linalg.norm(np.diff(sent, axis=0), axis=1).max() <= jump + ROUNDING


def test_the_clamp_keeps_the_direction_and_is_counted():
    params, state = at_full_gain(max_rate=1e9)
    sent, flags = send(state, params, [[30.0, 40.0, 0.0]])
    assert sent[0] == pytest.approx([0.6 * TOUCH_FORCE, 0.8 * TOUCH_FORCE, 0.0])
    assert flags[0] & CLAMPED and state.counts["clamped"][0] == 1


def test_a_step_of_force_ramps_at_the_rate_and_arrives():
    params, state = at_full_gain(max_rate=100.0)
    sent, flags = send(state, params, [[0.95, 0.0, 0.0]] * 15)
    assert np.diff(sent[:9, 0]) == pytest.approx(0.1)
    assert sent[9:, 0] == pytest.approx(0.95)
    assert state.counts["rate_limited"][0] == np.count_nonzero(flags & RATE_LIMITED) == 9


def test_the_start_fades_in_linearly_over_its_time():
    params = make_limits(TOUCH_FORCE, max_rate=1e9, fades=Fades(0.5, start_force=1.0))
    sent, flags = send(make_limit_state(params), params, [[1.0, 0.0, 0.0]] * 600)
    assert sent[:500, 0] == pytest.approx(np.arange(1, 501) / 500)
    assert (sent[500:, 0] == 1.0).all() and not (flags[500:] & FADING).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_force_that_is_not_finite_fades_the_last_good_one_within_50_ms_for_good(bad):
    params, state = at_full_gain()
    send(state, params, [[0.0, 2.0, 0.0]] * 5)
    sent, flags = send(state, params, [[0.0, bad, 0.0]] + [[0.0, 2.0, 0.0]] * 99)
    assert sent[:50, 1] == pytest.approx(2.0 * (1.0 - np.arange(1, 51) / 50))
    assert (sent[49:] == 0.0).all()
    assert flags[0] & NON_FINITE and state.counts["non_finite"][0] == 1
    assert has_faded(state) and stop_reason(state) == STOP_NON_FINITE


def test_a_stop_request_and_a_failed_tick_fade_within_50_ms_and_keep_the_first_cause():
    params, state = at_full_gain()
    send(state, params, [[1.0, 0.0, 0.0]])
    request_fade(state, STOP_REQUESTED)
    sent, _ = send(state, params, [[1.0, 0.0, 0.0]] * 50, codes=[OK] * 10 + [3] * 40)
    assert (np.diff(sent[:, 0]) < 0.0).all() and sent[-1, 0] == 0.0
    assert has_faded(state) and stop_reason(state) == STOP_REQUESTED

    params, state = at_full_gain()
    send(state, params, [[1.0, 0.0, 0.0]] * 50, codes=[3] * 50)
    assert has_faded(state) and stop_reason(state) == STOP_TICK_FAILED


def test_the_watchdog_fades_past_the_age_within_50_ms_and_recovers_smoothly():
    params, state = at_full_gain(max_rate=1e9)
    ages = np.concatenate([np.arange(400), np.zeros(300, dtype=int)])
    sent, flags = send(state, params, [[1.0, 0.0, 0.0]] * 700, ages)
    force = sent[:, 0]
    assert (force[:251] == 1.0).all(), "a frame of exactly the limit's age is still good"
    assert force[300] == 0.0 and (np.diff(force[250:301]) < 0.0).all()
    assert (force[301:400] == 0.0).all()
    assert np.diff(force[399:650]) == pytest.approx(1.0 / 250)
    assert (force[650:] == 1.0).all()
    assert state.counts["watchdog_trips"][0] == 1
    assert np.count_nonzero(flags & STALE) == 149
    assert stop_reason(state) == RUNNING


def test_no_rate_limit_delays_a_fade():
    params, state = at_full_gain(max_rate=1.0)
    send(state, params, [[TOUCH_FORCE, 0.0, 0.0]] * 4000)
    request_fade(state, STOP_REQUESTED)
    sent, _ = send(state, params, [[-TOUCH_FORCE, 0.0, 0.0]] * 50)
    assert (sent[-1] == 0.0).all()


@pytest.mark.parametrize("key", ["max_force", "max_rate", "fade_out", "max_age", "emergency", "start_force"])
def test_a_limit_that_is_not_positive_is_refused_by_name(key):
    with pytest.raises(HapticsError, match=key):
        if key in Fades._fields:
            make_limits(1.0, fades=Fades(**{key: 0.0}))
        else:
            make_limits(**({"max_force": 1.0} | {key: 0.0}))


def test_after_a_shape_was_lost_the_force_fades_and_comes_back_once_the_hand_has_let_go():
    """In `fade_out`, however soon a new model answers; not before the command is below `start_force`."""
    lost, pressed, off = 10, 400, 700
    params = make_limits(TOUCH_FORCE, fades=Fades(fade_in=0.0, fade_out=0.05, recovery=0.25, start_force=0.5))
    state = make_limit_state(params)
    command = np.zeros((pressed + off + 1, 3))
    command[:pressed, 0], command[pressed:, 0] = 2.0, 0.4
    told = np.zeros(len(command), int)
    told[100 : 100 + lost] = WAITING | SHAPE_LOST
    sent, flags = send(state, params, command, told=told)
    assert sent[99, 0] == 2.0
    assert (np.diff(sent[99:150, 0]) < 0.0).all() and not sent[149:pressed].any()
    assert (flags[100:pressed] & DEFORMED > 0).all() and not (flags[pressed + 1 :] & DEFORMED).any()
    # the force that was held falls at its rate to what is commanded now
    assert (np.diff(sent[pressed + 3 : pressed + 249, 0]) > 0.0).all() and sent[-1, 0] == 0.4
    assert state.counts["shapes_lost"][0] == 1
    assert stop_reason(state) == RUNNING
