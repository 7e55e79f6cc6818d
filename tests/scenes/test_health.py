"""The light that says how a run fares: the gravest thing, in one word and a sentence."""

from itertools import combinations

import numpy as np
import pytest

from palpo.app.runtime.health import CAUSES, Signs, light
from palpo.app.runtime.options import Options
from palpo.app.runtime.readings import Readings
from palpo.app.runtime.session import Session
from palpo.haptics.drivers import servo_run
from palpo.haptics.flags import CLAMPED, EMERGENCY, FADING, FLAG_NAMES, STALE
from palpo.physics.exchange.snapshot import SceneState

SOUND = Signs(ticks=1000, rates="the hand 1000 Hz")
GRAVE = {"plain": 0, "good": 0, "warn": 1, "bad": 2}
TROUBLES = (
    {"flags": STALE | FADING},
    {"unrecorded": "run.h5: recording stopped"},
    {"paused": True},
    {"waited": 22},
    {"flags": FADING},
    {"late": 40},
    {"slower": "slow loop at 20 of 50 Hz"},
)
WORDS = ("fading", "recording failed", "paused", "waiting", "fading in", "late", "slower rates")


def test_a_sound_run_is_in_real_time_and_says_its_rates():
    assert light(SOUND) == ("real time", "the hand 1000 Hz", "good")
    # limits at work are no trouble of the run
    assert light(SOUND._replace(flags=CLAMPED, late=9)).word == "real time"


@pytest.mark.parametrize(("signs", "word"), list(zip(TROUBLES, WORDS, strict=True)))
def test_each_trouble_has_its_word_and_its_sentence(signs, word):
    told = light(SOUND._replace(**signs))
    assert told.word == word
    assert told.level != "good"
    assert len(told.sentence.split()) > 2


@pytest.mark.parametrize("flag", CAUSES)
def test_a_fading_force_says_why(flag):
    told = light(SOUND._replace(flags=flag | FADING))
    assert told.level == "bad"
    assert FLAG_NAMES[flag] in told.sentence
    assert (told.word == "force off") == (flag == EMERGENCY)


def test_a_second_trouble_never_makes_the_light_better():
    for first, second in combinations(TROUBLES, 2):
        both = SOUND._replace(**first)._replace(**second)
        both = both._replace(flags=first.get("flags", 0) | second.get("flags", 0))
        if both.paused:
            continue  # what came before the pause is past
        alone = [GRAVE[light(SOUND._replace(**signs)).level] for signs in (first, second)]
        assert GRAVE[light(both).level] == max(alone), (first, second)


def test_a_recording_that_stops_puts_its_light_out(tmp_path):
    session = Session(
        Options("probe", device="mock", duration=1.0, record=tmp_path / "run.h5", baseline=False)
    )
    session.prepare()
    try:
        readings = Readings(session)
        readings.look()
        assert readings.light().word != "recording failed"
        session.recorder.error = "run.h5: recording stopped after 7 rows, no room for more"
        readings.look()
        assert readings.light()[::2] == ("recording failed", "bad")
        assert "no room" in readings.light().sentence
    finally:
        assert not session.run().status
    assert any("no room" in words for words in session.notes)


def test_only_whole_ticks_that_waited_are_told(monkeypatch):
    for name in ("WINDOW", "RENEWED"):
        monkeypatch.setattr(f"palpo.app.runtime.readings.{name}", 0.0)
    session = Session(Options("probe", ("rates.adapt=false",), device="mock", baseline=False, window=True))
    session.prepare()
    rig, readings = session.rig, Readings(session)

    def told(ticks):
        servo_run(rig.servo, ticks)
        session.trace.take()
        readings.look()
        state = SceneState(np.zeros((0, 3)), counters=np.zeros(4, int))
        said = {one.label: one.text for one in readings.groups(state)["exchange"]}
        return said["ticks paused for a frame"], readings.light()

    assert session.slow.first()
    count, light = told(rig.ratio)
    assert count == "0" and light.word != "waiting"
    # as it is found in the middle of a tick, and when a tick ends between two looks
    for torn in (1, -1):
        rig.high.ticks["calls"][0] += torn
        readings.look()
        count, light = told(0)
        assert count == "0" and light.word != "waiting"
        rig.high.ticks["calls"][0] -= torn
    # nobody brings the next frame
    for _ in range(50 * rig.ratio):
        count, light = told(1)
        if int(count):
            break
    assert int(count) == rig.waited == 1
    assert light.word == "waiting" and "paused for 1 of the last 1 " in light.sentence
    count, light = told(0)
    assert count == "1" and light.word != "waiting"
    rig.low.close()
