"""How far the servo's force is from that of the whole scene at 1 kHz, for each interface kind.

Each case is a scene, a mass of the tool and a speed of the hand. Its reference, `monolithic`, is computed
once and every kind is held against it, with the latency of one low period that threads have on a machine that
keeps up, and `krylov` also where every low step is late (LATE). Errors are in per cent of the reference's
peak and of its RMS. "At rest" is where the hand's target has stood still for SETTLED seconds, and "moving"
where it has not; before the first motion there is nothing to measure.

The reference is discrete itself. Beside every row stands how far it is from the same scene with everything at
2 and 4 kHz, the force averaged over each of its ticks: an error far below that says that the two rates agree,
not that the force is known so well.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from rich.console import Console
from scipy.signal import butter, sosfiltfilt

from palpo.config.load import load_scene
from palpo.haptics.path import waypoint_path
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.runs import Drive, Ledger, drive
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
Row = dict[str, Any]

KINDS = ("krylov", "extrapolated", "paper")
LOW_HZ = (50, 20)
CUTOFF_HZ = 100.0
SETTLED = 0.4
"""Seconds after which a hand that stands still counts as being at rest."""
DIVERGED = 10.0
"""A force of this many times the reference's peak is a divergence, whatever comes after it."""
LATE = tuple(np.random.default_rng(0).uniform(1.5, 5.0, 64).tolist())
"""Low periods that each low step takes where the machine is late."""
A_LITTLE = tuple(np.random.default_rng(1).uniform(1.0, 2.0, 64).tolist())
"""The same where it is late by no more than a period."""
LATENESS = {"punctual": (1.0,), "frames up to 2 periods late": A_LITTLE, "frames 1.5 to 5 periods late": LATE}
PUNCTUAL, TWO_PERIODS, *_ = LATENESS
FINER = (2, 4)
"""Rates of the finer references over that of the servo."""
COARSE = ("bodies.cylinder.geometry.around=11", "bodies.cylinder.geometry.along=6")
"""The cylinder of `wire` in 414 tetrahedra."""
LANDING = (
    (0.0, 0.12, 0.2, 0.0), (0.02, 0.12, 0.2, 0.0), (0.37, 0.06, 0.265, 0.0), (0.52, 0.05, 0.22, 0.0),
    (0.67, 0.05, 0.215, 0.0),
)  # fmt: skip
"""A path (s, m) on which that cylinder is lifted and dropped; it lands at LANDS."""
LANDS = 0.43
SLIDE = ((0.0, 0.12, 0.2, 0.0), (0.05, 0.12, 0.2, 0.0), (0.45, 0.19, 0.2, 0.0))
"""A path (s, m) on which that cylinder is pulled aside quickly: its rear end is raised, and falls back."""
SLIDE_LANDS = 0.31
"""Time [s] at which it does: what comes after it is a landing."""
EVENTS = {"wire": (6.0, "until it is dropped"), "needle": (3.7, "until its tip jumps")}
"""Time [s] on a scene's own path from which a small difference grows by itself: the cylinder is dropped, the
needle jumps out of its dent, some milliseconds earlier or later."""
FEWER = (72, 48, 24)
"""Columns of the slide beside those of the scene."""
IMPULSES = ("impulse_Ns", "impulse_lost_Ns", "impulse_lost_percent")
"""What `_impulses` measures."""
AFTER_LANDING = {50: 5.0, 200: 1.5}
"""Largest RMS error of krylov after a landing, per cent of the peak, by low rate [Hz]."""
LIMIT = {"probe": 0.5, "beams": 2.0, "wire": 2.0, "needle": 2.0}
"""Largest RMS error of krylov while moving, per cent of the peak, over all masses and speeds."""
OWN_PATH = {50: 0.5, 20: 1.0}
"""The same on own paths and the slide, up to EVENTS or SLIDE_LANDS, punctual, by low rate [Hz]."""
OWN_PATH_LATE = 1.0
"""The same on the scenes' own paths where frames are up to 2 periods late."""
NOT_REACHED = {
    ("wire, quick slide until it lands", 20, TWO_PERIODS),
    ("beams, own path", 20, TWO_PERIODS),
}
"""What is asked as well and not reached: it stands as a figure beside what is asked."""


@dataclass(frozen=True)
class Case:
    """A scene under one mass of its tool and one speed of the hand."""

    scene: str
    mass: float
    """Factor on the tool's mass."""
    speed: float
    """Factor on the hand's speed."""
    ticks: int
    """Most ticks of the path; 0 for all."""
    kinds: tuple[str, ...]
    low_hz: tuple[int, ...]
    mesh: tuple[str, ...] = ()
    """The scene's keys that make its mesh another one."""
    landing: bool = False
    """Whether the path is LANDING, and errors are those after it."""
    slide: bool = False
    """Whether the path is SLIDE."""
    finer: tuple[int, ...] = FINER

    @property
    def path_of_its_own(self) -> bool:
        """Whether its path is not the scene's."""
        return self.landing or self.slide

    @property
    def calm(self) -> tuple[float, str]:
        """Time [s] up to which no small difference grows by itself on its path, and in words."""
        if self.slide:
            return SLIDE_LANDS, "until it lands"
        end, words = EVENTS.get(self.scene, (float("inf"), ""))
        return (float("inf"), "") if self.landing else (end / self.speed, words)

    @property
    def name(self) -> str:
        """For files and figures."""
        special = ", landing" if self.landing else ", slide" if self.slide else ""
        return f"{self.scene}, mass x {self.mass:g}, speed x {self.speed:g}{special}"

    def overrides(self) -> list[str]:
        """The scene's keys that make the tool `mass` times as heavy, and the mesh."""
        spec = load_scene(self.scene)
        tool = spec.tool_body
        if self.mass == 1.0:
            return [*self.mesh]
        if tool.kind == "beam":
            return [*self.mesh, f"bodies.{tool.name}.material.density={self.mass * tool.material.density}"]
        return [*self.mesh, f"bodies.{tool.name}.mass={self.mass * (tool.mass or 0.0)}"]

    def path(self, finer: int = 1) -> Floats:
        """The hand's target at the servo's rate, or at one `finer` times as high."""
        spec = load_scene(self.scene)
        rows: Sequence[tuple[float, ...]] = (
            LANDING if self.landing else SLIDE if self.slide else spec.device.path
        )
        rows = [(t / self.speed, *x) for t, *x in rows]
        kind: Literal["smooth", "linear"] = (
            "smooth" if self.landing or self.slide or spec.device.smooth else "linear"
        )
        path = waypoint_path(rows, kind, rate_hz=finer * spec.rates.servo_hz)[0]
        return path[: finer * self.ticks] if self.ticks else path


@dataclass
class Outcome:
    """Rows of one case, and the forces that its figure needs."""

    case: Case
    rows: list[Row]
    reference: Floats
    forces: dict[tuple[str, int], Floats]


def run(out: Path, quick: bool) -> list[Line]:
    """All cases on two processes; the longest first."""
    outcomes = _compute(_cases(quick))
    rows = [row for outcome in outcomes for row in outcome.rows]
    write_csv(out / "accuracy.csv", rows)
    save_figure(out / "errors.png", 5.2, lambda figure: _draw_errors(figure, rows))
    for scene in LIMIT:
        for outcome in [o for o in outcomes if o.case.scene == scene and not o.case.path_of_its_own][:1]:
            save_figure(out / f"force-{scene}.png", 5.6, partial(_draw_forces, outcome=outcome))
    return _claims(rows)


def _cases(quick: bool) -> list[Case]:
    """Mass and speed are varied one at a time about the scene as it is; last comes the landing."""
    if quick:
        return [
            Case("wire", 1.0, 2.0, 700, ("krylov",), (50,), COARSE),
            Case("needle", 1.0, 1.0, 1200, ("krylov",), (50,), finer=FINER[:1]),
            Case("probe", 1.0, 1.0, 1300, ("krylov",), (50,), finer=FINER[:1]),
            Case("beams", 1.0, 1.0, 2000, KINDS, (50,)),
            replace(SLIDE_CASE, mesh=COARSE),
            LANDING_CASE,
        ]
    grid = ((1.0, 1.0), (0.25, 1.0), (4.0, 1.0), (1.0, 3.0))
    cases = [
        Case(scene, mass, speed, 0, KINDS, LOW_HZ)
        for scene in ("wire", "probe", "needle", "beams")
        for mass, speed in grid
    ]
    return [*cases, SLIDE_CASE, LANDING_CASE]


LANDING_CASE = Case("wire", 1.0, 1.0, 0, ("krylov",), tuple(AFTER_LANDING), COARSE, landing=True)
SLIDE_CASE = Case("wire", 1.0, 1.0, 0, ("krylov",), LOW_HZ, slide=True, finer=FINER[:1])


def _compute(cases: Sequence[Case]) -> list[Outcome]:
    console = Console(stderr=True, highlight=False)
    # each process computes on one core; more BLAS threads would only wait for each other
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    done: dict[Case, Outcome] = {}
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for future in as_completed([pool.submit(evaluate, case) for case in cases]):
            outcome = future.result()
            done[outcome.case] = outcome
            console.print(f"  {len(done)}/{len(cases)}  {outcome.case.name}", style="dim")
    return [done[case] for case in cases]


def evaluate(case: Case) -> Outcome:
    """The reference and every kind at every low rate, and krylov with late frames too."""
    path, overrides = case.path(), case.overrides()
    reference = drive(case.scene, path, overrides, "monolithic")
    exact, since = reference.trace["force"], round(LANDS / reference.dt) if case.landing else 0
    calm, words = case.calm
    until = round(min(calm, reference.dt * len(exact)) / reference.dt)
    own = _refinement(case, exact, since, until, reference.dt)
    rows, forces = [], {}
    runs = [
        (kind, hz, late, 0)
        for hz in case.low_hz
        for kind in case.kinds
        for late in LATENESS
        if late == PUNCTUAL or kind == "krylov"
    ]
    if case.slide:
        runs += [("krylov", max(case.low_hz), PUNCTUAL, columns) for columns in FEWER]
    for kind, low_hz, late, columns in runs:
        keys = [*overrides, f"rates.low_hz={low_hz}"]
        keys += [f"interface.max_columns={columns}"] * (columns > 0)
        with Drive(case.scene, keys, kind, durations=LATENESS[late]) as other:
            ledger = Ledger(other)
            other.go(path)
        force = other.trace["force"]
        if late == PUNCTUAL and not columns:
            forces[kind, low_hz] = force
        row: Row = {
            "scene": case.scene, "landing": case.landing, "slide": case.slide, "tool_mass_factor": case.mass,
            "hand_speed_factor": case.speed, "mass_ratio": _mass_ratio(other), "kind": kind, "low_hz": low_hz,
            "late": late, "columns": other.spec.interface.max_columns, "fewer_columns": columns > 0,
        }  # fmt: skip
        row |= compare(exact, force, path, round(1000 / low_hz), other.dt, since, until)
        whole = compare(exact, force, path, round(1000 / low_hz), other.dt, since)["moving_rms_percent"]
        row["whole_rms_percent"] = whole
        row["judged"] = words if until < len(exact) else ""
        row |= own
        row["reference_diverged"] = reference.stopped
        # the ledger counts what the attachment passes on; after a landing the tool presses on the body too
        row |= _impulses(force, other, ledger) if not case.landing else dict.fromkeys(IMPULSES, float("nan"))
        rows.append(row)
    return Outcome(case, rows, exact, forces)


def _refinement(case: Case, exact: Floats, since: int, until: int, dt: float) -> Row:
    """How far the reference, and that at twice its rate, are from the finest, while moving."""
    forces = {1: exact}
    for finer in case.finer:
        hz = round(finer / dt)
        run = drive(case.scene, case.path(finer), [*case.overrides(), f"rates.servo_hz={hz}"], "monolithic")
        forces[finer] = averaged(run.trace["force"], finer)
    finest = max(forces)
    row: Row = {"finest_reference_kHz": 1e-3 * finest / dt}
    for finer in (1, *FINER[:-1]):
        off: Row = {}
        if finer < finest:
            off = compare(forces[finest], forces[finer], case.path(), 1, dt, since, until)
        for of in ("", "_of_rms"):
            row[f"reference_{1e-3 * finer / dt:g}kHz_off_percent{of}"] = off.get(
                f"moving_rms_percent{of}", float("nan")
            )
    return row


def averaged(force: Floats, n: int) -> Floats:
    """The mean force (k, 3) over each n ticks in a row, that is their impulse over their time."""
    whole = len(force) // n
    return force[: n * whole].reshape(whole, n, -1).mean(axis=1)


def _mass_ratio(run: Drive) -> float:
    """Mass of the low-rate bodies over the tool's."""
    scene = run.lock.scene
    return sum(float(m.body.mass) for m in scene.members) / float(scene.model.weight.sum())


def compare(
    exact: Floats,
    force: Floats,
    path: Floats,
    ratio: int,
    dt: float,
    since: int = 0,
    until: int | None = None,
) -> Row:
    """Every measure of one run against its reference; forces (n, 3) [N], `ratio` ticks a low period.

    Per cent of the reference's peak, or of its RMS over the same ticks; judged are since .. until - 1.
    """
    peak = float(np.linalg.norm(exact, axis=1).max())
    size = np.linalg.norm(force, axis=1)
    beyond = np.flatnonzero(~(size < DIVERGED * peak))
    broke = int(beyond[0]) if len(beyond) else (len(force) if len(force) < len(exact) else -1)
    n = min(len(exact), broke if broke >= 0 else len(force))
    exact, force = exact[:n], force[:n]
    judged = (np.arange(n) >= since) & (np.arange(n) < (n if until is None else until))
    rest, moving = (ticks & judged for ticks in rest_and_motion(path[:n], dt))
    error = np.linalg.norm(force - exact, axis=1)
    smooth = np.linalg.norm(below(force, CUTOFF_HZ, dt) - below(exact, CUTOFF_HZ, dt), axis=1)
    refresh = np.arange(2 * ratio, n, ratio)
    leap, own = (np.linalg.norm(f[refresh] - f[refresh - 1], axis=1) for f in (force, exact))
    per, whole = 100.0 / peak, np.linalg.norm(exact, axis=1)
    return {
        "peak_N": peak,
        "rms_N": _rms(whole),
        "moving_rms_percent": per * _rms(error[moving]),
        "moving_rms_percent_of_rms": _share(error[moving], whole[moving]),
        "moving_max_percent": per * _most(error[moving]),
        "moving_rms_below_100Hz_percent": per * _rms(smooth[moving]),
        "moving_max_below_100Hz_percent": per * _most(smooth[moving]),
        "rest_rms_percent": per * _rms(error[rest]),
        "rest_rms_percent_of_rms": _share(error[rest], whole[rest]),
        "rest_max_percent": per * _most(error[rest]),
        "jump_at_refresh_N": _most(leap),
        "reference_change_there_N": _most(own),
        "diverged_at_s": dt * broke if broke >= 0 else float("nan"),
    }


def rest_and_motion(path: Floats, dt: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Ticks at rest and ticks in motion, both (n,); what comes before the first motion is neither."""
    steps = np.linalg.norm(np.diff(path, axis=0, prepend=path[:1]), axis=1)
    moves = steps > 1e-9
    last = np.maximum.accumulate(np.where(moves, np.arange(len(path)), -1))
    started = last >= 0
    rest = started & (np.arange(len(path)) - last > SETTLED / dt)
    return rest, started & ~rest


def below(force: Floats, cutoff: float, dt: float) -> Floats:
    """The force without what lies above the cutoff [Hz], and without delay."""
    if len(force) < 30:
        return force
    return sosfiltfilt(butter(4, cutoff, fs=1.0 / dt, output="sos"), force, axis=0)


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean())) if len(values) else float("nan")


def _share(error: Floats, whole: Floats) -> float:
    """RMS of the error in per cent of that of the whole; NaN where there is nothing."""
    return 100.0 * _rms(error) / _rms(whole) if whole.any() else float("nan")


def _most(values: Floats) -> float:
    return float(values.max()) if len(values) else float("nan")


def _impulses(force: Floats, run: Drive, ledger: Ledger) -> Row:
    """Impulse on the tool and on the low-rate bodies; they must be opposite over the ticks both have seen."""
    done = min(run.lock.low.tick, len(force))
    on_tool = run.dt * force[:done].sum(axis=0)
    passed = run.dt * float(np.linalg.norm(force[:done], axis=1).sum())
    lost = float(np.linalg.norm(on_tool + ledger.impulse))
    return dict(zip(IMPULSES, (passed, lost, 100.0 * lost / max(passed, 1e-12)), strict=True))


def _claims(rows: list[Row]) -> list[Line]:
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
    lost = max(r["impulse_lost_percent"] for r in own if not r["landing"])
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
    """The worst figure of all cases; infinite where one diverged."""
    values = [r[name] for r in rows if np.isfinite(r[name])]
    return float("inf") if broke else max(values, default=0.0)


def _draw_errors(figure: Figure, rows: list[Row]) -> None:
    """RMS error while moving: a bar a kind, a point a case."""
    rows = [r for r in rows if r["late"] == PUNCTUAL and not r["landing"] and not r["slide"]]
    rates = [hz for hz in LOW_HZ if any(r["low_hz"] == hz for r in rows)]
    axes = np.atleast_1d(figure.subplots(1, len(rates), sharey=True))
    scenes = [scene for scene in LIMIT if any(r["scene"] == scene for r in rows)]
    for ax, low_hz in zip(axes, rates, strict=True):
        for k, kind in enumerate(KINDS):
            for s, scene in enumerate(scenes):
                values = [
                    r["moving_rms_percent"] for r in rows
                    if (r["scene"], r["kind"], r["low_hz"]) == (scene, kind, low_hz)
                ]  # fmt: skip
                if not values:
                    continue
                x = s + 0.26 * (k - 1)
                ax.bar(x, np.median(values), 0.24, color=COLOURS[kind], alpha=0.85)
                ax.plot(
                    [x] * len(values),
                    values,
                    ls="",
                    marker="o",
                    ms=3.5,
                    color=COLOURS["monolithic"],
                    alpha=0.8,
                )
        for s, scene in enumerate(scenes):
            ax.plot(
                [s - 0.4, s + 0.4], [LIMIT[scene]] * 2, color=COLOURS["monolithic"], lw=1.0, ls=(0, (4, 3))
            )
        ax.set_yscale("log")
        ax.set_xticks(range(len(scenes)), scenes)
        ax.set_title(f"low rate {low_hz} Hz", loc="left", fontsize=10)
        ax.grid(visible=False, axis="x")
    axes[0].set_ylabel("RMS error while moving [% of peak]")
    shown = [kind for kind in KINDS if any(r["kind"] == kind for r in rows)]
    patches = [Patch(color=COLOURS[kind], alpha=0.85, label=kind) for kind in shown]
    axes[0].legend(handles=patches, frameon=False, fontsize=8.5, loc="upper left", ncols=len(shown))
    axes[0].set_ylim(top=8.0 * axes[0].get_ylim()[1])
    figure.supxlabel(
        "bar: median over masses and speeds; points: each case; dashed: what krylov must keep", fontsize=8.5
    )


def _draw_forces(figure: Figure, outcome: Outcome) -> None:
    """Force of each kind on the reference's, and their errors, at the higher low rate."""
    top, bottom = figure.subplots(2, 1, sharex=True)
    low_hz = max(hz for _, hz in outcome.forces)
    exact = outcome.reference
    peak = float(np.linalg.norm(exact, axis=1).max())
    t = 1e-3 * np.arange(len(exact))
    for kind in reversed(KINDS):
        force = outcome.forces.get((kind, low_hz))
        if force is None:
            continue
        n = min(len(force), len(exact))
        top.plot(t[:n], np.linalg.norm(force[:n], axis=1), color=COLOURS[kind], lw=0.9, label=kind)
        error = 100.0 / peak * np.linalg.norm(force[:n] - exact[:n], axis=1)
        bottom.plot(t[:n], np.maximum(error, 1e-4), color=COLOURS[kind], lw=0.8, label=kind)
    top.plot(
        t,
        np.linalg.norm(exact, axis=1),
        color=COLOURS["monolithic"],
        lw=1.2,
        ls=(0, (4, 2)),
        label="all at 1 kHz",
    )
    top.set_ylim(0, 1.6 * peak)
    top.set_ylabel("constraint sum [N]")
    top.set_title(f"{outcome.case.name}, low rate {low_hz} Hz", loc="left", fontsize=10)
    top.legend(frameon=False, fontsize=8.5)
    bottom.set_yscale("log")
    bottom.set_ylim(1e-3, 300)
    bottom.set_ylabel("error [% of peak]")
    bottom.set_xlabel("time [s]")
