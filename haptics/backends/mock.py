"""The mock device: a stylus of a real device's mass, friction, delay and resolution, in a simulated hand."""

from numpy.typing import ArrayLike

from palpo.haptics.device import HandGrip, VirtualDevice, make_virtual_device
from palpo.haptics.device_spec import DeviceSpec

FIRM = HandGrip()
"""A hand that holds a stylus firmly."""


def make_mock(
    spec: DeviceSpec,
    positions: ArrayLike,
    orientations: ArrayLike | None = None,
    buttons: ArrayLike | None = None,
    *,
    grip: HandGrip = FIRM,
    velocity_cutoff_hz: float = 30.0,
    dt: float = 1e-3,
) -> VirtualDevice:
    """A simulated `spec` whose hand follows the target table, one row a tick, the last one held.

    positions (n, 3) [m] and orientations (n, 4), device axes. velocity_cutoff_hz: low-pass of the reported
    velocity.
    Raises HapticsError as `make_virtual_device` does.
    """
    return make_virtual_device(
        positions,
        orientations,
        buttons,
        grip=grip,
        mass=spec.mass,
        friction=spec.friction,
        delay=spec.delay,
        resolution=spec.resolution,
        velocity_cutoff_hz=velocity_cutoff_hz,
        dt=dt,
    )
