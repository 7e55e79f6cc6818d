"""The two ends of a remote hand on UDP sockets: compiled calls in the servo's tick, nothing of them Python's.

A message is WORDS float64 of this machine's order (`palpo.haptics.remote`); whoever sends anything else is
not heard. There is no encryption: use it on a network that you trust, or through a tunnel.
"""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.haptics.backends.foreign import BYTES, I32, I64, invoke
from palpo.haptics.device import (
    DEVICE_GONE,
    DEVICE_OK,
    EXTERNAL,
    VirtualDevice,
    begin_measuring,
    make_virtual_device,
    measure_spin,
)
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import LimitParams, make_limits
from palpo.haptics.polled import PolledThread
from palpo.haptics.remote import (
    LARGEST,
    LEAVING,
    SILENCE,
    WORDS,
    End,
    hand_tick,
    hear,
    make_end,
    scene_tick,
    tell,
)
from palpo.haptics.servo import Servo, ServoState, make_servo
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback, inlined, kernel

SIZE = 8 * WORDS
"""Bytes of a message."""
MOST = 64
"""Messages taken in a tick, so that no flood holds it up."""
_RECEIVE, _SEND = 0, 1
CALLING = 0.05
"""Seconds between two calls for the other end, before it answers."""
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])


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
    """Addresses of recv and send."""
    descriptor: int
    arriving: NDArray[np.float64]
    """Room for a message and one word more, by which a longer one is known."""
    leaving: NDArray[np.float64]
    """The message that is sent, shape (WORDS,)."""


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


@inlined
def _listen(line):
    for _ in range(MOST):
        got = _call_socket(line.functions[_RECEIVE], line.descriptor, line.arriving.ctypes.data, SIZE + 8)
        if got < 0:
            break
        if got == SIZE:
            hear(line.end, line.arriving)


@inlined
def _speak(line, vector, turn, buttons):
    tell(line.end, vector, turn, buttons, line.leaving)
    _call_socket(line.functions[_SEND], line.descriptor, line.leaving.ctypes.data, SIZE)


@inlined
def _turned(turn, out):
    """out = the orientation, if it is one."""
    square = 0.0
    for i in range(4):
        square += turn[i] * turn[i]
    if 0.98 < square < 1.02:
        for i in range(4):
            out[i] = turn[i] / np.sqrt(square)


@kernel
def read_scene_link(link):
    """Where the hand at the other end leads; silence beyond SILENCE, or its farewell, is a lost device."""
    servo, line = link.servo, link.line
    _listen(line)
    words, port, first = line.end.words[0], servo.device_port, line.end.words[0].placed == 0
    scene_tick(line.end, servo.sent, servo.dt, port.position, port.velocity)
    _turned(line.end.turn, port.orientation)
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
    _speak(link.line, link.servo.sent, link.servo.port.orientation, 0)
    return 1


@kernel
def hand_link_tick(link):
    """The tick of a servo whose scene is at the other end; its frame is as old as the last message."""
    line, port = link.line, link.port
    _listen(line)
    hand_tick(line.end, link.position, link.sent, link.dt, port.force)
    _speak(line, link.position, port.orientation, port.buttons[0])
    gone = line.end.words[0].left != 0
    return end_tick(port, OK, 1 << 20 if gone else line.end.words[0].quiet)


def _a_line(descriptor: int = 0, largest: float = 0.0) -> UdpLine:
    own = ctypes.CDLL(None) if sys.platform != "win32" else None
    addresses = [
        0 if own is None else int(ctypes.cast(getattr(own, name), ctypes.c_void_p).value or 0)
        for name in ("recv", "send")
    ]
    line = UdpLine(
        make_end(), np.array(addresses, dtype=np.int64), int(descriptor), np.zeros(WORDS + 1), np.zeros(WORDS)
    )
    line.leaving[LARGEST] = largest
    return line


def _smallest() -> Servo:
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)
    return make_servo(0, 0, make_port(), device, make_limits(1.0), ring_capacity=2)


_SCENE = typeof(SceneLink(_smallest().state, _a_line()))
_HAND = typeof(HandLink(make_port(), np.zeros(3), np.zeros(3), _a_line(), 1e-3))


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


def endpoint(text: str, host: str = "127.0.0.1") -> tuple[str, int]:
    """HOST:PORT or PORT. Raises HapticsError for what is neither."""
    named, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise HapticsError(f"{text}: give PORT or HOST:PORT, with a port from 1 to 65535")
    return named or host, int(port)


class Channel:
    """A UDP socket with the other end of a remote hand; a context manager that says farewell.

    Raises HapticsError where there can be none.
    """

    def __init__(self, largest: float = 0.0) -> None:
        """largest: force that this end's hand may be given [N], 0 for the scene's end."""
        if os.name != "posix":
            raise HapticsError("a remote hand needs the sockets of Linux or macOS")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self.line = _a_line(self._socket.fileno(), largest)
        self.largest = 0.0
        """Force that the other end's hand may be given [N]."""

    def listen(self, host: str, port: int) -> int:
        """Let a hand call here, 0 for any free port; returns the port. Raises HapticsError if it cannot."""
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise HapticsError(f"no hand can call at {host}:{port}: {error.strerror}") from None
        return int(self._socket.getsockname()[1])

    def connect(self, host: str, port: int) -> None:
        """Speak to this address only. Raises HapticsError where there is none of that name."""
        try:
            self._socket.connect((host, port))
        except OSError as error:
            raise HapticsError(f"{host}:{port} cannot be reached: {error.strerror}") from None

    def answered(self) -> bool:
        """Take what has arrived; whether the other end was ever heard.

        Whoever is heard first is spoken to, and heard, from then on.
        """
        while True:
            try:
                data, sender = self._socket.recvfrom(SIZE + 8)
            except OSError:  # nothing more, or nobody there yet
                return bool(self.line.end.words["newest"][0])
            first = not self.line.end.words["newest"][0]
            if len(data) != SIZE or not hear(self.line.end, message := np.frombuffer(data)):
                continue
            if first:
                self.largest = float(message[LARGEST])
                self._socket.connect(sender)

    def call(self, last: bool = False) -> None:
        """Send a message from Python, before the loop runs or after it."""
        tell(self.line.end, self.line.end.position, UPRIGHT, 0, self.line.leaving)
        self.line.leaving[LEAVING] = float(last)
        try:
            self._socket.send(self.line.leaving.tobytes())
        except OSError:  # nobody there
            return

    def wait(self, patience: float, given_up: Callable[[], bool], calling: bool) -> bool:
        """Until the other end is heard; False if `patience` [s] ran out or nobody waits any more."""
        end = time.monotonic() + patience
        while not self.answered():
            if time.monotonic() > end or given_up():
                return False
            if calling:
                self.call()
            time.sleep(CALLING)
        return True

    @property
    def lost(self) -> str:
        """What became of the other end, in words."""
        if self.line.end.words["left"][0]:
            return "the other end of the remote hand has ended"
        return f"the other end of the remote hand has not been heard for {SILENCE:g} s"

    def close(self) -> None:
        """Say farewell, more than once as one may be lost, and close."""
        if self._socket.fileno() >= 0:
            for _ in range(5):
                self.call(last=True)
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def scene_link_data(servo: Servo, channel: Channel) -> Handle:
    """What `scene_link_read` and `scene_link_write` are given."""
    return Handle(SceneLink(servo.state, channel.line))


def make_hand_servo(
    channel: Channel, device: VirtualDevice, limits: LimitParams, rate_hz: float
) -> tuple[Servo, Handle]:
    """A servo whose scene is at the other end, and what must live as long as it does.

    Its limits should let the force change as fast as the device can: what it holds back is booked as given.
    """
    port = make_port()
    state = make_servo(0, 0, port, device, limits, rate_hz=rate_hz, recording=False).state
    data = Handle(HandLink(port, state.device_port.position, state.sent, channel.line, state.dt))
    return Servo(state._replace(tick_address=hand_link.address, tick_data=data.address)), data


class SceneThread(PolledThread):
    """Runs a scene's servo under the hand at the other end."""

    def __init__(self, servo: Servo, channel: Channel) -> None:
        self._channel = channel
        super().__init__(
            servo,
            scene_link_read.address,
            scene_link_write.address,
            scene_link_data(servo, channel),
            lambda: channel.lost,
        )

    def start(self) -> Self:
        """Compile, take what has come meanwhile, so that the hand is where it is now, then start."""
        self._compile()
        self.accompany()
        return super().start()

    def accompany(self) -> None:
        """Take what has come meanwhile."""
        self._channel.answered()
