"""Programs that these tests start get the signals that a terminal's would, however the tests were started."""

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def signals_that_end() -> None:
    """A shell's background job, or `nohup`, ignores some of them, and so would all that it starts."""
    for name in ("SIGINT", "SIGQUIT", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has the first alone
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
