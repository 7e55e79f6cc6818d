"""Devices as a run sees them: each a file of its own and a line in `table`."""
