"""What ends a run from outside: signals, a closed terminal, a closed console. Each asks for the fade at once.

Python's own handlers wait until the main thread executes Python code again; a picture that is being drawn or
a library that hangs would hold the fade back. So the number of a signal goes through a socket
(`signal.set_wakeup_fd`) to a thread that does nothing else. The first one asks for the end, the second for
the emergency's fade; if the run has not ended GRACE after that, the process is left as it is. Signals that
would end the process where it stands ask for the emergency's fade at once.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self

from palpo.app.cli.refusal import account
from palpo.app.report.outcome import FAILED, FINISHED
from palpo.haptics.reasons import REASONS, RUNNING, STOP_EMERGENCY, STOP_REQUESTED

HANGUP = 1
"""Number of SIGHUP, which a closed console counts as, too."""
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGBREAK": "interrupted with Ctrl-Break"}
WORDS = {int(getattr(signal, name)): words for name, words in _WORDS.items() if hasattr(signal, name)}
WORDS[HANGUP] = "the terminal was closed"
_ABRUPT = ("SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGXCPU", "SIGIO", "SIGPWR")
ABRUPT = {int(getattr(signal, name)): f"ended by {name}" for name in _ABRUPT if hasattr(signal, name)}
WORDS |= ABRUPT
"""What ends a run, by number, in words; ABRUPT: what nobody sends who wants a program to end in order."""
SIGNALLED = 128
"""Exit status of a run that a signal ended, less the signal's number."""

GRACE = 2.0
"""Seconds that a run may take to end after the second signal."""
CLOSING = 4.0
"""Seconds that a closed console is kept waiting for the end; Windows kills the process after five."""
FADE = 0.1
"""Seconds after which a force that was asked to fade is said not to have."""
CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN = 2, 5, 6


def ending_of(reason: int, failure: str, number: int, why: str) -> tuple[str, int]:
    """Why a run ended, in words, and the exit status for it.

    reason: the servo's own. failure: of a thread, in words, or "". number: the signal that came first, 0 for
    none. why: what the servo's driver says of its end, or "".
    """
    if failure:
        return failure, FAILED
    if reason == STOP_EMERGENCY and not number:
        return "emergency stop", FINISHED
    if reason not in (RUNNING, STOP_REQUESTED, STOP_EMERGENCY):
        return f"the servo stopped: {why or REASONS[reason]}", FAILED
    if reason == RUNNING:
        lost = why not in ("", REASONS[RUNNING])
        return f"the servo stopped: {why}" if lost else "the servo did not end in time", FAILED
    if number:
        return WORDS[number], SIGNALLED + number
    return "finished", FINISHED


class Endings:
    """A context manager for the main thread; in any other it does nothing: signals are not for those.

    ask: asks for the fade and the end, within milliseconds if its argument is True; any thread may call it.
    faded: whether the force is off. number: the signal that came first, 0 for none.
    """

    def __init__(self, ask: Callable[[bool], object], faded: Callable[[], bool]) -> None:
        self.number = self._count = 0
        self._ask, self._faded = ask, faded
        self._over = threading.Event()
        self._terminals = [fd for fd in (1, 2) if _is_terminal(fd)]
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=self._listen, args=(ours,), name="endings", daemon=True)
        thread.start()
        # undone from the last to the first: the thread ends when its socket is closed at the other end
        self._undo.callback(ours.close)
        self._undo.callback(thread.join)
        self._undo.callback(theirs.close)
        self._undo.callback(signal.set_wakeup_fd, before)
        for number in WORDS:
            self._catch(number)
        if sys.platform == "win32":
            self._undo.callback(
                watch_console(ctypes.WinDLL("kernel32"), ctypes.WINFUNCTYPE, self.close_console)
            )
        return self

    def _catch(self, number: int) -> None:
        if number not in signal.valid_signals():
            return
        before = signal.getsignal(number)
        # what was told to be ignored (nohup) stays so, and whoever uses an abrupt one keeps it
        if before is signal.SIG_IGN or (number in ABRUPT and before is not signal.SIG_DFL):
            return
        signal.signal(number, lambda _number, _frame: None)
        self._undo.callback(signal.signal, number, before or signal.SIG_DFL)

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._undo.close()

    def _listen(self, socket_: socket.socket) -> None:
        """Hear every number that comes, and leave if the second one does not end the run."""
        while True:
            try:
                numbers = socket_.recv(64)
            except TimeoutError:
                self._leave()
                return
            if not numbers:
                return
            for number in numbers:
                self.hear(number)
            if self._count > 1 and socket_.gettimeout() is None:
                socket_.settimeout(GRACE)

    def hear(self, number: int) -> None:
        """A signal has come."""
        if number not in WORDS:
            return
        self._count += 1
        if self._count == 1:
            self.number = number
        self._ask(self._count > 1 or number in ABRUPT)
        if number == HANGUP:
            self._mute()

    def _mute(self) -> None:
        """Write into nothing where the terminal is gone: it would answer with an error."""
        for fd in self._terminals:
            if not _is_terminal(fd):
                os.dup2(os.open(os.devnull, os.O_WRONLY), fd)

    def _leave(self) -> None:
        if self._over.is_set():
            return
        end = time.monotonic() + FADE
        while not self._faded() and time.monotonic() < end:
            time.sleep(1e-3)
        force = "the force is off" if self._faded() else "the force may still be on: let go of the device"
        words = (
            f"palpo: the run did not end within {GRACE:g} s of the second signal and was abandoned; {force}\n"
        )
        with suppress(OSError):
            os.write(2, words.encode())
        os._exit(SIGNALLED + self.number)

    def close_console(self) -> None:
        """The console is being closed: ask for the end, and hold the system off until it has come."""
        self.hear(HANGUP)
        self._over.wait(CLOSING)


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def watch_console(
    kernel32: Any, prototype: Callable[..., Any], closed: Callable[[], object]
) -> Callable[[], object]:
    """Call `closed` when the console is closed, or its user leaves; returns what undoes this.

    kernel32, prototype: the library, and ctypes.WINFUNCTYPE. The handler runs in a thread of the system's,
    and the process ends when it returns. Ctrl-C and Ctrl-Break go on to the next handler, Python's own.
    """

    def handler(event: int) -> bool:
        if event not in (CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN):
            return False
        closed()
        return True

    routine = prototype(ctypes.c_int, ctypes.c_uint)(handler)
    kernel32.SetConsoleCtrlHandler(routine, 1)
    return lambda: kernel32.SetConsoleCtrlHandler(routine, 0)


@contextmanager
def errors_told(tell: Callable[[str], object]) -> Iterator[None]:
    """An error that nobody catches in any thread is told in words."""
    before = threading.excepthook

    def note(unhandled: threading.ExceptHookArgs) -> None:
        name = "a thread" if unhandled.thread is None else f'the thread "{unhandled.thread.name}"'
        error = unhandled.exc_value or RuntimeError(unhandled.exc_type.__name__)
        tell(f"{name} stopped: {account(error)}")

    threading.excepthook = note
    try:
        yield
    finally:
        threading.excepthook = before
