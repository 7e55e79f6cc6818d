"""Sounds of events: what they are, which are begun, and what is said where there can be none."""

import sys
import types

import numpy as np
import pytest

from palpo.app.runtime import sound
from palpo.app.runtime.sound import MISSING, RATE, TONES, VOICES, VOLUME, Ears, Mixer, sound_of, speaker
from palpo.haptics.cues import CLICK, CONTACT, KINDS
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.physics.exchange.port import TOUCHES
from tests.servo.hand import external, move
from tests.servo.wall import make_wall


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_sound_begins_and_ends_without_a_jump_and_dies_away(kind):
    samples = sound_of(kind)
    assert np.abs(samples).max() <= VOLUME
    assert abs(samples[0]) == 0.0
    n = len(samples) // 5
    first, last = np.abs(samples[:n]).max(), np.abs(samples[-n:]).max()
    # within the fifth time constant nothing is above e^-4
    assert last <= VOLUME * np.exp(-4.0) < first


def test_a_click_is_higher_than_a_contact():
    def pitch(kind):
        samples = sound_of(kind)
        return np.argmax(np.abs(np.fft.rfft(samples, RATE)))

    assert pitch(CONTACT) == pytest.approx(TONES[CONTACT].frequency, rel=0.1)
    assert pitch(CLICK) == pytest.approx(TONES[CLICK].frequency, rel=0.1)


def test_sounds_add_up_each_as_loud_as_its_event_and_none_is_cut():
    mixer = Mixer()
    whole = sound_of(CONTACT)
    mixer.play(CONTACT, 0.5)
    parts = [mixer.take(100)]
    mixer.play(CONTACT, 1.0)
    parts += [mixer.take(177) for _ in range(len(whole) // 177 + 2)]
    heard = np.concatenate(parts)
    wanted = np.zeros(len(heard), np.float32)
    wanted[: len(whole)] += np.float32(0.5) * whole
    wanted[100 : 100 + len(whole)] += whole
    assert heard == pytest.approx(wanted, abs=1e-7)
    assert not mixer.take(50).any()


def test_many_sounds_stay_within_full_scale():
    mixer = Mixer()
    for _ in range(5 * VOICES):
        mixer.play(CLICK, 2.0)
    assert np.abs(mixer.take(4000)).max() <= 1.0


def test_of_too_many_the_oldest_end():
    mixer = Mixer()
    for _ in range(VOICES + 3):
        mixer.play(CONTACT, 0.1)
    mixer.play(CLICK, 0.5)
    wanted = 0.5 * sound_of(CLICK)[:400] + (VOICES - 1) * 0.1 * sound_of(CONTACT)[:400]
    assert mixer.take(400) == pytest.approx(wanted, abs=1e-6)


def test_each_hand_is_heard():
    def hand(*led):
        cues = types.SimpleNamespace(counts=np.zeros(len(KINDS), int), strength=np.full(len(KINDS), 0.5))
        return types.SimpleNamespace(cues=cues, led=led)

    second = hand()
    first = hand(second)
    for one in (first, second):
        mixer = Mixer()
        ears = Ears(mixer)
        ears.listen(first)
        one.cues.counts[CLICK] += 1
        ears.listen(first)
        assert mixer.take(100) == pytest.approx(0.5 * sound_of(CLICK)[:100])


def test_what_a_servo_counts_is_heard_once_and_not_what_was_before():
    class Heard(Mixer):
        def __init__(self):
            super().__init__()
            self.played = []

        def play(self, kind, strength):
            self.played.append((kind, strength))

    wall = make_wall(external(), 0.0, limits=make_limits(1.0, fades=AT_ONCE))

    def touch():
        wall.port.status["felt"][0] = 0
        move(wall.servo, np.zeros((60, 3)))
        wall.port.status["felt"][0] = TOUCHES
        move(wall.servo, np.zeros((2, 3)), velocity=[0.05, 0, 0])

    mixer = Heard()
    ears = Ears(mixer)
    touch()
    ears.listen(wall.servo)
    assert not mixer.played
    touch()
    for _ in range(3):
        ears.listen(wall.servo)
    assert len(mixer.played) == 1 and mixer.played[0][0] == CONTACT and 0.25 < mixer.played[0][1] < 1.0
    ears.forget()
    touch()
    ears.listen(wall.servo)
    assert len(mixer.played) == 1


def test_without_the_library_or_a_card_one_sentence_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "miniaudio", None)
    assert speaker(Mixer()) == (None, MISSING)

    class NoCard:
        def __init__(self, **_):
            raise RuntimeError("failed to init device", -401)

    library = types.SimpleNamespace(PlaybackDevice=NoCard, SampleFormat=types.SimpleNamespace(FLOAT32=5))
    monkeypatch.setitem(sys.modules, "miniaudio", library)
    assert speaker(Mixer()) == (
        None,
        "there are no sounds: no sound card can be opened (failed to init device)",
    )


def test_the_card_asks_for_samples_and_gets_them(monkeypatch):
    made = []

    class Card:
        def __init__(self, output_format, nchannels, sample_rate, buffersize_msec):
            self.options = output_format, nchannels, sample_rate
            self.closed = False
            made.append(self)

        def start(self, source):
            self.source = source

        def close(self):
            self.closed = True

    library = types.SimpleNamespace(PlaybackDevice=Card, SampleFormat=types.SimpleNamespace(FLOAT32=5))
    monkeypatch.setitem(sys.modules, "miniaudio", library)
    mixer = Mixer()
    opened, why = speaker(mixer)
    assert not why and made[0].options == (5, 1, sound.RATE)
    mixer.play(CLICK, 1.0)
    assert made[0].source.send(64) == pytest.approx(sound_of(CLICK)[:64])
    assert len(made[0].source.send(100)) == 100
    opened.close()
    assert made[0].closed


def test_the_library_itself_plays_where_it_is_installed():
    pytest.importorskip("miniaudio", reason="needs palpo[sound]")
    mixer = Mixer()
    opened, why = speaker(mixer)
    # a machine without a sound card has words for it, or a card that nobody hears
    assert (opened is None) == bool(why)
    if opened is not None:
        mixer.play(CLICK, 1.0)
        opened.close()
