"""The two eyes of the runtime that tests bring: numbers, which need no OpenXR."""

WIDTH, HEIGHT, IMAGES, HZ = 320, 288, 3, 90.0
HALF_IPD = 0.032
ANGLES = ((-0.80, 0.60, 0.70, -0.75), (-0.60, 0.80, 0.70, -0.75))
"""Left, right, up, down [rad] of each eye: not symmetric, as those of real ones."""
