"""A run: the loops in threads or in lock-step, its device, and the desk of an operator."""
