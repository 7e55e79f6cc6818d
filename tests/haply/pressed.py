"""A servo on a wall by a Haply arm, for a test that kills it: `python -m tests.haply.pressed ADDRESS`."""

import sys
import time

from palpo.haptics.backends.haply import HaplyDevice, HaplyThread
from tests.realtime.test_haply import wall_of

if __name__ == "__main__":
    with HaplyDevice(sys.argv[1]) as device, HaplyThread(wall_of().servo, device):
        time.sleep(1000.0)
