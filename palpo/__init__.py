"""Palpo: feel soft bodies through a haptic device, a mouse or a recorded hand, at 1 kHz."""
