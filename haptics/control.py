"""What others ask of a servo while it runs, and what it tells them: words that any thread may read.

The first line of words is what is asked, the second what is told.
"""

from palpo.haptics.reasons import STOP_EMERGENCY, STOP_REQUESTED
from palpo.physics.exchange.atomics import CACHE_LINE, load_acquire, store_release
from palpo.physics.numerics.kernels import kernel

STOP, EMERGENCY, PAUSE, GRANTED, HOLD, MUTE, TAKE = 0, 1, 2, 3, 4, 5, 6
REASON, TICK, FROZEN, USED = CACHE_LINE, CACHE_LINE + 1, CACHE_LINE + 2, CACHE_LINE + 3


@kernel
def request_stop(servo, reason=STOP_REQUESTED):
    """Ask the servo to fade and stop for one of `palpo.haptics.reasons`; any thread may.

    STOP_EMERGENCY has a word of its own, so that no later request can take it back.
    """
    if reason == STOP_EMERGENCY:
        store_release(servo.control, EMERGENCY, 1)
    else:
        store_release(servo.control, STOP, reason)


@kernel
def request_pause(servo, on):
    """Ask the servo to fade and freeze, or to go on; any thread may."""
    store_release(servo.control, PAUSE, 1 if on else 0)


@kernel
def hold_servo(servo, on):
    """Ask the servo on behalf of its device to fade and freeze, or to go on; one thread at a time."""
    store_release(servo.control, HOLD, 1 if on else 0)


@kernel
def mute_servo(servo, on):
    """Ask the servo, and those that it leads, to leave out vibrations, or not; any thread may."""
    store_release(servo.control, MUTE, 1 if on else 0)


@kernel
def take_orientation(servo):
    """Ask the servo to take its device's orientation of the next tick for neutral; any thread may."""
    store_release(servo.control, TAKE, 1)


@kernel
def grant_ticks(servo, n):
    """Let a paused servo make n ticks once it is frozen; one thread at a time. A resume drops the rest."""
    store_release(servo.control, GRANTED, load_acquire(servo.control, GRANTED) + n)


@kernel
def is_frozen(servo):
    """Whether the servo stands still in a pause; any thread may ask."""
    return load_acquire(servo.control, FROZEN) != 0


@kernel
def tick_count(servo):
    """Steps done so far; any thread may ask."""
    return load_acquire(servo.control, TICK)


@kernel
def finished_reason(servo):
    """RUNNING until the servo has faded and stopped, then the stop reason; any thread may ask."""
    return load_acquire(servo.control, REASON)
