"""The paper's first experiment: two equal beams welded end to end, one at each rate (003, section V).

Held in six rows and without gravity the pair is a beam clamped at both ends, so at rest the two halves are
point-symmetric about the weld, and the clamp feels what the hand feels.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg as sl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import curve_fit

from palpo.physics.bodies.chain import add_elastic
from palpo.physics.bodies.chain_body import ChainBody
from palpo.physics.systems.multirate.literal import Paper
from palpo.studies.claims import Line, Reported, at_least, at_most, close_to, greatest
from palpo.studies.runs import SceneDrive, legs
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
REST, LENGTH = (0.4, 0.0, 0.0), 0.4
KINDS = ("krylov", "paper")
MEASURES = ("asymmetry", "imbalance", "apart")
SEEN = {"krylov": "slow-rate beam's end as the servo sees it", "paper": "proxy"}
PAPER = "003, section V: symmetric deformations"
FIGURE = "003, figure 2: shapes on each other"


def run(out: Path, quick: bool) -> list[Line]:
    """Symmetry and equal forces at rest, the shapes on each other, and the ringing after a pluck."""
    poses = [_settle(kind, target) for kind in KINDS for target in _targets(2 if quick else 6)]
    write_csv(out / "rest.csv", [pose.row() for pose in poses])
    save_figure(out / "shapes.png", 5.6, lambda figure: _draw_shapes(figure, poses))
    claims = list[Line]()
    for kind in KINDS:
        own = [pose for pose in poses if pose.kind == kind]
        deflection, force, shape = (greatest(getattr(p, name) for p in own) for name in MEASURES)
        claims += [
            at_most(f"{kind}: deflections differ, worst of {len(own)} poses", deflection, 1.0, "%", PAPER),
            at_most(f"{kind}: clamp's reaction against the hand's force", force, 1.0, "%", PAPER),
            at_most(f"{kind}: {SEEN[kind]} off the body itself", shape, 1.0, "% of deflection", FIGURE),
        ]
    return claims + _pluck(out)


def _targets(n: int) -> Floats:
    """Arbitrary hand positions (n, 3) [m], drawn in as far as the bent beam shortens: 0.6 d^2 / L."""
    rng = np.random.default_rng(3)
    across = rng.uniform(-0.05, 0.05, (n, 2))
    inwards = 0.6 * (across**2).sum(axis=1) / LENGTH
    return np.column_stack([REST[0] - inwards, across])


@dataclass
class BeamPose:
    """The beams at rest under one hand position."""

    kind: str
    target: Floats
    low: Floats
    """Frames of the slow-rate beam [m], (n, 3)."""
    high: Floats
    other: Floats
    """The proxy's frames, or for krylov the servo's picture of the low beam's end, (k, 3)."""
    clamp: Floats
    """Force of the slow-rate beam on its clamp [N]."""
    hand: Floats
    """Force of the tool on the hand [N]."""

    @property
    def deflection(self) -> float:
        """Largest deflection of the slow-rate beam [m]."""
        return float(np.linalg.norm(self._low_bend(), axis=1).max())

    def _low_bend(self) -> Floats:
        return self.low - _straight(self.low[0], 0.0, len(self.low))

    def _high_bend(self) -> Floats:
        return self.high - _straight(self.high[-1], -LENGTH / 2, len(self.high))

    @property
    def asymmetry(self) -> float:
        """Deflection of one beam from its held end against the other's, per cent of the largest."""
        difference = self._low_bend() + self._high_bend()[::-1]
        return 100.0 * float(np.linalg.norm(difference, axis=1).max()) / self.deflection

    @property
    def imbalance(self) -> float:
        """Sum of the forces on clamp and hand, per cent of the hand's."""
        return 100.0 * float(np.linalg.norm(self.clamp + self.hand) / np.linalg.norm(self.hand))

    @property
    def apart(self) -> float:
        """Distance of the two pictures of the same points, per cent of the deflection."""
        own = self.high if len(self.other) > 1 else self.low[-1:]
        return 100.0 * float(np.linalg.norm(own - self.other, axis=1).max()) / self.deflection

    def row(self) -> dict[str, object]:
        """For the table."""
        x, y, z = (float(v) for v in self.target)
        return {
            "kind": self.kind, "target_x_m": x, "target_y_m": y, "target_z_m": z,
            "deflection_m": self.deflection, "asymmetry_percent": self.asymmetry,
            "clamp_force_N": float(np.linalg.norm(self.clamp)),
            "hand_force_N": float(np.linalg.norm(self.hand)),
            "force_difference_percent": self.imbalance, "shapes_apart_percent": self.apart,
        }  # fmt: skip


def _straight(origin: Floats, start: float, n: int) -> Floats:
    """The unbent beam from its held end, (n, 3)."""
    x = start + np.linspace(0.0, LENGTH / 2, n)
    return origin + np.column_stack([x, np.zeros((n, 2))])


def _settle(kind: str, target: Floats) -> BeamPose:
    """Lead the hand to the target in a second and wait until all is at rest."""
    with SceneDrive("beams", kind=kind) as run:
        trace = run.go(legs((0.1, *REST), (1.0, *target), (1.4, *target)))
        body, low = run.lock.scene.members[0].body, run.lock.low
        if isinstance(low, Paper):
            other = low.proxy.held.tool.x.copy()
        else:
            # the servo sees of the slow-rate beam the point it is welded to
            high = run.lock.high
            other = high.link.points.x[high.engine.at[0, 1]][None].copy()
        return BeamPose(
            kind, target, body.x.copy(), trace["tool"][-1], other, _clamp_force(body), trace["reaction"][-1]
        )


def _clamp_force(body: ChainBody) -> Floats:
    """Force of a beam's elements on its first frame [N], from the full body's present shape."""
    n = len(body.x)
    D, U, f = np.zeros((n, 6, 6)), np.zeros((n - 1, 6, 6)), np.zeros((n, 6))
    add_elastic(body.model, body.state, 0.0, 0.0, D, U, f)
    return f[0, :3]


def _draw_shapes(figure: Figure, poses: list[BeamPose]) -> None:
    """Figure 2 of the paper: the beams of both rates on each other, at the pose bent most."""
    axes = figure.subplots(2, 1, sharex=True)
    for ax, kind, other in zip(
        axes, ("paper", "krylov"), ("proxy (50 Hz)", "end of it as the servo sees it"), strict=True
    ):
        pose = max((p for p in poses if p.kind == kind), key=lambda p: p.deflection)
        across = pose.target[1:] / np.linalg.norm(pose.target[1:])

        def flat(x: Floats, across: Floats = across) -> tuple[Floats, Floats]:
            return 1e3 * x[:, 0], 1e3 * (x[:, 1:] @ across)

        ax.plot(
            *flat(pose.low),
            color=COLOURS["low"],
            lw=5,
            alpha=0.55,
            solid_capstyle="round",
            label="soft beam (50 Hz)",
        )
        ax.plot(
            *flat(pose.high),
            color=COLOURS["high"],
            lw=5,
            alpha=0.45,
            solid_capstyle="round",
            label="stiff beam (1 kHz)",
        )
        ax.plot(
            *flat(pose.other), color=COLOURS["monolithic"], ls="", marker="o", ms=4, mfc="white", label=other
        )
        middle = 0.5 * (pose.low[0] + pose.high[-1])
        mirrored = 2.0 * middle - pose.low
        ax.plot(
            *flat(mirrored),
            color=COLOURS["monolithic"],
            lw=0.9,
            ls=(0, (4, 3)),
            label="soft beam mirrored at the weld",
        )
        ax.set_ylabel("across [mm]")
        ax.set_title(
            f"{kind}: deflections differ by {pose.asymmetry:.2g}%, clamp and hand by {pose.imbalance:.2g}%",
            loc="left", fontsize=10,
        )  # fmt: skip
        ax.legend(frameon=False, fontsize=8.5, loc="upper left")
    axes[-1].set_xlabel("along [mm]")


def _system(run: SceneDrive) -> tuple[Floats, Floats, Floats]:
    """M, C, K of both beams with weld and hold, over the free frames of both beams."""
    scene = run.lock.scene
    low = scene.members[0].body
    stiff = ChainBody("held", scene.model, scene.tool)
    a, b = low.n_dof, stiff.n_dof
    join = np.zeros((a + b, a + b - 6))
    join[:a, :a] = np.eye(a)
    join[a : a + 6, a - 6 : a] = np.eye(6)  # the weld: first frame of the tool is the low beam's last
    join[a + 6 :, a:] = np.eye(b - 6)
    out = [
        join.T @ sl.block_diag(p, q) @ join for p, q in ((low.M, stiff.M), (low.C, stiff.C), (low.K, stiff.K))
    ]
    gains = scene.hold.gains[0]
    springs = np.repeat([gains.stiffness, gains.turn_stiffness], 3)
    dampers = np.repeat([gains.damping, gains.turn_damping], 3)
    end = np.arange(a + b - 12, a + b - 6)
    out[2][end, end] += springs
    out[1][end, end] += dampers
    return out[0], out[1], out[2]


def _discrete_mode(run: SceneDrive) -> tuple[float, float, float]:
    """Lowest eigenfrequency of K and M; the frequency [Hz] and decay [1/s] backward Euler gives that mode."""
    M, C, K = _system(run)
    natural = float(np.sqrt(sl.eigh(K, M, eigvals_only=True, subset_by_index=[0, 0])[0]) / (2 * np.pi))
    h, n = run.dt, len(M)
    step = np.linalg.inv(M + h * C + h * h * K)
    # (x, v) -> (x + h v+, v+) with A_h v+ = M v - h K x
    rate = np.hstack([-h * step @ K, step @ M])
    ahead = np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + h * rate, rate])
    roots = np.log(np.linalg.eigvals(ahead).astype(complex)) / h
    roots = roots[roots.imag > 1.0]
    slowest = roots[np.argmin(np.abs(roots.imag - 2 * np.pi * natural))]
    return natural, float(slowest.imag / (2 * np.pi)), float(-slowest.real)


def _ring(t: NDArray[Any], amplitude: float, decay: float, frequency: float, phase: float) -> NDArray[Any]:
    return amplitude * np.exp(-decay * t) * np.cos(2 * np.pi * frequency * t + phase)


def _pluck(out: Path) -> list[Line]:
    """A step of the hand by 2 mm across, and what each rate shows of the weld's ringing."""
    still, plucked = legs((0.1, *REST), (0.4, *REST)), legs((0.6, REST[0], 0.002, 0.0))
    path = np.vstack([still, np.broadcast_to(plucked[-1], (600, 3))])
    samples: list[float] = []
    with SceneDrive("beams", kind="paper") as paper:
        paper.go(path, lambda run: samples.append(float(run.lock.low.proxy.held.tool.x[0, 1])))  # type: ignore[attr-defined]
    with SceneDrive("beams") as run:
        weld = run.go(path)["tool"][:, 0, 1]
        natural, discrete, decay = _discrete_mode(run)
    start, h = len(still), run.dt
    ringing = weld[start:] - weld[-50:].mean()
    # the higher modes, which backward Euler damps faster, have died after 15 ms
    late = slice(15, 120)
    t = h * np.arange(len(ringing))
    guess = (np.abs(ringing[late]).max(), decay, discrete, 0.0)
    fit, _ = curve_fit(_ring, t[late], ringing[late], guess, maxfev=20000)
    found_decay, found = float(fit[1]), float(fit[2])
    ratio = run.lock.scene.numbers.ratio
    low = np.array(samples)
    after = low[(start // ratio) + 2 :]
    pad = 1 << 13
    spectrum = np.abs(np.fft.rfft(ringing, pad)) * h
    low_spectrum = np.abs(np.fft.rfft(after - after[-1], pad)) * h * ratio
    frequency, low_frequency = np.fft.rfftfreq(pad, h), np.fft.rfftfreq(pad, h * ratio)
    write_csv(
        out / "pluck.csv",
        [{"time_s": float(a), "weld_y_m": float(b)} for a, b in zip(t, ringing, strict=True)],
    )

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(1e3 * t, 1e3 * ringing, color=COLOURS["high"], lw=1.2, label="stiff beam, 1 kHz")
        fitted = 1e3 * _ring(t, *fit)
        dashes = (0, (3, 2))
        left.plot(
            1e3 * t, fitted, color=COLOURS["monolithic"], lw=0.9, ls=dashes, label=f"fit: {found:.1f} Hz"
        )
        times = 1e3 * h * (ratio * np.arange(len(low)) + ratio - start)
        left.plot(
            times,
            1e3 * (low - low[-1]),
            color=COLOURS["low"],
            marker="o",
            ms=3.5,
            lw=1.0,
            label="paper's proxy, 50 Hz",
        )
        left.set_xlim(-10, 160)
        left.set_ylim(*(1.15e3 * np.array([ringing.min(), ringing.max()])))
        left.set_xlabel("time since the pluck [ms]")
        left.set_ylabel("weld, across [mm]")
        left.legend(frameon=False, fontsize=8.5)
        right.plot(frequency, 1e6 * spectrum, color=COLOURS["high"], label="1 kHz")
        right.plot(
            low_frequency,
            1e6 * low_spectrum,
            color=COLOURS["low"],
            label=f"50 Hz: ends at {0.5 / (h * ratio):g} Hz",
        )
        right.axvline(natural, color=COLOURS["faint"], lw=1.0, ls=(0, (4, 3)))
        right.annotate(
            f"K, M: {natural:.1f} Hz",
            (natural, 0.96),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8.5,
        )
        right.set_xlim(0, 200)
        right.set_ylim(bottom=0)
        right.set_xlabel("frequency [Hz]")
        right.set_ylabel("amplitude [mm/kHz]")
        right.legend(frameon=False, fontsize=8.5)

    save_figure(out / "pluck.png", 3.4, draw)
    nyquist = 0.5 / (h * ratio)
    euler = "eigenvalue of one step of 1 ms"
    return [
        close_to(
            "ringing after a pluck against K and M", found, natural, 2.0, "Hz", "the pair, clamped and held"
        ),
        Reported("that mode with everything at 1 kHz, backward Euler", discrete, "Hz", euler),
        close_to("decay of the ringing", found_decay, decay, 10.0, "1/s", euler),
        at_least(
            "ringing over what the slow loop can show", found / nyquist, 1.0, "x", "003, V: half of 50 Hz"
        ),
    ]
