"""The paper's second experiment: a cylinder on a plane, pulled, lifted, hung and dropped by a wire (003, V).

An independent query, which shares nothing with the contact code, measures at every slow step how far the
surfaces are apart: the cylinder's whole surface against the wire's segments and against the plane.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import scipy.linalg as sl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from palpo.physics.bodies.chain_body import ChainBody
from palpo.studies.claims import Claim, at_least, at_most, close_to
from palpo.studies.rows import Row
from palpo.studies.runs import SceneDrive, legs
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
LIMIT = 3.3
"""Largest force of the Touch [N]."""
START = (0.120, 0.200, 0.0)
HUNG = (0.000, 0.330, 0.0)


def run(out: Path, quick: bool) -> list[Claim]:
    """Weights while hung, distances in every phase, and the wire's vibration after a tug."""
    story = _story(quick)
    tug = _tug()
    gaps = story.gaps + tug.gaps
    write_csv(out / "distances.csv", gaps)
    write_csv(out / "forces.csv", story.samples())
    save_figure(out / "forces.png", 5.6, story.draw)
    save_figure(out / "tug.png", 4.6, tug.draw)
    broken = [one.broke for one in (story, tug) if one.broke]
    whole = Claim("runs that broke down", len(broken), "", "0 (003: stable for any admissible configuration)"
                  + "".join(f"; {where}" for where in broken), not broken)  # fmt: skip
    return [whole, *_weights(story), *_distances(story, gaps), *_vibration(out, quick)]


def face_distance(p: Floats, a: Floats, b: Floats, c: Floats) -> Floats:
    """Distances of points p (n, 1, 3) from triangles a, b, c (1, m, 3), shape (n, m): face, else edges."""
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    height = ((p - a) * normal).sum(-1)
    inside = np.ones(height.shape, bool)
    edges = np.full(height.shape, np.inf)
    for u, v in ((a, b), (b, c), (c, a)):
        along = v - u
        inside &= (np.cross(along, p - u) * normal).sum(-1) >= 0.0
        share = np.clip(((p - u) * along).sum(-1) / (along**2).sum(-1), 0.0, 1.0)
        edges = np.minimum(edges, np.linalg.norm(p - u - share[..., None] * along, axis=-1))
    return np.where(inside, np.abs(height), edges)


def edge_distance(p: Floats, q: Floats, u: Floats, v: Floats) -> Floats:
    """Distances of segments p q (n, 1, 3) from segments u v (1, m, 3), shape (n, m)."""
    d, e, r = q - p, v - u, p - u
    a, b, c = (d * d).sum(-1), (d * e).sum(-1), (e * e).sum(-1)
    f, g = (d * r).sum(-1), (e * r).sum(-1)
    best = np.full(np.broadcast_shapes(a.shape, c.shape), np.inf)
    # the interior minimum, and the best on each of the four borders of the square of both parameters
    safe = np.maximum(a * c - b * b, 1e-300)
    s = np.clip((b * g - c * f) / safe, 0.0, 1.0)
    candidates = [(s, np.clip((b * s + g) / c, 0.0, 1.0))]
    candidates += [(np.full_like(best, s0), np.clip((b * s0 + g) / c, 0.0, 1.0)) for s0 in (0.0, 1.0)]
    candidates += [(np.clip((b * t0 - f) / a, 0.0, 1.0), np.full_like(best, t0)) for t0 in (0.0, 1.0)]
    for s, t in candidates:
        best = np.minimum(best, np.linalg.norm(r + s[..., None] * d - t[..., None] * e, axis=-1))
    return best


def crosses(p: Floats, q: Floats, a: Floats, b: Floats, c: Floats) -> NDArray[np.bool_]:
    """Which segments p q (n, 1, 3) pierce which triangles (1, m, 3), shape (n, m)."""
    d, e1, e2 = q - p, b - a, c - a
    h = np.cross(d, e2)
    det = (e1 * h).sum(-1)
    safe = np.where(np.abs(det) < 1e-300, 1e-300, det)
    s = p - a
    u = (s * h).sum(-1) / safe
    w = np.cross(s, e1)
    v = (d * w).sum(-1) / safe
    t = (e2 * w).sum(-1) / safe
    return (u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0) & (t <= 1)


@dataclass
class WireSurfaces:
    """The query: surfaces of the cylinder, the wire and the plane y = 0."""

    run: SceneDrive
    triangles: NDArray[np.int32] = field(init=False)
    edges: NDArray[np.int32] = field(init=False)
    radius: float = field(init=False)

    def __post_init__(self) -> None:
        cylinder = self.run.lock.scene.members[0]
        self.triangles = cylinder.body.mesh.surface().triangles
        pairs = np.sort(self.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        self.edges = np.unique(pairs, axis=0)
        self.radius = float(self.run.spec.tool_body.geometry.radius)  # type: ignore[union-attr]

    def measure(self, phase: str) -> Row:
        """Gaps at the instant that the slow-rate bodies have reached; negative inside."""
        run, low = self.run, self.run.lock.low
        x = run.lock.scene.members[0].body.x
        wire = run.trace["tool"][max(low.tick, 1) - 1]
        # the wire's first element starts on the skin; it is left out together with its thickness
        p, q = wire[1:-1, None], wire[2:, None]
        a, b, c = (x[self.triangles[:, k]][None] for k in range(3))
        distance = min(
            float(face_distance(wire[1:, None], a, b, c).min()),
            float(edge_distance(p, q, x[self.edges[:, 0]][None], x[self.edges[:, 1]][None]).min()),
        )
        if crosses(p, q, a, b, c).any():
            distance = -distance
        return {
            "phase": phase,
            "time_s": low.tick * run.dt,
            "cylinder_plane_m": float(x[:, 1].min()),
            "wire_plane_m": float(wire[:, 1].min()) - self.radius,
            "wire_cylinder_m": distance - self.radius,
        }


class Story:
    """One run through named phases, with its distances."""

    def __init__(self) -> None:
        self.gaps: list[Row] = []
        self.spans: dict[str, tuple[int, int]] = {}
        self.trace: dict[str, NDArray] = {}
        self.masses: dict[str, float] = {}
        self.skin = 0.0
        self.broke = ""
        """Phase and time at which the run broke down."""

    def play(self, run: SceneDrive, phases: dict[str, Floats]) -> None:
        """Lead the hand through the phases, one after the other."""
        surfaces = WireSurfaces(run)
        self.masses, self.skin = run.lock.scene.masses(), run.lock.scene.numbers.skin
        for name, path in phases.items():
            first = run.ticks
            self.trace = run.go(path, partial(self._note, surfaces, name))
            self.spans[name] = (first, run.ticks)
            if run.stopped:
                self.broke = f"{name} at {run.dt * len(self.trace['force']):.3f} s"
                break

    def _note(self, surfaces: WireSurfaces, phase: str, _: SceneDrive) -> None:
        self.gaps.append(surfaces.measure(phase))

    def samples(self) -> list[Row]:
        """Forces every 10 ms."""
        return [
            {"time_s": 1e-3 * i} | {
                f"{name}_{axis}_N": float(self.trace[name][i, k])
                for name in ("force", "reaction") for k, axis in enumerate("xyz")
            }
            for i in range(0, len(self.trace["force"]), 10)
        ]  # fmt: skip

    def draw(self, figure: Figure) -> None:
        """Forces and distances over the phases."""
        top, bottom = figure.subplots(2, 1, sharex=True)
        t = 1e-3 * np.arange(len(self.trace["force"]))
        top.plot(
            t,
            np.linalg.norm(self.trace["reaction"], axis=1),
            color=COLOURS["krylov"],
            lw=1.1,
            label="reaction of the held node",
        )
        top.plot(
            t,
            np.linalg.norm(self.trace["force"], axis=1),
            color=COLOURS["high"],
            lw=0.9,
            label="constraint sum",
        )
        top.axhline(
            9.81 * self.masses["cylinder"],
            color=COLOURS["faint"],
            lw=0.9,
            ls=(0, (4, 3)),
            label="weight of the cylinder",
        )
        top.set_ylabel("force [N]")
        top.set_ylim(0, min(1.1 * float(np.linalg.norm(self.trace["reaction"], axis=1).max()), 2 * LIMIT))
        top.legend(frameon=False, fontsize=8.5, loc="upper center")
        times = [float(row["time_s"]) for row in self.gaps]
        for name, label, colour in (
            ("cylinder_plane_m", "cylinder and plane", COLOURS["low"]),
            ("wire_plane_m", "wire and plane", COLOURS["extrapolated"]),
            ("wire_cylinder_m", "wire and cylinder", COLOURS["krylov"]),
        ):
            bottom.plot(
                times, [1e3 * float(row[name]) for row in self.gaps], color=colour, lw=1.2, label=label
            )
        bottom.axhline(1e3 * self.skin, color=COLOURS["faint"], lw=0.9, ls=(0, (4, 3)))
        bottom.set_ylim(-1.0, 6.0)
        bottom.set_ylabel("gap by independent query [mm]")
        bottom.set_xlabel("time [s]")
        bottom.legend(frameon=False, fontsize=8.5, loc="center")
        for ax in (top, bottom):
            for name, (first, _) in self.spans.items():
                ax.axvline(1e-3 * first, color="#dfe4ea", lw=0.8)
                if ax is top:
                    ax.annotate(name, (1e-3 * first, 1.0), xycoords=("data", "axes fraction"), fontsize=8.5,
                                xytext=(3, 2), textcoords="offset points", color="#5c6a7c")  # fmt: skip


def _story(quick: bool) -> Story:
    """Rest, slide, lift, hang, drop."""
    wait, slow = (1.0, 1.0) if quick else (8.0, 1.0)
    aside, above = (0.220, 0.200, 0.0), (0.100, 0.200, 0.0)
    phases = {
        "rest": legs((0.0, *START), (0.6, *START)),
        "slide": legs((0.0, *START), (1.0 * slow, *aside), (0.2, *aside)),
        "lift": legs((0.0, *aside), (0.6, *above), (1.6, above[0], HUNG[1], 0.0)),
        "hang": legs((0.0, above[0], HUNG[1], 0.0), (wait, above[0], HUNG[1], 0.0)),
        "drop": legs((0.0, above[0], HUNG[1], 0.0), (0.3, above[0], 0.215, 0.0), (0.7, above[0], 0.215, 0.0)),
    }
    story = Story()
    with SceneDrive("wire") as run:
        story.play(run, phases)
    return story


def _tug() -> Story:
    """The hand jerks the wire sideways at 1 m/s for 10 cm, while the cylinder lies on the plane."""
    away = (START[0] + 0.1, *START[1:])
    phases = {
        "rest": legs((0.0, *START), (0.2, *START)),
        "tug": legs((0.0, *START), (0.1, *away), smooth=False),
        "after": legs((0.0, *away), (0.8, *away)),
    }
    story = Story()
    with SceneDrive("wire") as run:
        story.play(run, phases)
    return story


def _weights(story: Story) -> list[Claim]:
    """Means over the last second of hanging: what is left of the swing cancels."""
    last = story.spans["hang"][1]
    window = slice(max(last - 1000, story.spans["hang"][0]), last)
    cylinder, both = 9.81 * story.masses["cylinder"], 9.81 * sum(story.masses.values())
    reaction = float(np.linalg.norm(story.trace["reaction"][window].mean(axis=0)))
    total = float(np.linalg.norm(story.trace["force"][window].mean(axis=0)))
    swing = float(np.ptp(np.linalg.norm(story.trace["reaction"][window], axis=1)))
    peak = float(np.linalg.norm(story.trace["reaction"], axis=1).max())
    return [
        close_to("reaction of the held node while hung", reaction, both, 1.0, "N", "their weight"),
        close_to("constraint sum while hung", total, cylinder, 1.0, "N", "its weight"),
        close_to("what of that reaction no contact gives", reaction - total, both - cylinder, 10.0, "N",
                 "the wire's own weight"),
        at_most("swing of the reaction in that second", swing, 0.02 * both, "N", "2% of the weight"),
        at_most("largest force on the hand in all phases", peak, LIMIT, "N", "Touch"),
    ]  # fmt: skip


def _distances(story: Story, gaps: list[Row]) -> list[Claim]:
    """Deepest penetration in each phase, by the independent query."""
    claims = []
    for phase in ("rest", "slide", "lift", "hang", "drop", "tug", "after"):
        rows = [row for row in gaps if row["phase"] == phase]
        if not rows:
            continue
        worst = {
            name: min(float(row[f"{name}_m"]) for row in rows)
            for name in ("cylinder_plane", "wire_plane", "wire_cylinder")
        }
        name = min(worst, key=lambda key: worst[key])
        where = name.replace("_", " and ")
        claims.append(
            at_most(f"deepest penetration, {phase} ({where})", max(0.0, -1e3 * worst[name]),
                    1e3 * story.skin, "mm", "the contact distance")
        )  # fmt: skip
    return claims


def _taut_modes(run: SceneDrive) -> Floats:
    """Eigenfrequencies [Hz] of the hung wire as it is: its lower end pinned, the upper one in the hold."""
    scene = run.lock.scene
    wire = ChainBody("wire", scene.model, run.lock.high.held.tool)
    K, M = wire.tangent(), wire.M
    gains = scene.hold.gains[0]
    end = np.arange(6) + 6 * int(scene.hold.frame[0])
    K = K.copy()
    K[end, end] += np.repeat([gains.stiffness, gains.turn_stiffness], 3)
    free = np.arange(3, len(K))
    values = sl.eigh(K[np.ix_(free, free)], M[np.ix_(free, free)], eigvals_only=True, subset_by_index=[0, 7])
    return np.sqrt(np.maximum(values, 0.0)) / (2 * np.pi)


def _vibration(out: Path, quick: bool) -> list[Claim]:
    """A sideways tug of 2 cm at 1 m/s on the hung wire: its middle at both rates."""
    hung, after = HUNG, (*HUNG[:2], 0.02)
    up = legs((0.0, 0.12, 0.2, 0.0), (0.6, 0.0, 0.26, 0.0), (1.0, *hung), (0.4 if quick else 3.0, *hung))
    tug = legs((0.0, *hung), (0.02, *after), smooth=False)
    rest = legs((0.0, *after), (1.0, *after))
    shapes: dict[str, Floats] = {}
    with SceneDrive("wire") as run:
        run.go(up)
        start = run.ticks + len(tug)
        trace = run.go(np.vstack([tug, rest]))
        ratio, h = run.lock.scene.numbers.ratio, run.dt
        modes = _taut_modes(run)
    x = trace["tool"][start : start + 400]
    # the middle off the chord between the ends: the swing of the whole is left out
    bend = x[:, 5, 2] - 0.5 * (x[:, 0, 2] + x[:, -1, 2])
    pad = 1 << 14
    ratio_hz = 0.5 / (h * ratio)
    ring = sosfiltfilt(butter(2, ratio_hz, "high", fs=1.0 / h, output="sos"), bend, axis=0)
    # the pendulum's swing is below what 50 Hz shows; what the slow rate sees of the rest is its own samples
    high_f, low_f = np.fft.rfftfreq(pad, h), np.fft.rfftfreq(pad, h * ratio)
    shapes["high"] = np.abs(np.fft.rfft(ring, pad)) * h
    shapes["low"] = np.abs(np.fft.rfft(bend[::ratio] - bend[-1], pad)) * h * ratio
    peak = float(high_f[np.argmax(shapes["high"])])
    # backward Euler turns a mode by atan(omega h) a step
    seen = np.arctan(2 * np.pi * modes * h) / (2 * np.pi * h)
    nearest = float(seen[np.argmin(np.abs(seen - peak))])
    nyquist = ratio_hz
    write_csv(
        out / "vibration.csv", [{"time_s": float(h * i), "middle_m": float(b)} for i, b in enumerate(bend)]
    )

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        t = 1e3 * h * np.arange(len(bend))
        left.plot(t, 1e3 * bend, color=COLOURS["high"], lw=1.0, label="servo, 1 kHz")
        left.plot(
            t[::ratio],
            1e3 * bend[::ratio],
            color=COLOURS["low"],
            marker="o",
            ms=3.5,
            lw=0.8,
            label="as 50 Hz sees it",
        )
        left.set_xlim(0, 300)
        left.set_xlabel("time since the tug [ms]")
        left.set_ylabel("middle of the wire off its chord [mm]")
        left.legend(frameon=False, fontsize=8.5)
        right.plot(high_f, 1e6 * shapes["high"], color=COLOURS["high"], label="1 kHz, above 25 Hz")
        right.plot(low_f, 1e6 * shapes["low"], color=COLOURS["low"], label=f"50 Hz: ends at {nyquist:g} Hz")
        for f in seen:
            right.axvline(f, color=COLOURS["faint"], lw=0.8, ls=(0, (4, 3)))
        right.set_xlim(0, 250)
        right.set_yscale("log")
        right.set_ylim(2e4 * float(shapes["high"].max()), 4e6 * float(shapes["low"].max()))
        right.set_xlabel("frequency [Hz]  (dashed: modes of K and M at 1 ms)")
        right.set_ylabel("amplitude [mm/kHz]")
        right.legend(frameon=False, fontsize=8.5)

    save_figure(out / "vibration.png", 3.4, draw)
    return [
        at_least("the wire's vibration over what 50 Hz can show", peak / nyquist, 1.0, "x", "003, V: 25 Hz"),
        close_to("its frequency after the tug", peak, nearest, 10.0, "Hz", "nearest mode of K and M at 1 ms"),
    ]  # fmt: skip
