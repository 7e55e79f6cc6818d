"""Why a servo stopped: the first cause is latched."""

(
    RUNNING,
    STOP_REQUESTED,
    STOP_NON_FINITE,
    STOP_TICK_FAILED,
    STOP_DEVICE_LOST,
    STOP_EMERGENCY,
    STOP_POSE,
) = range(7)
REASONS = (
    "running",
    "stop requested",
    "the force was not finite",
    "the tick reported a failure",
    "the device was lost",
    "emergency stop",
    "the device reported poses that no hand can have",
)
