"""Relaxation of an elastomer at several stretches: what one Prony series says of all of them.

All of a body's stress fades alike, by G(t) = 1 - sum g_i (1 - e^(-t / tau_i)) (palpo.physics.fem.relaxation),
whatever its elastic law. So the force of a strip that is pulled and held is, at time t,

    F(t) = sum_j r_j integral of G(t - u) du over [t_(j-1), min(t_j, T)],

r_j the slope of its elastic force in time while it goes from one measured stretch to the next, T the end of
the pull. The r_j follow from the measured forces at the ends of the pulls, so that the series alone is
fitted. That a pull takes time is half of the matter: a longer one has lost more of its quick part by its end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import least_squares

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.measured_data import measured
from palpo.studies.tables import FOUR

Floats = NDArray[np.float64]

STARTS = (1.0, 10.0, 100.0)
"""Times of a series, where the search for them begins [s]."""
FEW = 5.0
"""What is demanded of forces [%]."""
EXACT = 0.1
"""What a body may be off the formula [%]."""


class FittedSeries(NamedTuple):
    """A Prony series: ratios and times [s]."""

    ratios: Floats
    times: Floats


class Pulls(NamedTuple):
    """Strips pulled to stretches and held."""

    stretch: Floats
    ends: Floats
    """Times at which the pulls end [s]."""
    later: Floats
    """Times after that (k, m) [s]."""
    force: Floats
    """At the ends (k,)."""
    share: Floats
    """Force later over that at the end (k, m)."""

    def steps(self) -> "Pulls":
        """The same, as if each pull had taken no time."""
        return self._replace(ends=1e-6 * self.ends)


def pulls() -> Pulls:
    """As measured."""
    data = measured()["relaxation"]
    stretch, end = np.array(data["stretch"]), np.array(data["end"])
    ends = (stretch - 1.0) / data["rate"]
    return Pulls(stretch, ends, np.array(data["later"]), end, np.array(data["force"]) / end[:, None])


def weights(series: FittedSeries, stops: Floats, at: Floats) -> Floats:
    """Integrals of G(t - u) du between stops (j + 1,) [s] at times at (m,) behind them, (m, j)."""
    begin, end = stops[:-1], stops[1:]
    out = np.tile((1.0 - series.ratios.sum()) * (end - begin), (len(at), 1))
    for ratio, time in zip(series.ratios, series.times, strict=True):
        out += ratio * time * (np.exp((end - at[:, None]) / time) - np.exp((begin - at[:, None]) / time))
    return out


def shares(series: FittedSeries, known: Pulls) -> Floats:
    """Force later over that at the end of each pull, (k, m), by a series."""
    stops = np.concatenate([[0.0], known.ends])
    slopes = np.zeros(len(known.ends))
    out = np.empty_like(known.share)
    for k, end in enumerate(known.ends):
        at = weights(series, stops[: k + 2], np.array([end]))[0]
        slopes[k] = (known.force[k] - at[:k] @ slopes[:k]) / at[k]
        out[k] = weights(series, stops[: k + 2], end + known.later[k]) @ slopes[: k + 1] / known.force[k]
    return out


def fitted(known: Pulls, which: Sequence[int], times: Floats | None = None) -> FittedSeries:
    """The series that fits some of the pulls best, by least squares; times: where they are given."""

    def series(p: Floats) -> FittedSeries:
        grown = np.exp(p[: len(STARTS)])
        return FittedSeries(grown / (1.0 + grown.sum()), np.exp(p[len(STARTS) :]) if times is None else times)

    def missed(p: Floats) -> Floats:
        return np.asarray((shares(series(p), known) - known.share)[list(which)].ravel())

    start = np.zeros(len(STARTS))
    return series(least_squares(missed, start if times is not None else [*start, *np.log(STARTS)]).x)


def body_shares(series: FittedSeries, end: float, later: Floats) -> Floats:
    """What is left (m,) of the force of a bar of our elements, pulled evenly to twice its length and held."""
    prony = tuple(zip(series.ratios.tolist(), series.times.tolist(), strict=True))
    mesh = block((1.0, 1.0, 1.0), (1, 1, 1))
    bar = SoftBody("bar", mesh, Material(1e4, 0.0, 1e3, prony=prony), (), (0.0, 0.0, 0.0))
    forces, time = [], 0.0
    for until in (end, *(end + later)):
        parts = 1 if time else 4
        h = (until - time) / parts
        for _ in range(parts):
            time += h
            bar.x[:, 0] = mesh.nodes[:, 0] * (1.0 + min(time / end, 1.0))
            bar.remember(h)
        force = bar.undamped_force().reshape(-1, 3)
        forces.append(-force[mesh.nodes[:, 0] > 0.0, 0].sum())
    return np.array(forces[1:]) / forces[0]


def lines() -> list[Line]:
    """What is claimed of relaxation."""
    known = pulls()
    every = range(len(known.stretch))
    one = fitted(known, every)
    missed = 100.0 * (shares(one, known) - known.share)
    fast = known.steps()
    stepped = 100.0 * (shares(fitted(fast, every), fast) - fast.share)
    own = np.array([
        100.0 * (shares(fitted(known, [k], one.times), known) - known.share)[k] for k in every
    ])  # fmt: skip
    told = ", ".join(f"{g:.3f} at {tau:.3g} s" for g, tau in zip(*one, strict=True))
    alone = Pulls(*(part[:1] for part in known))
    body = body_shares(one, float(alone.ends[0]), alone.later[0]) - shares(one, alone)[0]
    return [
        at_most(
            "VHB 4910 held at four stretches, one Prony series: misses at most", float(np.abs(missed).max()),
            FEW, "%", f"of the force at the end of the pull, what is demanded of forces; {told}",
        ),
        *(
            Reported(
                f"one series at stretch {known.stretch[k]:g}: misses, RMS", _rms(missed[k]),
                "%",
                f"at most {np.abs(missed[k]).max():.1f}; a series of its own, with the same times, "
                f"{_rms(own[k]):.2f}, at most {np.abs(own[k]).max():.1f}",
            )
            for k in every
        ),
        Reported(
            "one series, pulls taken as sudden: misses at most", float(np.abs(stepped).max()),
            "%",
            f"{_rms(stepped):.1f} RMS: most of what tells the four curves apart is that the pull to "
            f"{known.stretch[-1]:g} times the length lasts {known.ends[-1]:g} s, that to "
            f"{known.stretch[0]:g} times {known.ends[0]:g} s",
        ),
        at_most(
            "a bar of our elements with that series, off the formula", 100.0 * float(np.abs(body).max()),
            EXACT, "%", "an even pull, which its steps follow exactly",
        ),
    ]  # fmt: skip


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def draw(figure: Figure) -> None:
    """What is left of the force over time, measured and by one series, pulls as they were and sudden."""
    known = pulls()
    fine = np.geomspace(0.5, 400.0, 100)
    dense = np.tile(fine, (len(known.stretch), 1))
    for axes, now, title in zip(
        figure.subplots(1, 2, sharey=True), (known, known.steps()),
        ("one series, pulls at 0.25 /s", "one series, pulls taken as sudden"), strict=True,
    ):  # fmt: skip
        series = fitted(now, range(len(now.stretch)))
        found = shares(series, now._replace(later=dense, share=np.empty_like(dense)))
        for k, stretch in enumerate(now.stretch):
            axes.semilogx(fine, found[k], color=FOUR[k], label=f"stretch {stretch:g}")
            axes.semilogx(now.later[k], now.share[k], "o", color=FOUR[k])
        axes.set(title=title, xlabel="time since the end of the pull [s]")
    figure.axes[0].set_ylabel("force over that at the end of the pull")
    figure.axes[0].legend()
