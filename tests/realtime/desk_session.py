"""Someone at Palpo's window: opens `wire`, drags, turns a knob, pauses, records, resets and quits, as JSON.

A process of its own on DISPLAY: `python -m tests.realtime.desk_session FOLDER`. The operator runs in the main
thread, as in the program; a second thread is the person, who sees the panel's places and acts through X.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from palpo.app.cli.progress import Silent
from palpo.app.runtime.operator import Operator
from palpo.app.runtime.options import Options
from palpo.haptics.control import is_frozen, tick_count

PATIENCE = 120.0  # s


class Person:
    """Waits for what can be seen, and acts with pointer and keys."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.id = str(sys.modules["glfw"].get_x11_window(operator.window.handle))
        self.seen: dict[str, object] = {}
        self.frames, draw = 0, operator._frame

        def counted(state) -> None:
            draw(state)
            self.frames += 1

        operator._frame = counted

    @property
    def session(self):
        return self.operator._session

    def until(self, true, what: str) -> None:
        """Wait for a condition."""
        end = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(what)
            time.sleep(0.02)

    def act(self, *words) -> None:
        """Commands of xdotool, then a look at what became of them; "to x y" is a place in the window."""
        command = ["xdotool"]
        for word in words:
            command += ["mousemove", "--window", self.id] if word == "to" else [str(word)]
        subprocess.run(command, check=True)
        self.look()

    def look(self, frames: int = 3) -> None:
        """Wait for some more frames: a person does not act faster than can be seen."""
        last = self.frames + frames
        self.until(lambda: self.frames >= last, "more frames")

    def place(self, name: str) -> tuple[float, float]:
        left, top, right, bottom = self.operator.panel.places[name]
        return 0.5 * (left + right), 0.5 * (top + bottom)

    def click(self, name: str) -> None:
        self.until(lambda: name in self.operator.panel.places, f"{name} in the panel")
        self.act("to", *map(round, self.place(name)))
        self.act("mousedown", 1)
        self.act("mouseup", 1)

    def running(self) -> None:
        """Until the servo has made some ticks of the present session."""
        self.until(
            lambda: self.operator._readings is not None and tick_count(self.session.rig.servo) > 700,
            "a session that runs",
        )

    def force(self) -> float:
        return float(np.linalg.norm(self.operator._state.hand_force))

    def force_in_picture(self) -> list[list[float]]:
        """Where the hand is in the picture, and a point that its force leads to [pixels]."""
        state, size = self.operator._state, self.operator.window.scene_size
        ahead = state.held_point + 0.01 * state.hand_force / self.force()
        return self.operator.controls.camera.project(np.stack([state.held_point, ahead]), *size).tolist()

    def shoot(self, folder: Path, name: str) -> None:
        """A picture, taken in the thread that draws."""
        before = len(list(Path("out").glob("screenshot*")))
        self.act("key", "s")
        self.until(lambda: len(list(Path("out").glob("screenshot*"))) > before, "a screenshot")
        newest = max(Path("out").glob("screenshot*"), key=lambda path: path.stat().st_mtime)
        newest.rename(folder / f"{name}.png")

    def drag(self) -> None:
        """Take the wire by its end and pull it up."""
        camera, height = self.operator.controls.camera, self.operator.window.scene_size
        x, y = camera.project(self.operator.controls.hand.position, *height)[0]
        start = self.operator.controls.hand.position.copy()
        self.act("to", round(x), round(y), "mousedown", 1)
        for step in range(1, 16):
            self.act("to", round(x), round(y - 8 * step))
        # held still, its end 11 mm up, the wire pulls with 0.24 N; more is the swing of a quick drag
        self.until(lambda: self.force() > 0.2, "a force on the hand")
        self.seen["dragged_m"] = float(np.linalg.norm(self.operator.controls.hand.position - start))
        self.seen["grip"] = self.operator.controls.hand.grip

    def knob(self) -> None:
        """Drag the slider of friction to the right."""
        self.act("to", round(self.place("emergency")[0]), 600)
        for _ in range(40):
            places = self.operator.panel.places
            if "friction.default" in places and self.place("friction.default")[1] < 700:
                break
            self.act("click", 5)
        before = float(self.session.spec.friction.default)
        left, top, right, bottom = self.operator.panel.places["friction.default"]
        x, y = left + 0.15 * (right - left), 0.5 * (top + bottom)
        self.act("to", round(x), round(y))
        self.act("mousedown", 1)
        self.act("to", round(x + 0.3 * (right - left)), round(y))
        self.act("mouseup", 1)
        self.until(lambda: self.session.spec.friction.default != before, "another friction")
        high, asked = self.session.rig.high, float(self.session.spec.friction.default)
        self.until(lambda: high.mu.max() == asked, "the friction in the servo")
        self.seen["friction"] = [before, asked]

    def pause(self) -> None:
        servo = self.session.rig.servo
        self.act("key", "space")
        self.until(lambda: is_frozen(servo), "a frozen servo")
        stood = tick_count(servo)
        time.sleep(0.3)
        self.seen["ticks_in_pause"] = tick_count(servo) - stood
        self.act("key", "period")
        self.until(lambda: tick_count(servo) > stood, "a granted step")
        time.sleep(0.3)
        self.seen["ticks_granted"] = tick_count(servo) - stood
        self.seen["sent_in_pause"] = float(np.linalg.norm(servo.sent))
        self.act("key", "space")
        self.until(lambda: tick_count(servo) > stood + 500, "a resumed servo")

    def stall(self) -> None:
        """The thread that draws sleeps for two seconds."""
        servo, draw, slept = self.session.rig.servo, self.operator._frame, threading.Event()
        counts = []

        def look() -> None:
            counts.append((time.perf_counter(), tick_count(servo)))

        def sleep(state) -> None:
            if not slept.is_set():
                look()
                time.sleep(2.0)
                look()
                slept.set()
            draw(state)

        self.operator._frame = sleep
        slept.wait(PATIENCE)
        self.operator._frame = draw
        (asleep, before), (awake, after) = counts
        self.seen["milliseconds_and_ticks_asleep"] = 1e3 * (awake - asleep), after - before

    def live(self, folder: Path) -> None:
        self.running()
        self.shoot(folder, "start")
        self.drag()
        self.shoot(folder, "pulled")
        self.seen["hand_and_force"] = self.force_in_picture()
        self.act("mouseup", 1)
        self.until(lambda: not self.operator.controls.hand.grip, "a released grip")
        self.click("record")
        self.until(lambda: self.session.recorder is not None, "a recording")
        self.knob()
        self.shoot(folder, "friction")
        time.sleep(0.5)
        self.click("record")
        self.until(lambda: self.session.recorder is None, "the recording's end")
        self.seen["recording"] = str(self.session.recordings[-1])
        self.pause()
        self.stall()
        self.seen["rate"] = [self.operator.window.frame_rate, *self.operator.window.latency]
        old = self.session
        self.act("key", "r")
        self.until(lambda: self.session is not old, "another session")
        self.running()
        self.seen["kept_friction"] = float(self.session.spec.friction.default)
        self.act("key", "Escape")
        self.until(lambda: "emergency" in self.operator._status[0], "the emergency stop")
        self.seen["sent_after_emergency"] = float(np.linalg.norm(self.session.rig.servo.sent))
        self.shoot(folder, "emergency")
        self.seen["emergency"] = self.operator._status
        self.choose(folder)
        self.act("key", "q")

    def choose(self, folder: Path) -> None:
        """Take another scene from the cards, then look at the cards again."""
        old = self.session
        self.act("key", "l")
        self.until(lambda: "card:probe" in self.operator.panel.places, "the cards")
        self.shoot(folder, "cards")
        self.click("card:probe")
        self.until(lambda: self.session is not old, "the chosen scene")
        self.running()
        self.seen["chosen"] = self.session.options.scene
        servo = self.session.rig.servo
        self.act("key", "l")
        self.until(lambda: "card:wire" in self.operator.panel.places, "the cards once more")
        self.until(
            lambda: "the force is off" in self.operator._status[0], "the end of the run under the cards"
        )
        self.seen["sent_under_cards"] = float(np.linalg.norm(servo.sent))


def main(folder: Path, who: type[Person] = Person, scene: str = "wire") -> None:
    with Operator(Silent()) as operator:
        person, failure = who(operator), []

        def live() -> None:
            try:
                person.live(folder)
            except BaseException as error:
                failure.append(f"{type(error).__name__}: {error}")
                operator.closing = True

        threading.Thread(target=live, daemon=True).start()
        done = operator.run(
            Options(scene, ("rates.adapt=false",), device="mouse", baseline=False, window=True)
        )
    person.seen["failure"] = failure
    person.seen["outcome"] = [done.result["exit_reason"], done.status]
    (folder / "seen.json").write_text(json.dumps(person.seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
