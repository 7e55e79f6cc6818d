"""The profile of a device: what `palpo doctor --device NAME --exercise` has found out about it."""

from pydantic import Field

from palpo.config.schema.base import Spec
from palpo.config.schema.units import Force, Length, Mass, Stiffness, Time


class DeviceProfile(Spec):
    """Figures of one device, which take the place of its maker's; read before each of its runs."""

    device: str = Field(min_length=1, description="What `--device` calls it.")
    model: str = Field(min_length=1, description="Its model; a device of another one does not use the file.")
    serial: str = Field("", description="Its serial number, where it tells one; likewise.")
    max_stiffness: Stiffness = Field(
        gt=0, description="Stiffest coupling that it is given: half of what was stable."
    )
    max_force: Force = Field(gt=0, description="Largest force that it is given; its maker's at most.")
    resolution: Length = Field(gt=0, description="One count of its encoder.")
    friction: Force = Field(ge=0, description="Dry friction.")
    mass: Mass = Field(gt=0, description="Moving mass.")
    delay: Time = Field(ge=0, le=0.05, description="From a pose to the force that answers it.")
