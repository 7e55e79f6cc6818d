"""Curves of a run as data in its page, where a reader can look at any part of them closely.

Each curve is 16-bit numbers over an even clock. Of a longer run neighbouring ticks share a pair of numbers,
their smallest and their largest in the order in which they came, so that no peak is lost.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from palpo.app.report.figures import BLUE, FAINT, INK
from palpo.physics.exchange.snapshot import CONTACT_STATES
from palpo.render import palette

Floats = NDArray[np.float64]
Panel = tuple[str, str, dict[str, tuple[Floats, str, bool]]]
"""Heading, unit, and by name each curve (n,), its colour, and whether it is dashed."""

MOST = 12_000
"""Numbers of a curve, at most."""
LEVELS = 65_534
"""Steps between the smallest and the largest number of a curve; one more word says "not finite"."""


def force_curves(series: Mapping[str, Any]) -> str:
    """Commanded and sent force on the hand, and its norm."""
    t, sent, commanded = _of(series, "time_s", "force_sent_N", "force_commanded_N")
    parts = {}
    for k, name in enumerate("xyz"):
        parts[f"{name} commanded"] = commanded[:, k], to_hex(palette.AXES[k]), True
        parts[f"{name} sent"] = sent[:, k], to_hex(palette.AXES[k]), False
    norms = {
        "commanded": (np.linalg.norm(commanded, axis=1), FAINT, True),
        "sent": (np.linalg.norm(sent, axis=1), INK, False),
    }
    return _told(t, [("force on the hand", "N", parts), ("norm", "N", norms)])


def position_curves(series: Mapping[str, Any]) -> str:
    """Where the hand was, and the point of the tool that it held."""
    t, device, held = _of(series, "time_s", "position_m", "held_m")
    parts = {}
    for k, name in enumerate("xyz"):
        parts[f"{name} held point"] = 1e3 * held[:, k], to_hex(palette.AXES[k]), True
        parts[f"{name} device"] = 1e3 * device[:, k], to_hex(palette.AXES[k]), False
    return _told(t, [("position", "mm", parts)])


def contact_curves(series: Mapping[str, Any]) -> str:
    """Contacts at each step of the slow loop, by state where the run kept it."""
    t, counts = _of(series, "low_time_s", "contacts")
    if counts.ndim == 1:
        return _told(t, [("contacts", "", {"contacts": (counts, BLUE, False)})])
    kept = [k for k in range(counts.shape[1]) if counts[:, k].any()]
    parts = {CONTACT_STATES[k]: (counts[:, k], to_hex(palette.CONTACT[k]), False) for k in kept}
    return _told(t, [("contacts", "", parts)]) if parts else ""


def thinned(values: Floats, most: int = MOST) -> Floats:
    """At most so many numbers, spread evenly over all of `values` (n,).

    Of each run of neighbours the smallest and the largest, in their order; values that are few stay.
    """
    if len(values) <= most:
        return values
    each = -(-2 * len(values) // most)
    # the last run is filled up with its last value
    runs = np.append(values, np.full(-len(values) % each, values[-1])).reshape(-1, each)
    low, high = (np.where(np.isfinite(runs), runs, end) for end in (np.inf, -np.inf))
    first, second = low.argmin(axis=1), high.argmax(axis=1)
    order = np.sort(np.stack([first, second], axis=1), axis=1)
    return np.take_along_axis(runs, order, axis=1).ravel()


def _of(series: Mapping[str, Any], clock: str, *names: str) -> list[Floats]:
    """Times and series of one length; one that is missing is not finite anywhere."""
    t = np.asarray(series.get(clock, ()), float)
    found = [t]
    for name in names:
        values = np.asarray(series.get(name, ()), float)
        found.append(values if len(values) == len(t) > 0 else np.full((len(t), 3), np.nan))
    return found


def _told(t: Floats, panels: list[Panel]) -> str:
    """The curves as JSON; empty without any."""
    if len(t) < 2 or not np.isfinite(t[[0, -1]]).all() or not t[-1] > t[0]:
        return ""
    told = [
        {
            "title": title,
            "unit": unit,
            "curves": [
                {"name": name, "colour": colour, "dashed": dashed, **_packed(thinned(values))}
                for name, (values, colour, dashed) in curves.items()
                if np.isfinite(values).any()
            ],
        }
        for title, unit, curves in panels
    ]
    return json.dumps({"from": float(t[0]), "to": float(t[-1]), "panels": told}, separators=(",", ":"))


def _packed(values: Floats) -> dict[str, Any]:
    """Numbers as 16-bit words between their smallest and their largest."""
    good = np.isfinite(values)
    low, high = float(values[good].min()), float(values[good].max())
    step = (high - low) / LEVELS or 1.0
    words = np.where(good, np.rint((np.where(good, values, low) - low) / step), LEVELS + 1).astype("<u2")
    return {"low": low, "step": step, "words": base64.b64encode(words.tobytes()).decode("ascii")}
