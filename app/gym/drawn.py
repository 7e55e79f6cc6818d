"""What the errors of environments share: how they are checked, and made from a table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

import numpy as np

from palpo.config.words import Refusal

Errors = TypeVar("Errors")


def require(errors: Any, shares: Sequence[str]) -> None:
    """Refusal for a negative entry, one of the shares that is 1 or more, and no variant."""
    for name, value in asdict(errors).items():
        most = 1.0 if name in shares else np.inf
        if not 0.0 <= value < most:
            below = " and below 1" if name in shares else ""
            raise Refusal(f"errors: {name} is {value!r}; it must be zero or positive{below}")
    variants = getattr(errors, "variants", 1)
    if not isinstance(variants, int) or variants < 1:
        raise Refusal(f"errors: variants is {variants!r}; give a whole number, at least 1")


def errors_of(kind: type[Errors], given: Errors | Mapping[str, Any] | None) -> Errors:
    """The errors of a kind as they are, or its default ones with what a table gives.

    Raises Refusal for an entry that there is not, and as the kind does.
    """
    if isinstance(given, kind):
        return given
    assert given is None or isinstance(given, Mapping)
    return kind(**known_only(given, [field.name for field in fields(kind)], "errors"))  # type: ignore[arg-type]


def known_only(given: Mapping[str, Any] | None, known: Sequence[str], where: str) -> dict[str, Any]:
    """What is given; Refusal for an entry that is not known."""
    unknown = sorted(set(given or {}) - set(known))
    if unknown:
        raise Refusal(f"{where}: there is no {unknown[0]!r}; there are {', '.join(known)}")
    return dict(given or {})
