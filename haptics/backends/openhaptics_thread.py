"""The servo on the scheduler of OpenHaptics: started, watched and let go."""

import math
import time
from collections.abc import Callable
from typing import Self

import numpy as np

from palpo.haptics.backends.guardian import RESTS, Guardian
from palpo.haptics.backends.openhaptics import PATIENCE, STARTING, OpenHapticsDevice, kept
from palpo.haptics.backends.openhaptics_library import ERRORS, explain
from palpo.haptics.backends.openhaptics_tick import (
    BY_HAND,
    CALIBRATING,
    ENDED,
    FORCE_TAKEN,
    FUNCTIONS,
    HELD,
    INSIDE,
    SWITCH_OPEN,
    TouchTick,
    make_touch_tick,
    touch_callback,
    touch_data,
    touch_read,
    touch_write,
)
from palpo.haptics.backends.openhaptics_timing import CULPRITS, culprit, shares
from palpo.haptics.control import finished_reason, request_stop, tick_count
from palpo.haptics.device import DEVICE_GONE, DEVICE_OK
from palpo.haptics.drivers import compile_servo, servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.polled import PolledThread
from palpo.haptics.reasons import REASONS, RUNNING, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo, poll_device
from palpo.haptics.silence import Silence

QUIET = 0.05
"""Seconds without a tick, as long as a fade takes, after which the force is said not to be known."""
SERVED = 0.9
"""Share of the ticks below which it is said what takes them."""
SLOW = {
    "at_bus": "the bus of {title} is slow: it takes {bus:.2g} ms of a tick; give it a port of its own",
    "at_scene": "the scene takes {scene:.2g} ms of a tick of {title}: it misses ticks; take a smaller one",
    "at_call": "the scheduler of {title} calls late: it misses ticks; close other programs",
}
"""Of CULPRITS."""


class Reports:
    """What a device has to say: its warnings, errors and why it gives no force now."""

    def __init__(self, tick: TouchTick, device: OpenHapticsDevice, tell: Callable[[str], object]) -> None:
        self._tick, self._device, self._tell = tick, device, tell
        self._told, self._said = np.zeros_like(tick.counts), ""

    @property
    def fault(self) -> str:
        """What ended the device's run."""
        fault = self._tick.fault[0]
        return explain(int(fault["code"]), int(fault["internal"]))

    def new(self) -> dict[str, int]:
        """Warnings and errors since last asked, in words, and how often each came; a new state is told."""
        new = self._tick.counts - self._told
        self._told += new
        fault = self._tick.fault[0]
        unknown = explain(int(fault["unknown"]), int(fault["unknown_internal"]))
        sentences = [*map(explain, ERRORS), unknown]
        state = self.state
        if state != self._said:
            self._tell(state)
        self._said = state
        return {sentence: int(n) for n, sentence in zip(new, sentences, strict=True) if n > 0}

    @property
    def state(self) -> str:
        """Why the device gives no force now and what to do about it; empty while it does."""
        held, device = int(self._tick.words[HELD]), self._device
        if held & BY_HAND:
            return f"{device.title} wants to be calibrated: {device.what_to_do}"
        if held & CALIBRATING:
            return f"{device.title} updates its calibration; the force comes back by itself"
        if held & SWITCH_OPEN:
            return "the safety switch of the stylus is open: hold it to feel"
        if held & FORCE_TAKEN:
            return "the driver took the force, as it does when the stylus is too fast; it comes back"
        return ""


def tick_of(servo: Servo, device: OpenHapticsDevice, guardian: Guardian) -> TouchTick:
    """What the compiled functions of a device touch, before the first call."""
    addresses = [device.library.address(name) for name in FUNCTIONS]
    return make_touch_tick(
        servo, addresses, device.handle, device.has, device.style, device.lasting, guardian.heart
    )


class TouchCompanion(PolledThread):
    """A second device of libHD, whose hand another one's servo leads along: see `touch_read`."""

    def __init__(self, servo: Servo, device: OpenHapticsDevice, tell: Callable[[str], object] = str) -> None:
        """tell: hears why the device gives no force now, and an empty text once it does."""
        self._guardian, self._library = Guardian(device.answers_to), device.library
        self._touch = tick_of(servo, device, self._guardian)
        reports = Reports(self._touch, device, tell)
        super().__init__(
            servo, touch_read.address, touch_write.address, touch_data(self._touch),
            lambda: reports.fault if servo.device.health[0] != DEVICE_OK else "", reports.new,
        )  # fmt: skip

    def accompany(self) -> None:
        """Have a process watch that the device is let go."""
        self._guardian.watch()

    def leave(self) -> None:
        """The run has ended; where libHD stands still in a call, the guardian is left to take the force."""
        if finished_reason(self.servo) != RUNNING and not self._library.hangs:
            self._touch.heart[0] = RESTS
            self._guardian.dismiss()


class TouchThread:
    """Runs a servo on the scheduler of a device: as `haptics.servo.ServoThread`, without a thread of its own.

    The servo's device has the source EXTERNAL and its period is the scheduler's. The device stays open: close
    it afterwards. A context manager that stops the servo however the block ends.
    """

    def __init__(self, servo: Servo, device: OpenHapticsDevice, tell: Callable[[str], object] = str) -> None:
        """tell: hears why the device gives no force now, and an empty text once it does."""
        self.servo, self.device = servo, device
        self.error: BaseException | None = None
        self._guardian = Guardian(device.answers_to)
        self._tick = tick_of(servo, device, self._guardian)
        self._reports = Reports(self._tick, device, tell)
        self._data = touch_data(self._tick)
        self._job: int | None = None
        self._silent = ""
        self._quiet = 0  # 1 when a silence is still to be told, 2 once it is
        self._silence = Silence()
        self._served, self._spent = (0, 0), self._tick.spent.copy()
        self._rate = 0.0

    def prepare(self) -> None:
        """Compile, so that `start` need not."""
        compile_servo(self.servo)

    def start(self) -> Self:
        """Compile, then put the servo on the scheduler; returns after its first tick.

        Raises HapticsError if the scheduler refuses it or does not call within STARTING.
        """
        self.prepare()
        rate = 1e9 / self.servo.period_ns
        self._job = self.device.library.schedule(touch_callback.address, self._data.address, rate)
        self._guardian.watch()
        self._rate = rate
        self._silence = Silence()
        try:
            while self.running and tick_count(self.servo) == 0:
                time.sleep(1e-3)
        except BaseException:
            self.stop()
            self.join(PATIENCE)
            raise
        if self._silent:
            self._release()
            raise HapticsError(self._silent)
        return self

    @property
    def scheduler(self) -> str:
        """Who calls the servo, and where the time of a tick has gone so far."""
        if not self._rate:
            return "the device's scheduler was not started"
        spent = self._tick.spent
        bus, scene, call = (int(spent[name][0]) for name in CULPRITS)
        return (
            f"the device's own scheduler calls the servo at {self._rate:g} Hz, {shares(spent)}; "
            f"periods lost: {bus} to the bus, {scene} to the scene, {call} to late calls"
        )

    @property
    def _ended(self) -> bool:
        return bool(self._tick.words[ENDED])

    @property
    def running(self) -> bool:
        """Whether the scheduler still calls the servo."""
        if self._job is None or self._ended or self._silent:
            return False
        # a paused servo is called and makes no tick
        ticks = tick_count(self.servo)
        patience = PATIENCE if ticks else STARTING
        silent = self._silence.after(int(self._tick.clock["last_call"][0]))
        if silent == 0.0:
            self._quiet = 0
        elif silent > patience:
            self._silent = f"the scheduler of {self.device.title} has not called for {patience:g} s"
        elif silent > QUIET and ticks and self._quiet == 0:
            self._quiet = 1
        return not self._silent

    @property
    def reason(self) -> str:
        """Why the servo stopped, in words; "running" until then. A lost device says what became of it."""
        if self._silent:
            return self._silent
        reason = int(finished_reason(self.servo))
        return self._reports.fault if reason == STOP_DEVICE_LOST else REASONS[reason]

    def events(self) -> dict[str, int]:
        """The device's warnings and errors since last asked, in words, and how often each came."""
        said = self._reports.new()
        if self._quiet == 1:
            self._quiet = 2
            said[f"the scheduler of {self.device.title} does not call: the force is not known, let go"] = 1
        slow = self._slow_bus()
        if slow:
            said[slow] = 1
        return said

    @property
    def state(self) -> str:
        """Why the device gives no force now and what to do about it; empty while it does."""
        return self._reports.state

    def _slow_bus(self) -> str:
        """What took the ticks of each second in which fewer than SERVED of them were served."""
        steps, skipped = (int(self.servo.statistics.counts[k][0]) for k in ("steps", "skipped"))
        done, lost = steps - self._served[0], skipped - self._served[1]
        if (done + lost) * self.servo.dt < 1.0:
            return ""
        self._served, spent, before = (steps, skipped), self._tick.spent.copy(), self._spent
        self._spent = spent
        if done >= SERVED * (done + lost):
            return ""
        why, calls = culprit(spent, before), max(1, int((spent["calls"] - before["calls"])[0]))
        bus, scene = (1e-6 * int((spent[name] - before[name])[0]) / calls for name in ("bus", "scene"))
        return SLOW[why].format(title=self.device.title, bus=bus, scene=scene)

    @property
    def lost(self) -> bool:
        """Whether the device is not to be used again without being opened anew."""
        return bool(self._silent) or int(finished_reason(self.servo)) == STOP_DEVICE_LOST

    def served(self) -> float:
        """Ticks done over the periods that have passed, by the servo's own statistics."""
        counts = self.servo.statistics.counts[0]
        return float(counts["steps"] / max(counts["steps"] + counts["skipped"], 1))

    def stop(self) -> None:
        """Ask the servo to fade and end; returns at once."""
        request_stop(self.servo)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out. Afterwards the scheduler calls no more."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self.running:
            if time.monotonic() > end:
                return False
            time.sleep(1e-3)
        self._release()
        return True

    def _release(self) -> None:
        """Leave the scheduler; without a last tick, disable the device and bring the servo to its end."""
        if self._job is None:
            return
        silent, job, self._job = not self._ended, self._job, None
        # first of all: a callback that comes late does nothing, and the guardian leaves it to this thread
        self._tick.words[ENDED] = 1
        self._guardian.heart[0] = RESTS
        if silent:
            kept.append(self._data)
            # before the scheduler is left: that may wait for ever, and this takes the force
            self.device.close()
        answered = self.device.library.release(job, scheduled=silent)
        if answered:
            self._guardian.dismiss()
        if not answered:
            self._silent += "; libHD does not answer: the force is not known, let go of the stylus"
        for led in self.servo.led if silent else ():
            if led.polled[0] == touch_read.address:
                poll_device(led, 0, 0, 0)  # libHD may not return, and this thread must
                led.device.health[0] = DEVICE_GONE  # so that it is closed, which takes its force
        if silent and not self._tick.words[INSIDE]:
            self.servo.device.health[0] = DEVICE_GONE
            servo_run(self.servo, round(STARTING / self.servo.dt))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.join(5.0)
