"""Takes the force from a device whose program was killed or hangs: a small process that only waits for this.

The servo fades every end that a program can notice. After `kill -9`, a crash or an interpreter out of memory
it cannot, nor while it hangs or the whole program is stopped: what the device does then is its own
electronics' matter. The guardian holds one end of a pipe whose other end only the program has: when that
closes without a word, the program is gone, and the guardian opens the device, switches its force output off
and disables it. And it listens to the servo's heart, a number in shared memory that each tick renews: after
HUNG without another beat it does the same beside the program. Where the driver leaves the device to one
program only, that one is ended at LOST, so that the device comes free.

A machine that sleeps stops the guardian as well: time in which it did not look itself does not count.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.errors import HapticsError
from palpo.haptics.silence import Silence

DISMISSED = b"over"
TRIES, PAUSE = 40, 0.05
"""Attempts to open the device, and seconds between two: its driver may take a moment to notice, too."""
HUNG, LOST = 0.5, 1.0
"""Seconds without a beat after which the device is taken, and its program ended where it keeps the device.
Both are longer than a program takes that notices by itself."""
LOOK = 0.02
"""Seconds between two looks at the heart."""
RESTS = -1
"""Of a heart that need not beat any more: whoever watches the servo in the program itself ends the run."""


def open_heart(path: Path) -> NDArray[np.int64]:
    """The heart in a file, mapped into memory: 0 before the first beat; shape (1,)."""
    heart: NDArray[np.int64] = np.asarray(np.memmap(path, np.int64, "r+", shape=(1,)))
    return heart


def _remove(file: Path) -> None:
    """Windows keeps what somebody has mapped."""
    with suppress(OSError):
        file.unlink(missing_ok=True)


class Guardian:
    """The process that watches this one. name: of the device to disable, None for the default one.

    heart (1,): what the servo renews in each tick.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name
        with tempfile.NamedTemporaryFile(prefix="palpo-heart-", delete=False) as file:
            file.truncate(8)
        self._file = Path(file.name)
        self.heart = open_heart(self._file)
        weakref.finalize(self, _remove, self._file)
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self) -> None:
        """Begin."""
        named = [] if self._name is None else [self._name]
        command = [sys.executable, "-m", "palpo.haptics.backends.guardian", str(self._file), *named]
        # in a session of its own, so that what is typed at the terminal does not reach it
        detached = (
            {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
            if sys.platform == "win32"
            else {"start_new_session": True}
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **detached
        )

    def dismiss(self) -> None:
        """The run has ended in order: it has nothing to do any more."""
        if self._process is not None:
            try:
                self._process.communicate(DISMISSED, timeout=PAUSE * TRIES)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()


def take_force(name: str | None, tries: int = TRIES) -> str:
    """Disable the device; an empty text, or why that cannot be, in words."""
    from palpo.haptics.backends.openhaptics_library import explain, load

    why = "it cannot be opened"
    try:
        library = load()
        hd, c = library.hd, library.constants
        for left in reversed(range(tries)):
            handle = int(hd.hdInitDevice(None if name is None else name.encode()))
            if handle != c.HD_INVALID_HANDLE:
                hd.hdMakeCurrentDevice(handle)
                hd.hdDisable(c.HD_FORCE_OUTPUT)
                hd.hdDisableDevice(handle)
                return ""
            why = "; ".join(explain(*error) for error in library.take_errors()[:1]) or why
            time.sleep(PAUSE if left else 0.0)
    except HapticsError as missing:
        why = str(missing)
    return why


def guard(
    heart: NDArray[np.int64],
    over: threading.Event,
    take: Callable[[], bool],
    end: Callable[[], object],
) -> None:
    """Until `over`, or until the heart rests: take the device HUNG after a beat, end the program at LOST.

    take: takes the force, and says whether it could. end: ends the program that keeps it.
    """
    silence, tried, taken = Silence(), False, False
    while not over.wait(LOOK) and heart[0] != RESTS:
        silent = silence.after(int(heart[0]))
        if heart[0] == 0 or silent < HUNG:
            tried = taken = False
        elif not tried:
            tried, taken = True, take()
        elif silent > LOST and not taken:
            end()
            return


def main() -> None:
    """Watch over the program that started this one, until it is gone or says that it has ended in order."""
    file, name = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    title = "the default device" if name is None else f'the device "{name}"'
    program, over, heard = os.getppid(), threading.Event(), [b""]

    def listen() -> None:
        heard[0] = sys.stdin.buffer.read()
        over.set()

    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    def take() -> bool:
        refused = take_force(name, 1)
        if not refused:
            say(f"palpo's servo has stood still for {HUNG:g} s; {title} was disabled: start again")
        return not refused

    def end() -> None:
        # the program is still there as long as its end of the pipe is
        if os.getppid() == program and not over.is_set():
            say(f"palpo has stood still for {LOST:g} s and keeps {title}: it is ended")
            os.kill(program, getattr(signal, "SIGKILL", signal.SIGTERM))

    threading.Thread(target=listen, daemon=True).start()
    heart = open_heart(file)
    # at once: whatever becomes of the program leaves nothing behind
    _remove(file)
    guard(heart, over, take, end)
    over.wait()
    if heard[0] != DISMISSED:
        refused = take_force(name)
        force = f"{title} cannot be disabled: {refused}; let go of the stylus and switch it off"
        say(f"palpo was killed; {force if refused else f'{title} was disabled'}")


if __name__ == "__main__":
    main()
