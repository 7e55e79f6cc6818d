"""What this machine can do, and which devices there are."""

import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app.machine import machine_info


def print_devices() -> int:
    """The devices that `--device` offers; 0."""
    from app.devices import OFFERED
    from haptics.device import DEVICES

    console = Console(highlight=False, soft_wrap=True)
    for name, line in OFFERED.items():
        console.print(f"{name:<13}{line}")
    console.print("The simulated hand holds one of (device.model in a scene):")
    for key, spec in DEVICES.items():
        console.print(
            f"  {key:<16} {spec.name}: {spec.max_force:g} N, resolution {1e3 * spec.resolution:g} mm, "
            f"{1e3 * spec.mass:g} g, friction {spec.friction:g} N"
        )
    return 0


def print_doctor() -> int:
    """Machine, libraries and abilities; 1 if something is missing that every run needs."""
    console = Console(highlight=False, soft_wrap=True)
    machine = Table(title="Machine", title_justify="left", show_header=False)
    for name, value in machine_info().items():
        machine.add_row(name, value)
    console.print(machine)
    table = Table(title="Abilities", title_justify="left", show_header=False)
    needed = True
    for name, essential, ask in CHECKS:
        well, words = ask()
        needed = needed and (well or not essential)
        table.add_row(
            name, "[green]yes[/]" if well else "[red]no[/]" if essential else "[yellow]no[/]", words
        )
    console.print(table)
    return 0 if needed else 1


def _clock() -> tuple[bool, str]:
    from haptics.servo import servo_baseline

    found = servo_baseline(500)
    late = found["clock_baseline_us"]
    assert isinstance(late, dict)
    words = f"late by {late['p50']:.0f} µs at the median, {late['p99']:.0f} µs at p99; {found['scheduler']}"
    return late["p99"] < 1000.0, words


def _cache() -> tuple[bool, str]:
    folder = os.environ.get("NUMBA_CACHE_DIR") or str(Path(__file__).parent)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True, f"compiled code is kept below {folder}"
    except OSError:
        return False, f"{folder} cannot be written; set NUMBA_CACHE_DIR, or every start compiles anew"


def _pictures() -> tuple[bool, str]:
    from render.gl import RenderUnavailable
    from render.offscreen import EglContext

    try:
        EglContext().close()
    except RenderUnavailable as missing:
        return False, str(missing)
    return True, "reports get pictures of the scene (EGL)"


def _display() -> tuple[bool, str]:
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(display), f"display {display}" if display else "no display; runs are headless"


def _touch() -> tuple[bool, str]:
    found = importlib.util.find_spec("pyOpenHaptics") is not None
    return False, f"not offered by this version (pyOpenHaptics is {'there' if found else 'not installed'})"


CHECKS: tuple[tuple[str, bool, Callable[[], tuple[bool, str]]], ...] = (
    ("clock at 1 kHz", True, _clock),
    ("cache of compiled code", False, _cache),
    ("pictures", False, _pictures),
    ("display", False, _display),
    ("Touch device", False, _touch),
)
