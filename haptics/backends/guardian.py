"""Takes the force from a device whose program was killed: a small process that waits for nothing else.

The servo fades every end that a program can notice. After `kill -9`, a crash or an interpreter out of memory
it cannot: what the device does then is its own electronics' matter. The guardian holds one end of a pipe
whose other end only the program has; when that closes without a word, the program is gone, and the guardian
opens the device, switches its force output off and disables it.
"""

import subprocess
import sys
import time

from palpo.haptics.errors import HapticsError

DISMISSED = b"over"
TRIES, PAUSE = 40, 0.05
"""Attempts to open the device, and seconds between two: its driver may take a moment to notice, too."""


class Guardian:
    """The process that watches this one. name: of the device to disable, None for the default one."""

    def __init__(self, name: str | None) -> None:
        command = [sys.executable, "-m", "palpo.haptics.backends.guardian", *([] if name is None else [name])]
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
        try:
            self._process.communicate(DISMISSED, timeout=PAUSE * TRIES)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def take_force(name: str | None) -> str:
    """Disable the device; one sentence that says what became of it."""
    from palpo.haptics.backends.openhaptics_library import explain, load

    title = "the default device" if name is None else f'the device "{name}"'
    why = "it cannot be opened"
    try:
        library = load()
        hd, c = library.hd, library.constants
        for _ in range(TRIES):
            handle = int(hd.hdInitDevice(None if name is None else name.encode()))
            if handle != c.HD_INVALID_HANDLE:
                hd.hdMakeCurrentDevice(handle)
                hd.hdDisable(c.HD_FORCE_OUTPUT)
                hd.hdDisableDevice(handle)
                return f"palpo was killed; {title} was disabled"
            why = "; ".join(explain(*error) for error in library.take_errors()[:1]) or why
            time.sleep(PAUSE)
    except HapticsError as missing:
        why = str(missing)
    return f"palpo was killed, and {title} cannot be disabled: {why}; let go of the stylus and switch it off"


def main() -> None:
    """Wait for the end of the program that started this one."""
    if sys.stdin.buffer.read() != DISMISSED:
        print(take_force(sys.argv[1] if len(sys.argv) > 1 else None), file=sys.stderr)


if __name__ == "__main__":
    main()
