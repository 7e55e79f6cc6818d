"""Short vibrations and sounds at what happens to the tool."""

from pydantic import Field

from palpo.config.schema.base import Flag, Spec
from palpo.config.schema.units import Frequency, Number


class Cues(Spec):
    """Vibrations in the hand and sounds at contact, slip, click and loss of suction."""

    vibration: Number = Field(
        1.0,
        ge=0,
        le=1,
        description="Share of the largest vibration, a tenth of the device's force; 0 is none.",
    )
    sound: Flag = Field(True, description="Whether they are heard, where there is a window.")
    bandwidth: Frequency | None = Field(
        None,
        ge=0,
        description="Highest frequency of a vibration; without it, the device's. A simulated hand has none.",
    )
