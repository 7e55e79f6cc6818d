"""What a device is: its maker's figures."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceSpec:
    """A device's nominal limits and mechanics, SI units."""

    name: str
    max_force: float
    """Largest force at the stylus [N]."""
    max_stiffness: float
    """Stiffness of its stiffest honest wall, along its weakest axis [N/m]."""
    resolution: float
    """Position resolution [m]."""
    workspace: tuple[float, float, float]
    """Width, height and depth of the nominal workspace [m]."""
    buttons: int
    mass: float
    """Apparent mass at the stylus [kg]."""
    friction: float
    """Backdrive friction [N], in which a stylus sticks."""
    reach: tuple[tuple[float, float, float], tuple[float, float, float]] = (
        (-math.inf, -math.inf, -math.inf),
        (math.inf, math.inf, math.inf),
    )
    """Lower and upper corner of its reach [m], device axes; without end where nobody states it."""
    max_rate: float = 5000.0
    """Fastest change of the force that may be sent to it [N/s]."""
    max_torque: float = 0.0
    """Largest torque at the stylus [N m]; 0 renders none. Torques that are not rendered are accounted for by
    `palpo.haptics.passivity`."""
    continuous_force: float = math.inf
    """Force that its motors stand for ever [N]; infinite for one without motors."""
    thermal_time: float = 60.0
    """Time constant of the motors' windings [s]."""
    bandwidth: float = 0.0
    """Highest frequency of a vibration that a hand on it is given [Hz]; 0 for one that nobody holds. Makers
    state none: 200 Hz is assumed where the servo calls the device itself, 100 Hz behind a service."""

    delay: float = 0.0
    """Transport delay of a simulated one, from a pose that is read to the force that answers it [s]."""


# Makers state no delay. A Touch is asked and told over USB or Ethernet, a tick each; a Desktop over FireWire.
# HDAPI states -210 -110 -85 to 210 205 130 mm for the PHANTOM Omni and the Touch, which has its arm.
TOUCH = DeviceSpec(
    "Touch", 3.3, 1020.0, 0.055e-3, (0.160, 0.120, 0.070), 2, 0.045, 0.26,
    ((-0.210, -0.110, -0.085), (0.210, 0.205, 0.130)), delay=2e-3,
)  # fmt: skip
PHANTOM_DESKTOP = DeviceSpec(
    "Phantom Desktop", 7.9, 1480.0, 0.023e-3, (0.160, 0.120, 0.120), 1, 0.045, 0.06, delay=1e-3,
)  # fmt: skip
DEVICES = {"touch": TOUCH, "phantom_desktop": PHANTOM_DESKTOP}
