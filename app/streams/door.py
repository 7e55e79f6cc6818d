"""Who may come in by a socket of ours: whoever has the token in the address, and no page of another origin.

Nothing is said to others. A browser tells whose page asks (`Origin`) and by which name it found this machine
(`Host`): a foreign page is refused by the first, and by the second also one whose name was made to lead here
(DNS rebinding), since a page can call itself only by a name, and not by a number of an address.
"""

from __future__ import annotations

import hmac
import http
import ipaddress
import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from palpo.haptics.backends.sealing import new_key
from palpo.haptics.errors import HapticsError

SHORTEST = 16
"""Letters of a token that somebody chose."""
VIOLATION, BUSY = 1008, 1013
"""Codes of RFC 6455 and its registry with which a connection is closed."""
LACKING = "the address lacks its token"
OPEN = "nothing of it is encrypted: use it in a network that you trust"
"""Said where others than this computer can listen."""


def token_of(variable: str, given: str | None = None) -> str:
    """This token, else the one that the variable holds, else a new one; HapticsError for one too short."""
    token = given or os.environ.get(variable, "") or new_key()
    if not re.fullmatch(rf"[A-Za-z0-9_-]{{{SHORTEST},}}", token):
        raise HapticsError(f"{variable}: give {SHORTEST} or more letters, digits, - and _")
    return token


def same(asked: str, token: str) -> bool:
    """Whether both are the same, in a time that does not tell how far they are."""
    return hmac.compare_digest(asked.encode("utf-8", "replace"), token.encode())


def within(host: str) -> bool:
    """Whether only this computer reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refused(connection: Any, why: str) -> Any:
    """The answer to somebody who may not come in."""
    return connection.respond(http.HTTPStatus.FORBIDDEN, f"{why}\n")


def foreign(headers: Mapping[str, str], names: Sequence[str] = ("localhost",)) -> str:
    """Why a request is not from a page of ours; empty if it is, or if it is from no page.

    names: by which this machine may be called; any number of an address always may.
    """
    host = headers.get("Host", "")
    name = re.sub(r":\d*$", "", host).strip("[]")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if name not in names:
            return "this machine has no such name"
    origin = headers.get("Origin")
    return "" if origin in (None, f"http://{host}") else "a page of another origin may not ask"


def quiet() -> logging.Logger:
    """A logger that says nothing: what strangers send belongs into no log."""
    logger = logging.Logger("door", logging.CRITICAL)
    logger.addHandler(logging.NullHandler())
    return logger
