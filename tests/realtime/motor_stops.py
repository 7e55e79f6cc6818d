"""Force at the motor over time when all goes wrong: `python -m tests.realtime.motor_stops OUT`.

A servo presses on a wall by each maker's stand-in in a process of its own. That is killed, stopped, meets a
driver that hangs, or loses its cable; a CSV for each (time [ms] from the event, force at the motor and force
that the program asked for [N]) and a picture of all go to the folder OUT.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from palpo.haptics.backends.dhd import DhdDevice, DhdThread
from palpo.haptics.backends.openhaptics import OpenHapticsDevice
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.control import tick_count
from tests.haply.service import ARM, Service
from tests.libhd.bench import LONG, press, touch_wall, wait
from tests.realtime import test_dhd
from tests.stand_in_library import build

ROOT = Path(__file__).parents[2]
KILL, STOP, STALL, UNPLUG = "kill -9", "stop", "stall", "unplug"
UNTIL = {KILL: 100.0, STOP: 700.0, STALL: 400.0, UNPLUG: 150.0}
"""Events, and until when [ms] the picture shows them."""
BEFORE, AFTER = 50.0, 1000.0
"""What a CSV holds about the event [ms]."""
SIGNALS = {KILL: signal.SIGKILL, STOP: signal.SIGSTOP}


# ---- the program that presses


@contextmanager
def touch():
    from tests.libhd.stand_in import DEFAULT, fresh_stand_in

    stand_in, wall = fresh_stand_in(), touch_wall()
    stand_in.script(DEFAULT, press())
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        yield thread, wall, {STALL: lambda: stand_in.stall(0), UNPLUG: lambda: stand_in.unplug(DEFAULT, 0)}


@contextmanager
def force_dimension():
    from tests.libdhd.stand_in import SIGMA, fresh_stand_in

    stand_in, wall = fresh_stand_in(), test_dhd.wall_of()
    stand_in.script(SIGMA, test_dhd.press())
    with DhdDevice() as device, DhdThread(wall.servo, device) as thread:
        yield thread, wall, {
            STALL: lambda: stand_in.block(SIGMA, tick_count(wall.servo) + 20, 5000),
            UNPLUG: lambda: stand_in.unplug(SIGMA, 0),
        }  # fmt: skip


PRESSES = {"Touch": touch, "Force Dimension": force_dimension}


def pressing(device):
    """Press, say so, and do what the next line asks for."""
    with PRESSES[device]() as (thread, wall, events):
        wait(wall.servo, 500)
        print("pressed", flush=True)
        events[sys.stdin.readline().strip()]()
        thread.join(LONG)


# ---- what its motors did: rows as in tests/motors.h


def befall(program, event, device_does):
    """Let it happen, to the program by a signal or to the device by a call; when it did [s]."""
    began = time.monotonic()
    if event in SIGNALS:
        program.send_signal(SIGNALS[event])
    else:
        device_does(event)
    time.sleep(1.2e-3 * AFTER)
    return began


def of_library(device, event):
    """When the event was [s], and the rows of a maker's library."""
    with tempfile.TemporaryDirectory() as folder:
        from tests.libhd.stand_in import NAME, SOURCE

        build(SOURCE, NAME, Path(folder))
        journal = Path(folder, "motors")
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.realtime.motor_stops", "--press", device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=os.environ | {"LD_LIBRARY_PATH": folder, "STANDIN_MOTORS": str(journal)},
        )  # fmt: skip
        try:
            assert program.stdout.readline() == "pressed\n"
            began = befall(program, event, lambda event: print(event, file=program.stdin, flush=True))
            return began, np.fromfile(journal).reshape(-1, 4)
        finally:
            program.kill()
            program.wait()


class Timed(list):
    """Forces with the times at which they came."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def append(self, force):
        super().append(force)
        self.rows.append((time.monotonic(), *2 * [float(np.linalg.norm(force))], np.inf))


def of_service(event):
    """The same of Haply's service."""
    with Service() as service:
        forces = service.forces[ARM] = Timed()
        program = subprocess.Popen([sys.executable, "-m", "tests.haply.pressed", service.address], cwd=ROOT)
        try:
            end = time.monotonic() + LONG
            while not (forces and np.linalg.norm(forces[-1]) > 1.4):
                assert time.monotonic() < end and program.poll() is None
                time.sleep(1e-3)
            time.sleep(4e-3 * BEFORE)
            faults = {STALL: "silent", UNPLUG: "empty"}
            began = befall(program, event, lambda event: setattr(service, faults[event], True))
            return began, np.array(forces.rows)
        finally:
            program.kill()
            program.wait()


def curve(began, rows):
    """Corners (n, 3) of a step curve: time from the event [ms], force at the motor, force asked for [N]."""
    corners = []
    for row, then in zip(rows, np.append(rows[1:, 0], np.inf), strict=True):
        at, force, asked, lasts = row
        corners.append((at, force, asked))
        if at + lasts < then and force:
            corners.append((at + lasts, 0.0, asked))
    table = np.array(corners) - [began, 0.0, 0.0]
    table[:, 0] *= 1e3
    last = table[np.searchsorted(table[:, 0], AFTER) - 1]
    table = np.vstack([table[table[:, 0] < AFTER], [AFTER, *last[1:]]])
    return table[table[:, 0] > -BEFORE]


def limp_after(table):
    """Time [ms] from the event until the motor is without force for good; infinite if it is not."""
    pressed = np.flatnonzero(table[:, 1])
    return float(table[pressed[-1] + 1, 0]) if pressed[-1] + 1 < len(table) else np.inf


def main(out):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    out.mkdir(parents=True, exist_ok=True)
    ways = {device: lambda event, device=device: of_library(device, event) for device in PRESSES}
    ways["Haply"] = of_service
    figure, axes = pyplot.subplots(
        len(ways), len(UNTIL), figsize=(14, 7.5), sharex="col", sharey=True, layout="constrained"
    )
    for row, (device, way) in zip(axes, ways.items(), strict=True):
        for axis, (event, until) in zip(row, UNTIL.items(), strict=True):
            began, rows = way(event)
            if event == STALL:  # of a call that does not return the program knows only afterwards
                began = rows[rows[:, 2] > 0.0, 0].max()
            table = curve(began, rows)
            name = f"{device}-{event}".lower().replace(" ", "-").replace("--", "-")
            np.savetxt(out / f"{name}.csv", table, "%.4f", ",", header="time_ms,motor_N,asked_N", comments="")
            limp = limp_after(table)
            words = f"no force after {limp:.0f} ms" if limp < np.inf else f"force stays for {AFTER:.0f} ms"
            print(f"{device}, {event}: {words}", flush=True)
            axis.step(
                *table[:, [0, 2]].T, "--", where="post", color="C1", label="last asked for by the program"
            )
            axis.step(*table[:, :2].T, where="post", color="C0", label="at the motor")
            axis.axvline(0.0, color="0.6", lw=0.8)
            axis.set_title(f"{device}, {event}: {words}", fontsize=9)
            axis.set_xlim(-BEFORE, until)
    for axis in axes[-1]:
        axis.set_xlabel("time from the event [ms]")
    for axis in axes[:, 0]:
        axis.set_ylabel("force [N]")
    axes[0, -1].legend(fontsize=8, loc="upper right")
    figure.savefig(out / "motor_stops.png", dpi=110)


if __name__ == "__main__":
    if sys.argv[1] == "--press":
        pressing(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
