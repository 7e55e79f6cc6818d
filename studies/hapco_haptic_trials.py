"""The haptic loop of the thesis and ours, led along one path by one hand."""

import math
from dataclasses import dataclass
from time import thread_time

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from palpo.app.cli.progress import Silent
from palpo.app.systems.hapco.build import build_bodies, detection_of
from palpo.benchmarks.hapco import timed_path
from palpo.benchmarks.hapco_bearing import HAND, rig_of
from palpo.config.load import load_scene
from palpo.config.schema.hapco import HapcoScene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.device import device_read, device_write
from palpo.haptics.device_spec import DEVICES
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.row import NAMES
from palpo.physics.contact.problem import Stop
from palpo.physics.exchange.port import make_port
from palpo.studies.reference.interaction import Interaction
from palpo.studies.rows import Row
from palpo.studies.runs import legs

Floats = NDArray[np.float64]
SCENES = {16: "hapco-16", 36: "hapco-block"}
MODULI = (45.0, 90.0)
"""Of the tissue [kPa]."""
DEVICE = DEVICES["phantom_desktop"]


@dataclass(frozen=True)
class HapticStep:
    """One step of the trials."""

    name: str
    eps_gs: float
    eps_nr: float
    mu: float
    printed_hz: float
    """Rate of 001's haptic loop: below 10, below 50 and 100 Hz; for step 2, which does half of step 1's work,
    twice the first."""


STEPS = (
    HapticStep("1", 1e-8, 1e-3, 0.3, 10.0),
    HapticStep("2", 1e-8, 1.0, 0.3, 20.0),
    HapticStep("3", 1e-4, 1.0, 0.3, 50.0),
    HapticStep("4", 1e-4, 1.0, 0.7, 50.0),
    HapticStep("5", 1e-2, 1.0, 0.3, 100.0),
    HapticStep("6", 1e-2, 1.0, 0.7, 100.0),
)
QUICK_STEPS = (STEPS[0], STEPS[3], STEPS[4])
ONE_LINEARISATION = 1.0
"""eps_NR at which 001 asks the contact solver once a step."""
NEWTON_TOLERANCE = 1e-5
"""Of sum |dX| [m]: eps_NR = 1e-3 of 001's centimetres."""
PRINTED_PEAKS = {(45.0, 0.3): 3.0, (45.0, 0.7): 4.5, (90.0, 0.3): 4.5, (90.0, 0.7): 7.0}
"""Largest forces that 001's users met [N]."""
HANDS = (400.0, 700.0, 1000.0, 1500.0)
"""Stiffnesses of the hand over which the peaks are compared [N/m]."""
FITTED = (45.0, 0.3)
"""Whose peak the depth of the hand's path is chosen for: it can confirm nothing."""
TREMBLE = 30.0
"""Lowest frequency of what is no intended motion [Hz]."""
FORCE = [NAMES.index(f"sent_{axis}") for axis in "xyz"]


def scene_of(contacts: int, modulus: float, mu: float, tolerance: float) -> HapcoScene:
    """The shipped scene with a trial's values; modulus [kPa]."""
    spec = load_scene(
        SCENES[contacts],
        [
            f"bodies.tissue.material.youngs_modulus={1e3 * modulus}",
            f"friction.default={mu}",
            f"solver.tolerance={tolerance}",
        ],
    )
    assert isinstance(spec, HapcoScene)
    return spec


START = np.array(load_scene(SCENES[36]).device.path[0][1:])
"""Where the hand begins, and where the block would touch [m]."""
TOUCH = START - np.array([0.0, START[1] - 0.0525, 0.0])
PRESSED = 2.3
"""When the hand has pressed, and begins to drag [s]."""


def hand_path(depth: float) -> Floats:
    """Where the hand wants to be (n, 3) [m] at 1 kHz: down, 2 cm to the tissue's free end, 4 cm back, with a
    rest after each."""
    down, free, clamped = (TOUCH + np.array([x, -depth, 0.0]) for x in (0.0, 0.02, -0.02))
    ways = ((1.6, down), (1.6, free), (2.4, clamped))
    return legs((0.3, *START), *((t, *x) for seconds, x in ways for t in (seconds, 0.4)))


def sent(spec: HapcoScene, path: Floats, hand: float = HAND) -> Floats:
    """Force that a scene's servo sends (n, 3) [N], a hand of that stiffness led along a path."""
    rig, found = rig_of(spec, path, hand=hand), []
    for first in range(0, len(path), 4000):
        servo_run(rig.servo, min(4000, len(path) - first))
        found.append(drain_rows(rig.servo))
    return np.concatenate(found)[:, FORCE]


@dataclass(frozen=True)
class HapticTrial:
    """A step at a number of contacts on a tissue of some modulus [kPa]."""

    step: HapticStep
    contacts: int
    modulus: float

    def ours(self, path: Floats, hand: float = HAND) -> Floats:
        """Force that the servo sends (n, 3) [N], a hand of that stiffness led along a path."""
        return sent(scene_of(self.contacts, self.modulus, self.step.mu, self.step.eps_gs), path, hand)

    def interaction(self) -> Interaction:
        """001's step: Uzawa global, bi-potential, rho_min, stopped by the last change of the force."""
        spec = scene_of(self.contacts, self.modulus, self.step.mu, self.step.eps_gs)
        mobile, fixed = build_bodies(spec, Silent())
        once = self.step.eps_nr == ONE_LINEARISATION
        return Interaction(
            mobile, fixed, detection_of(spec, mobile), self.step.mu, "GB",
            {"outer": ("relative", self.step.eps_gs)}, Stop(self.step.eps_gs, 5000),
            math.inf if once else NEWTON_TOLERANCE,
        )  # fmt: skip

    def thesis(self, path: Floats) -> Floats:
        """Force on the hand (n, 3) [N] of 001's step, held from one to the next at 001's rate."""
        interaction, device, port = self.interaction(), make_mock(DEVICE, path), make_port()
        held, hold = np.zeros(3), round(1e3 / self.step.printed_hz)
        forces = np.empty((len(path), 3))
        for tick in range(len(path)):
            device_read(device, tick, port)
            if tick % hold == 0:
                held = _clipped(interaction.step(port.position).force)
            device_write(device, held)
            forces[tick] = held
        return forces

    def row(self, path: Floats, ours: Floats, theirs: Floats) -> Row:
        """What the trial comes to."""
        spec = scene_of(self.contacts, self.modulus, self.step.mu, self.step.eps_gs)
        reached = hand_positions(ours, path)
        ns, met, _ = timed_path(spec, reached, rounds=2)
        own = ns.min(axis=0)[met[:, 0] > 0]
        return {
            "step": self.step.name,
            "eps_gs": self.step.eps_gs,
            "eps_nr": self.step.eps_nr,
            "mu": self.step.mu,
            "contacts": self.contacts,
            "modulus_kPa": self.modulus,
            "printed_Hz": self.step.printed_hz,
            "thesis_Hz": self._thesis_rate(reached),
            "ours_Hz": 1e9 / float(own.mean()),
            "ours_p99_Hz": 1e9 / float(np.percentile(own, 99)),
            "thesis_trembling_N": trembling(theirs),
            "ours_trembling_N": trembling(ours),
            "thesis_jump_N": largest_jump(theirs),
            "ours_jump_N": largest_jump(ours),
            "thesis_peak_N": peak(theirs),
            "ours_peak_N": peak(ours),
            "printed_peak_N": PRINTED_PEAKS[self.modulus, self.step.mu],
        }

    def _thesis_rate(self, reached: Floats) -> float:
        """Steps a second of 001's solver on this machine, in contact, by CPU time, along the hand's way."""
        interaction, spent = self.interaction(), []
        for position in reached[::20]:
            began = thread_time()
            step = interaction.step(position)
            if step.force.any():
                spent.append(thread_time() - began)
        return 1.0 / float(np.mean(spent))


def _clipped(force: Floats) -> Floats:
    """No more than the device can (001's "Max Haptic Force")."""
    size = float(np.linalg.norm(force))
    return force * min(1.0, DEVICE.max_force / size) if size > 0.0 else force


def hand_positions(forces: Floats, path: Floats) -> Floats:
    """Where the device reports to be (n, 3) [m] when these forces act on it."""
    device, port = make_mock(DEVICE, path), make_port()
    positions = np.empty((len(path), 3))
    for tick, force in enumerate(forces):
        device_read(device, tick, port)
        positions[tick] = port.position
        device_write(device, force)
    return positions


def peak(forces: Floats) -> float:
    """Largest norm [N]."""
    return float(np.linalg.norm(forces, axis=1).max())


def trembling(forces: Floats) -> float:
    """RMS [N] of what lies above TREMBLE in forces (n, 3) at 1 kHz: fourth-order Butterworth, both ways."""
    high = butter(4, TREMBLE, "highpass", fs=1e3, output="sos")
    return float(np.sqrt((sosfiltfilt(high, forces, axis=0) ** 2).sum(axis=1).mean()))


def largest_jump(forces: Floats) -> float:
    """Largest change from one tick to the next [N]."""
    return float(np.linalg.norm(np.diff(forces, axis=0), axis=1).max())
