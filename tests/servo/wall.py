"""A spring wall as a system's tick: the smallest C function that closes the loop through a device."""

from dataclasses import dataclass

import numpy as np
from numba import carray, cfunc, types
from numpy.typing import NDArray

from palpo.haptics.device import VirtualDevice
from palpo.haptics.limits import AT_ONCE, LimitParams, make_limits
from palpo.haptics.servo import Servo, make_servo
from palpo.physics.exchange.atomics import view_f64
from palpo.physics.exchange.port import OK, Port, end_tick, make_port, port_addresses, port_view

NEVER = -1
PORT = len(Port._fields)


@cfunc(types.int32(types.voidptr), cache=True)
def spring_wall(data):
    """f_x = -K (x - x_0), only inside if the wall is one-sided; with an ageing frame and faults on demand."""
    words = carray(data, (PORT + 7,), np.int64)
    port, own = port_view(words), words[PORT:]
    stiffness, face, one_sided = view_f64(own[0], 3)
    call, fail_at, nan_at, age_from, age_until = own[1], own[2], own[3], own[4], own[5]
    own[1] = call + 1
    if call == own[6]:
        raise ValueError("a tick of this test")
    depth = port.position[0] - face
    if one_sided != 0.0 and depth < 0.0:
        depth = 0.0
    port.force[0] = np.nan if call == nan_at else -stiffness * depth
    port.status[1] = call
    age = call - age_from if age_from <= call < age_until else 0
    return np.int32(end_tick(port, 5 if call == fail_at else OK, age))


@dataclass
class Wall:
    """The wall's memory, which must outlive the servo, and the servo."""

    port: Port
    numbers: NDArray[np.float64]
    words: NDArray[np.int64]
    servo: Servo

    @property
    def calls(self) -> int:
        return int(self.words[PORT + 1])


def make_wall(
    device: VirtualDevice,
    stiffness: float,
    face: float = 0.0,
    one_sided: bool = True,
    limits: LimitParams | None = None,
    fail_at: int = NEVER,
    nan_at: int = NEVER,
    stale: tuple[int, int] = (0, 0),
    raise_at: int = NEVER,
    **options,
) -> Wall:
    """A servo on a spring wall [N/m] whose face lies at x = face [m]; no limit bites unless one is given."""
    port = make_port()
    numbers = np.array([stiffness, face, float(one_sided)])
    words = np.concatenate(
        [
            port_addresses(port),
            np.array([numbers.ctypes.data, 0, fail_at, nan_at, *stale, raise_at], dtype=np.int64),
        ]
    )
    free = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, hand_speed=np.inf)
    servo = make_servo(
        spring_wall.address,
        words.ctypes.data,
        port,
        device,
        free if limits is None else limits,
        **options,
    )
    return Wall(port, numbers, words, servo)
