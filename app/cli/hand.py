"""`palpo hand`: a device here, held by a person; the scene that it touches is on another machine."""

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.app.devices.device import KEY_VARIABLE, Speaking
from palpo.app.devices.protection import limits_of
from palpo.app.devices.table import choose
from palpo.app.runtime.options import Options
from palpo.config.load import load_scene
from palpo.haptics.control import finished_reason, tick_count
from palpo.haptics.errors import HapticsError
from palpo.haptics.reasons import REASONS, STOP_REQUESTED

PLACE = "probe"
"""Scene whose device section and safety a hand has here; what protects it besides is at the other end."""
PATIENCE = 60.0
"""Seconds for which the scene is called."""
LOOK = 0.02
"""Seconds between two looks at the run."""


@dataclass(frozen=True)
class HandRun:
    """What a run of the hand's end came to."""

    ticks: int
    reason: str
    well: bool
    joules: dict[str, float]
    """Paid in and given out here [J]."""
    short: int
    """Ticks on which the force was held back, as it would have made energy."""


def lend_hand(
    place: str, key: str, device: str = "auto", duration: float | None = None,
    progress: Progress | None = None,
) -> HandRun:  # fmt: skip
    """Touch the scene that waits at HOST:PORT with a device of this machine, until it ends or `duration` [s].

    key: that both ends were given. Raises HapticsError where the device cannot be used or nobody answers.
    """
    from palpo.haptics.backends.channel import HAND, Channel, endpoint
    from palpo.haptics.backends.udp import make_hand_servo

    progress = progress or Progress()
    host, port = endpoint(place)
    options = Options(PLACE, device=device, baseline=False)
    spec: Any = load_scene(PLACE, ("safety.passivity='off'",))
    choice = choose(options)
    choice.heard = progress.say
    with ExitStack() as stack:
        figures = replace(choice.open(spec, stack), max_torque=0.0)
        channel = Channel(HAND, key, figures.max_force, figures.resolution, spec.rates.dt)
        stack.enter_context(channel)
        made, path = choice.make(spec, np.zeros(3))
        servo, alive = make_hand_servo(channel.line, made, limits_of(spec, figures), spec.rates.servo_hz)
        driver = choice.driver(servo)
        with progress.stage("compiling"):
            driver.prepare()
        channel.call(host, port)
        progress.say(f"calling {host}:{port}")
        if not channel.join(PATIENCE):
            raise HapticsError(
                f"{host}:{port}: no scene has answered for {PATIENCE:g} s; run it there first, with this key"
            )
        progress.say("the scene has answered, and gets ready")
        if not channel.begin():
            raise HapticsError(channel.lost)
        driver.start()
        begun = time.monotonic()
        progress.say("the hand is at the other end; Ctrl-C ends it")
        try:
            while driver.running and not channel.gone:
                path.keep(int(tick_count(servo)))
                if isinstance(driver, Speaking):
                    for words in driver.events():
                        progress.say(words)
                if duration is not None and time.monotonic() - begun >= duration:
                    break
                time.sleep(LOOK)
        except KeyboardInterrupt:
            progress.say("ended here")
        finally:
            gone = channel.gone
            driver.stop()
            driver.join(5.0)
        end, reason = channel.line.end, int(finished_reason(servo))
        del alive
        words = channel.lost if gone else driver.reason or REASONS[reason]
        return HandRun(
            int(tick_count(servo)),
            words,
            bool(end.words["left"][0]) or (reason == STOP_REQUESTED and not gone),
            {name: float(end.joules[name][0]) for name in ("paid", "given")},
            int(end.words["short"][0]),
        )


def print_hand(place: str, key: str | None, device: str, duration: float | None) -> int:
    """`lend_hand`, and a sentence on what it came to; 0, or 1 where the device or the scene was lost."""
    key = key or os.environ.get(KEY_VARIABLE, "")
    if not key:
        raise HapticsError(
            f"--key: give the key that the scene's end says, or set {KEY_VARIABLE} on both machines"
        )
    done = lend_hand(place, key, device, duration)
    paid, given = (1e3 * done.joules[name] for name in ("paid", "given"))
    print(
        f"{done.reason}; {done.ticks:,} ticks; {paid:.1f} mJ paid in by the hand, "
        f"{given:.1f} mJ given to it; the force was held back on {done.short} ticks"
    )
    return 0 if done.well else 1
