"""Short vibrations that tell the hand what happened: contact, slip, click, loss of suction.

What happened is read from what the tick says of the hand (palpo.physics.exchange.port.STATUS) and from
the commanded force; each event is counted, so that whoever looks on can make it heard. The vibration of a
kind is a burst of N ticks with a whole number c of periods under a Hann window,

    f(k) = A sin(2 pi c (k + 1/2) / N) sin^2(pi (k + 1/2) / N) e,    k = 0 .. N - 1,

along the force that the hand feels. It is odd about its middle, so that its sum is zero to the last rounding:
it gives no impulse, and a hand that moves evenly gets no work from it. For any other motion its work stands
in the account of energy, as that of every force that is sent. Its frequency is at most what the device can
render, its largest value A a share of the device's largest force, bounded again by half of the change that a
tick allows, and by the room that is left up to the largest force. A burst that has begun is played to its
end. Vibrations at events: A. M. Okamura, M. R. Cutkosky, J. T. Dennerlein (2001), Reality-based models for
vibration feedback in virtual environments, IEEE/ASME Transactions on Mechatronics 6(3).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import store_release
from palpo.physics.exchange.port import FELT_BITS, SLIDES, SUCKS, TOUCHES
from palpo.physics.numerics.kernels import inlined, kernel

CONTACT, SLIP, CLICK, RELEASE = range(4)
KINDS = ("contact", "slip", "click", "loss of suction")
FREQUENCY = (150.0, 90.0, 250.0, 60.0)
"""Of each kind [Hz], where the device can render it."""
PERIODS = (4, 3, 3, 3)
"""Of each kind in a burst."""
SHARE = 0.1
"""Largest vibration over the device's largest force."""
APART = 0.05
"""Seconds, at least, for which nothing touched before a contact, suction held before its loss, and between
two events of a kind."""
STUCK = 0.03
"""Seconds of sticking before a slip."""
QUICKLY, FALLEN, FELT = 0.02, 0.5, 0.3
"""A click is a fall of the force from at least FELT [N] to this share within this time [s]
(palpo.physics.systems.snap.click)."""
BRISK = 0.1
"""Speed of the hand [m/s] from which on an event is at its strongest."""


class CueParams(NamedTuple):
    """What is rendered on one device at one rate."""

    waves: NDArray[np.float64]
    """Bursts of each kind [N], shape (KINDS, longest)."""
    lasts: NDArray[np.int64]
    """Ticks of each, 0 where it is not rendered; shape (KINDS,)."""
    apart: int
    stuck: int
    """Ticks."""
    clicks: int
    """1 where a sudden fall of the force is a click."""


NOW = np.dtype(
    [("kind", np.int64), ("at", np.int64), ("free", np.int64), ("stuck", np.int64), ("held", np.int64)]
)
"""Kind that is played, -1 for none, and ticks of it; ticks for which nothing touched, what is held has stuck,
and suction has held."""


class CueState(NamedTuple):
    """What is remembered from tick to tick, and what others may ask."""

    now: NDArray[np.void]
    """Shape (1,) of NOW."""
    since: NDArray[np.int64]
    """Ticks since the last event of each kind, shape (KINDS,)."""
    wave: NDArray[np.float64]
    """Direction of the present burst times its strength [-], shape (3,)."""
    recent: NDArray[np.float64]
    """Norms of the command [N], the last QUICKLY of them, shape (n,)."""
    strength: NDArray[np.float64]
    """Of the last event of each kind, above 0 and at most 1, shape (KINDS,)."""
    counts: NDArray[np.int64]
    """Events of each kind so far, shape (KINDS,); written after their strength."""


def burst(periods: int, ticks: int) -> NDArray[np.float64]:
    """A burst of amplitude 1, (ticks,); its sum is zero."""
    phase = (np.arange(ticks) + 0.5) / ticks
    wave = np.sin(2.0 * np.pi * periods * phase) * np.sin(np.pi * phase) ** 2
    # odd to the last bit, whatever the library's sine makes of it
    return 0.5 * (wave - wave[::-1])


def make_cues(
    bandwidth: float = 0.0,
    max_force: float = 1.0,
    max_rate: float = math.inf,
    vibration: float = 1.0,
    clicks: bool = False,
    dt: float = 1e-3,
) -> CueParams:
    """Cues of a device that renders frequencies up to a bandwidth [Hz]; 0 renders none, and counts all.

    max_force [N] and max_rate [N/s]: what the device allows. vibration: share of the largest one.
    """
    tones = [min(wanted, bandwidth, 0.25 / dt) for wanted in FREQUENCY]
    render = vibration > 0.0 and bandwidth > 0.0
    lasts = [round(n / (f * dt)) if render else 0 for f, n in zip(tones, PERIODS, strict=True)]
    waves = np.zeros((len(KINDS), max(1, *lasts)))
    for kind, (ticks, periods) in enumerate(zip(lasts, PERIODS, strict=True)):
        if ticks:
            wave = burst(periods, ticks)
            steepest = float(np.abs(np.diff(wave, prepend=0.0, append=0.0)).max())
            waves[kind, :ticks] = wave * min(vibration * SHARE * max_force, 0.5 * max_rate * dt / steepest)
    return CueParams(
        waves, np.array(lasts, dtype=np.int64), round(APART / dt), round(STUCK / dt), int(clicks)
    )


def make_cue_state(dt: float = 1e-3) -> CueState:
    """Nothing has happened."""
    now = np.zeros(1, NOW)
    now["kind"] = -1
    kinds = len(KINDS)
    return CueState(
        now, np.zeros(kinds, np.int64), np.zeros(3), np.zeros(max(1, round(QUICKLY / dt))), np.zeros(kinds),
        np.zeros(kinds, np.int64),
    )  # fmt: skip


@inlined
def _norm(x):
    return math.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])


@inlined
def _clicked(cues, params, norm):
    """Whether the force has just fallen; then what it was before is forgotten."""
    recent = cues.recent
    highest = 0.0
    for i in range(recent.shape[0] - 1):
        recent[i] = recent[i + 1]
        highest = max(highest, recent[i])
    recent[recent.shape[0] - 1] = norm
    if params.clicks == 0 or highest < FELT or norm >= FALLEN * highest:
        return False
    for i in range(recent.shape[0]):
        recent[i] = norm
    return True


@inlined
def _happened(cues, params, kind, strength):
    """Count an event, unless one of its kind has just been."""
    if cues.since[kind] < params.apart:
        return False
    cues.since[kind] = 0
    cues.strength[kind] = strength
    store_release(cues.counts, kind, cues.counts[kind] + 1)
    return True


@inlined
def _begin(cues, params, kind, strength, force, velocity, room):
    """Begin the burst of a kind, unless one is on, along the force, or the motion without one."""
    if cues.now[0].kind >= 0 or params.lasts[kind] == 0:
        return
    along = velocity if kind == SLIP and _norm(velocity) > 0.0 else force
    size, largest = _norm(along), 0.0
    for k in range(params.lasts[kind]):
        largest = max(largest, abs(params.waves[kind, k]))
    for i in range(3):
        cues.wave[i] = along[i] / size if size > 0.0 else (1.0 if i == 1 else 0.0)
        cues.wave[i] *= min(strength, max(room, 0.0) / largest)
    cues.now[0].kind, cues.now[0].at = kind, 0


@kernel
def heed_events(cues, params, port, hand, largest, silent):
    """What has happened since the last tick to what a hand holds; counts it and begins its vibration.

    port: with the command [N] in device axes. hand: its number, from 0. largest: force [N] allowed now.
    silent: nothing is told, but all is followed.
    """
    now = cues.now[0]
    felt = port.status[0].felt >> (FELT_BITS * hand)
    touches, slides, sucks = felt & TOUCHES != 0, felt & SLIDES != 0, felt & SUCKS != 0
    norm, speed = _norm(port.force), _norm(port.velocity)
    strength = 0.25 + 0.75 * min(speed / BRISK, 1.0)
    for kind in range(cues.counts.shape[0]):
        cues.since[kind] += 1
    clicked = _clicked(cues, params, norm)
    event = -1
    if slides and now.stuck >= params.stuck:
        event = SLIP
    if touches and now.free >= params.apart:
        event = CONTACT
    if not sucks and now.held >= params.apart:
        event = RELEASE
    if clicked:
        event = CLICK
    now.free = 0 if touches else now.free + 1
    now.stuck = now.stuck + 1 if touches and not slides else 0
    now.held = now.held + 1 if sucks else 0
    if event < 0 or silent:
        return
    if event in (CLICK, RELEASE):
        strength = 1.0
    if _happened(cues, params, event, strength):
        _begin(cues, params, event, strength, port.force, port.velocity, largest - norm)


@inlined
def add_vibration(cues, params, force):
    """Add the present burst's value to the force (3,) [N]; True while one is on."""
    now = cues.now[0]
    kind = now.kind
    if kind < 0:
        return False
    value = params.waves[kind, now.at]
    for i in range(3):
        force[i] += value * cues.wave[i]
    now.at += 1
    if now.at >= params.lasts[kind]:
        now.kind = -1
    return True
