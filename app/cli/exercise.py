"""`palpo doctor --device NAME --exercise`: some minutes with a device, in words; a profile and a page.

Each part is a run of its own on the device's own driver, with the drill (palpo.haptics.drill) in the place of
a scene and at most FORCE: limits, fades, both buttons and a lost device work as always.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.cli.refusal import check_folder
from palpo.app.devices.device import Device
from palpo.app.devices.profile import profile_file, write_profile
from palpo.app.devices.table import choose
from palpo.app.report.exercise_page import write_exercise
from palpo.app.report.trace import RingTrace
from palpo.app.runtime.options import Options
from palpo.config.load import load_scene
from palpo.config.schema.profile import DeviceProfile
from palpo.config.schema.tool import HoldSpec
from palpo.haptics.control import finished_reason, tick_count
from palpo.haptics.drill import drill_data, drill_tick, make_drill
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import Motors
from palpo.haptics.identified import (
    Answer,
    Push,
    answer_to,
    breakaway,
    encoder_count,
    friction_and_bias,
    noise_of,
    rests,
)
from palpo.haptics.limits import Fades, make_limits
from palpo.haptics.reasons import STOP_REQUESTED
from palpo.haptics.servo import make_servo

Floats = NDArray[np.float64]
Ask = Callable[[str, str], None]
"""Tells the operator what to do, by the name of the part and in words, and returns once it is done."""
Rows = dict[str, Floats]

FORCE = 1.5
"""Largest force [N]."""
FADE, SETTLE = 0.1, 0.2
"""Seconds in which the force comes, and after which a push begins."""
RAMP = 0.1
"""How fast a force rises to a breakaway [N/s]."""
PUSH, PUSHED, PUSHES = 1.0, 0.035, 6
"""What a push has over the breakaway [N], for how long [s], and how many there are, to and fro."""
TRIP, FAR, FARTHEST = 1e-3, 8e-3, 20e-3
"""Ways [m] after which a breakaway, a spring and a push is over, and the stylus is held."""
KICK, KICKED, RINGS = 0.5, 0.01, 0.8
"""A kick against a spring [N], for so long [s], and how long it may take to come to rest [s]."""
SOFTEST, STIFFER, STIFFEST = 100.0, 1.2, 6000.0
"""Springs of the scan: the first [N/m], the ratio of each to the one before, and where it ends [N/m]."""
MARGIN = 2.0
"""What was stable over what the profile allows."""
WARM, WARMED = 0.8, 5.0
"""Share of the force that it says to give for ever, and for how long it is held [s]."""
ALONG = {
    "right": (0, "Move the stylus slowly to the right, some centimetres"),
    "up": (1, "Move it slowly up, some centimetres"),
    "toward you": (2, "Move it slowly toward you, some centimetres"),
}
"""Axes by the way that is positive."""
LEAST_WAY = 0.01
"""Way [m] that shows an axis."""


@dataclass
class DeviceFindings:
    """What an examination has found, SI units, and the curves behind it."""

    title: str
    model: str
    serial: str
    dt: float
    axes: dict[str, bool] = field(default_factory=dict)
    """Whether each way of ALONG was read as such."""
    low: Floats = field(default_factory=lambda: np.zeros(3))
    """Corner of what was reached, device axes."""
    high: Floats = field(default_factory=lambda: np.zeros(3))
    reached: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    resolution: float = math.nan
    noise: float = math.nan
    friction: Floats = field(default_factory=lambda: np.full(3, math.nan))
    """Along each axis."""
    bias: Floats = field(default_factory=lambda: np.full(3, math.nan))
    """What pulls it along each axis by itself."""
    ramps: dict[str, tuple[Floats, Floats]] = field(default_factory=dict)
    """Force and way of each breakaway."""
    answer: Answer | None = None
    pushed: tuple[Floats, Floats] = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    """Time and position of the push."""
    scans: dict[str, dict[float, Floats]] = field(default_factory=dict)
    """Ways of the springs by who holds the stylus."""
    stable: dict[str, float] = field(default_factory=dict)
    """Greatest stiffness that came to rest, 0 for none."""
    late: Floats = field(default_factory=lambda: np.zeros(0))
    """Lateness of all ticks [s]."""
    allowance: float = 1.0
    """Least share of its force that the device allowed."""
    drift: Floats = field(default_factory=lambda: np.full(3, math.nan))
    scheduler: str = ""


class Examination:
    """One device that is open, and who asks its operator. Raises HapticsError where a part cannot be made."""

    def __init__(self, device: Device, stack: ExitStack, ask: Ask) -> None:
        self.spec, self.device, self.ask = load_scene("probe"), device, ask
        self.figures = device.open(self.spec, stack)
        self.dt = self.spec.rates.dt
        self.found = DeviceFindings(device.title, self.figures.name, device.serial, self.dt)
        most = min(FORCE, self.figures.max_force)
        motors = Motors(
            continuous_force=self.figures.continuous_force, thermal_time=self.figures.thermal_time
        )
        self._limits = make_limits(
            most, dt=self.dt, fades=Fades(fade_in=FADE), emergency_buttons=3, motors=motors
        )
        self._late: list[Floats] = []

    def all(self) -> DeviceFindings:
        """Every part in its order."""
        f = self.found
        rest = self.at_rest()
        self.axes()
        self.reach()
        self.breakaways()
        self.push()
        self.springs("let go", "Let go of the stylus, where it stays by itself")
        self.springs("held", "Hold the stylus lightly, as one holds a pen, and keep it still")
        self.warm()
        f.drift = self._place("back", "Put the stylus back to where it was at the beginning") - rest
        f.late = np.concatenate(self._late)
        return f

    def profile(self, named: str) -> DeviceProfile:
        """What a run is to use."""
        f = self.found
        if f.answer is None or min(f.stable.values()) == 0.0:
            raise HapticsError(
                f"{self.device.title}: no spring of {SOFTEST:g} N/m or more came to rest, so that no "
                "coupling is safe; look at its driver and its bus first"
            )
        return DeviceProfile(
            device=named,
            model=f.model,
            serial=f.serial,
            max_stiffness=min(min(f.stable.values()) / MARGIN, self.figures.max_stiffness),
            max_force=self.figures.max_force * f.allowance,
            resolution=f.resolution,
            friction=max(0.0, float(f.friction.max())),
            mass=f.answer.mass,
            delay=f.answer.delay,
        )

    # ---- the parts

    def at_rest(self) -> Floats:
        """Noise, and where the stylus rests at the beginning."""
        self._prompt(
            "rest", "Lay the stylus down where you can put it back to, in its inkwell or on its rest"
        )
        rows = self._run(seconds=1.0)
        at = _positions(rows)
        self.found.noise = max(noise_of(at[:, i]) for i in range(3))
        return at.mean(axis=0)

    def axes(self) -> None:
        """Which way is positive, and the encoder's counts on the way."""
        counts = []
        for way, (axis, words) in ALONG.items():
            at = _positions(self._prompt(way, words))
            gone = at[-1] - at[0]
            if np.abs(gone).max() < LEAST_WAY:
                raise HapticsError(f"{self.device.title} has not moved {way}: move it some centimetres")
            self.found.axes[way] = bool(np.abs(gone).argmax() == axis and gone[axis] > 0.0)
            counts.append(encoder_count(at[:, int(np.abs(gone).argmax())]))
        self.found.resolution = float(np.max(counts))

    def reach(self) -> None:
        """How far it goes."""
        at = _positions(self._prompt("reach", "Move it to all edges of its reach, then come back"))
        self.found.low, self.found.high, self.found.reached = at.min(axis=0), at.max(axis=0), at

    def breakaways(self) -> None:
        """Dry friction along each axis, both ways."""
        f, most = self.found, self._limits.max_force
        self._prompt("let go", "Let go of the stylus, where it stays by itself, and keep your hands off")
        for axis in range(3):
            breaks = []
            for side in (1.0, -1.0):
                push = np.zeros((round(most / RAMP / self.dt), 3))
                push[:, axis] = side * RAMP * self.dt * np.arange(len(push))
                rows = self._run(push, trip=TRIP, seconds=most / RAMP, until_tripped=True)
                sent, at = rows[f"sent_{'xyz'[axis]}"], _positions(rows)[:, axis]
                breaks.append(breakaway(sent, at, f.resolution))
                end = _until(at, TRIP)
                f.ramps[f"{'-+'[side > 0]}{'xyz'[axis]}"] = sent[:end], at[:end] - at[0]
            f.friction[axis], f.bias[axis] = friction_and_bias(*breaks)

    def push(self) -> None:
        """Moving mass and delay, by pushes along x."""
        f, pushes = self.found, []
        start, length = round(SETTLE / self.dt), round(PUSHED / self.dt)
        for k in range(PUSHES):
            side = 1.0 if k % 2 == 0 else -1.0
            breaks = f.bias[0] + side * f.friction[0]
            push = np.zeros((start + length, 3))
            push[start:, 0] = breaks + side * PUSH
            rows = self._run(push, trip=FARTHEST, seconds=2 * SETTLE)
            at = _positions(rows)[start:, 0]
            # for as long as nothing else is at work
            span = slice(0, min(length, _until(at, FARTHEST)))
            pushes.append(Push(rows["sent_x"][start:][span], at[span], breaks))
        f.answer = answer_to(pushes, self.dt)
        f.pushed = self.dt * np.arange(len(pushes[0].positions)), pushes[0].positions

    def springs(self, who: str, words: str) -> None:
        """The greatest stiffness at which a kicked stylus comes to rest."""
        self._prompt(who, words)
        f, damping = self.found, HoldSpec().damping
        start = round(SETTLE / self.dt)
        push = np.zeros((start + round(KICKED / self.dt), 3))
        push[start:, 0] = KICK + max(0.0, f.friction[0])
        ways = f.scans.setdefault(who, {})
        stiffness, f.stable[who] = SOFTEST, 0.0
        while stiffness <= STIFFEST:
            rows = self._run(push, stiffness=stiffness, damping=damping, trip=FAR, seconds=SETTLE + RINGS)
            at = _positions(rows)[start : start + round(RINGS / self.dt)]
            ways[stiffness] = at[:, 0] - at[0, 0]
            stays = all(rests(at[:, i], f.resolution) for i in range(3))
            if not stays or _until(np.linalg.norm(at - at[0], axis=1), FAR) < len(at):
                return
            f.stable[who] = stiffness
            stiffness *= STIFFER

    def warm(self) -> None:
        """Whether the motors take the force back that they are said to give for ever."""
        self._prompt("warm", "Hold the stylus: a light force pulls it down for some seconds")
        lasting = WARM * min(self.figures.continuous_force, self._limits.max_force)
        push = np.zeros((round(WARMED / self.dt), 3))
        push[:, 1] = -lasting
        self.found.allowance = float(self._run(push, seconds=WARMED)["allowance"].min())

    # ---- a run

    def _prompt(self, part: str, words: str) -> Rows:
        """Ask, while the device runs without a force."""
        return self._run(during=lambda: self.ask(part, words))

    def _place(self, part: str, words: str) -> Floats:
        self._prompt(part, words)
        return _positions(self._run(seconds=0.5)).mean(axis=0)

    def _run(
        self,
        push: Floats | None = None,
        *,
        seconds: float = math.inf,
        stiffness: float = 0.0,
        damping: float = 0.0,
        trip: float = math.inf,
        during: Callable[[], None] | None = None,
        until_tripped: bool = False,
    ) -> Rows:
        """So many seconds of the drill, or as long as `during` takes; the servo's columns."""
        drill = make_drill(np.zeros((1, 3)) if push is None else push, stiffness, damping, trip)
        data = drill_data(drill)
        device, _ = self.device.make(self.spec, np.zeros(3))
        servo = make_servo(
            drill_tick.address, data.address, drill.port, device, self._limits, rate_hz=1.0 / self.dt
        )
        driver, trace = self.device.driver(servo), RingTrace(servo, names=None)
        driver.start()
        trace.start()
        try:
            if during is not None:
                during()
            else:
                while driver.running and tick_count(servo) * self.dt < seconds:
                    if until_tripped and drill.own["tripped"][0]:
                        break
                    time.sleep(2e-3)
        finally:
            driver.stop()
            driver.join(5.0)
            rows = trace.finish()
        if finished_reason(servo) != STOP_REQUESTED:
            raise HapticsError(f"{self.device.title}: {driver.reason}")
        self.found.scheduler = driver.scheduler
        self._late.append(1e-6 * rows["late_us"])
        return rows


def _positions(rows: Rows) -> Floats:
    """Shape (n, 3) [m], device axes."""
    return np.stack([rows[f"device_p{axis}"] for axis in "xyz"], axis=1)


def _until(way: Floats, far: float) -> int:
    """Ticks until it is as far from where it began."""
    there = np.flatnonzero(np.abs(way - way[0]) >= far)
    return int(there[0]) if len(there) else len(way)


def exercise(named: str, ask: Ask, folder: Path | None = None) -> tuple[Path, Path]:
    """Examine the device that `--device` calls so; the paths of its profile and of the page.

    Raises HapticsError for a device that is none with motors, or that a part cannot be made with.
    """
    device = choose(Options("probe", device=named))
    if not device.hardware:
        raise HapticsError(f"--device {named}: only a real device can be examined; nothing moves this one")
    folder = folder or Path("out") / profile_file(f"exercise-{named}").stem
    check_folder(folder, "--report")
    with ExitStack() as stack:
        examination = Examination(device, stack, ask)
        found = examination.all()
    profile = examination.profile(named)
    page = write_exercise(folder, found, profile, examination.figures)
    path = profile_file(named)
    write_profile(profile, path)
    return path, page


def ask_operator(part: str, words: str) -> None:
    """By the terminal."""
    input(f"{part}: {words}; then press Enter. ")
