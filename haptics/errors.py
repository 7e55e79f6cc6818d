"""The one error that bad input to the devices, trajectories and recordings raises."""


class HapticsError(ValueError):
    """Input that cannot be used; its message is one sentence that names what is wrong and what would be right."""
