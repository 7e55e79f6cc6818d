"""How often `palpo run --device remote` and `palpo hand` find each other.

`python -m tests.realtime.remote_starts 30` starts them so often.

`cold` after the number gives each hand a cache of its own, so that its servo is compiled anew. A start is
well where both ends run, and the scene says that the hand has ended when it does.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from palpo.app.devices.device import KEY_VARIABLE

PATIENCE = 300.0


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(cache=None):
    """What a pair of plain commands came to: an empty text if all was well; and seconds until both ran."""
    port, began = free_port(), time.monotonic()
    environment = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    common = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    palpo = [sys.executable, "-m", "palpo"]
    run = [*palpo, "run", "probe", "--device", f"remote:{port}", "--headless"]
    scene = subprocess.Popen(run, env=environment, **common)
    told, said, ends = "", "", [scene]
    timer = threading.Timer(PATIENCE, lambda: [end.kill() for end in ends])
    timer.start()
    try:
        while not (key := re.search(r"--key (\S+)", told)):
            told += scene.stdout.readline()
            if scene.poll() is not None:
                return f"the scene ended: {told}", 0.0
        own = environment | ({"XDG_CACHE_HOME": cache} if cache else {})
        call = [*palpo, "hand", f"127.0.0.1:{port}", "--key", key[1], "--device", "mock"]
        hand = subprocess.Popen(call, env=own, **common)
        ends.append(hand)
        while "at the other end" not in said:
            said += hand.stdout.readline()
            if hand.poll() is not None:
                return f"the hand ended: {said}", 0.0
        seconds = time.monotonic() - began
        time.sleep(0.5)
        hand.send_signal(signal.SIGINT)
        told += scene.communicate()[0]
        hand.communicate()
        well = "the other end of the remote hand has ended" in " ".join(told.split())
        return "" if well else f"the scene says: {told}", seconds
    finally:
        timer.cancel()
        for end in ends:
            end.kill()
            end.wait()


def main(number, cold):
    well, took = 0, []
    for _ in range(number):
        with tempfile.TemporaryDirectory() as folder:
            words, seconds = start(folder if cold else None)
        well += not words
        took.append(seconds)
        if words:
            print(words, flush=True)
    print(f"{well} of {number} starts, {max(took):.0f} s at most until both ran")
    return int(well < number)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), "cold" in sys.argv))
