"""The light that says how a run fares: the gravest thing, in one word and a sentence."""

from itertools import combinations

import pytest

from palpo.app.runtime.health import CAUSES, Signs, light
from palpo.app.runtime.readings import Readings
from palpo.app.runtime.session import Options, Session
from palpo.haptics.limits import CLAMPED, EMERGENCY, FADING, FLAG_NAMES, STALE

SOUND = Signs(ticks=1000, rates="the hand 1000 Hz")
GRAVE = {"plain": 0, "good": 0, "warn": 1, "bad": 2}
TROUBLES = (
    {"flags": STALE | FADING},
    {"unrecorded": "run.h5: recording stopped"},
    {"paused": True},
    {"waited": 22},
    {"flags": FADING},
    {"late": 40},
    {"slower": "low rate 20 of 50 Hz"},
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
