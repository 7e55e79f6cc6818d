"""What there is to see of each kind of scene."""
