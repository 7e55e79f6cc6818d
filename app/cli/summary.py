"""The end of a command, as tables for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

QUANTILES = ("p50", "p99", "p999", "max")


def number(value: Any) -> str:
    """Four significant digits; counts in groups of three; a dash for what is missing."""
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Sequence):
        return "(" + ", ".join(number(v) for v in value) + ")"
    return str(value)


def console_for_people() -> Console:
    """A console that prints words as they are."""
    return Console(highlight=False, markup=False)


def print_summary(result: Mapping[str, Any]) -> None:
    """What a run or a replay came to."""
    console = console_for_people()
    console.print(_times(result))
    console.print(_facts(result))
    for warning in result.get("warnings", ()):
        console.print(f"! {warning}", style="yellow")
    bad = bool(result.get("exit_status"))
    console.print(f"{result['scene']}: {result['exit_reason']}", style="bold red" if bad else "bold")


def _times(result: Mapping[str, Any]) -> Table:
    table = Table(
        title=f"{result.get('title', '')}, {number(result.get('duration_s'))} s", title_justify="left"
    )
    table.add_column("")
    for name in ("median", "p99", "p99.9", "max"):
        table.add_column(name, justify="right")
    servo, slow = result["servo"], result["slow"]
    rows = [
        ("tick late by [µs]", servo.get("late_us") if result.get("driver") != "lock-step" else None),
        ("empty loop late by [µs]", result.get("clock_baseline_us")),
        ("tick takes [µs]", servo.get("step_us")),
        ("slow step takes [ms]", slow.get("step_ms")),
        *((f"  {name} [ms]", values) for name, values in slow.get("by_step_ms", {}).items()),
    ]
    for name, values in rows:
        if values:
            table.add_row(name, *(number(float(values[q])) for q in QUANTILES))
    return table


def _facts(result: Mapping[str, Any]) -> Table:
    servo, slow, force = result["servo"], result["slow"], result["force_N"]
    table = Table(show_header=False)
    rows = [
        ("interface", f"{result['interface']}; latency: {result['latency']}"),
        ("device", result["device"]),
        ("servo", f"{number(servo['steps'])} ticks, {servo['missed']} missed, {servo['stale']} stale"),
        ("slow loop", f"{number(slow['steps'])} steps, {slow['overruns']} over their period"),
        *([("pace", slow["pace"])] if slow.get("pace") else []),
        *(
            (f"slow loop at {number(other['rate_hz'])} Hz", f"{number(other['steps'])} steps")
            for other in slow.get("others", ())
        ),
        ("most contacts", number(slow["contacts_max"])),
        ("largest force [N]", f"{number(force['max_norm'])}, {number(force['max_norm_sent'])} sent"),
        ("force at the end [N]", number(force["final"])),
        ("mean over the last 0.5 s [N]", number(force["mean_last_half_second"])),
        *_port(servo),
        ("deepest penetration [mm]", number(1e3 * result["penetration_m"]["max"])),
        ("mass [kg]", ", ".join(f"{body} {number(m)}" for body, m in result["mass_kg"].items())),
        *((name.replace("_", " "), number(value)) for name, value in result["system"].items()),
        ("memory [MB]", number(result.get("memory_mb"))),
        *((key, result[key]) for key in ("recording", "export", "report") if key in result),
        *_window(result.get("window")),
    ]  # fmt: skip
    for name, value in rows:
        table.add_row(name, value)
    return table


def _port(servo: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What went through the hand's port, and whether the map to the scene keeps its power."""
    energy, torque, place = servo["passivity"], servo["torque"], servo["workspace"]
    power = "keeps power" if place["power_consistent"] else "not passive"
    given = f"{number(1e3 * energy['energy_J'])}, at most {number(1e3 * energy['highest_J'])}"
    if energy["active_ticks"]:
        damped = number(1e3 * energy["dissipated_J"])
        given += f"; damping took {damped} back in {energy['active_ticks']} ticks"
    missed = f"{number(torque['peak_Nm'])} N m at most, {number(1e3 * torque['unrendered_J'])} mJ of work"
    scales = f"lengths {number(place['scale'])}, forces {number(place['force_scale'])}: {power}"
    return [
        ("energy given to the hand [mJ]", given if energy["mode"] != "off" else "not observed"),
        ("torque not rendered", missed),
        ("scale from device to scene", scales),
    ]


def _window(window: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """How the window kept up."""
    if window is None:
        return []
    rate, late = number(window["frames_hz"]), window["latency_ms"]
    anew = number(window["drawn_hz"])
    age = f"{number(late['p50'])} ms after their state, {number(late['p99'])} at p99"
    return [("pictures", f"{rate} a second, {anew} of them new; {age}")]


def print_places(folder: Path) -> None:
    """Where a report's page, animation and pictures are."""
    console = console_for_people()
    console.print("Wrote:", style="bold")
    for name, pattern in (("page", "*.html"), ("animation", "*.gif"), ("pictures", "picture_*.png")):
        for path in sorted(folder.glob(pattern)):
            console.print(f"  {name:<11}{path}", soft_wrap=True)
    if not any(folder.glob("*.gif")):
        console.print("No pictures: the page says why.")
