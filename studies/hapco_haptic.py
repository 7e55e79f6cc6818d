"""The haptic trials of N. Talbi's thesis ("001", section 4.4.3), a simulated hand in place of seven people.

Six steps of solver precision and friction, each at 16 and 36 contacts and at two moduli of the tissue: a
Phantom Desktop in a simulated hand presses an aluminium block into soft tissue, then drags it to the tissue's
free end and back toward its clamped one. *Ours* is the compiled servo with the compiled tick, in lock-step at
1 kHz. *001* is its solver (Uzawa global, its stops) in the off-line step, whose force is held until the next
one: at the rate that 001 reports for the step.

What 001 leaves open is chosen once. Its 45 and 90 MPa are read as kPa, with no force reducer: in MPa, 7.9 N
are tens of micrometres. How deep its users pressed is not said: here as deep as makes 3 N, its first peak
force, at 45 and mu 0.3; its other three are then for the study to find. Seven opinions become two numbers:
the force above 30 Hz, where a hand feels trembling and makes none itself, and the greatest jump in a tick.

How firm its users' hands were is not said either, and decides by how much a stiffer tissue is felt: a hand of
stiffness h that means to go d deep meets d / (1 / h + 1 / k) of a contact of stiffness k, as much of twice k
as of k if it is soft, and twice as much if it is firm. So the peaks are compared over hands, too. Its last
trial, a block of rubber (800 MPa) on a tissue of 0.9 MPa, is run with a twentieth of its force.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

from palpo.benchmarks.hapco_bearing import HAND
from palpo.config.load import load_scene
from palpo.config.schema.hapco import HapcoScene
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most, close_to, smallest
from palpo.studies.hapco_haptic_trials import (
    FITTED,
    HANDS,
    MODULI,
    PRESSED,
    PRINTED_PEAKS,
    QUICK_STEPS,
    SCENES,
    STEPS,
    Floats,
    HapticTrial,
    hand_path,
    peak,
    sent,
    trembling,
)
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS, save_figure, write_csv


def run(out: Path, quick: bool) -> list[Line]:
    """All steps, numbers of contacts and moduli, ours beside 001's solver at 001's rates."""
    depth = pressing_depth()
    path = hand_path(depth)
    firm = list(hand_peaks(HANDS[::3] if quick else HANDS))
    write_csv(out / "hands.csv", firm)
    trials = [
        HapticTrial(step, contacts, modulus)
        for modulus in (MODULI[:1] if quick else MODULI)
        for contacts in ((16,) if quick else tuple(SCENES))
        for step in (QUICK_STEPS if quick else STEPS)
    ]
    rows, traces = [], {}
    for trial in trials:
        ours, theirs = trial.ours(path), trial.thesis(path)
        traces[trial] = ours, theirs
        rows.append(trial.row(path, ours, theirs))
    write_csv(out / "trials.csv", rows)
    _print(rows)
    save_figure(out / "penetration.png", 5.6, lambda figure: _draw_penetration(figure, traces))
    save_figure(out / "trials.png", 5.6, lambda figure: _draw_rows(figure, rows))
    save_figure(out / "hands.png", 3.6, lambda figure: _draw_hands(figure, firm))
    return _claims(rows, depth) + _hand_claims(firm) + _rubber_claims(path)


def pressing_depth(hand: float = HAND) -> float:
    """Depth of a hand's path [m] at which step 3 at 36 contacts, 45 kPa has 001's first peak force."""
    trial = HapticTrial(STEPS[2], 36, MODULI[0])

    def beyond(depth: float) -> float:
        return peak(trial.ours(hand_path(depth), hand)) - PRINTED_PEAKS[FITTED]

    return float(brentq(beyond, 0.002, 0.06, xtol=1e-4))


def hand_peaks(hands: Sequence[float]) -> Iterator[Row]:
    """Peak forces of step 3 for hands of those stiffnesses, each of which presses so deep that the first is
    001's."""
    for hand in hands:
        depth = pressing_depth(hand)
        path, row = hand_path(depth), {"hand_N_per_m": hand, "depth_mm": 1e3 * depth}
        for modulus in MODULI:
            step = STEPS[2]
            row[f"peak_{modulus:g}_kPa_N"] = peak(HapticTrial(step, 36, modulus).ours(path, hand))
        low, high = (row[f"peak_{modulus:g}_kPa_N"] for modulus in MODULI)
        yield row | {"ratio": high / low}


# ---- the verdict


def _print(rows: list[Row]) -> None:
    table = Table(title="Rates, force above 30 Hz and peak force; 001 prints those in brackets")
    for name in ("step, contacts, kPa, mu", "Hz: 001's solver", "ours", "mN: 001's", "ours", "peak N"):
        table.add_column(name, justify="right")
    for r in rows:
        table.add_row(
            f"{r['step']}, {r['contacts']}, {r['modulus_kPa']:g}, {r['mu']:g}",
            f"{r['thesis_Hz']:.0f} ({r['printed_Hz']:g})",
            f"{r['ours_Hz']:.0f}",
            f"{1e3 * r['thesis_trembling_N']:.1f}",
            f"{1e3 * r['ours_trembling_N']:.1f}",
            f"{r['ours_peak_N']:.2f} ({r['printed_peak_N']:g})",
        )
    Console().print(table)


def _claims(rows: list[Row], depth: float) -> list[Line]:
    slowest = min(rows, key=lambda r: r["ours_p99_Hz"])
    theirs = min(rows, key=lambda r: r["thesis_Hz"])
    where = "step {step}, {contacts} contacts, {modulus_kPa:g} kPa"
    claims: list[Line] = [
        at_least(f"ours: rate in contact at the 99th percentile, least ({where.format(**slowest)})",
                 slowest["ours_p99_Hz"], 1000.0, "Hz", "haptic rate"),
        at_least(f"001's solver on this machine: mean rate, least ({where.format(**theirs)})",
                 theirs["thesis_Hz"], 100.0, "Hz", "the best that 001 had"),
        at_least("force above 30 Hz: 001's at its rate over ours at 1 kHz, least",
                 smallest(r["thesis_trembling_N"] / r["ours_trembling_N"] for r in rows), 1.0, "",
                 "ours is smoother at every step"),
        at_least("largest jump: 001's at its rate over ours at 1 kHz, least",
                 smallest(r["thesis_jump_N"] / r["ours_jump_N"] for r in rows), 1.0, "",
                 "ours is smoother at every step"),
        Reported("depth at which the hand presses", 1e3 * depth, "mm",
                 "chosen, so that 45 kPa at mu 0.3 has 001's 3 N"),
    ]  # fmt: skip
    return claims + _peak_claims(rows) + _effect_claims(rows)


def _hand_claims(firm: list[Row]) -> list[Line]:
    """Which hand has 001's ratio of peaks, between those that were tried."""
    hands, ratios = (np.array([row[key] for row in firm]) for key in ("hand_N_per_m", "ratio"))
    printed = PRINTED_PEAKS[MODULI[1], 0.3] / PRINTED_PEAKS[FITTED]
    fitting = float(np.interp(printed, ratios, hands)) if ratios[0] < printed < ratios[-1] else math.nan
    said = "001, section 4.4.3: 4.5 N over 3 N"
    return [
        *(
            Reported(f"peak at {MODULI[1]:g} kPa over {MODULI[0]:g}, hand of {row['hand_N_per_m']:g} N/m",
                     row["ratio"], "", f"{printed:g} printed")
            for row in firm
        ),
        at_least("hand that has the printed ratio of peaks", fitting, 700.0, "N/m", said),
        at_most("hand that has the printed ratio of peaks", fitting, 1500.0, "N/m", said),
    ]  # fmt: skip


RUBBER = (
    'bodies.punch.material={ youngs_modulus = "800 MPa", poisson_ratio = 0.4, density = 1100 }',
    'bodies.tissue.material.youngs_modulus="0.9 MPa"',
    "workspace.force_scale=0.05",
)
"""001's last trial; 0.9 MPa is twenty times 45 kPa."""


def _rubber_claims(path: Floats) -> list[Line]:
    """Rubber on tissue is felt as aluminium on a tissue a twentieth as stiff: both are rigid beside it."""
    fine, coarse = STEPS[2], STEPS[4]
    forces = {}
    for step in (fine, coarse):
        told = [*RUBBER, f"friction.default={step.mu}", f"solver.tolerance={step.eps_gs}"]
        rubber = load_scene(SCENES[16], told)
        assert isinstance(rubber, HapcoScene)
        forces[step] = sent(rubber, path)
    felt, like = peak(forces[fine]), peak(HapticTrial(fine, 16, MODULI[0]).ours(path))
    worse = trembling(forces[coarse]) / trembling(forces[fine])
    return [
        close_to("rubber of 800 MPa on tissue of 0.9 MPa, felt a twentieth: peak", felt, like, 5.0, "N",
                 "aluminium on 45 kPa"),
        Reported("rubber: force above 30 Hz at eps_GS 1e-2 over that at 1e-4", worse, "",
                 "001: 1e-2 feels worse, with 16 contacts"),
    ]  # fmt: skip


def _peak_claims(rows: list[Row]) -> list[Line]:
    """Each printed peak against the finest solution at most contacts; the FITTED one is a figure."""
    claims: list[Line] = []
    most = max(r["contacts"] for r in rows)
    for (modulus, mu), printed in PRINTED_PEAKS.items():
        own = [r for r in rows if (r["modulus_kPa"], r["mu"], r["contacts"]) == (modulus, mu, most)]
        if own:
            found = min(own, key=lambda r: r["eps_gs"])["ours_peak_N"]
            name, source = f"peak force at {modulus:g} kPa, mu {mu:g}, {most} contacts", "001, section 4.4.3"
            if (modulus, mu) == FITTED:
                claims.append(Reported(name, found, "N", f"the depth is fitted to {printed:g} ({source})"))
            else:
                claims.append(close_to(name, found, printed, 15.0, "N", source))
    return claims


def _effect_claims(rows: list[Row]) -> list[Claim]:
    """What 001's users felt when precision and contacts changed, as far as numbers have it."""

    def values(key: str, **keys: Any) -> NDArray[np.float64]:
        return np.array([r[key] for r in rows if all(r[name] == value for name, value in keys.items())])

    fine, coarse = values("thesis_trembling_N", step="1"), values("thesis_trembling_N", step="5")
    ours_fine, ours_coarse = values("ours_trembling_N", step="1"), values("ours_trembling_N", step="5")
    claims = [
        at_least("001: trembling at step 1 over that at step 5, least", float((fine / coarse).min()), 1.0, "",
                 "its users: step 1 jerky, step 5 supple"),
        at_most("ours: trembling at eps_GS 1e-8 over that at 1e-2, most",
                float((ours_fine / ours_coarse).max()), 1.05, "",
                "with the rate no longer bound to it, precision costs no smoothness"),
    ]  # fmt: skip
    if len({r["contacts"] for r in rows}) > 1:
        apart = np.abs(values("ours_peak_N", contacts=36) - values("ours_peak_N", contacts=16)).max()
        claims.append(
            at_most("peak forces with 16 and 36 contacts, greatest difference", float(apart), 0.3, "N",
                    "001, section 4.4.3: of the order of 0.3 N")
        )  # fmt: skip
    return claims


# ---- the pictures


def _draw_hands(figure: Figure, firm: list[Row]) -> None:
    """Ratio of the peaks over the hand's stiffness."""
    ax = figure.subplots()
    hands = [row["hand_N_per_m"] for row in firm]
    ax.plot(hands, [row["ratio"] for row in firm], "o-", color=COLOURS["krylov"], label="ours")
    printed = PRINTED_PEAKS[MODULI[1], 0.3] / PRINTED_PEAKS[FITTED]
    ax.axhline(printed, color=COLOURS["paper"], lw=1.0, label="001")
    ax.set(xlabel="stiffness of the hand [N/m]", ylabel=f"peak at {MODULI[1]:g} kPa over {MODULI[0]:g}")
    ax.legend(frameon=False, fontsize=8)


def _draw_penetration(figure: Figure, traces: dict[HapticTrial, tuple[Floats, Floats]]) -> None:
    """Figures 4.26 and 4.27: norm of the force while the hand presses."""
    shown = {t: pair for t, pair in traces.items() if t.modulus == MODULI[0] and t.step.mu == 0.3}
    counts = sorted({t.contacts for t in shown}, reverse=True)
    colours = (COLOURS["paper"], COLOURS["extrapolated"], COLOURS["faint"], COLOURS["krylov"])
    for ax, contacts in zip(
        figure.subplots(len(counts), 1, sharex=True, squeeze=False)[:, 0], counts, strict=True
    ):
        own = [t for t in shown if t.contacts == contacts]
        time = 1e-3 * np.arange(round(1e3 * PRESSED))
        for trial, colour in zip(own, colours, strict=False):
            norm = np.linalg.norm(shown[trial][1], axis=1)[: len(time)]
            said = f"001, step {trial.step.name}: eps_GS {trial.step.eps_gs:g}, {trial.step.printed_hz:g} Hz"
            ax.plot(time, norm, color=colour, lw=1.0, label=said)
        ours = np.linalg.norm(shown[own[0]][0], axis=1)[: len(time)]
        ax.plot(time, ours, color=COLOURS["monolithic"], lw=1.3, label="ours, eps_GS 1e-8, 1 kHz")
        ax.set(ylabel="force on the hand [N]", xlim=(0.6, PRESSED))
        ax.set_title(f"{contacts} contacts, {MODULI[0]:g} kPa, mu 0.3: pressing", loc="left", fontsize=10)
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    ax.set_xlabel("time [s]")


def _draw_rows(figure: Figure, rows: list[Row]) -> None:
    """Rate, trembling and jump over the steps."""
    names = list(dict.fromkeys(r["step"] for r in rows))
    curves = {
        "rate [Hz]": (("printed_Hz", "001 in 2008", COLOURS["faint"]), ("thesis_Hz", "001's solver here",
                      COLOURS["paper"]), ("ours_Hz", "ours", COLOURS["krylov"])),
        "force above 30 Hz, RMS [N]": (("thesis_trembling_N", "001 at its rate", COLOURS["paper"]),
                                       ("ours_trembling_N", "ours at 1 kHz", COLOURS["krylov"])),
        "largest jump in a tick [N]": (("thesis_jump_N", "001 at its rate", COLOURS["paper"]),
                                       ("ours_jump_N", "ours at 1 kHz", COLOURS["krylov"])),
    }  # fmt: skip
    for ax, (label, keys) in zip(figure.subplots(1, 3), curves.items(), strict=True):
        for key, name, colour in keys:
            for r in rows:
                filled = r["contacts"] == max(SCENES)
                ax.plot([names.index(r["step"])], [r[key]], ls="", marker="o", ms=5, color=colour, mew=0.9,
                        mfc=colour if filled else "none")  # fmt: skip
            ax.plot([], [], ls="", marker="o", ms=5, color=colour, label=name)
        ax.set(yscale="log", xlabel="step of the trials", title=label)
        ax.title.set_fontsize(10)
        ax.set_xticks(range(len(names)), names)
        low, high = ax.get_ylim()
        ax.set_ylim(low, high * (high / low) ** 0.3)
        ax.legend(frameon=False, fontsize=8, loc="upper left",
                  title=f"filled: {max(SCENES)} contacts", title_fontsize=8)  # fmt: skip
