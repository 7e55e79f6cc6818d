"""One page about one run: an HTML file that carries its pictures inside, and the same pictures beside it.

`result` holds what `--json` prints; every part of it, of `series` and of the pictures may be missing, and the
page then says why. Keys of `result`: title, scene, device, interface, duration_s, exit_reason, exit_status,
warnings; `servo` {rate_hz, steps, missed, stale, late_us, step_us}, `slow` {rate_hz, wish_hz, pace,
rate_changes, steps, overruns, contacts_max, step_ms, by_step_ms {L1: ...}}, `force_N` {final,
mean_last_half_second, max_norm}, `penetration_m` {max}, `mass_kg` {body: ...}, `mesh` [sentence],
`clock_baseline_us`; each distribution is {p50, p99, p999, max}.

Keys of `series`: time_s (n,) with force_commanded_N, force_sent_N, position_m and held_m (n, 3) at the
servo's rate; needles (m,) with needle_inside_m and needle_along_N (n, m); low_time_s (k,) with contacts (k,)
or (k, 4) by state; late_edges_us (b + 1,) with late_counts (b,), and step_edges_us with step_counts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

from palpo.app.report import curves, figures
from palpo.app.runtime.machine import machine_info
from palpo.physics.numerics.errors import InputError

__all__ = ["machine_info", "write_report"]

TEMPLATES = Path(__file__).parent / "templates"
PAGE = "report.html"
ANIMATION = "animation.gif"
PERCENTILES = (("p50", "median"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
NO_PICTURES = "No picture of the scene was taken in this run."


@dataclass(frozen=True)
class PageSection:
    """A section of the page: an image, or the sentence that says why there is none."""

    title: str
    note: str
    image: str = ""  # data URL
    why: str = ""
    curves: str = ""  # JSON of palpo.app.report.curves, drawn in the image's place where scripts run


def rendered(template: str, **values: Any) -> str:
    """The page of a template with these values, in the program's style."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(css=css, **values)


def write_report(
    folder: str | Path,
    result: Mapping[str, Any],
    series: Mapping[str, Any],
    pictures: Sequence[tuple[str, NDArray[np.uint8]]],
    config_text: str,
    machine: Mapping[str, str],
    no_pictures: str = NO_PICTURES,
    film: bytes = b"",
) -> Path:
    """Write the page, its PNGs and its animation into `folder`, made if need be; returns the page's path.

    `pictures` are titles with arrays (h, w, 3); `no_pictures` is the sentence that stands for them; `film` is
    a GIF, or empty. Raises InputError if the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("picture_[0-9][0-9]_*.png"):
            old.unlink()
        (folder / ANIMATION).unlink(missing_ok=True)
        if film:
            (folder / ANIMATION).write_bytes(film)
        page = _page(folder, result, series, pictures, config_text, machine, no_pictures, film)
        (folder / PAGE).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"report folder {folder}: cannot be written ({error.strerror or error}); "
            "--report needs a folder that you may create or write."
        ) from error
    return folder / PAGE


def _page(
    folder: Path,
    result: Mapping[str, Any],
    series: Mapping[str, Any],
    pictures: Sequence[tuple[str, NDArray[np.uint8]]],
    config_text: str,
    machine: Mapping[str, str],
    no_pictures: str,
    film: bytes,
) -> str:
    return rendered(
        "report.html",
        script=(TEMPLATES / "curves.js").read_text(encoding="utf-8"),
        title=result.get("title") or result.get("scene") or "Run",
        when=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        facts=_facts(result),
        exit_reason=result.get("exit_reason", ""),
        failed=bool(result.get("exit_status")),
        warnings=list(result.get("warnings") or ()),
        cards=_cards(result),
        photographs=[_photograph(folder, i, *p) for i, p in enumerate(pictures, 1)],
        no_pictures=no_pictures,
        film=_inline(film, "gif") if film else "",
        parts=_parts(folder, result, series),
        percentiles=[label for _, label in PERCENTILES],
        distributions=_distributions(result),
        steps=_steps(result),
        counts=_counts(result),
        masses=[(body, f"{number(m)} kg") for body, m in (result.get("mass_kg") or {}).items()],
        config_text=config_text,
        machine=machine,
        data=json.dumps(result, indent=2, default=_plain),
    )


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [(key, str(result[key])) for key in ("scene", "device", "interface") if result.get(key)]
    facts += [("mesh", said) for said in result.get("mesh", ())]
    if result.get("duration_s") is not None:
        facts.append(("duration", f"{number(result['duration_s'])} s"))
    return facts


def _cards(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The headline: what, value, remark."""
    servo, slow = result.get("servo") or {}, result.get("slow") or {}
    steps, missed = servo.get("steps"), servo.get("missed")
    forces, depth = result.get("force_N") or {}, result.get("penetration_m") or {}
    at_end = None if forces.get("final") is None else float(np.linalg.norm(forces["final"]))
    share = 100 * missed / steps if steps and missed is not None else None
    rows = (
        ("Largest force", forces.get("max_norm"), "N", "at the end {} N", at_end),
        (
            "Deepest penetration",
            _scaled(depth.get("max"), 1e3),
            "mm",
            "up to {} contacts",
            slow.get("contacts_max"),
        ),
        ("Deadlines missed", missed, "", "{} % of the ticks", share),
        ("Tick takes, p99", (servo.get("step_us") or {}).get("p99"), "µs", "at {} Hz", servo.get("rate_hz")),
        (
            "Slow step takes, p99",
            (slow.get("step_ms") or {}).get("p99"),
            "ms",
            "at {} Hz",
            slow.get("rate_hz"),
        ),
    )
    return [
        (name, f"{number(value)} {unit}", "not reported" if value is None else _remark(remark, detail))
        for name, value, unit, remark, detail in rows
    ]


def _remark(words: str, value: Any) -> str:
    return "" if value is None else words.format(number(value))


def _scaled(value: Any, factor: float) -> Any:
    return None if value is None else factor * value


def _distributions(result: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    servo, slow = result.get("servo") or {}, result.get("slow") or {}
    rows = (
        ("Tick late by [µs]", servo.get("late_us")),
        ("Empty loop late by [µs]", result.get("clock_baseline_us")),
        ("Tick takes [µs]", servo.get("step_us")),
        ("Slow step takes [ms]", slow.get("step_ms")),
    )
    return [(name, _quantiles(values)) for name, values in rows if values]


def _steps(result: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    by_step = (result.get("slow") or {}).get("by_step_ms") or {}
    return [(name, _quantiles(values)) for name, values in by_step.items()]


def _quantiles(values: Mapping[str, Any]) -> list[str]:
    return [number(values.get(key)) for key, _ in PERCENTILES]


def _counts(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    servo, slow, forces = (result.get(key) or {} for key in ("servo", "slow", "force_N"))
    rows = [
        ("Servo ticks", servo.get("steps")),
        ("Deadlines missed", servo.get("missed")),
        ("Ticks on a stale frame", servo.get("stale")),
        ("Slow steps", slow.get("steps")),
        ("Slow steps over their period", slow.get("overruns")),
        ("Pace at the end", slow.get("pace") or None),
        ("Contacts, at most", slow.get("contacts_max")),
        ("Final force [N]", forces.get("final")),
        ("Mean force of the last half second [N]", forces.get("mean_last_half_second")),
    ]
    return [(name, number(value)) for name, value in rows if value is not None]


def _parts(folder: Path, result: Mapping[str, Any], series: Mapping[str, Any]) -> list[PageSection]:
    def part(name: str, title: str, note: str, draw: Callable[[], Figure], data: str = "") -> PageSection:
        path = folder / f"{name}.png"
        try:
            figures.save(draw(), path)
        except figures.Missing as why:
            path.unlink(missing_ok=True)
            return PageSection(title, note, why=str(why))
        return PageSection(title, note, image=_data_url(path), curves=data)

    needles = (
        [
            part(
                "needles",
                "Needles",
                "Force along each needle over the length of it that is inside, in and out.",
                lambda: figures.needles(series),
            )
        ]
        if len(series.get("needles", ()))
        else []
    )
    return [
        part(
            "force",
            "Force",
            "On the hand, world axes.",
            lambda: figures.force(series),
            curves.force_curves(series),
        ),
        part(
            "position",
            "Position",
            "Of the device, in the scene's axes.",
            lambda: figures.position(series),
            curves.position_curves(series),
        ),
        *needles,
        part(
            "contacts",
            "Contacts",
            "At each step of the slow loop.",
            lambda: figures.contacts(series),
            curves.contact_curves(series),
        ),
        part(
            "servo_times",
            "Servo timing",
            "How late each tick woke up, and how long it took; both axes are logarithmic.",
            lambda: figures.servo_times(series, result),
        ),
        part("slow_steps", "Slow loop by step", "", lambda: figures.slow_steps(result)),
    ]


def _photograph(folder: Path, i: int, title: str, image: NDArray[np.uint8]) -> tuple[str, str]:
    slug = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:40] or "scene"
    path = folder / f"picture_{i:02d}_{slug}.png"
    imsave(path, np.ascontiguousarray(image))
    return title, _data_url(path)


def _data_url(path: Path) -> str:
    return _inline(path.read_bytes(), "png")


def _inline(image: bytes, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(image).decode("ascii")


def number(value: Any) -> str:
    """A value for people: four significant digits, counts in groups of three, a dash for what is missing."""
    if isinstance(value, list | tuple | np.ndarray):
        return "(" + ", ".join(number(v) for v in value) + ")"
    if isinstance(value, bool | np.bool_ | str):
        return str(value)
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}" if np.isfinite(value) else "not finite"
    return "–"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)
