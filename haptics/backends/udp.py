"""The two ends of a remote hand on UDP sockets: compiled calls in the servo's tick, nothing of them Python's.

A datagram is its count and WORDS float64 of `palpo.haptics.remote`, sealed (palpo.haptics.backends.sealing).
What was not made with the session's key, is no message, or not newer than the newest, is not heard.
"""

import ctypes
import sys
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import BYTES, I32, I64, invoke
from palpo.haptics.backends.sealing import KEY, NONCE, TAG, seal, unseal
from palpo.haptics.device import (
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    VirtualDevice,
    begin_measuring,
    make_virtual_device,
    measure_spin,
)
from palpo.haptics.limits import LimitParams, make_limits
from palpo.haptics.remote import SILENCE, WORDS, End, hand_tick, hear, make_end, scene_tick, tell
from palpo.haptics.servo import Servo, ServoState, make_servo
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback, inlined, kernel

SIZE = 8 + 8 * WORDS + TAG
"""Bytes of a datagram."""
MOST = 64
"""Datagrams taken in a tick, so that no flood holds it up."""
LAST = 1 << 40
"""By how much the count of a farewell is ahead of what the servo may still be sending."""
_RECEIVE, _SEND, _SEAL, _UNSEAL = 0, 1, 2, 3


@intrinsic
def _call_socket(typing_context, address, descriptor, buffer, size):
    """Call `ssize_t f(int, void *, size_t, int)`, recv or send of a socket that does not block."""

    def codegen(context, builder, signature, args):
        arguments = [
            builder.trunc(args[1], I32), builder.inttoptr(args[2], BYTES), args[3], ir.Constant(I32, 0),
        ]  # fmt: skip
        return invoke(builder, args[0], I64, arguments)

    return types.int64(*[types.int64] * 4), codegen


class UdpLine(NamedTuple):
    """A connected socket in compiled code, and the end that speaks over it."""

    end: End
    functions: NDArray[np.int64]
    """Addresses of recv, send and libsodium's two functions."""
    descriptor: int
    arriving: NDArray[np.uint8]
    """Room for a datagram and one byte more, by which a longer one is known."""
    leaving: NDArray[np.uint8]
    """The datagram that is sent, shape (SIZE,)."""
    plain: NDArray[np.float64]
    """The message that was opened and the one to be sealed, shape (2, WORDS)."""
    nonce: NDArray[np.uint8]
    """Shape (NONCE,): the count, least byte first, then zeros."""
    keys: NDArray[np.uint8]
    """The other end's and this one's, shape (2, KEY)."""


class SceneLink(NamedTuple):
    """All that the scene's end touches."""

    servo: ServoState
    line: UdpLine


class HandLink(NamedTuple):
    """All that the hand's end touches: its servo's port, where it is and what it was really sent."""

    port: Port
    position: NDArray[np.float64]
    sent: NDArray[np.float64]
    line: UdpLine
    dt: float


@kernel
def take_datagram(line):
    """Take what stands in `arriving`, SIZE bytes; whether it was a newer message of this session."""
    count = np.int64(0)
    for k in range(8):
        line.nonce[k] = line.arriving[k]
        count |= np.int64(line.arriving[k]) << (8 * k)
    code = unseal(
        line.functions[_UNSEAL], line.plain[0].ctypes.data, SIZE - 8, line.arriving[8:].ctypes.data,
        line.nonce.ctypes.data, line.keys[0].ctypes.data,
    )  # fmt: skip
    return code == 0 and hear(line.end, count, line.plain[0])


@kernel
def send_datagram(line, vector, turn, buttons, leaving):
    """Tell the other end a position or force (3,), orientation (4,), buttons and whether this one leaves."""
    if leaving:
        line.end.words[0].sent += LAST
    count = tell(line.end, vector, turn, buttons, 1.0 if leaving else 0.0, line.plain[1])
    for k in range(8):
        line.leaving[k] = line.nonce[k] = (count >> (8 * k)) & 255
    seal(
        line.functions[_SEAL], line.leaving[8:].ctypes.data, 8 * WORDS, line.plain[1].ctypes.data,
        line.nonce.ctypes.data, line.keys[1].ctypes.data,
    )  # fmt: skip
    _call_socket(line.functions[_SEND], line.descriptor, line.leaving.ctypes.data, SIZE)


@inlined
def listen(line):
    """Take all that has come, also what waits behind the error of a datagram that was refused."""
    failed = 0
    for _ in range(MOST):
        got = _call_socket(line.functions[_RECEIVE], line.descriptor, line.arriving.ctypes.data, SIZE + 1)
        failed += got < 0
        if failed > 1:
            break
        if got == SIZE:
            take_datagram(line)


@kernel
def read_scene_link(link):
    """Where the hand at the other end leads; silence beyond SILENCE, or its farewell, is a lost device."""
    servo, line = link.servo, link.line
    listen(line)
    words, port, first = line.end.words[0], servo.device_port, line.end.words[0].placed == 0
    scene_tick(line.end, servo.sent, servo.dt, port.position, port.velocity)
    for i in range(4):
        port.orientation[i] = line.end.turn[i]
    if first:
        begin_measuring(servo.device, port)
    else:
        measure_spin(servo.device, port, servo.dt)
    port.buttons[0] = words.pressed
    if servo.device.health[0] == DEVICE_OK and (words.left != 0 or words.quiet * servo.dt > SILENCE):
        servo.device.health[0] = DEVICE_GONE
    return 1


@kernel
def write_scene_link(link):
    """Tell the hand its force."""
    send_datagram(link.line, link.servo.sent, link.servo.port.orientation, 0, False)
    return 1


@kernel
def hand_link_tick(link):
    """The tick of a servo whose scene is at the other end; its frame is as old as the last message."""
    line, port = link.line, link.port
    listen(line)
    hand_tick(line.end, link.position, link.sent, link.dt, port.force)
    send_datagram(line, link.position, port.orientation, port.buttons[0], False)
    gone = line.end.words[0].left != 0
    return end_tick(port, OK, 1 << 20 if gone else line.end.words[0].quiet)


def make_line(
    descriptor: int, largest: float, resolution: float, dt: float, sealing: NDArray[np.int64]
) -> UdpLine:
    """A line on a socket that does not block, whose keys are still to be written; the rest as `make_end`."""
    own = ctypes.CDLL(None) if sys.platform != "win32" else None
    sockets = [
        0 if own is None else int(ctypes.cast(getattr(own, name), ctypes.c_void_p).value or 0)
        for name in ("recv", "send")
    ]
    return UdpLine(
        end=make_end(largest, resolution, dt),
        functions=np.array([*sockets, *sealing], dtype=np.int64),
        descriptor=int(descriptor),
        arriving=np.zeros(SIZE + 1, dtype=np.uint8),
        leaving=np.zeros(SIZE, dtype=np.uint8),
        plain=np.zeros((2, WORDS)),
        nonce=np.zeros(NONCE, dtype=np.uint8),
        keys=np.zeros((2, KEY), dtype=np.uint8),
    )


def _smallest() -> Servo:
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    return make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)


_LINE = make_line(0, 1.0, 0.0, 1e-3, np.zeros(2, dtype=np.int64))
_SCENE = typeof(SceneLink(_smallest().state, _LINE))
_HAND = typeof(HandLink(make_port(), np.zeros(3), np.zeros(3), _LINE, 1e-3))


@callback(types.int32(HandleType(_SCENE)))
def scene_link_read(link):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(read_scene_link(link))


@callback(types.int32(HandleType(_SCENE)))
def scene_link_write(link):
    """`int32 f(void *)` for `palpo.haptics.polled`."""
    return np.int32(write_scene_link(link))


@callback(types.int32(HandleType(_HAND)))
def hand_link(link):
    """`int32 f(void *)`: the tick of the hand's servo."""
    return np.int32(hand_link_tick(link))


def compile_line() -> None:
    """Compile what the ends call from Python, or load it from the cache."""
    line = typeof(_LINE)
    take_datagram.compile((line,))
    vector = typeof(_LINE.end.vector)
    send_datagram.compile((line, vector, vector, types.int64, types.boolean))


def scene_link_data(servo: Servo, line: UdpLine) -> Handle:
    """What `scene_link_read` and `scene_link_write` are given."""
    return Handle(SceneLink(servo.state, line))


def make_hand_servo(
    line: UdpLine, device: VirtualDevice, limits: LimitParams, rate_hz: float
) -> tuple[Servo, Handle]:
    """A servo whose scene is at the other end of a line, and what must live as long as it does."""
    port = make_port()
    state = make_servo(0, 0, port, device, limits, rate_hz=rate_hz, recording=False).state
    data = Handle(HandLink(port, state.device_port.position, state.sent, line, state.dt))
    return Servo(state._replace(tick_address=hand_link.address, tick_data=data.address)), data
