"""The whole haptic step of HapCo at 16, 36, 66 and 256 contacts found, along the scenes' own paths, and with
64 to 961 of which most bear (palpo.benchmarks.hapco_bearing).

A step is collision, free motion, W, contact forces to a natural-map residual of 1e-4, feedback and both
surfaces; the first touch is among them. The thesis of N. Talbi (section 4.4.3) had 100 steps a second at 16
contacts, with forces to 1e-2.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.benchmarks.hapco_bearing import bearing, rig_of
from palpo.benchmarks.timing import BARE, Figures, add_lap, bare_loop_us, beside, lap, microseconds, within
from palpo.config.load import load_scene
from palpo.config.schema.hapco import HapcoScene
from palpo.haptics.clock import make_scratch, now_ns
from palpo.physics.contract.contacts import AGAIN
from palpo.physics.contract.links import BOOK, SETTINGS, TELL
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.equilibrium import SOLVES, assemble, open_set, push, respond, solve, tell_statuses
from palpo.physics.engine.grip import add_felt
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.servo import aim, ask_links, feedback, lead_hands, tick
from palpo.physics.engine.tick import begin, close, find
from palpo.physics.exchange.handle import Handle, handle_like
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.kernels import kernel
from palpo.studies.runs import scene_path

SCENES = {16: "hapco-16", 36: "hapco-block", 66: "hapco-66", 256: "hapco-many"}
STAGES = (
    "pose and settings", "collision", "free motion", "W", "contact forces", "surfaces and anchors",
    "feedback", "picture",
)  # fmt: skip
ROUNDS = 3
"""Runs of the same path; a tick's least time is its own, the rest is the machine's."""
KILOHERTZ_US = 1000.0
TOLERANCE = 1e-4

# Columns of what is kept of a tick beside its time
CONTACTS, ROWS, SWEEPS, SET = range(4)


def hapco(every: int = 1) -> Figures:
    """Whole HapCo steps at 16 to 256 contacts found, and 64 to 961 that bear, against 1 kHz.

    The first touch is among them. `hapco-many` runs here with one loop, as the others do.
    """
    bare = bare_loop_us()
    figures: Figures = {f"{n} contacts": _measured(scene, every, bare) for n, scene in SCENES.items()}
    return figures | bearing(bare, every=every) | {"bare loop us": bare}


def timed_path(
    spec: HapcoScene, path: NDArray[np.float64], rounds: int = ROUNDS
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Times of a tick at each point of a path, the hand being there: [ns], shape (rounds, n), what the ticks
    met, shape (n, 4), and their residuals, shape (n,)."""
    ns, met = np.zeros((rounds, len(path)), np.int64), np.zeros((len(path), 4), np.int64)
    residuals = np.zeros(len(path))
    time_ticks(Handle(rig_of(spec, path).ticks), path[:1], ns[0, :1], met[:1], residuals[:1], make_scratch())
    for row in ns:
        state = rig_of(spec, path).ticks
        if time_ticks(Handle(state), path, row, met, residuals, make_scratch()) < len(path):
            raise RuntimeError(f"a tick of {spec.title} failed")
    return ns, met, residuals


def _measured(scene: str, every: int, bare: Figures) -> Figures:
    spec = load_scene(scene, [f"solver.tolerance={TOLERANCE}"])
    assert isinstance(spec, HapcoScene)
    path = scene_path(spec)[::every]
    ns, met, residuals = timed_path(spec, path)
    touching = met[:, CONTACTS] > 0
    first = np.flatnonzero(touching & ~np.roll(touching, 1))
    full = met[:, ROWS] == met[:, ROWS].max()
    stages = np.zeros((len(path), len(STAGES)), np.int64)
    state = Handle(rig_of(spec, path).ticks)
    time_stages(state, path[:1], stages[:1], make_scratch())
    if time_stages(Handle(rig_of(spec, path).ticks), path, stages, make_scratch()) < len(path):
        raise RuntimeError(f"a tick of {scene} failed")
    step, own = microseconds(ns.ravel()), ns.min(axis=0)
    return {
        "ticks": ns.size,
        "contacts found": {"most": int(met[:, ROWS].max()) // 3, "in share of ticks": float(full.mean())},
        "contacts that bear, most": int(met[:, CONTACTS].max()),
        "contacts solved for": {"median": int(np.median(met[touching, SET])), "most": int(met[:, SET].max())},
        "sweeps": {"median": int(np.median(met[touching, SWEEPS])), "most": int(met[:, SWEEPS].max())},
        "residual, worst": float(residuals.max()),
        "step us": step,
        "step with all contacts us": microseconds(ns[:, full].ravel()),
        "least of rounds us": microseconds(own),
        "first touch us": float(own[first].max()) * 1e-3,
        "rate at p99 Hz": 1e6 / step["p99"],
        "target p99 us": within(step["p99"], KILOHERTZ_US),
        "target residual": within(float(residuals.max()), TOLERANCE),
        "parts us": {name: microseconds(stages[full, k]) for k, name in enumerate(STAGES)},
        "step p50 us": beside(step["p50"], bare["p50"], BARE),
    }


@kernel
def _place(s, position):
    for i in range(3):
        s.port.position[i] = position[i]


@kernel
def time_ticks(s, positions, ns, met, residuals, scratch):
    """A tick at each of positions (n, 3), its time [ns] into ns (n,); how many were well."""
    for k in range(ns.shape[0]):
        _place(s, positions[k])
        start = now_ns(scratch)
        if tick(s) != OK:
            return k
        ns[k] = now_ns(scratch) - start
        met[k, CONTACTS] = s.port.status[0].contacts
        met[k, ROWS] = s.port.status[0].rows
        met[k, SWEEPS] = s.port.status[0].sweeps
        met[k, SET] = s.engine.count[0].members
        residuals[k] = s.port.info[0].residual
    return ns.shape[0]


@kernel
def time_stages(s, positions, ns, scratch):
    """Ticks with a clock after each stage, times [ns] into ns (n, len(STAGES)); how many were well."""
    for k in range(ns.shape[0]):
        _place(s, positions[k])
        at, now = ns[k], now_ns(scratch)
        e = s.engine
        ask_links(s, SETTINGS)
        aim(s)
        lead_hands(s, True)
        begin(e)
        now = lap(at, 0, now, scratch)
        find(e)
        now = lap(at, 1, now, scratch)
        free_motion(e)
        now = lap(at, 2, now, scratch)
        open_set(e)
        for left in range(SOLVES, 0, -1):
            assemble(e)
            now = add_lap(at, 3, now, scratch)
            solve(e)
            now = add_lap(at, 4, now, scratch)
            push(e)
            code = respond(e, left == 1)
            now = add_lap(at, 5, now, scratch)
            if code != AGAIN:
                break
        tell_statuses(e)
        if close(e) != DONE or ask_links(s, BOOK) != DONE:
            return k
        add_felt(handle_like(s.grip, s.grips[0]), 1)
        now = add_lap(at, 5, now, scratch)
        if feedback(s) != DONE:
            return k
        now = lap(at, 6, now, scratch)
        s.ticks[0].done += 1
        ask_links(s, TELL)
        lap(at, 7, now, scratch)
    return ns.shape[0]
