"""The whole servo tick of the snap scenes, along their own paths: pushed in until it clicks, pulled back.

A tick is everything: free motion, collision, contact forces, update, energies, feedback and picture. Paper
002 had 2.2 kHz with a GPU; 5 kHz on one core is aimed at.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.rigs import Start
from palpo.app.systems.snap.rig import SnapRig
from palpo.benchmarks.timing import BARE, Figures, bare_loop_us, beside, microseconds, within
from palpo.config.load import load_scene
from palpo.config.schema.snap import SnapScene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.clock import make_scratch, now_ns
from palpo.haptics.device_spec import DEVICES
from palpo.haptics.limits import make_limits
from palpo.haptics.workspace import make_workspace
from palpo.physics.engine.servo import tick
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.kernels import kernel
from palpo.studies.runs import scene_path

SCENES: dict[str, tuple[str, Sequence[str]]] = {
    "two-prong, coarse": ("snap", ['connector.mesh="coarse"']),
    "two-prong, fine": ("snap", ['connector.mesh="fine"']),
    "lan": ("snap-lan", []),
    "cap": ("snap-cap", []),
    "buckle": ("snap-buckle", []),
}
ROUNDS = 3
"""Runs of the same path; a tick's least time is its own, the rest is the machine's."""
AIM_US = 200.0
SERVO_US = 1000.0

# Columns of what is kept of a tick beside its time
CONTACTS, ROWS, SWEEPS = range(3)


def snap(every: int = 1, scenes: Sequence[str] = tuple(SCENES)) -> Figures:
    """Whole ticks of the four snap scenes, the two-prong one at both meshes, against 5 kHz and 1 kHz."""
    bare = bare_loop_us()
    figures: Figures = {name: _measured(*SCENES[name], every, bare) for name in scenes}
    return figures | {"bare loop us": bare}


def _rig(spec: SnapScene, path: NDArray[np.float64]) -> SnapRig:
    device = DEVICES[spec.device.model]
    return SnapRig(
        spec,
        Start(
            lambda held: make_mock(device, path, dt=spec.rates.dt), make_workspace(),
            make_limits(device.max_force, dt=spec.rates.dt),
        ),
    )  # fmt: skip


def _measured(scene: str, overrides: Sequence[str], every: int, bare: Figures) -> Figures:
    spec = load_scene(scene, overrides)
    assert isinstance(spec, SnapScene)
    path = scene_path(spec)[::every]
    ns, met = np.zeros((ROUNDS, len(path)), np.int64), np.zeros((len(path), 3), np.int64)
    residuals = np.zeros(len(path))
    for row in ns:
        rig = _rig(spec, path)
        if time_ticks(rig.data, path, row, met, residuals, make_scratch()) < len(path):
            raise RuntimeError(f"a tick of {scene} failed")
    touching = met[:, CONTACTS] > 0
    least = ns.min(axis=0)
    own, mean = microseconds(least), 1e-3 * float(least.mean())
    return {
        "coordinates": int(rig.model.coordinates.size),
        "ticks": len(path),
        "touching, share of ticks": float(touching.mean()),
        "contacts found, most": int(met[:, ROWS].max()) // 3,
        "sweeps": {"median": int(np.median(met[touching, SWEEPS])), "most": int(met[:, SWEEPS].max())},
        "residual of a touching tick": {
            "median": float(np.median(residuals[touching])),
            "worst": float(residuals[touching].max()),
        },
        "tick us": microseconds(ns.ravel()),
        "least of rounds us": own,
        "touching, least of rounds us": microseconds(least[touching]),
        "rate Hz": 1e6 / mean,
        "target mean us": within(mean, AIM_US),
        "target p99 us": within(own["p99"], SERVO_US),
        "tick p50 us": beside(own["p50"], bare["p50"], BARE),
    }


@kernel
def time_ticks(s, positions, ns, met, residuals, scratch):
    """A tick at each of positions (n, 3), its time [ns] into ns (n,); how many were well."""
    for k in range(ns.shape[0]):
        for i in range(3):
            s.port.position[i] = positions[k, i]
        start = now_ns(scratch)
        if tick(s) != OK:
            return k
        ns[k] = now_ns(scratch) - start
        met[k, CONTACTS] = s.port.status[0].contacts
        met[k, ROWS] = s.port.status[0].rows
        met[k, SWEEPS] = s.port.status[0].sweeps
        residuals[k] = s.port.info[0].residual
    return ns.shape[0]
