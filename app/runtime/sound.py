"""Short sounds at contact, slip, click and loss of suction, as the servo counts them.

The servo counts an event in the tick in which it comes (palpo.haptics.cues); whoever draws looks at the
counts once a picture, and starts its sound. A sound is a tone that decays, with some noise,

    s(t) = e^(-t / tau) ((1 - n) sin(2 pi f t) + n noise(t)) (1 - e^(-t / 1 ms)),

as what was hit, rubbed or pulled off rings. It goes out through miniaudio, where that is installed.
"""

import importlib
import os
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.cues import CLICK, CONTACT, KINDS, RELEASE, SLIP
from palpo.haptics.servo import Servo

Samples = NDArray[np.float32]

RATE = 44100
"""Samples a second."""
BUFFER = 20
"""Milliseconds that the sound card has in hand."""
VOLUME = 0.5
"""Of the strongest event, over full scale."""
RISE = 1e-3
VOICES = 8
"""Sounds at a time."""
MISSING = "there are no sounds: miniaudio is not installed; pip install 'palpo[sound]'"


class Tone(NamedTuple):
    """Frequency f [Hz], time constant tau [s], share of noise n."""

    frequency: float
    decay: float
    noise: float


TONES = {
    CONTACT: Tone(180.0, 0.030, 0.10),
    SLIP: Tone(420.0, 0.050, 0.90),
    CLICK: Tone(1900.0, 0.012, 0.25),
    RELEASE: Tone(90.0, 0.080, 0.45),
}


def sound_of(kind: int, rate: int = RATE) -> Samples:
    """The samples of an event at its strongest, (n,), within VOLUME; they end five time constants on."""
    tone = TONES[kind]
    t = np.arange(round(5.0 * tone.decay * rate)) / rate
    noise = np.random.default_rng(kind).uniform(-1.0, 1.0, len(t))
    wave = (1.0 - tone.noise) * np.sin(2.0 * np.pi * tone.frequency * t) + tone.noise * noise
    return (VOLUME * wave * np.exp(-t / tone.decay) * (1.0 - np.exp(-t / RISE))).astype(np.float32)


class Mixer:
    """Adds up the sounds that have begun; any thread may start one, and one takes them."""

    def __init__(self) -> None:
        self._sounds = [sound_of(kind) for kind in range(len(KINDS))]
        self._voices: list[Samples] = []
        self._lock = threading.Lock()

    def play(self, kind: int, strength: float) -> None:
        """Begin the sound of an event, so loud; the oldest of too many ends."""
        with self._lock:
            self._voices = [*self._voices, np.float32(min(max(strength, 0.0), 1.0)) * self._sounds[kind]]
            self._voices = self._voices[-VOICES:]

    def take(self, n: int) -> Samples:
        """The next n samples, within full scale."""
        out = np.zeros(n, np.float32)
        with self._lock:
            for voice in self._voices:
                part = voice[:n]
                out[: len(part)] += part
            self._voices = [voice[n:] for voice in self._voices if len(voice) > n]
        return out.clip(-1.0, 1.0)


class Ears:
    """Hears what servos count."""

    def __init__(self, mixer: Mixer) -> None:
        self._mixer = mixer
        self._heard: dict[int, NDArray[np.int64]] = {}

    def listen(self, servo: Servo) -> None:
        """Begin the sounds of what has happened to each hand since the last time."""
        for number, hand in enumerate((servo, *servo.led)):
            counts = hand.cues.counts.copy()
            before = self._heard.get(number, counts)
            for kind in np.flatnonzero(counts > before):
                self._mixer.play(int(kind), float(hand.cues.strength[kind]))
            self._heard[number] = counts

    def forget(self) -> None:
        """Another run begins."""
        self._heard.clear()


class Speaker:
    """The sound card. Raises ImportError without miniaudio, and its own error where there is no sound."""

    def __init__(self, mixer: Mixer) -> None:
        library: Any = importlib.import_module("miniaudio")
        source = self._source(mixer)
        next(source)
        with _hushed():
            self._device = library.PlaybackDevice(
                output_format=library.SampleFormat.FLOAT32, nchannels=1, sample_rate=RATE,
                buffersize_msec=BUFFER,
            )  # fmt: skip
            self._device.start(source)

    @staticmethod
    def _source(mixer: Mixer) -> Generator[bytes | Samples, int, None]:
        """What the library asks for samples, n at a time."""
        n = yield b""
        while True:
            n = yield mixer.take(n)

    def close(self) -> None:
        """No more sound."""
        self._device.close()


def speaker(mixer: Mixer) -> tuple[Speaker | None, str]:
    """The sound card, or None and why there is none."""
    try:
        return Speaker(mixer), ""
    except ImportError:
        return None, MISSING
    except Exception as error:  # the library's own, which is not there to be named
        why = str(error.args[0] if error.args else type(error).__name__).strip()
        return None, f"there are no sounds: no sound card can be opened ({why})"


class Hearing:
    """The sounds of one run after another; the sound card is opened for the first that has any."""

    def __init__(self) -> None:
        self._mixer = Mixer()
        self._ears = Ears(self._mixer)
        self._speaker: Speaker | None = None
        self._deaf = ""

    def begin(self, wanted: bool) -> str:
        """Another run begins; why it has no sounds though they are wanted, said once."""
        self._ears.forget()
        if not wanted or self._deaf or self._speaker is not None:
            return ""
        self._speaker, self._deaf = speaker(self._mixer)
        return self._deaf

    def listen(self, servo: Servo) -> None:
        """See `Ears.listen`."""
        if self._speaker is not None:
            self._ears.listen(servo)

    def close(self) -> None:
        """No more sound."""
        if self._speaker is not None:
            self._speaker.close()


@contextmanager
def _hushed() -> Iterator[None]:
    """Without what the system's sound library writes to standard error where it finds no card."""
    if sys.platform == "win32":
        yield
        return
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
