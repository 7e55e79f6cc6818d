"""What a call of Palpo raises for input that cannot be used: one exception, with the sentence."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from palpo.app.cli.refusal import is_refusal
from palpo.config.words import Refusal

P = ParamSpec("P")
R = TypeVar("R")


def refusing(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose refusals are all `Refusal`s."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Refusal:
            raise
        except Exception as error:
            if is_refusal(error):
                raise Refusal(str(error)) from error
            raise

    return called
