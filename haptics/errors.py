"""The one error that bad input to the devices, trajectories and recordings raises."""


class HapticsError(ValueError):
    """Input that cannot be used; one sentence names what is wrong and what would be right."""
