"""The servo: one step, two drivers.

Step, in this order:
  hear what others ask (stop, emergency, pause);
  read the device and hold its last pose if this one is not plausible; its emergency buttons come before its
    clutch button, which may be one of them;
  map its pose to the scene, or hold it there (clutch, start, pause, a scene that waits);
  book the energy of the last tick, now that the device says where its force led;
  call the tick, a C function of the system, which has failed until it says otherwise, and map its force back
    to the device;
  guard: the edge of the reach adds to the command, the dampers lay out what they take off once it is clamped;
  cues: what has just happened is counted, and adds a short vibration (palpo.haptics.cues);
  limit, send, record the row, count.
`servo_run` repeats it in lock-step without a clock; `servo_loop` paces it by absolute deadlines, without the
GIL, until a stop has been asked for and the force has faded. Both call the same `servo_step`, so what a test
sees is what the hand gets.

Several hands: a servo may lead others, each with a device, a workspace, limits, an account of energy and rows
of its own. They make their part of each step beside its own, around the same tick, and none has a clock. What
stops one hand stops all, in the same tick; they pause together.

A device that is polled brings two C functions, which each step calls for each hand that has such a device:
before all else to fill its port, and as the last act to send the force.

Pause: while one is asked for the scene runs on under a falling gain; at zero the servo freezes. Frozen, it
makes no tick and no row, its tick count stands, and it sends zero force; granted ticks are single steps at
zero gain with the hand held still. The first tick after it holds the scene's pose once more, so that nothing
jumps. All of this follows from the pause word and the gain, so that the rows' flags (PAUSING) repeat it.
A device may hold its servo in the same way, while it is calibrated or its force is off; then no ticks are
granted.
"""

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numba import typeof, types
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.clock import WAITER, end_waiting, make_scratch, now_ns, request_realtime, sleep_until
from palpo.haptics.clutch import Clutch, follow_hand, make_clutch, slip, start_at_point, take_hold, take_start
from palpo.haptics.cues import CueState, add_vibration, heed_events, make_cue_state
from palpo.haptics.device import (
    DEVICE_ERRED,
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    TABLE,
    VirtualDevice,
    device_read,
    device_write,
)
from palpo.haptics.guard import brake_near_limit, push_inward
from palpo.haptics.limits import (
    AT_EDGE,
    CLUTCHED,
    COUNT_AT_EDGE,
    COUNT_NEAR_LIMIT,
    COUNT_POSE_HELD,
    COUNTERS,
    CUED,
    DEVICE_LOST,
    MUTED,
    NEAR_LIMIT,
    PASSIVATED,
    POSE_HELD,
    REASONS,
    RUNNING,
    STOP_DEVICE_LOST,
    STOP_EMERGENCY,
    STOP_NON_FINITE,
    STOP_POSE,
    STOP_REQUESTED,
    STOP_TICK_FAILED,
    LimitParams,
    LimitState,
    felt_torque,
    force_scale_now,
    has_faded,
    is_emergency,
    largest_force,
    let_go,
    limit_force,
    make_limit_state,
    request_fade,
    slew_live,
    stop_reason,
)
from palpo.haptics.passivity import (
    DISSIPATED,
    ENERGY,
    HIGHEST,
    MODES,
    TORQUE_WORK,
    PortEnergy,
    brake_delivery,
    make_port_energy,
    observe_port,
    observe_torque,
)
from palpo.haptics.plausible import HELD_TICKS, PoseMemory, judge_pose, keep_pose, make_pose_memory
from palpo.haptics.row import COLUMNS, OWN, write_row
from palpo.haptics.statistics import (
    LATE,
    MISSED,
    SKIPPED,
    STALE_STEPS,
    STEP,
    STEPS,
    Statistics,
    count_duration,
    make_statistics,
    summarise,
    summarise_duration,
)
from palpo.haptics.workspace import Workspace, force_to_device, make_workspace
from palpo.physics.exchange.atomics import CACHE_LINE, call_tick, load_acquire, store_release
from palpo.physics.exchange.handle import Handle, handle_like
from palpo.physics.exchange.patience import is_stale
from palpo.physics.exchange.port import (
    OK,
    WAITING,
    Port,
    begin_tick,
    make_port,
)
from palpo.physics.exchange.ring import (
    make_ring,
    ring_available,
    ring_commit,
    ring_overflow,
    ring_push_slot,
    ring_release,
    ring_slot,
)
from palpo.physics.kernels import inlined, kernel

CATCH_UP = 10
"""Periods by which the loop may lag and still catch up tick by tick; beyond, it skips them and counts."""

# Control words: on one cache line what others ask of the servo, on another what it tells them
_STOP, _EMERGENCY, _PAUSE, _GRANTED, _HOLD, _MUTE = 0, 1, 2, 3, 4, 5
_REASON, _TICK, _FROZEN, _USED = CACHE_LINE, CACHE_LINE + 1, CACHE_LINE + 2, CACHE_LINE + 3

_READ, _WRITE, _DATA = 0, 1, 2
"""Entries of ServoState.polled."""


class ServoState(NamedTuple):
    """All that a step touches."""

    tick_address: int
    tick_data: int
    port: Port
    """Scene axes: what the tick reads and writes."""
    device_port: Port
    """Device axes; it shares status, info and live with `port`."""
    device: VirtualDevice
    workspace: Workspace
    """Its offset is the servo's own, which the clutch moves."""
    clutch: Clutch
    pose: PoseMemory
    limits: LimitParams
    limit_state: LimitState
    energy: PortEnergy
    sent: NDArray[np.float64]
    """Force sent last [N], device axes, shape (3,)."""
    turned: NDArray[np.float64]
    """Torque sent last [N m], device axes, shape (3,)."""
    ring: NDArray[np.int64]
    rows: NDArray[np.float64]
    """Recorded rows, shape (capacity, len(COLUMNS)), behind the ring."""
    recording: int
    """1 pushes a row at each tick."""
    statistics: Statistics
    control: NDArray[np.int64]
    stale_age: int
    """Age of a frame [ticks] from which a step counts as stale."""
    period_ns: int
    dt: float
    scratch: NDArray[np.int64]
    """Of the clock, for the thread that drives the servo."""
    beside: NDArray[np.int64]
    """Addresses of the servos of further hands that this one leads."""
    flags: NDArray[np.int64]
    """Those of the present step, shape (1,)."""
    polled: NDArray[np.int64]
    """Addresses of a device's two functions and of what they are given, 0 for none; shape (3,)."""
    cues: CueState


class Servo(Handle):
    """A ServoState behind a handle; made by `make_servo`. Its fields are the state's.

    Kernels take it by address: by value, each driver and each question to the servo would be compiled for
    some forty arrays.
    """

    state: ServoState
    led: tuple["Servo", ...] = ()
    """The servos of further hands that it leads."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)


def make_servo(
    tick_address: int,
    tick_data: int,
    port: Port,
    device: VirtualDevice,
    limits: LimitParams,
    workspace: Workspace | None = None,
    *,
    rate_hz: float = 1000.0,
    stale_age: int | None = None,
    ring_capacity: int = 8192,
    recording: bool = True,
    start_at: ArrayLike | None = None,
    led: Sequence[Servo] = (),
) -> Servo:
    """A servo at tick 0.

    tick_address: address of a C function `int32 f(void *)`; tick_data: the address it is given. The caller
    keeps the function, its data and the port alive. stale_age None counts a step as stale where the
    watchdog does. ring_capacity: rows, a power of two (InputError otherwise). start_at: scene point (3,) [m]
    that the device, wherever it is at the first tick, is mapped onto; None keeps the workspace's offset.
    led: servos of further hands on the same tick, whose own `tick_address` nobody calls.
    """
    ring = make_ring(ring_capacity)
    place = make_workspace() if workspace is None else workspace
    state = ServoState(
        tick_address=int(tick_address),
        tick_data=int(tick_data),
        port=port,
        device_port=make_port()._replace(status=port.status, info=port.info, live=port.live),
        device=device,
        workspace=place._replace(offset=place.offset.copy()),
        clutch=make_clutch(),
        pose=make_pose_memory(),
        limits=limits,
        limit_state=make_limit_state(limits),
        energy=make_port_energy(),
        sent=np.zeros(3),
        turned=np.zeros(3),
        ring=ring,
        rows=np.zeros((ring_capacity, len(COLUMNS))),
        recording=int(recording),
        statistics=make_statistics(),
        control=np.zeros(2 * CACHE_LINE, dtype=np.int64),
        stale_age=limits.max_age if stale_age is None else int(stale_age),
        period_ns=round(1e9 / rate_hz),
        dt=1.0 / rate_hz,
        scratch=make_scratch(),
        beside=np.array([servo.address for servo in led], dtype=np.int64),
        flags=np.zeros(1, dtype=np.int64),
        polled=np.zeros(3, dtype=np.int64),
        cues=make_cue_state(1.0 / rate_hz),
    )
    for name in ("goal", "now"):
        state.limit_state.force_scale[name] = place.force_scale
    servo = Servo(state)
    servo.led = tuple(led)
    if start_at is not None:
        start_servo_at(servo, start_at)
    return servo


def start_servo_at(servo: Servo, point: ArrayLike) -> None:
    """Before the first tick: let it map the device, wherever it is, onto a scene point (3,) [m]."""
    start_at_point(servo.clutch, servo.port, point)


@kernel
def request_stop(servo, reason=STOP_REQUESTED):
    """Ask the servo to fade and stop for a reason of `palpo.haptics.limits`; any thread may.

    STOP_EMERGENCY has a word of its own, so that no later request can take it back.
    """
    if reason == STOP_EMERGENCY:
        store_release(servo.control, _EMERGENCY, 1)
    else:
        store_release(servo.control, _STOP, reason)


@kernel
def request_pause(servo, on):
    """Ask the servo to fade and freeze, or to go on; any thread may."""
    store_release(servo.control, _PAUSE, 1 if on else 0)


@kernel
def hold_servo(servo, on):
    """Ask the servo on behalf of its device to fade and freeze, or to go on; one thread at a time."""
    store_release(servo.control, _HOLD, 1 if on else 0)


@kernel
def mute_servo(servo, on):
    """Ask the servo, and those that it leads, to leave out vibrations, or not; any thread may."""
    store_release(servo.control, _MUTE, 1 if on else 0)


def poll_device(servo: Servo, read: int, write: int, data: int) -> None:
    """Before the first tick: let the servo call a device's C functions `int32 f(void *)` in each step.

    read: address of what fills `device_port` and the device's health. write: of what sends `sent` and
    `turned`. data: what both are given; the caller keeps it alive.
    """
    servo.polled[:] = read, write, data


@kernel
def grant_ticks(servo, n):
    """Let a paused servo make n ticks once it is frozen; one thread at a time. A resume drops the rest."""
    store_release(servo.control, _GRANTED, load_acquire(servo.control, _GRANTED) + n)


@kernel
def is_frozen(servo):
    """Whether the servo stands still in a pause; any thread may ask."""
    return load_acquire(servo.control, _FROZEN) != 0


@kernel
def tick_count(servo):
    """Steps done so far; any thread may ask."""
    return load_acquire(servo.control, _TICK)


@kernel
def finished_reason(servo):
    """RUNNING until the servo has faded and stopped, then the stop reason; any thread may ask."""
    return load_acquire(servo.control, _REASON)


@inlined
def _call_system(servo):
    """Call the tick, unless it has failed: its state can no longer be trusted."""
    reason = stop_reason(servo.limit_state)
    if reason in (STOP_NON_FINITE, STOP_TICK_FAILED):
        return
    begin_tick(servo.port)
    code = call_tick(servo.tick_address, servo.tick_data)
    if code != OK:
        servo.port.status[0].code = code


@inlined
def _record(servo, tick, late_ns, step_ns):
    slot = ring_push_slot(servo.ring)
    if slot >= 0:
        write_row(
            servo.rows[slot],
            tick,
            servo.dt,
            servo.port,
            servo.device_port,
            servo.sent,
            servo.turned,
            servo.flags[0],
            late_ns * 1e-3,
            step_ns * 1e-3,
            servo.energy.joules[ENERGY],
            servo.device.allowance[0],
        )
        ring_commit(servo.ring)


@inlined
def _hear_stop(servo):
    """Latch the stops that were asked for, the emergency first."""
    if load_acquire(servo.control, _EMERGENCY) != 0:
        request_fade(servo.limit_state, STOP_EMERGENCY)
    reason = load_acquire(servo.control, _STOP)
    if reason != RUNNING:
        request_fade(servo.limit_state, reason)


@inlined
def _led(servo, k):
    return handle_like(servo, servo.beside[k])


@inlined
def _hear_pause(servo):
    """(whether a pause is asked for, whether a tick is granted)."""
    control = servo.control
    # in this order: whoever grants has asked for the pause before
    granted = load_acquire(control, _GRANTED)
    pausing, held = load_acquire(control, _PAUSE) != 0, load_acquire(control, _HOLD) != 0
    for k in range(servo.beside.shape[0]):
        held = held or load_acquire(_led(servo, k).control, _HOLD) != 0
    if not pausing:
        control[_USED] = granted
    return pausing or held, granted > control[_USED] and not held


@inlined
def _read_device(servo, tick, late_ns):
    """Read pose and buttons, a period and late_ns after the last time at most; returns the flags."""
    flags, port, limits = 0, servo.device_port, servo.limits
    health, source = device_read(servo.device, tick, port), servo.device.source
    if health == DEVICE_GONE:
        request_fade(servo.limit_state, STOP_DEVICE_LOST)
        flags = DEVICE_LOST
    # a pointer has no motors, and a recording has been judged; a device that is given up stays so
    judged = source in (TABLE, EXTERNAL)
    given_up = health == DEVICE_ERRED or stop_reason(servo.limit_state) == STOP_POSE
    plausible = not given_up and judge_pose(
        servo.pose, limits.hand_speed if judged else math.inf, limits.hand_turn, port,
        servo.dt + 1e-9 * late_ns,
    )  # fmt: skip
    held = keep_pose(servo.pose, port, plausible)
    if held > 0:
        flags |= POSE_HELD
        servo.limit_state.counters[COUNT_POSE_HELD] += 1
    if held > HELD_TICKS:
        request_fade(servo.limit_state, STOP_POSE)
    together = servo.limits.emergency_buttons
    if together != 0 and servo.device_port.buttons[0] & together == together:
        request_fade(servo.limit_state, STOP_EMERGENCY)
    return flags


@kernel
def _stand_still(servo, tick, late_ns):
    """A period of one frozen hand: zero force.

    A scripted hand stands still with the scene; a pointer or a real stylus moves on.
    """
    for i in range(3):
        servo.sent[i] = servo.turned[i] = 0.0
    if servo.device.source != TABLE:
        _read_device(servo, tick, late_ns)
        device_write(servo.device, servo.sent)


@inlined
def _tell_end(servo):
    """All hands' servos have stopped, and why."""
    reason = stop_reason(servo.limit_state)
    for k in range(servo.beside.shape[0]):
        store_release(_led(servo, k).control, _REASON, reason)
    store_release(servo.control, _REASON, reason)


@inlined
def _tell_frozen(servo, frozen):
    """Whether all hands' servos stand still now; their devices look at their own."""
    for k in range(servo.beside.shape[0]):
        store_release(_led(servo, k).control, _FROZEN, frozen)
    store_release(servo.control, _FROZEN, frozen)


@kernel
def _call_device(servo, which):
    """Call one of the functions of a device that is polled."""
    if servo.polled[which] != 0:
        call_tick(servo.polled[which], servo.polled[_DATA])


@inlined
def _call_devices(servo, which):
    _call_device(servo, which)
    for k in range(servo.beside.shape[0]):
        _call_device(_led(servo, k), which)


@inlined
def _rest(servo, late_ns):
    """A period of a frozen servo: zero force; returns True if a stop was asked for."""
    _stand_still(servo, servo.control[_TICK], late_ns)
    for k in range(servo.beside.shape[0]):
        _stand_still(_led(servo, k), servo.control[_TICK], late_ns)
    _stop_together(servo)
    done = _all_faded(servo)
    if done:
        _tell_end(servo)
    return done


@inlined
def _stop_likewise(one, other):
    """What has stopped one hand stops another, as quickly."""
    if stop_reason(one) != RUNNING:
        request_fade(other, stop_reason(one))
    if is_emergency(one):
        request_fade(other, STOP_EMERGENCY)


@inlined
def _stop_together(servo):
    """What stops one hand stops all, for the same reason: the leader's, if it has one."""
    for k in range(servo.beside.shape[0]):
        _stop_likewise(_led(servo, k).limit_state, servo.limit_state)
    for k in range(servo.beside.shape[0]):
        _stop_likewise(servo.limit_state, _led(servo, k).limit_state)


@inlined
def _all_faded(servo):
    """Whether a stop was asked for, and no hand feels anything any more."""
    faded = has_faded(servo.limit_state)
    for k in range(servo.beside.shape[0]):
        faded = has_faded(_led(servo, k).limit_state) and faded
    return faded


@inlined
def _is_silent(servo):
    """Whether every hand's gain is zero."""
    silent = servo.limit_state.gain[0] == 0.0
    for k in range(servo.beside.shape[0]):
        silent = _led(servo, k).limit_state.gain[0] == 0.0 and silent
    return silent


@inlined
def _follow(servo, tick, frozen, waiting):
    """Bring the pose into the scene; returns the flags."""
    pressed = servo.device_port.buttons[0] & servo.workspace.clutch_buttons != 0
    # at the first tick there is no place yet to hold, but the one that a start was asked for at
    clutched = pressed and tick > 0 and not is_emergency(servo.limit_state)
    held = take_start(servo.clutch) or frozen or clutched
    clutch, workspace, port, gain = servo.clutch, servo.workspace, servo.port, servo.limit_state.gain[0]
    if held:
        follow_hand(clutch, workspace, servo.device_port, port, True, frozen, servo.dt)
    elif waiting:
        slip(clutch, workspace, servo.device_port, port, gain > 0.0, servo.dt)
    else:
        take_hold(clutch, workspace, servo.device_port, port, gain, servo.dt)
    return CLUTCHED if held else 0


@inlined
def _guard(servo):
    """Guards on the command; returns the flags."""
    flags = 0
    port, state, params = servo.device_port, servo.limit_state, servo.limits
    if push_inward(params.guard, port):
        flags |= AT_EDGE
        state.counters[COUNT_AT_EDGE] += 1
    for i in range(3):
        state.brake[i] = 0.0
    if brake_near_limit(params.guard, largest_force(state), port, state.brake):
        flags |= NEAR_LIMIT
        state.counters[COUNT_NEAR_LIMIT] += 1
    if brake_delivery(servo.energy, params.passivity, state.brake):
        flags |= PASSIVATED
    return flags


@kernel
def _take_in(servo, tick, frozen, waiting, late_ns):
    """One hand's part of a step before the tick: its pose into the scene, its energy booked."""
    servo.flags[0] = _read_device(servo, tick, late_ns)
    servo.flags[0] |= _follow(servo, tick, frozen, waiting)
    observe_port(
        servo.energy,
        servo.limits.passivity,
        servo.device_port,
        servo.sent,
        servo.turned,
        servo.limit_state.gain[0],
        frozen,
    )
    if waiting:
        let_go(servo.limit_state, servo.energy.step)


@inlined
def _cue(servo, hand, muted):
    """What has happened to what a hand holds, and its vibration; returns the flags."""
    state, port, cues = servo.limit_state, servo.device_port, servo.limits.cues
    silent = muted or state.gain[0] == 0.0
    heed_events(servo.cues, cues, port, hand, largest_force(state), silent)
    flags = CUED if add_vibration(servo.cues, cues, port.force) else 0
    return flags | (MUTED if muted else 0)


@kernel
def _give_out(servo, pausing, hand, muted):
    """One hand's part of a step after the tick: its force to its device, within its limits."""
    state = servo.limit_state
    slew_live(state, servo.limits, servo.workspace.force_scale, servo.port, servo.device.allowance[0])
    force_to_device(servo.workspace, force_scale_now(state), servo.port, servo.device_port)
    observe_torque(servo.energy, servo.device_port)
    servo.flags[0] |= _guard(servo)
    servo.flags[0] |= _cue(servo, hand, muted)
    servo.flags[0] |= limit_force(state, servo.limits, servo.device_port, servo.sent, pausing)
    felt_torque(state, servo.turned)
    if device_write(servo.device, servo.sent) != DEVICE_OK:
        request_fade(state, STOP_DEVICE_LOST)


@kernel
def _step(servo, late_ns, paced):
    """A step between asking the devices that are polled and telling them."""
    start = now_ns(servo.scratch)
    control, hands = servo.control, servo.beside.shape[0]
    frozen = control[_FROZEN] != 0
    _hear_stop(servo)
    pausing, granted = _hear_pause(servo)
    if frozen and pausing:
        if not granted:
            return _rest(servo, late_ns)
        control[_USED] += 1
    tick, muted = control[_TICK], load_acquire(control, _MUTE) != 0
    waiting = servo.port.status[0].flags & WAITING != 0
    _take_in(servo, tick, frozen, waiting, late_ns)
    for k in range(hands):
        _take_in(_led(servo, k), tick, frozen, waiting, late_ns)
    _stop_together(servo)
    _call_system(servo)
    for k in range(hands):
        _give_out(_led(servo, k), pausing, k + 1, muted)
    _give_out(servo, pausing, 0, muted)
    step_ns = now_ns(servo.scratch) - start
    for k in range(hands):
        if servo.recording:
            _record(_led(servo, k), tick, 0, 0)
    if servo.recording:
        _record(servo, tick, late_ns if paced else 0, step_ns if paced else 0)
    statistics = servo.statistics
    statistics.counters[STEPS] += 1
    statistics.counters[STALE_STEPS] += is_stale(servo.port, servo.stale_age)
    count_duration(statistics, STEP, step_ns)
    _tell_frozen(servo, 1 if pausing and _is_silent(servo) else 0)
    store_release(control, _TICK, tick + 1)
    done = _all_faded(servo)
    if done:
        _tell_end(servo)
    return done


@kernel
def servo_step(servo, late_ns, paced):
    """One tick; returns True once a stop has been asked for and the force has faded.

    A frozen servo makes none. late_ns: lateness [ns] of this tick. paced: 0 in lock-step, where the row's
    times are zero so that recordings are bit-reproducible.
    """
    _call_devices(servo, _READ)
    done = _step(servo, late_ns, paced)
    _call_devices(servo, _WRITE)
    return done


@kernel
def servo_run(servo, n):
    """Lock-step driver: n ticks without a clock.

    Returns the ticks done, fewer than n once the servo has stopped, or stands frozen without a grant.
    """
    if finished_reason(servo) != RUNNING:
        return 0
    first = tick_count(servo)
    for k in range(n):
        if servo_step(servo, 0, 0) or tick_count(servo) == first + k:
            break
    return tick_count(servo) - first


@kernel
def servo_lead(servo, positions, orientations, velocities, spins, rows):
    """Ticks of the system alone under a hand that is imposed: no device, no limits, no clock.

    positions (n, 3) [m], orientations (n, 4), velocities (n, 3) [m/s] and spins (n, 3) [rad/s] in the scene's
    axes, one row a tick. rows (n, len(COLUMNS)): what each tick came to. Returns how many were well.
    """
    port, control = servo.port, servo.control
    for k in range(positions.shape[0]):
        for i in range(3):
            port.position[i] = positions[k, i]
            port.velocity[i] = velocities[k, i]
            port.angular_velocity[i] = spins[k, i]
        for i in range(4):
            port.orientation[i] = orientations[k, i]
        _call_system(servo)
        write_row(
            rows[k], control[_TICK], servo.dt, port, servo.device_port, servo.sent, servo.turned, 0, 0.0, 0.0,
            servo.energy.joules[ENERGY], 1.0,
        )  # fmt: skip
        control[_TICK] += 1
        if port.status[0].code != OK:
            return k
    return positions.shape[0]


@inlined
def _pace(deadline, period, statistics, scratch):
    """Wait for a deadline; (lateness, next deadline), counting lateness, misses and skipped periods."""
    sleep_until(deadline, scratch)
    late = now_ns(scratch) - deadline
    count_duration(statistics, LATE, late)
    statistics.counters[MISSED] += late > period
    skipped = late // period if late > CATCH_UP * period else 0
    statistics.counters[SKIPPED] += skipped
    return late, deadline + (1 + skipped) * period


@kernel
def servo_loop(servo):
    """Real-time driver: a tick at each deadline until a stop has been asked for and the force has faded.

    Returns the stop reason. A deadline is missed when the tick starts more than a period late; a servo
    that lags catches up, unless it lags by more than CATCH_UP periods (a suspended machine).
    """
    deadline = now_ns(servo.scratch) + servo.period_ns
    done = finished_reason(servo) != RUNNING
    while not done:
        late, deadline = _pace(deadline, servo.period_ns, servo.statistics, servo.scratch)
        done = servo_step(servo, late, 1)
    end_waiting(servo.scratch)
    return finished_reason(servo)


@kernel
def baseline_loop(n, period_ns, statistics, scratch):
    """n deadlines of the servo's clock with nothing in between: what the machine gives at best."""
    deadline = now_ns(scratch) + period_ns
    for _ in range(n):
        _late, deadline = _pace(deadline, period_ns, statistics, scratch)
        statistics.counters[STEPS] += 1
    end_waiting(scratch)


def servo_baseline(n: int = 1000, rate_hz: float = 1000.0, realtime: bool = True) -> dict[str, object]:
    """Lateness of n deadlines of the bare clock loop, scheduled as the servo is.

    Returns {rate_hz, steps, missed, skipped, scheduler, clock_baseline_us: {p50, p99, p999, max}}.
    """
    statistics, period_ns = make_statistics(), round(1e9 / rate_hz)
    message = []
    baseline_loop(0, period_ns, statistics, make_scratch())

    def measure() -> None:
        message.append(request_realtime()[1] if realtime else "ordinary priority")
        baseline_loop(n, period_ns, statistics, make_scratch())

    # a thread of its own, so that the caller's scheduling stays as it was
    thread = threading.Thread(target=measure)
    thread.start()
    thread.join()
    return {
        "rate_hz": rate_hz,
        "steps": int(statistics.counters[STEPS]),
        "missed": int(statistics.counters[MISSED]),
        "skipped": int(statistics.counters[SKIPPED]),
        "scheduler": message[0],
        "clock_baseline_us": summarise_duration(statistics, LATE),
    }


def compile_servo(servo: Servo) -> None:
    """Compile both drivers for this servo, or load them from the cache, without running a tick."""
    for driver in (servo_run, servo_loop):
        arguments = (typeof(servo), typeof(1)) if driver is servo_run else (typeof(servo),)
        driver.compile(arguments)
    own = typeof(servo)
    for asking in (tick_count, finished_reason, is_frozen):
        asking.compile((own,))
    request_stop.compile((own, types.Omitted(STOP_REQUESTED)))
    request_stop.compile((own, types.int64))
    request_pause.compile((own, types.boolean))
    grant_ticks.compile((own, types.int64))
    mute_servo.compile((own, types.boolean))


@kernel
def _copy_rows(ring, rows, out):
    n = min(ring_available(ring), out.shape[0])
    for i in range(n):
        slot = ring_slot(ring, i)
        for j in range(out.shape[1]):
            out[i, j] = rows[slot, j]
    ring_release(ring, n)
    return n


def drain_rows(servo: Servo) -> NDArray[np.float64]:
    """Take all recorded rows out of the ring, shape (n, columns); one thread only may drain.

    The columns are those of `palpo.haptics.row.columns_of` its hands.
    """
    out = np.empty((len(servo.rows), len(COLUMNS)))
    rows = out[: _copy_rows(servo.ring, servo.rows, out)]
    # who is led has pushed its row of a tick before the leader has
    own = [_drained(led, rows) for led in servo.led]
    return np.hstack([rows, *(more[:, OWN] for more in own)]) if own else rows


def _drained(led: Servo, leader: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows of the leader's ticks (n, len(COLUMNS)); NaN where one was lost."""
    out = np.full_like(leader, np.nan)
    if not len(leader):
        return out
    taken = np.empty_like(leader)
    while (n := int(_copy_rows(led.ring, led.rows, taken[:1]))) and taken[0, 0] < leader[0, 0]:
        pass
    n += int(_copy_rows(led.ring, led.rows, taken[n:])) if n else 0
    place = np.searchsorted(leader[:, 0], taken[:n, 0])
    there = place < len(leader)
    out[place[there]] = taken[:n][there]
    return out


def servo_summary(servo: Servo) -> dict[str, object]:
    """Statistics, limits, energy of the port, workspace and stop reason as a dictionary of plain values."""
    counts = zip(COUNTERS, servo.limit_state.counters, strict=True)
    return summarise(servo.statistics, servo.period_ns) | {
        "waiter": WAITER,
        "limits": {name: int(count) for name, count in counts},
        "passivity": _passivity_summary(servo),
        "torque": {
            "peak_Nm": float(servo.energy.peak_torque[0]),
            "unrendered_J": float(servo.energy.joules[TORQUE_WORK]),
        },
        "workspace": _workspace_summary(servo),
        "rows_lost": int(ring_overflow(servo.ring)),
        "stop_reason": REASONS[finished_reason(servo)],
    }


def _passivity_summary(servo: Servo) -> dict[str, object]:
    joules = servo.energy.joules
    return {
        "mode": MODES[servo.limits.passivity.mode],
        "energy_J": float(joules[ENERGY]),
        "highest_J": float(joules[HIGHEST]),
        "dissipated_J": float(joules[DISSIPATED]),
        "active_ticks": int(servo.energy.ticks[1]),
    }


def _workspace_summary(servo: Servo) -> dict[str, object]:
    """The scales, and how many times a stiffness of the scene is felt."""
    scale, gain = servo.workspace.scale, float(servo.limit_state.force_scale["now"][0])
    return {
        "scale": scale,
        "force_scale": gain,
        "power_consistent": math.isclose(gain, scale),
        "stiffness_felt": scale * gain,
    }


class ServoThread:
    """Runs `servo_loop` in a thread of its own; a context manager that stops it however the block ends.

    scheduler: one sentence on what real-time scheduling was granted. error: what the loop raised, if it did.
    """

    def __init__(self, servo: Servo, realtime: bool = True) -> None:
        self.servo = servo
        self.scheduler = "ordinary priority"
        self.error: BaseException | None = None
        self._realtime = realtime
        # daemon: an interpreter that dies of an exception must not hang on a servo that nobody will stop
        self._thread = threading.Thread(target=self._run, name="servo", daemon=True)
        self._ready = threading.Event()

    def _run(self) -> None:
        try:
            if self._realtime:
                self.scheduler = request_realtime()[1]
            self._ready.set()
            self._drive()
        except BaseException as error:  # join raises it where the user can be told
            self.error = error
        finally:
            self._ready.set()

    def _drive(self) -> None:
        servo_loop(self.servo)

    def _compile(self) -> None:
        compile_servo(self.servo)

    def start(self) -> Self:
        """Compile, then start; returns once the scheduling has been asked for."""
        self._compile()
        self._thread.start()
        self._ready.wait()
        return self

    @property
    def running(self) -> bool:
        """Whether the loop still turns."""
        return self._thread.is_alive()

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; "running" until then."""
        return REASONS[finished_reason(self.servo)]

    def accompany(self) -> None:
        """Begin what leads this servo's hand, while the servo of another hand makes its steps."""

    def leave(self) -> None:
        """End that, once the other servo has ended."""

    @property
    def lost(self) -> str:
        """What became of the device, in words, if it was lost."""
        return ""

    def stop(self) -> None:
        """Ask the loop to fade and end; returns at once."""
        request_stop(self.servo)

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out. Raises what the loop raised."""
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error
        return not self.running

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.join(5.0)
