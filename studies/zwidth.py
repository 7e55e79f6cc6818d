"""Z-width: the largest coupling stiffness that is stable on a rigid wall, over the coupling's damping.

First an ideal device on a plain sampled wall, whose boundary is known exactly (`sampled_wall`). Then the
simulated Touch with its dry friction and resolution, through the real servo and the real tick, on a rigid
ball that the virtual coupling presses on a static plane: the hardest case, since all else gives way.

Criterion. The stylus lies on the wall under a light press, let go or struck. It has come to rest if over the
last quarter of the run the reported position keeps within two counts of the Touch's encoder: below a count
the loop sees no motion, and rest may lie on the edge between two. Friction alone stops such a strike within
m v / F_c = 50 ms, so that what still moves after a second is fed by the loop. The boundary is the last
stiffness of a rising scan that comes to rest, refined by bisection; stable islands above it are of no use.

What the simulated Touch has not: links that bend, an amplifier's or a sensor's delay, friction that sticks.
A real device's limit is lower, and the maker's largest stiffness is the figure to keep below.
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
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most, close_to
from palpo.studies.rows import Row
from palpo.studies.sampled_wall import closed_loop, decays, exact_boundary, passivity_bound
from palpo.studies.tables import COLOURS, save_figure, write_csv
from palpo.studies.zwidth_loops import (
    GRID,
    HAND,
    IDEAL,
    PERIOD,
    RESOLUTION,
    STRIKES,
    ClosedLoop,
    largest_stable,
)

DAMPINGS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0)
QUICK_DAMPINGS = (0.0, 1.0, 5.0, 20.0)
QUICK_STRIKES = STRIKES[1:2]
COLGATE = "Colgate and Schenkel 1997: passive if b > K T / 2 + |B|"
ABBOTT = "Abbott and Okamura 2005, Diolaiti et al. 2006: F_c > K Delta / 2"


def run(out: Path, quick: bool) -> list[Line]:
    """Stability maps of the ideal device and of the simulated ones; margins of the couplings in use."""
    dampings = QUICK_DAMPINGS if quick else DAMPINGS
    strikes = QUICK_STRIKES if quick else STRIKES
    ideal = _ideal_map(dampings)
    touch = [_touch_row(loop, damping) for loop in _loops(quick) for damping in dampings]
    couplings = _couplings()
    margins = [
        _margin(name, *coupling, device, strikes)
        for name, coupling in couplings.items()
        for device in ([DEVICES["touch"]] if quick else DEVICES.values())
    ]
    effects = _effects(strikes, quick)
    for name, rows in {"ideal": ideal, "map": touch, "margins": margins, "effects": effects}.items():
        write_csv(out / f"{name}.csv", rows)
    save_figure(out / "zwidth.png", 5.4, lambda figure: _draw(figure, ideal, touch, couplings))
    return [
        *_ideal_claims(ideal),
        *_touch_claims(touch),
        *_margin_claims(margins),
        *_effect_claims(effects),
        _chatter(),
    ]


# ---- the ideal device


def _ideal_map(dampings: Sequence[float]) -> list[Row]:
    """Boundary by simulation and in closed form; what is unstable below the passivity bound."""
    rows = []
    for B in dampings:
        exact = exact_boundary(B, IDEAL)
        found = largest_stable(lambda K, B=B: decays(K, B, IDEAL), GRID, 1e-3)  # type: ignore[misc]
        bound = passivity_bound(B, IDEAL.viscosity, PERIOD)
        passive = [bound * share for share in (0.02, 0.1, 0.3, 0.6, 0.9, 0.999)] if bound > 0.0 else []
        rows.append(
            {
                "damping_Ns_per_m": B,
                "exact_N_per_m": exact,
                "simulated_N_per_m": found,
                "passive_below_N_per_m": max(bound, 0.0),
                "spectral_radius_there": float(np.abs(np.linalg.eigvals(closed_loop(exact, B, IDEAL))).max()),
                "passive_tried": len(passive),
                "passive_but_unstable": sum(not decays(K, B, IDEAL) for K in passive),
            }
        )
    return rows


def _ideal_claims(rows: list[Row]) -> list[Claim]:
    off = max(abs(r["simulated_N_per_m"] / r["exact_N_per_m"] - 1.0) for r in rows)
    radius = max(abs(r["spectral_radius_there"] - 1.0) for r in rows)
    tried, failed = (sum(r[key] for r in rows) for key in ("passive_tried", "passive_but_unstable"))
    return [
        at_most(f"ideal device: simulated boundary off the exact one, worst of {len(rows)}", 100.0 * off, 0.5,
                "%", "Jury's criterion in closed form; bisection to 0.1%"),
        at_most("ideal device: spectral radius on the closed form's boundary, off 1", radius, 1e-9, "",
                "eigenvalues of the loop"),
        at_most(f"ideal device: unstable points below the passivity bound, of {tried}", failed, 0, "",
                COLGATE),
    ]  # fmt: skip


# ---- the simulated devices


def _loops(quick: bool) -> list[ClosedLoop]:
    """Held and let go; in full with both feedbacks, and on both devices."""
    touch, desktop = DEVICES["touch"], DEVICES["phantom_desktop"]
    if quick:
        return [ClosedLoop(touch, held, strikes=QUICK_STRIKES) for held in (True, False)]
    kinds = ((touch, "constraints"), (touch, "reaction"), (desktop, "constraints"))
    return [ClosedLoop(device, held, feedback) for device, feedback in kinds for held in (True, False)]


def _touch_row(loop: ClosedLoop, damping: float) -> Row:
    """One point of the map, with what theory promises: a passive wall, friction above K Delta / 2."""
    viscous = HAND.damping if loop.held else 0.0
    promised = min(
        passivity_bound(damping, viscous, PERIOD), 2.0 * loop.device.friction / loop.device.resolution
    )
    return {
        "device": loop.device.name,
        "held": loop.held,
        "feedback": loop.feedback,
        "damping_Ns_per_m": damping,
        "largest_N_per_m": loop.largest(damping),
        "promised_N_per_m": max(promised, 0.0),
        "maker_N_per_m": loop.device.max_stiffness,
    }


def _touch_claims(rows: list[Row]) -> list[Line]:
    promised = [r for r in rows if r["promised_N_per_m"] > 0.0]
    least = min(r["largest_N_per_m"] / r["promised_N_per_m"] for r in promised)
    claims: list[Line] = [
        at_least(f"in the hand: largest stiffness over the one promised, least of {len(promised)}", least,
                 1.0, "", f"{COLGATE}, b of the hand; {ABBOTT}"),
    ]  # fmt: skip
    for device in dict.fromkeys(r["device"] for r in rows):
        own = [r for r in rows if r["device"] == device and 0.5 <= r["damping_Ns_per_m"] <= 5.0]
        least = min(r["largest_N_per_m"] / r["maker_N_per_m"] for r in own)
        claims.append(
            Reported(f"{device}: largest stiffness over the maker's, least for B of 0.5 to 5 N s/m", least,
                     "", "above 1 by what the simulation has not")
        )  # fmt: skip
    return claims + _feedback_claims(rows)


def _feedback_claims(rows: list[Row]) -> list[Line]:
    """How far the two feedbacks are apart, where both have a stable stiffness."""
    by_kind: dict[str, dict[tuple[Any, ...], float]] = {"constraints": {}, "reaction": {}}
    for r in rows:
        by_kind[r["feedback"]][r["device"], r["held"], r["damping_Ns_per_m"]] = r["largest_N_per_m"]
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
            tool, space = scene.tool, scene.workspace
            felt = space.scale * (space.scale if space.force_scale is None else space.force_scale)
            found[name] = (felt * tool.hold.stiffness, felt * tool.hold.damping, tool.feedback)
    names: dict[tuple[float, float, str], list[str]] = {}
    for name, coupling in found.items():
        names.setdefault(coupling, []).append(name)
    return {", ".join(who): coupling for coupling, who in names.items()}


def _margin(
    name: str, stiffness: float, damping: float, feedback: str, device: DeviceSpec, strikes: tuple[float, ...]
) -> Row:
    held, free = (ClosedLoop(device, hand, feedback, strikes).largest(damping) for hand in (True, False))
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


def _margin_claims(rows: list[Row]) -> list[Claim]:
    claims = []
    for r in rows:
        gains = f"{r['stiffness_N_per_m']:g} N/m, {r['damping_Ns_per_m']:g} N s/m"
        who = f"{r['coupling']} ({gains}) on {r['device']}"
        least = min(r["margin_in_the_hand"], r["margin_let_go"])
        claims += [
            at_least(f"{who}: gain margin", least, 2.0, "", "as in control: 6 dB"),
            at_least(f"{who}: maker's largest stiffness over it", r["maker_over_it"], 1.0, "", "data sheet"),
            at_least(f"{who}: friction over K Delta / 2", r["friction_N"] / r["friction_needed_N"], 1.0, "",
                     ABBOTT),
        ]  # fmt: skip
    return claims


def _chatter() -> Claim:
    """Ripple of the force at rest with the default coupling: the encoder may flip between two counts."""
    touch, hold = DEVICES["touch"], HoldSpec()
    K, B = hold.stiffness, hold.damping
    loops = [ClosedLoop(touch, held) for held in (True, False)]
    runs = [(loop, loop.rows(K, B, strike)) for loop in loops for strike in STRIKES]
    ripple = max(float(np.ptp(loop.tail(rows, "sent_y"))) for loop, rows in runs)
    # a count to and fro changes the spring by one count and the damper's backward difference by two
    limit = touch.resolution * (K + 2.0 * B / PERIOD)
    return at_most("Touch: ripple of the force at rest, default coupling, peak to peak", ripple,
                   limit * (1.0 + 1e-6), "N", "one count: K Delta + 2 B Delta / T")  # fmt: skip


# ---- friction and resolution


def _effects(strikes: tuple[float, ...], quick: bool) -> list[Row]:
    """Largest stiffness at the default damping without friction, without rounding and without both."""
    touch = DEVICES["touch"]
    kinds = {
        "as it is": touch,
        "without friction": replace(touch, friction=0.0),
        "without rounding": replace(touch, resolution=0.0),
        "without both": replace(touch, friction=0.0, resolution=0.0),
    }
    loops = {
        # let go, where only the wall's own damping may be left, a swing takes seconds to die
        name: [ClosedLoop(device, True, strikes=strikes)]
        + ([] if quick else [ClosedLoop(device, False, strikes=strikes, ticks=4800)])
        for name, device in kinds.items()
    }
    return [
        {"touch": name, "held": loop.held, "largest_N_per_m": loop.largest(HoldSpec().damping)}
        for name, both in loops.items()
        for loop in both
    ]


def _effect_claims(rows: list[Row]) -> list[Line]:
    about = "dry friction is what holds a quantised wall still"
    claims: list[Line] = [
        Reported(f"Touch {r['touch']}, {'in the hand' if r['held'] else 'let go'}: largest K at default B",
                 r["largest_N_per_m"], "N/m", about)
        for r in rows
    ]  # fmt: skip
    exact = exact_boundary(HoldSpec().damping, IDEAL)
    bare = next(r["largest_N_per_m"] for r in rows if r["held"] and r["touch"] == "without both")
    # the bisection's width, and the hand's spring beside the wall's
    percent = 100.0 * (RESOLUTION + HAND.stiffness / exact)
    claims.append(
        close_to("Touch without both, in the hand: that is the ideal device's boundary", bare, exact, percent,
                 "N/m", "closed form; the servo, the tick and the coupling add nothing")
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
    left.plot(B, [exact_boundary(x, IDEAL) for x in B], color=COLOURS["monolithic"], lw=1.3, label="exact")
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
        for held in (True, False):
            own = [r for r in touch if (r["device"], r["feedback"], r["held"]) == (device, feedback, held)]
            if own:
                label = f"{name}, {'in the hand' if held else 'let go'}"
                _points(
                    right, own, "largest_N_per_m", colour, label, ls="-" if held else (0, (4, 2)), marker="."
                )
    maker = DEVICES["touch"].max_stiffness
    right.axhline(maker, color=COLOURS["faint"], lw=1.0, ls=":")
    right.text(57.0, 1.06 * maker, "maker's largest, Touch", fontsize=8, ha="right", color=COLOURS["faint"])
    for name, (stiffness, damping, _) in couplings.items():
        right.plot([damping], [stiffness], ls="", marker="*", ms=10, color=COLOURS["high"])
        right.annotate(
            name, (damping, stiffness), (0, -14), textcoords="offset points", ha="center", fontsize=8
        )
    right.set_title("simulated devices on a rigid wall", loc="left", fontsize=10)
    for ax, label in ((left, "passive below"), (right, "passive below, b of the hand")):
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
