"""What every shipped scene is asked in every way that it can be run: nothing fails, and nothing differs.

What a scene does is asked elsewhere.
"""

import numpy as np

from palpo.app.runtime.live import live_keys
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session
from palpo.config.load import list_scenes
from palpo.haptics.recording import read_recording

SCENES = tuple(list_scenes())


def values_of(live):
    """Values to change a live key to: all choices, or a value near to its own and back again."""
    if live.choices:
        return [*live.choices, live.value]
    upward = live.value + 0.02 * (live.upper - live.value)
    return [upward if upward != live.value else 0.5 * (live.lower + live.upper), live.value]


def changes(session: Session) -> list[tuple[str, object]]:
    """Every live key, changed and changed back."""
    return [(live.key, value) for live in live_keys(session.spec) for value in values_of(live)]


def assert_repeated(path, wanted):
    recording = read_recording(path)
    assert recording.closed
    kept = {text.partition("=")[0] for _, text in recording.changes}
    assert {key.removesuffix(".1") if key == "gravity.1" else key for key, _ in wanted} <= kept
    steps = recording.low_steps["step"]
    loops = recording.low_steps.get("loop", np.zeros(len(steps)))
    for loop in np.unique(loops):
        own = steps[loops == loop]
        assert np.array_equal(own, np.arange(len(own)))
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]
    assert again.result["replay"]["ticks"] == len(recording.columns["tick"])
