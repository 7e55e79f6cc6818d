"""HapCo where many contacts bear: what a tick costs in each kind of loops, and what following tangents errs
by.

The plate of `hapco-thousand`, with 64 to 961 vertices of which nearly all bear. The hand is led
along the scene's path. A tick is timed in lock-step, so that its frame is as late as its rate says; the
force is compared with that of everything in one tick, with contacts found and solved at the same poses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.rigs import Start
from palpo.app.systems.hapco.rig import HapcoRig
from palpo.benchmarks.timing import BARE, Figures, beside, microseconds, within
from palpo.config.load import load_scene
from palpo.config.schema.hapco import HapcoScene
from palpo.haptics.backends.mock import FIRM, make_mock
from palpo.haptics.clock import make_scratch, now_ns
from palpo.haptics.device import HandGrip
from palpo.haptics.device_spec import DEVICES
from palpo.haptics.limits import make_limits
from palpo.haptics.workspace import make_workspace
from palpo.physics.engine.servo import tick
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.kernels import kernel
from palpo.studies.runs import scene_path

Floats = NDArray[np.float64]

HAND = FIRM.stiffness
"""Of a hand that holds a stylus firmly [N/m]."""
COARSE = ("bodies.tissue.geometry.divisions=[12,4,12]", "rates.low_hz=50")


class BearingCase(NamedTuple):
    """A plate and how it is led."""

    changes: tuple[str, ...]
    """Of the scene."""
    kinds: tuple[str, ...]
    """Of the loops that are timed."""
    slower: float
    """The hand's path takes so many times as long, to go with the slow loop's rate."""
    apart: int
    """Ticks from one full solution to the next."""


ALL = ("servo", "multirate", "tangent")
FINE = "bodies.plate.geometry.divisions=[30,2,30]"
CASES = {
    "64 vertices": BearingCase(("bodies.plate.geometry.divisions=[7,2,7]", *COARSE), ALL, 1.0, 1),
    "121 vertices": BearingCase(("bodies.plate.geometry.divisions=[10,2,10]", *COARSE), ALL, 1.0, 1),
    "441 vertices": BearingCase((), ("tangent",), 1.0, 40),
    "961 vertices": BearingCase((FINE, "rates.low_hz=1"), ("tangent",), 10.0, 1000),
    # eight millimetres in a slow period, of which contacts are looked for in three
    "961 vertices and the hand of the others": BearingCase((FINE, "rates.low_hz=2"), ("tangent",), 1.0, 200),
}
TOUCH = 0.016
"""Height of the hand at which the plate touches [m]."""
DEPTH = 3e-3
"""How deep the hand presses [m]: the scene's own path is for a hand that the tissue holds off."""
TANGENT_US, ERROR = 100.0, 0.01
"""Most time of a tick along tangents, and RMS of its force's error in shares of the peak."""


def bearing(bare: Figures, cases: Sequence[str] = tuple(CASES), every: int = 1) -> Figures:
    """Ticks with 64 to 961 contacts, most of which bear, and the error of those along tangents.

    every: how many times as fast the hand goes along its path.
    """
    return {f"{name}, most of which bear": _case(CASES[name], bare, every) for name in cases}


def _case(case: BearingCase, bare: Figures, every: int) -> Figures:
    spec = load_scene("hapco-thousand", [*case.changes, "solver.tolerance=1e-4", "solver.time_cap=0"])
    assert isinstance(spec, HapcoScene)
    path = pressed(spec, 1.0 / case.slower)[::every]
    fastest = 1e3 * np.linalg.norm(np.diff(path, axis=0), axis=1).max() / spec.rates.dt
    figures: Figures = {"slow steps a second": spec.rates.low_hz, "hand at most mm/s": float(fastest)}
    for loops in case.kinds:
        rig = rig_of(spec, path, loops)
        ns, force, bear = timed(rig, path)
        touching = bear > 0
        step = microseconds(ns[touching])
        figures[loops] = {"contacts that bear": _spread(bear[touching]), "step us": step}
        figures[loops]["step p50 us"] = beside(step["p50"], bare["p50"], BARE)
        if loops == "tangent":
            figures[loops]["target p50 us"] = within(step["p50"], TANGENT_US)
            figures[loops]["slow step ms"] = rig.low.times.whole().summary_ms()
            figures[loops]["error"] = _error(spec, path, force, case.apart)
    return figures


def rig_of(spec: HapcoScene, path: Floats, loops: str = "servo", hand: float = HAND) -> HapcoRig:
    """The scene in lock-step with those loops, a simulated hand led along a path (n, 3) [m] in its axes.

    hand: its stiffness [N/m]; its damping ratio is that of a hand of HAND.
    """
    spec, device = spec.model_copy(update={"loops": loops}), DEVICES[spec.device.model]
    grip = HandGrip(hand, FIRM.damping * (hand / HAND) ** 0.5)
    return HapcoRig(
        spec,
        Start(
            lambda held: make_mock(device, path, grip=grip, dt=spec.rates.dt),
            make_workspace(force_scale=spec.workspace.force_scale),
            make_limits(device.max_force, dt=spec.rates.dt),
        ),
    )  # fmt: skip


def timed(rig: HapcoRig, path: Floats) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Of a tick at each of positions (n, 3) [m]: its time [ns], its force (n, 3) [N], contacts that bear."""
    ns, bear, force = np.zeros(len(path), np.int64), np.zeros(len(path), np.int64), np.zeros((len(path), 3))
    handle, port, done, scratch = Handle(rig.ticks), rig.state.port, [0], make_scratch()

    def advance(span: int) -> None:
        k = slice(done[0], done[0] + span)
        if time_ticks(handle, Handle(port), path[k], ns[k], force[k], bear[k], scratch) < span:
            raise RuntimeError(f"a tick failed within {span} from {done[0]}")
        done[0] += span

    rig.lock.advance(len(path), advance)
    return ns, force, bear


def pressed(spec: HapcoScene, speed: float = 1.0) -> Floats:
    """The scene's path (n, 3) [m], whose depth below the touch is DEPTH, so many times as fast."""
    path = scene_path(spec, speed)
    below, deepest = path[:, 1] < TOUCH, TOUCH - path[:, 1].min()
    path[below, 1] = TOUCH - (TOUCH - path[below, 1]) * DEPTH / deepest
    return path


def _error(spec: HapcoScene, path: Floats, force: Floats, apart: int) -> Figures:
    """Of forces along the path against full solutions at every so many of its ticks."""
    truth = solved(spec, path[::apart])
    off, peak = np.linalg.norm(force[::apart] - truth, axis=1), np.linalg.norm(truth, axis=1).max()
    alike = (force[::apart] != 0.0).any(axis=1) == (truth != 0.0).any(axis=1)
    rms, touching = (float(np.sqrt((part**2).mean()) / peak) for part in (off, off[alike]))
    return {
        "RMS": within(rms, ERROR),
        "RMS where both touch or none": touching,
        "most": float(off.max() / peak),
        "peak N": float(peak),
    }


def solved(spec: HapcoScene, path: Floats) -> Floats:
    """Force (n, 3) [N] of everything in one tick at each of positions (n, 3) [m], all contacts solved for.

    From one of these poses to the next hundreds of contacts may come to bear, more than a tick's working set
    takes in. Raises RuntimeError where a solution was not reached.
    """
    whole = rig_of(spec, path)
    engine = whole.state.engine
    engine.solver.settings["at_once"] = engine.contacts.status.size
    force = np.zeros((len(path), 3))
    for k in range(len(path)):
        force[k] = timed(whole, path[k : k + 1])[1][0]
        if (error := whole.state.port.info["residual"][0]) > spec.solver.tolerance:
            raise RuntimeError(f"the full solution at {path[k]} m has a residual of {error:.1e}")
    return force


def _spread(values: NDArray[np.int64]) -> Figures:
    return {"median": int(np.median(values)), "most": int(values.max())}


@kernel
def _lead(port, position):
    for i in range(3):
        port.position[i] = position[i]


@kernel
def _book(port, force, bear, k):
    for i in range(3):
        force[k, i] = port.force[i]
    bear[k] = port.status[0].contacts


@kernel
def time_ticks(s, port, positions, ns, force, bear, scratch):
    """Ticks at positions (n, 3), their times, forces and contacts that bear; how many were well."""
    for k in range(ns.shape[0]):
        _lead(port, positions[k])
        start = now_ns(scratch)
        if tick(s) != OK:
            return k
        ns[k] = now_ns(scratch) - start
        _book(port, force, bear, k)
    return ns.shape[0]
