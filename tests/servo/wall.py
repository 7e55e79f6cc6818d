"""A spring wall as a system's tick: the smallest C function that closes the loop through a device."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import cfunc, typeof, types
from numpy.typing import NDArray

from palpo.haptics.device import VirtualDevice
from palpo.haptics.limits import AT_ONCE, LimitParams, make_limits
from palpo.haptics.servo import Servo, make_servo
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port

NEVER = -1
SPRING = np.dtype(
    [("stiffness", float), ("face", float), ("one_sided", bool)]
    + [(name, np.int64) for name in ("call", "fail_at", "nan_at", "age_from", "age_until", "raise_at")]
)


class Spring(NamedTuple):
    """The wall's state."""

    port: Port
    own: NDArray[Any]  # (1,) of SPRING


_CONTENT = typeof(Spring(make_port(), np.zeros(1, SPRING)))


@cfunc(types.int32(HandleType(_CONTENT)), cache=True)
def spring_wall(wall):
    """f_x = -K (x - x_0), only inside if the wall is one-sided; with an ageing frame and faults on demand."""
    port, own, call = wall.port, wall.own[0], wall.own[0].call
    own.call = call + 1
    if call == own.raise_at:
        raise ValueError("a tick of this test")
    depth = port.position[0] - own.face
    if own.one_sided and depth < 0.0:
        depth = 0.0
    port.force[0] = np.nan if call == own.nan_at else -own.stiffness * depth
    port.status[0].frame = call
    age = call - own.age_from if own.age_from <= call < own.age_until else 0
    return np.int32(end_tick(port, 5 if call == own.fail_at else OK, age))


@dataclass
class Wall:
    """The wall's memory, which must outlive the servo, and the servo."""

    data: Handle
    servo: Servo

    @property
    def port(self) -> Port:
        return self.data.state.port

    @property
    def calls(self) -> int:
        return int(self.data.state.own["call"][0])


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
    own = np.array([(stiffness, face, one_sided, 0, fail_at, nan_at, *stale, raise_at)], SPRING)
    data = Handle(Spring(make_port(), own))
    free = make_limits(1e9, max_rate=1e15, fades=AT_ONCE, hand_speed=np.inf)
    servo = make_servo(
        spring_wall.address,
        data.address,
        data.state.port,
        device,
        free if limits is None else limits,
        **options,
    )
    return Wall(data, servo)
