"""Z-width: the largest coupling stiffness that is stable on a rigid wall, over the coupling's damping.

First an ideal device on a plain sampled wall, whose boundary is known exactly (`sampled_wall`), without delay
and with a Touch's. Then the simulated Touch with its delay, dry friction and resolution, through the real
servo and the real tick, on a rigid ball that the virtual coupling presses on a static plane: the hardest
case, since all else gives way. Last, what a margin hangs on: a map over delay, friction and the hand's grip.

Criterion. The stylus lies on the wall under a light press, in a hand, let go, or struck. It has come to rest
if over the last quarter of the run the reported position keeps within two counts of the Touch's encoder:
below a count the loop sees no motion, and rest may lie on the edge between two. Friction alone stops such a
strike within m v / F_c = 50 ms on a Touch; where it is less the run is longer. The boundary is the last
stiffness of a rising scan that comes to rest, refined by bisection; stable islands above it are of no use.

What the simulated Touch has not: links that bend. A real device's limit may be lower, and the maker's largest
stiffness is the figure to keep below: no run has a stiffer coupling (`palpo.app.runtime.live:softened`).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palpo.config.load import list_scenes, load_scene
from palpo.config.schema.scene import SceneSpec
from palpo.config.schema.tool import HoldSpec
from palpo.haptics.device_spec import DEVICES, DeviceSpec
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most, close_to, greatest, smallest
from palpo.studies.rows import Row
from palpo.studies.sampled_wall import (
    decays,
    exact_boundary,
    largest_stable,
    passivity_bound,
    spectral_radius,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv
from palpo.studies.zwidth_loops import (
    GRID,
    GRIPS,
    HAND,
    IDEAL,
    IN_THE_HAND,
    LET_GO,
    PERIOD,
    RESOLUTION,
    STRIKES,
    ClosedLoop,
)

DAMPINGS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0)
QUICK_DAMPINGS = (0.0, 1.0, 5.0, 20.0)
QUICK_STRIKES = STRIKES[1:2]
DELAYS, QUICK_DELAYS = (0.0, 1e-3, 2e-3, 3e-3), (0.0, 2e-3)
FRICTIONS, QUICK_FRICTIONS = (0.0, 0.02, 0.06, 0.26), (0.0, 0.26)
"""Of the map [s], [N]: a Desktop has 0.06 N, a Touch 0.26."""
LONG = 4800
"""Ticks of a run with little friction, where a swing takes seconds to die."""
COLGATE = "Colgate and Schenkel 1997: passive if b > K (T / 2 + d) + |B|"
ABBOTT = "Abbott and Okamura 2005, Diolaiti et al. 2006: F_c > K Delta / 2"


def run(out: Path, quick: bool) -> list[Line]:
    """Stability maps of the ideal device and of the simulated ones; margins of the couplings in use."""
    dampings = QUICK_DAMPINGS if quick else DAMPINGS
    strikes = QUICK_STRIKES if quick else STRIKES
    ideal = [row for delay in (0.0, DEVICES["touch"].delay) for row in _ideal_map(dampings, delay)]
    touch = [_touch_row(loop, damping) for loop in _loops(quick) for damping in dampings]
    couplings = _couplings()
    margins = [
        _margin(name, *coupling, device, strikes)
        for name, coupling in couplings.items()
        for device in ([DEVICES["touch"]] if quick else DEVICES.values())
    ]
    over = _margin_map(strikes, quick)
    for name, rows in {"ideal": ideal, "map": touch, "margins": margins, "margin_map": over}.items():
        write_csv(out / f"{name}.csv", rows)
    save_figure(out / "zwidth.png", 5.4, lambda figure: _draw(figure, ideal, touch, couplings))
    save_figure(out / "margin_map.png", 3.2, lambda figure: _draw_margins(figure, over))
    return [
        *_ideal_claims(ideal),
        *_touch_claims(touch),
        *_margin_claims(margins),
        *_map_claims(over),
        *_bare_claims(quick),
        _chatter(),
    ]


# ---- the ideal device


def _ideal_map(dampings: Sequence[float], delay: float) -> list[Row]:
    """Boundary by simulation and of the exact loop; what is unstable below the passivity bound."""
    rows, device = [], IDEAL._replace(delay=delay)
    for B in dampings:
        exact = exact_boundary(B, device)
        found = largest_stable(lambda K, B=B: decays(K, B, device), GRID, 1e-3)  # type: ignore[misc]
        bound = passivity_bound(B, device.viscosity, PERIOD, delay)
        passive = [bound * share for share in (0.02, 0.1, 0.3, 0.6, 0.9, 0.999)] if bound > 0.0 else []
        rows.append(
            {
                "delay_s": delay,
                "damping_Ns_per_m": B,
                "exact_N_per_m": exact,
                "simulated_N_per_m": found,
                "passive_below_N_per_m": max(bound, 0.0),
                "spectral_radius_there": spectral_radius(exact, B, device) if exact > 0.0 else 1.0,
                "passive_tried": len(passive),
                "passive_but_unstable": sum(not decays(K, B, device) for K in passive),
            }
        )
    return rows


def _ideal_claims(rows: list[Row]) -> list[Claim]:
    off = greatest(
        abs(r["simulated_N_per_m"] / r["exact_N_per_m"] - 1.0) for r in rows if r["exact_N_per_m"] > GRID[0]
    )
    radius = greatest(abs(r["spectral_radius_there"] - 1.0) for r in rows)
    tried, failed = (sum(r[key] for r in rows) for key in ("passive_tried", "passive_but_unstable"))
    return [
        at_most(f"ideal device: simulated boundary off the exact one, worst of {len(rows)}", 100.0 * off, 0.5,
                "%", "Jury's criterion in closed form, eigenvalues with a delay; bisection to 0.1%"),
        at_most("ideal device: spectral radius on the exact boundary, off 1", radius, 1e-8, "",
                "eigenvalues of the loop"),
        at_most(f"ideal device: unstable points below the passivity bound, of {tried}", failed, 0, "",
                COLGATE),
    ]  # fmt: skip


# ---- the simulated devices


def _loops(quick: bool) -> list[ClosedLoop]:
    """Held and let go; in full with both feedbacks, and on both devices."""
    touch, desktop = DEVICES["touch"], DEVICES["phantom_desktop"]
    if quick:
        return [ClosedLoop(touch, grip, strikes=QUICK_STRIKES) for grip in (IN_THE_HAND, LET_GO)]
    kinds = ((touch, "constraints"), (touch, "reaction"), (desktop, "constraints"))
    return [
        ClosedLoop(device, grip, feedback) for device, feedback in kinds for grip in (IN_THE_HAND, LET_GO)
    ]


def _touch_row(loop: ClosedLoop, damping: float) -> Row:
    """One point of the map, with what theory promises: a passive wall, friction above K Delta / 2."""
    viscous = GRIPS[loop.grip].damping
    promised = min(
        passivity_bound(damping, viscous, PERIOD, loop.device.delay),
        2.0 * loop.device.friction / loop.device.resolution,
    )
    return {
        "device": loop.device.name,
        "grip": loop.grip,
        "feedback": loop.feedback,
        "damping_Ns_per_m": damping,
        "largest_N_per_m": loop.largest(damping),
        "promised_N_per_m": max(promised, 0.0),
        "maker_N_per_m": loop.device.max_stiffness,
    }


def _touch_claims(rows: list[Row]) -> list[Line]:
    promised = [r for r in rows if r["promised_N_per_m"] > 0.0]
    least = smallest(r["largest_N_per_m"] / r["promised_N_per_m"] for r in promised)
    claims: list[Line] = [
        at_least(f"in the hand: largest stiffness over the one promised, least of {len(promised)}", least,
                 1.0, "", f"{COLGATE}, b of the hand; {ABBOTT}"),
    ]  # fmt: skip
    for device in dict.fromkeys(r["device"] for r in rows):
        own = [r for r in rows if r["device"] == device and 0.5 <= r["damping_Ns_per_m"] <= 5.0]
        least = smallest(r["largest_N_per_m"] / r["maker_N_per_m"] for r in own)
        claims.append(
            Reported(f"{device}: largest stiffness over the maker's, least for B of 0.5 to 5 N s/m", least,
                     "", "with the device's delay, friction and resolution")
        )  # fmt: skip
    return claims + _feedback_claims(rows)


def _feedback_claims(rows: list[Row]) -> list[Line]:
    """How far the two feedbacks are apart, where both have a stable stiffness."""
    by_kind: dict[str, dict[tuple[Any, ...], float]] = {"constraints": {}, "reaction": {}}
    for r in rows:
        by_kind[r["feedback"]][r["device"], r["grip"], r["damping_Ns_per_m"]] = r["largest_N_per_m"]
    sums, reactions = by_kind.values()
    apart = [k / sums[where] for where, k in reactions.items() if sums[where] > 0.0]
    about = "at rest on the wall both feed back the coupling's force"
    return [
        Reported(f"feedback: largest K with reaction over that with constraints, {name} of {len(apart)}",
                 value, "", about)
        for name, value in (("least", min(apart)), ("most", max(apart)))
    ] if apart else []  # fmt: skip


# ---- the couplings in use


def _couplings() -> dict[str, tuple[float, float, str]]:
    """Stiffness [N/m], damping [N s/m] and feedback of the default and of the shipped scenes, each once.

    As the device has them: a scene may be larger than the motion of the hand, and stronger than it feels.
    """
    hold = HoldSpec()
    found = {"default": (hold.stiffness, hold.damping, "constraints")}
    for name in list_scenes():
        scene = load_scene(name)
        # the bodies of HapCo have no inertia: their coupling is a compliance, not a tool on a spring
        if isinstance(scene, SceneSpec) and scene.tool.hold.mode == "coupling":
            tool, felt = scene.tool, scene.workspace.felt
            found[name] = (felt * tool.hold.stiffness, felt * tool.hold.damping, tool.feedback)
    names: dict[tuple[float, float, str], list[str]] = {}
    for name, coupling in found.items():
        names.setdefault(coupling, []).append(name)
    return {", ".join(who): coupling for coupling, who in names.items()}


def _margin(
    name: str, stiffness: float, damping: float, feedback: str, device: DeviceSpec, strikes: tuple[float, ...]
) -> Row:
    loops = [ClosedLoop(device, grip, feedback, strikes) for grip in (IN_THE_HAND, LET_GO)]
    held, free = (loop.largest(damping) for loop in loops)
    return {
        "coupling": name,
        "stiffness_N_per_m": stiffness,
        "damping_Ns_per_m": damping,
        "device": device.name,
        "margin_in_the_hand": held / stiffness,
        "margin_let_go": free / stiffness,
        "maker_over_it": device.max_stiffness / stiffness,
        "friction_needed_N": 0.5 * stiffness * device.resolution,
        "friction_N": device.friction,
    }


def _margin_claims(rows: list[Row]) -> list[Line]:
    """Of the default on each device, of scenes on a Touch; elsewhere the margin of a scene is a figure."""
    lines: list[Line] = []
    for r in rows:
        gains = f"{r['stiffness_N_per_m']:g} N/m, {r['damping_Ns_per_m']:g} N s/m"
        who = f"{r['coupling']} ({gains}) on {r['device']}"
        default = "default" in r["coupling"]
        for name, key in (("in the hand", "margin_in_the_hand"), ("let go", "margin_let_go")):
            said = f"{who}: gain margin {name}"
            if default:
                lines.append(at_least(said, r[key], 2.0, "", "as in control: 6 dB"))
            elif r["device"] == DEVICES["touch"].name:
                lines.append(at_least(said, r[key], 1.0, "", "stable"))
            else:
                lines.append(Reported(said, r[key], "", "not the scene's device"))
        lines += [
            at_least(f"{who}: maker's largest stiffness over it", r["maker_over_it"], 1.0, "", "data sheet"),
            at_least(f"{who}: friction over K Delta / 2", r["friction_N"] / r["friction_needed_N"], 1.0, "",
                     ABBOTT),
        ]  # fmt: skip
    return lines


def _chatter() -> Claim:
    """Ripple of the force at rest with the default coupling: the encoder may flip between two counts."""
    touch, hold = DEVICES["touch"], HoldSpec()
    K, B = hold.stiffness, hold.damping
    loops = [ClosedLoop(touch, grip) for grip in (IN_THE_HAND, LET_GO)]
    runs = [(loop, loop.rows(K, B, strike)) for loop in loops for strike in STRIKES]
    ripple = greatest(float(np.ptp(loop.tail(rows, "sent_y"))) for loop, rows in runs)
    # a count to and fro changes the spring by one count and the damper's backward difference by two
    limit = touch.resolution * (K + 2.0 * B / PERIOD)
    return at_most("Touch: ripple of the force at rest, default coupling, peak to peak", ripple,
                   limit * (1.0 + 1e-6), "N", "one count: K Delta + 2 B Delta / T")  # fmt: skip


# ---- the map of the default's margin


def _margin_map(strikes: tuple[float, ...], quick: bool) -> list[Row]:
    """Margin of the default coupling over the delay and the friction of a Touch and the grip of the hand."""
    hold = HoldSpec()
    rows = []
    for grip in (IN_THE_HAND, LET_GO) if quick else GRIPS:
        for delay in QUICK_DELAYS if quick else DELAYS:
            for friction in QUICK_FRICTIONS if quick else FRICTIONS:
                device = replace(DEVICES["touch"], delay=delay, friction=friction)
                ticks = LONG if friction < DEVICES["touch"].friction else ClosedLoop.ticks
                largest = ClosedLoop(device, grip, strikes=strikes, ticks=ticks).largest(hold.damping)
                rows.append(
                    {
                        "grip": grip,
                        "delay_s": delay,
                        "friction_N": friction,
                        "largest_N_per_m": largest,
                        "margin": largest / hold.stiffness,
                    }
                )
    return rows


def _map_claims(rows: list[Row]) -> list[Line]:
    """The map in lines, and that nothing in it up to a Touch's delay is unstable."""
    about = "largest stable stiffness over the default's"
    lines: list[Line] = [
        Reported(
            f"margin with {1e3 * r['delay_s']:g} ms, {r['friction_N']:g} N, {r['grip']}",
            r["margin"],
            "",
            about,
        )
        for r in rows
    ]
    delay = DEVICES["touch"].delay
    least = smallest(r["margin"] for r in rows if r["delay_s"] <= delay)
    lines.append(
        at_least(f"least margin up to a delay of {1e3 * delay:g} ms", least, 1.0, "",
                 "stable without friction and with nobody holding on")
    )  # fmt: skip
    return lines


def _bare_claims(quick: bool) -> list[Line]:
    """The Touch without friction and rounding, in the hand, is the ideal device."""
    damping, strikes = HoldSpec().damping, QUICK_STRIKES if quick else STRIKES
    claims: list[Line] = []
    for delay in (0.0, DEVICES["touch"].delay):
        bare = replace(DEVICES["touch"], friction=0.0, resolution=0.0, delay=delay)
        largest = ClosedLoop(bare, IN_THE_HAND, strikes=strikes).largest(damping)
        exact = exact_boundary(damping, IDEAL._replace(delay=delay))
        # the bisection's width, and the hand's spring beside the wall's
        percent = 100.0 * (RESOLUTION + HAND.stiffness / exact)
        claims.append(
            close_to(f"Touch without friction and rounding, {1e3 * delay:g} ms, in the hand: the ideal one",
                     largest, exact, percent, "N/m", "exact loop; servo, tick and coupling add nothing")
        )  # fmt: skip
    return claims


# ---- the picture


def _draw(
    figure: Figure, ideal: list[Row], touch: list[Row], couplings: dict[str, tuple[float, float, str]]
) -> None:
    """Stiffness over damping, both logarithmic: the ideal device, and the simulated ones."""
    left, right = figure.subplots(1, 2, sharey=True)
    B = np.geomspace(0.08, 60.0, 400)
    passive = np.array([passivity_bound(x, IDEAL.viscosity, PERIOD) for x in B])
    passive[passive <= 0.0] = np.nan
    for delay, style in ((0.0, "-"), (DEVICES["touch"].delay, (0, (4, 2)))):
        told = f"exact, {1e3 * delay:g} ms of delay"
        exact = [exact_boundary(x, IDEAL._replace(delay=delay)) for x in B]
        left.plot(B, exact, color=COLOURS["monolithic"], lw=1.3, ls=style, label=told)
    _points(
        left, ideal, "simulated_N_per_m", COLOURS["krylov"], "simulated, through the servo", ls="", marker="o"
    )
    left.set_title(
        f"ideal device: {1e3 * IDEAL.mass:g} g, b = {IDEAL.viscosity:g} N s/m", loc="left", fontsize=10
    )
    styles = {
        ("Touch", "constraints"): (COLOURS["krylov"], "Touch"),
        ("Touch", "reaction"): (COLOURS["extrapolated"], "Touch, reaction fed back"),
        ("Phantom Desktop", "constraints"): (COLOURS["low"], "Phantom Desktop"),
    }
    for (device, feedback), (colour, name) in styles.items():
        for grip, line in ((IN_THE_HAND, "-"), (LET_GO, (0, (4, 2)))):
            own = [r for r in touch if (r["device"], r["feedback"], r["grip"]) == (device, feedback, grip)]
            if own:
                _points(right, own, "largest_N_per_m", colour, f"{name}, {grip}", ls=line, marker=".")
    maker = DEVICES["touch"].max_stiffness
    right.axhline(maker, color=COLOURS["faint"], lw=1.0, ls=":")
    right.text(57.0, 1.06 * maker, "maker's largest, Touch", fontsize=8, ha="right", color=COLOURS["faint"])
    for name, (stiffness, damping, _) in couplings.items():
        right.plot([damping], [stiffness], ls="", marker="*", ms=10, color=COLOURS["high"])
        right.annotate(
            name, (damping, stiffness), (0, -14), textcoords="offset points", ha="center", fontsize=8
        )
    right.set_title("simulated devices on a rigid wall", loc="left", fontsize=10)
    for ax, label in ((left, "passive below, no delay"), (right, "the same, b of the hand")):
        ax.plot(B, passive, color=COLOURS["high"], lw=1.1, ls=(0, (5, 3)), label=label)
        ax.fill_between(B, 200.0, passive, color=COLOURS["high"], alpha=0.06, lw=0)
        ax.set(xscale="log", yscale="log", xlim=(0.08, 60.0), ylim=(200.0, 6e5))
        ax.set_xlabel("damping B of the coupling [N s/m]")
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    left.set_ylabel("stiffness K of the coupling [N/m]")


def _points(ax: Axes, rows: list[Row], key: str, colour: str, label: str, **style: Any) -> None:
    """A boundary over the dampings above zero, which a logarithmic axis has."""
    shown = [r for r in rows if r["damping_Ns_per_m"] > 0.0 and r[key] > 0.0]
    ax.plot(
        [r["damping_Ns_per_m"] for r in shown], [r[key] for r in shown], color=colour, ms=4.5, lw=1.1,
        label=label, **style,
    )  # fmt: skip


def _draw_margins(figure: Figure, rows: list[Row]) -> None:
    """Friction over delay for each grip, the margin in figures and in colour: below 1 is unstable."""
    delays, frictions, grips = (
        list(dict.fromkeys(r[key] for r in rows)) for key in ("delay_s", "friction_N", "grip")
    )
    axes = figure.subplots(1, len(grips), sharey=True, squeeze=False)[0]
    for ax, grip in zip(axes, grips, strict=True):
        found = {(r["friction_N"], r["delay_s"]): r["margin"] for r in rows if r["grip"] == grip}
        table = np.array([[found[friction, delay] for delay in delays] for friction in frictions])
        ax.imshow(np.log10(np.maximum(table, 1e-3)), cmap="RdYlBu", vmin=-1.5, vmax=1.5, aspect="auto",
                  origin="lower")  # fmt: skip
        for (y, x), margin in np.ndenumerate(table):
            on = "white" if margin > 12.0 else "black"
            ax.text(x, y, f"{margin:.2g}", ha="center", va="center", fontsize=8, color=on)
        ax.grid(False)
        ax.set_xticks(range(len(delays)), [f"{1e3 * delay:g}" for delay in delays])
        ax.set_yticks(range(len(frictions)), [f"{friction:g}" for friction in frictions])
        ax.set_xlabel("delay [ms]")
        ax.set_title(grip, loc="left", fontsize=10)
    axes[0].set_ylabel("friction [N]")
