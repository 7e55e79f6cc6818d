"""What this machine can do, and which devices there are; whatever is missing comes with what to do about it.

Graphics, window, panel and the Touch's driver are tried in a process each: PyOpenGL binds itself once in a
process, and a driver that crashes must not take the answer with it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from palpo.app.cli.log import KEPT, LARGEST, log_file
from palpo.app.devices.device import Device
from palpo.app.devices.table import devices, kind_of, offered
from palpo.app.runtime.machine import ask_realtime, cores, machine_info
from palpo.physics.numerics.kernels import cache_home

Answer = tuple[bool, str]
PATIENCE = 60.0
"""Seconds that a process which tries something may take; a first start compiles."""

GRAPHICS = """
from palpo.render import gl
version, renderer = (gl.glGetString(name).decode() for name in (gl.GL_VERSION, gl.GL_RENDERER))
print(f"OpenGL {version.split()[0]}, {renderer}")
"""
EGL = "from palpo.render.offscreen import EglContext\nEglContext()" + GRAPHICS
WINDOW = "from palpo.render.window import Window\nwindow = Window('palpo', 64, 64, visible=False)" + GRAPHICS
PANEL = "from palpo.render.panel import Panel\nPanel()"


class Check(NamedTuple):
    """One line of the doctor's."""

    name: str
    needed: bool
    """Whether every run needs it."""
    ok: bool
    words: str
    """What was found; where it is not well, what to do."""


def examine() -> list[Check]:
    """Ask for each ability in turn; a question that fails is an answer too."""
    return [Check(name, needed, *_answer(ask)) for name, needed, ask in ABILITIES]


def print_doctor(json_path: Path | None = None) -> int:
    """Machine, libraries and abilities, also as JSON into a file; 1 if what every run needs is missing."""
    console = Console(highlight=False, soft_wrap=True)
    info = machine_info()
    machine = Table(title="Machine", title_justify="left", show_header=False)
    for name, value in info.items():
        machine.add_row(name, value)
    console.print(machine)
    checks = examine()
    table = Table(title="Abilities", title_justify="left", show_header=False)
    for check in checks:
        table.add_row(check.name, _mark(check.ok, check.needed), escape(check.words))
    console.print(table)
    well = all(check.ok or not check.needed for check in checks)
    if json_path is not None:
        data = {"well": well, "machine": info, "abilities": [check._asdict() for check in checks]}
        json_path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if well else 1


def print_device(word: str, json_path: Path | None = None) -> int:
    """What can be found out about one device by program, step by step; 1 if it cannot be used.

    Raises HapticsError for a device that there is not.
    """
    kind = kind_of(word)
    asked = [*kind.steps, ("use", kind.question)]
    checks = [
        Check(name, name == "use", *(_answer(partial(_tried, code)) if code else (True, "can be used")))
        for name, code in asked
    ]
    table = Table(title=kind.label or kind.about, title_justify="left", show_header=False)
    for check in checks:
        table.add_row(check.name, _mark(check.ok, check.needed), escape(check.words))
    Console(highlight=False, soft_wrap=True).print(table)
    if json_path is not None:
        data = {"well": checks[-1].ok, "device": word, "abilities": [check._asdict() for check in checks]}
        json_path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if checks[-1].ok else 1


def print_exercise(word: str, folder: Path | None = None) -> int:
    """Examine a device with its operator at the terminal; 0. Raises HapticsError where that cannot be."""
    from palpo.app.cli.exercise import ask_operator, exercise

    profile, page = exercise(word, ask_operator, folder)
    print(f"profile {profile}\npage {page}")
    return 0


def print_devices() -> int:
    """The devices that `--device` takes, which of them can be used now and why the others cannot; 0."""
    from palpo.app.devices import table as known
    from palpo.haptics.device_spec import DEVICES as MODELS

    console = Console(highlight=False, soft_wrap=True)
    table = Table(show_header=False, box=None, pad_edge=False)
    questions = {kind.word: kind.question for kind in known.devices()}
    for name, line in offered().items():
        question = questions.get(name.partition(":")[0])
        ok, words = _answer(partial(_tried, question)) if question else (True, "")
        table.add_row(name, _mark(ok), escape(f"{line} ({words})" if words else line))
    console.print(table)
    console.print("Models of the simulated device (device.model in a scene):")
    for key, spec in MODELS.items():
        console.print(
            f"  {key:<16} {spec.name}: {spec.max_force:g} N, resolution {1e3 * spec.resolution:g} mm, "
            f"{1e3 * spec.mass:g} g, friction {spec.friction:g} N"
        )
    return 0


def _mark(ok: bool, needed: bool = False) -> str:
    return "[green]yes[/]" if ok else "[red]no[/]" if needed else "[yellow]no[/]"


def _answer(ask: Callable[[], Answer]) -> Answer:
    """The answer in one line, whatever the question runs into."""
    try:
        ok, words = ask()
    except Exception as error:
        ok, words = False, f"could not be checked: {str(error) or type(error).__name__}"
    return ok, " ".join(words.split())


def _tried(code: str) -> Answer:
    """Run a few lines in a process of their own: the last line that they print, or why they failed."""
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    script = f"import sys\ntry:\n{lines}except Exception as why:\n    sys.exit(str(why) or repr(why))\n"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {PATIENCE:g} s; check the driver"
    if done.returncode < 0:
        return False, f"the driver crashed ({signal.Signals(-done.returncode).name}); update or reinstall it"
    said = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
    return done.returncode == 0, said[-1] if said else ""


# ---- the abilities


def _cores() -> Answer:
    n = cores()
    if n >= 2:
        return True, f"{n}; the servo and the slow loop have one each"
    return False, "the servo and the slow loop share one; forces will be less exact"


def _clock() -> Answer:
    from palpo.haptics.drivers import servo_baseline

    found = servo_baseline(500)
    late = found["clock_baseline_us"]
    assert isinstance(late, dict)
    words = f"late by {late['p50']:.0f} µs (median), {late['p99']:.0f} µs (p99); {found['scheduler']}"
    if late["p99"] < 1000.0:
        return True, words
    return False, f"{words}; close other programs, or allow real-time scheduling (next line)"


def _realtime() -> Answer:
    granted, words = ask_realtime()
    if granted or "refused" not in words:
        return granted, words
    user = os.environ.get("USER") or "USER"
    line = f"{user} - rtprio 80"
    return False, f'{words}; add the line "{line}" to /etc/security/limits.conf and log in again'


def _cache() -> Answer:
    folder = cache_home()
    if folder is None:
        return False, "no folder for compiled code can be written; set NUMBA_CACHE_DIR to one"
    return True, f"{folder}"


def _compiled() -> Answer:
    from palpo.haptics.drivers import servo_loop

    folder = servo_loop.stats.cache_path
    if folder and any(Path(folder).glob("servo_loop-*.nbc")):
        return True, "ready; a run starts within seconds"
    return (
        False,
        "not compiled yet; the first start takes minutes (or run palpo compile)",
    )


def _pictures() -> Answer:
    ok, words = _tried(EGL)
    return ok, f"{words}; reports have pictures" if ok else words


def _window() -> Answer:
    ok, words = _tried(WINDOW)
    if ok:
        return True, words
    hint = "" if os.environ.get("DISPLAY") else "; log in to a desktop, or use xvfb-run"
    return False, f"{words.rstrip('.')}{hint}; until then runs are headless"


def _panel() -> Answer:
    ok, words = _tried(PANEL)
    return ok, "imgui-bundle" if ok else words


def _of(kind: type[Device]) -> Callable[[], Answer]:
    return lambda: _tried(kind.question)


def _recordings() -> Answer:
    import h5py

    here = Path.cwd()
    try:
        with (
            tempfile.TemporaryDirectory(dir=here) as folder,
            h5py.File(Path(folder) / "probe.h5", "w", libver="latest") as file,
        ):
            file["x"] = 0.0
            file.swmr_mode = True
    except OSError as error:
        return False, (
            f"{here} cannot hold an HDF5 file ({error}); record elsewhere; on a network drive, set "
            "HDF5_USE_FILE_LOCKING=FALSE"
        )
    return True, f"HDF5 {h5py.version.hdf5_version}; this folder can be written"


def _log() -> Answer:
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        return False, f"{path} cannot be written ({error.strerror}); set XDG_STATE_HOME to a folder of yours"
    return True, f"{path}, at most {LARGEST // 1_000_000} MB, and {KEPT} older files"


ABILITIES: tuple[tuple[str, bool, Callable[[], Answer]], ...] = (
    ("cores", False, _cores),
    ("clock at 1 kHz", True, _clock),
    ("real-time scheduling", False, _realtime),
    ("cache for compiled code", False, _cache),
    ("compiled code", False, _compiled),
    ("pictures", False, _pictures),
    ("window", False, _window),
    ("panel", False, _panel),
    *((kind.label, False, _of(kind)) for kind in devices() if kind.label),
    ("recordings", False, _recordings),
    ("log", False, _log),
)
