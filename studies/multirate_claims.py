"""What is claimed of the two rates' accuracy, and what stands beside it."""

import numpy as np

from palpo.studies.claims import Line, Reported, at_most, greatest
from palpo.studies.multirate_cases import (
    AFTER_LANDING,
    FEWER,
    KINDS,
    LATENESS,
    LOW_HZ,
    PUNCTUAL,
    TWO_PERIODS,
)
from palpo.studies.rows import Row

LIMIT = {"probe": 0.5, "beams": 2.0, "wire": 2.0, "needle": 2.0}
"""Largest RMS error of krylov while moving, per cent of the peak, over all masses and speeds."""
OWN_PATH = {50: 0.5, 20: 1.0}
"""The same on own paths and the slide, up to EVENTS or SLIDE_LANDS, punctual, by slow rate [Hz]."""
OWN_PATH_LATE = 1.0
"""The same on the scenes' own paths where frames are up to 2 periods late."""
NOT_REACHED = {
    ("wire, quick slide until it lands", 20, TWO_PERIODS),
    ("beams, own path", 20, TWO_PERIODS),
}
"""What is asked as well and not reached: it stands as a figure beside what is asked."""


def claims_of(rows: list[Row]) -> list[Line]:
    """Worst case of krylov in each scene, and what the other kinds reach beside it, without a limit."""
    fewer, rows = [r for r in rows if r["fewer_columns"]], [r for r in rows if not r["fewer_columns"]]
    punctual = [r for r in rows if r["late"] == PUNCTUAL and not r["landing"] and not r["slide"]]
    claims: list[Line] = []
    for scene, limit in LIMIT.items():
        for low_hz in LOW_HZ:
            mine = [r for r in punctual if r["scene"] == scene and r["low_hz"] == low_hz]
            own = [r for r in mine if r["kind"] == "krylov"]
            if not own:
                continue
            broke = _diverged(own)
            worst = max(own, key=lambda r: r["moving_rms_percent"])
            where = f"at mass x {worst['tool_mass_factor']:g}, speed x {worst['hand_speed_factor']:g}"
            name, unit = f"{scene}, krylov at {low_hz} Hz", "% of peak"
            error = _worst(own, "moving_rms_percent", broke)
            claims.append(
                at_most(f"{name}, moving, RMS; worst {where}", error, limit, unit, "what two rates may cost")
            )
            if any(np.isfinite(r["rest_rms_percent"]) for r in own):
                error = _worst(own, "rest_rms_percent", broke)
                claims.append(at_most(f"{name}, at rest, RMS", error, 1.0, unit, "what two rates may cost"))
    claims += [line for row in rows if row["kind"] == "krylov" for line in _asked(row)]
    claims += _with_fewer_columns(fewer)
    claims += _beside(rows)
    own = [r for r in rows if r["kind"] == "krylov"]
    lost = greatest(r["impulse_lost_percent"] for r in own if not r["landing"])
    claims.append(at_most("impulse by which action and reaction differ, krylov", lost, 0.1, "% of all passed",
                          "EQUATIONS.md, 1: action equals reaction over every period"))  # fmt: skip
    claims.append(at_most(f"krylov runs that diverged, of {len(own)}", _diverged(own), 0, "", "none may"))
    for kind in KINDS[1:]:
        other = [r for r in rows if r["kind"] == kind]
        if other:
            claims += _other_kind(kind, other)
    return claims


def _asked(row: Row) -> list[Line]:
    """What is asked of one run of krylov.

    A landing, or a jump of the needle's tip, lets small differences grow, and the tangent that a frame was
    made with is that of before. What is asked of whole paths with one is not reached, nor is it with late
    frames after a landing; this stands as a figure beside what is asked.
    """
    low_hz, late, unit, broke = row["low_hz"], row["late"], "% of peak", _diverged([row])
    if late not in (PUNCTUAL, TWO_PERIODS):
        return []
    error = _worst([row], "moving_rms_percent", broke)
    run = f"krylov at {low_hz} Hz, {late}, RMS"
    if row["landing"]:
        name, limit = f"{row['scene']}, after a landing, {run}", AFTER_LANDING[low_hz]
        if late == PUNCTUAL:
            return [at_most(name, error, limit, unit, "what a landing may cost")]
        return [Reported(name, error, unit, f"asked: {limit:g}; the tangent is of before the landing")]
    if not _own_path(row):
        return []
    asked = OWN_PATH[low_hz] if late == PUNCTUAL else OWN_PATH_LATE
    name = f"{row['scene']}, {'quick slide' if row['slide'] else 'own path'}"
    judged = f"{name} {row['judged']}".rstrip()
    if (judged, low_hz, late) in NOT_REACHED:
        lines: list[Line] = [Reported(f"{judged}, {run}", error, unit, f"asked: {asked:g}")]
    else:
        lines = [at_most(f"{judged}, {run}", error, asked, unit, "what two rates may cost")]
    if row["judged"]:
        whole = _worst([row], "whole_rms_percent", broke)
        lines.append(Reported(f"{name}, whole, {run}", whole, unit, f"asked: {asked:g}"))
    return lines


def _with_fewer_columns(rows: list[Row]) -> list[Line]:
    """The slide with ever fewer columns: that of the fewest may cost what its landing may."""
    lines: list[Line] = []
    for row in rows:
        error = _worst([row], "whole_rms_percent", _diverged([row]))
        name = f"{row['scene']}, quick slide, krylov at {row['low_hz']} Hz, {row['columns']} columns, RMS"
        if row["columns"] == min(FEWER):
            lines.append(
                at_most(name, error, AFTER_LANDING[row["low_hz"]], "% of peak", "what a landing may cost")
            )
        else:
            lines.append(_reported(name, error, "% of peak"))
    return lines


def _beside(rows: list[Row]) -> list[Reported]:
    """What belongs beside the errors: those of late frames, those of the reference, both in two measures."""
    claims = []
    for scene, landing, slide in sorted({(r["scene"], r["landing"], r["slide"]) for r in rows}):
        this = (scene, landing, slide, "krylov")
        own = [r for r in rows if (r["scene"], r["landing"], r["slide"], r["kind"]) == this]
        name = f"{scene}, " + ("after a landing" if landing else "quick slide" if slide else "moving")
        for low_hz in sorted({r["low_hz"] for r in own}):
            for late in LATENESS:
                some = [r for r in own if r["low_hz"] == low_hz and r["late"] == late]
                broke = _diverged(some)
                for key, unit in (
                    ("moving_rms_percent", "% of peak"),
                    ("moving_rms_percent_of_rms", "% of RMS"),
                ):
                    told = late == PUNCTUAL or (late == TWO_PERIODS and (landing or slide))
                    if not told or unit == "% of RMS":
                        of = f"{name}, krylov at {low_hz} Hz, {late}"
                        claims.append(_reported(of, _worst(some, key, broke), unit))
        for key in own[0]:
            if key.startswith("reference_") and "_off_" in key and np.isfinite(own[0][key]):
                rate, unit = key.split("_")[1], "% of RMS" if key.endswith("_of_rms") else "% of peak"
                finest = f"{own[0]['finest_reference_kHz']:g}kHz"
                claims.append(
                    _reported(f"{name}, everything at {rate} against {finest}", _worst(own, key, 0), unit)
                )
    return claims


def _reported(name: str, value: float, unit: str) -> Reported:
    """A figure, beside what is claimed of krylov."""
    return Reported(name, value, unit, "as it is")


def _own_path(row: Row) -> bool:
    """Whether the scene is as it is shipped, or slides; a coarser mesh counts as the scene."""
    return not row["landing"] and row["tool_mass_factor"] == 1.0 and row["hand_speed_factor"] == 1.0


def _diverged(rows: list[Row]) -> int:
    return sum(bool(np.isfinite(r["diverged_at_s"])) for r in rows)


def _other_kind(kind: str, rows: list[Row]) -> list[Line]:
    """Median over the cases that did not diverge, and how many did; nothing is demanded of them."""
    kept = [r for r in rows if not np.isfinite(r["diverged_at_s"])]
    words = "EQUATIONS.md, 1: " + {"paper": "19 to 38%", "extrapolated": "4 to 12%"}[kind]
    moving, lost = (
        float(np.median([r[name] for r in kept])) if kept else float("nan")
        for name in ("moving_rms_percent", "impulse_lost_percent")
    )
    return [
        Reported(f"{kind}, moving, RMS, median of {len(kept)}", moving, "% of peak", words),
        _reported(f"{kind}, impulse lost, median", lost, "% of all passed"),
        _reported(f"{kind} runs that diverged, of {len(rows)}", _diverged(rows), ""),
    ]


def _worst(rows: list[Row], name: str, broke: int) -> float:
    """The worst figure of all cases; infinite where one diverged, not a number where none has one."""
    values = [r[name] for r in rows if np.isfinite(r[name])]
    return float("inf") if broke else max(values, default=float("nan"))
