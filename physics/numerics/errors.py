"""The one error that bad input to the physics raises."""


class InputError(ValueError):
    """Input that cannot be simulated; its message is one sentence: what is wrong and what would be right."""
