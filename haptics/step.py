"""One step of the servo.

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

Standstill: a tick that comes later than LONGEST_LATENESS finds a hand that has gone anywhere. As while a
scene waits, it is not followed (palpo.haptics.clutch.slip) and the last force only falls, here to zero in
`fade_out`; then it comes back in `recovery`. Lateness is the clock's: in lock-step there is none, and a
replay notes it where the rows' flags do (STOOD_STILL).
"""

from palpo.haptics.clock import now_ns
from palpo.haptics.control import EMERGENCY, FROZEN, GRANTED, HOLD, MUTE, PAUSE, REASON, STOP, TICK, USED
from palpo.haptics.limiter import has_faded, is_emergency, request_fade, stop_reason
from palpo.haptics.one_hand import give_out, stand_still, take_in
from palpo.haptics.reasons import RUNNING, STOP_EMERGENCY, STOP_NON_FINITE, STOP_TICK_FAILED
from palpo.haptics.row import write_row
from palpo.haptics.statistics import STEP, count_duration
from palpo.physics.exchange.atomics import call_tick, load_acquire, store_release
from palpo.physics.exchange.buffer import ring_commit, ring_push_slot
from palpo.physics.exchange.frames import is_stale
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import OK, WAITING, begin_tick
from palpo.physics.numerics.kernels import inlined, kernel

_READ, _WRITE, _DATA = 0, 1, 2
"""Entries of ServoState.polled."""


@inlined
def led_servo(servo, k):
    """The servo of the hand after the k-th, which this one leads."""
    return handle_like(servo, servo.beside[k])


@inlined
def call_system(servo):
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
            servo.energy.joules[0].energy,
            servo.device.allowance[0],
        )
        ring_commit(servo.ring)


@inlined
def _hear_stop(servo):
    """Latch the stops that were asked for, the emergency first."""
    if load_acquire(servo.control, EMERGENCY) != 0:
        request_fade(servo.limit_state, STOP_EMERGENCY)
    reason = load_acquire(servo.control, STOP)
    if reason != RUNNING:
        request_fade(servo.limit_state, reason)


@inlined
def _hear_pause(servo):
    """(whether a pause is asked for, whether a tick is granted)."""
    control = servo.control
    # in this order: whoever grants has asked for the pause before
    granted = load_acquire(control, GRANTED)
    pausing, held = load_acquire(control, PAUSE) != 0, load_acquire(control, HOLD) != 0
    for k in range(servo.beside.shape[0]):
        held = held or load_acquire(led_servo(servo, k).control, HOLD) != 0
    if not pausing:
        control[USED] = granted
    return pausing or held, granted > control[USED] and not held


@inlined
def _tell_end(servo):
    """All hands' servos have stopped, and why."""
    reason = stop_reason(servo.limit_state)
    for k in range(servo.beside.shape[0]):
        store_release(led_servo(servo, k).control, REASON, reason)
    store_release(servo.control, REASON, reason)


@inlined
def _tell_frozen(servo, frozen):
    """Whether all hands' servos stand still now; their devices look at their own."""
    for k in range(servo.beside.shape[0]):
        store_release(led_servo(servo, k).control, FROZEN, frozen)
    store_release(servo.control, FROZEN, frozen)


@kernel
def _call_device(servo, which):
    """Call one of the functions of a device that is polled."""
    if servo.polled[which] != 0:
        call_tick(servo.polled[which], servo.polled[_DATA])


@inlined
def _call_devices(servo, which):
    _call_device(servo, which)
    for k in range(servo.beside.shape[0]):
        _call_device(led_servo(servo, k), which)


@inlined
def _rest(servo, late_ns):
    """A period of a frozen servo: zero force; returns True if a stop was asked for."""
    stand_still(servo, servo.control[TICK], late_ns)
    for k in range(servo.beside.shape[0]):
        stand_still(led_servo(servo, k), servo.control[TICK], late_ns)
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
        _stop_likewise(led_servo(servo, k).limit_state, servo.limit_state)
    for k in range(servo.beside.shape[0]):
        _stop_likewise(servo.limit_state, led_servo(servo, k).limit_state)


@inlined
def _all_faded(servo):
    """Whether a stop was asked for, and no hand feels anything any more."""
    faded = has_faded(servo.limit_state)
    for k in range(servo.beside.shape[0]):
        faded = has_faded(led_servo(servo, k).limit_state) and faded
    return faded


@inlined
def _is_silent(servo):
    """Whether every hand's gain is zero."""
    silent = servo.limit_state.gate[0].gain == 0.0
    for k in range(servo.beside.shape[0]):
        silent = led_servo(servo, k).limit_state.gate[0].gain == 0.0 and silent
    return silent


@kernel
def _step(servo, late_ns, paced):
    """A step between asking the devices that are polled and telling them."""
    start = now_ns(servo.scratch)
    control, hands = servo.control, servo.beside.shape[0]
    frozen = control[FROZEN] != 0
    _hear_stop(servo)
    pausing, granted = _hear_pause(servo)
    if frozen and pausing:
        if not granted:
            return _rest(servo, late_ns)
        control[USED] += 1
    tick, muted = control[TICK], load_acquire(control, MUTE) != 0
    waiting = servo.port.status[0].flags & WAITING != 0
    take_in(servo, tick, frozen, waiting, late_ns)
    for k in range(hands):
        take_in(led_servo(servo, k), tick, frozen, waiting, late_ns)
    _stop_together(servo)
    call_system(servo)
    for k in range(hands):
        give_out(led_servo(servo, k), pausing, k + 1, muted)
    give_out(servo, pausing, 0, muted)
    step_ns = now_ns(servo.scratch) - start
    for k in range(hands):
        if servo.recording:
            _record(led_servo(servo, k), tick, 0, 0)
    if servo.recording:
        _record(servo, tick, late_ns if paced else 0, step_ns if paced else 0)
    statistics = servo.statistics
    statistics.counts[0].steps += 1
    statistics.counts[0].stale += is_stale(servo.port, servo.stale_age)
    count_duration(statistics, STEP, step_ns)
    _tell_frozen(servo, 1 if pausing and _is_silent(servo) else 0)
    store_release(control, TICK, tick + 1)
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
