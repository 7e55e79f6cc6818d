"""A newcomer's first minute: the cards, a connector, words over it, the plug taken, its click, a recording.

A process of its own on DISPLAY: `python -m tests.realtime.first_minute FOLDER`.
"""

import json
import sys
import threading
from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Silent
from palpo.app.runtime.operator import Operator
from palpo.haptics.control import tick_count
from tests.realtime.desk_session import Person

STEPS = 40
"""Moves of the pointer for the whole push."""


def push(person: Person, folder: Path) -> None:
    """Take the plug where the ring is and lead it down the scene's own way, past the click."""
    operator = person.operator
    person.act("key", "1")  # from the front, so that down in the picture is down
    way = np.array([row[1:] for row in person.session.spec.device.path], float)
    deepest = way[np.argmin(way[:, 1])] - way[0]
    start = operator._state.held_point.copy()
    places = start + np.linspace(0.0, 1.0, STEPS + 1)[:, None] * deepest
    pixels = operator.controls.camera.project(places, *operator.window.scene_size)
    person.act("to", *np.rint(pixels[0]).astype(int), "mousedown", 1)
    felt = []
    for pixel in pixels[1:]:
        person.act("to", *np.rint(pixel).astype(int))
        felt.append(float(np.linalg.norm(person.session.rig.servo.sent)))
    person.seen["felt"] = felt
    person.look(20)
    person.shoot(folder, "clicked")
    person.act("mouseup", 1)


def live(person: Person, folder: Path) -> None:
    operator = person.operator
    person.until(lambda: "card:snap" in operator.panel.places, "the cards")
    person.shoot(folder, "cards")
    while person.place("card:snap")[1] > 600:
        person.act("to", 640, 400, "click", 5)
    person.click("card:snap")
    person.running()
    person.look(10)
    person.shoot(folder, "hint")
    person.seen["hinted"] = not operator._taking.done
    hint = operator._hint(person.session, operator._state)
    person.seen["told"] = [hint.title, *hint.lines]
    person.act("key", "o")
    person.until(lambda: person.session.recorder is not None, "a recording")
    old = person.session
    person.act("key", "r")
    person.until(lambda: person.session is not old and operator._readings is not None, "the start once more")
    person.until(lambda: tick_count(person.session.rig.servo) > 700, "a run that is recorded from its start")
    push(person, folder)
    person.seen["taken"] = operator._taking.done
    person.act("key", "o")
    person.until(lambda: person.session.recorder is None, "the recording's end")
    person.seen["recording"] = str(person.session.recordings[-1])
    person.act("key", "q")


def main(folder: Path) -> None:
    with Operator(Silent()) as operator:
        person, failure = Person(operator), []

        def lived() -> None:
            try:
                live(person, folder)
            except BaseException as error:
                failure.append(f"{type(error).__name__}: {error}")
                operator.closing = True

        threading.Thread(target=lived, daemon=True).start()
        done = operator.launch()
    person.seen["failure"] = failure
    person.seen["system"] = {} if done is None else done.result["system"]
    (folder / "seen.json").write_text(json.dumps(person.seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
