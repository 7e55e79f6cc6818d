"""The gas law of a cup that lifts a cube: thesis 000, figure 5.16.

Pressure, volume and amount of air while the cup is pressed on a rigid cube of 50 g, pulled while that still
stands on the ground, and lifted, with the thesis's airtight rim. The law is solved for the volume at the
step's end that is linear in the forces; the next step measures the volume that the moved surfaces have, with
their borders found anew. What pV of that lacks of n R T is the error that a step leaves.

It is followed over steps of 20 to 2 ms with the flow under the rim computed. A border is where the gap is
0.5 mm, and crosses a rim that comes down nearly level within few steps, with the slab under it, some per cent
of the volume. An airtight rim shuts that in; the cup then floats on it, and the error vanishes with no step.
With the flow computed, what the border misses passes by the gap within the step.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.gas.law import GAS_CONSTANT, STANDARD_ATMOSPHERE
from palpo.physics.mesh.cups import CUPS
from palpo.studies.claims import Claim, at_least, at_most, close_to
from palpo.studies.suction_runs import (
    AIRTIGHT,
    GRAVITY,
    PUSH,
    THESIS,
    RunTrace,
    changes,
    lead,
    press_and_lift,
    rigid_cube,
    spread,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

RATES = (50.0, 100.0, 200.0, 500.0)
QUICK_RATES = (50.0, 100.0)
THESIS_RATE = 100.0
MASS = 0.05
TEMPERATURE = 293.15
"""Of the air [K], as scenes have it."""
TOUCH = 0.4
"""When the rim would touch, if it had not sagged [s]; before, the seal closes node by node."""
FIRST_ORDER = "it vanishes with h, first order"
CROSSING = 1e-3
"""Share of the volume missed in a step from which the border is said to cross the rim."""
FLOWING = 'gas={kind="passive"}'
LIFTED_OFF = 5e-4
"""Height [m] from which the cube no longer stands: the sealing distance."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Series as CSV, figure 5.16, the error over the step, and the claims."""
    rates = QUICK_RATES if quick else RATES
    cases = [(THESIS_RATE, AIRTIGHT), *((rate, FLOWING) for rate in rates)]
    shown, *rest = spread(partial(_lead, 76 if quick else 576), cases, "steps of h", quick)
    flowing = dict(zip(rates, rest, strict=True))
    write_csv(out / "series.csv", shown.table())
    write_csv(
        out / "flowing.csv",
        [{"step_s": 1.0 / rate, **row} for rate, trace in flowing.items() for row in trace.table()],
    )
    errors = {rate: _errors(trace) for rate, trace in flowing.items()}
    write_csv(out / "errors.csv", [{"step_s": 1.0 / rate, **error} for rate, error in errors.items()])
    save_figure(out / "gas.png", 6.4, partial(_draw, trace=shown))
    save_figure(out / "error.png", 3.2, partial(_draw_errors, errors=errors, trace=shown))
    return [*claims_of(shown), *step_claims(flowing, errors)]


def _lead(resolution: int, case: tuple[float, str]) -> RunTrace:
    hz, gas = case
    return lead(changes("small", resolution, press_and_lift(PUSH), rigid_cube(MASS), hz=hz, more=[gas]))


def _errors(trace: RunTrace) -> dict[str, float]:
    """From the touch on; of the steps before, what is missed while the border crosses, and what is felt."""
    missed, felt = np.nan_to_num(trace.geometric[:-1]), np.abs(np.nan_to_num(trace.pressure[1:]))
    closing = trace.time[:-1] <= TOUCH
    crossing = closing & (missed > CROSSING)
    return {
        "geometric_largest": float(missed[~closing].max()),
        "geometric_rms": float(np.sqrt((missed[~closing] ** 2).mean())),
        "crossing_missed": float(missed[crossing].max(initial=0.0)),
        "crossing_felt": float(felt[crossing].max(initial=0.0)) / STANDARD_ATMOSPHERE,
        "closing_largest": float(missed[closing & ~crossing].max()),
    }


def claims_of(trace: RunTrace) -> list[Claim]:
    """The verdict on the airtight rim, at the thesis's step."""
    hung, shape = trace.pressure[trace.partner > LIFTED_OFF], CUPS["small"].shape
    first = int(np.isfinite(trace.volume).argmax())
    slab = LIFTED_OFF * np.pi * ((shape.inner + shape.rim) ** 2 - shape.inner**2)
    closed = 1e-3 * trace.amount[first] * GAS_CONSTANT * TEMPERATURE / trace.volume[first]
    return [
        at_most(
            "geometric pV against nRT at the end of a step of 10 ms, largest from the touch on",
            100.0 * float(np.nanmax(trace.geometric[trace.time > TOUCH])), 1.0, "%", "first order in h",
        ),
        at_most(
            "the same over all steps, the closing of the seal included",
            100.0 * float(np.nanmax(trace.geometric)), 100.0 * slab / trace.volume[first], "%",
            "a border that crosses the rim shuts in or out what is under it, up to the sealing distance high",
        ),
        at_least(
            "air pressed out before the lift, of n",
            100.0 * (1.0 - np.nanmin(trace.amount) / np.nanmax(trace.amount)), 1.0, "%",
            f"{THESIS}, figure 5.16: it leaves at P_max",
        ),
        close_to(
            "air that the cavity closes in, n R T / V at first", float(closed),
            1e-3 * STANDARD_ATMOSPHERE, 1.0, "kPa", "the atmosphere's",
        ),
        at_least(
            "suction while the cube hangs, over its weight on the area that the rim encloses",
            float(-np.median(hung)) * np.pi * (shape.inner + shape.rim) ** 2 / (MASS * GRAVITY), 1.0, "x",
            f"{THESIS}, figure 5.16: below the atmosphere; nothing else carries it",
        ),
        at_least("cube at the end, over the ground", 1e3 * trace.partner[-1], 10.0, "mm", f"{THESIS}: 50 g"),
    ]  # fmt: skip


def step_claims(
    flowing: Mapping[float, RunTrace], errors: Mapping[float, Mapping[str, float]]
) -> list[Claim]:
    """The verdict on steps with the flow under the rim computed."""
    steps = 1.0 / np.array(list(flowing))
    orders = [
        np.polyfit(np.log(steps), np.log([error[name] for error in errors.values()]), 1)[0]
        for name in ("geometric_largest", "geometric_rms")
    ]
    claims = [
        at_least(
            "flow computed: order in h of the largest from the touch on", orders[0], 0.8, "", FIRST_ORDER
        ),
        at_least("flow computed: order in h of its root mean square", orders[1], 0.8, "", FIRST_ORDER),
    ]
    for rate in dict.fromkeys((THESIS_RATE, max(errors))):
        own, what = errors[rate], f"flow computed, steps of {1e3 / rate:g} ms"
        claims += [
            at_most(
                f"{what}: geometric pV against nRT from the touch on, largest",
                100.0 * own["geometric_largest"], 0.3, "%", FIRST_ORDER,
            ),
            at_most(
                f"{what}: gauge pressure while the border crosses the rim, of the atmosphere's",
                100.0 * own["crossing_felt"], 0.3, "%",
                f"up to {100.0 * own['crossing_missed']:.2g}% of the volume, missed in a step, flow by",
            ),
            at_most(
                f"{what}: geometric pV against nRT then, until the rim touches",
                100.0 * own["closing_largest"], 0.3, "%", FIRST_ORDER,
            ),
        ]  # fmt: skip
    return claims


def _draw(figure: Figure, trace: RunTrace) -> None:
    axes = figure.subplots(4, 1, sharex=True)
    seen = np.isfinite(trace.pressure)
    times = [trace.time[np.flatnonzero(np.diff(trace.height) > 1e-9)[0]]]
    times += trace.time[trace.partner > LIFTED_OFF][:1].tolist()
    for ax, values, label in zip(
        axes,
        (1e-3 * trace.pressure, 1e9 * trace.volume, 1e6 * trace.amount, trace.hold),
        ("p - P_atm [kPa]", "V [mm³]", "n [µmol]", "holding force [N]"),
        strict=True,
    ):
        ax.plot(trace.time, values, lw=1.4)
        ax.set_ylabel(label)
        for time in times:
            ax.axvline(time, color=COLOURS["extrapolated"], lw=1.2, ls=":")
    axes[0].axhline(0.0, color=COLOURS["faint"], lw=0.8)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_xlim(trace.time[seen][0] - 0.1, trace.time[-1])
    axes[0].set_title("pressed on  |  pulled  |  lifted", loc="left", fontsize=9.5)


def _draw_errors(figure: Figure, errors: Mapping[float, Mapping[str, float]], trace: RunTrace) -> None:
    left, right = figure.subplots(1, 2)
    steps = 1e3 / np.array(list(errors))
    for name, label, colour in (
        ("geometric_largest", "largest", COLOURS["paper"]),
        ("geometric_rms", "root mean square", COLOURS["krylov"]),
    ):
        left.plot(
            steps, [100.0 * e[name] for e in errors.values()], marker="o", ms=4, color=colour, label=label
        )
    left.plot(steps, 0.05 * steps, color=COLOURS["faint"], ls=":", label="first order")
    left.set(xscale="log", yscale="log", xlabel="step [ms]", ylabel="geometric |pV / nRT - 1| [%]")
    left.minorticks_off()
    left.set_xticks(steps, [f"{step:g}" for step in steps])
    left.legend(fontsize=8)
    left.set_title("flow computed, from the touch on", loc="left", fontsize=9.5)
    right.semilogy(trace.time, 100.0 * trace.geometric, lw=1.0, label="geometric")
    right.semilogy(trace.time, 100.0 * np.maximum(trace.law, 1e-17), lw=1.0, label="solved")
    right.set(xlabel="time [s]", ylabel="airtight: |pV / nRT - 1| [%] at 10 ms")
    right.legend(fontsize=8)
