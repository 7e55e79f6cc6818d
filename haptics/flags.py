"""Flags of a servo's tick: what was done to its force, and why, as bits of one integer."""

CLAMPED = 1
RATE_LIMITED = 2
NON_FINITE = 4
STALE = 8
STOPPING = 16
FADING = 32
DEVICE_LOST = 64
TICK_FAILED = 128
PAUSING = 256
EMERGENCY = 512
STARTING_PUSHED = 1024
CLUTCHED = 2048
AT_EDGE = 4096
NEAR_LIMIT = 8192
PASSIVATED = 16384
POSE_HELD = 32768
CUED = 65536
MUTED = 131072
STOOD_STILL = 262144
DEFORMED = 524288
TAKEN = 1048576
FLAG_NAMES = {
    CLAMPED: "limited to the device's force",
    RATE_LIMITED: "limited in rate of change",
    NON_FINITE: "force not finite",
    STALE: "stale frame",
    STOPPING: "stopping",
    FADING: "fading",
    DEVICE_LOST: "device lost",
    TICK_FAILED: "tick failed",
    PAUSING: "paused, or a single step",
    EMERGENCY: "emergency stop",
    STARTING_PUSHED: "no force yet: the scene would push at the start",
    CLUTCHED: "the scene's origin moves with the hand",
    AT_EDGE: "beyond the edge of the device's workspace",
    NEAR_LIMIT: "damped near the largest force",
    PASSIVATED: "damped by the passivity controller",
    POSE_HELD: "impossible pose: the last good one is used",
    CUED: "vibrates at a contact, slip, click or loss of suction",
    MUTED: "vibrations and sounds switched off",
    STOOD_STILL: "the servo was suspended",
    DEFORMED: "a soft body was deformed too far; it comes back once the hand has let go",
    TAKEN: "the device's orientation was taken for neutral",
}
